"""The shipped engines: their ids, versions, and the files that come with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.engines import fake
from harness.install import jvm
from harness.model import EngineManifest

HERE = Path(__file__).parent
WORKLOADS = HERE.parent.parent / "workloads"

# The shipped engines. Add one: a folder, and its line here. (The fake one has no files.)
IDS = (
    "reference",
    "spark",
    "spark-rtm",
    "spark-tws",
    "spark-batch",
    "spark-pandas",
    "spark-postgresql",
    "spark-delta",
    "spark-iceberg",
    "spark-parquet",
    "flink",
    "flink-standalone",
    "flink-java",
    "flink-batch",
    "flink-postgresql",
    "flink-iceberg",
    "kafka-streams",
    "quix",
)
SHIPPED = {name: HERE / name / "manifest.toml" for name in IDS}
FILE, JOB = "manifest.toml", ".py"


@dataclass(frozen=True)
class Versions:
    """An engine that is available in other versions than the shipped one."""

    name: str
    example: str
    oldest: tuple[int, int, int]
    why: str  # the reason why older ones do not work


VERSIONS = {
    "spark": Versions("Spark", "4.1.1", (4, 0, 0), "the job creates a table from Arrow and uses try_cast"),
    "flink": Versions("Flink", "2.2.1", (2, 2, 0), "its Kafka connector was built for that version"),
}
IN_VERSIONS = tuple(f"{name}@VERSION" for name in VERSIONS)


def jobs_folder(workload: str) -> Path:
    return WORKLOADS / workload / "jobs"


def job_file(engine: str, workload: str) -> Path:
    """Return the file with a shipped engine's claims for a workload, which may not exist."""
    return jobs_folder(workload) / f"{_stem(engine)}.toml"


def job_path(manifest: EngineManifest) -> Path:
    """Return the value of `{job}`."""
    return jobs_folder(manifest.workload) / (manifest.program or f"{_stem(manifest.job)}{JOB}")


def _stem(engine: str) -> str:
    """A job is usually a Python module, so dashes become underscores."""
    return engine.replace("-", "_")


def workloads_of(engine: str) -> list[str]:
    """Return the workloads that a shipped engine has a job for."""
    if engine == fake.FAKE:
        return [fake.MANIFEST.workload]
    return [path.parent.parent.name for path in sorted(WORKLOADS.glob(f"*/jobs/{_stem(engine)}.toml"))]


def results_list(source: str) -> Path:
    """Return the pinned list of packages that such results are read with, which may not exist."""
    return HERE.parent / "results" / f"{source}.lock"


def lock_file(packages: str) -> Path:
    """Return the pinned list of packages for a separate environment."""
    folder = jvm.pins_folder(packages) if jvm.is_version(packages) else HERE / packages
    return folder / "requirements.lock"
