"""The postgresql family with a server of the test's answers: what proves that a fault landed, and that it is undone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.faults import postgresql, postgresql_replica
from harness.faults.postgresql import Deadlock, Kill, Lock, ResetReply
from harness.faults.postgresql_replica import Promote
from harness.services.proxy import Statistics


class Server:
    """In the place of PostgreSQL and its process."""

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[Any, ...]]] = {}
        self.story: list[str] = []
        self.up = True
        self.address: Any = "first"
        self.child: Any = SimpleNamespace(pid=7, alive=lambda: self.up, returncode=lambda: -9, kill_group=self._kill)
        replica_child = SimpleNamespace(kill_group=lambda: self.story.append("kill the replica"))
        self.replica: Any = SimpleNamespace(address="replica", child=replica_child)

    def ask(self, _now: object, statement: str) -> list[tuple[Any, ...]]:
        return self.answers.get(statement, []) if self.up else []

    def of(self, address: str, statement: str, reply_s: float = 0.0) -> list[tuple[Any, ...]]:
        self.story.append(f"{address}: {statement}")
        return self.answers.get(f"{address}: {statement}", self.answers.get(statement, []))

    def restart(self) -> None:
        self.story.append("restart")
        self.up = True

    def follow(self) -> Any:
        return self.replica

    def give_way(self, replica: Any) -> None:
        self.story.append(f"give way to {replica.address}")
        self.up = True

    def _kill(self) -> None:
        self.story.append("kill")
        self.up = False


@pytest.fixture
def server(monkeypatch) -> Server:
    scripted = Server()
    for module in (postgresql, postgresql_replica):
        monkeypatch.setattr(module, "ask", scripted.ask)
        monkeypatch.setattr(module, "server_of", lambda _: scripted)
    monkeypatch.setattr(postgresql_replica, "of", scripted.of)
    monkeypatch.setattr(postgresql_replica, "need_more_to_do", lambda _: None)
    return scripted


def at(now_ms: int) -> Any:
    return SimpleNamespace(now_ms=now_ms)


def test_a_killed_server_is_back_when_it_answers_with_another_time_of_its_start(server):
    server.answers[postgresql.STARTED] = [("10:00",)]
    fault = Kill(1000)
    fault.inject(at(0))
    assert fault.landed(at(1))
    assert not fault.healed(at(1))
    fault.heal(at(2))
    assert server.story == ["kill", "restart"]
    assert not fault.healed(at(3))  # the same as before
    server.answers[postgresql.STARTED] = [("10:01",)]

    assert "10:01" in fault.healed(at(4))
    assert not fault.landed(at(4))


@pytest.mark.parametrize(
    ("listed", "landed", "healed"),
    [([(1,)], True, False), ([(0,)], False, True), ([], False, False)],
)
def test_a_lock_is_there_and_gone_by_the_list_of_the_server(server, listed, landed, healed):
    fault = Lock(1000, "t")
    fault._holder = SimpleNamespace(info=SimpleNamespace(backend_pid=5), closed=False)
    server.answers[postgresql.LOCKED.format(5)] = listed

    assert (bool(fault.landed(at(0))), bool(fault.healed(at(0)))) == (landed, healed)


def deadlock(*, granted: bool) -> tuple[Deadlock, Any]:
    """Ours has asked for the table, and was answered."""
    fault = Deadlock("t")
    ours: Any = SimpleNamespace(closed=False)
    ours.close = lambda: setattr(ours, "closed", True)
    fault._ours, fault._granted, fault._before = ours, granted, 3
    fault._lock = SimpleNamespace(is_alive=lambda: False)  # type: ignore[assignment]
    return fault, ours


def test_a_deadlock_has_landed_when_the_server_counts_one_more_and_our_lock_was_granted(server):
    fault, ours = deadlock(granted=True)
    server.answers[postgresql.DEADLOCKS] = [(3,)]
    assert fault.landed(at(0)) == ""
    assert not ours.closed  # its count may come later
    server.answers[postgresql.DEADLOCKS] = [(4,)]

    assert "from 3 to 4" in fault.landed(at(1))


def test_a_deadlock_in_which_ours_was_ended_is_tried_again(server):
    fault, ours = deadlock(granted=False)
    server.answers[postgresql.DEADLOCKS] = [(4,)]

    assert fault.landed(at(0)) == ""
    assert ours.closed
    assert fault._lock is None


@pytest.mark.parametrize(
    ("after", "landed"),
    [
        (Statistics(struck=3, unanswered={"COMMIT": 2, "INSERT": 1}), True),
        (Statistics(struck=2, unanswered={"COMMIT": 3}), False),
        (Statistics(struck=3, unanswered={"COMMIT": 2}), False),
        (Statistics(struck=3, unanswered={"COMMIT": 2, "INSERT": 1}, ending=1), False),
    ],
)
def test_a_lost_reply_has_landed_when_all_that_were_asked_for_are_lost(server, monkeypatch, after, landed):
    monkeypatch.setattr(postgresql, "link_of", lambda _: SimpleNamespace(statistics=lambda: after))
    fault = ResetReply(2, "")
    fault._before = Statistics(struck=1, unanswered={"COMMIT": 1})

    assert bool(fault.landed(at(0))) is landed


def test_a_replica_is_promoted_when_it_was_alone_for_long_enough_and_a_transaction_can_be_lost(server, monkeypatch):
    waited: list[bool] = []
    monkeypatch.setattr(postgresql_replica, "wait_until", lambda until, **_: waited.append(until()))
    server.answers |= {
        postgresql_replica.POSITION: [(100, "0/1000")],
        postgresql_replica.FOLLOWS: [(1,)],
        postgresql_replica.RECEIVES: [(0,)],
        postgresql_replica.REPLAYED: [("0/1000",)],
    }
    fault = Promote(3000)
    fault.inject(at(1000))
    assert waited == [True, True]  # it follows, and is cut off
    assert fault.land_within_ms > 3000

    assert fault.landed(at(5000)) == ""  # nothing to lose
    server.answers[postgresql_replica.POSITION] = [(101, "0/1200")]
    assert fault.landed(at(3999)) == ""
    server.story.clear()
    assert f"{0x200:,} bytes" in fault.landed(at(4000))

    assert [step for step in server.story if ":" not in step] == ["kill", "give way to replica"]
    assert f"replica: {postgresql_replica.PROMOTE}" in server.story
