"""Declared questions at random: any legal names, windows of any kind, values of any kind, and the text of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from workloads.declared.fields import NAME, RESERVED

# Names that something of ours or of SQL has too.
TAKEN = (
    *("kind", "event_time_ms", "partition", "offset", "fate", "stamped_ms", "cell", "place", "value", "key", "field"),
    *("number", "placed", "events", "cells", "cell_begins", "cell_number", "given_events", "order", "group", "select"),
    *("Kind", "Event_Time_Ms", "rows", "id", "campaign", "window", "window_ms", "count", "at", "position", "time"),
)
OWN = ("n", "w", "x", "t")  # columns of the queries below
NAMES = st.one_of(st.sampled_from(TAKEN), st.from_regex(NAME, fullmatch=True))
WINDOWS = ("tumbling", "sliding", "session", "none", "pairs")
SIZES_MS = (500, 1_000, 1_500, 3_000, 7_000)
STEPS_MS = (250, 500, 1_000, 1_750)  # of windows that slide, as far as they divide the window


@dataclass(frozen=True)
class DrawnQuestion:
    """A question, and in which way a right job answers it."""

    text: str  # of workload.toml
    disorder: str
    sink: str
    kill: bool
    window_key: Literal["start", "end"]
    length_ms: int  # of its windows


def quoted(name: str) -> str:
    return f'"{name}"'


@st.composite
def asked(draw: Any) -> DrawnQuestion:
    """Fields: the time, up to two texts that name a cell, two numbers and a text that are counted; some inside of an
    object."""
    shape = draw(st.sampled_from(WINDOWS))
    count = draw(st.integers(1 if shape == "none" else 0, 2))
    names = draw(
        st.lists(
            NAMES.filter(lambda name: name.lower() not in (*RESERVED, *OWN)),
            min_size=8,
            max_size=8,
            unique_by=str.lower,
        )
    )
    time, whole, exact, text, inside, *keys = names[: 5 + count]
    kinds = [draw(key_kinds()) for _ in keys]
    fields = {
        time: f'{{ kind = "time", as = "{draw(st.sampled_from(["ms", "iso8601"]))}" }}',
        whole: f'{{ kind = "integer", from = {draw(st.sampled_from([-9, 0, 1]))}, to = 9 }}',
        exact: '{ kind = "decimal", from = -5.00, to = 80.00 }',
        text: f'{{ kind = "uuid", of = {draw(st.sampled_from([3, 40, 1000]))} }}',
        **dict(zip(keys, kinds, strict=True)),
    }
    nested = draw(st.sets(st.sampled_from([*fields])))
    text_of_fields, paths = _fields(draw(st.permutations([*fields])), fields, nested, inside)
    values = draw(st.permutations(VALUES))[: draw(st.integers(1, 3))]
    called = draw(
        st.lists(
            NAMES.filter(lambda name: name.lower() not in (*RESERVED, *map(str.lower, keys))),
            min_size=3,
            max_size=3,
            unique_by=str.lower,
        )
    )
    avro = draw(st.sampled_from(["", 'format = "avro"\n', 'format = "avro"\nregistry_id = 7\n']))
    if shape == "pairs":
        values = [VALUES[0], *(each for each in values if each != VALUES[0])]
    size_ms = draw(st.sampled_from(SIZES_MS))
    named = dict(zip(called, values, strict=False))
    oracle = _oracle(draw, shape, size_ms, paths, (time, whole, exact, text), keys, named)
    sinks = {"none": ["keeps", "drops"], "pairs": ["keeps"]}.get(shape, ["keeps", "drops", "final"])
    sink = draw(st.sampled_from(sinks))
    has_length = shape in ("tumbling", "sliding", "pairs")
    return DrawnQuestion(
        f'id = "any"\nasks = "anything"\n\n[event]\n{avro}\n[event.fields]\n{text_of_fields}\n\n{oracle}',
        draw(st.sampled_from(["none", "mobile", "late"])),
        sink,
        draw(st.booleans()),
        draw(st.sampled_from(["start", "end"])) if has_length else "start",
        size_ms,
    )


@st.composite
def key_kinds(draw: Any) -> str:
    of = draw(st.integers(1, 6))
    kinds = (
        f'{{ kind = "uuid", of = {of} }}',
        f'{{ kind = "zipf", of = {of}, prefix = "k" }}',
        f'{{ kind = "text", of = {of}, from = 1, to = 12 }}',
        '{ kind = "choice", values = ["a", "b b", "ü\'"], weights = [5, 1, 1] }',
    )
    return str(draw(st.sampled_from(kinds)))


def _fields(order: list[str], fields: dict[str, str], nested: set[str], inside: str) -> tuple[str, dict[str, str]]:
    """Their lines, and how SQL names each."""
    lines = [f"{name} = {fields[name]}" for name in order if name not in nested]
    within = [f"{name} = {fields[name]}" for name in order if name in nested]
    if within:
        lines.append(f'{inside} = {{ kind = "object", fields = {{ {", ".join(within)} }} }}')
    paths = {name: f"{quoted(inside)}.{quoted(name)}" if name in nested else quoted(name) for name in fields}
    return "\n".join(lines), paths


# Of the columns w, a whole number, x, one with two digits, and t, a text.
VALUES = (
    ("count", "count(*)"),
    ("sum", "CAST(sum(w) AS BIGINT)"),
    ("sum", "CAST(100 * sum(x) AS BIGINT)"),
    ("monotone", "max(w) + 10"),
    ("monotone", "CAST(max(100 * x) AS BIGINT) + 1000"),
    ("monotone", "10 - min(w)"),
    ("monotone", "count(DISTINCT t)"),
)


def _oracle(
    draw: Any,
    shape: str,
    size: int,
    paths: dict[str, str],
    columns: tuple[str, ...],
    keys: list[str],
    values: dict[str, Any],
) -> str:
    time, whole, exact, text = (paths[name] for name in columns)
    step = draw(st.sampled_from([each for each in STEPS_MS if size % each == 0]))
    names = "".join(f", {paths[key]} AS {quoted(key)}" for key in keys)
    source = f"(SELECT event, {time} AS n, {whole} AS w, {exact} AS x, {text} AS t{names} FROM events)"
    few = draw(st.sampled_from(["", " WHERE w = 3", " WHERE x > 60"]))
    opens, closes, step_ms = {
        "tumbling": (f"tumbling(n, {size}) AS opens", f"opens + {size}", size),
        "sliding": (f"unnest(sliding(n, {size}, {step})) AS opens", f"opens + {size}", step),
        "pairs": (f"tumbling(n, {size}) AS opens", f"opens + {size}", size),
        "session": ("n AS opens", f"n + {size // 5}", 1),
        "none": ("", "NULL", 1),
    }[shape]
    by = [*map(quoted, keys), *(["opens"] if opens else [])]
    if shape == "pairs":  # of an event with an odd number and one with an even number, in one window
        other = f"SELECT 1 FROM {source} AS b WHERE b.w % 2 = 0 AND b.t = a.t"
        few = f" AS a WHERE a.w % 2 = 1 AND EXISTS ({other} AND tumbling(b.n, {size}) = tumbling(a.n, {size}))"
    rows = f"(SELECT *{', ' if opens else ''}{opens} FROM {source}{few})"
    folded = ", ".join([*by, *(f"{sql} AS {quoted(name)}" for name, (_, sql) in values.items())])
    group = f" GROUP BY {', '.join(by)}" if by else ""
    kinds = "\n".join(f'{name} = "{kind}"' for name, (kind, _) in values.items())
    return f"""[oracle]
keys = {[*keys, *(["opens"] if opens else [])]}
merge = {"true" if shape == "session" else "false"}
step_ms = {step_ms}
cells = '''
SELECT event, {"".join(f"{each}, " for each in by)}{closes} AS closes, w, x, t FROM {rows}
'''
fold = '''
SELECT {folded} FROM cells{group}{"" if by else " HAVING count(*) > 0"}
'''

[oracle.values]
{kinds}
"""
