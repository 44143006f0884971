"""The sums that a job adds to a count in checksum mode: two sums over the ids of the counted events, which reveal a
loss that a duplicate hides. An event's id is the last twelve hex digits of its user id.

In Redis: hash `sums:<campaign>`, field `<window start in ms>` -> "S1,S2", with S1 = sum of the ids modulo 2^48 and S2 =
sum of (id mod p)^2 modulo p, p = 2^31 - 1.
"""

from __future__ import annotations

ID_DIGITS = 12
ID_RANGE = 1 << 48
PRIME = (1 << 31) - 1

Sums = tuple[int, int]


def sums_key(campaign: str) -> str:
    return f"sums:{campaign}"


def id_of(user_id: str) -> int:
    return int(user_id[-ID_DIGITS:], 16)


def add_id(sums: Sums, event: int) -> Sums:
    s1, s2 = sums
    return (s1 + event) % ID_RANGE, (s2 + (event % PRIME) ** 2) % PRIME


def spell(sums: Sums) -> str:
    s1, s2 = sums
    return f"{s1},{s2}"


def read(text: str) -> Sums:
    s1, s2 = text.split(",")
    return int(s1), int(s2)
