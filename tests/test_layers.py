"""Imports go one way. The map of ARCHITECTURE.md as a table: who may import whom; an arrow the wrong way fails here."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from workloads.shipped import WORKLOADS

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("harness", "workloads", "generators", "reports", "tools")

# The folders from the lowest to the highest: a module imports from its own folder and from those below. The longest
# prefix decides.
LAYERS = (
    "harness.model",
    "harness.util",
    "workloads",
    "generators",
    "harness",  # its version
    "harness.host",
    "harness.terminal",
    "harness.web",
    "harness.install",
    "harness.services",
    "harness.rundir",
    "harness.evidence",
    "harness.engines",
    "harness.results",
    "harness.faults",
    "harness.metering",
    "harness.load",
    "harness.kafka_log",
    "harness.judging",
    "harness.judging.judge",
    "harness.measuring",
    "harness.config",
    "harness.experiments",
    "harness.runner",
    "harness.audit",
    "reports",
    "harness.drivers",
    "harness.selftest",
    "tools",
    "harness.cli",
    "harness.__main__",
    "tools.reference",  # reads all of it, and nobody imports it
)
# What decides from values alone, and what must not come with it, however far away it is imported.
PURE = (
    "harness.judging.checks",
    "harness.evidence.ledger",
    "harness.judging.lateness",
    "harness.evidence.checksums",
    "harness.evidence.observed",
    "harness.experiments.curve.steer",
    "harness.experiments.curve.crossing",
    "harness.experiments.curve.lives",
)
WORLD = {
    "redis",
    "kafka",
    "confluent_kafka",
    "subprocess",
    "socket",
    "harness.services",
    "harness.engines",
    "harness.worlds",
    "harness.rundir.store",
    "workloads.registry",
    "generators",
}
# What a few modules may not import although the layers would let them.
FORBIDDEN = {
    "harness.engines": {"generators", "workloads"},
    "harness.services": {"generators", "workloads"},
    "harness.audit": {"generators", "workloads"},
    "harness.faults": {"generators", "workloads"},
    "harness": {"pyspark", "locust", "gevent"},
    "reports": {"redis", "kafka", "confluent_kafka", "generators"},
}
# Run as programs of their own by a child process; nobody imports them.
SHARED = {"workloads.prefixed"}  # knows no workload: jobs and the harness write keys of Redis in one way
JOBS = {"workloads.jobs", *(f"workloads.{name}.jobs" for name in WORKLOADS)}
LOADS = {"generators.ad_server", "generators.adservers", "generators.load_master", "generators.load_worker"}
CHECKS = {"harness.kafka_log.spark_check", "harness.kafka_log.spark_check_job"}  # in processes of Spark
RECOUNTS = {"harness.kafka_log.spark_recount", "harness.kafka_log.spark_recount_job"}  # so are these
PROGRAMS = {*LOADS, *JOBS, *CHECKS, *RECOUNTS}


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


Graph = Mapping[str, Sequence[str]]  # whom each module imports
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


@cache
def graphs() -> tuple[Graph, Graph]:
    """Parse the program, which takes seconds: imports also inside of functions, and those at once."""
    inside, at_once = {}, {}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside[module], at_once[module] = [*_imports(path, ast.walk(tree))], [*_imports(path, tree.body)]
    return inside, at_once


@pytest.fixture
def inside() -> Graph:
    return graphs()[0]


@pytest.fixture
def at_once() -> Graph:
    return graphs()[1]


def within(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def layer(module: str) -> int:
    """The number of its folder; `harness` is that of no other module."""
    matches = [
        (len(prefix), number)
        for number, prefix in enumerate(LAYERS)
        if module == prefix or (prefix != "harness" and within(module, prefix))
    ]
    assert matches, f"{module} has no place in the layers: add it to tests/test_layers.py and ARCHITECTURE.md"
    return max(matches)[1]


def is_program(module: str) -> bool:
    return any(within(module, program) for program in PROGRAMS)


def upwards(imports: Graph) -> list[str]:
    return [
        f"{module} imports {imported}"
        for module, found in imports.items()
        if not is_program(module)
        for imported in found
        if imported.split(".")[0] in FOLDERS and layer(imported) > layer(module)
    ]


def test_imports_go_one_way(inside):
    assert upwards(inside) == []


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("harness.model", "harness.runner.run"),
        ("harness.judging.checks.lost", "harness.judging.judge"),
        ("reports.run_page", "harness.drivers.one_run"),
        ("generators.tape", "harness.rundir.store"),
    ],
)
def test_an_arrow_upwards_is_seen(inside, module, imported):
    planted = {**inside, module: [*inside[module], imported]}

    assert upwards(planted) == [f"{module} imports {imported}"]


def not_theirs(imports: Graph) -> list[str]:
    return [
        f"{module} imports {imported}"
        for module, found in imports.items()
        if not is_program(module)
        for imported in found
        for prefix, forbidden in FORBIDDEN.items()
        if within(module, prefix) and any(within(imported, each) for each in forbidden | PROGRAMS)
        if imported not in SHARED
    ]


def test_nobody_imports_what_is_not_theirs(inside):
    assert not_theirs(inside) == []
    assert not_theirs({"reports.page": ["redis"]}) == ["reports.page imports redis"]


def impure(at_once: Graph) -> list[str]:
    """What comes with a pure module when it is imported, and through whom."""
    pure = [module for module in at_once if any(within(module, each) for each in PURE)]
    return sorted(
        f"{first} comes with {imported}, by {module}"
        for first in pure
        for module in reached(first, at_once)
        for imported in at_once[module]
        if any(within(imported, each) for each in WORLD)
    )


def test_what_decides_touches_nothing(at_once):
    assert impure(at_once) == []


@pytest.mark.parametrize("imported", ["redis", "subprocess", "harness.services.kafka", "generators.tape"])
def test_what_touches_the_world_is_seen_however_far_away_it_is(at_once, imported):
    case, far = "harness.judging.checks.case", "harness.made_up.far.away"
    tree = {**at_once, case: [*at_once[case], "harness.made_up.near"], "harness.made_up.near": [far], far: []}
    assert impure(tree) == []

    by_a_package = {**tree, "harness.made_up.far": [imported]}  # which comes with each module in it
    for planted, by in (({**tree, far: [imported]}, far), (by_a_package, "harness.made_up.far")):
        assert f"harness.judging.checks.lost comes with {imported}, by {by}" in impure(planted)
        assert f"{case} comes with {imported}, by {by}" in impure(planted)


def test_nobody_knows_a_workload_but_by_the_registry(inside):
    assert [
        f"{module} imports {imported}"
        for module, found in inside.items()
        for imported in found
        if not is_program(module) and concrete(imported) and concrete(module) != concrete(imported)
    ] == []
    assert concrete("workloads.ad_impressions.schema") == "workloads.ad_impressions"
    assert concrete("workloads.base") == concrete("harness.judging.judge") == ""


def test_a_noun_is_imported_from_their_folder_alone(inside):
    """Where it lies there is nobody else's concern: one way to name it, and a file there can be split."""
    assert past_the_folder(inside) == []
    assert past_the_folder({"harness.runner.run": ["harness.model", "harness.model.verdict"]}) == ["harness.runner.run"]


def past_the_folder(imports: Graph) -> list[str]:
    return [
        module
        for module, found in imports.items()
        if not within(module, "harness.model") and any(each.startswith("harness.model.") for each in found)
    ]


def concrete(module: str) -> str:
    """The workload to which a module belongs; "" for what is of no workload."""
    folders = {holder.rpartition(".")[0] for holder in WORKLOADS.values()}
    return next((folder for folder in folders if within(module, folder)), "")


def test_jobs_know_nothing_of_the_harness_but_the_schema(inside):
    """A job that shared the judge's arithmetic would share its mistakes."""
    wrong = [
        f"{module} imports {imported}"
        for module, found in inside.items()
        for jobs in JOBS
        if within(module, jobs)
        for imported in found
        if imported.split(".")[0] in FOLDERS
        and not any(
            within(imported, each) for each in ("workloads.jobs", *SHARED, jobs, jobs.replace(".jobs", ".schema"))
        )
    ]

    assert wrong == []


def test_the_start_of_a_command_waits_for_no_library_that_few_commands_need(at_once):
    slow = {"kafka", "matplotlib", "duckdb", "fastavro", "harness.services.kafka_admin", "reports.figures"}
    wanting = {
        module
        for module, found in at_once.items()
        if not any(within(module, each) for each in slow)
        and any(within(imported, each) for imported in found for each in slow)
    }

    # The command line imports its commands by name, when one of them is asked for.
    commands = {module for module in MODULES if within(module, "harness.cli")}
    assert len(commands) > 20
    assert not wanting & set().union(*(reached(each, at_once) for each in commands))
    assert wanting & reached("reports.run_page", at_once), "that one draws, and would be seen"


def reached(first: str, at_once: Graph) -> set[str]:
    """All modules that come with one, and the packages in which they lie."""
    seen, left = set(), [first]
    while left:
        module = left.pop()
        if module in at_once and module not in seen:
            seen.add(module)
            left += at_once[module]
        left += [each for each in [module.rpartition(".")[0]] if each and each not in seen]
    return seen


def test_the_layers_are_those_of_the_map():
    assert layer("harness.model") < layer("workloads.ad_impressions.schema") < layer("generators.tape")
    assert (
        layer("generators.tape")
        < layer("harness.judging.checks.lost")
        < layer("harness.runner.run")
        < layer("harness.cli")
    )
    assert layer("harness.experiments.searching.search") < layer("reports.run_page") < layer("harness.drivers.one_run")
    assert layer("harness.drivers.one_run") < layer("harness.cli.run") < layer("harness.__main__")
