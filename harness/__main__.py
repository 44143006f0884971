"""`python -m harness`: the program itself, once everything that it needs is installed."""

from __future__ import annotations

import sys
from typing import NoReturn

from harness.terminal import streams
from harness.terminal.command_end import deafen, ended


def main() -> NoReturn:
    streams.secure()
    code = ended(sys.argv[1:], _command_line)
    deafen()
    sys.exit(code)


def _command_line() -> int:
    """Imported here: what is broken in the environment ends like anything else that is unexpected."""
    from harness.cli import app
    from harness.host import cgroup

    cgroup.raise_open_files()
    code = app.called(sys.argv[1:])
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    main()
