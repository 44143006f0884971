"""Parses faults: `kill@c3:batch=3`, `redis-pause(for=3s)@t>=10s`, `none`, and plans of several of them.

    FAULT = NAME[(OPTION=VALUE, ...)][@WHEN]      STEPS = FAULT; FAULT; ...
    PLAN  = STEPS | any(STEPS) | repeat(N; STEPS) | flip-flop(N; STEPS) | stagger(TIME; STEPS)

Without a WHEN a fault takes its default moment. Combinators may be nested. The names are those of the catalogue; see
harness/faults/registry.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.faults import when as whens
from harness.faults.base import Kind
from harness.model import FaultSpec, UsageError, When
from harness.util.durations import TIME, NotUnderstoodError, seconds
from harness.util.suggest import nearest, short

EXAMPLES = "kill@c3:batch=3, kill@offset=50%, redis-pause(for=3s)@t>=10s, kill@batch>=3; kill@batch>=+2, none"
NONE = FaultSpec("none")
COUNTED = ("repeat", "flip-flop")
MOST_STRIKES = 1000
COMBINATORS = ("any", *COUNTED, "stagger")


def parse(text: str, kinds: Mapping[str, Kind]) -> FaultSpec:
    """Parse a fault, a plan, or `none`."""
    written = text.strip()
    if written == NONE.text:
        return NONE
    try:
        return _plan(written, kinds)
    except NotUnderstoodError as why:
        raise UsageError(f"The fault {short(text)} can't be parsed: {why}. Examples: {EXAMPLES}.") from None


def _plan(text: str, kinds: Mapping[str, Kind]) -> FaultSpec:
    parts = _split(text, ";")
    if len(parts) > 1:
        return _not_too_many(FaultSpec(text, "sequence", steps=tuple(_plan(part, kinds) for part in parts)))
    name, bracket, rest = text.partition("(")
    if name in COMBINATORS and bracket:
        return _combined(text, name, _inside(rest), kinds)
    return _fault(text, kinds)


def _combined(text: str, name: str, inside: str, kinds: Mapping[str, Kind]) -> FaultSpec:
    parts = _split(inside, ";")
    options: dict[str, str] = {}
    if name in COUNTED:
        if not whens.is_count(parts[0]):
            raise NotUnderstoodError(
                f"{name} needs a number of repetitions first, such as {name}(3; kill@batch>=+2), not {parts[0]!r}"
            )
        options["times"] = parts.pop(0)
    elif name == "stagger":
        seconds(parts[0], "stagger")
        options["pause"] = parts.pop(0)
    if not parts:
        raise NotUnderstoodError(f"{name} has no steps")
    steps = tuple(_plan(part, kinds) for part in parts)
    if name == "stagger":  # the text seeds the pauses: equal plans have equal pauses, whatever their spacing
        text = f"{name}({'; '.join([options['pause'], *(step.text for step in steps)])})"
    return _not_too_many(FaultSpec(text, name, options=options, steps=steps))


def _not_too_many(plan: FaultSpec) -> FaultSpec:
    if (strikes := _strikes(plan)) > MOST_STRIKES:
        raise NotUnderstoodError(f"it strikes {strikes:,} times, but at most {MOST_STRIKES:,} are allowed")
    return plan


def _strikes(fault: FaultSpec) -> int:
    if not fault.steps:
        return 1
    return int(fault.options.get("times", 1)) * sum(_strikes(step) for step in fault.steps)


def _fault(text: str, kinds: Mapping[str, Kind]) -> FaultSpec:
    inside, closed, behind = text.rpartition(")")
    behind, at, moment = behind.partition("@")  # the text in brackets may hold an @ too
    head = f"{inside}{closed}{behind}"
    name, bracket, rest = head.partition("(")
    if name not in kinds:
        if name.strip() == NONE.text:
            raise NotUnderstoodError(
                "`none` can't be a step of a plan or have a moment: leave it out, or give it alone"
            )
        near = nearest(name, (*kinds, *COMBINATORS, NONE.text))
        raise NotUnderstoodError(f"there is no fault {short(name)}{near}; `streamgauge chaos --list` lists all")
    options = _options(name, _inside(rest), kinds[name]) if bracket else {}
    if at and not moment:
        raise NotUnderstoodError(f"the moment is missing: {head}@WHEN")
    if not at:
        moment = kinds[name].usual
        text = f"{text}@{moment}"
    when = whens.parse(moment)
    _check_moment(name, when, kinds[name])
    return FaultSpec(text, name, when, {**kinds[name].options, **options})


def _check_moment(name: str, when: When, kind: Kind) -> None:
    if when.kind not in kind.moments:
        raise NotUnderstoodError(
            f"{name} can't wait for {whens.words(when)}; it can wait for {', '.join(kind.moments)}"
        )


def _options(name: str, inside: str, kind: Kind) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in _split(inside, ","):
        key, equals, value = (word.strip() for word in part.partition("="))
        if key not in kind.options or not equals or not value:
            known = ", ".join(f"{key}={usual}" for key, usual in kind.options.items()) or "none"
            raise NotUnderstoodError(
                f"{name} has no option {part!r}; its options are: {known}{nearest(key, kind.options)}"
            )
        if key in options:
            raise NotUnderstoodError(f"{name} sets {key} twice: {options[key]} and {value}")
        _check_option(key, value, kind.options[key])
        options[key] = value
    return options


def _check_option(key: str, value: str, usual: str) -> None:
    """Check a value against the default, which defines the format: a time, a count, or a word."""
    if TIME.fullmatch(usual):
        seconds(value, key)
    elif usual.isdecimal() and not whens.is_count(value):
        raise NotUnderstoodError(f"{key} = {value!r} is not a whole number from 1 to {whens.MOST:,}")


def _inside(rest: str) -> str:
    """Return the text before the bracket that closes at the very end."""
    if not rest.endswith(")"):
        raise NotUnderstoodError("a bracket is not closed, or text follows it")
    return rest[:-1].strip()


def _split(text: str, separator: str) -> list[str]:
    """Split at separators outside of all brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            raise NotUnderstoodError("a closing bracket has no opening one")
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise NotUnderstoodError("a bracket is not closed")
    return [part.strip() for part in parts]
