"""What a first job on a cluster of the user told, and which clusters are refused because of it."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest

from harness.engines.spark.executors import Told, in_words, reach, refuse_unfit, refused
from harness.model import HarnessError
from harness.services.addresses import free_ports

MASTER = "spark://m:7077"
FIT = Told("10.0.0.5", "4.2.0", ("w1:1", "w2:2"), {"w1/10.0.0.6": "4.2.0", "w2/10.0.0.7": "4.2.0"}, (), "")
NOT_THERE = "An error occurred.\n: org.apache.spark.SparkException: [FAILED_READ_FILE] File does not exist. It is\n at"


def refusal(told: Told) -> str:
    with pytest.raises(HarnessError) as refused:
        refuse_unfit(told, MASTER, "/shared")
    return str(refused.value)


def test_a_fit_cluster_is_told_with_the_address_of_the_driver():
    refuse_unfit(FIT, MASTER, "/shared")

    assert in_words(FIT).startswith("2 executors with Spark 4.2.0 read and wrote beside the checkpoint")
    assert in_words(FIT).endswith("the driver at 10.0.0.5")


@pytest.mark.parametrize(
    ("told", "parts"),
    [
        (replace(FIT, executors=()), ["no executor within a minute", "the driver at 10.0.0.5"]),
        (
            replace(FIT, versions={**FIT.versions, "w2/10.0.0.7": "4.1.3"}),
            ["another version", "4.1.3 at w2/10.0.0.7", "the driver (4.2.0)", "--engine spark@4.1.3"],
        ),
        (
            replace(FIT, failed=("w2:2",), why=NOT_THERE),
            [
                "executor w2:2",
                "/shared",
                "(org.apache.spark.SparkException: [FAILED_READ_FILE]",
                "Mount the same storage",
            ],
        ),
        (replace(FIT, why="3 of 8 files are not there"), ["2 executors could not", "3 of 8 files"]),
    ],
)
def test_what_is_missing_is_said_in_a_sentence_with_what_to_do(told, parts):
    text = refusal(told)

    assert [part for part in parts if part not in text] == []
    assert text.endswith(".")


ONE_DOWN = "09:09:39 WARN StandaloneAppClient$ClientEndpoint: Failed to connect to master 10.0.0.5:7077"
ALL_DOWN = (
    "09:10:39 ERROR StandaloneSchedulerBackend: Application has been killed. Reason: All masters are unresponsive!"
)
OTHER = "java.io.InvalidClassException: org.apache.spark.rpc.RpcEndpointRef; local class incompatible: stream classdesc"


@pytest.mark.parametrize(
    ("lines", "servers", "part"),
    [
        ((), 1, ""),
        (("09:09:37 WARN NativeCodeLoader: Unable to load",), 1, ""),
        ((ONE_DOWN,), 1, "Failed to connect to master 10.0.0.5:7077"),
        ((ONE_DOWN,), 2, ""),  # the other one may be the leader
        ((ONE_DOWN, ALL_DOWN), 2, "All masters are unresponsive"),
        ((OTHER,), 2, "it has another version of Spark (java.io.InvalidClassException"),
    ],
)
def test_a_log_shows_early_that_a_master_does_not_take_the_driver(lines, servers, part):
    said = refused(lines, servers)

    assert part in said
    assert bool(said) is bool(part)


def test_a_dead_master_is_told_and_one_of_several_servers_is_enough():
    with socket.create_server(("127.0.0.1", 0)) as server:
        alive, (dead,) = server.getsockname()[1], free_ports(1)
        reach(f"spark://127.0.0.1:{dead},127.0.0.1:{alive}")
        with pytest.raises(HarnessError, match=f"No Spark master listens at 127.0.0.1:{dead} "):
            reach(f"spark://127.0.0.1:{dead}")
    reach("local[*]")
    reach("yarn")
