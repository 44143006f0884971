"""Drawings as far as numbers decide: percentiles that say no more than they know, cells that can't be overlooked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from generators.tape import Tape
from harness.model import Disorder, Segment, TapeSpec
from reports.figures import backfill, cells, percentiles, seam, states, style, throughput
from reports.figures.lateness import Tally
from reports.sections import latency, lateness
from tests.program import pages

ROOT = Path(__file__).resolve().parents[3]


def curve(samples, censored=0):
    return percentiles.Curve("probes", np.sort(np.array(samples, dtype=np.float64)), censored, style.BLUE)


def test_of_wrong_cells_in_one_place_one_is_drawn_and_where_there_is_room_each():
    few, many = ([cells.Mark(n, n % 7, "lost", "", "") for n in range(count)] for count in (190, 100_000))

    assert cells.thinned(few, (7, 190)) == few
    drawn = cells.thinned(many, (7, 100_000))
    assert len(drawn) <= 7 * cells.APART_MAX
    assert {mark.window for mark in drawn} == set(range(7))


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=300), st.integers(0, 50))
def test_a_curve_ends_where_ten_samples_lie_beyond_and_never_among_the_unseen(samples, censored):
    drawn = curve(samples, censored)
    shares, values = percentiles.points(drawn)

    if drawn.last_share > 0:
        beyond = round((1 - drawn.last_share) * drawn.count)
        assert beyond >= max(percentiles.SAMPLES_BEYOND, censored)
        assert shares[-1] == pytest.approx(drawn.last_share)
    assert np.all(np.diff(values) >= 0)
    assert set(values) <= set(drawn.samples_ms)


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=300), st.floats(0.001, 0.999))
def test_a_percentile_is_the_smallest_sample_that_covers_its_share(samples, share):
    value = curve(samples).at(share)

    assert np.mean(np.array(samples) <= value) >= share - 1e-9
    assert np.mean(np.array(samples) < value) < share + 1e-9


def test_unseen_events_move_every_percentile_up():
    samples = range(1000)

    assert curve(samples, 500).at(0.5) > curve(samples).at(0.5)
    assert curve(samples, 500).last_share < 2 / 3


def test_curves_are_made_of_what_was_measured_only(tmp_path):
    found = latency.curves_from(pa.table(pages.latency()), tmp_path)

    assert [(each.label, each.dashed, each.censored) for each in found] == [
        ("probes", False, 3),
        ("probes, from sending", True, 3),
    ]
    none = {**pages.latency(), "uncorrected_ms": pa.nulls(len(pages.PROBES) + 3, pa.float64())}
    assert [each.label for each in latency.curves_from(pa.table(none), tmp_path)] == ["probes"]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 30), st.integers(1, 30), st.data())
def test_no_cell_is_lost_when_many_share_a_pixel(rows, columns, rows_max, columns_max, data):
    present = np.zeros((rows, columns), dtype=bool)
    place = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    present[place] = True
    small = cells.shrunk(present, rows_max, columns_max)

    assert small.shape == (min(rows, rows_max), min(columns, columns_max))
    assert small.sum() == 1


@pytest.fixture(scope="module")
def one_in_ten_thousand():
    """Made before the fixture that keeps tests from drawing."""
    mark = cells.Mark(37, 61, "lost", "-1 in campaign 37", "campaign 37 & window <61>: expected 113, seen 112")
    grid = cells.Grid(np.ones((100, 100), dtype=bool), [10.0 * i for i in range(100)], [mark])
    return style.picture("cells", "all cells", lambda sheet: cells.draw(grid, sheet))


def test_one_wrong_cell_among_ten_thousand_is_named_on_the_spot(one_in_ten_thousand):
    for svg in (one_in_ten_thousand.wide, one_in_ten_thousand.narrow):
        assert "-1 in campaign 37" in svg
        assert "lost (1)" in svg
        assert "right (9,999)" in svg
        assert "<title>campaign 37 &amp; window &lt;61&gt;: expected 113, seen 112</title>" in svg
        assert svg.index("<image") < svg.index("cell-0"), "what is drawn later lies on top"


def test_a_drawing_has_colours_by_name_only_and_no_date(one_in_ten_thousand):
    for svg in (one_in_ten_thousand.wide, one_in_ten_thousand.narrow):
        assert re.findall(r"(?:fill|stroke): ?#\w+", svg) == []
        assert "var(--red)" in svg
        assert "<metadata" not in svg
        assert "date" not in svg
    assert one_in_ten_thousand.png.startswith(b"\x89PNG")


def test_a_drawing_stands_alone_as_a_file_too(one_in_ten_thousand):
    root = ET.fromstring(one_in_ten_thousand.svg)

    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(" not in one_in_ten_thousand.svg.decode()
    assert style.RED in one_in_ten_thousand.svg.decode()


def test_kinds_of_wrong_differ_in_shape_or_colour():
    assert len(set(cells.KINDS.values())) == len(cells.KINDS)


@pytest.mark.parametrize("knee", [None, throughput.Knee(4_900.0, 5_500.0), throughput.Knee(4_900.0, None)])
def test_latency_against_throughput_takes_whatever_is_known(knee):
    sheet = style.Sheet(Figure(), style.WIDE_PX)
    rungs = [
        throughput.Rung(1_000.0, throughput.Range(990, 1_000, 1_010), throughput.Range(5, 9, 12), None, True),
        throughput.Rung(6_000.0, None, throughput.Range(50, 90, 4_000), throughput.Range(50, 9_000, 9_999), False),
    ]
    throughput.draw(rungs, knee, 10_000.0, sheet)

    words = " ".join(text.get_text() for text in sheet.figure.axes[0].texts)
    assert ("generator-limited" in words) is (knee is not None and knee.failed_per_s is None)
    assert ("4.9k to 5.5k/s" in words) is (knee is not None and knee.failed_per_s is not None)


@pytest.mark.parametrize("width_px", [style.WIDE_PX, style.NARROW_PX])
def test_the_seam_names_the_batches_that_have_room_and_what_is_marked(width_px):
    sheet = style.Sheet(Figure(), width_px)
    taken = (("files", -500, 0, "3", False), ("Kafka", 0, 400, "14", True), ("Kafka", 400, 401, "15", False))
    row = seam.Row({"files": (-500, 0), "Kafka": (-100, 401)}, tuple(seam.Stretch(*each) for each in taken), {})
    seam.draw((row, replace(row, marks={"wrong": [-1]})), sheet)

    words = [text.get_text() for text in sheet.figure.axes[0].texts]
    assert words == ["3", "14", "3", "14", "seam"]
    (legend,) = sheet.figure.legends
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["counted from files", "counted from Kafka", "lies there too", "ran again", "wrong"]


def test_stretches_that_nobody_could_tell_apart_are_one_but_for_those_that_ran_again():
    taken = [seam.Stretch("Kafka", n, n + 1, str(n), n == 5) for n in range(10)]
    drawn = seam.joined(taken, least=4.5)

    assert [(each.begin, each.end, each.batch) for each in drawn] == [(0, 4, ""), (4, 5, "4"), (5, 6, "5"), (6, 10, "")]
    assert seam.joined(taken, least=0.0) == taken


@pytest.mark.parametrize(("width_px", "above"), [(style.WIDE_PX, ["90", "3\nforgotten"]), (style.NARROW_PX, ["", "3"])])
def test_states_are_named_by_their_batches_with_what_is_wrong_and_what_struck_before_them(width_px, above):
    sheet = style.Sheet(Figure(), width_px)
    held = [states.Held(2, 1.4, 90, 90, 90, {}), states.Held(12, 30.2, 100, 97, 97, {"forgotten": 3})]
    states.draw(held, [states.Blow(1, "kill@c3:batch=3")], sheet)
    (axes,) = sheet.figure.axes

    assert [text.get_text() for text in axes.texts] == [*above, "kill@c3:batch=3"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["2\n+1 s", "12\n+30 s"]


@pytest.mark.parametrize("width_px", [style.WIDE_PX, style.NARROW_PX])
@pytest.mark.parametrize("costs", [(), (backfill.Cost("CPU", 40.0, 30.5),)])
def test_a_batch_beside_the_stream_names_only_what_is_there(width_px, costs):
    sheet = style.Sheet(Figure(), width_px)
    windows = [backfill.Window(-10.0, (40, 0, 0), 0, 40), backfill.Window(0.0, (38, 2, 0), 3, 7)]
    backfill.draw(windows, costs, sheet)
    upper, *lower = sheet.figure.axes
    (legend,) = sheet.figure.legends

    assert [text.get_text() for text in upper.texts] == ["+3"]
    assert [text.get_text() for axes in lower for text in axes.texts] == ["40.0", "30.5"][: 2 * len(costs)]
    told = [text.get_text() for text in legend.get_texts()]
    assert told == ["equal (78)", "the stream dropped as late (2)", "written when it was killed"]


def test_the_age_of_an_event_is_what_the_tape_had_planned():
    disorder = Disorder(delay_scale_ms=300, delay_max_ms=7500)
    tape = Tape(TapeSpec(1, (Segment(4_000, 200.0, 200.0),), 2, 20, 2, 5, 10, disorder))
    ids, times, planned, books = [], [], [], []
    for server in range(2):
        for number, low, high in tape.slices(server):
            due_us = tape.slice_due_us(number)
            books.append((server, low, high, due_us))
            events = tape.events(server, np.arange(low, high, dtype=np.int64))
            ids += [(server << 36) | slot for slot in range(low, high)]
            times += events.event_time_rel_ms.tolist()
            planned += (due_us // 1000 - events.event_time_rel_ms).tolist()
    names = ("server", "slot_lo", "slot_hi", "intended_us")
    sends = pa.table({name: [row[i] for row in reversed(books)] for i, name in enumerate(names)})
    unknown = (1 << 36) | 10**9

    booked = lateness.Booked(sends, epoch_ms := 10**12)
    ages_ms = booked.ages_ms(np.array([*ids, unknown]), epoch_ms + np.array([*times, 0]))
    assert ages_ms.tolist() == planned


@given(st.lists(st.lists(st.integers(-5, 40), max_size=30), min_size=1, max_size=4), st.floats(0, 1))
def test_ages_that_are_tallied_have_the_quantiles_of_all_of_them(parts, share):
    tally = Tally.of(np.array(part, dtype=np.int64) for part in parts)
    ages_ms = sorted(chain(*parts))

    assert np.repeat(tally.ms, tally.often).tolist() == ages_ms
    if ages_ms:
        assert tally.quantile(share) == pytest.approx(np.quantile(ages_ms, share))


@pytest.mark.parametrize("cache", ["where the user wants it", "nowhere"])
def test_a_home_that_cannot_be_written_costs_no_line_and_leaves_nothing(cache, tmp_path):
    for name in (".config", ".cache", ".matplotlib"):
        (tmp_path / name).touch()  # files in the way of folders stop also those who may write all
    passing, kept = tmp_path / "tmp", tmp_path / "cache"
    passing.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(passing)}
    environment |= {"XDG_CACHE_HOME": str(kept)} if cache == "where the user wants it" else {}

    drawing = [sys.executable, "-c", "from reports.figures import style; print(style.mpl.get_cachedir())"]
    done = subprocess.run(drawing, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)

    assert done.stderr == ""
    assert Path(done.stdout.strip()).is_relative_to(kept if kept.exists() else passing)
    assert not list(passing.iterdir())
