"""`manifests`: its YAML and its JSON hold the same, its commands are commands of this program, and what can't run is
refused in one sentence."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import typer.core
from ruamel.yaml import YAML
from typer.exceptions import TyperException

from harness.cli import app
from harness.model import Exit
from harness.services import owners
from harness.terminal.command_end import ended
from tests.program.terminal.test_ending import GROUP

IN_PODS = ["--namespace", "bench", "--image", "registry.example/streamgauge:0.2.0"]
SERVERS = ["--kafka", "kafka:9092", "--redis", "redis://redis:6379/4"]
WHOLE = [*IN_PODS, *SERVERS]


@pytest.fixture
def told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(owners, "sweep", list)

    def call(*words):
        arguments = ["manifests", *words]
        code = ended(arguments, lambda: app.called(arguments))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def made_by(told, *words) -> list[dict[str, Any]]:
    code, out, _ = told(*WHOLE, *words, "--json")
    assert code == Exit.PASS
    found: list[dict[str, Any]] = json.loads(out)["objects"]
    return found


def words_of(objects: list[dict[str, Any]], kind: str) -> list[str]:
    (found,) = (each for each in objects if each["kind"] == kind)
    (container,) = found["spec"]["template"]["spec"]["containers"]
    words: list[str] = container["args"]
    return words


def parsed(words: list[str]) -> dict[str, Any]:
    """What the program's own command line makes of them. An unknown flag is an error."""
    assert isinstance(GROUP, typer.core.TyperGroup)
    command = GROUP.commands[words[0]]
    return command.make_context(words[0], words[1:]).params


def test_yaml_and_json_hold_the_same(told):
    code, out, err = told(*WHOLE, "--workers", "2")

    assert (code, err) == (Exit.PASS, "")
    assert list(YAML(typ="safe", pure=True).load_all(io.StringIO(out))) == made_by(told, "--workers", "2")


def test_the_job_is_a_command_of_this_program(told):
    flags = ["calm", "--rate", "500", "--fault", "none", "--conf", "spark.executor.memory=2g", "--reset"]

    taken = parsed(words_of(made_by(told, *flags), "Job"))

    assert (taken["scenario"], taken["rate"], taken["fault"], taken["reset"]) == ("calm", "500", "none", True)
    assert (taken["master"], taken["checkpoint"]) == (
        "k8s://https://kubernetes.default.svc",
        "/streamgauge/checkpoints",
    )
    assert (taken["kafka"], taken["redis"]) == (SERVERS[1], SERVERS[3])
    assert {"spark.driver.host=$(POD_IP)", "spark.executor.memory=2g"} <= {*taken["conf"]}


def test_load_workers_are_commands_of_this_program(told):
    secured = ["--secret", "servers", "--kafka-config", "/etc/streamgauge/client.properties"]
    objects = made_by(told, "--workers", "2", *secured)

    master, worker = parsed(words_of(objects, "Job")), parsed(words_of(objects, "StatefulSet"))

    assert (master["workers"], master["bind"]) == ("2", "$(POD_IP):5557")
    assert worker["master"] == "streamgauge:5557"
    assert str(worker["kafka_config"]) == master["kafka_config"] == secured[3]


def test_more_load_workers_than_the_run_can_use_are_refused(told):
    code, out, err = told(*WHOLE, "--workers", "200")

    assert (code, out) == (Exit.USAGE, "")
    assert "workers" in err


def test_a_setting_of_the_user_takes_the_place_of_ours(told):
    taken = parsed(words_of(made_by(told, "--conf", "spark.executor.instances=5"), "Job"))

    assert [each for each in taken["conf"] if each.startswith("spark.executor.instances=")] == [
        "spark.executor.instances=5"
    ]


def test_a_flag_that_the_command_does_not_know_is_found():
    with pytest.raises(TyperException, match="--wrokers"):
        parsed(["run", "--wrokers", "2"])


def test_the_trial_is_a_line_of_a_shell(told):
    code, out, _ = told(*WHOLE, "--spark-submit")

    assert code == Exit.PASS
    assert out.startswith("spark-submit --master k8s://http://127.0.0.1:8001 --deploy-mode cluster ")
    assert all(line.endswith("\\") for line in out.splitlines()[:-1])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (SERVERS, "--image is missing: give the image of examples/kubernetes/Containerfile"),
        ([*WHOLE, "--image", "My Image"], "--image = 'My Image' is not right: an image such as"),
        ([*WHOLE, "--namespace", "ns/bench"], "--namespace = 'ns/bench' is not right: a name of Kubernetes"),
        ([*WHOLE, "--claim", "Check_Points"], "--claim = 'Check_Points' is not right: a name of Kubernetes"),
        ([*WHOLE, "--workers", "0"], "--workers = 0 is not right: a number from 1 to 256, or no --workers"),
        ([*WHOLE, "--workers", "two"], "--workers"),
        (IN_PODS, "also give --kafka, --redis"),
        ([*IN_PODS, "--kafka", "localhost:9092", *SERVERS[2:]], "--kafka names a loopback address"),
        ([*IN_PODS, *SERVERS[:2], "--redis", "redis://:s3cr3t@redis:6379/4"], "--redis has a password"),
        ([*WHOLE, "--engine", "reference"], "reference does not run on Spark"),
        ([*WHOLE, "--rate", "fast"], "rate = 'fast'"),
        ([*WHOLE, "--fault", "kill-worker@t>=5s"], "kill-worker@t>=5s does not apply here"),
        ([*WHOLE, "--conf", "spark.executor.memory"], "conf = "),
        ([*WHOLE, "--conf", "spark.a=1", "--conf", "spark.a=2"], "each key once"),
        ([*WHOLE, "nowhere"], "There is no scenario 'nowhere'"),
    ],
)
def test_what_cannot_run_is_refused_in_one_sentence(words, sentence, told):
    code, out, err = told(*words)

    assert (code, out) == (Exit.USAGE, "")
    assert sentence in " ".join(err.split())
    assert "s3cr3t" not in err
