"""Screens, pages and exports of runs and experiments, all made from files."""

import os

# matplotlib refuses to be imported if this names a backend that is not installed, as a notebook's kernel does for all
# programs that it starts. Our drawings choose theirs themselves.
os.environ.pop("MPLBACKEND", None)
