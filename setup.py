"""What pyproject.toml can't say: which versions a wheel asks for, and that building it leaves nothing in the checkout.

A wheel asks for the very versions of requirements/run.lock, with which the tests ran. It is a program and no library:
nothing else lives in its environment, so that exact versions disturb nobody, and one that was installed today is the
one that was tested then. The hashes stay behind, for a wheel can't hold them.
"""

import atexit
import re
import shutil
import tempfile
from pathlib import Path

from setuptools import setup

LOCK = Path(__file__).parent / "requirements" / "run.lock"
PIN = re.compile(r"^(\S+==\S+(?: ; [^\\\n]+?)?) \\$", re.MULTILINE)

scratch = tempfile.mkdtemp(prefix="streamgauge-build-")
atexit.register(shutil.rmtree, scratch, ignore_errors=True)
setup(
    install_requires=PIN.findall(LOCK.read_text(encoding="utf-8")),
    options={"build": {"build_base": scratch}, "egg_info": {"egg_base": scratch}},
)
