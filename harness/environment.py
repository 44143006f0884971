"""Of which machine and versions a run's figures are."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import distributions
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from harness import __version__, doctor, jvm

PACKAGES = ("pyspark", "confluent-kafka", "kafka-python", "redis", "locust", "numpy", "pyarrow")


def describe(engine_python: Path = Path(sys.executable)) -> dict[str, Any]:
    """An engine that runs in an environment of its own has other packages than this program."""
    told = {
        "streamgauge": __version__,
        "python": platform.python_version(),
        "java": jvm.java_version(jvm.find_java()),
        "machine": doctor.machine(),
        "kernel": platform.release(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }
    own = {} if engine_python == Path(sys.executable) else {"packages of the engine": packages_of(engine_python)}
    return told | own


def packages_of(python: Path) -> dict[str, str]:
    """All that is installed in the virtual environment of this Python."""
    places = [str(site) for site in python.parent.parent.glob("lib/python*/site-packages")]
    return dict(sorted((each.name, each.version) for each in distributions(path=places)))
