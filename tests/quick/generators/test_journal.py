"""Laws of a load that is decided while it goes on: what is appended moves nothing that was there before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from generators import journal
from generators.fleet import Fleet, LoadConfig
from generators.journal import Journal
from generators.tape import Tape
from harness.model import Segment
from tests.quick.tapes import specs


@st.composite
def growing(draw):
    """A spec whose profile is a chain of whole stretches, and the number of those that were there first."""
    spec = draw(specs())
    length_ms = spec.slice_ms * spec.probe_every_ms
    rates = draw(st.lists(st.integers(0, 40), min_size=2, max_size=5))
    stretches = tuple(Segment(length_ms, float(rate), float(rate)) for rate in (*rates[:-1], 7))
    whole = tuple(replace(each, duration_ms=-(-length_ms // 1000) * 1000) for each in stretches)
    spec = replace(spec, profile=whole, slice_ms=20, probe_every_ms=1000)
    return spec, draw(st.integers(1, len(whole) - 1))


@given(growing())
def test_what_is_appended_moves_no_earlier_event(drawn):
    spec, first = drawn
    before, after = Tape(replace(spec, profile=spec.profile[:first])), Tape(spec)
    for server in range(spec.senders):
        slots = np.arange(before.server_total(server))
        early, late = (tape.events(server, slots) for tape in (before, after))

        assert all((a == b).all() for a, b in zip(early.columns(), late.columns(), strict=True))


@given(growing())
def test_slices_before_the_end_of_the_profile_are_settled(drawn):
    spec, first = drawn
    before, after = Tape(replace(spec, profile=spec.profile[:first])), Tape(spec)
    until = before.slices_settled
    for server in range(spec.senders):
        assert list(before.slices(server, 0, until)) == list(after.slices(server, 0, until))
        assert [*after.slices(server, 0, until), *after.slices(server, until)] == list(after.slices(server))


@given(growing(), st.data())
def test_a_fleet_that_learns_its_load_bit_by_bit_sends_what_one_sends_that_knows_it(drawn, data):
    spec, first = drawn
    server = data.draw(st.integers(0, spec.senders - 1))
    known = [each for each in _planned(_Told(spec, ()), server) if each]
    told = _Told(replace(spec, profile=spec.profile[:first]), spec.profile[first:])
    learned = [each for each in _planned(told, server) if each]

    assert learned == known


class _Told:
    """A journal that gains a stretch each time that it is looked at."""

    def __init__(self, spec, stretches):
        self.spec, self.rest, self.complete = spec, list(stretches), not stretches
        self.profile: tuple[Segment, ...] = ()

    def poll(self):
        if self.rest:
            self.profile = (*self.profile, self.rest.pop(0))
        else:
            self.complete = True
        return True


class _Planning(Fleet):
    """Its slices are planned and not written."""

    def __init__(self, told):
        self.config = LoadConfig(told.spec, "", "", "", {}, "")
        self._journal = told
        self._settled()

    def _written(self, server, group):
        yield from ((server, *each) for each in group)


def _planned(told, server):
    """(server, number, lo, hi) of each slice, or None where nothing is known yet."""
    return list(_Planning(told).slices(server))


def test_a_line_that_is_half_written_is_read_when_it_is_whole(tmp_path):
    journal.append(tmp_path, [Segment(1000, 5.0, 5.0)])
    reader = Journal(tmp_path)
    with (tmp_path / journal.JOURNAL).open("ab") as file:
        file.write(b'{"segments":[{"duration_ms":2000,')

    assert (reader.poll(), reader.profile, reader.poll()) == (True, (Segment(1000, 5.0, 5.0),), False)
    with (tmp_path / journal.JOURNAL).open("ab") as file:
        file.write(b'"start_per_s":1,"end_per_s":1}]}\n')

    assert (reader.poll(), reader.profile[1:], reader.complete) == (True, (Segment(2000, 1.0, 1.0),), False)
    journal.close(tmp_path)
    assert (reader.poll(), reader.complete, reader.poll()) == (True, True, False)
