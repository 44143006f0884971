"""Finds the few log lines that explain why a program stopped: its last exception, and its place in the program's own
code. Pure: lines in, lines out.

It parses stack traces of Python and of Java, also nested, as PySpark and PyFlink print them, and the final messages of
Go, Rust and Node. Without an exception it returns the last lines that are neither progress bars nor boilerplate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.model import LastWords

MOST = 5
REMEMBERED = 2000  # log lines that are searched for the reason

_COLOUR = re.compile("[\N{REPLACEMENT CHARACTER}\x1b]\\[[0-9;]*m")
_CHATTER = re.compile(r"(^|[\s\[])(INFO|DEBUG|TRACE)\b")
_ERROR = re.compile(r"(^|[\s\[])(ERROR|FATAL|CRITICAL|SEVERE)[\]\s:]")
_WARNING = re.compile(r"(^|[\s\[])WARN(ING)?[\]\s:]")
_UNCAUGHT = "Exception in thread "
_PANIC = re.compile(r"^(panic|fatal error|runtime error): |^thread '.*' panicked at |^Segmentation fault|^Aborted\b")
# A program whose heap is exhausted reports it first; all later errors follow from it.
# Redis' client has a class of that name for a full server.
_USED_UP = re.compile(r"(?<!redis\.exceptions\.)\bOutOfMemoryError\b|\bMemoryError\b")
_CAUSE = re.compile(r"^Caused by: \S")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\s*$")
# A name with a package before it, or with the ending of an exception; its message follows a colon.
_EXCEPTION = re.compile(
    r"(?:^|[\s:])(?:[A-Za-z_]\w*[.$])*[A-Z]\w*(?:Error|Exception|Failure|Exit|Interrupt)(?::\s|\s*$)"
)
# Java's exceptions may have any name: then a stack frame follows, after a few lines of message at most.
_THROWN = re.compile(r"^(?:[a-z]\w*\.){2,}[A-Z]\w*: ")
_SAYS_AT_MOST = 12
_PYTHON_PLACE = re.compile(r'^\s*File "(?P<file>[^"]+)", line \d+')
_JAVA_PLACE = re.compile(r"^\s+at (?P<name>[\w.$/@<>]+)\(")
_OTHERS_PYTHON = re.compile(r"site-packages|dist-packages|/lib/python\d|^<frozen ")
_OTHERS_JAVA = re.compile(
    r"^(\w+(\.\w+)*(@[\w.]+)?/)?(java|javax|jdk|sun|scala|py4j|org\.apache|akka|io\.netty|redis\.clients|org\.rocksdb)\."
)
_CARETS = re.compile(r"^[\s^~]+$")
_NOISE = re.compile(
    r"^\s*$"
    r"|^\[Stage \d+:"  # Spark's progress bar
    r"|\d+%\s*\|"  # tqdm's progress bar
    r"|\[[=#>\-. ]{5,}\]"
    r"|^\s+at \S+\(|^\s*\.\.\. \d+ (more|common frames)|^\s*File \"[^\"]+\", line \d+|^[\s^~]+$"
    r"|^(SLF4J|WARNING: |Picked up |Using Spark's default log4j|To adjust logging level|Setting (default|Spark) log)"
    r"|Unable to load native-hadoop library|^(OpenJDK|Java HotSpot)\(?T?M?\)? .*warning"
    r"|^:: |^\s+[\w.-]+ = "  # Ivy, and Kafka's dump of its settings
)


def most_telling(logs: Sequence[tuple[str, Sequence[str]]]) -> LastWords:
    """Return the first log with an exception; without any, the last lines of the first log that has some."""
    for told_by in (exception, last):
        for name, lines in logs:
            if words := told_by(lines):
                return LastWords(name, words)
    return LastWords(logs[0][0], ())


def reason(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the lines for a program that has one log only."""
    return exception(lines) or last(lines)


def exception(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the last exception or logged error, and its place in the program's own code; () if there is none."""
    plain = [_COLOUR.sub("", line).rstrip() for line in lines]
    found = [number for number in range(len(plain)) if _complains(plain, number)]
    if not found:
        return ()
    unwarned = [number for number in found if not _is_warned(plain, number)]
    found = [number for number in found if _USED_UP.search(plain[number])] or unwarned or found
    number = found[-1]
    return tuple(line for line in (_before(plain, found), plain[number].strip(), _place(plain, number)) if line)


def _before(lines: Sequence[str], found: Sequence[int]) -> str:
    """Return the error that the last cause explains: `Caused by: ClassNotFoundException: nope` alone says little."""
    if len(found) < 2 or not _CAUSE.search(lines[found[-1]]):
        return ""
    between = lines[found[-2] + 1 : found[-1]]
    return lines[found[-2]].strip() if all(map(_inside_traceback, between)) else ""


def used_up(lines: Sequence[str]) -> str:
    """Return the message of an exhausted heap, or ""."""
    found = filter(None, map(_USED_UP.search, lines))
    return next((sign.string[sign.start() :] for sign in found), "")


def last(lines: Sequence[str]) -> tuple[str, ...]:
    """Return the last informative lines, each once even if it was repeated."""
    told = [line for line in (_COLOUR.sub("", each).rstrip() for each in lines) if not _NOISE.search(line)]
    loud = [line for line in told if not _CHATTER.search(line)] or told
    newest = {re.sub(r"\d+", "#", line): number for number, line in enumerate(loud)}
    return tuple(loud[number] for number in sorted(newest.values())[-MOST:])


def _complains(lines: Sequence[str], number: int) -> bool:
    line = lines[number]
    if line[:1].isspace() or _CHATTER.search(line) or _TRACEBACK.search(line):
        return False
    known = (_CAUSE, _EXCEPTION, _ERROR, _PANIC)
    return any(sign.search(line) for sign in known) or _is_thrown(lines, number) or _ends_traceback(lines, number)


def _is_thrown(lines: Sequence[str], number: int) -> bool:
    if not _THROWN.search(lines[number]):
        return False
    said = lines[number + 1 : number + 1 + _SAYS_AT_MOST]
    return any(_JAVA_PLACE.search(line) for line in said)


def _is_warned(lines: Sequence[str], number: int) -> bool:
    """Return whether it was logged as a warning: a warning does not explain why a program ends."""
    for line in reversed(lines[: number + 1]):
        if _WARNING.search(line):
            return True
        goes_on = _inside_traceback(line) or _CAUSE.search(line) or _EXCEPTION.search(line)
        if not goes_on or _ERROR.search(line) or line.startswith(_UNCAUGHT):
            return False
    return False


def _ends_traceback(lines: Sequence[str], number: int) -> bool:
    """Return whether a Python traceback ends in this line: an exception may have any name."""
    before = number - 1
    while before >= 0 and _inside_traceback(lines[before]):
        before -= 1
    return 0 <= before < number - 1 and bool(_TRACEBACK.search(lines[before]))


def _inside_traceback(line: str) -> bool:
    return line[:1].isspace() or bool(_CARETS.match(line))


def _place(lines: Sequence[str], number: int) -> str:
    """Python prints the place before the exception, the innermost last; Java after it, the innermost first; Rust prints
    its message after the place of a panic."""
    if lines[number].startswith("thread '") and number + 1 < len(lines):
        return lines[number + 1].strip()
    return _place_in_python(lines, number) or _place_in_java(lines, number)


def _place_in_python(lines: Sequence[str], number: int) -> str:
    places = []
    for line in reversed(lines[:number]):
        if not _inside_traceback(line):
            break
        if found := _PYTHON_PLACE.match(line):
            places.append((line.strip(), bool(_OTHERS_PYTHON.search(found["file"]))))
    return next((line for line, theirs in places if not theirs), "")


def _place_in_java(lines: Sequence[str], number: int) -> str:
    for line in lines[number + 1 :]:
        found = _JAVA_PLACE.match(line)
        if not found:
            return ""
        if not _OTHERS_JAVA.search(found["name"]):
            return line.strip()
    return ""
