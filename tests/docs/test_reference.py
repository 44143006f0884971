"""docs/reference/: the generated pages are current, and what the program has is on them."""

from __future__ import annotations

import inspect
import re
import shutil
import tomllib
from dataclasses import fields
from decimal import Decimal
from typing import get_args

import pyarrow as pa
import pytest

from generators.disorder import PRESETS
from generators.profiles import PROFILES
from generators.sends import SENDS
from harness.config import plan
from harness.config.scenario_keys import KEYS, Group
from harness.engines import own_options
from harness.engines.config import EngineConfig
from harness.engines.fake import FAKE
from harness.engines.manifest import load
from harness.engines.manifest_keys import JOB_KEYS, MANIFEST_KEYS, PLACEHOLDERS, SINK_KEYS
from harness.engines.shipped import IDS, SHIPPED
from harness.experiments.chaos import tiers
from harness.faults import grammar, when
from harness.faults.base import USUAL
from harness.faults.registry import FAULTS
from harness.judging.checks import CHECKS
from harness.judging.scenario_conditions import WHAT
from harness.measuring.measurement import TIMELINE
from harness.metering.process_sampling import RESOURCES, STATE
from harness.model import Disorder, EngineManifest, Exit, SinkClaim
from harness.results.glitches import COLUMNS as GLITCHES
from harness.results.redis_scan import Row
from harness.results.registry import SOURCES
from harness.results.sampler import VERSION_COLUMNS
from harness.rundir.tables import TABLES
from harness.selftest.report import EXPECTED
from reports.files import KNOWN
from tests.docs.reference_pages import FOLDER, answer_of, names, page, rows, sections
from tests.quick import frozen
from tools import reference
from workloads.declared import declaration, oracle, tables
from workloads.declared import fields as kinds_of_fields

TEXTS = reference.texts()


# ---------------------------------------------------------------- The pages are those that would be written now


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_page_is_current(name):
    """`python -m tools.reference` writes all of them."""
    assert reference.current(name, page(name)) == page(name)


@pytest.fixture
def copy(tmp_path):
    return shutil.copytree(FOLDER, tmp_path / "reference")


def test_a_page_that_was_edited_is_named_and_mended(copy):
    path = copy / "checks.md"
    path.write_text(page("checks.md").replace("| `lost` | FAIL |", "| `lost` | PASS |"))

    assert reference.stale(copy) == ["checks.md"]
    reference.write(copy)
    assert path.read_text() == page("checks.md")


def test_what_is_written_by_hand_stays(copy):
    path = copy / "faults.md"
    path.write_text(page("faults.md").replace("Plans may be nested.", "Plans may not be nested."))

    assert reference.stale(copy) == []


@pytest.mark.parametrize("mark", ["<!-- generated: words -->", "<!-- end: words -->"])
def test_a_page_that_lacks_a_block_is_no_page(mark):
    with pytest.raises(reference.PageError, match="words"):
        reference.current("checks.md", page("checks.md").replace(mark, ""))


def test_the_command_that_checks_names_the_page(copy, monkeypatch, capsys):
    monkeypatch.setattr(reference, "FOLDER", copy)
    monkeypatch.setattr(reference, "stale", lambda folder=copy, real=reference.stale: real(folder))
    (copy / "json.md").write_text(page("json.md").replace("| `slack` |", "| `slock` |"))

    assert reference.main(["--check"]) == 1
    assert "json.md" in capsys.readouterr().err
    assert reference.main(["--chek"]) == 2


@pytest.mark.parametrize(
    ("section", "registry"),
    [
        ("checks", CHECKS),
        ("dials", [each.name for each in fields(Disorder)]),
        ("presets", PRESETS),
        ("profiles", PROFILES),
        ("requires", WHAT),
        ("sources", SOURCES),
        ("exit", reference.exits()),
        ("families", {kind.family for kind in FAULTS.values()}),
    ],
)
def test_no_sentence_is_of_something_that_is_gone(section, registry):
    assert {*TEXTS[section]} == {*registry}


def test_no_sentence_about_an_option_is_unused():
    used = {f"{kind.name}.{name}" for kind in FAULTS.values() for name in kind.options}
    own = {*TEXTS["options-of"]}

    assert own <= used
    assert {*TEXTS["options"]} == {name.rpartition(".")[2] for name in used - own}
    assert not {*TEXTS["files"]} & {*KNOWN}
    assert {*reference.OF_EXPERIMENTS} <= {*KNOWN}


# ---------------------------------------------------------------- Commands


@pytest.mark.parametrize("words", [*reference.all_commands()], ids=" ".join)
def test_every_command_is_there_with_its_flags(words):
    text = sections(page("commands.md"))[" ".join(words)]
    told = set(re.findall(r"`(--?[\w-]+)`", text))
    flags = {name for each in reference.command_of(words).params for name in (*each.opts, *each.secondary_opts)}

    assert {name for name in flags if name.startswith("-")} - {"--json", "--help"} == told
    assert " ".join((reference.command_of(words).help or "").split()) in " ".join(text.split())


def test_a_flag_that_is_only_called_like_a_key_has_its_own_sentence():
    assert "| `--rate` `EVENTS/S` | Planned rate of each producer. |" in sections(page("commands.md"))["audit"]
    assert "Planned rate" not in sections(page("commands.md"))["run"]


def test_the_default_of_a_commands_own_scenario_is_said():
    assert "| `--disorder` | none |" in sections(page("commands.md"))["search"]
    assert "`--disorder` |" not in sections(page("commands.md"))["run"]


# ---------------------------------------------------------------- Keys


@pytest.mark.parametrize("key", sorted(KEYS))
def test_every_key_of_a_scenario_stands_in_its_group(key):
    text = sections(page("scenario-keys.md"))[reference.GROUPS[KEYS[key].group]]
    (row,) = (row for row in rows(text) if row[0] == f"`{key}`")
    flags = {each.name for each in reference.command_of(["run"]).params}

    assert KEYS[key].help.lower() in row[3].lower()
    assert row[3].startswith("In a file only.") is not (key in flags)


def test_every_group_has_a_heading():
    assert [*reference.GROUPS] == [*get_args(Group)]
    assert {key.group for key in KEYS.values()} == {*get_args(Group)}


@pytest.mark.parametrize("key", sorted(KEYS))
def test_the_example_of_a_scenarios_key_is_taken(key):
    value = tomllib.loads(KEYS[key].example)

    assert [*value] == [key]
    assert KEYS[key].read(value[key], key) != KEYS[key].default


OF_TOML = {
    "manifest": MANIFEST_KEYS,
    "job": JOB_KEYS,
    "sinks": SINK_KEYS,
    "workload": declaration.KEYS,
    "event": declaration.EVENT_KEYS,
    "oracle": declaration.ORACLE_KEYS,
    "tables": tables.KEYS,
    "redis": tables.REDIS_KEYS,
    **{f"field {name}": kind.keys for name, kind in kinds_of_fields.KINDS.items()},
}


@pytest.mark.parametrize(("table", "key"), [(name, key) for name, keys in OF_TOML.items() for key in keys])
def test_the_example_of_a_key_is_taken(table, key):
    each = OF_TOML[table][key]
    value = tomllib.loads(each.example, parse_float=float if table in ("manifest", "job", "sinks") else Decimal)

    assert [*value] == [key]
    each.read(key, value[key])
    assert each.allowed
    assert each.required is not bool(each.usual)


@pytest.mark.parametrize(
    ("made", "keys"), [(EngineManifest, MANIFEST_KEYS), (SinkClaim, SINK_KEYS)], ids=["manifest", "sinks"]
)
def test_the_default_of_a_key_is_that_of_the_program(made, keys):
    usual = {each.name: each.default for each in fields(made) if each.name in keys}

    said = {name: f"`{str(value).lower()}`" for name, value in usual.items() if isinstance(value, bool)}
    said |= {name: f'`"{value}"`' for name, value in usual.items() if value and isinstance(value, str)}
    said |= {name: f"{value:g} s" for name, value in usual.items() if isinstance(value, float) and value}
    said.pop("workload", None)  # any: the run's own
    assert {name: keys[name].usual for name in said} == said
    assert {*said} >= ({"ready_s", "progress", "results"} if made is EngineManifest else {"final", "in_order"})


def test_every_key_of_a_manifest_is_there():
    found = sections(page("manifest.md"))

    assert {*names(found["The program"]), *names(found["The job and its results"])} == {*MANIFEST_KEYS}
    assert names(found["`[[sinks]]`"]) == [*SINK_KEYS]
    assert names(found["Placeholders of a command"]) == [f"{{{name}}}" for name in PLACEHOLDERS]
    assert names(found["Values of options"]) == [*own_options.SHAPES]
    assert names(found["Sources of results"]) == [source.form for source in SOURCES.values()]


def test_every_key_of_a_workload_is_there():
    whole = page("workload-fields.md")
    found = sections(whole)

    assert names(whole.split("\n## ")[0]) == [*declaration.KEYS]
    assert names(found["`[event]`"]) == [*declaration.EVENT_KEYS]
    assert names(found["`[oracle]`"]) == [*declaration.ORACLE_KEYS]
    assert names(found["`[tables.NAME]`"]) == [*tables.KEYS, *tables.REDIS_KEYS]
    assert names(found["`[oracle.values]`"]) == [f'"{kind}"' for kind in oracle.KINDS]
    kinds = sections(found["Kinds of fields"], 3)
    assert {name: names(text) for name, text in kinds.items()} == {
        name: [*kind.keys] for name, kind in kinds_of_fields.KINDS.items()
    }


def test_scenarios_engines_disorder_profiles_and_preconditions_are_there():
    found = sections(page("scenario-keys.md"))
    (engines,) = (row[2] for row in rows(found["Engine"]) if row[0] == "`engine`")

    assert names(found["Shipped scenarios"]) == [*plan.scenarios()]
    assert set(re.findall(r"[\w@-]+", engines)) >= {*IDS, FAKE}
    assert names(found["Presets and dials of disorder"]) == [*PRESETS, *(each.name for each in fields(Disorder))]
    assert names(found["Preconditions"]) == [*WHAT]
    numbers = {row[0].strip("`"): set(re.findall(r"`(\w+)` \(", row[2])) for row in rows(found["Profiles"])}
    built = {kind: set(inspect.signature(build).parameters) for kind, build in PROFILES.items()}
    assert numbers == {kind: taken - {"rate_per_s", "duration_ms"} for kind, taken in built.items()}


# ---------------------------------------------------------------- Faults


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_there_with_its_options(fault):
    kind = FAULTS[fault]
    family = sections(sections(page("faults.md"))["All faults"], 3)[TEXTS["families"][kind.family]]
    (row,) = (row for row in rows(family) if row[0] == f"`{fault}`")

    assert row[1:3] == [kind.what, kind.correct]
    assert all(f"`{name}={usual}`" in row[3] for name, usual in kind.options.items())
    assert f"`{kind.usual}`" in row[5]


def test_every_moment_and_every_plan_is_explained():
    moments, plans = (sections(page("faults.md"))[name] for name in ("Moments", "Plans"))
    told = [row[0] for row in rows(moments)]

    assert {re.findall(r"^`(\w+)", cell)[0] for cell in told} == {*when.KINDS}
    assert {row[1] for row in rows(moments) if len(row) == 3} >= {*USUAL}
    assert ", ".join(f"`{text}`" for text in USUAL.values()) in " ".join(moments.split())
    for combinator in grammar.COMBINATORS:
        assert f"`{combinator}(" in plans
    assert f"{grammar.MOST_STRIKES:,} times" in plans


@pytest.mark.parametrize("text", sorted({*names(sections(page("faults.md"))["Moments"])}))
def test_every_moment_that_is_shown_can_be_typed(text):
    assert when.parse(text).kind in USUAL


# ---------------------------------------------------------------- Checks

WORDS = {
    row[0].strip("`"): (row[1], row[3].split(", ")) for row in rows(sections(page("checks.md"))["Words of a verdict"])
}
PLANTED = sorted({told for part in tomllib.loads(EXPECTED.read_text()).values() for told in part.values()})


def test_every_check_is_there_in_its_order():
    assert names(sections(page("checks.md"))["Checks"])[: len(CHECKS)] == [*CHECKS]


@pytest.mark.parametrize("told", PLANTED)
def test_every_word_of_a_verdict_is_there_with_its_outcome(told):
    """The planted bugs of `selftest` are answered with every word there is."""
    outcome, _, words = told.partition(" ")
    for word in filter(None, words.split(", ")):
        assert word in WORDS
        assert WORDS[word][0] == outcome or (outcome == "FAIL" and "," in words)  # the worse of two outcomes counts


def test_every_word_that_a_check_may_say_is_there():
    (line,) = (line for line in frozen.kept()["words"] if line.startswith("words: "))
    said = {*line.removeprefix("words: ").split(" | ")}

    assert len(said) > len(CHECKS) / 2
    assert said - WORDS.keys() == set()


def test_every_word_names_a_check():
    known = {*CHECKS, "objective", "any"}

    assert {name for _, by in WORDS.values() for name in by} <= known
    assert {name for _, by in WORDS.values() for name in by} >= {*CHECKS}


# ---------------------------------------------------------------- Files

COLUMNS = {name: rows(text) for name, text in sections(sections(page("files.md"))["Columns"], 3).items()}
SAME = ("observed-after-stop.parquet", "backfilled.parquet")  # as observed.parquet
WRITTEN = dict(
    line.split(": ", 1) for line in frozen.kept()["columns of Parquet"] if ":" in line.partition(": ")[2]
)  # of whole runs, with their types


@pytest.mark.parametrize("name", WRITTEN)
def test_every_column_of_a_run_is_there_with_its_type(name):
    told = COLUMNS["observed.parquet" if name in SAME else name]
    written = [tuple(each.split(":")) for each in WRITTEN[name].split()]

    assert [row[0] for row in told] == [f"`{column}`" for column, _ in written]
    if name != "sends.parquet":  # the fake engine's has wider numbers
        assert [row[1] for row, (_, kind) in zip(told, written, strict=True) if kind not in ("null", row[1])] == []


def test_columns_are_those_that_the_program_names():
    told = {name: [row[0].strip("`") for row in of] for name, of in COLUMNS.items()}

    assert {row[0].strip("`"): row[1] for row in COLUMNS["sends.parquet"]} == {k: str(v) for k, v in SENDS.items()}
    assert told["resources.parquet"] == [*RESOURCES]
    assert told["state.parquet"] == [*STATE]
    assert told["timeline.parquet"] == [*TIMELINE]
    assert told["glitches.parquet"] == [*GLITCHES]
    assert told["versions.parquet"] == [*VERSION_COLUMNS]
    assert told["observed.parquet"] == [*Row._fields]
    assert {name for name in TABLES if name not in SAME} <= told.keys()
    assert all({*columns} <= {*told[name]} for name, columns in TABLES.items() if name not in SAME)


def test_every_type_of_a_column_is_one():
    kinds = {row[1] for of in COLUMNS.values() for row in of}

    assert all(pa.type_for_alias(kind) for kind in kinds)


# ---------------------------------------------------------------- Exit codes and answers


def test_every_exit_code_is_there():
    codes = [row[0].strip("*") for row in rows(page("exit-codes.md").split("\n## ")[0])]

    assert codes == [str(code) for code in (Exit.PASS, Exit.FAIL, Exit.USAGE, Exit.UNKNOWN, Exit.BROKEN)]
    assert {*TEXTS["exit-of"]} <= {" ".join(words) for words in reference.all_commands()}


def test_every_command_says_what_it_prints():
    told = {heading.partition(" --")[0] for heading in sections(page("json.md"), 3)}

    assert told - {"a mistake or an error"} == {" ".join(words) for words in reference.all_commands()}


@pytest.mark.parametrize("line", [line for line in frozen.kept()["answers in JSON"] if re.match(r"[a-z ]+: ", line)])
def test_every_key_that_the_code_prints_is_there(line):
    """What stands in the functions that make the answers; some belong to objects within them."""
    command, _, keys = line.partition(": ")
    told = "\n".join(
        text for heading, text in sections(page("json.md"), 3).items() if heading.partition(" --")[0] == command
    )

    for key in keys.split():
        assert f"`{key}`" in told or key in ("command", "exit", "STREAMGAUGE_TEST_ALL", "agrees", "right")


def test_the_keys_of_a_run_are_all_there():
    (line,) = (line for line in frozen.kept()["answers in JSON"] if line.startswith("command verdict"))

    assert answer_of("run") == {*line.split()} - {"command", "exit"}
    assert answer_of("recheck") == answer_of("run")


# ---------------------------------------------------------------- What is written by hand


def test_every_key_of_a_run_config_is_explained():
    text = sections(page("job.md"))["What it gets: the run config"]
    config = {each.name for each in fields(EngineConfig)} | {"redis_prefix"}

    assert {*names(text)} == config


def test_every_key_of_a_line_of_progress_is_explained():
    text = sections(page("job.md"))["Progress"]
    line = next(line for line in frozen.kept()["fields of JSON"] if line.startswith("progress.jsonl: "))
    keys = set(re.findall(r'"(\w+)": [\d\[{]', line)) - set("0123456789")

    assert {name for name in names(text) if re.fullmatch(r"\w+", name)} == keys


def test_those_that_sum_the_ids_of_events_are_named():
    (named,) = re.findall(r"`checksum = true` in their manifest: (.*?)\.", page("job.md"), re.DOTALL)
    able = {engine for engine in SHIPPED if load(engine).checksum}

    assert set(re.findall(r"`(.*?)`", named)) == {*able, "spark@VERSION", "fake"}


def test_the_glossary_is_short():
    found = rows(page("glossary.md"))

    assert 20 < len(found) < 30
    assert [row[0] for row in found if found.count(row) > 1] == []


def test_the_glossary_names_the_tiers_that_there_are():
    (row,) = (row for row in rows(page("glossary.md")) if row[0] == "tier")

    assert re.findall(r"`(\w+)`", row[1].split(":")[1]) == [*tiers()]
