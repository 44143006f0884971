"""The messages between the master of a load and its workers, over Locust's own channel.

In order: a worker says HELLO with its versions. The master answers with the PLAN once it knows where Kafka is, or with
REFUSED. The worker measures the clock by PING and PONG, and says PREPARED. Each of its users asks by JOIN for a NUMBER.
GO starts the load. STATUS comes twice a second. BACKLOG goes to the master and from there to all. END asks for the
books before the end of the tape. The worker's last word is BOOKS, and FAILED if it can't go on.

The channel is neither encrypted nor authenticated, so the plan holds no setting of the Kafka client: a worker reads its
own file for those.
"""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import msgspec
import pyarrow.parquet as pq

from generators.clock_offset import Offset
from generators.fleet import Books, LoadConfig

HELLO, PLAN, REFUSED, PING, PONG, PREPARED, JOIN, NUMBER, GO, STATUS, BACKLOG, END, BOOKS, FAILED = (
    f"streamgauge {word}"
    for word in (
        *("hello", "plan", "refused", "ping", "pong", "prepared", "join", "number"),
        *("go", "status", "backlog", "end", "books", "failed"),
    )
)
PARTS = ("sent", "acked", "unresolved", "throttled_ms", "errors")


def plan_of(config: LoadConfig) -> dict[str, Any]:
    """Pack what to send, without any setting of the client and without folders of this machine."""
    bare = replace(config, settings={}, folder="")
    return {"config": msgspec.json.encode(bare), "secured": bool(config.settings)}


def config_in(plan: dict[str, Any]) -> LoadConfig:
    return msgspec.json.decode(plan["config"], type=LoadConfig)


def pack(books: Books, end: Offset | None) -> dict[str, Any]:
    """Pack books, with the clock at the end; None if it could not be measured."""
    file = BytesIO()
    pq.write_table(books.sends, file, compression="zstd")
    return {"sends": file.getvalue(), "clock": end, **{name: getattr(books, name) for name in PARTS}}


def unpack(told: dict[str, Any]) -> tuple[Books, Offset | None]:
    sends = pq.read_table(BytesIO(told["sends"]))
    return Books(sends, **{name: told[name] for name in PARTS}), Offset(*told["clock"]) if told["clock"] else None
