"""The result of a run or an experiment, as values."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASS, FAIL, UNKNOWN = "PASS", "FAIL", "UNKNOWN"
MOST_WITNESSES = 5
COLOURS = {PASS: "#2a7a4b", FAIL: "#b3261e", UNKNOWN: "#8a6100"}
ROWS = ("engines", "pairs", "effects", "rates")  # what an answer of compare, gate or search has a list of


class Failed(AssertionError):  # noqa: N818  # it is an assertion
    """The job is wrong, or misses an objective."""


class Unknown(Exception):  # noqa: N818  # it is no error of the job
    """The run does not show whether the job is right."""


@dataclass(frozen=True)
class Witness:
    """One cell that a check found wrong."""

    cell: str
    expected: str
    seen: str
    detail: str


@dataclass(frozen=True)
class Check:
    """The outcome of one check of a run."""

    name: str
    outcome: str
    sentence: str
    witnesses: tuple[Witness, ...]


@dataclass(frozen=True)
class Result:
    """The result of a run. All of it is read from the run's folder."""

    folder: Path
    verdict: str  # PASS, FAIL or UNKNOWN
    sentence: str
    checks: tuple[Check, ...]
    measurement: Mapping[str, Any] | None  # as measurement.json; None if speed is withheld
    recovery: tuple[Mapping[str, Any], ...]  # as recovery.json, one for each fault

    @property
    def passed(self) -> bool:
        return self.verdict == PASS

    @property
    def findings(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if check.outcome != PASS)

    @property
    def report(self) -> Path:
        """The page of the run."""
        return self.folder / "report.html"

    def assert_pass(self) -> Result:
        """Return this result if it is PASS. Raise Failed if it is FAIL, and Unknown if it is UNKNOWN."""
        if self.passed:
            return self
        raise (Failed if self.verdict == FAIL else Unknown)(str(self))

    def to_pandas(self, table: str = "observed") -> Any:
        """Return a table of the run as a DataFrame: cells, timeline, observed, expected, latency, resources, log ...

        `cells` has a row for each cell: what was expected, what was seen, and how it stands. `timeline` has a row for
        each second, with rates, backlog and latency. It needs pandas in your environment, and for all tables but
        `cells` also pyarrow or fastparquet.
        """
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]  # yours, not ours

        file = self._file(table)
        return pandas.read_csv(file) if file.suffix == ".csv" else pandas.read_parquet(file)

    def _file(self, table: str) -> Path:
        files = [*self.folder.glob("figures/*.csv"), *self.folder.glob("*.parquet")]
        named = {file.stem: file for file in files}  # of the same name the Parquet file, which has all columns
        if table not in named:
            has = ", ".join(sorted(named)) or "none"
            raise LookupError(f"The run {self.folder.name} has no table {table!r}. It has {has}.")
        return named[table]

    def __str__(self) -> str:
        lines = [f"{self.verdict}  {self.sentence}"]
        for check in self.findings:
            shown = check.witnesses[:MOST_WITNESSES]
            lines += [f"  {each.cell}: expected {each.expected}, seen {each.seen}; {each.detail}" for each in shown]
        return "\n".join([*lines, f"  {self.report}"])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(check.name)}</td><td>{html.escape(check.sentence)}</td></tr>"
            for check in self.findings
        )
        return f"{_headline(self.verdict, self.sentence)}<table>{rows}</table><p>{html.escape(str(self.report))}</p>"


@dataclass(frozen=True)
class Experiment:
    """The result of many runs together: `gate`, `compare` or `search`."""

    folder: Path
    verdict: str  # PASS, FAIL or UNKNOWN
    sentence: str
    answer: Mapping[str, Any]  # the whole answer of the command, as its --json prints it

    @property
    def passed(self) -> bool:
        return self.verdict == PASS

    @property
    def report(self) -> Path:
        """The page of the experiment."""
        return self.folder / "report.html"

    def to_pandas(self) -> Any:
        """Return what was compared as a DataFrame: an engine, a metric or a rate in each row."""
        import pandas  # type: ignore[import-untyped, import-not-found, unused-ignore]  # yours, not ours

        return pandas.json_normalize(self._rows())

    def _rows(self) -> list[Mapping[str, Any]]:
        for key in ROWS:
            if isinstance(found := self.answer.get(key), list):
                return found
        raise LookupError(f"The answer of {self.folder.name} has no table. It has {', '.join(self.answer)}.")

    def __str__(self) -> str:
        return f"{self.verdict}  {self.sentence}\n  {self.report}"

    def _repr_html_(self) -> str:
        return f"{_headline(self.verdict, self.sentence)}<p>{html.escape(str(self.report))}</p>"


def _headline(verdict: str, sentence: str) -> str:
    return f'<p><b style="color:{COLOURS[verdict]}">{verdict}</b> {html.escape(sentence)}</p>'


def read(folder: Path) -> Result:
    """Read a run's folder. Raise FileNotFoundError if it holds no judged run."""
    if not (folder / "verdict.json").is_file():
        raise FileNotFoundError(f"{folder} is no folder of a judged run: it has no verdict.json.")
    verdict = _json(folder / "verdict.json")
    return Result(
        folder=folder.absolute(),
        verdict=verdict["outcome"],
        sentence=verdict["sentence"],
        checks=tuple(_check(each) for each in verdict["checks"]),
        measurement=_json_if_there(folder / "measurement.json"),
        recovery=tuple(_json_if_there(folder / "recovery.json") or ()),
    )


def _check(stored: Mapping[str, Any]) -> Check:
    witnesses = (Witness(each["cell"], each["expected"], each["seen"], each["detail"]) for each in stored["witnesses"])
    return Check(stored["name"], stored["outcome"], stored["sentence"], tuple(witnesses))


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _json_if_there(path: Path) -> Any:
    return _json(path) if path.is_file() else None
