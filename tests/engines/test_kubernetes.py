"""What Spark itself makes of our settings for Kubernetes: its pods are valid, its requests are within the Role, and its
executors run by the image's entrypoint and see the checkpoint.

The API server records requests and starts the executors as processes. No cluster is there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.config.kubernetes import PROXIED_MASTER, RULES, Deployment, settings_of_job, spark_submit
from harness.install import jvm
from tests.engines.kubernetes_api import ENTRYPOINT, HERE, ROOT, Api, Asked, served
from tests.quick.kubernetes_schemas import VERSIONS, mistakes

ASKED = Deployment("bench", "registry.example/streamgauge:0.2.0", (), claim="shared", storage="10Gi", secret="servers")
SEES = ROOT / "workloads" / "jobs" / "spark_executors.py"
HARNESS_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "streamgauge-x", "namespace": "bench", "uid": "11"},
    "status": {"phase": "Running"},
}

pytestmark = pytest.mark.timeout(600)


def of_kind(api: Api, kind: str) -> list[dict[str, Any]]:
    return [each for each in api.made if each["kind"] == kind]


def assert_all_valid(api: Api) -> None:
    wrong = [(each["kind"], version, mistakes(each, version)) for each in api.made for version in VERSIONS]
    assert [each for each in wrong if each[2]] == []


def assert_mounts_the_claim(pod: Mapping[str, Any]) -> None:
    (container,) = pod["spec"]["containers"]
    (volume,) = (each for each in pod["spec"]["volumes"] if "persistentVolumeClaim" in each)
    assert volume["persistentVolumeClaim"]["claimName"] == "shared"
    assert {each["mountPath"] for each in container["volumeMounts"] if each["name"] == volume["name"]} == {
        "/streamgauge"
    }
    assert "/etc/streamgauge" in {each["mountPath"] for each in container["volumeMounts"]}
    assert container["image"] == ASKED.image


def of_this_environment() -> dict[str, str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), str(jvm.java().parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "SPARK_LOCAL_IP": HERE}


def test_the_trial_submits_what_two_versions_take():
    with served() as (api, address):
        line = spark_submit(ASKED).replace(PROXIED_MASTER, f"k8s://{address}")
        line = line.replace(
            "spark-submit", "spark-submit --conf spark.kubernetes.submission.waitAppCompletion=false", 1
        )
        done = subprocess.run(
            line, shell=True, env=of_this_environment(), capture_output=True, text=True, timeout=500, check=False
        )

        assert done.returncode == 0, done.stderr
        assert {each["kind"] for each in api.made} == {"Pod", "Service", "NetworkPolicy", "ConfigMap"}
        assert_all_valid(api)
        (driver,) = of_kind(api, "Pod")
    assert_mounts_the_claim(driver)
    assert driver["spec"]["serviceAccountName"] == "streamgauge"
    (container,) = driver["spec"]["containers"]
    assert container["args"][0] == "driver"
    assert f"\n{container['args'][0]})\n" in ENTRYPOINT.read_text()


@pytest.mark.thorough
def test_executors_run_by_the_entrypoint_and_see_the_checkpoint(tmp_path):
    """The same first job as before a load, on executors that Spark asks the API server for."""
    answer = tmp_path / "answer.json"
    with served(tmp_path / "nodes") as (api, address):
        api.kept["pods", "streamgauge-x"] = HARNESS_POD
        of_the_pod = {"spark.driver.host": HERE, "spark.kubernetes.driver.pod.name": "streamgauge-x"}
        config = {
            "run": "r",
            "master": f"k8s://{address}",
            "jars": [],
            "java_options": "",
            "options": {**settings_of_job(ASKED), **of_the_pod, "spark.executor.memory": "600m"},
            "checkpoint": str(tmp_path / "checkpoint"),
        }
        (tmp_path / "config.json").write_text(json.dumps(config))
        done = subprocess.run(
            [sys.executable, "-E", "-m", "workloads.jobs.spark_executors", tmp_path / "config.json", answer],
            env=of_this_environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )

        assert done.returncode == 0, done.stderr
        assert_all_valid(api)
        executors = of_kind(api, "Pod")
    told = json.loads(answer.read_text())
    assert len(told["executors"]) == len(executors) == ASKED.executors
    assert (told["why"], told["failed"]) == ("", [])
    for each in executors:
        assert_mounts_the_claim(each)
        (owner,) = each["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Pod", "streamgauge-x")
    assert beyond_the_role(api.asked) == set()


def beyond_the_role(asked: list[Asked]) -> set[Asked]:
    allowed = {Asked(verb, "", resource) for resource, verbs in RULES.items() for verb in verbs}
    return {*asked} - allowed


def test_a_request_beyond_the_role_is_found():
    within, beyond = Asked("create", "", "pods"), Asked("create", "", "secrets")

    assert beyond_the_role([within, beyond]) == {beyond}
