"""A trial of one's own for each test; whatever engine a test starts is stopped. What is marked as thorough is a whole
run that says little beyond what its neighbours say, and is left to those who have half an hour more: ARCHITECTURE.md
tells the purpose of each that is not."""

from __future__ import annotations

import pytest

from tests.conftest import ALL
from tests.engines.trial import Trial


def pytest_xdist_auto_num_workers():
    """Two keep two cores busy, and two others wait (see WAITS). With the thorough ones they would not wait enough."""
    return 2 if ALL else 4


@pytest.fixture
def trial(tmp_path, kafka_address, redis_address, topic):
    return Trial(tmp_path, kafka_address, redis_address, topic)


@pytest.fixture
def served(kafka_address, redis_address):
    """Flags of a run on servers that are there already: what its test is about is the engine, and not their start."""
    return ("--kafka", kafka_address.bootstrap, "--redis", redis_address.url, "--reset")


@pytest.fixture
def started(trial):
    """Start an engine by id and sink."""
    engines = []

    def start(name, sink, **other):
        engine = trial.engine(name, sink, **other)
        engines.append(engine)
        engine.start()
        return engine

    yield start
    for engine in engines:
        engine.stop()
