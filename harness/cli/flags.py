"""The flags that several commands share. A key of a scenario is a flag of the same name with the same help."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any

import typer

from harness.cli import namesakes, shell_completion
from harness.config.scenario_keys import KEYS
from harness.terminal import console

Command = Callable[..., None]


def takes(*keys: str, usual: Mapping[str, str] = {}) -> Callable[[Command], Command]:
    """Add the flags of these keys to a command, which gets only the given ones in its `**flags`.

    `usual` holds values of the command's scenario that differ from a key's default. `--help` shows the flags behind the
    command's positional parameters and before its keyword-only ones.
    """
    flags = [_flag(key, usual.get(key, "")) for key in keys]

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_flags(*args: Any, **values: Any) -> None:
            for sentence in namesakes.sentences(values):
                console.say(sentence)
            unsaid = [key for key in keys if values.get(key) in (None, [])]
            command(*args, **{name: value for name, value in values.items() if name not in unsaid})

        own = inspect.signature(command, eval_str=True)
        named = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        first = [each for each in named if each.kind is not Parameter.KEYWORD_ONLY]
        parameters = [*first, *flags, *named[len(first) :]]
        with_flags.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return with_flags

    return decorate


def _flag(key: str, usual: str) -> Parameter:
    """Build a flag that is None if it is not given, so that the scenario decides."""
    kind: Any = {bool: bool | None, dict: list[str] | None}.get(type(KEYS[key].default), str | None)
    option = typer.Option(
        help=KEYS[key].explained(usual),
        show_default=False,
        metavar=KEYS[key].read.shape or None,
        autocompletion=shell_completion.OF_KEY.get(key),
    )
    return Parameter(key, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])
