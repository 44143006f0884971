"""`streamgauge.servers()`: a Kafka and a Redis that end with the process that asked for them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import client
from harness.model import KafkaAddress, RedisAddress
from harness.services import kafka
from harness.services.owners import is_running
from harness.services.redis import connect
from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
ASKING = """
import client
with client.servers() as both:
    print(both.kafka, both.redis, flush=True)
    input()
"""

pytestmark = pytest.mark.usefixtures("own_state")


def serves(bootstrap: str, url: str) -> None:
    assert "any" not in kafka.topic_ids(KafkaAddress(bootstrap))
    with connect(RedisAddress(url)) as found:
        found.set("key", "value")


def below(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def test_they_serve_and_end_with_the_block():
    before = {child.pid for child in below(os.getpid())}
    with client.servers() as both:
        serves(both.kafka, both.redis)
        started = [child for child in below(os.getpid()) if child.pid not in before]
        assert len(started) >= 3, "the program, a Kafka and a Redis"
    assert not any(map(is_running, started))


def test_they_end_with_a_process_that_was_killed():
    asking = subprocess.Popen([sys.executable, "-c", ASKING], cwd=ROOT, stdout=subprocess.PIPE, stdin=subprocess.PIPE)
    assert asking.stdout
    serves(*asking.stdout.readline().decode().split())
    started = below(asking.pid)
    assert len(started) >= 3

    os.kill(asking.pid, signal.SIGKILL)
    asking.communicate()

    wait_until(
        lambda: not any(map(is_running, started)),
        deadline_s=60,
        what="the end of all that was started",
        state=lambda: str([child for child in started if is_running(child)]),
    )


def test_a_kafka_that_can_not_start_is_told(monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    with pytest.raises(client.ProgramError, match=r"Kafka and Redis did not come up: .*Java"), client.servers():
        pass
