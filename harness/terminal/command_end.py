"""The end of every command: an exit code that shows whose fault it was, and one sentence with what to do.

Unexpected errors are handled here, too: the traceback goes to a file, never to the screen, and the exit code is 4,
because 1 would look like a FAIL. This module needs the standard library only, so that an error while the rest is
imported is handled in the same way.
"""

from __future__ import annotations

import _thread
import errno
import json
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from harness.host import cpu_starvation, disk_space
from harness.model import Exit, HarnessError, Stopped, UsageError
from harness.terminal.screens import fit_to_terminal
from harness.util import server_errors
from harness.util.local_time import local
from harness.util.texts import shown
from harness.util.wait import DeadlinePassed

PROGRAM = "streamgauge"
COMPLETING = f"_{PROGRAM.upper()}_COMPLETE"  # set by a shell that asks for completions
JSON, QUIET = "--json", "--quiet"
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTHING_LEFT = "Everything it started has been stopped."
NOT_IN_ORDER = "not everything ended in order"
ONCE_MORE = "Ctrl-C once more ends all at once"
ENDED_EARLY, INTERRUPTED, BROKE = "ended early", "interrupted", "harness broke"
BUSY = "The machine is busy: {}. Run again when it is quieter, or let `run` wait longer with --patience 3."
LONGEST = 300  # most characters of a foreign error's message; its file has all of them


@dataclass(frozen=True)
class UnderWay:
    """A run or an experiment in progress, and the next step if it ends early.

    `instead` returns another sentence if the next step would find nothing by then.
    """

    path: Path
    logs: Path
    next_step: str
    instead: Callable[[], str] = lambda: ""


class UnexpectedError(HarnessError):
    """An unexpected error, with the file that holds its traceback."""

    def __init__(self, error: BaseException, log: Path | None) -> None:
        kept = f"The traceback is in {short_path(log)}." if log else "Its traceback could not be written to any folder."
        super().__init__(
            f"Something unexpected happened: {summary(error)}. {kept} Try the same command again. If it fails "
            "again, `streamgauge doctor` lists what this machine lacks. If it lacks nothing, report a bug with that "
            "file."
        )


_under_way: list[UnderWay] = []
_left: tuple[BaseException, tuple[UnderWay, ...]] | None = (
    None  # what an error interrupted, from the outermost to the innermost
)
_broken_thread: list[HarnessError] = []
_stopped: list[Stopped] = []  # signals since the program began


@contextmanager
def under_way(what: UnderWay, tell: Callable[..., None]) -> Iterator[None]:
    """Register what an aborted command leaves behind, and write the reason into its history."""
    global _left  # noqa: PLW0603
    _under_way.append(what)
    try:
        yield
    except BaseException as error:
        if _left is None or _left[0] is not error:
            _left = (error, tuple(_under_way))
        with suppress(OSError, disk_space.NoRoomError):  # which would hide the first error
            tell(ENDED_EARLY, how=INTERRUPTED if isinstance(error, Stopped) else BROKE, why=_why(error))
        raise
    finally:
        _under_way.pop()


def ended(arguments: Sequence[str], program: Callable[[], int], nothing_lost: str = NOTHING_LEFT) -> int:
    """Run a program and return its exit code, whatever happens in it. `nothing_lost` is printed if a signal
    stops it.
    """
    with _listening():
        try:
            return program()
        except Stopped as by:
            how = f": {NOT_IN_ORDER}" if by.again else ""
            return _end(arguments, by, f"Stopped by {by.name}{how}. {nothing_lost}", by.exit_code)
        except UsageError as error:
            return _end(arguments, error, str(error), Exit.USAGE)
        except Exception as error:  # noqa: BLE001 - this is the one place for every error
            if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:  # the name is a user's argument
                return _end(arguments, error, f"{shown(str(error.filename))}: no file has so long a name.", Exit.USAGE)
            return _end(arguments, error, str(known(error)), Exit.BROKEN)


def deafen() -> None:
    """Ignore further signals once everything is printed: nothing is left to stop, and a traceback must not follow."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def known(error: BaseException, under_way: Sequence[UnderWay] | None = None) -> HarnessError:
    """Return the error as one with a sentence for users. The traceback of an unexpected one goes to a file."""
    under_way = _left_by(error) if under_way is None else under_way
    if full := disk_space.in_terms_of_room(error, _written_to(under_way)):
        return full
    if isinstance(error, DeadlinePassed):
        return HarnessError(_with_load(error))
    if isinstance(error, HarnessError):
        return error
    if said := server_errors.sentence(error):
        return HarnessError(said)
    return UnexpectedError(error, keep_traceback(error, under_way))


def summary(error: BaseException) -> str:
    """Return an error's own message on one line."""
    words = " ".join(str(error).split())
    return f"{type(error).__name__}: {shown(words, LONGEST)}".rstrip(": .")


def _why(error: BaseException) -> str:
    if isinstance(error, Stopped):
        return f"by {error.name}"
    if full := disk_space.in_terms_of_room(error, _written_to(_under_way)):
        return str(full)
    if isinstance(error, DeadlinePassed):
        return _with_load(error)
    return str(error) if isinstance(error, UsageError | HarnessError) else summary(error)


def _with_load(error: DeadlinePassed) -> str:
    """Name a busy machine as the likely cause of a deadline that passed."""
    busy = cpu_starvation.busy(cpu_starvation.machine())
    return f"{error.missed} {BUSY.format(busy)} {error.seen}".rstrip() if busy else str(error)


def short_path(path: Path) -> str:
    """Return the shorter one of the relative and the absolute path."""
    relative = os.path.relpath(path)
    return relative if len(relative) < len(str(path)) else str(path)


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise HarnessError(
            "There is no home folder: HOME is not set, and the system has none for this user. Set HOME, or both "
            "XDG_STATE_HOME and XDG_CACHE_HOME, to writable folders."
        ) from None


def state_path() -> Path:
    """Return the folder for everything that later commands must find."""
    base = os.environ.get("XDG_STATE_HOME") or str(_home() / ".local" / "state")
    return Path(base) / "streamgauge"


def state_folder() -> Path:
    """Return the state folder, and make it if it does not exist."""
    folder = state_path()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        why = "" if os.access(folder, os.W_OK) else "it exists but is not writable"
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise HarnessError(
            f"The folder {folder} can't be written: {why}. It holds the list of processes and folders that "
            "runs own. Set XDG_STATE_HOME, and with a read-only home XDG_CACHE_HOME too, to folders you can write."
        )
    return folder


def cache_folder() -> Path:
    """Return the folder for everything that can be fetched or made again."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (configured if configured.is_absolute() else _home() / ".cache") / "streamgauge"


def keep_traceback(error: BaseException, under_way: Sequence[UnderWay] = ()) -> Path | None:
    """Write the traceback to a file of the interrupted run, else in the state folder, else in the temporary folder.
    Return the file.
    """
    name = f"traceback-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.getpid()}.txt"
    text = "".join(traceback.format_exception(error))
    for find_folder in (*(work.logs.absolute for work in reversed(under_way)), state_folder, _temporary_folder):
        with suppress(OSError, RuntimeError, HarnessError):
            file = find_folder() / name
            with file.open("a", encoding="utf-8", errors="backslashreplace") as stream:
                stream.write(text)
            return file
    return None


def _temporary_folder() -> Path:
    """Raises RuntimeError if no folder can be written to, as with a full disk."""
    try:
        return Path(tempfile.gettempdir())
    except OSError as error:
        raise RuntimeError(str(error)) from error


def _written_to(under_way: Sequence[UnderWay]) -> list[Path]:
    """Folders where the disk may be full: those of what is in progress, and those that every command uses."""
    found = [work.path for work in reversed(under_way)]
    for find_folder in (_temporary_folder, state_path, cache_folder, Path.cwd):
        with suppress(OSError, RuntimeError, HarnessError):
            found.append(find_folder())
    return found


@contextmanager
def _listening() -> Iterator[None]:
    """Signals, and errors in threads, end the program by an exception."""
    heard = [number for number in STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, stop) for number in heard}
    hooks = threading.excepthook, sys.unraisablehook
    threading.excepthook, sys.unraisablehook = _on_broken_thread, _on_unraisable
    _stopped.clear()
    try:
        yield
    finally:
        threading.excepthook, sys.unraisablehook = hooks
        for number, handler in previous.items():
            signal.signal(number, handler)


def stop(number: int, _frame: FrameType | None) -> None:
    """Handle a signal that ends the program: the first one ends it cleanly, the second one at once. Further ones are
    ignored, and so is a second SIGHUP: if a terminal is closed, the shell sends one and the kernel another.
    """
    if _broken_thread:
        raise _broken_thread.pop()
    if not _stopped or (len(_stopped) == 1 and number != signal.SIGHUP):
        _stopped.append(Stopped(number, again=bool(_stopped)))
        raise _stopped[-1]


def _on_broken_thread(broken: threading.ExceptHookArgs) -> None:
    """Half of the work has stopped, so that the results of the other half may not be used."""
    error = broken.exc_value or broken.exc_type()
    _broken_thread.append(known(error, _under_way))
    _thread.interrupt_main(signal.SIGTERM)


def _on_unraisable(ignored: sys.UnraisableHookArgs) -> None:
    """Errors that Python itself ignores, such as in a destructor."""
    if ignored.exc_value:
        keep_traceback(ignored.exc_value, _under_way)


def _left_by(error: BaseException) -> tuple[UnderWay, ...]:
    return _left[1] if _left and _left[0] is error else ()


def _end(arguments: Sequence[str], error: BaseException, sentence: str, code: int) -> int:
    """Prints everything about an early end: for people on stderr, for programs on stdout."""
    under_way = _left_by(error)
    told = [
        sentence,
        *(
            f"What was recorded is in {short_path(work.path)}: {work.instead() or work.next_step}"
            for work in reversed(under_way)
        ),
    ]
    with suppress(OSError):
        text = fit_to_terminal(local("streamgauge: " + "\n  ".join(told)), sys.stderr)
        print(text, file=sys.stderr, flush=True)
    if wants_json(arguments):
        facts: dict[str, Any] = {"command": command_of(arguments) or None, "verdict": None, "exit": code}
        facts |= {"error": sentence, "left": [str(work.path) for work in reversed(under_way)]}
        with suppress(OSError):
            print(json.dumps(facts), flush=True)
    return code


# ---------------------------------------------------------------- The arguments, without parsing them


def command_of(arguments: Sequence[str]) -> str:
    return next((argument for argument in arguments if not argument.startswith("-")), "")


def own_words(arguments: Sequence[str]) -> list[str]:
    """Return the words before a `--`: the words behind it are never flags."""
    words = list(arguments)
    return words[: words.index("--")] if "--" in words else words


def wants_json(arguments: Sequence[str]) -> bool:
    return JSON in own_words(arguments)


def flags_last(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `--json` and `--quiet` after all other words, where the command finds them."""
    words, anywhere = own_words(arguments), (JSON, QUIET)
    rest = list(arguments)[len(words) :]
    given = [flag for flag in anywhere if flag in words]
    return [word for word in words if word not in anywhere] + given + rest
