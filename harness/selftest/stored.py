"""One honest run of the fake engine, in checksum mode, whose files are then changed. Each change is a bug planted where
a reader of results would find it, and is judged from the files as `recheck` does.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.evidence.checksums import PREFIX, Checksum
from harness.judging import digests, verdict_file
from harness.judging.judge import judge
from harness.judging.stored_run import AFTER_STOP, OBSERVED, StoredRun
from harness.rundir.store import Store
from harness.selftest import cheat
from harness.selftest.report import words_of
from harness.selftest.runs import fake_run
from workloads.base import BESIDE, COUNTS

PARTS = ("results", "samples", "files", "edits")  # parts of expected.toml
ARABIC = {ord("0") + digit: 0x0660 + digit for digit in range(10)}
SAMPLES, LOG, HISTORY = "samples.parquet", "log.parquet", "history.jsonl"

Row = dict[str, Any]
Rows = list[Row]
Change = Callable[[Store], None]


def outcomes(folder: Path) -> Iterator[tuple[str, str]]:
    _, honest = fake_run(folder, checksum=True, fault="kill@c3:batch=3", disorder="mobile")
    planted = {name: _as_the_run_left_it(change) for name, change in {**RESULTS, **SEEN_MEANWHILE, **FILES}.items()}
    for number, (name, change) in enumerate({**planted, **EDITS}.items()):
        copy = Store(shutil.copytree(honest.path, folder / f"changed-{number}"))
        change(copy)
        yield name, words_of(judge(StoredRun(copy)))


def _as_the_run_left_it(change: Change) -> Change:
    """Recompute the digests of the changed files and remove the verdict: nothing reveals the change."""

    def apply(store: Store) -> None:
        change(store)
        cheat.recompute_all(store)

    return apply


def _rows(name: str, change: Callable[[Rows], Rows | None]) -> Change:
    """Change the rows of a table; a change that returns nothing has changed them in place. The second reading of the
    results gets the same change.
    """

    def apply(store: Store) -> None:
        for each in (OBSERVED, AFTER_STOP) if name == OBSERVED else (name,):
            table = store.read_table(each)
            rows = table.to_pylist()
            changed = change(rows)
            rows = rows if changed is None else changed
            store.write_table(each, {column: [row[column] for row in rows] for column in table.column_names})

    return apply


def _counts(rows: Rows) -> Rows:
    """Return the counts of ordinary keys, the smallest window first, without the harness' own opening events."""
    own = {row["key"] for row in rows if row["key"].startswith(PREFIX)}
    counts = [row for row in rows if PREFIX + row["key"] in own and int(row["value"]) > 1]
    return sorted(counts, key=lambda row: (int(row["field"]), row["key"]))[1:]


def _value(spell: Callable[[int], str], of: str = "value") -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        row = _counts(rows)[0]
        row[of] = spell(int(row[of]))

    return change


def _change_places(rows: Rows) -> None:
    """Swap two windows of a key with different counts."""
    one = _counts(rows)[0]
    other = next(row for row in _counts(rows) if row["key"] == one["key"] and row["value"] != one["value"])
    one["value"], other["value"] = other["value"], one["value"]


def _without_last_window(rows: Rows) -> Rows:
    """Remove the last window of the load; the one after it has the harness' own events."""
    last = sorted({row["field"] for row in _counts(rows)}, key=int)[-2]
    return [row for row in rows if row["field"] != last]


def _without_key(rows: Rows) -> Rows:
    gone = _counts(rows)[0]["key"]
    return [row for row in rows if row["key"] not in (gone, PREFIX + gone)]


def _as_string(rows: Rows) -> Rows:
    """Replace the hash of a key by a text."""
    gone = _counts(rows)[0]["key"]
    return [*_without_key(rows), {"key": gone, "field": "", "value": "7", "kind": "string"}]


def _more(**row: str) -> Callable[[Rows], Rows]:
    def change(rows: Rows) -> Rows:
        known = {**_counts(rows)[0], "value": "1"}
        return [*rows, {**known, **row}]

    return change


def _again(*, is_first: bool = False, **spell: Callable[[str], str]) -> Callable[[Rows], Rows]:
    """Repeat a cell after all others, or before them, with some of it written differently."""

    def change(rows: Rows) -> Rows:
        row = _counts(rows)[0]
        spelled = {**row, **{name: change(row[name]) for name, change in spell.items()}}
        return [spelled, *rows] if is_first else [*rows, spelled]

    return change


def _sums(change: Callable[[Checksum], str]) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        count = _counts(rows)[0]
        row = next(r for r in rows if (r["key"], r["field"]) == (PREFIX + count["key"], count["field"]))
        old = Checksum.read(row["value"])
        assert old
        row["value"] = change(old)

    return apply


def _without_sums(rows: Rows) -> Rows:
    return [row for row in rows if not row["key"].startswith(PREFIX)]


RESULTS: Mapping[str, Change] = {
    "as it was": _rows(OBSERVED, lambda rows: rows),
    "one event less": _rows(OBSERVED, _value(lambda count: str(count - 1))),
    "one event more": _rows(OBSERVED, _value(lambda count: str(count + 1))),
    "a count of 0": _rows(OBSERVED, _value(lambda _: "0")),
    "a negative count": _rows(OBSERVED, _value(lambda count: str(-count))),
    "a count as a float": _rows(OBSERVED, _value(lambda count: f"{count}.0")),
    "a count in quotes": _rows(OBSERVED, _value(lambda count: f"'{count}'")),
    "a count with a space": _rows(OBSERVED, _value(lambda count: f" {count}")),
    "an empty count": _rows(OBSERVED, _value(lambda _: "")),
    "a count with zeros before it": _rows(OBSERVED, _value(lambda count: f"00{count}")),
    "a count with a plus": _rows(OBSERVED, _value(lambda count: f"+{count}")),
    "a count with an underscore": _rows(OBSERVED, _value(lambda count: f"{str(count)[0]}_{str(count)[1:]}")),
    "a count in other digits": _rows(OBSERVED, _value(lambda count: str(count).translate(ARABIC))),
    "a count of 5,000 digits": _rows(OBSERVED, _value(lambda _: "9" * 5000)),
    "a count that fits no 64 bits": _rows(OBSERVED, _value(lambda _: str(1 << 63))),
    "a window with a zero before it": _rows(OBSERVED, _again(field=lambda text: f"0{text}")),
    "a window of 5,000 digits": _rows(OBSERVED, _again(field=lambda text: text * 400)),
    "a cell twice, the last one right": _rows(OBSERVED, _again(is_first=True, value=lambda text: f"{text}0")),
    "a cell twice, the first one right": _rows(OBSERVED, _again(value=lambda text: f"{text}0")),
    "a cell twice, both right": _rows(OBSERVED, _again()),
    "sums twice": _rows(OBSERVED, _again(key=lambda text: PREFIX + text, value=lambda _: "1,1")),
    "sums with a zero before them": _rows(OBSERVED, _sums(lambda old: f"0{old}")),
    "a count of 0 in a window too many": _rows(OBSERVED, _more(field="1900000000000", value="0")),
    "a key that is no text": _rows(OBSERVED, _more(key="\\xff\\xfe")),
    "a key that vanished whenever it was read": _rows(OBSERVED, _more(field="", value="", kind="none")),
    "a campaign is a list as well": _rows(OBSERVED, _more(field="", value="", kind="list")),
    "an orphan of Yahoo's schema": _rows(OBSERVED, _more(key="orphan", field="seen_count", kind="orphan")),
    "a record that is no result": _rows(OBSERVED, _more(key="counts[0@7]", field="", value="?", kind="no result")),
    "two windows changed places": _rows(OBSERVED, _change_places),
    "the last window is gone": _rows(OBSERVED, _without_last_window),
    "a campaign is gone": _rows(OBSERVED, _without_key),
    "a campaign is a text": _rows(OBSERVED, _as_string),
    "nothing is there": _rows(OBSERVED, lambda _: []),
    "a window in seconds": _rows(OBSERVED, _value(lambda window: str(window // 1000), of="field")),
    "a window that is no number": _rows(OBSERVED, _value(lambda window: f"{window}ms", of="field")),
    "a window of 10^15": _rows(OBSERVED, _more(field="1000000000000000")),
    "a window at the end of 64 bits": _rows(OBSERVED, _more(field="9223372036854775807", value="9223372036854775807")),
    "a window before all time": _rows(OBSERVED, _more(field="-9223372036854775808")),
    "a window too many": _rows(OBSERVED, _more(field="1900000000000")),
    "a campaign too many": _rows(OBSERVED, _more(key="00000000-0000-4000-8000-000000000000")),
    "one lost and one doubled": _rows(OBSERVED, _sums(lambda old: str(old + Checksum(7, 7)))),
    "sums that are none": _rows(OBSERVED, _sums(lambda old: f"{old.s1}")),
    "no sums": _rows(OBSERVED, _without_sums),
}


def _last_of_a_cell(rows: Rows) -> tuple[int, Row]:
    """Return the last row that raised a count above an earlier one: our own closing events come all at once."""
    before: set[tuple[int, int]] = set()
    found = 0
    for index, row in enumerate(rows):
        cell = row["campaign"], row["window_ms"]
        found = index if cell in before else found
        before.add(cell)
    return found, rows[found]


def _step_back(rows: Rows) -> Rows:
    """Make a cell disappear for a moment just before its last change."""
    index, row = _last_of_a_cell(rows)
    return [*rows[:index], {**row, "count": 0}, *rows[index:]]


def _at_the_start(rows: Rows) -> Rows:
    """Give a cell only its final count, before anything was sent."""
    _, row = _last_of_a_cell(rows)
    cell = (row["campaign"], row["window_ms"])
    others = [each for each in rows if (each["campaign"], each["window_ms"]) != cell]
    return [{**row, "at_us": rows[0]["at_us"]}, *others]


def _at_the_end(rows: Rows) -> Rows:
    """Give a cell of the first window only its final count, a minute after everything."""
    window = sorted({row["window_ms"] for row in rows})[1]
    last = max((row for row in rows if row["window_ms"] == window), key=lambda row: (row["count"], row["campaign"]))
    others = [r for r in rows if (r["campaign"], r["window_ms"]) != (last["campaign"], window)]
    return [*others, {**last, "at_us": rows[-1]["at_us"] + 60_000_000}]


SEEN_MEANWHILE: Mapping[str, Change] = {
    "a count went back meanwhile": _rows(SAMPLES, _step_back),
    "a count was there from the start": _rows(SAMPLES, _at_the_start),
    "a count came a minute after it was done": _rows(SAMPLES, _at_the_end),
}


def _one_other(rows: Rows) -> int:
    """Select a record that does not count."""
    return next(index for index, row in enumerate(rows) if row["kind"] == BESIDE)


def _one_view(rows: Rows) -> int:
    """Select a record that counts, of a key without the harness' own events."""
    return next(index for index, row in enumerate(rows) if row["kind"] == COUNTS and row["campaign"] == 1)


def _lost(one: Callable[[Rows], int]) -> Callable[[Rows], None]:
    def change(rows: Rows) -> None:
        del rows[one(rows)]

    return change


def _twice(one: Callable[[Rows], int], **others: int) -> Callable[[Rows], None]:
    return lambda rows: rows.insert(one(rows), {**rows[one(rows)], **others})


def _view_moved(rows: Rows) -> None:
    rows[_one_view(rows)]["event_time_ms"] -= 4000


def _both(*changes: Change) -> Change:
    def apply(store: Store) -> None:
        for change in changes:
            change(store)

    return apply


def _record_altered(rows: Rows) -> None:
    rows[_one_other(rows)]["user"] += 1


def _record_moved(rows: Rows) -> None:
    """Move a record to another partition, so that another batch took it."""
    rows[_one_view(rows)]["partition"] += 1


def _without_lines(kind: str) -> Change:
    return lambda store: cheat.rewrite(store, lambda line: None if line["kind"] == kind else line)


def _told(kind: str, change: Callable[[Row], None]) -> Change:
    """Change the lines of one kind in the history."""

    def changed(line: Row) -> Row:
        if line["kind"] == kind:
            change(line)
        return line

    return lambda store: cheat.rewrite(store, changed)


def _half_as_long(observer: Row) -> None:
    observer["wall_s"] /= 2


def _first_half(rows: Rows) -> Rows:
    middle_us = (rows[0]["at_us"] + rows[-1]["at_us"]) / 2
    return [row for row in rows if row["at_us"] <= middle_us]


def _torn(name: str) -> Change:
    def change(store: Store) -> None:
        content = (store.path / name).read_bytes()
        (store.path / name).write_bytes(content[: len(content) // 2])

    return change


def _gone(name: str) -> Change:
    return lambda store: (store.path / name).unlink()


def _without_column(name: str, column: str) -> Change:
    def change(store: Store) -> None:
        table = store.read_table(name)
        store.write_table(name, {each: table.column(each) for each in table.column_names if each != column})

    return change


def _json(name: str, change: Callable[[Any], None]) -> Change:
    def apply(store: Store) -> None:
        value = store.read_json(name)
        change(value)
        store.write_json(name, value)

    return apply


def _as_of_schema_2(store: Store) -> None:
    """Make a new run look like one of schema 2, which had no digests."""
    _json("owner.json", lambda owner: owner.update(schema=2))(store)
    _gone(digests.FILE)(store)


def of_schema_3(store: Store) -> None:
    """Convert a run to the files of schema 3."""
    _told("made", lambda line: line.pop("schema"))(store)
    _told(digests.CLOSED, lambda line: line.pop("files"))(store)
    _told(verdict_file.KIND, lambda line: line.pop("digest"))(store)
    _json("plan.json", lambda plan: plan.pop("spec"))(store)
    _json("owner.json", lambda owner: owner.update(schema=3))(store)
    cheat.recompute_digests(store)


def of_schema_2(store: Store) -> None:
    of_schema_3(store)
    _as_of_schema_2(store)


def _never_judged(store: Store) -> None:
    """Make a run look as if it had been interrupted before its verdict."""
    _without_lines(verdict_file.KIND)(store)
    for name in (verdict_file.FILE, digests.FILE):
        _gone(name)(store)


def _without_last_look(rows: Rows) -> Rows:
    found, _ = _last_of_a_cell(rows)
    return [*rows[:found], *rows[found + 1 :]]


def _and_more(key: str) -> Callable[[Row], None]:
    return lambda line: line.update({key: line[key] + 1})


VIEW_LOST = _rows(LOG, _lost(_one_view))
FILES: Mapping[str, Change] = {
    "a record of the log is gone": _rows(LOG, _lost(_one_other)),
    "a record of the log is there twice": _rows(LOG, _twice(_one_other)),
    "a record of the log is altered": _rows(LOG, _record_altered),
    "a record of the log lies in another partition": _rows(LOG, _record_moved),
    "the fold of the tape is off by one": _rows(
        "expected.parquet", lambda rows: rows[0].update(views=rows[0]["views"] + 1)
    ),
    "nothing is told of the fault": _without_lines("fault"),
    "nothing is told of the engine": _without_lines("engine"),
    "nothing is told of the stop": _without_lines("stopped"),
    "the second reading is gone": _gone(AFTER_STOP),
    "nobody looked meanwhile": _without_lines("observer"),
    "nobody looked in the second half": _both(_told("observer", _half_as_long), _rows(SAMPLES, _first_half)),
    "what could not be read meanwhile is gone": _gone("glitches.parquet"),
    "the results are torn": _torn(OBSERVED),
    "the log is gone": _gone(LOG),
    "a column of the log is gone": _without_column(LOG, "offset"),
    "a view of the log is gone": VIEW_LOST,
    "a view of the log is gone, and one more was counted": _both(VIEW_LOST, RESULTS["one event more"]),
    "a view of the log is gone, and others are lost": _both(VIEW_LOST, RESULTS["a campaign is gone"]),
    "a view of the log is there twice": _rows(LOG, _twice(_one_view)),
    "a view of the log is in another window": _rows(LOG, _view_moved),
    "a view of the log is nobody's": _rows(LOG, _twice(_one_view, event_id=-1)),
    "the progress is gone": _gone("progress.jsonl"),
    "the progress is empty": lambda store: store.write_bytes("progress.jsonl", b""),
    "the looks are empty": _rows(SAMPLES, lambda _: []),
    "the looks are gone": _gone(SAMPLES),
    "the books of the load are empty": _rows("sends.parquet", lambda _: []),
    "the batches are gone": _gone("batches.json"),
    "the spec asks for no checksums": _json("spec.json", lambda spec: spec["tape"].update(checksum=False)),
    "the spec names another sink": _json("spec.json", lambda spec: spec.update(sink="nowhere")),
    "the spec drops what is late sooner": _json("spec.json", lambda spec: spec.update(watermark_ms=0)),
    "the plan has no spec": _json("plan.json", lambda plan: plan.pop("spec")),
    "the last look at a count is gone": _rows(SAMPLES, _without_last_look),
}

# Edits after the verdict.
EDITS: Mapping[str, Change] = {
    "a count was edited": _rows(OBSERVED, _value(lambda count: str(count + 1))),
    "a file was taken away": _gone("progress.jsonl"),
    "a file was put there": lambda store: store.write_json("engine_settings.json", {}),
    "the spec was edited": _json("spec.json", lambda spec: spec.update(late_dropped_max=None)),
    "a line of the history was taken away": _without_lines("observer"),
    "a line of the history was added": lambda store: store.tell("fault", report={}),
    "the digests were taken away": _gone(digests.FILE),
    "the digests and all verdicts were taken away": _never_judged,
    "a count was edited, and its digest": _both(RESULTS["one event more"], cheat.recompute_digests),
    "the observer saw more": _both(_told("observer", _and_more("rows")), cheat.recompute_digests),
    "more was changed by the stop": _both(_told("stopped", _and_more("changed")), cheat.recompute_digests),
    "the first verdict was FAIL": _told(verdict_file.KIND, lambda line: line.update(outcome="FAIL")),
    "the verdict was edited": _json(verdict_file.FILE, lambda verdict: verdict.update(slack=1)),
    "a run that is called one of schema 2, without digests": _as_of_schema_2,
    "a run of schema 2, which had no digests": of_schema_2,
    "a run of schema 3, as it was": of_schema_3,
}
