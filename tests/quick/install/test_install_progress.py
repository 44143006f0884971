"""How far an installation has come: bytes are added up, the time left is estimated, and lines fit into their place."""

from __future__ import annotations

import pytest

from harness.install import progress
from harness.install.progress import Amount, Pace, Part, Progress
from harness.util import file_tree


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (Amount(23_400_000, 57_000_000), "23 of 57 MB"),
        (Amount(1_130_000_000, 2_700_000_000), "1.1 of 2.7 GB"),
        (Amount(3_100_000_000, 2_700_000_000), "2.7 of 2.7 GB"),
        (Amount(0, 57_000_000), "0 of 57 MB"),
        (Amount(310_000_000), "310 MB"),
    ],
)
def test_amounts_are_shown_in_megabytes_or_gigabytes(amount, words):
    assert str(amount) == words


def test_the_files_below_a_folder_are_added_up(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/one").write_bytes(b"123")
    (tmp_path / "two").write_bytes(b"45")
    (tmp_path / "a/again").symlink_to(tmp_path)
    assert file_tree.size_below(tmp_path) == 5 + (tmp_path / "a/again").lstat().st_size
    assert file_tree.size_below(tmp_path / "none") == 0


def pace(*seen: tuple[float, int], total: int) -> Pace:
    """A part at which somebody looked so often."""
    counts = iter(done for _, done in seen)
    found = Pace(Part("jars", lambda: Amount(next(counts), total)))
    for now, _ in seen:
        found.look(now)
    return found


def test_the_time_left_is_measured_from_the_first_byte_on():
    assert pace((10, 0), (20, 0), (30, 0), (40, 25), total=100).seconds_left(40) == 30
    assert pace((10, 0), (20, 0), total=100).seconds_left(20) is None
    assert pace((10, 0), (20, 25), total=0).seconds_left(20) is None, "nobody knows how much it will be"


def test_what_an_earlier_try_had_fetched_does_not_count_as_speed():
    assert pace((10, 50), (20, 75), total=100).seconds_left(20) == 10


def test_bytes_never_become_fewer():
    """An installer removes what it had unpacked to build a package."""
    found = pace((0, 0), (10, 80), (20, 40), total=100)
    assert str(found) == "jars 0 of 0 MB"
    assert found.amount == Amount(80, 100)
    assert pace((0, 0), (10, 120), total=100).seconds_left(10) == 0


def test_a_line_on_a_terminal_has_a_bar_the_bytes_and_the_time_left():
    paces = [
        pace((0, 0), (10, 900_000_000), total=2_700_000_000),
        pace((0, 0), (10, 57_000_000), total=57_000_000),
    ]
    line = progress.in_place("installing", paces, 10, 20)
    assert line == "[###-------] jars 0.9 of 2.7 GB, jars 57 of 57 MB, 20 s left"
    assert progress.in_place("installing", paces, 10, None).startswith("[----------] ")
    assert progress.in_place("installing", paces, 10, None).endswith(", 10 s")
    assert progress.in_place("installing", paces, 30, 0).endswith(", nearly done")
    assert progress.in_place("installing", (), 10.4, None) == "installing ... 10 s"


def test_a_line_in_a_pipe_says_the_same_in_words():
    paces = [pace((0, 0), (10, 10_000_000), total=57_000_000)]
    assert progress.as_line("fetching", paces, 15, 70.4) == "jars 10 of 57 MB, 15 s so far, 70 s left"
    assert progress.as_line("fetching", paces, 15, None) == "jars 10 of 57 MB, 15 s so far"
    assert progress.as_line("fetching", (), 15, None) == "fetching ... 15 s so far"


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_a_pipe_gets_a_line_now_and_then(clock, capsys):
    with Progress("working", [Part("jars", lambda: Amount(int(clock.now) * 1_000_000, 60_000_000))]) as shown:
        for clock.now in range(40):
            shown.tick()
    assert capsys.readouterr().err.splitlines() == [
        "streamgauge: working ...",
        "streamgauge: jars 15 of 60 MB, 15 s so far, 45 s left",
        "streamgauge: jars 30 of 60 MB, 30 s so far, 30 s left",
    ]


def test_a_terminal_shows_one_line_in_place_and_leaves_what_it_took(clock, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr(progress, "columns", lambda: 40)
    with Progress("working", [Part("a rather long name of a part", lambda: Amount(0, 60_000_000))]) as shown:
        for clock.now in (0, 1, 2):
            shown.tick()
    first, *rest, last = capsys.readouterr().err.lstrip("\r").split("\r")
    assert len(first) == 39, "a longer one would wrap"
    assert rest == [first, first]
    assert last.rstrip(" \n") == "streamgauge: working ... 2 s"
    assert len(last.rstrip("\n")) == 39, "nothing of the longer line is left"
    assert last.endswith("\n")
