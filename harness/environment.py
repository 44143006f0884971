"""Of which machine and versions a run's figures are."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of
from typing import Any

from harness import __version__, doctor, jvm

PACKAGES = ("pyspark", "confluent-kafka", "kafka-python", "redis", "locust", "numpy", "pyarrow")


def describe() -> dict[str, Any]:
    return {
        "streamgauge": __version__,
        "python": platform.python_version(),
        "java": jvm.java_version(jvm.find_java()),
        "machine": doctor.machine(),
        "kernel": platform.release(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }
