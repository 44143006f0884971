"""A Spark job of streamgauge itself, with the cluster that it may have for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from harness.engines import complaint
from harness.engines import manifest as manifests
from harness.engines.config import write_privately
from harness.engines.job import Surroundings
from harness.engines.process import SCRATCH, environment_of
from harness.engines.spark.standalone import StandaloneCluster, home_of
from harness.install.origin import ROOT
from harness.model import workers_of_master
from harness.services import children
from harness.services.children import Child
from harness.util.texts import shown

ENGINE = "spark"  # whose Python, jars and environment it gets
STOP_DEADLINE_S = 5.0  # it stops early only if what it made is thrown away
LONGEST = 400  # characters of Spark's reason


class SparkJob:
    """One job, started once. `private` is a folder that vanishes; `log` gets what the job prints."""

    def __init__(self, module: str, surroundings: Surroundings, private: Path, log: Path) -> None:
        self._module, self._surroundings, self._private, self._log = module, surroundings, private, log
        (private / SCRATCH).mkdir(exist_ok=True)
        env = environment_of(manifests.load(ENGINE), {}, private, Surroundings(surroundings.python))
        self._env = {**env, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
        self._cluster: StandaloneCluster | None = None
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        assert self._child is not None
        return self._child

    @contextmanager
    def running(self, master: str, conf: Mapping[str, str], config: Mapping[str, Any]) -> Iterator[None]:
        """Start it, and have it ended with all of its processes afterwards."""
        try:
            self._start(master, conf, config)
            yield
        finally:
            if self._child:
                self._child.stop(STOP_DEADLINE_S)
            if self._cluster:
                self._cluster.stop()

    def pids(self) -> list[int]:
        return [*([self._child.pid] if self._child else []), *(self._cluster.pids() if self._cluster else ())]

    def reason(self) -> str:
        """Return why it ended, as its log shows."""
        return shown(" ".join(complaint.reason(self.child.tail(complaint.REMEMBERED))).lstrip(": "), LONGEST)

    def _start(self, master: str, conf: Mapping[str, str], config: Mapping[str, Any]) -> None:
        if workers := workers_of_master(master):
            home, folder = home_of(self._surroundings.python), self._private / "cluster"
            self._cluster = StandaloneCluster(workers, home, folder, self._log.parent, self._env)
            master = self._cluster.start()
        whole = {
            **config,
            "master": master,
            "options": {"spark.executorEnv.PYTHONPATH": str(ROOT), **conf},
            "jars": [str(jar) for jar in self._surroundings.jars],
            "java_options": "",
            "crash_path": str(self._private / "crash"),  # no order is given there
        }
        path = write_privately(self._private / "job.json", msgspec.json.encode(whole).decode())
        self._log.unlink(missing_ok=True)
        words = [str(self._surroundings.python), "-m", self._module, str(path)]
        self._child = children.spawn(words, name="spark", log=self._log, env=self._env, cwd=ROOT)
