"""`streamgauge manifests`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from harness import __version__
from harness.cli.common_flags import Json, answer
from harness.cli.flags import takes
from harness.cli.scenario_flags import EVENTS, SYSTEM, Scenario
from harness.config import kubernetes, plan
from harness.config.kubernetes import Deployment
from harness.engines import manifest as engines
from harness.faults import registry
from harness.model import DEFAULT_SCENARIO, EngineManifest, UsageError, redacted
from harness.util import yaml_writer
from reports.command_flags import flag

STORAGE = "10Gi"
# The manifests say these themselves.
OF_THE_CLUSTER = ("master", "cluster", "checkpoint", "archive")


def _name(metavar: str, what: str) -> Any:
    return typer.Option(metavar=metavar, help=what, show_default=False)


@takes(
    "engine",
    "sink",
    "rate",
    "duration",
    "warm_up",
    "backlog",
    *EVENTS,
    "time",
    "fault",
    "states",
    *(name for name in SYSTEM if name not in OF_THE_CLUSTER),
    "checksum",
)
def manifests(
    scenario: Scenario = DEFAULT_SCENARIO,
    *,
    image: Annotated[str, _name("IMAGE", "Image made of examples/kubernetes/Containerfile. Required.")] = "",
    namespace: Annotated[
        str, typer.Option(metavar="NAME", help="Namespace in which all of it runs.")
    ] = kubernetes.NAME,
    executors: Annotated[int, typer.Option(metavar="N", help="Number of executors that Spark makes.")] = 2,
    workers: Annotated[
        int | None,
        _name("N", "Number of pods that send the load. Without it the pod of the harness sends it."),
    ] = None,
    claim: Annotated[
        str, typer.Option(metavar="NAME", help="Name of the ReadWriteMany claim for checkpoints and runs.")
    ] = kubernetes.NAME,
    storage: Annotated[str, typer.Option(metavar="SIZE", help="Size of the claim.")] = STORAGE,
    storage_class: Annotated[
        str, _name("NAME", "Storage class of the claim. Without it the cluster takes its default.")
    ] = "",
    secret: Annotated[
        str,
        _name("NAME", f"Secret whose keys are variables, and files in {kubernetes.SECRETS}: passwords, certificates."),
    ] = "",
    submit: Annotated[
        bool,
        typer.Option("--spark-submit", help="Print the spark-submit line of a trial instead of the manifests."),
    ] = False,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Print Kubernetes manifests of a run on Spark: a Job, load workers and a shared claim. Starts nothing."""
    run = (scenario, *(word for key, value in flags.items() if key != "conf" for word in flag(key, value)))
    asked = Deployment(
        namespace=namespace,
        image=image,
        run=run,
        claim=claim,
        storage=storage,
        storage_class=storage_class,
        executors=executors,
        workers=workers,
        secret=secret,
        kafka_config=flags.get("kafka_config", ""),
        conf=dict(_parts(text) for text in flags.get("conf", [])),
    )
    kubernetes.refuse(asked)
    _refuse_the_run(asked, scenario, flags)
    made, line = kubernetes.objects(asked), kubernetes.spark_submit(asked)
    told = {"command": "manifests", "objects": made, "spark_submit": line}
    head = f"# Written by streamgauge {__version__}. docs/test/kubernetes.md says what to do with it.\n"
    answer(as_json, told, line if submit else (head + yaml_writer.documents(made)).rstrip("\n"))


def _parts(setting: str) -> tuple[str, str]:
    """Split K=V. The run refuses what is none."""
    key, _, value = setting.partition("=")
    return key, value


def _refuse_the_run(asked: Deployment, scenario: str, flags: dict[str, Any]) -> None:
    """Resolve the run as its Job will do, so that a mistake shows here."""
    for key in ("redis", "sql"):
        if redacted(flags.get(key, "")) != flags.get(key, ""):
            raise UsageError(
                f"--{key} has a password, which would stand in the manifests. Write it as ${{env:NAME}}, and name "
                f"the Secret that has NAME with --secret."
            )
    name, keys = plan.read_scenario(scenario)
    own = [f"{key}={value}" for key, value in kubernetes.settings_of_job(asked).items() if key not in asked.conf]
    of_cluster = {
        "master": kubernetes.MASTER,
        "checkpoint": kubernetes.CHECKPOINTS,
        "conf": [*own, *flags.get("conf", [])],
        **({"workers": asked.workers, "bind": kubernetes.BIND} if asked.workers else {}),
    }
    spec, manifest = plan.resolve(name, keys, {**flags, **of_cluster}, _on_spark)
    if needs := registry.create(spec, manifest).needs:
        raise UsageError(f"{spec.fault.text} does not apply here: {'; '.join(needs)}. Choose another --fault.")


def _on_spark(engine: str, workload: str) -> EngineManifest:
    found = engines.load(engine, workload)
    if not found.on_spark:
        raise UsageError(
            f"manifests are of a run on Spark, whose executors are pods, and {found.id} does not run on Spark. Name "
            f"another --engine."
        )
    return found
