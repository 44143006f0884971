"""What an engine's process gets around it: the user's shell, but no other Spark or Flink than the one it says; and
how it ends."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engines import fake
from harness.engines.job import Surroundings
from harness.engines.manifest import load
from harness.engines.process import OTHER_ENGINES, ProcessEngine, environment_of, injected
from harness.install.archives import AOT_CACHE, CLASS_DATA
from harness.model import EngineManifest
from harness.services import children
from harness.util.wait import wait_until
from tests.quick.cases import RUN_CONFIG

PYTHON = Path("/ours/bin/python")
THEIRS = replace(fake.MANIFEST, id="theirs", shipped=False, command=("spark-submit", "job.py", "{config}"))


# A driver that ends at once when it is told to; what it started writes a file when it is gone.
DRIVER = """
(while kill -0 $$; do sleep 0.05; done 2> /dev/null; sleep 0.5; touch written) &
touch up
wait
"""


def engine_of(manifest: EngineManifest, folder: Path, java_options: tuple[str, ...] = ()) -> ProcessEngine:
    config = replace(RUN_CONFIG, sink=manifest.sinks[0].name, java_options=java_options)
    return ProcessEngine(manifest, config, logs=folder, evidence=folder, private=folder, env={})


def test_lines_that_a_job_may_write_never_mix_with_what_its_group_committed(tmp_path):
    manifest = replace(load("quix"), progress_group="g")
    written = json.loads(engine_of(manifest, tmp_path).config_path.read_text())

    assert written["progress_path"] != engine_of(manifest, tmp_path).config.progress_path
    assert engine_of(manifest, tmp_path).config.progress_path == "p"


def around(manifest: EngineManifest, **env: str) -> dict[str, str]:
    return environment_of(manifest, env, Path("/private"), Surroundings(PYTHON))


@pytest.mark.parametrize("engine", ["spark", "spark-rtm", "flink", "flink-standalone"])
def test_a_spark_or_flink_of_the_users_shell_is_not_used_in_the_place_of_ours(engine, monkeypatch):
    for name in OTHER_ENGINES:
        monkeypatch.setenv(name, "/another")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/cluster")

    found = around(load(engine), JAVA_HOME="/java")

    assert not OTHER_ENGINES & found.keys()
    assert {"SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "FLINK_HOME", "FLINK_LIB_DIR"} <= OTHER_ENGINES
    assert (found["HADOOP_CONF_DIR"], found["JAVA_HOME"]) == ("/cluster", "/java")


def test_a_jvm_leaves_its_temporary_files_in_the_runs_own_folder_unless_it_is_told_another(monkeypatch):
    monkeypatch.delenv("JAVA_TOOL_OPTIONS", raising=False)
    ours = "-Djava.io.tmpdir=/private/scratch"

    assert around(THEIRS)["JAVA_TOOL_OPTIONS"] == ours
    assert around(THEIRS, JAVA_TOOL_OPTIONS="-Xmx1g")["JAVA_TOOL_OPTIONS"] == f"{ours} -Xmx1g"
    elsewhere = environment_of(THEIRS, {}, Path("/a b"), Surroundings(PYTHON))
    assert elsewhere["JAVA_TOOL_OPTIONS"] == '"-Djava.io.tmpdir=/a b/scratch"', "a JVM parts its options at blanks"


def test_what_a_manifest_names_itself_is_used(monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/of-the-shell")
    manifest = replace(THEIRS, command=("{python}", "job.py"), env={"SPARK_HOME": "/of-the-manifest"})

    assert around(manifest)["SPARK_HOME"] == "/of-the-manifest"


def test_a_spark_of_the_users_own_keeps_what_its_user_told_it(monkeypatch):
    for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.setenv(name, "/theirs")

    found = around(THEIRS)

    assert {found[name] for name in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")} == {"/theirs"}


def test_a_job_on_our_python_has_workers_on_our_python(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/theirs")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)

    for command in (("{python}", "job.py"), ("nice", "{python}", "job.py")):
        found = around(replace(THEIRS, command=command))
        assert (found["PYSPARK_PYTHON"], found["PYSPARK_DRIVER_PYTHON"]) == (str(PYTHON), str(PYTHON))

    monkeypatch.delenv("PYSPARK_PYTHON")
    assert not {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"} & around(THEIRS).keys()


def test_a_shipped_job_finds_its_neighbours_also_when_another_manifest_extends_it(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    (tmp_path / "manifest.toml").write_text('id = "mine"\nextends = "quix"')

    found = [around(manifest).get("PYTHONPATH") for manifest in (load("quix"), load(str(tmp_path)), THEIRS)]

    assert found == ["/private/neighbours", "/private/neighbours", "/theirs"]


def test_beside_the_neighbours_of_a_job_there_is_nothing_of_this_program(tmp_path):
    """Installed, its own packages lie beside them, and an engine in another environment would import those."""
    for _ in range(2):  # a gate has engines that share a folder
        engine_of(load("quix"), tmp_path)

    (beside,) = (tmp_path / "neighbours").iterdir()
    assert beside.name == "workloads"
    assert (beside / "jobs" / "run_config.py").is_file()


@pytest.mark.parametrize(
    ("options", "writes"),
    [(way.makes, True) for way in (CLASS_DATA, AOT_CACHE)] + [(way.uses, False) for way in (CLASS_DATA, AOT_CACHE)],
)
def test_a_jvm_that_writes_an_archive_may_outlive_the_job_that_started_it(tmp_path, options, writes):
    (tmp_path / "driver.sh").write_text(DRIVER)
    manifest = replace(fake.MANIFEST, home=str(tmp_path), command=("bash", "driver.sh"))
    engine = engine_of(manifest, tmp_path, (*options[:-1], f"{options[-1]}archive"))
    with children.guard():
        engine.start()
        wait_until((tmp_path / "up").exists, deadline_s=30, what="the driver to be up")
        engine.stop()

    assert (tmp_path / "written").exists() == writes
    assert (engine.members(), engine.notes()) == ((), ())


def test_a_list_of_processes_that_misses_one_ends_nobody_early(tmp_path, monkeypatch):
    """psutil's misses whoever has lost its parent since the list was begun."""
    monkeypatch.setattr(children.Child, "members", lambda _: [])

    test_a_jvm_that_writes_an_archive_may_outlive_the_job_that_started_it(tmp_path, CLASS_DATA.makes, writes=True)


def test_a_manifests_folders_do_not_hide_the_neighbours_of_a_job(tmp_path):
    own = replace(THEIRS, extends="reference", env={"PYTHONPATH": "theirs"})

    found = environment_of(own, {}, tmp_path, Surroundings(PYTHON))["PYTHONPATH"].split(os.pathsep)

    assert found[0] == "theirs"
    assert len(found) == 2
    assert str(tmp_path) in found[1]


@pytest.mark.parametrize("name", ["JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS"])
def test_options_that_each_jvm_takes_are_named_without_their_value(name):
    (said,) = injected({name: "-Dpassword=geheim", "PATH": "/bin"})

    assert name in said
    assert "geheim" not in said
    assert injected({name: "", "PATH": "/bin"}) == []
