"""Measures the applications of docs/measure/applications.md: each engine once without a fault, and once killed.

    python -m tools.applications [NAME ...]      measures what is not measured yet, or these anew; then writes the page
    python -m tools.applications --check         names what the page shows and is not kept, and exits with 1

NAME is a scenario, or a scenario and an engine: `capping`, `capping/flink`. The figures are kept in applications/
beside this file, with the machine and the commands; the picture of a scenario is that of its first engine's killed run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from harness.install import environment
from harness.util.texts import many, three_digits

ROOT = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_suffix("")
PAGE = ROOT / "docs" / "measure" / "applications.md"
PICTURES = ROOT / "docs" / "pictures" / "applications"
BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->\n"
NOT_YET = "Not measured yet: it takes an hour of a machine with nothing else to do.\n"
KILL, LOAD = "kill@t>=20s", "45s"
LONGEST_S = 600


class Case(NamedTuple):
    """One engine of an application, and the rate that it gets."""

    scenario: str
    engine: str
    rate: int
    sink: str = ""

    @property
    def name(self) -> str:
        return "/".join(filter(None, (self.scenario, self.engine, self.sink)))

    @property
    def file(self) -> Path:
        return KEPT / f"{self.name.replace('/', '-')}.json"

    def arguments(self, fault: str) -> list[str]:
        sink = ["--sink", self.sink] if self.sink else []
        load = ["--rate", str(self.rate), "--duration", LOAD, "--fault", fault]
        return ["run", self.scenario, "--engine", self.engine, *sink, *load]


CASES = (
    Case("readers-distinct", "flink", 2000),
    Case("readers-distinct", "flink", 2000, "stream"),
    Case("readers-distinct", "spark", 2000),
    Case("readers-distinct", "spark-tws", 2000),
    Case("readers-join", "flink", 1000),
    Case("readers-join", "spark", 500),
    Case("readers-late", "flink", 2000),
    Case("readers-late", "spark-tws", 2000),
    Case("top-pages", "flink", 2000),
    Case("top-pages", "spark-tws", 2000),
    Case("capping", "flink", 1000),
    Case("capping", "spark-tws", 1000),
    Case("pattern", "flink", 2000),
    Case("pattern", "spark-tws", 1000),
    Case("enrichment", "spark-tws", 1000),
    Case("etl", "spark-delta", 1000),
    Case("page-visits-sliding", "spark", 2000),
)


class Figures(msgspec.Struct, frozen=True):
    """What is kept of a run. None: it was withheld."""

    command: str
    verdict: str
    sentence: str
    slack: int | None
    processed_per_s: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    cpu_s_per_million: float | None = None
    peak_rss_mib: float | None = None
    first_output_s: float | None = None
    caught_up_s: float | None = None
    withheld: str = ""


class Measured(msgspec.Struct, frozen=True):
    """Both runs of a case."""

    machine: dict[str, Any]
    calm: Figures
    killed: Figures


def measured(case: Case) -> Measured:
    calm, _ = _run(case, "none")
    killed, run = _run(case, KILL)
    picture = PICTURES / f"{case.scenario}.png"
    if case == next(each for each in CASES if each.scenario == case.scenario):
        picture.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(run / "figures" / "timeline.png", picture)
    return Measured(environment.describe(), calm, killed)


def _run(case: Case, fault: str) -> tuple[Figures, Path]:
    arguments = case.arguments(fault)
    print(f"  {' '.join(arguments)}", file=sys.stderr)
    out = Path(tempfile.mkdtemp(prefix="streamgauge-applications-"))
    command = [sys.executable, "-E", "-m", "harness", *arguments, "--json", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=LONGEST_S, check=False)
    answer = json.loads(done.stdout)
    return figures("./streamgauge " + " ".join(arguments), answer), Path(answer["run"])


def figures(command: str, answer: dict[str, Any]) -> Figures:
    """Select what is kept of the answer of `run --json`."""
    found = answer.get("measurement") or {}
    ways = {each["way"]: each["corrected"] for each in found.get("latency", ())}
    latency: dict[str, float] = next(
        (ways[way] for way in ("probes", "rank-matched", "final value") if way in ways), {}
    )
    cost = [each for each in found.get("cost", ()) if each["part"] in ("engine", "python workers")]
    recovery: dict[str, Any] = next(iter(answer.get("recovery") or [{}])).get("quantities", {})
    return Figures(
        command,
        answer["verdict"],
        answer["sentence"],
        answer["slack"],
        found.get("processed_per_s"),
        latency.get("p50"),
        latency.get("p99"),
        sum(each["cpu_s_per_million"] for each in cost) if cost else None,
        sum(each["peak_rss_mib"] for each in cost) if cost else None,
        (recovery.get("first_output_s") or {}).get("value"),
        (recovery.get("catch_up_s") or {}).get("value"),
        answer["withheld"],
    )


def table() -> Iterator[str]:
    """Yield the lines of the page between its marks."""
    if not any(case.file.exists() for case in CASES):
        yield NOT_YET
        return
    yield "| question, engine | after a kill | kept up with | p50, p99 | CPU-s/M | memory | back in | caught up |\n"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    for case in CASES:
        if case.file.exists():
            yield row(case, msgspec.json.decode(case.file.read_bytes(), type=Measured))


def row(case: Case, found: Measured) -> str:
    calm, killed = found.calm, found.killed
    slack = f", slack {killed.slack:,}" if killed.slack else ""
    cells = (
        " ".join(filter(None, (case.scenario + ",", case.engine, f"`{case.sink}`" if case.sink else ""))),
        f"{killed.verdict}{slack}",
        _said(calm.processed_per_s, "/s"),
        f"{_said(calm.p50_ms, ' ms')}, {_said(calm.p99_ms, ' ms')}",
        _said(calm.cpu_s_per_million),
        _said(calm.peak_rss_mib, " MiB"),
        _said(killed.first_output_s, " s"),
        _said(killed.caught_up_s, " s"),
    )
    return f"| {' | '.join(cells)} |\n"


def _said(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{three_digits(value)}{unit}"


def written(page: str) -> str:
    """Return the page with the table as it is kept."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{''.join(table())}{END}{after}"


def main(arguments: Sequence[str]) -> int:
    page = PAGE.read_text(encoding="utf-8")
    if "--check" in arguments:
        return int(written(page) != page)
    KEPT.mkdir(exist_ok=True)
    wanted = [case for case in CASES if any(case.name.startswith(name) for name in arguments or [""])]
    left = [case for case in wanted if arguments or not case.file.exists()]
    for number, case in enumerate(left, 1):
        print(f"{number} of {many(len(left), 'case')}: {case.name}", file=sys.stderr)
        case.file.write_bytes(msgspec.json.format(msgspec.json.encode(measured(case)), indent=1) + b"\n")
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
