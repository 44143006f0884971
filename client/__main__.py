"""The command `streamgauge` of a wheel: it makes the program's environment at its first use, and becomes the program.

Always in isolated mode: no module on PYTHONPATH, and none of this environment, takes the place of one of its own.
"""

import os
import sys
from pathlib import Path

THIS_FILE = Path(__file__).resolve()
PROGRAM = THIS_FILE.parent / "program"


def main() -> int:
    if not sys.flags.isolated:
        os.execv(sys.executable, [sys.executable, "-I", str(THIS_FILE), *sys.argv[1:]])
    sys.path.insert(0, str(PROGRAM))
    from harness.install import prepare
    from harness.terminal import streams

    streams.secure()
    return prepare.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
