"""Patterns of result keys in a manifest: text with names in braces.

{campaign} is the whole key in our own schema, such as `trips:Berlin`. Instead of it a pattern may have each key of the
question by its name, {city}, and {value}, the name of the value. A window is {opens}, its start, or {end}, or {window},
which follows `window_key`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.services.claim import literal
from harness.util.suggest import nearest

CAMPAIGN, VALUE, WINDOW, OPENS, END, EVENT_ID = "campaign", "value", "window", "opens", "end", "event_id"
NUMBERS = (WINDOW, OPENS, END, EVENT_ID)
WINDOW_NAMES = {OPENS: (WINDOW, OPENS, END), EVENT_ID: (WINDOW, EVENT_ID)}  # by the meaning of a question's number
WINDOW_KEYS = {OPENS: "start", END: "end"}
EXAMPLE = "'counts:{campaign}' with the field '{window}' would be one."
BETWEEN = "\0"  # key and field
Parts = Mapping[str, str]  # the parts of a key by name
# A key may be a UUID, whose dashes and digits belong to it; other keys may have any text.
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME, _NUMBER = re.compile(r"\{(\w*)\}"), re.compile(r"-?[0-9]+")


def names_of(text: str) -> list[str]:
    return _NAME.findall(text)


def number_of(text: str) -> str:
    """Return the name of the window in a pattern, or ""."""
    return next((name for name in names_of(text) if name in NUMBERS), "")


def mistake(key: str, field: str) -> str:
    """Return what is wrong with a pattern for any question, or ""."""
    used = names_of(key + field)
    for name in used:
        if used.count(name) > 1:
            return f"{{{name}}} is used {used.count(name)} times"
    numbers = [name for name in used if name in NUMBERS]
    if len(numbers) > 1:
        return f"{_braced(numbers)} are the same number: keep only one of them"
    if len(numbers) == len(used):
        return f"nothing in it distinguishes keys: {{{CAMPAIGN}}}, or each key of the question by its name"
    return ""


def numbers_of(number: str, *, has_length: bool) -> list[str]:
    """Return the names that fit this number. If windows vary in length, an end does not show the start."""
    return [name for name in WINDOW_NAMES.get(number, ()) if has_length or name != END]


def misfit(key: str, field: str, keys: Sequence[str], parts: Sequence[Parts], number: str) -> str:
    """Return why a question can't have its results under such keys, or "". `number` is the name of the number among the
    question's keys: OPENS, EVENT_ID, or "" for none."""
    used = names_of(key + field)
    texts = [name for name in (parts[0] if parts else {}) if name != VALUE]
    numbers = WINDOW_NAMES.get(number, ())
    allowed = (CAMPAIGN, *texts, *([VALUE] if parts else []), *numbers)
    for name in used:
        if name not in allowed:
            return f"{{{name}}} is unknown: the names are {_braced(allowed)}{nearest(name, allowed)}"
    if numbers and not any(name in numbers for name in used):
        return f"{' or '.join(f'{{{name}}}' for name in numbers)} is missing"
    if doubled := [name for name in used if CAMPAIGN in used and name in (*texts, VALUE)]:
        return f"{{{CAMPAIGN}}} is all of the key, such as {keys[0]!r}: leave it or {_braced(doubled)} out"
    if CAMPAIGN not in used:
        values = {each.get(VALUE) for each in parts}
        needed = [*texts, *([VALUE] if len(values) > 1 else [])]
        if missing := [name for name in needed if name not in used]:
            return f"{_braced(missing)} is missing, so cells of different keys would be the same"
    return Layout(f"{key}{BETWEEN}{field}", keys, parts).ambiguous


def _braced(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


class Layout:
    """A pattern, and each key of a question in it. Texts are matched against keys, which may contain separators."""

    def __init__(self, text: str, keys: Sequence[str], parts: Sequence[Parts]) -> None:
        self.number = number_of(text)
        self._names = [name for name in names_of(text) if name not in NUMBERS]
        before, _, after = text.partition(f"{{{self.number}}}") if self.number else (text, "", "")
        self._around: dict[tuple[str, str], str] = {}  # text before and after the window -> the key
        self._named: dict[tuple[str, ...], str] = {}
        self._shared: set[str] = set()
        for at, key in enumerate(keys):
            texts = {**(parts[at] if at < len(parts) else {}), CAMPAIGN: key}
            self._add(key, (_filled(before, texts), _filled(after, texts)))
            self._named.setdefault(tuple(texts.get(name, "") for name in self._names), key)
        self._loose = re.compile(_expression(text), re.DOTALL)
        self._found: dict[str, tuple[str, str] | None] = {}

    def _add(self, key: str, around: tuple[str, str]) -> None:
        if self._around.setdefault(around, key) != key:
            self._shared.add(self._around[around])

    @property
    def ambiguous(self) -> str:
        """Return two keys that can't be distinguished, or ""."""
        if self._shared:
            return f"two keys would be the same, {min(self._shared)!r} and another one: put a text between the names"
        seen: dict[tuple[str, str], tuple[tuple[int, int], str]] = {}
        for (before, after), key in self._around.items() if self.number else ():
            lengths = len(before), len(after)
            other = seen.setdefault((before.rstrip("-0123456789"), after.lstrip("0123456789")), (lengths, key))
            if other[0] != lengths:
                return f"the digits of {key!r} and {other[1]!r} could be those of the window: put a text between them"
        return ""

    def patterns(self) -> Iterator[str]:
        """Yield shell patterns that match all possible keys."""
        window = "[-0-9]*" if self.number else ""
        for before, after in self._around:
            yield f"{literal(before)}{window}{literal(after)}"

    def of(self, text: str) -> tuple[str, str] | None:
        """Return key and window of a text, or None. Results are cached: each poll sees the same texts."""
        if text not in self._found:
            self._found[text] = next(self._cells(text), None) or self._nearly(text)
        return self._found[text]

    def fits(self, text: str) -> bool:
        """Return whether it matches the pattern, with known keys or not."""
        return self._loose.fullmatch(text) is not None

    def alone(self, text: str) -> str:
        """Return the only key with this text; "" if there are several or none."""
        found = self.of(text)
        return found[0] if found and found[0] not in self._shared else ""

    def _cells(self, text: str) -> Iterator[tuple[str, str]]:
        if not self.number:
            if key := self._around.get((text, "")):
                yield key, "0"
            return
        for number in _NUMBER.finditer(text):
            for start in (number.start(), number.start() + text[number.start()].count("-")):
                if key := self._around.get((text[:start], text[number.end() :])):
                    yield key, text[start : number.end()]

    def _nearly(self, text: str) -> tuple[str, str] | None:
        """Accept a text that is no number as a window only beside a known key."""
        match = self._loose.fullmatch(text)
        if not self.number or not match or not self._names:
            return None
        key = self._named.get(tuple(match[f"{name}_"] for name in self._names))
        return (key, match[f"{self.number}_"]) if key else None


class Named:
    """The parts of a question's keys, to be found again in a job's output."""

    def __init__(self, keys: Mapping[str, Parts]) -> None:
        self._names: dict[str, list[str]] = {}
        for key, parts in keys.items():
            for name, text in ((CAMPAIGN, key), *parts.items()):
                names = self._names.setdefault(text, [])
                if name not in names:
                    names.append(name)
        self._longest = max(map(len, self._names), default=0)

    def within(self, text: str, used: set[str]) -> str:
        """Replace each part in the text by its name, longer parts first. A name is used once in a pattern: those in
        `used` are taken, and new ones are added to it."""
        edges = [
            at for at in range(len(text) + 1) if not text[max(0, at - 1) : at + 1].isalnum() or at in (0, len(text))
        ]
        made, done = "", 0
        for start in edges:
            ends = [end for end in edges if start < end <= start + self._longest] if start >= done else []
            for end in reversed(ends):
                if name := next((each for each in self._names.get(text[start:end], ()) if each not in used), ""):
                    used.add(name)
                    made, done = f"{made}{text[done:start]}{{{name}}}", end
                    break
        return made + text[done:]


def _filled(text: str, texts: Parts) -> str:
    return _NAME.sub(lambda found: texts.get(found[1], found[0]), text)


def _expression(text: str) -> str:
    """Match the text between names literally."""
    parts = _NAME.split(text)
    return "".join(_group(part) if n % 2 else re.escape(part) for n, part in enumerate(parts))


def _group(name: str) -> str:
    inside = ".*" if name in NUMBERS else f"{UUID}|.+?" if name == CAMPAIGN else ".+?"
    return f"(?P<{name}_>{inside})"
