"""Anything at all, where others write: only the errors that end in a sentence, and never a PASS of what is wrong.

A short round each; `./streamgauge test --all` goes on for ten minutes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from harness.config import plan
from harness.config.scenario_keys import KEYS
from harness.engines import fake, manifest, progress
from harness.judging.judge import judge
from harness.judging.stored_run import StoredRun
from harness.measuring import measure
from harness.model import DEFAULT_SCENARIO, EngineManifest, HarnessError, Outcome, UsageError
from harness.results.redis_scan import Row, interpret
from harness.rundir.missing_evidence import MissingEvidence
from harness.rundir.store import Store
from reports import run_page
from reports.evidence import Evidence
from tests.quality import tampered
from workloads.cells import Codes

PARTS = 6
LONG_S = 600 / PARTS if os.environ.get("STREAMGAUGE_TEST_ALL") else 0
ALLOWED = (UsageError, HarnessError, MissingEvidence)
pytestmark = pytest.mark.timeout(1200)

numbers = st.one_of(
    st.integers(), st.floats(), st.sampled_from([0, -1, 1 << 31, 1 << 43, (1 << 63) - 1, 1 << 63, 10**30, 10**400])
)
spelled = numbers.map(lambda number: f"{number:.400g}" if isinstance(number, float) else str(number))
texts = st.one_of(st.text(max_size=12), spelled, st.sampled_from(["1700000000000", "nan", "0007", "-0", "[" * 5000]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda each: st.one_of(st.lists(each, max_size=3), st.dictionaries(texts, each, max_size=3)),
    max_leaves=6,
)


def fuzz(strategy: st.SearchStrategy[Any], body: Callable[[Any], None], examples: int = 25) -> None:
    """One round, and then others of other seeds for as long as there is time."""
    begun_s, number = time.monotonic(), 0
    while number == 0 or time.monotonic() - begun_s < LONG_S:
        checked = settings(max_examples=examples, suppress_health_check=list(HealthCheck), database=None)
        round_ = seed(number)(checked(given(strategy)(body)))
        round_()
        number += 1


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A run whose results hold a campaign that does not exist."""
    return tampered.make(tmp_path_factory.mktemp("fuzz"))["a campaign too many"]


def anew(wrong: Store, folder: Path) -> Store:
    """The last example is thrown away."""
    shutil.rmtree(folder / "run", ignore_errors=True)
    return tampered.copied(wrong, folder / "run")


def never_passes(store: Store, draw_page: bool = False) -> None:
    """Judged, measured and shown."""
    verdict = judge(StoredRun(Store(store.path)))
    assert verdict.outcome is not Outcome.PASS
    assert verdict.words
    with suppress(*ALLOWED):
        measure.save(StoredRun(Store(store.path)), verdict)
    if draw_page:
        store.write_json("verdict.json", verdict)
        run_page.page_of(Evidence(Store(store.path)))


def test_result_rows(wrong, tmp_path):
    known = wrong.read_table("observed.parquet").to_pylist()
    stranger = known[-1]
    keys, fields = (
        st.one_of(texts, st.sampled_from(sorted({row[name] for row in known}))) for name in ("key", "field")
    )
    row = st.builds(Row, keys, fields, texts, st.sampled_from(["hash", "string", "list", "none", ""]))

    def body(rows: list[Row]) -> None:
        interpret(rows, {known[0]["key"]: 0}, Codes(), ())
        store = anew(wrong, tmp_path)
        table = [*(each._asdict() for each in rows), *known[len(rows) :], stranger]
        columns = {name: [each[name].encode(errors="replace").decode() for each in table] for name in Row._fields}
        store.write_table("observed.parquet", columns)
        tampered.with_digests(store)
        never_passes(store)

    fuzz(st.lists(row, max_size=6), body)


def test_progress_lines(wrong, tmp_path):
    line = st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(("at", "batch", "rows", "took_ms", "watermark_ms", "dropped", *progress.OF_STATE), values),
            "offsets": st.one_of(values, st.dictionaries(texts, values, max_size=3)),
            "end_ms": st.one_of(values, st.lists(numbers, min_size=2, max_size=2)),
        },
    ).map(lambda told: json.dumps(told).encode())
    whole = st.builds(
        lambda at, offset: json.dumps({"at": at, "batch": 1, "rows": 1, "offsets": {"0": offset}}).encode(),
        numbers,
        numbers,
    )

    def body(lines: list[bytes]) -> None:
        for each in lines:
            with suppress(ValueError):
                progress.parse(each)
        store = anew(wrong, tmp_path)
        with (store.path / progress.FILE).open("ab") as file:
            file.write(b"\n".join(lines) + b"\n")
        tampered.with_digests(store)
        never_passes(store)

    fuzz(st.lists(st.one_of(line, whole, st.binary(max_size=40)), max_size=5), body)


def as_toml(value: Any) -> str:
    """JSON is TOML but for null, objects, and how numbers are spelled."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {as_toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value if value is not None else "")


MANIFEST_KEYS = [field.name for field in dataclasses.fields(EngineManifest)]
SCENARIO_KEYS = sorted(KEYS)


def test_manifests(tmp_path):
    path = tmp_path / "engine" / "manifest.toml"
    path.parent.mkdir()
    keys = st.one_of(st.sampled_from(MANIFEST_KEYS), st.text("abc_-", min_size=1, max_size=5))
    tables = st.dictionaries(keys, values, max_size=6).map(
        lambda each: "".join(f"{key} = {as_toml(value)}\n" for key, value in each.items())
    )
    good = 'command = ["x", "{config}"]\n[[sinks]]\nname = "a"\nlate = "drop"\nguarantee = "none"\n'

    def body(content: str) -> None:
        path.write_bytes((content + good).encode(errors="replace"))
        with suppress(*ALLOWED):
            manifest.load(str(path))

    fuzz(st.one_of(tables, st.text(max_size=60)), body, 200)


def test_scenarios_as_files(tmp_path):
    path = tmp_path / "scenario.toml"
    keys = st.one_of(st.sampled_from(SCENARIO_KEYS), st.text("abc_-", min_size=1, max_size=5))
    tables = st.dictionaries(keys, values, max_size=5).map(
        lambda each: "".join(f"{key} = {as_toml(value)}\n" for key, value in each.items())
    )

    def body(content: str) -> None:
        path.write_bytes(content.encode(errors="replace"))
        with suppress(*ALLOWED):
            name, read = plan.read_scenario(str(path))
            plan.resolve(name, read, {}, lambda *_: fake.MANIFEST)

    fuzz(st.one_of(tables, st.text(max_size=60)), body, 200)


def test_scenarios_as_flags():
    flags = st.dictionaries(st.sampled_from(SCENARIO_KEYS), st.one_of(texts, numbers, st.booleans()), max_size=4)

    def body(given_: dict[str, Any]) -> None:
        with suppress(*ALLOWED):
            name, keys = plan.read_scenario(DEFAULT_SCENARIO)
            plan.resolve(name, keys, given_, lambda *_: fake.MANIFEST)

    fuzz(flags, body, 200)


def test_files_of_a_run(wrong, tmp_path):
    made = ("report.html", "junit.xml", "summary.md", "annotations.txt")
    names = [name for name in tampered.files_of(wrong) if name not in made]
    edits = st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=8), st.integers(0, 8)), min_size=1, max_size=4)

    def body(drawn: tuple[str, list[tuple[float, bytes, int]], bool]) -> None:
        name, changes, with_digests = drawn
        store = anew(wrong, tmp_path)
        content = bytearray((store.path / name).read_bytes())
        for share, new, gone in changes:
            at = int(share * len(content))
            content[at : at + gone] = new
        if bytes(content) == (store.path / name).read_bytes():
            return
        (store.path / name).write_bytes(bytes(content))
        if with_digests and name != "digests.json":
            tampered.with_digests(store)
        never_passes(store, draw_page=True)

    fuzz(st.tuples(st.sampled_from(names), edits, st.booleans()), body)
