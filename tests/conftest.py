"""What all tests may ask for: one real broker and one real Redis a session, and a topic of one's own.

Nothing of it is started unless a test names it, so the quick tests stay quick.
"""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pytest
from _pytest.nodeid import NodeId
from hypothesis import settings

# Each time other examples are drawn, so that what few of them miss is found by the next ones. How long an example takes
# says how busy the machine is.
ALL = bool(os.environ.get("STREAMGAUGE_TEST_ALL"))
EXAMPLES = 500 if ALL else 20
settings.register_profile("ours", max_examples=EXAMPLES, deadline=None)
settings.load_profile("ours")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config, items):
    """Tests that share a fixture of their module are a group, so that one worker makes it, once.

    xdist 3.8 appends the group of a test to `_nodeid`, which pytest 9.2 does not read: it forgot all groups, and did
    not say so (pytest-dev/pytest-xdist#1386)."""
    for item in items:
        fixtures = [found[-1] for found in item._fixtureinfo.name2fixturedefs.values()]
        if any(fixture.scope == "module" for fixture in fixtures) and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(config.rootpath))))
    yield
    if config.getoption("loadgroup", False):
        for item in items:
            item._id = NodeId.parse(getattr(item, "_nodeid", item.nodeid))
            if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]:
                raise pytest.UsageError(f"{item.nodeid} has lost its group")


def pytest_runtest_setup(item):
    if item.get_closest_marker("thorough") and not ALL:
        pytest.skip("left out to save time; ./streamgauge test --all has it")


@pytest.fixture
def own_state(tmp_path, monkeypatch):
    """A ledger of owners of one's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def own_machine(own_state, tmp_path, monkeypatch):
    """And a machine's name: the sweep of another test, which finds the dead by their marks, then leaves ours alone."""
    from harness.services import owners

    monkeypatch.setattr(owners, "_machine", lambda: str(tmp_path))


@pytest.fixture(scope="session")
def jars():
    """The folder of the broker's jars."""
    from harness.install import jvm

    return jvm.jars("services")


@pytest.fixture(scope="session")
def java():
    from harness.install import jvm

    return jvm.java()


@pytest.fixture(scope="session")
def kafka_address(tmp_path_factory: pytest.TempPathFactory, jars: Path, java: Path):
    """A real broker."""
    from harness.services.kafka import EmbeddedKafka

    broker = EmbeddedKafka(tmp_path_factory.mktemp("kafka"), jars, java, heap="512m")
    yield broker.start()
    broker.stop()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, jars: Path, java: Path):
    """A real broker that asks for certificates, passwords and rights."""
    from tests.services.guarded import GuardedKafka

    server = GuardedKafka(tmp_path_factory.mktemp("guarded"), jars, java)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory):
    """The address of a real Redis that all tests share; take `redis_address`, which is emptied for each test."""
    from harness.services.redis import EmbeddedRedis

    server = EmbeddedRedis(tmp_path_factory.mktemp("redis"))
    yield server.start()
    server.stop()


@pytest.fixture
def redis_address(redis_server):
    """A real Redis, empty."""
    from harness.services.redis import connect

    with connect(redis_server) as client:
        client.flushall()
    return redis_server


@pytest.fixture
def topic(kafka_address):
    """The name of a fresh topic with four partitions."""
    from harness.services.kafka import create_topic, delete_topic

    name = f"test-{uuid.uuid4().hex[:12]}"
    create_topic(kafka_address, name, 4)
    yield name
    delete_topic(kafka_address, name)
