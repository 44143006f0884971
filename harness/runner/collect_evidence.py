"""The seventh step: store all results, orphans included, the whole log, and the results once more, before judging."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from typing import Any

from harness.judging.stored_run import AFTER_STOP, LOG, OBSERVED
from harness.model import EngineReport
from harness.results.base import HeldFile
from harness.results.redis_scan import Row, UnreadableError, UnreadableTableError, as_columns, unlike
from harness.rundir.store import Store
from harness.runner.engine_supervisor import EngineSupervisor, Tell
from harness.runner.screen import Screen, sent_so_far
from harness.runner.world.base import ServiceGone, World


class EvidenceCollector:
    def __init__(self, world: World, store: Store, screen: Screen, tell: Tell, life: EngineSupervisor) -> None:
        self._engine, self._results, self._log, self._servers = world.engine, world.results, world.log, world.servers
        self._store, self._screen, self._tell, self._life = store, screen, tell, life
        self._rows: Sequence[Row] = ()  # of the first read

    def all(self, report: EngineReport) -> None:
        self._screen.phase("read", "all results and the whole log")
        if (sampled := self._results.stop_observing()) is not None:
            self._store.write_table("samples.parquet", sampled.columns)
            self._store.write_table("glitches.parquet", sampled.glitches)
            if sampled.versions["at_us"]:
                self._store.write_table("versions.parquet", sampled.versions)
            counts = {"rows": len(sampled.columns["at_us"]), "versions": len(sampled.versions["at_us"])}
            self._store.tell("observer", **counts, **asdict(sampled.looks))
        self._life.collect(force=True)
        self._tell("engine", report=report, notes=self._engine.notes())
        has_results = self._kept(OBSERVED, lambda: self._keep_results(report))
        if (log := self._engine.batch_log()) is not None:
            self._store.write_json("batches.json", log)
        asked = has_results and report.state != "crashed"
        with self._stopping(asked=asked):
            self._kept(LOG, self._keep_log)
        self._read_again(asked=asked)
        self._tell("spoiled", **self._servers.spoiled()._asdict())

    @contextmanager
    def _stopping(self, *, asked: bool) -> Iterator[None]:
        """Stop the engine while the log is read: both take long."""
        engine = self._engine
        if not asked or not engine.alive():
            yield
            return
        with ThreadPoolExecutor(max_workers=1) as beside:
            stop = beside.submit(engine.stop)
            yield
            self._screen.phase("stop", f"the end of {engine.manifest.id}, and all results once more")
            stop.result()

    def _read_again(self, *, asked: bool) -> None:
        """The engine's actions upon SIGTERM belong to its answer, and so do those at an end by itself."""
        error, changed = "", None
        if asked:
            try:
                rows = self._results.rows()
            except Exception as broken:  # noqa: BLE001  (whatever it did to the results, the first read is judged)
                error = f"{type(broken).__name__}: {broken}"
            else:
                self._write_rows(AFTER_STOP, rows)
                self._tell_expiring(stopped=True)
                changed = unlike(self._rows, rows)
        self._tell("stopped", asked=asked, error=error, changed=changed)

    def _kept(self, name: str, keep: Callable[[], bool]) -> bool:
        """Report what can't be read, and store no file: an empty one would mean that nothing was there."""
        try:
            return keep()
        except (ServiceGone, UnreadableError) as error:
            self._tell("unread", file=name, why=str(error))
            return False

    def _keep_results(self, report: EngineReport) -> bool:
        """Store the results. An engine that failed early may have left none to read."""
        rows: Sequence[Row] | None = None
        try:
            rows = self._results.rows()
        except UnreadableError as error:
            if report.state in ("drained", "unserved") or isinstance(error, UnreadableTableError):
                raise
        self._rows = rows or ()
        self._write_rows(OBSERVED, self._rows)
        if rows is not None:
            self._tell_expiring(stopped=False)
            self._keep_layout()
        return rows is not None

    def _keep_layout(self) -> None:
        if files := self._results.layout():
            columns = {name: [file[i] for file in files] for i, name in enumerate(HeldFile._fields)}
            self._store.write_table("table-files.parquet", columns)

    def _tell_expiring(self, *, stopped: bool) -> None:
        if (found := self._results.expiring()) is not None:
            self._tell("expiring", found=asdict(replace(found, stopped=stopped)))

    def _keep_log(self) -> bool:
        with closing(self._log.read()) as parts:  # this also ends its readers
            self._store.write_parts(LOG, self._shown(parts))
        return True

    def _shown(self, parts: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the parts, and show how many records were read."""
        planned, read = sum(self._log.ends().values()), 0
        for part in parts:
            read += len(part["offset"])
            self._screen.update(sent_so_far(self._store.clock.now_ms(), read, planned))
            yield part

    def _write_rows(self, name: str, rows: Sequence[Row]) -> None:
        self._store.write_table(name, as_columns(rows))
