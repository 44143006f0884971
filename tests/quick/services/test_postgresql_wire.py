"""Which replies of PostgreSQL confirm a commit of rows, in whatever pieces they arrive."""

from __future__ import annotations

import struct

import pytest

from harness.services.postgresql_wire import Commits

LOGIN = b"N" + b"R" + struct.pack(">ii", 8, 0)  # no TLS, and the login is accepted


def complete(tag: str) -> bytes:
    return b"C" + struct.pack(">i", 4 + len(tag) + 1) + tag.encode() + b"\0"


def ready(status: str) -> bytes:
    return b"Z" + struct.pack(">i", 5) + status.encode()


@pytest.mark.parametrize(
    ("replies", "found"),
    [
        (complete("BEGIN") + ready("T") + complete("INSERT 0 3") + ready("T") + complete("COMMIT"), ["COMMIT"]),
        (complete("BEGIN") + complete("MERGE 2") + complete("COMMIT") + ready("I"), ["COMMIT"]),
        (complete("INSERT 0 1") + ready("I"), ["INSERT"]),
        (complete("BEGIN") + ready("T") + complete("INSERT 0 3") + complete("ROLLBACK") + ready("I"), []),
        (complete("BEGIN") + ready("T") + complete("CREATE TABLE") + complete("COMMIT") + ready("I"), []),
        (complete("UPDATE 0") + ready("I") + complete("SELECT 5") + ready("I"), []),
        (complete("BEGIN") + complete("INSERT 0 1") + complete("ROLLBACK") + ready("I") + complete("COMMIT"), []),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_commit_is_one_of_rows(replies, found, size):
    commits, data = Commits(), LOGIN + ready("I") + replies

    pieces = [data[at : at + size] for at in range(0, len(data), size)]

    assert [name for piece in pieces for name in commits.feed(piece)] == found
    assert commits.quiet == data.endswith(b"I")
