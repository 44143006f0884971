"""A declared workload to test with: a shop's orders, and what its parts make of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from harness.util.seeded_draws import Lane
from workloads.declared.arrow import Arrow
from workloads.declared.draws import content
from workloads.declared.fields import Fields, time_path

TOML = """
id = "orders"
asks = "orders, revenue and buyers of each country in windows of ten seconds"

[event.fields]
buyer = { kind = "uuid", of = 50 }
shop = { kind = "zipf", of = 20, exponent = 1.25, prefix = "shop-" }
place = { kind = "object", fields = { country = { kind = "choice", values = ["de", "fr"], weights = [3, 1] } } }
pieces = { kind = "integer", from = 1, to = 9 }
amount = { kind = "decimal", from = -20.00, to = 200.00 }
note = { kind = "text", of = 30, from = 1, to = 20 }
ordered_at = { kind = "time", as = "iso8601" }

[tables.shops]
each = "shop"
columns = { region = { kind = "choice", values = ["north", "south"] } }
redis = { key = "shop:{shop}", value = "{region}" }

[oracle]
keys = ["country", "opens"]
step_ms = 10_000
cells = '''
SELECT event, place.country AS country, tumbling(ordered_at, 10000) AS opens, opens + 10000 AS closes, amount, buyer
FROM events
'''
fold = '''
SELECT country, opens, count(*) AS orders, CAST(100 * sum(amount) AS BIGINT) AS cents, count(DISTINCT buyer) AS buyers
FROM cells GROUP BY ALL
'''

[oracle.values]
orders = "count"
cents = "sum"
buyers = "monotone"
"""


def drawn(fields: Fields, times_ms: list[int], seed: int = 1) -> dict[str, np.ndarray]:
    """Events with these times, as columns."""
    draws = Lane.of(seed, "test").at(np.arange(len(times_ms)))
    return {**content(fields, seed, draws), time_path(fields): np.array(times_ms, dtype=np.int64)}


def relation(fields: Fields, columns: dict[str, np.ndarray], seed: int = 1) -> pa.Table:
    """The same as the relation `events`."""
    return numbered(Arrow(fields, seed).table(columns))


def numbered(table: pa.Table) -> pa.Table:
    numbers = pa.array(np.arange(len(table)))
    return table.append_column("event", numbers).append_column("event_id", numbers)
