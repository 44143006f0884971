"""Manifests of a run on Kubernetes: valid for two versions, with one claim; a name that is none there is refused."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest

from harness.config.kubernetes import Deployment, objects, refuse, settings_of_job, spark_submit, words_of_run
from harness.model import UsageError
from tests.quick.kubernetes_schemas import VERSIONS, mistakes

RUN = ("calm", "--kafka", "kafka:9092")
ASKED = Deployment("bench", "registry.example:5000/team/streamgauge:0.2.0", RUN, claim="shared", storage="10Gi")
ALL = [
    ASKED,
    replace(ASKED, workers=3, storage_class="nfs"),
    replace(ASKED, workers=1, secret="servers", kafka_config="/etc/streamgauge/client.properties"),
]


def of_kind(asked, kind):
    (found,) = (each for each in objects(asked) if each["kind"] == kind)
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("asked", ALL)
def test_every_object_is_valid_and_strict(asked, version):
    assert {each["kind"]: mistakes(each, version) for each in objects(asked) if mistakes(each, version)} == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_schema_finds_a_planted_mistake(version):
    job, workers = (of_kind(ALL[1], kind) for kind in ("Job", "StatefulSet"))
    unknown, of_another_type, incomplete = copy.deepcopy(job), copy.deepcopy(job), copy.deepcopy(workers)
    unknown["spec"]["template"]["spec"]["containers"][0]["arg"] = []
    of_another_type["spec"]["backoffLimit"] = "0"
    del incomplete["spec"]["selector"]

    for each, word in ((unknown, "'arg'"), (of_another_type, "backoffLimit"), (incomplete, "'selector'")):
        (told,) = mistakes(each, version)
        assert word in told


@pytest.mark.parametrize("asked", ALL)
def test_all_of_it_is_in_one_namespace_and_finds_each_other(asked):
    every = {each["kind"]: each for each in objects(asked)}
    job, claim = every["Job"], every["PersistentVolumeClaim"]
    pod = job["spec"]["template"]

    assert {each["metadata"]["namespace"] for each in every.values()} == {"bench"}
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    assert {"name": "streamgauge", "persistentVolumeClaim": {"claimName": "shared"}} in pod["spec"]["volumes"]
    assert (
        settings_of_job(asked)["spark.kubernetes.executor.volumes.persistentVolumeClaim.streamgauge.options.claimName"]
        == "shared"
    )
    assert pod["spec"]["serviceAccountName"] == every["ServiceAccount"]["metadata"]["name"]
    assert ("StatefulSet" in every) == ("Service" in every) == bool(asked.workers)
    if asked.workers:
        workers = every["StatefulSet"]["spec"]
        assert workers["replicas"] == asked.workers
        assert every["Service"]["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert not every["Service"]["spec"]["selector"].items() <= workers["template"]["metadata"]["labels"].items()
        assert workers["selector"]["matchLabels"].items() <= workers["template"]["metadata"]["labels"].items()
        assert not workers["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_driver_and_executors_mount_the_claim_where_the_job_mounts_it():
    (harness,) = of_kind(ASKED, "Job")["spec"]["template"]["spec"]["containers"]
    (mount,) = harness["volumeMounts"]
    words, trial = words_of_run(ASKED), spark_submit(ASKED)

    assert words[words.index("--checkpoint") + 1].startswith(f"{mount['mountPath']}/")
    assert words[words.index("--out") + 1].startswith(f"{mount['mountPath']}/")
    for role in ("driver", "executor"):
        assert (
            f"spark.kubernetes.{role}.volumes.persistentVolumeClaim.streamgauge.mount.path={mount['mountPath']}"
            in trial
        )
    assert (
        f"spark.kubernetes.executor.volumes.persistentVolumeClaim.streamgauge.mount.path={mount['mountPath']}" in words
    )


def test_a_run_is_not_tried_again():
    spec = of_kind(ASKED, "Job")["spec"]

    assert (spec["backoffLimit"], spec["template"]["spec"]["restartPolicy"]) == (0, "Never")


def test_no_pod_is_root():
    for asked in ALL:
        for each in objects(asked):
            if "template" in each.get("spec", {}):
                pod = each["spec"]["template"]["spec"]
                assert pod["securityContext"]["runAsNonRoot"] is True
                assert all(not one["securityContext"]["allowPrivilegeEscalation"] for one in pod["containers"])


def test_a_secret_reaches_harness_workers_and_executors():
    asked = ALL[2]
    for kind in ("Job", "StatefulSet"):
        (container,) = of_kind(asked, kind)["spec"]["template"]["spec"]["containers"]
        assert {"name": "secret", "mountPath": "/etc/streamgauge", "readOnly": True} in container["volumeMounts"]
        assert container["envFrom"] == [{"secretRef": {"name": "servers"}}]
    assert settings_of_job(asked)["spark.kubernetes.executor.secrets.servers"] == "/etc/streamgauge"
    assert of_kind(asked, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["args"][-2:] == [
        *("--kafka-config", "/etc/streamgauge/client.properties")
    ]


def test_a_setting_of_the_user_takes_the_place_of_ours():
    asked = replace(ASKED, conf={"spark.executor.instances": "5", "trigger": "1s"})
    words = words_of_run(asked)

    assert words[-len(RUN) :] == [*RUN]
    assert [each for each in words if each.startswith("spark.executor.instances=")] == ["spark.executor.instances=5"]
    assert "trigger=1s" in words
    assert "--conf spark.executor.instances=5 " in spark_submit(asked)
    assert "trigger" not in spark_submit(asked)


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"namespace": ""}, "--namespace"),
        ({"namespace": "Bench"}, "--namespace"),
        ({"namespace": "a.b"}, "--namespace"),
        ({"namespace": "a" * 64}, "--namespace"),
        ({"image": ""}, "--image is missing"),
        ({"image": "Not An Image"}, "--image"),
        ({"image": "registry.example/streamgauge:"}, "--image"),
        ({"claim": ""}, "--claim"),
        ({"claim": "check_points"}, "--claim"),
        ({"claim": "-a"}, "--claim"),
        ({"claim": "a..b"}, "--claim"),
        ({"claim": "a\n"}, "--claim"),
        ({"storage": "0"}, "--storage"),
        ({"storage": "10GB"}, "--storage"),
        ({"storage_class": "A"}, "--storage-class"),
        ({"secret": "a_b"}, "--secret"),
        ({"executors": 0}, "--executors"),
        ({"workers": 0}, "--workers"),
        ({"workers": -1}, "--workers"),
        ({"workers": 257}, "--workers"),
        ({"kafka_config": "client.properties"}, "--kafka-config"),
        ({"kafka_config": "/etc/streamgauge/client.properties"}, "--secret"),
    ],
)
def test_what_kubernetes_refuses_is_refused_first(changed, word):
    with pytest.raises(UsageError, match=word):
        refuse(replace(ASKED, **changed))


@pytest.mark.parametrize(
    "image",
    ["streamgauge", "streamgauge:1", "r.example:5000/a/b_c:1.0", f"r.example/a@sha256:{'0' * 64}", "localhost/a:x"],
)
def test_an_image_is_taken_as_registries_name_it(image):
    refuse(replace(ASKED, image=image))
