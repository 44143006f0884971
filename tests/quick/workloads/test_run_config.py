"""The run config of an engine that starts beside its services."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from harness.model import KafkaAddress, RedisAddress
from tests.quick.cases import RUN_CONFIG
from workloads.ad_impressions.jobs import question
from workloads.jobs import run_config

EARLY = replace(RUN_CONFIG, kafka=KafkaAddress(""), redis=RedisAddress(""))
TOLD = replace(EARLY, kafka=KafkaAddress("127.0.0.1:9"), redis=RedisAddress("redis://127.0.0.1:8/0", prefix="team:"))


def test_a_job_goes_on_when_its_orders_say_where_its_services_are(tmp_path):
    config = {**run_config.read_config(str(EARLY.write(tmp_path))), "master": "its own"}
    services = threading.Timer(0.05, lambda: TOLD.write(tmp_path))
    services.start()

    run_config.await_services(config)

    services.join()
    assert (config["kafka"]["bootstrap"], config["redis"]) == ("127.0.0.1:9", "redis://127.0.0.1:8/0")
    assert (config["redis_prefix"], config["master"]) == ("team:", "its own")


def test_a_job_that_is_told_at_once_does_not_look_again(tmp_path):
    path = TOLD.write(tmp_path)
    config = run_config.read_config(str(path))
    path.unlink()

    run_config.await_services(config)

    assert config["redis"] == "redis://127.0.0.1:8/0"


def test_a_job_that_is_never_told_ends_with_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(run_config, "PATIENCE_S", 0.0)
    config = run_config.read_config(str(EARLY.write(tmp_path)))

    with pytest.raises(SystemExit, match=r"engine.json still has no address of Kafka"):
        run_config.await_services(config)


def test_what_is_meant_for_a_job_does_not_reach_its_engine():
    told = {"options": {"streamgauge.counts": "click+purchase", "state.backend": "rocksdb"}}
    unasked = {"options": {"streamgauge.source.startingOffsets": "{}"}}

    assert run_config.engine_options(told) == {"state.backend": "rocksdb"}
    assert run_config.engine_options(unasked) == {}
    assert (question.counted(told), question.asked_key({"options": {"streamgauge.by": "ad"}})) == (
        ("click", "purchase"),
        "ad",
    )
    assert (question.counted(unasked), question.asked_key(unasked)) == (("view",), "campaign")
