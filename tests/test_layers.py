"""Imports go one way. The map of ARCHITECTURE.md as a table: who may import whom; an arrow the wrong way fails here."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from workloads.registry import WORKLOADS

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("harness", "workloads", "generators", "reports")

# From the lowest to the highest; a module imports its own layer and those below. The longest prefix decides.
LAYERS = [
    {
        "harness",
        "harness.model",
        "harness.clock",
        "harness.explain",
        "harness.wait",
        "harness.texts",
        "harness.whole",
        "harness.room",
        "harness.ending",
        "harness.origin",
        "harness.descriptors",
    },
    {"generators.draws"},
    {"workloads"},
    {"generators"},
    {
        "harness.judging",
        "harness.epoch",
        "harness.certificate",
        "harness.measuring",
        "harness.watching",
        "harness.store",
        "harness.stored",
        "harness.observe",
        "harness.diagnosis",
        "harness.install",
        "harness.grants",
        "harness.needs",
        "harness.services",
        "harness.engines",
        "harness.faults",
        "harness.audit",
        "harness.results",
    },
    {
        "harness.recount",
        "harness.load",
        "harness.bursts",
        "harness.settings",
        "harness.plan",
        "harness.judging.judge",
        "harness.judging.contradictions",
        "harness.worlds",
    },
    {"harness.run"},
    {  # planners: pure
        "harness.experiments.folder",
        "harness.experiments.repeat",
        "harness.experiments.search",
        "harness.experiments.chaos",
        "harness.experiments.compare",
        "harness.experiments.gate",
        "harness.experiments.rounds",
        "harness.experiments.conditions",
        "harness.experiments.calibrate",
        "harness.experiments.history",
        "harness.experiments.baseline",
    },
    {"reports"},
    {"harness.experiments", "harness.console"},
    {"harness.completion", "harness.flags", "harness.panels"},
    {"harness.commands"},
    {"harness.cli"},
    {"harness.__main__"},
]
# What a few modules may not import although the layers would let them.
FORBIDDEN = {
    "harness.judging.checks": {
        "redis",
        "kafka",
        "confluent_kafka",
        "harness.engines",
        "workloads.registry",
        "generators",
    },
    "harness.engines": {"generators", "workloads"},
    "harness.services": {"generators", "workloads"},
    "harness.audit": {"generators", "workloads"},
    "harness.faults": {"generators", "workloads"},
    "harness": {"pyspark", "locust", "gevent"},
    "reports": {"redis", "kafka", "confluent_kafka", "generators"},
}
# Run as programs of their own by a child process; nobody imports them.
JOBS = {"workloads.jobs", *(f"workloads.{name}.jobs" for name in WORKLOADS)}
PROGRAMS = {"generators.adservers", *JOBS}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {_module(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))}


def _imports(path: Path, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every module that these statements import; `from a import b` counts as a.b when that is a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports by dots; write the whole name"
            assert node.module is not None
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name if name in MODULES else node.module for name in whole)


TREES = {module: ast.parse(path.read_text(encoding="utf-8")) for module, path in MODULES.items()}
# Also inside of functions.
IMPORTS = {module: [*_imports(MODULES[module], ast.walk(tree))] for module, tree in TREES.items()}
AT_ONCE = {module: [*_imports(MODULES[module], tree.body)] for module, tree in TREES.items()}


def within(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def layer(module: str) -> int:
    matches = [(len(prefix), i) for i, prefixes in enumerate(LAYERS) for prefix in prefixes if within(module, prefix)]
    exact = [(n, i) for n, i in matches if LAYERS[i] != LAYERS[0] or module in LAYERS[0]]
    assert exact, f"{module} has no place in the layers: add it to tests/test_layers.py and ARCHITECTURE.md"
    return max(exact)[1]


def is_program(module: str) -> bool:
    return any(within(module, program) for program in PROGRAMS)


def test_imports_go_one_way():
    wrong = [
        f"{module} imports {imported}"
        for module, found in IMPORTS.items()
        if not is_program(module)
        for imported in found
        if imported.split(".")[0] in FOLDERS and layer(imported) > layer(module)
    ]

    assert wrong == []


def test_nobody_imports_what_is_not_theirs():
    wrong = [
        f"{module} imports {imported}"
        for module, found in IMPORTS.items()
        if not is_program(module)
        for imported in found
        for prefix, forbidden in FORBIDDEN.items()
        if within(module, prefix) and any(within(imported, each) for each in forbidden | PROGRAMS)
    ]

    assert wrong == []


def test_nobody_knows_a_workload_but_by_the_registry():
    assert [
        f"{module} imports {imported}"
        for module, found in IMPORTS.items()
        for imported in found
        if not is_program(module) and concrete(imported) and concrete(module) != concrete(imported)
    ] == []
    assert concrete("workloads.ad_impressions.schema") == "workloads.ad_impressions"
    assert concrete("workloads.base") == concrete("harness.judging.judge") == ""


def concrete(module: str) -> str:
    """The workload to which a module belongs; "" for what is of no workload."""
    folders = {holder.rpartition(".")[0] for holder in WORKLOADS.values()}
    return next((folder for folder in folders if within(module, folder)), "")


def test_jobs_know_nothing_of_the_harness_but_the_schema():
    """A job that shared the judge's arithmetic would share its mistakes."""
    wrong = [
        f"{module} imports {imported}"
        for module, found in IMPORTS.items()
        for jobs in JOBS
        if within(module, jobs)
        for imported in found
        if imported.split(".")[0] in FOLDERS
        and not any(within(imported, each) for each in ("workloads.jobs", jobs, jobs.replace(".jobs", ".schema")))
    ]

    assert wrong == []


def test_the_start_of_a_command_waits_for_no_library_that_few_commands_need():
    slow = {"kafka", "matplotlib", "duckdb", "fastavro", "harness.services.kafka_admin", "reports.figures"}
    wanting = {
        module
        for module, found in AT_ONCE.items()
        if not any(within(module, each) for each in slow)
        and any(within(imported, each) for imported in found for each in slow)
    }

    # Which the command line imports by name, when one of them is asked for.
    commands = {module for module in MODULES if within(module, "harness.commands")}
    assert not wanting & set().union(*map(reached, commands | {"harness.cli"}))
    assert wanting & reached("reports.run_page"), "that one draws, and would be seen"


def reached(first: str) -> set[str]:
    """All modules that come with one."""
    seen, left = set(), [first]
    while left:
        module = left.pop()
        if module in AT_ONCE and module not in seen:
            seen.add(module)
            left += AT_ONCE[module]
    return seen


def test_an_arrow_the_wrong_way_would_be_seen():
    assert layer("harness.model") < layer("workloads.ad_impressions.schema") < layer("generators.tape")
    assert layer("generators.tape") < layer("harness.judging.checks.lost") < layer("harness.run") < layer("harness.cli")
    assert layer("harness.experiments.search") < layer("reports.run_page") < layer("harness.experiments.one_run")
    assert layer("harness.flags") < layer("harness.commands.run") < layer("harness.cli")
