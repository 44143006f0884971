"""The files that make a shell complete our commands.

fish reads each script of a folder. bash and zsh read one file, which gets one line that reads the script: so starting a
shell starts no Python. A second installation changes the script alone.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from harness.model import HarnessError
from harness.terminal.command_end import PROGRAM

# zsh completes by functions that its own start does not load.
ZSH_BEGINS = "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"


def install(shell: str, script: str, env: Mapping[str, str] = os.environ) -> list[Path]:
    """Write the script where this shell finds it, and return the files that were written."""
    home = Path(env.get("HOME") or Path.home())
    if shell == "fish":
        folder = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "fish" / "completions"
        return [_written(folder / f"{PROGRAM}.fish", f"{script}\n")]
    data = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / PROGRAM
    file = _written(data / f"completion.{shell}", f"{ZSH_BEGINS if shell == 'zsh' else ''}{script}\n")
    start = home / ".bashrc" if shell == "bash" else Path(env.get("ZDOTDIR") or home) / ".zshrc"
    line = f"source {shlex.quote(str(file))}"
    return [file] if line in _lines(start) else [file, _written(start, _on_a_new_line(start, line), mode="a")]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise _refused(path, error) from error


def _on_a_new_line(path: Path, line: str) -> str:
    ends_in_a_line = not path.exists() or not path.stat().st_size or path.read_bytes().endswith(b"\n")
    return f"{'' if ends_in_a_line else chr(10)}{line}\n"


def _written(path: Path, text: str, mode: str = "w") -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise _refused(path, error) from error
    return path


def _refused(path: Path, error: OSError) -> HarnessError:
    return HarnessError(
        f"{path} can't be used: {error.strerror}. Make it readable and writable, or add the output of "
        f"`{PROGRAM} completion SHELL` to a file that the shell reads."
    )
