"""The reader family: no harm, but a second reader that reads all results in a loop, as a dashboard does.

It reads like the harness's own observer, on a separate connection and independently of it. So extra load on the job
during that time comes from this reader (harness/measuring/company.py).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import redis

from harness.faults.base import PROGRESS, Context, Kind
from harness.faults.run_at_poll import Moment
from harness.faults.strike import CannotStrikeError, Strike, length_ms, struck_by
from harness.model import FaultSpec
from harness.results.redis_pipeline import REPLY_TIMEOUT_S, Prepared
from harness.util.durations import seconds
from harness.util.nearest_rank import of_samples
from harness.util.texts import many
from harness.util.wait import ends_within

NAME = "read-results"
OUR_SCHEMA = "redis:compact"
FEWEST = 3  # reads before it counts as active


class Reader:
    """A thread that reads all results from `start` to `stop`. A failed read is counted and retried."""

    def __init__(self, prepared: Prepared, every_s: float) -> None:
        self._prepared, self._every_s = prepared, every_s
        self._request = prepared.request("HGETALL")
        self._took_ms: list[float] = []
        self._failed = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, name="reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(2 * REPLY_TIMEOUT_S)

    @property
    def reads(self) -> int:
        return len(self._took_ms)

    def in_words(self) -> str:
        if not self.reads:
            return f"no read was answered, {self._failed:,} failed"
        middle_ms, high_ms = of_samples(self._took_ms, (0.5, 0.99))
        failed = f", {self._failed:,} failed" if self._failed else ""
        return f"{many(self.reads, 'read')}, p50 {middle_ms:.1f} ms, p99 {high_ms:.1f} ms{failed}"

    def _work(self) -> None:
        due_s = time.monotonic()
        while not ends_within(due_s - time.monotonic(), self._stopped):
            began_s = time.monotonic()
            try:
                self._prepared.ask(self._request)
                self._took_ms.append((time.monotonic() - began_s) * 1000)
            except (redis.RedisError, OSError):
                self._failed += 1
                self._prepared.disconnect()
            due_s = max(due_s + self._every_s, time.monotonic())
        self._prepared.disconnect()


class ReadResults(Strike):
    colour = "tab:blue"

    def __init__(self, hold_ms: float, every_s: float) -> None:
        self.hold_ms, self._every_s = hold_ms, every_s
        self._reader: Reader | None = None

    def inject(self, now: Moment) -> str:
        if now.field is None:
            raise CannotStrikeError("there is no Redis in this run")
        keys = now.field.keys
        self._reader = Reader(Prepared(now.field.results, keys), self._every_s)
        self._reader.start()
        return f"HGETALL of {many(len(keys), 'key')} every {self._every_s * 1000:g} ms"

    def landed(self, now: Moment) -> str:  # noqa: ARG002
        if self._reader is None or self._reader.reads < FEWEST:
            return ""
        return "it is answered"

    def heal(self, now: Moment) -> None:  # noqa: ARG002
        if self._reader:
            self._reader.stop()

    def healed(self, now: Moment) -> str:  # noqa: ARG002
        return self._reader.in_words() if self._reader else "nothing was read"


def _elsewhere(_: FaultSpec, context: Context) -> Iterator[str]:
    if context.manifest.source != OUR_SCHEMA:
        yield f"{context.manifest.id} writes its results to {context.manifest.results}, not {OUR_SCHEMA}"


KINDS = (
    Kind(
        NAME,
        "a second reader reads all results in Redis in a loop",
        "goes on; no count changes",
        struck_by(lambda spec, _: ReadResults(length_ms(spec), seconds(spec.options["every"], "every")), _elsewhere),
        needs="results in one Redis hash per key",
        options={"for": "10s", "every": "50ms"},
        moments=PROGRESS,
    ),
)
