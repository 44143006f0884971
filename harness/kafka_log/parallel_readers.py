"""Read the log of a run back with parallel processes, because CPU limits what one can read.

Each process gets a span of the log, returns it as columns, and gets the next one. The parent yields the spans in order
and holds at most two per process. A small log is read in the parent, in less time than a process takes to start.

    python -m harness.kafka_log.parallel_readers

starts one process. Its input is a socket that carries the topic and the spans: the address of a Kafka may hold a
password, so it is no argument.
"""

from __future__ import annotations

import socket
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue

from confluent_kafka import KafkaException

from harness.host import cgroup
from harness.install.origin import ROOT
from harness.kafka_log import recount
from harness.kafka_log.recount import Columns, Span
from harness.model import HarnessError, KafkaAddress, TapeSpec
from harness.services.children import spawn
from workloads.registry import codec_of

SPAN = 1 << 19  # records
WORTH_A_PROCESS = 1_000_000  # records: one process reads them in about the time that two take to start
DEALT_OUT = 2  # spans per process, so that none waits for another


@dataclass(frozen=True)
class LogSource:
    """The topic to read. It holds secrets: never save it."""

    kafka: KafkaAddress
    name: str
    tape: TapeSpec
    stamped: bool


def read_in_parts(topic: LogSource, ends: Mapping[int, int], logs: Path) -> Generator[Columns]:
    """Read as `recount.read_in_parts` does, with as many processes as pay off. Their output goes to `logs`."""
    many = readers_for(ends, cgroup.cores())
    if many > 1:
        return _read_beside(topic, _spans(ends), many, logs)
    return recount.read_in_parts(topic.kafka, topic.name, ends, codec_of(topic.tape), stamped=topic.stamped)


def readers_for(ends: Mapping[int, int], cores: float) -> int:
    """Return the number of processes: at most one per partition, because Kafka sends no more in parallel."""
    return max(1, min(int(cores), len(ends), sum(ends.values()) // WORTH_A_PROCESS))


def _spans(ends: Mapping[int, int]) -> list[Span]:
    return [
        Span(partition, begin, min(begin + SPAN, end))
        for partition, end in sorted(ends.items())
        for begin in range(0, end, SPAN)
    ]


def _read_beside(topic: LogSource, spans: Sequence[Span], many: int, logs: Path) -> Generator[Columns]:
    yield recount.no_records(codec_of(topic.tape), stamped=topic.stamped)
    with _readers(topic, many, logs) as read:
        ahead: deque[Future[Columns]] = deque()
        for span in spans:
            if len(ahead) == many * DEALT_OUT:
                yield ahead.popleft().result()
            ahead.append(read(span))
        while ahead:
            yield ahead.popleft().result()


@contextmanager
def _readers(topic: LogSource, many: int, logs: Path) -> Iterator[Callable[[Span], Future[Columns]]]:
    """Give each span to a free process. On exit, kill the processes first, so that no thread waits for them."""
    free: SimpleQueue[_Reader] = SimpleQueue()

    def read(span: Span) -> Columns:
        reader = free.get()
        try:
            return reader.read(span)
        finally:
            free.put(reader)

    with ExitStack() as last, ThreadPoolExecutor(many) as threads, ExitStack() as first:
        for number in range(many):
            reader = _Reader(topic, logs / f"recount-{number + 1}.log")
            last.callback(reader.line.close)
            first.callback(reader.kill)
            free.put(reader)
        yield lambda span: threads.submit(read, span)


class _Reader:
    """One reader process."""

    def __init__(self, topic: LogSource, log: Path) -> None:
        ours, its = socket.socketpair()
        with its:
            argv = [sys.executable, "-m", "harness.kafka_log.parallel_readers"]
            self._child = spawn(argv, name=log.stem, log=log, cwd=ROOT, stdin=its.fileno())
        self.line = Connection(ours.detach())
        self.line.send(topic)

    def read(self, span: Span) -> Columns:
        with suppress(OSError):  # it has ended, and `recv` reports why
            self.line.send(span)
        try:
            answer: Columns | HarnessError = self.line.recv()
        except (EOFError, OSError):
            raise HarnessError(
                f"A process that read partition {span.partition} back ended early, with exit code "
                f"{self._child.returncode()}. {self._child.last_words()}"
            ) from None
        if isinstance(answer, HarnessError):
            raise answer
        return answer

    def kill(self) -> None:
        self._child.kill_group()


def main() -> None:
    line = Connection(sys.stdin.fileno())
    try:
        _serve(line)
    except EOFError:  # the harness is gone
        return
    except HarnessError as error:
        line.send(error)
    except KafkaException as error:  # it can't be pickled for the parent
        line.send(HarnessError(f"{type(error).__name__}: {error}"))


def _serve(line: Connection) -> None:
    topic: LogSource = line.recv()
    codec = codec_of(topic.tape)
    nothing = recount.no_records(codec, stamped=topic.stamped)
    with recount.open_log(topic.kafka, topic.name, codec, stamped=topic.stamped) as read_span:
        while True:
            span: Span = line.recv()
            line.send(recount.joined([nothing, *read_span(span)]))


if __name__ == "__main__":
    main()
