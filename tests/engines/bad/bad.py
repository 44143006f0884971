"""Engines that behave badly, each in one way. Those that count at all count as the reference does.

python bad.py silent|exits|chatty|stubborn|parent|peeks|hungry|heap|takes CONFIG.json
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import redis
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient

from workloads.ad_impressions.jobs import reference

GIGABYTE = 1 << 30
ENOUGH = 500  # views
CHUNK = b"x" * 1023 + b"\n"


def silent(_config: str) -> None:
    """Starts, says one thing, and never answers."""
    print("waiting for a licence", flush=True)
    signal.pause()


def exits(_config: str) -> None:
    print("\x1b[31mreading settings\x00", flush=True)
    raise SystemExit("no such table: impressions")


def chatty(config: str) -> None:
    """Counts, and says a gigabyte meanwhile."""

    def talk() -> None:
        for _ in range(GIGABYTE // (1024 * len(CHUNK))):
            os.write(1, CHUNK * 1024)
        os.write(1, b"out of words\n")

    threading.Thread(target=talk).start()  # when it is stopped it still says the rest
    reference.main(config)


def stubborn(config: str) -> None:
    """Counts, and hears no SIGTERM."""
    counting = subprocess.Popen([sys.executable, "-m", "workloads.ad_impressions.jobs.reference", config])
    signal.signal(signal.SIGTERM, lambda *_: print("not now", flush=True))
    counting.wait()


def parent(_config: str) -> None:
    """Leaves two children behind, of which one has a session of its own, and ends."""
    for own_session in (False, True):
        subprocess.Popen(["sleep", "600"], start_new_session=own_session)
    sys.exit("gone, but not alone")


def peeks(config: str) -> None:
    """Counts, and looks meanwhile for what is expected of it: wherever its run config and its environment lead."""

    def look() -> None:
        while True:
            for folder in {parent for word in _words(config) for parent in _folders(word)}:
                for answer in folder.glob("**/expected.parquet"):
                    print(f"found {answer}", flush=True)
            print("looked", flush=True)
            time.sleep(0.5)

    threading.Thread(target=look, daemon=True).start()
    reference.main(config)


def hungry(_config: str) -> None:
    """Has a child that takes all memory there is, and ends when that is gone, as a Spark driver of Python does."""
    child = subprocess.Popen([sys.executable, __file__, "eat", ""])
    print("JAVA_GATEWAY_EXITED after", child.wait(), flush=True)
    sys.exit(1)


def heap(_config: str) -> None:
    """Takes all the memory that it allows itself, and ends by itself."""
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTE // 4, GIGABYTE // 4))
    eat("")


def eat(_config: str) -> None:
    eaten = []
    while True:
        eaten.append(b"x" * (1 << 22))


def takes(config: str) -> None:
    """Counts, and when it has counted some hundred views takes away what it was lent."""
    run_config = json.loads(Path(config).read_bytes())
    client = redis.Redis.from_url(run_config["redis"], decode_responses=True)

    def take() -> None:
        campaigns = sorted(client.smembers("campaigns"))
        while sum(int(count) for campaign in campaigns for count in client.hvals(campaign)) < ENOUGH:
            time.sleep(0.05)
        print(f"{run_config['options']['take']} is taken away", flush=True)
        TAKEN[run_config["options"]["take"]](client, run_config)

    threading.Thread(target=take, daemon=True).start()
    reference.main(config)


def _delete_topic(_client: redis.Redis, run_config: dict[str, Any]) -> None:
    admin = AdminClient({"bootstrap.servers": run_config["kafka"]["bootstrap"]})
    admin.delete_topics([run_config["topic"]])[run_config["topic"]].result()


def _delete_records(_client: redis.Redis, run_config: dict[str, Any]) -> None:
    places = [TopicPartition(run_config["topic"], number, OFFSET_END) for number in range(run_config["partitions"])]
    admin = AdminClient({"bootstrap.servers": run_config["kafka"]["bootstrap"]})
    for each in admin.delete_records(places).values():
        each.result()


def _kill_broker(_client: redis.Redis, run_config: dict[str, Any]) -> None:
    """Whoever listens where Kafka is."""
    port = int(run_config["kafka"]["bootstrap"].rpartition(":")[2])
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(each.status == "LISTEN" and each.laddr.port == port for each in process.net_connections("tcp")):
                process.kill()


def _kill_clients(client: redis.Redis, _orders: dict[str, Any]) -> None:
    """All others but those of its own; ours come back."""
    own = {each["id"] for each in client.client_list() if each["name"] != "streamgauge"}
    for each in client.client_list():
        if each["id"] not in own:
            client.client_kill_filter(_id=each["id"])


TAKEN: dict[str, Callable[[redis.Redis, dict[str, Any]], object]] = {
    "redis": lambda client, _: client.shutdown(nosave=True),
    "password": lambda client, _: client.config_set("requirepass", "secret"),
    "commands": lambda client, _: client.execute_command("ACL", "SETUSER", "default", "-hgetall"),
    "memory": lambda client, _: client.config_set("maxmemory", 1),
    "master": lambda client, _: client.replicaof("127.0.0.1", 1),
    "patience": lambda client, _: client.eval("while true do end", 0),
    "connections": _kill_clients,
    "results": lambda client, _: client.flushall(),
    "topic": _delete_topic,
    "records": _delete_records,
    "broker": _kill_broker,
}


def _words(config: str) -> Iterator[str]:
    yield config
    yield from (value for value in json.loads(Path(config).read_bytes()).values() if isinstance(value, str))
    yield from os.environ.values()
    yield str(Path("/proc/self/fd/1").resolve())  # its log is the one thing of the run that it has


def _folders(word: str) -> list[Path]:
    """Where the word leads, if that is in the test's own folder or made for this run; all else is far too much."""
    path = Path(word)
    return [each for each in (path, *path.parents) if "streamgauge-" in each.name or "-calm-" in each.name]


KINDS = {
    "silent": silent,
    "exits": exits,
    "chatty": chatty,
    "stubborn": stubborn,
    "parent": parent,
    "peeks": peeks,
    "takes": takes,
    "hungry": hungry,
    "heap": heap,
    "eat": eat,
}

if __name__ == "__main__":
    KINDS[sys.argv[1]](sys.argv[2])
