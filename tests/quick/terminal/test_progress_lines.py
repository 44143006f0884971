"""The lines on a run in progress: times, what it waits for, counts that agree, and what fits a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.terminal import progress_lines
from harness.terminal.progress_lines import FAULT, INDENT, OVER, Counts, Line, Rates, RunProgress, fitted

COUNT = st.integers(0, 10_000_000)


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def facts(now_ms=0, sent=0, planned=300_900, done=0, fault=""):
    return {"now_ms": now_ms, "sent": sent, "planned": planned, "done": done, "fault": fault}


def texts(lines):
    return [line.text for line in lines]


def loading(clock):
    """A run in its load, with two phases behind it."""
    run = RunProgress(clock)
    for name, waits_for, took_s in (("services", "Kafka and Redis", 4.04), ("engine", "4 opening events", 9)):
        run.phase(name, waits_for)
        clock.now_s += took_s
    run.phase("load", "300,900 events in 30 s")
    run.update(facts(1000, 1000, done=800))
    run.update(facts(3000, 21_000, done=16_800, fault="kill@c3:batch=3: waiting"))
    clock.now_s += 12
    return run


def test_each_phase_has_a_line_with_its_time_and_the_current_one_says_what_it_waits_for(clock):
    assert texts(loading(clock).lines(80)) == [
        "    4.0 s  services  Kafka and Redis",
        "    9.0 s  engine    4 opening events",
        "     12 s  load      waits for 300,900 events in 30 s",
        "                     [##.....................] sent 21,000 of 300,900 (10,000/s)",
        "                     done 16,800 (8,000/s), 4,200 behind",
        "                     fault kill@c3:batch=3: waiting",
    ]


def test_on_a_terminal_what_is_over_is_dim_and_the_fault_stands_out(clock):
    assert [line.style for line in loading(clock).lines(80)] == [OVER, OVER, "", "", "", FAULT]


def test_an_engine_shows_how_it_works_off_a_backlog_and_nothing_if_there_is_none(clock):
    run = RunProgress(clock)
    run.phase("engine", "4 opening events")
    run.update(facts(1000))
    assert run.line() == "    0.0 s  engine    waits for 4 opening events"
    run.update(facts(2000, 1_200_000, planned=2_100_000, done=100_000))
    assert run.line() == (
        "    0.0 s  engine    sent 1,200,000 of 2,100,000 (1,200,000/s), done 100,000 (100,000/s), 1,100,000 behind"
    )


def test_in_a_log_a_phase_begins_with_what_it_waits_for_and_goes_on_with_its_counts(clock):
    run = loading(clock)

    assert run.begin_line() == "     25 s  load      waits for 300,900 events in 30 s"
    assert run.line() == (
        "     25 s  load      sent 21,000 of 300,900 (10,000/s), done 16,800 (8,000/s), 4,200 behind, "
        "fault kill@c3:batch=3: waiting"
    )
    run.phase("drain", "the end of the log, and stable results")
    run.update(facts(4000, 300_900, done=300_904))
    assert "done 300,900" in run.line()
    run.phase("read", "all results and the whole log")
    assert run.line() == "     25 s  read      waits for all results and the whole log", "nothing is read yet"
    run.update(facts(5000, 1_000_000, 2_000_000, -1))
    run.update(facts(6000, 1_500_000, 2_000_000, -1))
    assert run.line() == "     25 s  read      read 1,500,000 of 2,000,000 (500,000/s)"
    run.phase("judge", "the verdict")
    assert run.line() == "     25 s  judge     waits for the verdict", "counts are those of load and drain"


def test_a_run_that_has_not_begun_says_nothing(clock):
    assert RunProgress(clock).lines(80) == []


@given(sent=COUNT, planned=COUNT, done=COUNT)
def test_what_is_done_never_exceeds_what_was_sent(sent, planned, done):
    counts = progress_lines.counts_of(facts(0, sent, planned, done))

    assert counts is not None
    assert counts.done is not None
    assert counts.done <= counts.sent == sent
    assert "-" not in progress_lines.done_words(counts, Rates())


def test_an_engine_without_progress_is_not_said_to_have_done_anything():
    counts = progress_lines.counts_of(facts(0, 10, done=-1))

    assert counts == Counts(10, 300_900, None)
    assert progress_lines.done_words(counts, Rates()) == ""


def test_rates_are_never_below_nothing(clock):
    run = RunProgress(clock)
    run.phase("load")
    for now_ms, sent, done in ((0, 5000, 5000), (400, 9999, 9999), (1000, 5000, 4000), (2000, 5000, 3000)):
        run.update(facts(now_ms, sent, done=done))

    assert run.line().count("(0/s)") == 2


def test_the_rate_of_sending_is_of_a_second_and_that_of_an_engine_of_ten(clock):
    """An engine with batches reports a step every few seconds, and nothing in between."""
    run = RunProgress(clock)
    run.phase("load")
    for second in range(31):
        run.update(facts(1000 * second, 10_000 * second, done=40_000 * (second // 4)))

    assert "(10,000/s), done 280,000 (8,000/s)" in run.line()


@pytest.mark.parametrize(
    ("seconds", "said"), [(-1, "0.0 s"), (0, "0.0 s"), (9.94, "9.9 s"), (31.4, "31 s"), (725, "12:05 min")]
)
def test_a_time_has_its_unit(seconds, said):
    assert progress_lines.span(seconds) == said


@given(width=st.integers(1, 200), waits_for=st.text("abc ", max_size=300), is_over=st.booleans())
def test_no_line_is_wider_than_a_terminal_that_has_room_for_words(width, waits_for, is_over):
    lines = progress_lines.phase_lines("services", waits_for, 1.0, width, is_over=is_over)
    lines += progress_lines.count_lines("load", Counts(1, 10_000_000, 1), Rates(1234567.0, 1.0), width)

    assert len(lines) >= 3
    if width >= 80:
        assert max(map(len, texts(lines))) <= width


def test_what_a_phase_waits_for_is_wrapped_while_it_lasts_and_is_one_line_afterwards(clock):
    run = RunProgress(clock)
    run.phase("engine", "word " * 40)

    assert len(run.lines(80)) > 2
    assert all(line.startswith(" " * INDENT) for line in texts(run.lines(80))[1:])
    run.phase("load")
    over, _ = texts(run.lines(80))
    assert over.endswith("...")
    assert len(over) <= 80


@given(notes=st.integers(0, 60), below=st.integers(0, 60), height=st.integers(1, 40))
def test_the_newest_lines_fit_and_the_last_notes_are_among_them(notes, below, height):
    said = [Line(f"note {number}") for number in range(notes)]
    phases = [Line(f"phase {number}") for number in range(below)]

    shown = fitted(said, phases, height)

    assert len(shown) <= max(height, 1)
    assert [line for line in shown if line in said] == said[len(said) - sum(line in said for line in shown) :]
    assert not phases or phases[-1] in shown
    if notes and height > 8:
        assert said[-1] in shown


def test_a_note_is_wrapped_below_its_own_beginning():
    (first, second) = texts(progress_lines.note_lines([f"  PASS: {'right ' * 12}"], 60))

    assert (first[:8], second[:7]) == ("  PASS: ", "  right")
