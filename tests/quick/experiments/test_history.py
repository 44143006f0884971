"""The history of gates: nothing that was there is ever lost, what can't be read is told, and what can't be compared
stands in another series."""

from __future__ import annotations

import errno
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines import fake
from harness.experiments.gating import gate, history
from harness.experiments.gating.gate import BASE, HEAD, Answer, Judged
from harness.experiments.gating.history import History
from harness.install import environment
from harness.model import HarnessError, Outcome, UsageError
from harness.rundir.store import Store
from harness.util import texts
from reports import gated
from reports.exports.history import of_gate
from tests.program import pages
from tests.quick import histories
from tests.quick.experiments.test_gate import measured
from tests.quick.histories import OTHER_CPU, entry, many


@pytest.fixture
def file(tmp_path):
    return tmp_path / "gates.jsonl"


def written(file, *entries):
    for each in entries:
        history.add(str(file), each)
    return file.read_bytes()


def of(*entries):
    return History(tuple(sorted(entries, key=lambda each: each.at)))


# ---------------------------------------------------------------- Written and read


def test_what_was_added_is_what_is_read(file):
    made = [entry(0), entry(1, histories.figure("memory", 1.2)), entry(2, flags={"disorder": "storm"})]
    written(file, *made)

    assert history.read(file) == History(tuple(made))
    assert len(file.read_bytes().splitlines()) == 3


def test_in_a_folder_each_gate_has_a_file_of_its_own(tmp_path):
    place = f"{tmp_path}/new/gates/"
    history.refuse_unusable(place)

    made = {history.add(place, entry(number)) for number in range(3)}

    assert len(made) == 3
    assert history.read(Path(place)).entries == tuple(map(entry, range(3)))
    history.refuse_unusable(place)


def test_the_same_gate_in_two_files_is_one(tmp_path):
    """As when a CI job keeps each day's file, which begins with that of the day before."""
    written(tmp_path / "monday.jsonl", entry(0))
    written(tmp_path / "tuesday.jsonl", entry(0), entry(1))

    assert len(history.read(tmp_path).entries) == 2


def test_gates_are_read_by_their_time_whatever_order_they_were_added_in(file):
    made = [entry(number) for number in range(20)]
    shuffled = random.Random(1).sample(made, len(made))
    written(file, *shuffled)

    assert history.read(file).entries == tuple(made)


# ---------------------------------------------------------------- Nothing is lost


def test_a_line_behind_half_a_line_is_whole_and_the_half_one_is_told(file):
    whole = written(file, entry(0), entry(1))
    file.write_bytes(whole[:-40])

    assert history.read(file).entries == (entry(0),)
    (told,) = history.read(file).passed_over
    assert (told.line, "cut off" in told.why) == (2, True)

    history.add(str(file), entry(2))

    assert file.read_bytes().startswith(whole[:-40] + b"\n")
    assert history.read(file).entries == (entry(0), entry(2))
    assert [each.line for each in history.read(file).passed_over] == [2]


@given(st.integers(0, 2000))
def test_of_a_file_that_was_cut_anywhere_every_whole_line_is_read(length):
    lines = [history.encoded(entry(number)) for number in range(3)]
    cut = b"".join(lines)[:length]
    whole = cut.count(b"}]}")  # how each line ends
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda _: cut)
        if whole == 0:
            with pytest.raises(UsageError, match=r"any\.jsonl"):
                history.read(Path("any.jsonl"))
            return
        found = history.read(Path("any.jsonl"))

    assert len(found.entries) == whole
    assert len(found.passed_over) == (0 if cut.endswith((b"}]}", b"\n")) else 1)


def _add_all(place: str, numbers: range) -> None:
    for number in numbers:
        history.add(place, entry(number, head=replace(entry().head, named="x" * 9000)))


def test_gates_at_the_same_time_take_nothing_from_each_other(file):
    """Lines longer than a page of memory, each through a file of its own."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda first: _add_all(str(file), range(first, first + 10)), range(0, 40, 10)))

    found = history.read(file)
    assert [each.at for each in found.entries] == [entry(number).at for number in range(40)]
    assert found.passed_over == ()


def test_a_full_disk_costs_nothing_that_was_there(file, monkeypatch):
    before = written(file, entry(0))

    def fails(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(history, "append", fails)
    with pytest.raises(HarnessError, match="could not be written"):
        history.add(str(file), entry(1))

    assert file.read_bytes() == before


def test_a_place_that_can_not_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("x")

    with pytest.raises(HarnessError, match="could not be written"):
        history.add(str(tmp_path / "file" / "below.jsonl"), entry())
    with pytest.raises(UsageError, match="can't be written"):
        history.refuse_unusable(str(tmp_path / "file" / "below.jsonl"))


# ---------------------------------------------------------------- What is no history


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"# Gates\n", "no line of it is a gate; line 1: "),
        (b'{"at_ms": 1, "kind": "made"}\n', "it has schema None, not 1"),
        (b"[1, 2]\n", "no line of it is a gate"),
        (b'{"schema": 1}\n', "missing required field"),
        (b"\xff\xfe\x00" * 99, "no line of it is a gate"),
        (b"\x1b[2J\x1b[31m\n", r"\\x1b"),
    ],
)
def test_a_file_that_is_no_history_is_refused_and_left_alone(content, told, file):
    file.write_bytes(content)

    with pytest.raises(UsageError) as refused:
        history.read(file)
    assert told in str(refused.value) or told.replace("\\\\", "\\") in str(refused.value)
    assert str(file) in str(refused.value)
    assert str(refused.value).isprintable()
    if content:
        with pytest.raises(UsageError):
            history.refuse_unusable(str(file))
    else:
        history.refuse_unusable(str(file))
    assert file.read_bytes() == content


def test_a_newer_history_is_refused_by_name(file):
    written(file, entry(0))
    with file.open("ab") as more:
        more.write(history.encoded(entry(1)).replace(b'"schema":1', b'"schema":2'))

    for read in (history.read, lambda path: history.refuse_unusable(str(path))):
        with pytest.raises(UsageError, match="line 2 was written in schema 2, this program reads 1"):
            read(file)


def test_what_a_later_version_adds_to_a_line_is_no_hindrance(file):
    file.write_bytes(history.encoded(entry(0)).replace(b'"schema":1', b'"schema":1,"weather":"fine"'))

    assert history.read(file).entries == (entry(0),)


def test_a_place_without_a_history_is_told(tmp_path):
    with pytest.raises(UsageError, match="makes it"):
        history.read(tmp_path / "nowhere.jsonl")
    with pytest.raises(UsageError, match=r"none of its files ends with \.jsonl"):
        history.read(tmp_path)


def test_a_file_of_others_in_the_folder_is_told_in_one_line(tmp_path):
    written(tmp_path / "gates.jsonl", entry(0))
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n' * 50)

    found = history.read(tmp_path)

    assert len(found.entries) == 1
    (told,) = found.passed_over
    assert told.sentence.startswith(f"{tmp_path / 'other.jsonl'}: no line of it is a gate")


def test_a_torn_line_in_the_middle_is_told_with_its_number(file):
    lines = written(file, entry(0), entry(1), entry(2)).splitlines(keepends=True)
    file.write_bytes(lines[0] + lines[1][:50] + b"\n" + b"<<<<<<< main\n" + lines[2])

    found = history.read(file)

    assert found.entries == (entry(0), entry(2))
    assert [each.line for each in found.passed_over] == [2, 3]


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_of_others_steers_the_terminal_of_a_reader(named, cpu):
    odd = entry(0, cpu=cpu, head=replace(entry().head, named=named), sentence=named)

    line = history.encoded(odd)

    assert line.count(b"\n") == 1
    read = json.loads(line)
    assert read["head"]["named"] == texts.printable(named)
    assert read["sentence"].isprintable()


def test_an_escape_that_somebody_wrote_into_the_file_is_made_readable_too(file):
    file.write_bytes(history.encoded(entry(0)).replace(b'"main"', b'"\\u001b[31mmain"'))

    assert history.read(file).entries[0].head.named == r"\x1b[31mmain"


# ---------------------------------------------------------------- Series


def changes(found):
    return [", ".join(map(str, each.changes)) for each in found.series]


def test_two_machines_by_turns_are_two_series():
    found = of(*(entry(number, cpu=OTHER_CPU if number % 2 else "") for number in range(10)))

    assert [len(each.entries) for each in found.series] == [5, 5]
    assert changes(found) == ["", f"cpu {histories.MACHINE['cpu']} -> {OTHER_CPU}"]


def test_a_new_spark_begins_a_new_series_and_the_old_one_goes_on_when_it_is_back():
    found = of(*(entry(number, spark=spark) for number, spark in enumerate(["4.1.3", "4.2.0", "4.1.3"])))

    assert [[each.at.day for each in series.entries] for series in found.series] == [[1, 3], [2]]
    assert "pyspark 4.1.3 -> 4.2.0" in changes(found)[1]


def with_environment(number, **told):
    return entry(number, environment=histories.MACHINE | told)


@pytest.mark.parametrize(
    "other",
    [
        with_environment(1, cpu="another"),
        with_environment(1, cores="2"),
        with_environment(1, java="21"),
        with_environment(1, python="3.13.0"),
        with_environment(1, streamgauge="0.2.0"),
        with_environment(1, kafka="4.4.0"),
        entry(1, engine="other"),
        entry(1, burst_events=5000),
        entry(1, flags={"disorder": "storm"}),
        entry(1, base=replace(entry().base, named="v2.0")),
        entry(1, base=replace(entry().base, versions={"pyspark": "4.2.0"})),
    ],
)
def test_what_can_not_be_held_against_each_other_is_kept_apart(other):
    found = of(entry(0), other)

    assert len(found.series) == 2
    assert len(found.series[1].changes) == 1


@pytest.mark.parametrize(
    "other",
    [
        with_environment(1, kernel="7.0"),
        with_environment(1, python="3.12.9"),
        entry(1, flags={"seed": 7}),
        entry(1, head=replace(entry().head, named="feature", commit="b" * 40)),
        entry(1, threshold=0.03),
    ],
)
def test_what_is_alike_stays_together(other):
    assert len(of(entry(0), other).series) == 1


def test_commits_by_their_numbers_are_one_base():
    """`--base ${{ github.event.before }}` names another one each time."""
    commits = [f"{number:08x}" + "a" * 32 for number in range(300, 304)]
    by_number = [entry(n, base=replace(entry().base, named=c[: 7 + n], commit=c)) for n, c in enumerate(commits)]

    assert len(of(*by_number).series) == 1
    assert len(of(*by_number, entry(9)).series) == 2


def test_what_is_new_is_said_by_the_series_that_is_most_alike():
    found = of(entry(0), entry(1, engine="other", cpu=OTHER_CPU), entry(2, engine="other", cpu=OTHER_CPU, spark="5"))

    assert {each.name for each in found.series[2].changes} == {"pyspark", "pyspark of the base"}


def test_a_long_history_is_read_and_parted():
    made = many(1000)

    assert [len(each.entries) for each in of(*made).series] == [1000]


# ---------------------------------------------------------------- A gate's own line


@pytest.fixture
def kept(tmp_path):
    """What is read of a gate's folder."""

    def read(made=(), **what):
        folder = pages.gate(tmp_path, made, **what)
        for side in gated.read(folder).found.sides.values():
            store = Store(folder.path / side.run)
            store.write_json("environment.json", {"packages of the engine": {"pyspark": "4.1.3", "numpy": "2"}})
        return gated.read(folder)

    return read


def test_a_gate_leaves_its_ratios_its_figures_and_its_environment(kept):
    record = kept(measured(head=0.10))
    line = of_gate(record)

    (cost, *_), (told, *_) = line.metrics, record.found.effects
    assert (cost.metric, cost.ratio, cost.low, cost.high) == ("cost", told.head.estimate, told.head.low, told.head.high)
    assert (cost.level, cost.detectable, cost.answer) == (told.level, told.detectable, Answer.REGRESSED)
    assert cost.base
    assert cost.head
    assert 1.05 < cost.head / cost.base < 1.15
    assert (line.answer, line.engine) == (Answer.REGRESSED, "count/absolute")
    assert (line.base.named, line.head.named, line.rounds) == ("main", "c0ffee", 48)
    assert line.environment["streamgauge"] == "0.1.0"


def test_a_side_is_told_with_what_it_is_built_on(kept):
    record = kept(measured())
    store = Store(record.folder.path / record.found.sides[HEAD].run)

    assert of_gate(record).head.versions == {}, "nothing says by what it was started"

    tape = {"digest": "", "total": 0, "duration_ms": 0}
    store.write_json("plan.json", {"tape": tape, "manifest": replace(fake.MANIFEST, command=("{python}", "job.py"))})
    assert of_gate(record).head.versions == {"pyspark": "4.1.3"}


@pytest.mark.parametrize("side", [HEAD, BASE])
def test_where_somebody_counted_wrong_there_is_no_speed_whatever_was_kept(kept, side):
    record = kept(measured())
    effects = gate.effects(measured(), 0.05, 2)
    wrong = {**record.found.sides, side: Judged(Outcome.FAIL, "lost: 251 events", "runs/head")}
    planted = replace(record, found=replace(record.found, sides=wrong, effects=effects))

    line = of_gate(planted)

    assert line.metrics == ()
    assert {BASE: line.base, HEAD: line.head}[side].verdict is Outcome.FAIL
    assert "lost: 251 events" in line.sentence
    assert of_gate(record).metrics, "of a right one there would be some"


# ---------------------------------------------------------------- The machine


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        (
            "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n",
            "AMD EPYC (family 25, model 17)",
        ),
        ("processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "Arm 0x41/0xd0c"),
        ("", ""),
    ],
)
def test_the_model_of_a_cpu(cpuinfo, model):
    assert environment.cpu_model(cpuinfo) == model


def test_the_machine_is_told_with_its_cpu_and_the_broker():
    told = environment.describe()

    assert told["embedded kafka"].count(".") == 2
    assert isinstance(told["cpu"], str)


def test_days_do_not_depend_on_the_zone_of_who_looks():
    assert entry(1).at - entry(0).at == timedelta(days=1)
    assert json.loads(history.encoded(entry(0)))["at"].endswith("Z")
