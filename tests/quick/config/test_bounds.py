"""Every key of a scenario, dial and flag with values of other types, at its bounds and beyond. The bound that a refusal
names is the true one."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from generators.disorder import PRESETS
from harness.config import plan
from harness.config.plan import PROFILE_NUMBERS
from harness.config.scenario_keys import KEYS
from harness.engines.manifest import load
from harness.faults import registry
from harness.faults.base import Kind
from harness.model import Disorder, RunSpec, UsageError

# What TOML or a command line may hold in the place of anything else.
OTHERS: tuple[Any, ...] = (
    *(True, False, -1, 0, 7, 10**30, 10**4400, -0.5, 1e300, float("nan"), float("inf"), float("-inf")),
    *("", " ", "soon", "1e999", "nan", "-1s", "5", "1,000", "٣", "0x10", "9" * 5000, "a=b", "\x00", "../x"),
    *([], ["a"], [["a"]], {}, {"kind": 3}, {"a": {"b": 1}}, None),
    *(datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC), datetime.time(1)),
)
WHOLE = re.compile(r"whole number from (-?[\d,]+) to ([\d,]+)")
ABOVE = re.compile(r"above 0 and up to ([\d,]+)")
LENGTH = re.compile(r"from (\d+)ms to (\d+)h")
# Of a run that its other keys allow.
SMALL = {"engine": "reference", "rate": 100, "duration": "10s", "campaigns": 10, "probes": 0, "disorder": "none"}


def tried(read: Callable[..., Any], *given: Any) -> Any:
    """What is read, or the sentence that refuses it."""
    try:
        return read(*given)
    except UsageError as refused:
        return Refusal(refused)


def resolved(scenario: dict[str, Any], flags: dict[str, Any]) -> RunSpec:
    return plan.resolve("bounds", scenario, {**SMALL, **flags}, load)[0]


def numbers(pattern: re.Pattern[str], said: str) -> list[int]:
    found = pattern.search(said)
    assert found, said
    return [number(each) for each in found.groups()]


class Refusal(str):
    """Of a value."""


def refusal(key: str, value: object) -> str:
    with pytest.raises(UsageError) as wrong:
        KEYS[key].read(value)
    return str(wrong.value).partition(" is not right: ")[2]


def number(text: str) -> int:
    return int(text.replace(",", ""))


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_any_type_is_refused_or_read(key):
    for value in OTHERS:
        found = tried(resolved, {}, {key: value})
        if isinstance(found, Refusal):
            assert found.isprintable(), value
            assert len(found) < 2000, value
        else:
            assert isinstance(found, RunSpec)


NUMBERS = [key for key in KEYS if KEYS[key].read.shape in ("N", "EVENTS/S", "MS", "FACTOR") and key != "cores"]


def test_cores_are_whole_or_parts_of_one_within_the_bounds_that_the_refusal_names():
    said = refusal("cores", "soon")
    low, high = numbers(re.compile(r"from (\d) to ([\d,]+)"), said)
    assert [KEYS["cores"].read(str(each)) for each in (low, 0.5, 1.5, high)] == [low, 0.5, 1.5, high]
    assert {refusal("cores", each) for each in (low - 1, high + 1, str(high + 1), "-0.5", f"{high}.5", "nan")} == {said}


@pytest.mark.parametrize("key", NUMBERS)
def test_the_bounds_of_a_number_are_those_that_its_refusal_names(key):
    said = refusal(key, "soon")
    if whole := WHOLE.search(said):
        low, high = map(number, whole.groups())
        assert [KEYS[key].read(str(each)) for each in (low, high)] == [low, high]
        assert [KEYS[key].read(each) for each in (low, high)] == [low, high]
        beyond: tuple[Any, ...] = (low - 1, high + 1, str(high + 1), low + 0.5)
    else:
        (high,) = numbers(ABOVE, said)
        assert KEYS[key].read(high) == KEYS[key].read(str(high)) == high
        beyond = (0, -1, high + 1, f"{high}.001")
    assert {refusal(key, each) for each in beyond} == {said}


@pytest.mark.parametrize("key", [key for key in KEYS if KEYS[key].read.shape == "TIME"])
def test_the_bounds_of_a_time_are_those_that_its_refusal_names(key):
    said = refusal(key, "soon")
    low_ms, high_h = numbers(LENGTH, said)
    assert (low_ms, high_h) == (1, 24)

    taken = KEYS[key].read(f"{high_h}h"), KEYS[key].read("1ms")
    assert taken in ((86_400_000, 1), ("86400 seconds", "1 milliseconds"))
    assert {refusal(key, each) for each in ("24.001h", "86400001ms", "0.5ms", "-1s", 5)} == {said}
    if said.startswith("0, or"):
        assert KEYS[key].read(0) == KEYS[key].read("0") == KEYS[key].read("0s")
    else:
        assert refusal(key, "0s") == said


@pytest.mark.parametrize("seed", [2**53, 2**53 + 1, 2**63 - 1])
def test_a_large_seed_is_exact(seed):
    for written in (seed, str(seed)):
        assert KEYS["seed"].read(written) == seed

    assert "from 0 to 9,223,372,036,854,775,807" in refusal("seed", 2**63)
    assert refusal("seed", float(2**53 + 2))  # a float may have been another number before


def test_the_seeds_of_all_rounds_are_seeds():
    flags = {**SMALL, "seed": 2**63 - 2, "repeat": 2}
    assert plan.resolve("bounds", {}, flags, load)[0].tape.seed == 2**63 - 2

    with pytest.raises(UsageError, match="seed = 9223372036854775806 is not right: at most 9,223,372,036,854,775,805"):
        plan.resolve("bounds", {}, {**flags, "repeat": 3}, load)


@pytest.mark.parametrize("dial", [each.name for each in fields(Disorder)])
def test_the_bounds_of_a_dial_are_those_that_its_refusal_names(dial):
    for value in OTHERS:
        found = tried(plan.disorder_of, {dial: value})
        assert not isinstance(found, Refusal) or found.isprintable()
    with pytest.raises(UsageError) as refused:
        plan.disorder_of({dial: "soon"})
    if whole := WHOLE.search(str(refused.value)):
        low, high = map(number, whole.groups())
    else:
        assert "a share from 0 to 1" in str(refused.value)
        low, high = 0, 1
    others = {"duplicate_gap": 1, "silent_ms": 1, "future_ms": 1, "delay_max_ms": 1}
    wide = {"skew_min_ms": -3_600_000, "skew_max_ms": 3_600_000, "late_max_ms": 3_600_000}
    for bound in (low, high):
        assert getattr(plan.disorder_of({**others, **wide, dial: bound})[1], dial) == bound
    for beyond in (low - 1, high + 1, high + 0.5):
        with pytest.raises(UsageError, match=re.escape(str(refused.value).partition("is not right")[2])):
            plan.disorder_of({**others, dial: beyond})


@pytest.mark.parametrize("key", PROFILE_NUMBERS)
def test_the_numbers_of_a_profile_are_read_exactly(key):
    low, high = PROFILE_NUMBERS[key]
    kind = {"count": "burst", "half_period_ms": "square", "burst_ms": "burst", "pause_ms": "pause-and-drain"} | {
        "factor": "burst",
        "start_per_s": "ramp",
        "low_per_s": "square",
    }
    for value in (*OTHERS, low - 1, high + 1):
        found = tried(resolved, {"profile": {"kind": kind[key], key: value}}, {})
        assert found.isprintable() if isinstance(found, Refusal) else low <= float(value) <= high


@pytest.mark.parametrize("kind", registry.FAULTS.values(), ids=lambda kind: kind.name)
def test_an_option_of_a_fault_takes_its_own_kind_of_value(kind: Kind):
    """A time, a whole number, or a word: never another one of these."""
    for option, usual in kind.options.items():
        if usual.isdecimal():
            wrong: tuple[str, ...] = ("soon", "0", "-1", "1.5", "1000000000", "1s")
        elif re.fullmatch(r"[\d.]+(ms|s|m)", usual):
            wrong = ("soon", "5", "-1s", "5h", "nan")
        else:
            continue
        for value in wrong:
            with pytest.raises(UsageError, match=f"{option} = '{re.escape(value)}'"):
                registry.parse(f"{kind.name}({option}={value})")
        with pytest.raises(UsageError, match="twice"):
            registry.parse(f"{kind.name}({option}={usual},{option}={usual})")


def test_presets_are_within_the_bounds_of_their_dials():
    for name, dials in PRESETS.items():
        table = {each.name: getattr(dials, each.name) for each in fields(Disorder)}
        assert plan.disorder_of(table)[1] == dials, name


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"fault": "redis-pause(for=1s,for=4s)"}, "redis-pause sets for twice: 1s and 4s"),
        ({"fault": "none; kill@now"}, "`none` can't be a step of a plan or have a moment"),
        ({"fault": "none@now"}, "`none` can't be a step of a plan or have a moment"),
        ({"conf": ["a=1", "a=2"]}, "k=v, each key once, is expected"),
        ({"disorder": "mobile,late_share=0.1,late_share=0.2"}, "each dial once is expected"),
    ],
)
def test_what_is_said_twice_or_is_no_step_is_refused(flags, said):
    with pytest.raises(UsageError) as refused:
        plan.resolve("bounds", {}, {**SMALL, **flags}, load)

    assert said in str(refused.value)
    assert "nearest: 'none'" not in str(refused.value)
