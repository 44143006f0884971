"""Of which versions a run's figures are."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.host import cgroup
from harness.install import environment


def test_an_engine_with_an_environment_of_its_own_is_told_apart(tmp_path):
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("pyspark-4.0.1", "py4j-0.10.9.9"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
        (packages / f"{name}.dist-info" / "METADATA").write_text("Name: {}\nVersion: {}\n".format(*name.split("-")))

    assert environment.of_engine(Path(sys.executable)) == {}
    assert environment.of_engine(tmp_path / "bin" / "python") == {
        "packages of the engine": {"py4j": "0.10.9.9", "pyspark": "4.0.1"}
    }


def test_what_is_granted_is_kept(monkeypatch):
    monkeypatch.setattr(cgroup, "quota_cores", lambda *_: 1.5)
    monkeypatch.setattr(cgroup, "allowed_cores", lambda: 4)

    assert environment.describe()["granted"] == {"cores": 4, "quota": "1.5 cores"}
