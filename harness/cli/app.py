"""The registry of all commands. Each command is a line here and a file in this folder.

Exit codes: 0 PASS, 1 FAIL, 2 usage, 3 UNKNOWN, 4 the harness or its environment broke. Results go to stdout, everything
else to stderr.
"""

from __future__ import annotations

import gc
import json
import os
import re
import runpy
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.exceptions import TyperException

from harness import __version__
from harness.cli import examples, panels
from harness.cli.common_flags import Json, for_long
from harness.cli.live_flags import with_live
from harness.model import Exit, UsageError
from harness.rundir.missing_evidence import MissingEvidence
from harness.services import owners
from harness.terminal import console
from harness.terminal.command_end import COMPLETING, PROGRAM, flags_last


class Place(NamedTuple):
    """The location of a command's code, and its heading in the help."""

    module: str  # in harness/cli/
    name: str  # a function in it, or a Typer application if the command has subcommands
    heading: str
    is_long: bool = False  # it shows its progress, and has --quiet and --notify
    is_live: bool = False  # it makes runs, and has --live


COMMANDS = {
    "run": Place("run", "run", panels.RUNS, is_long=True, is_live=True),
    "recheck": Place("recheck", "recheck", panels.RUNS, is_long=True),
    "report": Place("recheck", "report", panels.RUNS, is_long=True),
    "ls": Place("ls_rm", "ls", panels.RUNS),
    "rm": Place("ls_rm", "rm", panels.RUNS),
    "serve": Place("serve", "serve", panels.RUNS),
    "tape": Place("tape", "tape", panels.RUNS),
    "backlog": Place("backlog", "backlog", panels.RUNS, is_long=True),
    "bench": Place("bench", "bench", panels.ITSELF, is_long=True),
    "search": Place("search", "search", panels.EXPERIMENTS, is_long=True, is_live=True),
    "chaos": Place("chaos", "chaos", panels.EXPERIMENTS, is_long=True, is_live=True),
    "compare": Place("compare", "compare", panels.EXPERIMENTS, is_long=True, is_live=True),
    "scale": Place("scale", "scale", panels.EXPERIMENTS, is_long=True),
    "gate": Place("gate", "gate", panels.EXPERIMENTS, is_long=True, is_live=True),
    "trend": Place("trend", "trend", panels.EXPERIMENTS),
    "upgrade": Place("upgrade", "upgrade_job", panels.EXPERIMENTS, is_long=True),
    "live": Place("live", "live", panels.RUNS),
    "replay": Place("replay", "replay", panels.RUNS, is_long=True),
    "selftest": Place("selftest", "selftest", panels.ITSELF, is_long=True),
    "audit": Place("audit", "audit", panels.RUNS),
    "worker": Place("worker", "worker", panels.RUNS),
    "up": Place("services", "up", panels.SETTING_UP),
    "down": Place("services", "down", panels.SETTING_UP),
    "doctor": Place("doctor", "doctor", panels.SETTING_UP),
    "manifests": Place("manifests", "manifests", panels.SETTING_UP),
    "completion": Place("completion", "completion", panels.SETTING_UP),
    "docs": Place("docs", "docs", panels.ITSELF),
    "test": Place("own_tests", "own_tests", panels.ITSELF),
    "engines": Place("engines", "app", panels.SETTING_UP),
    "workload": Place("workload", "app", panels.SETTING_UP),
}


def imported(name: str) -> Any:
    """Import a command's function or application, and convert it to a Typer command."""
    found = _found(COMMANDS[name])
    if not isinstance(found, typer.Typer):
        found = with_live(found) if COMMANDS[name].is_live else found
        found = for_long(name)(found) if COMMANDS[name].is_long else found
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    command: Any = typer.main.get_command(found)
    command.rich_help_panel = COMMANDS[name].heading
    panels.in_plain_words(command)
    examples.add_to(command, name)
    return command


def _found(place: Place) -> Any:
    """Import without garbage collection, which would take a tenth of the time and find nothing: modules stay."""
    gc.disable()
    try:
        return getattr(import_module(f"harness.cli.{place.module}"), place.name)
    finally:
        gc.enable()


class Imported(Mapping[str, Any]):
    """The commands by name. Each is imported on access, so that a run does not wait for the imports of a search."""

    def __getitem__(self, name: str) -> Any:
        return imported(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class Program(panels.Commands):
    """The group of all commands. Typer accesses those that a command line names or a help shows."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = Imported()  # type: ignore[assignment]


app = typer.Typer(
    cls=Program,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    epilog=examples.text(""),
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    *,
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
    as_json: Json = False,
) -> None:
    """Check whether a stream processor counts right, and measure how fast it is."""
    console.quieten(False)  # until a command reads its own --quiet
    if version:
        print(json.dumps({"version": __version__, "exit": Exit.PASS}) if as_json else f"{PROGRAM} {__version__}")
    elif context.invoked_subcommand is None and as_json:
        raise UsageError(f"No command was given. `{PROGRAM} --help` lists them.")
    elif context.invoked_subcommand is None:
        console.say(context.get_help())
        raise typer.Exit(Exit.USAGE)


def called(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. harness/terminal/command_end.py handles the errors of all commands.

    Typer's own `main` is not used because it maps Ctrl-C and any EPIPE to exit code 130 or 1.
    """
    program = typer.main.get_command(app)
    if COMPLETING in os.environ:
        from typer._completion_classes import completion_init

        completion_init()
        program.main(prog_name=PROGRAM)
    for sentence in owners.sweep():
        console.say(sentence)
    try:
        with program.make_context(PROGRAM, flags_last(arguments)) as context:
            program.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except MissingEvidence as error:
        console.say(f"{error}. `streamgauge report` makes a page from the files that are left.")
        return Exit.UNKNOWN
    except TyperException as mistake:
        raise UsageError(_sentence_of(mistake)) from None
    return Exit.PASS


def _sentence_of(mistake: TyperException) -> str:
    """Format a usage error of Typer, with a hint to the help."""
    context: typer.Context | None = getattr(mistake, "ctx", None)
    said = mistake.format_message().rstrip(".")
    if removed := _removed(said):
        return removed
    end = "" if said.endswith("?") else "."  # some suggest another word
    return f"{said}{end} `{context.command_path if context else PROGRAM} --help` lists what is allowed."


def _removed(said: str) -> str:
    """Return what to use instead of a flag of older versions; "" if the mistake is another one."""
    from harness.config.scenario_keys import REMOVED

    flag = re.search(r"--(?:no-)?([a-z-]+)", said) if said.startswith("No such option") else None
    instead = REMOVED.get(flag[1]) if flag else None
    return f"There is no {flag[0]} any more. {instead}" if flag and instead else ""


if __name__ == "__main__":  # a module that only defines the commands would end with exit code 0, which is a PASS
    runpy.run_module("harness", run_name="__main__")
