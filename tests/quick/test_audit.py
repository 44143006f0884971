"""Small made-up trees of the original benchmark's results: each defect under its own name, and a clean one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.audit import walk
from harness.audit.left import Offered
from harness.model import Outcome, UsageError

RATE, CAMPAIGNS, WINDOWS = 1000, 100, 8
KNOWN = Offered(rate_per_s=RATE)


def tree(place: Path, seed: int = 1, *, rate: float = RATE, times: int = 1, cut: tuple[int, float] = (0, 0.3)) -> Path:
    """One run as the original writes it: 100 campaigns, each from its newest window, which was open for 6 s, to its
    oldest, of which the first 7 s are missing. `cut`: of one window (0: the oldest) there is only so much."""
    place.mkdir(parents=True, exist_ok=True)
    dice = np.random.default_rng(seed)
    whole = np.ones(WINDOWS)
    whole[0], whole[-1] = 0.3, 0.6
    whole[cut[0]] = cut[1]
    counts = dice.poisson(rate * 10 / 3 / CAMPAIGNS * whole, size=(CAMPAIGNS, WINDOWS)) * times
    delays = 10_000 + dice.integers(-300, 900, size=(CAMPAIGNS, WINDOWS))
    delays[:, -1] = 6_000 + dice.integers(-300, 900, size=CAMPAIGNS)
    write(place, counts[:, ::-1].ravel(), delays[:, ::-1].ravel())
    return place


def write(place: Path, counts, delays) -> None:
    (place / "seen.txt").write_text("\n".join(map(str, counts)) + "\n")
    (place / "updated.txt").write_text("\n".join(map(str, delays)) + "\n")


def audited(path: Path, offered: Offered = KNOWN, given: frozenset[str] = frozenset()):
    return walk.audit(str(path), offered, given, lambda _: None)


def words(path: Path, offered: Offered = KNOWN) -> list[str]:
    (found,) = audited(path, offered)
    return [finding.word for finding in found.findings]


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_run_passes(tmp_path, seed):
    (found,) = audited(tree(tmp_path / "run", seed))

    assert (found.outcome, found.findings) == (Outcome.PASS, ())
    assert found.share == pytest.approx(1, abs=0.05)


def test_without_a_rate_nobody_knows(tmp_path):
    (found,) = audited(tree(tmp_path / "run"), Offered())

    assert (found.outcome, [f.word for f in found.findings]) == (Outcome.UNKNOWN, ["no rate"])


@pytest.mark.parametrize("times", [2, 3])
def test_a_job_that_was_started_so_often_is_told_by_its_divisor_alone(tmp_path, times):
    (found,) = audited(tree(tmp_path / "run", times=times), Offered())

    assert found.outcome is Outcome.FAIL
    assert f"is a multiple of {times}" in found.sentence


def test_all_twice_is_told_by_the_rate_when_the_divisor_is_lost(tmp_path):
    (found,) = audited(tree(tmp_path / "run", rate=2 * RATE))

    assert found.findings[0].word == "duplicated"
    assert "each 2 times" in found.sentence


def test_missing_producers_are_counted(tmp_path):
    (found,) = audited(tree(tmp_path / "run", rate=7 * RATE), Offered(rate_per_s=RATE, producers=10))

    assert found.findings[0].word == "producers"
    assert "3 of 10 producers" in found.sentence


@pytest.mark.parametrize(("factor", "word"), [(0.93, "lost"), (1.3, "phantom")])
def test_an_amount_that_nothing_explains(tmp_path, factor, word):
    assert words(tree(tmp_path / "run", rate=factor * RATE)) == [word]


def test_a_window_that_lost_a_tenth_is_short(tmp_path):
    (found,) = audited(tree(tmp_path / "run", rate=5 * RATE, cut=(3, 0.9)), Offered(rate_per_s=5 * RATE))

    assert "short window" in [finding.word for finding in found.findings]
    assert "number 4 from the oldest" in " ".join(finding.sentence for finding in found.findings)


def test_a_run_of_fewer_windows_than_its_duration_makes_is_short(tmp_path):
    assert words(tree(tmp_path / "run"), Offered(rate_per_s=RATE, duration_s=600)) == ["short run"]
    assert words(tree(tmp_path / "run"), Offered(rate_per_s=RATE, duration_s=70)) == []


def test_equal_files_are_one_run_twice(tmp_path):
    for name in ("a", "b"):
        tree(tmp_path / name, seed=3)
    tree(tmp_path / "c", seed=4)
    found = audited(tmp_path)

    assert {Path(each.place).name for each in found if each.outcome is Outcome.FAIL} == {"a", "b"}
    assert (Path(found[-1].place).name, found[-1].outcome) == ("c", Outcome.PASS)
    assert "the very same file as" in found[0].sentence


@pytest.mark.parametrize(("row", "delay", "told"), [(0, -5, "before they began"), (3, 5_000, "an event after")])
def test_latencies_that_cannot_be(tmp_path, row, delay, told):
    place = tree(tmp_path / "run", rate=10 * RATE)
    delays = (place / "updated.txt").read_text().split()
    delays[row] = str(delay)
    (place / "updated.txt").write_text("\n".join(delays))
    (found,) = audited(place, Offered(rate_per_s=10 * RATE))

    assert [finding.word for finding in found.findings] == ["impossible latency"]
    assert told in found.sentence


def test_a_campaign_that_is_missing_in_an_inner_window_is_seen(tmp_path):
    place = tree(tmp_path / "run", rate=10 * RATE)
    counts = (place / "seen.txt").read_text().split()
    for window in range(1, WINDOWS - 1):
        counts[5 * WINDOWS + window] = "0"
    (place / "seen.txt").write_text("\n".join(counts))
    (found,) = audited(place, Offered(rate_per_s=10 * RATE))

    assert "uneven" in [finding.word for finding in found.findings]
    assert "number 6" in " ".join(finding.sentence for finding in found.findings)


def test_campaigns_of_unlike_length_are_told_apart_by_their_open_windows(tmp_path):
    """One has no views in the oldest window, which was only just begun."""
    place = tree(tmp_path / "run")
    counts, delays = ((place / name).read_text().split() for name in ("seen.txt", "updated.txt"))
    del counts[WINDOWS - 1], delays[WINDOWS - 1]
    write(place, counts, delays)

    assert words(place) == []


def test_lines_that_cannot_be_dealt_out_are_unknown(tmp_path):
    place = tree(tmp_path / "run")
    (place / "updated.txt").unlink()
    counts = (place / "seen.txt").read_text().split()[:-1]
    (place / "seen.txt").write_text("\n".join(counts))

    assert words(place) == ["no windows"]


@pytest.mark.parametrize(("text", "word"), [("12\nthirteen\n", "torn"), ("", "empty"), ("-3\n4\n", "torn")])
def test_files_that_are_no_counts(tmp_path, text, word):
    (tmp_path / "seen.txt").write_text(text)

    assert words(tmp_path)[0] == word


def test_the_two_files_have_to_be_of_one_length(tmp_path):
    place = tree(tmp_path / "run")
    (place / "updated.txt").write_text("10000\n")

    assert "torn" in words(place)


def test_folders_may_say_what_the_load_was_and_flags_win(tmp_path):
    place = tree(tmp_path / "flink" / "rate=2k" / "producers=2_duration=70s", rate=4 * RATE)
    (by_name,) = audited(place, Offered())
    (by_flag,) = audited(place, Offered(rate_per_s=4000), frozenset({"rate_per_s"}))

    assert by_name.outcome is Outcome.PASS
    assert by_flag.share == pytest.approx(0.5, abs=0.05)


def test_a_csv_names_its_cells(tmp_path):
    dice = np.random.default_rng(5)
    rows = [
        f"c{campaign},{window * 10_000},{count}"
        for campaign in range(CAMPAIGNS)
        for window, count in enumerate(dice.poisson(RATE / 30, WINDOWS))
        if not (campaign == 7 and 2 < window < 6)
    ]
    file = tmp_path / "cells.csv"
    file.write_text("\n".join(["campaign,window,count", *rows]))
    (tmp_path / "other.csv").write_text("name,value\na,1\n")
    (found,) = audited(tmp_path)

    assert [finding.word for finding in found.findings] == ["uneven"]


def test_what_is_no_result_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(UsageError, match="holds no results"):
        audited(tmp_path)
    with pytest.raises(UsageError, match="There is no"):
        audited(tmp_path / "nothing")
    (tmp_path / "a.csv").write_text("name,value\n")
    with pytest.raises(UsageError, match="has no column 'campaign'"):
        audited(tmp_path / "a.csv")
