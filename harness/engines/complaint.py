"""The few lines of a log that say why a program stopped: its last exception, and where in its own code that arose.

Pure: lines in, lines out. It knows the stack traces of Python and of Java, also one inside of the other, as PySpark and
PyFlink print them, and how Go, Rust and Node end. Where there is no exception the last lines are left that are neither
progress bars nor boilerplate.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.model import LastWords

MOST = 5
REMEMBERED = 2000  # lines of a log in which the reason of an end is looked for

_COLOUR = re.compile("[\N{REPLACEMENT CHARACTER}\x1b]\\[[0-9;]*m")
_CHATTER = re.compile(r"(^|[\s\[])(INFO|DEBUG|TRACE)\b")
_ERROR = re.compile(r"(^|[\s\[])(ERROR|FATAL|CRITICAL|SEVERE)[\]\s:]")
_WARNING = re.compile(r"(^|[\s\[])WARN(ING)?[\]\s:]")
_UNCAUGHT = "Exception in thread "
_PANIC = re.compile(r"^(panic|fatal error|runtime error): |^thread '.*' panicked at |^Segmentation fault|^Aborted\b")
# Who has used up a heap of its own tells it at that moment; all that is told afterwards follows from it.
# Redis' client has a class of that name for a server that is full.
_USED_UP = re.compile(r"(?<!redis\.exceptions\.)\bOutOfMemoryError\b|\bMemoryError\b")
_CAUSE = re.compile(r"^Caused by: \S")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\s*$")
# A name with a package before it, or one that ends as exceptions do; what it says comes after a colon.
_EXCEPTION = re.compile(
    r"(?:^|[\s:])(?:[A-Za-z_]\w*[.$])*[A-Z]\w*(?:Error|Exception|Failure|Exit|Interrupt)(?::\s|\s*$)"
)
# Java's may have any name: then a place of its stack follows, a few lines of what it says later at the most.
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
    r"|^\[Stage \d+:"  # Spark's progress
    r"|\d+%\s*\|"  # tqdm's
    r"|\[[=#>\-. ]{5,}\]"
    r"|^\s+at \S+\(|^\s*\.\.\. \d+ (more|common frames)|^\s*File \"[^\"]+\", line \d+|^[\s^~]+$"
    r"|^(SLF4J|WARNING: |Picked up |Using Spark's default log4j|To adjust logging level|Setting (default|Spark) log)"
    r"|Unable to load native-hadoop library|^(OpenJDK|Java HotSpot)\(?T?M?\)? .*warning"
    r"|^:: |^\s+[\w.-]+ = "  # Ivy, and Kafka's dump of its settings
)


def most_telling(logs: Sequence[tuple[str, Sequence[str]]]) -> LastWords:
    """Of logs by their names the first one that holds an exception; without any, the first one that says something."""
    for told_by in (exception, last):
        for name, lines in logs:
            if words := told_by(lines):
                return LastWords(name, words)
    return LastWords(logs[0][0], ())


def reason(lines: Sequence[str]) -> tuple[str, ...]:
    """Of a program that has one log only."""
    return exception(lines) or last(lines)


def exception(lines: Sequence[str]) -> tuple[str, ...]:
    """The last exception, or error that was logged, and its place in the program's own code; nothing without one."""
    plain = [_COLOUR.sub("", line).rstrip() for line in lines]
    found = [number for number in range(len(plain)) if _complains(plain, number)]
    if not found:
        return ()
    unwarned = [number for number in found if not _is_warned(plain, number)]
    found = [number for number in found if _USED_UP.search(plain[number])] or unwarned or found
    number = found[-1]
    return tuple(line for line in (_before(plain, found), plain[number].strip(), _place(plain, number)) if line)


def _before(lines: Sequence[str], found: Sequence[int]) -> str:
    """What the last cause is the cause of: `Caused by: ClassNotFoundException: nope` alone says little."""
    if len(found) < 2 or not _CAUSE.search(lines[found[-1]]):
        return ""
    between = lines[found[-2] + 1 : found[-1]]
    return lines[found[-2]].strip() if all(map(_inside_traceback, between)) else ""


def used_up(lines: Sequence[str]) -> str:
    """The words by which a program tells that it has used up the memory that it may have; "" where it tells no such."""
    found = filter(None, map(_USED_UP.search, lines))
    return next((sign.string[sign.start() :] for sign in found), "")


def last(lines: Sequence[str]) -> tuple[str, ...]:
    """The last lines that say something, each once however often it was repeated."""
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
    """Whether it was logged as a warning: those tell what a program leaves undone, and not why it ends."""
    for line in reversed(lines[: number + 1]):
        if _WARNING.search(line):
            return True
        goes_on = _inside_traceback(line) or _CAUSE.search(line) or _EXCEPTION.search(line)
        if not goes_on or _ERROR.search(line) or line.startswith(_UNCAUGHT):
            return False
    return False


def _ends_traceback(lines: Sequence[str], number: int) -> bool:
    """Whether a traceback of Python ends in this line: an exception may have any name."""
    before = number - 1
    while before >= 0 and _inside_traceback(lines[before]):
        before -= 1
    return 0 <= before < number - 1 and bool(_TRACEBACK.search(lines[before]))


def _inside_traceback(line: str) -> bool:
    return line[:1].isspace() or bool(_CARETS.match(line))


def _place(lines: Sequence[str], number: int) -> str:
    """Python names the place before the exception, the innermost last; Java after it, the innermost first; and after
    the place of a panic Rust says what it was."""
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
