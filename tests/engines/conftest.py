"""A trial of one's own for each test; whatever engine a test starts is stopped."""

from __future__ import annotations

import pytest

from tests.engines.trial import Trial


@pytest.fixture
def trial(tmp_path, kafka_address, redis_address, topic):
    return Trial(tmp_path, kafka_address, redis_address, topic)


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
