"""`python -m harness`: the program itself, once everything that it needs is installed."""

from __future__ import annotations

import sys
from typing import NoReturn

from harness import descriptors
from harness.ending import ended


def main() -> NoReturn:
    descriptors.secure()
    sys.exit(ended(sys.argv[1:], _command_line))


def _command_line() -> int:
    """Imported here: what is broken in the environment ends like anything else that is unexpected."""
    from harness import cli

    code = cli.called(sys.argv[1:])
    sys.stdout.flush()
    return code


if __name__ == "__main__":
    main()
