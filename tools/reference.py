"""Writes the generated parts of docs/reference/: tables of what the code declares.

    python -m tools.reference            writes all pages
    python -m tools.reference --check    names the pages that are not current, and exits with 1

A page is Markdown written by hand around generated blocks:

    <!-- generated: NAME -->
    ...
    <!-- end: NAME -->

A block is made from a registry of the program. Sentences that have no place in the code are in reference.toml beside
this file. Nothing is started, and no file is read but those of the repository.
"""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import typer.core
import typer.main

from generators.disorder import PRESETS
from generators.profiles import PROFILES
from harness.cli import app, panels
from harness.config import plan
from harness.config.scenario_keys import KEYS, Group, Key
from harness.engines import own_options
from harness.engines.manifest_keys import CLAIM_KEYS, ENGINE_KEYS, MANIFEST_KEYS, PLACEHOLDERS, SINK_KEYS
from harness.experiments import chaos, compare, scale
from harness.faults.base import USUAL, Kind
from harness.faults.registry import FAULTS
from harness.judging.checks import CHECKS
from harness.judging.scenario_conditions import WHAT
from harness.measuring import measurement
from harness.model import Certificate, CheckResult, Disorder, Exit, Witness
from harness.results.registry import SOURCES
from harness.util.toml_key import TomlKey
from reports.files import KNOWN
from workloads.declared import declaration, oracle, tables
from workloads.declared import fields as kinds_of_fields

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
TEXTS = Path(__file__).with_suffix(".toml")
BLOCK = re.compile(r"<!-- generated: ([\w-]+) -->\n(.*?)<!-- end: \1 -->\n", re.DOTALL)
GROUPS: Mapping[Group, str] = {
    "load": "Load",
    "disorder": "Disorder",
    "fault": "Fault",
    "engine": "Engine",
    "sink": "Sink",
    "environment": "Environment",
}
# Files of experiments, of which reports/files.py has the list together with those of runs.
OF_EXPERIMENTS = (
    *("experiment.json", "rounds.jsonl", "card.md", "card.json", "table.md", "benchmark.json", "badge.json"),
    *("metrics.prom", "audit.json", "trend.json", "otava.yaml"),
)
# The parts of the answers in JSON that are records of the program.
RECORDS: Mapping[str, Any] = {
    "checks": CheckResult,
    "checks: witnesses": Witness,
    "certificate": Certificate,
    "measurement": measurement.Measurement,
    "measurement: latency": measurement.Latency,
    "measurement: latency: corrected": measurement.Quantiles,
    "measurement: cost": measurement.Cost,
    "measurement: steady": measurement.Steady,
    "measurement: observer": measurement.Observer,
    "recovery": measurement.Recovery,
    "recovery: quantities": measurement.Quantity,
    "chaos: cells": chaos.Cell,
    "compare: engines": compare.Row,
    "scale: points": scale.Point,
    "scale: cost": scale.Cost,
}


@cache
def texts() -> Mapping[str, Any]:
    """Return the sentences that have no place in the code."""
    return tomllib.loads(TEXTS.read_text(encoding="utf-8"))


# ---------------------------------------------------------------- Markdown


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a bar inside of a cell is escaped."""
    lines = [head, ["---"] * len(head), *rows]
    cells = [[cell.replace("|", r"\|") for cell in line] for line in lines]
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def code(text: str) -> str:
    return f"`{text}`" if text else ""


def sentence(text: str) -> str:
    """Begin with a large letter and end with a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}" if text else ""


def listed(head: Sequence[str], told: Mapping[str, str], name: str = "`{}`") -> str:
    """Return a table of names with a sentence each."""
    return table(head, [[name.format(each), sentence(what)] for each, what in told.items()])


# ---------------------------------------------------------------- Commands


def command_of(words: Sequence[str] = ()) -> Any:
    """Return a command by its words, without any the group of all."""
    found: Any = typer.main.get_command(app.app)
    for word in words:
        found = found.commands[word]
    return found


def all_commands() -> Iterator[tuple[str, ...]]:
    """Yield the words of each command, in the order of the help."""
    for panel in panels.PANELS:
        for name, place in app.COMMANDS.items():
            if place.heading == panel:
                yield (name,)
                yield from ((name, below) for below in getattr(command_of([name]), "commands", {}))


def commands() -> str:
    """List all commands below the headings of the help."""
    parts = []
    for panel in panels.PANELS:
        names = [words for words in all_commands() if app.COMMANDS[words[0]].heading == panel]
        rows = [[_link(words), _summary(command_of(words))] for words in names]
        parts += [f"**{panel}**\n", table(["command", "does"], rows)]
    return "\n".join(parts)


def flags() -> str:
    """Describe each command with its arguments and flags."""
    return "\n".join(_command(words) for words in all_commands())


def _link(words: Sequence[str]) -> str:
    """A command of two words is not set as code: it would be one to type, and may need an argument."""
    name = " ".join(words)
    return f"[{name if len(words) > 1 else code(name)}](#{'-'.join(words)})"


def _summary(command: Any) -> str:
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _command(words: Sequence[str]) -> str:
    command = command_of(words)
    keys = [each for each in command.params if is_key(each)]
    own = [each for each in command.params if each not in keys and each.name != "as_json"]
    parts = [f"## {' '.join(words)}\n", f"{inspect.cleandoc(command.help or '')}\n"]
    if epilog := inspect.cleandoc(getattr(command, "epilog", None) or ""):
        parts.append(re.sub(r"^Example: (.+)$", r"Example: `\1`", epilog, flags=re.MULTILINE) + "\n")
    if own:
        parts.append(table(["argument or flag", "does"], [[_spelled(each), _help(each)] for each in own]))
    if keys:
        names = ", ".join(code(name) for each in keys for name in (*each.opts, *each.secondary_opts))
        parts.append(f"[Keys of a scenario](scenario-keys.md): {names}.\n")
        if other := [row for each in keys for row in _other_default(each)]:
            parts.append(table(["flag", "default here"], other))
    return "\n".join(parts)


def is_key(parameter: Any) -> bool:
    """Return whether a flag is a key of a scenario, and not only called like one."""
    key = None if isinstance(parameter, typer.core.TyperArgument) else KEYS.get(parameter.name)
    return key is not None and (parameter.help or "").startswith(f"{key.help[0].upper()}{key.help[1:]}")


def _spelled(parameter: Any) -> str:
    if isinstance(parameter, typer.core.TyperArgument):
        return code(f"{parameter.metavar or parameter.name.upper()}{'...' if parameter.nargs != 1 else ''}")
    names = ", ".join(code(name) for name in (*parameter.opts, *parameter.secondary_opts))
    return f"{names} {code(parameter.metavar or '')}".rstrip()


def _help(parameter: Any) -> str:
    """Return the help with the default, which Typer appends by itself if the text has none."""
    text = " ".join((parameter.help or "").split())
    if parameter.name == "scenario":
        text = "A [shipped scenario](scenario-keys.md#shipped-scenarios), or the path of a .toml file"
    default = parameter.default
    shows = not callable(default) and default not in (None, False, "", ()) and "[default" not in text
    text = re.sub(r" ?\[default: (.*?)\]$", r" Default: \1", text)
    return f"{text.rstrip('.')}. Default: `{default}`." if shows else f"{text.rstrip('.')}."


def _other_default(parameter: Any) -> Iterator[Sequence[str]]:
    """Yield the default of a command whose own scenario sets the key."""
    found, usual = (
        re.search(r"\[default: (.*)\]$", " ".join(text.split()))
        for text in (parameter.help, KEYS[parameter.name].explained())
    )
    if found and (usual is None or found[1] != usual[1]):
        yield [code(parameter.opts[0]), found[1]]


# ---------------------------------------------------------------- Keys of a scenario


def scenario_keys() -> str:
    """List all keys, group by group."""
    flags_of_run = {each.name for each in command_of(["run"]).params}
    parts = []
    for group, heading in GROUPS.items():
        rows = [_key(name, key, name in flags_of_run) for name, key in KEYS.items() if key.group == group]
        parts += [f"## {heading}\n", table(["key", "default", "takes", "what", "example"], rows)]
    return "\n".join(parts)


def _key(name: str, key: Key, is_flag: bool) -> Sequence[str]:
    told = [*([] if is_flag else ["In a file only"]), key.help, *([key.more] if key.more else [])]
    return [code(name), _default(key), _takes(key), " ".join(map(sentence, told)), code(key.example)]


def _takes(key: Key) -> str:
    """Return the placeholder of the value as in the help, with the allowed values."""
    words = key.read.shape.split("|")
    if len(words) > 1:
        return ", ".join(map(code, words))
    if isinstance(key.default, bool):
        return "`true`, `false`"
    return f"{words[0]}: {key.read.allowed}" if key.read.allowed else words[0]


def _default(key: Key) -> str:
    if key.usual or key.default in (None, "", {}, []):
        return key.usual or "none"
    return code(str(key.default).lower() if isinstance(key.default, bool) else _number(key.default))


def _number(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def dials() -> str:
    """List the settings of disorder, with those of each preset."""
    rows = []
    for each in fields(Disorder):
        usual = _number(each.default)
        set_by = [f"`{name}` {_number(value)}" for name, value in _set_by(each.name, each.default)]
        rows.append([code(each.name), usual, sentence(texts()["dials"][each.name]), ", ".join(set_by)])
    return table(["dial", "default", "what", "presets that set it"], rows)


def _set_by(dial: str, default: object) -> Iterator[tuple[str, object]]:
    found = ((name, getattr(preset, dial)) for name, preset in PRESETS.items())
    yield from ((name, value) for name, value in found if value != default)


def profiles() -> str:
    """List the shapes of the load, with their numbers and defaults."""
    rows = []
    for name, build in PROFILES.items():
        numbers = [each for each in inspect.signature(build).parameters.values() if each.default is not each.empty]
        usual = ", ".join(f"`{each.name}` ({_number(each.default)})" for each in numbers)
        rows.append([code(name), sentence(texts()["profiles"][name]), usual or "-"])
    return table(["`kind`", "rate", "numbers and their defaults"], rows)


def requires() -> str:
    """List the preconditions of scenarios."""
    asks = {name: plan.read_scenario(name)[1].get("requires", ()) for name in plan.scenarios()}
    rows = []
    for name, what in WHAT.items():
        told = texts()["requires"][name]
        of = ", ".join(code(scenario) for scenario, names in asks.items() if name in names)
        rows.append([code(name), what, of or "-", told["refused"], told["unknown"]])
    return table(["`requires`", "needs", "scenarios", "refused if", "UNKNOWN `vacuous` if"], rows)


# ---------------------------------------------------------------- Manifests and declared workloads


def _keys(keys: Mapping[str, TomlKey]) -> str:
    rows = [
        [
            code(name),
            "**required**" if key.required else key.usual,
            key.allowed,
            sentence(key.help),
            code(key.example),
        ]
        for name, key in keys.items()
    ]
    return table(["key", "default", "takes", "what", "example"], rows)


def manifest_keys() -> str:
    """List the keys of a user's manifest: of the engine, and of its job."""
    of_job = {name: key for name, key in MANIFEST_KEYS.items() if name not in ENGINE_KEYS}
    assert of_job.keys() >= CLAIM_KEYS.keys()
    return f"## The program\n\n{_keys(ENGINE_KEYS)}\n## The job and its results\n\n{_keys(of_job)}"


def values() -> str:
    """List the words that stand for values in `understands` and `settings`."""
    return listed(["word", "stands for"], {name: what for name, (_, what) in own_options.SHAPES.items()})


def field_kinds() -> str:
    """Describe each kind of field with its keys."""
    return "\n".join(
        f"### {name}\n\n{kind.draws}\n\n{_keys(kind.keys)}" for name, kind in kinds_of_fields.KINDS.items()
    )


def table_keys() -> str:
    """List the keys of a table, and of its place in Redis."""
    return f"{_keys(tables.KEYS)}\n**`redis`**\n\n{_keys(tables.REDIS_KEYS)}"


# ---------------------------------------------------------------- Faults


def faults() -> str:
    """Describe all faults, family by family."""
    parts = []
    for family in dict.fromkeys(kind.family for kind in FAULTS.values()):
        rows = [_fault(kind) for kind in FAULTS.values() if kind.family == family]
        parts.append(f"### {texts()['families'][family]}\n")
        parts.append(table(["fault", "what happens", "a correct job", "options", "needs", "moments"], rows))
    return "\n".join(parts)


def _fault(kind: Kind) -> Sequence[str]:
    options = [f"`{name}={usual}`: {option(kind.name, name)}" for name, usual in kind.options.items()]
    moments = f"{_moments(kind.moments)}; by default `{kind.usual}`"
    return [code(kind.name), kind.what, kind.correct, "; ".join(options) or "-", kind.needs or "-", moments]


def _moments(kinds: Sequence[str]) -> str:
    """Name the kinds of moments, or those that are left out if these are fewer."""
    others = [kind for kind in USUAL if kind not in kinds]
    if not others:
        return "any"
    return f"any but {', '.join(others)}" if len(others) == 1 else ", ".join(kinds)


def option(fault: str, name: str) -> str:
    """Return what an option of a fault means."""
    return str(texts()["options-of"].get(f"{fault}.{name}") or texts()["options"][name])


# ---------------------------------------------------------------- Checks, exit codes, files


def words() -> str:
    """List the words of a verdict, with their outcome and the check that gives them."""
    found = [(outcome, word, told) for outcome, told_of in texts()["words"].items() for word, told in told_of.items()]
    rows = [[code(word), outcome, told["means"], told["by"]] for outcome, word, told in found]
    return table(["word", "outcome", "means", "check"], rows)


def exit_codes() -> str:
    """List the exit codes."""
    rows = [[f"**{value}**", sentence(texts()["exit"][name])] for name, value in exits().items()]
    return table(["code", "means"], rows)


def exits() -> Mapping[str, int]:
    """Return the exit codes by name."""
    return {name: value for name, value in vars(Exit).items() if name.isupper()}


def exit_codes_of() -> str:
    """List what the codes mean for the commands that judge."""
    rows = [
        [code(command), "; ".join(f"**{value}** {what}" for value, what in told.items())]
        for command, told in texts()["exit-of"].items()
    ]
    return table(["command", "codes"], rows)


def files() -> str:
    """List the files of a run."""
    known = {name: what for name, what in KNOWN.items() if name not in OF_EXPERIMENTS}
    return listed(["file", "holds"], known | texts()["files"])


def columns() -> str:
    """List the columns of each table of a run."""
    return "\n".join(
        f"### {name}\n\n"
        + table(
            ["column", "type", "holds"], [[code(column), kind, sentence(what)] for column, (kind, what) in of.items()]
        )
        for name, of in texts()["columns"].items()
    )


# ---------------------------------------------------------------- Answers in JSON


def answers() -> str:
    """List the keys of the object that each command prints."""
    order = [" ".join(words) for words in all_commands()]
    found = sorted(texts()["json"].items(), key=lambda each: _position(each[0], order))
    parts = [f"### {command}\n\n{_answer(keys)}" for command, keys in found]
    return "\n".join(parts)


def _position(command: str, order: Sequence[str]) -> int:
    """Return the place of a command with flags behind the command itself; all else is last."""
    return max((at for at, name in enumerate(order) if f"{command} ".startswith(f"{name} ")), default=len(order))


def _answer(keys: Mapping[str, str] | str) -> str:
    if isinstance(keys, str):
        return f"{keys}\n"
    return listed(["key", "holds"], keys)


def records() -> str:
    """List the fields of the records inside of these objects."""
    rows = [[code(name), ", ".join(code(each.name) for each in fields(kind))] for name, kind in RECORDS.items()]
    return table(["in", "fields"], rows)


def sources() -> str:
    """List the sources of results."""
    return table(
        ["`results`", "where they are"], [[code(s.form), sentence(texts()["sources"][n])] for n, s in SOURCES.items()]
    )


# ---------------------------------------------------------------- Pages

PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "commands.md": {"commands": commands, "flags": flags},
    "scenario-keys.md": {
        "scenarios": lambda: listed(["scenario", "what"], plan.scenarios()),
        "keys": scenario_keys,
        "presets": lambda: listed(["preset", "events"], {name: texts()["presets"][name] for name in PRESETS}),
        "dials": dials,
        "profiles": profiles,
        "requires": requires,
    },
    "manifest.md": {
        "keys": manifest_keys,
        "sinks": lambda: _keys(SINK_KEYS),
        "sources": sources,
        "placeholders": lambda: listed(["placeholder", "is"], PLACEHOLDERS, "`{{{}}}`"),
        "values": values,
    },
    "workload-fields.md": {
        "keys": lambda: _keys(declaration.KEYS),
        "event": lambda: _keys(declaration.EVENT_KEYS),
        "kinds": field_kinds,
        "tables": table_keys,
        "oracle": lambda: _keys(declaration.ORACLE_KEYS),
        "values": lambda: listed(["kind", "is"], oracle.KINDS, '`"{}"`'),
    },
    "faults.md": {"faults": faults},
    "checks.md": {
        "checks": lambda: table(["check", "FAIL or UNKNOWN if"], [[code(n), texts()["checks"][n]] for n in CHECKS]),
        "words": words,
    },
    "files.md": {
        "files": files,
        "columns": columns,
        "experiments": lambda: listed(["file", "holds"], {name: KNOWN[name] for name in OF_EXPERIMENTS}),
    },
    "exit-codes.md": {"codes": exit_codes, "commands": exit_codes_of},
    "json.md": {"answers": answers, "records": records},
}


class PageError(Exception):
    """A page lacks a block, or has one that nobody makes."""


def current(name: str, text: str) -> str:
    """Return the text of a page with all of its blocks made anew."""
    blocks = PAGES[name]
    found = [each for each, _ in BLOCK.findall(text)]
    if sorted(found) != sorted(blocks):
        raise PageError(f"{name} has the blocks {', '.join(found)}, and needs {', '.join(blocks)}, each once")
    return BLOCK.sub(
        lambda block: f"<!-- generated: {block[1]} -->\n{blocks[block[1]]()}<!-- end: {block[1]} -->\n", text
    )


def stale(folder: Path = FOLDER) -> list[str]:
    """Return the names of the pages that are not current."""
    pages = {name: (folder / name).read_text(encoding="utf-8") for name in PAGES}
    return [name for name, text in pages.items() if current(name, text) != text]


def write(folder: Path = FOLDER) -> None:
    """Write all pages."""
    for name in PAGES:
        path = folder / name
        path.write_text(current(name, path.read_text(encoding="utf-8")), encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or check them. Return the exit code."""
    if [*arguments] not in ([], ["--check"]):
        print("python -m tools.reference [--check]", file=sys.stderr)
        return 2
    if not arguments:
        write()
        return 0
    for name in (found := stale()):
        print(f"docs/reference/{name} is not current: `python -m tools.reference` writes it.", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
