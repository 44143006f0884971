"""A fault without a moment takes its usual one; a moment that can come only after the load is refused beforehand."""

from __future__ import annotations

import pytest

from harness.config import plan
from harness.drivers import chaos
from harness.drivers.chaos import ChaosSelection
from harness.engines import manifest as manifests
from harness.experiments.chaos import Rows, Tier
from harness.faults import registry
from harness.faults.registry import FAULTS
from harness.model import UsageError


def planned(fault, **flags):
    given = {"engine": "fake", "duration": "15s", "fault": fault, **flags}
    return plan.resolve("calm", {}, given, manifests.load)[0].fault


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_without_a_moment_takes_its_usual_one(name):
    fault = registry.parse(name)

    assert fault == registry.parse(f"{name}@{FAULTS[name].usual}")
    assert fault.text == f"{name}@{FAULTS[name].usual}"


def test_so_do_one_with_options_and_those_of_a_plan():
    assert registry.parse("redis-pause(for=3s)").text == "redis-pause(for=3s)@t>=10s"
    assert [leaf.text for leaf in registry.parse("any(kill; zombie)").leaves] == ["kill@t>=10s", "zombie@c2:batch=3"]
    with pytest.raises(UsageError, match="the moment is missing"):
        registry.parse("kill@")


@pytest.mark.parametrize(
    "fault",
    [
        "kill@t>=15s",
        "kill@t>=1m",
        "input-burst@t>=15s",
        "redis-pause(for=1s)@t>=15000ms",
        "kill@t>=5s; kill@t>=+10s",
        "kill@t>=5s; kill@batch>=+2; kill@t>=+10s",
        "kill@offset=50%; kill@offset>=+50%",
        "repeat(3; kill@offset>=+40%)",
        "flip-flop(2; kill@t>=4s; redis-pause(for=1s)@t>=+12s)",
        "stagger(1s; kill@t>=2s; kill@t>=20s)",
        "any(kill@t>=20s; kill@t>=15s)",
        "kill@t>=3s; any(kill@t>=+12s; kill@t>=15s)",
    ],
)
def test_a_moment_after_the_load_is_refused(fault):
    with pytest.raises(UsageError, match=r"would begin after the load has ended, which lasts 15 s\. Give an earlier"):
        planned(fault)


@pytest.mark.parametrize(
    "fault",
    [
        "kill@t>=14.9s",
        "kill@t>=+60s",  # the first one begins to wait before the load, as long as the engine takes to answer
        "kill@t>=5s; kill@t>=+9s",
        "kill@batch>=900; kill@c2",
        "kill@offset=50%; kill@offset>=+40%",
        "repeat(3; kill@t>=5s)",
        "any(kill@t>=20s; kill@t>=5s)",
        "none",
    ],
)
def test_what_may_come_in_time_is_left_alone(fault):
    assert planned(fault).text == fault


def test_the_usual_moment_is_refused_too_where_the_load_is_short():
    with pytest.raises(UsageError, match=r"such as redis-pause@t>=2500ms, or a longer --duration"):
        planned("redis-pause", duration="5s")


def test_a_plan_strikes_no_more_than_a_thousand_times():
    with pytest.raises(UsageError, match="strikes 1,000,000 times, but at most 1,000 are allowed"):
        registry.parse("repeat(1000; repeat(1000; kill@batch>=+2))")
    with pytest.raises(UsageError, match="strikes 1,001 times"):
        registry.parse(f"stagger({'; '.join(['1s', *['kill@batch>=+2'] * 1001])})")
    with pytest.raises(UsageError, match="strikes 1,001 times"):
        registry.parse("; ".join(["kill@batch>=+2"] * 1001))


# ---------------------------------------------------------------- What chaos is asked for

TIER = Tier((Rows("fake", ("kill@t>=5s",)),))


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (ChaosSelection(engines=("sparkk",)), "Unknown engine 'sparkk'.*nearest: 'spark'"),
        (ChaosSelection(engines=("sparkk",), faults=("kill",)), "Unknown engine 'sparkk'.*nearest: 'spark'"),
        (ChaosSelection(sinks=("absolut",)), "sink = 'absolut' is not right: one of .*nearest: 'absolute'"),
        (ChaosSelection(sinks=("absolut",), faults=("kill",), engines=("spark",)), "nearest: 'absolute'"),
        (ChaosSelection(faults=("kil",)), "no fault 'kil'.*nearest: 'kill'"),
        (
            ChaosSelection(faults=("redis-pause@t>=15s",), engines=("fake",)),
            "after the load has ended, which lasts 15 s",
        ),
        (ChaosSelection(engines=("spark",)), "the tier has cases on fake, and none on spark"),
    ],
)
def test_chaos_refuses_what_it_does_not_know_and_names_the_nearest(asked, sentence, tmp_path):
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")):
        chaos.begin(TIER, asked, {"duration": "15s"}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_fault_that_chaos_is_given_without_a_moment_is_named_with_it():
    asked = ChaosSelection(engines=("fake",), faults=("redis-pause",))

    assert {case.fault for case in chaos._cases(TIER, asked, 1, "ad_impressions")} == {"redis-pause@t>=10s"}
