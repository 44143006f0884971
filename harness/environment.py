"""Of which machine and versions a run's figures are."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import distributions
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from harness import __version__, doctor, grants, jvm

PACKAGES = ("pyspark", "confluent-kafka", "kafka-python", "redis", "locust", "numpy", "pyarrow")


def describe() -> dict[str, Any]:
    return {
        "streamgauge": __version__,
        "python": platform.python_version(),
        "java": jvm.java_version(jvm.find_java()),
        "machine": doctor.machine(),
        "granted": {"cores": grants.allowed_cores(), "quota": _quota(grants.quota_cores())},
        "kernel": platform.release(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }


def _quota(cores: float | None) -> str:
    return "none" if cores is None else f"{cores:g} cores"


def of_engine(python: Path) -> dict[str, Any]:
    """What an engine has in an environment of its own; nothing more is to be said of one that runs in ours."""
    if python == Path(sys.executable):
        return {}
    places = [str(site) for site in python.parent.parent.glob("lib/python*/site-packages")]
    return {"packages of the engine": dict(sorted((each.name, each.version) for each in distributions(path=places)))}
