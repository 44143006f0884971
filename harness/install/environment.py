"""Describes the machine and the versions that a run was measured with."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import distributions
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from harness import __version__
from harness.host import cgroup
from harness.install import doctor, jvm

CPUINFO = Path("/proc/cpuinfo")
PACKAGES = ("pyspark", "confluent-kafka", "kafka-python", "redis", "locust", "numpy", "pyarrow")


def describe() -> dict[str, Any]:
    return {
        "streamgauge": __version__,
        "python": platform.python_version(),
        "java": jvm.java_version(jvm.find_java()),
        "machine": doctor.machine(),
        "cpu": cpu(),
        "granted": {"cores": cgroup.allowed_cores(), "quota": _quota(cgroup.quota_cores())},
        "kernel": platform.release(),
        "embedded kafka": embedded_kafka(),
        "packages": {name: version_of(name) for name in PACKAGES},
    }


def cpu() -> str:
    """Return the CPU model, the best hint at what a time means on another machine."""
    if sys.platform == "darwin":
        asked = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        with suppress(OSError):
            return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    with suppress(OSError):
        return cpu_model(CPUINFO.read_text(encoding="utf-8", errors="replace"))
    return ""


def cpu_model(cpuinfo: str) -> str:
    """Parse the model name, with family and model numbers, since a virtual machine may hide the name."""
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in cpuinfo.splitlines())}
    if "CPU part" in told:
        return f"Arm {told.get('CPU implementer', '')}/{told['CPU part']}"
    if "model name" not in told:
        return ""
    name = " ".join(told["model name"].split())
    return f"{name} (family {told.get('cpu family', '?')}, model {told.get('model', '?')})"


def embedded_kafka() -> str:
    """Return the version of the broker that comes with this program."""
    jars = jvm.read_sums(jvm.source_folder("services") / "jars.sha256")
    named = (re.fullmatch(r"kafka-server-([\d.]+)\.jar", jar) for jar in jars)
    return next((match[1] for match in named if match), "")


def _quota(cores: float | None) -> str:
    return "none" if cores is None else f"{cores:g} cores"


def of_engine(python: Path) -> dict[str, Any]:
    """List the packages of an engine's own environment; an engine in our environment has no list."""
    if python == Path(sys.executable):
        return {}
    sites = [str(site) for site in python.parent.parent.glob("lib/python*/site-packages")]
    return {"packages of the engine": dict(sorted((each.name, each.version) for each in distributions(path=sites)))}
