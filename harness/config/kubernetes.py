"""A run on Kubernetes as manifests: a Job for the harness, in which the driver runs, a StatefulSet of load workers, and
one claim that all of them and the executors mount.

Spark makes the executors' pods itself, from the settings here. Nothing is sent to a cluster.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from harness.model import UsageError
from harness.util.suggest import wrong

NAME = "streamgauge"
HARNESS, WORKER = "harness", "worker"
USER = 185  # of the image, as in Spark's own images
MOUNT, SECRETS = "/streamgauge", "/etc/streamgauge"
CHECKPOINTS, RUNS = f"{MOUNT}/checkpoints", f"{MOUNT}/runs"
LOAD_PORT = 5557
BIND = f"$(POD_IP):{LOAD_PORT}"
MASTER = "k8s://https://kubernetes.default.svc"
PROXIED_MASTER = "k8s://http://127.0.0.1:8001"  # of `kubectl proxy`
TRIAL = "local:///opt/spark/examples/src/main/python/pi.py"  # in the image
MOST_EXECUTORS, MOST_WORKERS = 1000, 256

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL, SUBDOMAIN = re.compile(_LABEL), re.compile(rf"{_LABEL}(\.{_LABEL})*")
# [REGISTRY[:PORT]/]NAME[:TAG][@DIGEST]
_PART = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
IMAGE = re.compile(
    rf"([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:\d+)?/)?{_PART}(/{_PART})*(:\w[\w.-]{{0,127}})?(@sha256:[0-9a-f]{{64}})?",
    re.ASCII,
)
QUANTITY = re.compile(r"[1-9]\d*([KMGTPE]i|[kMGTPE])?")

# What a driver does with the pods of its executors, as its requests show. The last three delete what bears its label.
RULES = {
    "pods": ("get", "list", "watch", "create", "patch", "delete", "deletecollection"),
    "configmaps": ("create", "deletecollection"),
    "persistentvolumeclaims": ("list", "deletecollection"),
    "services": ("deletecollection",),
}
# Of harness and load workers: not root, and the group of the claim.
OF_PODS = {
    "runAsNonRoot": True,
    "runAsUser": USER,
    "runAsGroup": USER,
    "fsGroup": USER,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
OF_CONTAINERS = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True)
class Deployment:
    """The question of `manifests`."""

    namespace: str
    image: str
    run: tuple[str, ...]  # the scenario and the flags of the run without --conf, as words
    claim: str
    storage: str
    storage_class: str = ""  # "": the cluster's default
    executors: int = 2
    workers: int | None = None  # None: the harness sends the load itself
    secret: str = ""
    kafka_config: str = ""  # in the pods
    conf: Mapping[str, str] = field(default_factory=dict)  # takes precedence over the settings below


# ---------------------------------------------------------------- Refusals


def refuse(asked: Deployment) -> None:
    """Refuse what an API server would refuse, or a node later."""
    if not asked.image:
        raise UsageError("--image is missing: give the image of examples/kubernetes/Containerfile, as nodes pull it.")
    _refuse_name("--namespace", asked.namespace, LABEL, 63, "lower-case letters, digits and -")
    for flag, value in (
        ("--claim", asked.claim),
        ("--secret", asked.secret),
        ("--storage-class", asked.storage_class),
    ):
        if value or flag == "--claim":
            _refuse_name(flag, value, SUBDOMAIN, 253, "lower-case letters, digits, - and .")
    if not IMAGE.fullmatch(asked.image):
        raise UsageError(wrong("--image", asked.image, "an image such as registry.example/streamgauge:0.2.0"))
    if not QUANTITY.fullmatch(asked.storage):
        raise UsageError(wrong("--storage", asked.storage, "a size such as 10Gi"))
    if not 1 <= asked.executors <= MOST_EXECUTORS:
        raise UsageError(wrong("--executors", asked.executors, f"a number from 1 to {MOST_EXECUTORS}"))
    if asked.workers is not None and not 1 <= asked.workers <= MOST_WORKERS:
        alone = "no --workers if the Job alone shall send the load"
        raise UsageError(wrong("--workers", asked.workers, f"a number from 1 to {MOST_WORKERS}, or {alone},"))
    _refuse_file_elsewhere(asked)


def _refuse_file_elsewhere(asked: Deployment) -> None:
    path = PurePosixPath(asked.kafka_config)
    if asked.kafka_config and not path.is_absolute():
        raise UsageError(
            wrong("--kafka-config", asked.kafka_config, f"a path in the pods, such as {SECRETS}/client.properties,")
        )
    if path.is_relative_to(SECRETS) and not asked.secret:
        raise UsageError(f"--kafka-config {path} is a file of a Secret: name that Secret with --secret.")


def _refuse_name(flag: str, value: str, form: re.Pattern[str], longest: int, letters: str) -> None:
    if not form.fullmatch(value) or len(value) > longest:
        raise UsageError(
            wrong(flag, value, f"a name of Kubernetes (up to {longest} {letters}, a letter or digit at both ends)")
        )


# ---------------------------------------------------------------- Settings of Spark


def shared_settings(asked: Deployment) -> dict[str, str]:
    """Return the settings that make the executors' pods."""
    return {
        "spark.kubernetes.namespace": asked.namespace,
        "spark.kubernetes.container.image": asked.image,
        "spark.executor.instances": str(asked.executors),
        **_mounted("executor", asked),
    }


def settings_of_job(asked: Deployment) -> dict[str, str]:
    """Return the settings of a driver that runs in the Job's pod. Its executors belong to that pod, so that Kubernetes
    deletes them with it; Kubernetes puts its name and address in the place of the variables.
    """
    own = {"spark.driver.host": "$(POD_IP)", "spark.kubernetes.driver.pod.name": "$(POD_NAME)"}
    return {**own, **shared_settings(asked), **asked.conf}


def settings_of_trial(asked: Deployment) -> dict[str, str]:
    """Return the settings of a driver that gets a pod of its own."""
    account = {"spark.kubernetes.authenticate.driver.serviceAccountName": NAME}
    of_spark = {key: value for key, value in asked.conf.items() if key.startswith("spark.")}
    return {**shared_settings(asked), **_mounted("driver", asked), **account, **of_spark}


def _mounted(role: str, asked: Deployment) -> dict[str, str]:
    claim = f"spark.kubernetes.{role}.volumes.persistentVolumeClaim.{NAME}"
    secret = {f"spark.kubernetes.{role}.secrets.{asked.secret}": SECRETS} if asked.secret else {}
    return {f"{claim}.options.claimName": asked.claim, f"{claim}.mount.path": MOUNT, **secret}


def words_of_run(asked: Deployment) -> list[str]:
    """Return the command line of the harness."""
    load = ["--workers", str(asked.workers), "--bind", BIND] if asked.workers else []
    own = ["--master", MASTER, "--checkpoint", CHECKPOINTS, "--out", RUNS, *_conf(settings_of_job(asked))]
    return ["run", *load, *own, *asked.run]


def words_of_worker(asked: Deployment) -> list[str]:
    """A worker reads the security settings of Kafka itself: they are not sent to it."""
    secured = ["--kafka-config", asked.kafka_config] if asked.kafka_config else []
    return ["worker", "--master", f"{NAME}:{LOAD_PORT}", *secured]


def _conf(settings: Mapping[str, str]) -> list[str]:
    return [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]


def spark_submit(asked: Deployment) -> str:
    """Return the command by which a small application tries image, rights and claim, before the first run."""
    lines = [
        f"spark-submit --master {PROXIED_MASTER} --deploy-mode cluster --name {NAME}-trial",
        *(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in settings_of_trial(asked).items()),
        f"{TRIAL} 100",
    ]
    return " \\\n    ".join(lines)


# ---------------------------------------------------------------- The objects


def objects(asked: Deployment) -> list[dict[str, Any]]:
    """Return the objects in an order in which they can be applied."""
    return [{**each, "metadata": {**each["metadata"], "namespace": asked.namespace}} for each in _objects(asked)]


def _objects(asked: Deployment) -> Iterator[dict[str, Any]]:
    yield _claim(asked)
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata()}
    group = "rbac.authorization.k8s.io"
    yield {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": _metadata(), "rules": _rules()}
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(),
        "roleRef": {"apiGroup": group, "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": asked.namespace}],
    }
    if asked.workers:
        yield _service()
        yield _workers(asked, asked.workers)
    yield _job(asked)


def _rules() -> list[dict[str, Any]]:
    return [{"apiGroups": [""], "resources": [resource], "verbs": [*verbs]} for resource, verbs in RULES.items()]


def _metadata(name: str = NAME, component: str = "") -> dict[str, Any]:
    return {"name": name, "labels": _labels(component)}


def _labels(component: str = "") -> dict[str, str]:
    own = {"app.kubernetes.io/component": component} if component else {}
    return {"app.kubernetes.io/name": NAME, **own}


def _claim(asked: Deployment) -> dict[str, Any]:
    of_class = {"storageClassName": asked.storage_class} if asked.storage_class else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": _metadata(asked.claim),
        "spec": {
            "accessModes": ["ReadWriteMany"],
            **of_class,
            "resources": {"requests": {"storage": asked.storage}},
        },
    }


def _service() -> dict[str, Any]:
    """The name by which load workers find the harness."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": _labels(HARNESS),
            "ports": [{"name": "load", "port": LOAD_PORT}],
        },
    }


def _workers(asked: Deployment, count: int) -> dict[str, Any]:
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": OF_PODS,
        "containers": [_container(WORKER, asked, words_of_worker(asked), cpu="1", memory="1Gi")],
        **_volumes(asked, claim=False),
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": _metadata(f"{NAME}-{WORKER}", WORKER),
        "spec": {
            "serviceName": NAME,
            "replicas": count,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": _labels(WORKER)},
            "template": {"metadata": {"labels": _labels(WORKER)}, "spec": pod},
        },
    }


def _job(asked: Deployment) -> dict[str, Any]:
    """The harness. A run is judged, and not tried again: neither its container nor its pod is started twice."""
    harness = _container(HARNESS, asked, words_of_run(asked), cpu="2", memory="4Gi")
    harness["env"] = [_of_the_pod("POD_IP", "status.podIP"), _of_the_pod("POD_NAME", "metadata.name")]
    harness["volumeMounts"] = [{"name": NAME, "mountPath": MOUNT}, *harness.pop("volumeMounts", [])]
    pod = {
        "serviceAccountName": NAME,
        "restartPolicy": "Never",
        "securityContext": OF_PODS,
        "containers": [harness],
        **_volumes(asked, claim=True),
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(component=HARNESS),
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": _labels(HARNESS)}, "spec": pod}},
    }


def _of_the_pod(name: str, field: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def _container(name: str, asked: Deployment, words: Sequence[str], *, cpu: str, memory: str) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": name,
        "image": asked.image,
        "args": [*words],
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}},
        "securityContext": OF_CONTAINERS,
    }
    if asked.secret:
        container["envFrom"] = [{"secretRef": {"name": asked.secret}}]
        container["volumeMounts"] = [{"name": "secret", "mountPath": SECRETS, "readOnly": True}]
    return container


def _volumes(asked: Deployment, *, claim: bool) -> dict[str, Any]:
    volumes = [{"name": NAME, "persistentVolumeClaim": {"claimName": asked.claim}}] if claim else []
    secret = [{"name": "secret", "secret": {"secretName": asked.secret}}] if asked.secret else []
    return {"volumes": [*volumes, *secret]} if volumes or secret else {}
