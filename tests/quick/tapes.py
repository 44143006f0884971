"""Specs of small tapes, drawn by hypothesis; shared by the tests of everything that is made from a tape."""

from __future__ import annotations

from hypothesis import strategies as st

from generators.profiles import PROFILES
from harness.model import Disorder, Segment, TapeSpec

SHARES = st.sampled_from([0.0, 0.05, 0.3, 1.0])


@st.composite
def segments(draw):
    """A few stretches, some of rate zero, some that begin or end there, at least one with events."""
    rate = st.sampled_from([0.0, 0.0, 1.0, 7.5, 100.0, 1000.0])
    chain = draw(st.lists(st.builds(Segment, st.integers(1, 700), rate, rate), max_size=4))
    place = draw(st.integers(0, len(chain)))
    return (*chain[:place], Segment(draw(st.integers(50, 500)), 200.0, 100.0), *chain[place:])


@st.composite
def disorders(draw):
    """Any combination of dials, on or off."""
    skew = sorted(draw(st.tuples(st.integers(-80, 80), st.integers(-80, 80))))
    late = sorted(draw(st.tuples(st.integers(0, 900), st.integers(0, 900))))
    return Disorder(
        delay_scale_ms=draw(st.sampled_from([0, 30, 300])),
        delay_max_ms=draw(st.integers(0, 800)),
        skew_min_ms=skew[0],
        skew_max_ms=skew[1],
        late_share=draw(SHARES),
        late_min_ms=late[0],
        late_max_ms=late[1],
        duplicate_share=draw(SHARES),
        duplicate_gap=draw(st.integers(0, 30)),
        duplicate_max_ms=draw(st.sampled_from([10, 1000])),
        silent_servers=draw(st.integers(0, 3)),
        silent_start_ms=draw(st.integers(0, 600)),
        silent_ms=draw(st.integers(0, 900)),
        clock_offset_ms=draw(st.integers(0, 100)),
        future_share=draw(SHARES),
        future_ms=draw(st.integers(0, 900)),
        poison_share=draw(SHARES),
    )


def specs(disorder: st.SearchStrategy[Disorder] | None = None) -> st.SearchStrategy[TapeSpec]:
    return st.builds(
        TapeSpec,
        seed=st.integers(-5, 2**70),
        profile=segments(),
        servers=st.integers(1, 5),
        slice_ms=st.integers(1, 60),
        partitions=st.integers(1, 5),
        campaigns=st.integers(1, 12),
        ads_per_campaign=st.integers(1, 5),
        disorder=disorder or disorders(),
        probes=st.sampled_from([0, 1, 7]),
        probe_every_ms=st.integers(1, 400),
    )


def named_profile(name: str, rate_per_s: float = 1000.0, duration_ms: int = 12_000) -> tuple[Segment, ...]:
    return PROFILES[name](rate_per_s, duration_ms)
