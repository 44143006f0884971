"""The pytest plug-in: streaming jobs as tests.

    def test_my_job(gauge):
        gauge("jobs/ad-counts", fault="kill@c3:batch=3").assert_pass()

`gauge` runs streamgauge once, and keeps the run below `--streamgauge-out`, in a folder of the test. FAIL fails the
test, with the verdict and its witnesses. UNKNOWN is an error of the test, not a failure: the run does not show whether
the job is right. So is a run that was not possible. All runs of a session share a Kafka and a Redis; each worker of
pytest-xdist has its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path

import pytest

from . import commands
from .program import Flag, ProgramError, UsageError
from .result import Failed, Result, Unknown
from .servers import Servers, servers

RUNS = "streamgauge-runs"
NOT_SAFE = re.compile(r"[^\w.=-]+", re.ASCII)
LONGEST = 150  # characters of a folder's name: file systems take 255 bytes
OTHER_SERVERS = frozenset({"kafka", "redis"})
IN_MEMORY = "fake"  # the engine that needs neither

Gauge = Callable[..., Result]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("streamgauge")
    group.addoption(
        "--streamgauge-out", metavar="FOLDER", default=RUNS, help=f"folder of the runs of tests [default: {RUNS}]"
    )


@pytest.fixture(scope="session")
def streamgauge_servers() -> Iterator[Servers]:
    """A Kafka and a Redis without Docker, for the whole session: `.kafka` is HOST:PORT, `.redis` a URL."""
    with servers() as started:
        yield started


@pytest.fixture
def gauge(request: pytest.FixtureRequest) -> Gauge:
    """Run streamgauge once: gauge(engine, fault=..., scenario=..., any_flag=...)."""
    out = Path(request.config.getoption("--streamgauge-out")) / folder_of(request.node.nodeid)

    def run(
        engine: str | Path | None = None,
        *,
        scenario: str | Path | None = None,
        fault: str | Sequence[str] | None = None,
        **flags: Flag,
    ) -> Result:
        shared = {} if engine == IN_MEMORY or OTHER_SERVERS & flags.keys() else _shared(request)
        return commands.run(scenario, engine=engine, fault=fault, **{"out": out, **shared, **flags})

    return run


def folder_of(test: str) -> str:
    """Name the folder of a test by its id. Of a long id, as of one with many faults, the end is a digest."""
    name = NOT_SAFE.sub("-", test).strip("-")
    if len(name) <= LONGEST:
        return name
    return f"{name[:LONGEST]}-{hashlib.sha256(test.encode(errors='replace')).hexdigest()[:8]}"


def _shared(request: pytest.FixtureRequest) -> dict[str, Flag]:
    started: Servers = request.getfixturevalue("streamgauge_servers")
    return {"kafka": started.kafka, "redis": started.redis, "reset": True}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,  # noqa: ARG001  # by its name pytest knows what to hand over
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report UNKNOWN as an error of the test, on the screen and in junit.xml: only an error has another moment than
    `call`. Our own traceback explains nothing, so the sentence stands alone.
    """
    report = yield
    if call.when == "call" and call.excinfo is not None:
        found = call.excinfo.value
        if isinstance(found, Unknown | ProgramError) and not isinstance(found, UsageError):
            report.when = "run"  # type: ignore[assignment]  # plug-ins know three moments, and pytest any
        if isinstance(found, Unknown | Failed | ProgramError):
            report.longrepr = str(found)
    return report


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    return ("error", "E", "UNKNOWN") if report.when == "run" and report.failed else None
