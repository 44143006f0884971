"""Whatever somebody writes in a flag, a scenario, a tier or a manifest is understood, or refused in a sentence."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config import plan
from harness.config.scenario_keys import KEYS
from harness.engines import manifest
from harness.engines.manifest_keys import MANIFEST_KEYS, SINK_KEYS
from harness.experiments import chaos
from harness.faults import grammar
from harness.faults.registry import FAULTS
from harness.model import EngineManifest, RunSpec, UsageError
from harness.util.toml_reader import MistakeError

# What is likely to be mistaken for something: numbers that are none, times without units, half of a grammar.
ODD = st.sampled_from(
    [
        *(
            "nan",
            "inf",
            "-inf",
            "1e400",
            "1e-400",
            "9" * 400,
            "1_000",
            "\uff10",
            "\u00b2",
            "-0",
            "0x10",
            "",
            " ",
            "\x00",
        ),
        *("\x00", "10", "10s", "0.0001ms", "9" * 400 + "s", "24.1h", "none", "any", "mobile,", "=", ","),
        "late_share=nan",
        *("kill@", "kill@t>=", "kill@c3:batch=" + "9" * 5000, "repeat(" + "9" * 5000 + "; kill)", "any()", "(" * 2000),
        *("repeat(900; repeat(900; repeat(900; kill)))", "redis-pause(for=" + "9" * 400 + "s)", "kill@offset>=+50%"),
        *("spark@", "spark@1.2.3", "fake", "~nobody/x", "redis://[", "rediss://:x@h:99999/0", "spark://", "local["),
        *("a = " + "9" * 5000, "a = " + "[" * 3000, "a = " + "{b=" * 3000, "a = 1\na = 2", "\ud800"),
    ]
)
LETTERS = string.ascii_letters + string.digits + "@>=:;(),.%+- "
TEXT = st.one_of(ODD, st.text(max_size=30), st.text(LETTERS, max_size=40))
NUMBER = st.one_of(st.integers(), st.floats(), st.sampled_from([10**400, -(10**400), 2**63]))
PLAIN = st.one_of(TEXT, NUMBER, st.booleans())
ANYTHING = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3))
FLAGS = [key for key in KEYS if not isinstance(KEYS[key].default, bool | dict)]


def understood(take, *arguments):
    """What becomes of it, or nothing when it was refused in a sentence."""
    try:
        return take(*arguments)
    except (UsageError, MistakeError) as error:
        sentence = str(error)
    assert sentence.strip()
    return None


def planned(scenario, flags):
    found = understood(plan.resolve, "any", scenario, flags, manifest.load)
    assert found is None or isinstance(found[0], RunSpec)


def read_as_any_file(path):
    for read in (plan.read_scenario, chaos.read_tier, manifest.load):
        understood(read, str(path))


@given(st.dictionaries(st.sampled_from(FLAGS), TEXT, max_size=4))
def test_any_text_as_a_flag(flags):
    planned({}, {"engine": "fake", **flags})


@pytest.mark.parametrize("key", KEYS)
@given(value=ANYTHING)
def test_any_value_of_a_key_of_a_scenario(key, value):
    planned({"engine": "fake", key: value}, {})


@given(st.dictionaries(TEXT, ANYTHING, max_size=4))
def test_any_table_as_a_scenario(table):
    planned(table, {})


@given(st.one_of(TEXT.map(lambda text: text.encode(errors="replace")), st.binary(max_size=30)))
def test_any_bytes_as_a_file(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("any") / "any.toml"
    path.write_bytes(content)
    read_as_any_file(path)


@given(TEXT)
def test_any_text_as_the_name_of_a_file(text):
    read_as_any_file(text)
    read_as_any_file(f"{text}.toml")


CLAIM = {"name": "s", "late": "drop", "guarantee": "none"}
GOOD = {"id": "mine", "command": ["{python}", "{config}"]}


@given(
    st.dictionaries(st.sampled_from([*MANIFEST_KEYS]) | TEXT, ANYTHING, max_size=3),
    st.dictionaries(st.sampled_from([*SINK_KEYS]) | TEXT, ANYTHING, max_size=2),
)
def test_any_manifest(changes, sink):
    table = {**GOOD, "sinks": [{**CLAIM, **sink}], **changes}
    found = understood(lambda: manifest.read(table, Path()))
    assert found is None or isinstance(found, EngineManifest)


@given(TEXT)
def test_any_text_as_a_fault(text):
    fault = understood(grammar.parse, text, FAULTS)
    assert fault is None or all(leaf.action in (*FAULTS, "none") for leaf in fault.leaves)


@given(TEXT)
def test_any_text_as_an_engine(text):
    found = understood(manifest.load, text)
    assert found is None or isinstance(found, EngineManifest)
