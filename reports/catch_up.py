"""How an engine worked off what was waiting, in words."""

from __future__ import annotations

from collections.abc import Iterator

from harness.measuring.measurement import CatchUp


def rows(found: CatchUp) -> Iterator[tuple[str, str, str]]:
    yield "caught up", found.caught_up.text(seconds), found.caught_up.note
    yield "fresh again", found.fresh.text(seconds), found.fresh.note
    if found.per_s is not None:
        yield "done meanwhile", f"{found.per_s:,.0f} events/s", "its start is part of the time"
        if found.cpu_s_per_million is not None:
            cost = f"{found.cpu_s_per_million:.3g} CPU-s/M at {found.per_s:,.0f} events/s"
            yield "cost meanwhile", cost, "of the engine, its start included"


def seconds(value: float) -> str:
    return f"{value:,.1f} s"


def in_words(found: CatchUp) -> str:
    """One sentence."""
    said = [f"{found.waiting:,} events of {found.oldest_s:.0f} s waited"]
    said.append(f"caught up: {_after(found.caught_up.text(seconds), found.caught_up.note, found.caught_up.value)}")
    if found.per_s is not None:
        cost = "" if found.cpu_s_per_million is None else f" at {found.cpu_s_per_million:.3g} CPU-s per million"
        said.append(f"{found.per_s:,.0f}/s{cost} meanwhile")
    said.append(f"fresh again: {_after(found.fresh.text(seconds), found.fresh.note, found.fresh.value)}")
    return ", ".join(said)


def _after(text: str, note: str, value: float | None) -> str:
    return f"{text} after its start" if value is not None else f"{text} ({note})"
