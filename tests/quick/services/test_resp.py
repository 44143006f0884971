"""Redis' protocol, cut anywhere: what was asked and how much was answered is counted to the single command."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from harness.services.resp import Conversation, Replies, Requests, writes


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


values = st.recursive(
    st.one_of(
        st.sampled_from(
            [b"+OK\r\n", b"-ERR no\r\n", b":12\r\n", b"$-1\r\n", b"*-1\r\n", b"_\r\n", b"#t\r\n", b",1.5\r\n"]
        ),
        st.binary(max_size=30).map(lambda data: b"$%d\r\n%s\r\n" % (len(data), data)),
        st.binary(max_size=30).map(lambda data: b"=%d\r\n%s\r\n" % (len(data) + 4, b"txt:" + data)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda items: b"*%d\r\n" % len(items) + b"".join(items)),
        st.lists(inner, max_size=4).map(lambda items: b"~%d\r\n" % len(items) + b"".join(items)),
        st.lists(st.tuples(inner, inner), max_size=3).map(
            lambda items: b"%%%d\r\n" % len(items) + b"".join(key + value for key, value in items)
        ),
        st.tuples(inner, inner).map(lambda two: b"|1\r\n+key\r\n" + two[0] + two[1]),
    ),
    max_leaves=8,
)
pushes = st.lists(values, max_size=3).map(lambda items: b">%d\r\n" % len(items) + b"".join(items))


def cut(data: bytes, at: list[int]) -> list[bytes]:
    ends = [0, *sorted(min(place, len(data)) for place in at), len(data)]
    return [data[start:end] for start, end in pairwise(ends)]


places = st.lists(st.integers(0, 300), max_size=6)


@given(st.lists(st.tuples(st.sampled_from([b"HSET", b"get", b"Eval"]), st.binary(max_size=20)), max_size=8), places)
def test_commands_are_found_however_they_are_cut(commands, at):
    data = b"".join(command(name, argument, argument) for name, argument in commands)
    requests = Requests()

    found = [name for piece in cut(data, at) for name in requests.feed(piece)]

    assert found == [name.decode().upper() for name, _ in commands]
    assert requests.complete


@given(st.lists(st.one_of(values.map(lambda v: (v, 1)), pushes.map(lambda v: (v, 0))), max_size=8), places)
def test_answers_are_counted_however_they_are_cut_and_pushes_are_none(answers, at):
    replies = Replies()

    counted = sum(replies.feed(piece) for piece in cut(b"".join(data for data, _ in answers), at))

    assert counted == sum(counts for _, counts in answers)
    assert replies.complete


def test_a_command_typed_by_hand_is_one_too():
    assert Requests().feed(b"PING\r\nset a b\r\n\r\n") == ["PING", "SET"]


def test_half_a_command_is_none_and_is_not_whole():
    requests, whole = Requests(), command(b"HINCRBY", b"campaign", b"0", b"5")

    assert requests.feed(whole + whole[:-1]) == ["HINCRBY"]
    assert not requests.complete
    assert requests.feed(whole[-1:]) == ["HINCRBY"]
    assert requests.complete


def test_scripts_and_ends_of_transactions_write():
    assert all(writes([name]) for name in ("HSET", "HINCRBY", "EVAL", "EXEC"))
    assert not writes(["HELLO", "CLIENT", "PING", "HGETALL", "MGET", "SCAN", "MULTI"])


def test_a_conversation_tells_what_was_executed_and_never_answered():
    answered, unanswered = Counter[str](), Counter[str]()
    one = Conversation(answered, unanswered)

    one.ask(command(b"GET", b"a") + command(b"HINCRBY", b"a", b"b", b"1") + command(b"HSET", b"a", b"b", b"1"))
    assert not one.quiet
    one.answer(b"$1\r\n1\r\n", delivered=True)
    one.answer(b":1\r\n", delivered=False)
    one.end()

    assert answered == {"GET": 1}
    assert unanswered == {"HINCRBY": 1, "HSET": 1}
    assert one.quiet
