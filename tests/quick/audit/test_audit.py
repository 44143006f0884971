"""Small made-up trees of the original benchmark's results: each defect under its own name, and clean ones."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click
import numpy as np
import pytest

from harness.audit import listed, loads, split, walk
from harness.audit.left import Offered
from harness.cli.app import called
from harness.model import Outcome, UsageError
from reports import audited as reports_audited

TOTAL, CAMPAIGNS, WINDOWS = 30_000, 100, 20
VIEWS = TOTAL / 30  # of a cell
RAMP = (0.1, 0.6)  # of the two oldest windows, since producers start one after the other
TAIL = (0.4,)  # of the newest one, which was open


def cells(seed: int = 1, *, total: float = TOTAL, times: int = 1, windows: int = WINDOWS, late_s: float = 0):
    """Counts and delays, a row a campaign, from the newest window to the oldest, as the original's `-g` has them."""
    dice = np.random.default_rng(seed)
    part = np.ones(windows)
    part[: len(TAIL)] = TAIL
    part[-len(RAMP) :] = RAMP[::-1]
    counts = dice.poisson(total / 30 * part, size=(CAMPAIGNS, windows)) * times
    delays = 10_000 + dice.integers(0, 1000, size=windows) + dice.integers(0, 40, size=(CAMPAIGNS, windows))
    delays += (np.arange(windows)[::-1] * late_s * 1000 / windows).astype(int)
    delays[:, 0] = 4_000 + dice.integers(0, 900, size=CAMPAIGNS)
    return counts, delays


def write(place: Path, counts, delays) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for name, numbers in (("seen.txt", counts), ("updated.txt", delays)):
        (place / name).write_text("".join(f"{number}\n" for number in np.concatenate([*map(np.ravel, numbers)])))
    return place


def run(place: Path, seed: int = 1, **changes) -> Path:
    return write(place, *cells(seed, **changes))


def audited(path: Path, lines=(), source: str = "--total-rate", **flags):
    flags = flags or {"total_per_s": TOTAL}
    return walk.audit(str(path), walk.Known(flags, source, lines), lambda _: None)


def only(path: Path, **flags):
    (found,) = audited(path, **flags)
    return found


def words(path: Path, **flags) -> tuple[str, ...]:
    found: tuple[str, ...] = only(path, **flags).words
    return found


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_run_passes(tmp_path, seed):
    found = only(run(tmp_path / "run", seed), total_per_s=TOTAL, duration_s=WINDOWS * 10)

    assert (found.outcome, found.findings) == (Outcome.PASS, ())
    assert found.share == pytest.approx(1, abs=0.02)


def test_campaigns_that_got_nothing_in_the_oldest_window_are_told_apart(tmp_path):
    counts, delays = cells()
    rows = [(c[: WINDOWS - n % 2], d[: WINDOWS - n % 2]) for n, (c, d) in enumerate(zip(counts, delays, strict=True))]

    assert words(write(tmp_path / "run", [c for c, _ in rows], [d for _, d in rows])) == ("right",)


def test_a_split_that_cannot_be_true_is_not_made():
    dice = np.random.default_rng(2)
    found = split.split(dice.poisson(1000, 2198), 10_000 + dice.integers(0, 900, 2198), CAMPAIGNS, 10_000)

    assert found.starts is None
    assert "boundaries" in found.why


def test_without_a_split_the_amount_is_told_and_the_rest_is_unknown(tmp_path):
    dice = np.random.default_rng(2)
    place = write(tmp_path / "run", [dice.poisson(VIEWS, 2198)], [10_000 + dice.integers(0, 900, 2198)])
    found = only(place)

    assert (found.words, found.outcome) == (("can't be told",), Outcome.UNKNOWN)
    assert found.share == pytest.approx(1, abs=0.02)
    assert words(write(place, [dice.poisson(0.5 * VIEWS, 2198)], [np.full(2198, 10_500)])) == ("lost",)


def test_without_a_load_nobody_knows(tmp_path):
    found = only(run(tmp_path / "run"), campaigns=100)

    assert (found.words, found.outcome) == (("can't be told",), Outcome.UNKNOWN)
    assert "--total-rate" in found.sentence


def test_a_load_of_which_a_cell_gets_next_to_nothing_is_too_little_to_judge(tmp_path):
    found = only(run(tmp_path / "run", total=60), total_per_s=60)

    assert (found.share, found.outcome) == (None, Outcome.UNKNOWN)
    assert "too few" in found.sentence


def test_a_little_load_is_split_and_judged(tmp_path):
    assert words(run(tmp_path / "run", total=1000), total_per_s=1000) == ("right",)
    assert words(run(tmp_path / "run", total=700), total_per_s=1000) == ("lost",)


@pytest.mark.parametrize(("times", "word"), [(2, "doubled"), (3, "tripled")])
@pytest.mark.parametrize("flags", [{"total_per_s": TOTAL}, {"campaigns": 100}])
def test_events_that_were_counted_several_times_but_for_the_newest_window(tmp_path, times, word, flags):
    counts, delays = cells(times=times)
    counts[:, 0] += 1
    found = only(write(tmp_path / "run", counts, delays), **flags)

    assert (found.words[0], found.outcome) == (word, Outcome.FAIL)
    assert f"divisible by {times}" in found.sentence


def test_twice_as_much_that_was_sent_is_not_called_doubled(tmp_path):
    found = only(run(tmp_path / "run", total=2 * TOTAL))

    assert found.words == ("too much",)
    assert "more was sent: 2 times the load" in found.sentence


def test_a_producer_that_sent_nothing_is_counted(tmp_path):
    found = only(run(tmp_path / "run", total=0.9 * TOTAL))

    assert found.words == ("lost",)
    assert "1 of 10 producers" in found.sentence


def test_cells_that_are_listed_twice(tmp_path):
    """What the other of two tasks had counted is missing in them."""
    counts, delays = cells()
    again = np.random.default_rng(3).random(counts.shape) < 0.3
    again[:, 0] = False
    counts = np.where(again, (0.95 * counts).astype(int), counts)
    twice = [[np.repeat(row, 1 + flags) for row, flags in zip(each, again, strict=True)] for each in (counts, delays)]
    found = only(write(tmp_path / "run", *twice))

    assert (found.words, found.outcome) == (("listed twice", "lost"), Outcome.FAIL)
    assert f"{int(again.sum()):,} of {counts.size + int(again.sum()):,} lines" in found.sentence
    assert "less than the others" in found.findings[1].sentence


def test_one_line_too_many_is_listed_twice_and_equal_neighbours_are_not():
    counts, delays = (each.ravel() for each in cells())
    one = listed.times(np.insert(counts, 5, counts[5]), np.insert(delays, 5, delays[5]), CAMPAIGNS)

    assert one is not None
    assert (one.sum(), one[5]) == (len(counts) + 1, 2)
    assert listed.times(np.array([7, 8] * 1000), np.full(2000, 10_500), CAMPAIGNS) is None
    dice = np.random.default_rng(1)  # a micro-batch engine with little load: neighbours are equal by chance
    assert listed.times(dice.integers(30, 36, 2000), np.full(2000, 10_500), CAMPAIGNS) is None


def test_a_window_and_a_cell_that_lost_some(tmp_path):
    counts, delays = cells()
    counts[:, 10] = (0.8 * counts[:, 10]).astype(int)
    found = only(write(tmp_path / "window", counts, delays))

    assert found.words == ("lost",)
    assert "the worst 90 s after the first with 0.80" in found.sentence
    counts, delays = cells()
    counts[7, 10] = 0
    found = only(write(tmp_path / "cell", counts, delays))

    assert found.words == ("lost",)
    assert "1 cell between whole ones is" in found.sentence


def test_a_cell_that_got_a_second_more(tmp_path):
    counts, delays = cells(total=150_000)
    counts[7, 10] *= 1.2
    found = only(write(tmp_path / "run", counts, delays), total_per_s=150_000)

    assert (found.words, found.outcome) == (("too much",), Outcome.FAIL)
    assert "90 s after the first" in found.sentence


def test_a_ramp_of_many_windows_is_short_at_start(tmp_path):
    counts, delays = cells()
    counts[:, -5:] = (counts[:, -5:] * 0.5).astype(int)

    assert words(write(tmp_path / "run", counts, delays)) == ("short at start",)


@pytest.mark.parametrize(
    ("seconds", "word", "outcome"),
    [(400, "cut off", Outcome.FAIL), (200, "right", Outcome.PASS), (150, "right", Outcome.PASS)],
)
def test_fewer_and_more_windows_than_the_duration_makes(tmp_path, seconds, word, outcome):
    found = only(run(tmp_path / "run"), total_per_s=TOTAL, duration_s=seconds)

    assert (found.words[0], found.outcome) == (word, outcome)
    assert ("longer than said" in found.words) == (seconds == 150)
    if seconds == 150:
        assert "20 windows; 150 s should give 15" in found.sentence


def test_an_engine_that_fell_behind(tmp_path):
    """A remark where all is there, and the reason where it is not."""
    run(tmp_path / "run", late_s=300)

    assert words(tmp_path / "run") == ("right", "fell behind")
    found = only(tmp_path / "run", total_per_s=TOTAL, duration_s=400)
    assert (found.words, found.outcome) == (("fell behind",), Outcome.FAIL)
    assert "20 windows; 400 s should give 40" in found.sentence


def test_equal_files_are_filed_twice_and_no_count_is_wrong_for_it(tmp_path):
    for name in ("a", "b"):
        run(tmp_path / name, seed=3)
    run(tmp_path / "c", seed=4)
    found = {Path(each.place).name: each for each in audited(tmp_path)}

    assert found["a"].words == found["b"].words == ("right", "filed twice")
    assert found["a"].outcome is Outcome.PASS
    assert "the same file as" in found["a"].sentence
    assert found["c"].words == ("right",)


@pytest.mark.parametrize(("row", "delay", "told"), [(0, -5, "before they began"), (7, 5_000, "an event after")])
def test_latencies_that_cannot_be(tmp_path, row, delay, told):
    counts, delays = cells()
    delays[0, row] = delay
    found = only(write(tmp_path / "run", counts, delays))

    assert found.words == ("impossible latency",)
    assert told in found.sentence


def test_a_campaign_that_is_low_throughout_is_uneven(tmp_path):
    counts, delays = cells()
    counts[5] = (0.9 * counts[5]).astype(int)

    assert "uneven" in words(write(tmp_path / "run", counts, delays))


# Files that are damaged, and others that are none.


@pytest.mark.parametrize(
    ("text", "word"),
    [("12\nthirteen\n", "torn"), ("", "empty"), ("-3\n4\n", "torn"), ("0\n0\n", "empty"), (f"1\n{10**30}\n", "torn")],
)
def test_files_that_are_no_counts(tmp_path, text, word):
    (tmp_path / "seen.txt").write_text(text)

    assert words(tmp_path)[0] == word


def test_the_two_files_have_to_be_of_one_length(tmp_path):
    (run(tmp_path / "run") / "updated.txt").write_text("10000\n")

    assert "torn" in words(tmp_path / "run")


def test_a_last_digit_that_was_cut_off_is_no_pass(tmp_path):
    file = run(tmp_path / "run") / "seen.txt"
    file.write_bytes(file.read_bytes()[:-2])
    found = only(tmp_path / "run")

    assert (found.words, found.outcome) == (("can't be told",), Outcome.UNKNOWN)
    assert "the last line of seen.txt has no line end" in found.sentence


def test_both_files_cut_at_half(tmp_path):
    counts, delays = (each.ravel()[: CAMPAIGNS * WINDOWS // 2] for each in cells())
    found = only(write(tmp_path / "run", [counts], [delays]))

    assert found.outcome is Outcome.FAIL
    assert "end in campaign 50 of 100" in found.sentence


def test_an_update_at_the_end_of_all_times(tmp_path):
    counts, delays = cells()
    place = write(tmp_path / "run", counts, delays)
    lines = (place / "updated.txt").read_text().split()
    for line, number, word in ((30, 10**17, "impossible latency"), (30, 2**63 - 1, "torn")):
        lines[line] = str(number)
        (place / "updated.txt").write_text("\n".join([*lines, ""]))

        assert word in words(place)


def test_an_unreadable_file_and_folder_are_named_and_the_rest_is_judged(tmp_path, monkeypatch):
    run(tmp_path / "good")
    (run(tmp_path / "shut") / "seen.txt").chmod(0)
    (tmp_path / "closed").mkdir()
    refuse(monkeypatch, tmp_path / "shut" / "seen.txt", tmp_path / "closed")
    found = {Path(each.place).name: each for each in audited(tmp_path)}

    assert found["good"].words == ("right",)
    assert found["shut"].outcome is found["closed"].outcome is Outcome.UNKNOWN
    assert "can't be read" in found["shut"].sentence
    assert "this folder can't be read" in found["closed"].sentence


def refuse(monkeypatch, file: Path, folder: Path) -> None:
    """As for a user without rights; root may read everything."""
    read, scan = Path.read_bytes, os.scandir

    def read_bytes(path: Path) -> bytes:
        if path == file:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    def scandir(path):
        if Path(path) == folder:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    monkeypatch.setattr(os, "scandir", scandir)


def test_a_folder_with_the_name_of_a_file_is_looked_into(tmp_path):
    run(tmp_path / "seen.txt" / "run")

    assert Path(only(tmp_path).place).name == "run"


def table(place: Path, rows, begin: str = "") -> Path:
    place.write_text("\n".join([f"{begin}campaign,window,count", *rows, ""]), encoding="utf-8")
    return place


def rows_of(counts):
    return [f"c{c},{w * 10_000},{n}" for c, row in enumerate(counts) for w, n in enumerate(row[::-1])]


def test_a_csv_names_its_cells_and_may_begin_with_a_mark(tmp_path):
    counts, _ = cells()
    (tmp_path / "other.csv").write_text("name,value\na,1\n")
    (tmp_path / "long.csv").write_text("x" * 200_000 + ",y\n")
    assert words(table(tmp_path / "cells.csv", rows_of(counts), "\ufeff")) == ("right",)
    assert len(audited(tmp_path)) == 1

    found = only(table(tmp_path / "cells.csv", [row for row in rows_of(counts) if not row.startswith("c7,90000,")]))
    assert found.words == ("lost",)
    assert "1 cell between whole ones is" in found.sentence


@pytest.mark.parametrize("row", [f"c1,10000,{10**23}", f"c1,{10**30},5", "c1,,", "c1"])
def test_a_line_that_is_no_cell(tmp_path, row):
    found = only(table(tmp_path / "cells.csv", [*rows_of(cells()[0]), row]))

    assert "torn" in found.words
    assert "is not a cell" in found.sentence


def test_what_is_no_result_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(UsageError, match="holds no results"):
        audited(tmp_path)
    with pytest.raises(UsageError, match="There is no"):
        audited(tmp_path / "nothing")
    (tmp_path / "a.csv").write_text("name,value\n")
    with pytest.raises(UsageError, match="has no column 'campaign'"):
        audited(tmp_path / "a.csv")
    with pytest.raises(UsageError, match="is not an address"):
        walk.audit("redis://127.0.0.1:99999/0", walk.Known({}), lambda _: None)


# What was offered, and who says so.


@pytest.mark.parametrize(
    ("place", "total", "source"),
    [
        ("FLINK/50000", 50_000, "folder"),
        ("FLINK/50000_1", 50_000, "folder"),
        ("CHKPT/110000/worker1", 110_000, "folder"),
        ("flink/rate=2k/producers=3_duration=70s", 6_000, "folder"),
        ("flink/load=2k", 2_000, "folder"),
        ("flink/load-2", None, ""),
        ("flink/2", None, ""),
    ],
)
def test_folders_may_say_what_the_load_was(place, total, source):
    found = loads.offered(Path(place), {}, [])

    assert (found.total_per_s, found.source) == (total, source)


def test_flags_win_over_the_file_of_loads_and_that_over_folders(tmp_path):
    file = tmp_path / "loads.csv"
    file.write_text("pattern,load,duration\nFLINK/*,7000,60\n")
    lines = loads.read(file)
    by_file = loads.offered(Path("FLINK/50000"), {}, lines)

    assert (by_file.total_per_s, by_file.source, by_file.duration_s) == (7000, "--loads", 60)
    assert loads.offered(Path("STORM/50000"), {}, lines).source == "folder"
    by_flag = loads.offered(Path("FLINK/50000"), {"rate_per_s": 10, "producers": 3}, lines, "--rate")
    assert (by_flag.total_per_s, by_flag.source) == (30, "--rate")
    assert loads.offered(Path("FLINK/50000"), {"total_per_s": 9}, lines, "--total-rate") == Offered(
        9, "--total-rate", duration_s=60
    )


@pytest.mark.parametrize(
    "text", ["", "a,b\n1,2\n", "pattern,load\nx,inf\n", "pattern,load\nx,two\n", "pattern,load\n,1\n"]
)
def test_a_file_of_loads_that_says_nothing_is_refused(tmp_path, text):
    (tmp_path / "loads.csv").write_text(text)

    with pytest.raises(UsageError, match="--loads"):
        loads.read(tmp_path / "loads.csv")
    with pytest.raises(UsageError, match="can't be read"):
        loads.read(tmp_path / "none.csv")


@pytest.mark.parametrize("words", [["--duration", "inf"], ["--duration", "nan"], ["--rate", "1", "--total-rate", "2"]])
def test_numbers_of_no_use_are_refused(tmp_path, words, capsys):
    run(tmp_path / "run")

    with pytest.raises((UsageError, click.UsageError)):
        called(["audit", str(tmp_path), *words])


# The screen.


def test_a_screen_has_groups_and_all_has_every_set(tmp_path, capsys):
    for number in range(30):
        run(tmp_path / f"ENGINE{number}" / "30000", seed=number, times=1 + number % 2)
    assert called(["audit", str(tmp_path)]) == 1
    screen = capsys.readouterr().out.splitlines()

    assert screen[0] == "FAIL  30 results: 15 FAIL, 15 PASS"
    assert len(screen) <= 23
    assert max(map(len, screen)) <= 80
    assert screen[-1] == "load    30 from names of folders"
    assert called(["audit", str(tmp_path), "--all"]) == 1
    every = capsys.readouterr().out
    assert all(f"ENGINE{number}/30000" in every for number in range(30))
    assert called(["audit", str(tmp_path), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["words"] == {"doubled": 15, "right": 15}
    assert {each["offered"]["source"] for each in told["results"]} == {"folder"}


def test_a_page_has_pictures_and_what_was_published(tmp_path, capsys):
    (tmp_path / "loads.csv").write_text("pattern,load,published_p99_ms\nA/*,30000,1500\n")
    for name, times in (("A/x", 1), ("B/30000", 2)):
        run(tmp_path / "tree" / name, seed=times, times=times)
    asked = ["audit", str(tmp_path / "tree"), "--loads", str(tmp_path / "loads.csv"), "--out", str(tmp_path / "page")]
    assert called(asked) == called(asked) == 1
    page = (tmp_path / "page" / "report.html").read_text()

    assert "1.5 s" in page
    assert "N/A" in page
    assert "doubled: 100.0% of the cells" in page or "doubled: 9" in page
    assert {each.name for each in (tmp_path / "page" / "figures").iterdir()} == {
        f"{name}.{kind}" for name in ("shares", "windows", "latency") for kind in ("png", "svg")
    }
    asked[-1] = str(tmp_path)
    with pytest.raises(UsageError, match="other files than an audit"):
        called(asked)


def test_groups_are_of_one_engine_and_word_the_worst_first(tmp_path):
    for name, times in (("A/30000", 2), ("A/30000_1", 2), ("B/30000", 3), ("C/30000", 1)):
        run(tmp_path / name, seed=len(name) + times, times=times)
    found = reports_audited.groups(audited(tmp_path, campaigns=100))

    assert [(each.engine, each.word, len(each.sets)) for each in found] == [
        ("B", "tripled", 1),
        ("A", "doubled", 2),
        ("C", "right", 1),
    ]


@pytest.mark.parametrize("again", [2, 3])
def test_a_table_that_lists_every_cell_again_is_no_pass(tmp_path, again):
    found = only(table(tmp_path / "a.csv", rows_of(cells()[0]) * again), total_per_s=TOTAL, duration_s=WINDOWS * 10)
    one = CAMPAIGNS * WINDOWS

    assert (found.outcome, found.words, found.cells) == (Outcome.FAIL, ("listed twice",), one)
    assert f"{one * (again - 1):,} of {one * again:,} lines list a cell again" in found.sentence
    assert (
        f"{CAMPAIGNS * WINDOWS * (again - 1):,} of {CAMPAIGNS * WINDOWS * again:,} lines list a cell" in found.sentence
    )


@pytest.mark.parametrize("parts", [1, CAMPAIGNS])
def test_a_list_that_lists_every_cell_again_is_no_pass(tmp_path, parts):
    counts, delays = (np.repeat(each.reshape(parts, 1, -1), 2, axis=1) for each in cells())
    found = only(write(tmp_path / "run", counts, delays), total_per_s=TOTAL, duration_s=WINDOWS * 10)

    assert (found.outcome, found.words, found.cells) == (Outcome.FAIL, ("listed twice",), CAMPAIGNS * WINDOWS)


@pytest.mark.parametrize("stamp", [0, 1])
def test_two_counts_of_one_cell_are_ambiguous(tmp_path, stamp):
    """Also where their windows begin a millisecond apart."""
    found = only(table(tmp_path / "a.csv", [*rows_of(cells()[0]), f"c1,{50_000 + stamp},7"]))

    assert (found.outcome, found.words) == (Outcome.FAIL, ("ambiguous", "listed twice"))
    assert f"1 cell has different counts: campaign c1, window {50_000 + stamp} has" in found.sentence


@pytest.mark.parametrize("row", [f"c1,{'9' * 14},5", f"c1,{'9' * 20},5", f"c1,20000,{'9' * 17}", f"c1,-{'9' * 13},5"])
def test_what_is_out_of_all_range_is_refused_and_no_views_are_missing_for_it(tmp_path, row):
    found = only(table(tmp_path / "a.csv", [*rows_of(cells()[0]), row]))

    assert (found.outcome, found.words) == (Outcome.FAIL, ("torn",)), found.sentence
    assert "trillion" not in found.sentence
    assert found.cells == CAMPAIGNS * WINDOWS
