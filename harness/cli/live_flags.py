"""The flags `--live` and `--live-port` of commands that make runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import Parameter
from typing import Annotated, Any

import typer

from harness.terminal import console

HIGHEST_PORT = 65535

Live = Annotated[
    bool, typer.Option("--live", help="Show the run in a browser while it goes on, and print the address of the page.")
]
LivePort = Annotated[
    int | None,
    typer.Option(
        "--live-port",
        min=1,
        max=HIGHEST_PORT,
        metavar="PORT",
        help="Port of the page on this machine; it implies --live. [default: a free one]",
        show_default=False,
    ),
]


def with_live(command: Callable[..., None]) -> Callable[..., None]:
    """Add both flags to a command. Its runs write what the page shows with and without them."""

    @functools.wraps(command)
    def shown(*args: Any, live: bool = False, live_port: int | None = None, **values: Any) -> None:
        if not live and live_port is None:
            command(*args, **values)
            return
        with page(live_port or 0):
            command(*args, **values)

    own = inspect.signature(command, eval_str=True)
    flags = [
        Parameter("live", Parameter.KEYWORD_ONLY, default=False, annotation=Live),
        Parameter("live_port", Parameter.KEYWORD_ONLY, default=None, annotation=LivePort),
    ]
    shown.__signature__ = own.replace(parameters=[*own.parameters.values(), *flags])  # type: ignore[attr-defined]
    return shown


@contextmanager
def page(port: int) -> Iterator[None]:
    """Show the first run or experiment of the block, and store its page when it is over."""
    from harness.services import children, live_page
    from harness.terminal.command_end import short_path

    with children.guard():
        try:
            with live_page.asked(port):
                yield
        finally:
            if path := live_page.watched():
                from reports.live import export

                if stored := export.write_all(path):
                    console.say(f"{short_path(stored)} replays it in a browser.")
