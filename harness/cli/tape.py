"""`streamgauge tape`: of a scenario, or of a stored run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from generators import preview
from generators.schedule import Schedule
from harness.cli import shell_completion
from harness.cli.common_flags import Json, answer
from harness.cli.flags import takes
from harness.cli.scenario_flags import EVENTS, Scenario
from harness.config import plan
from harness.judging.stored_run import StoredRun
from harness.model import DEFAULT_SCENARIO, EngineManifest, SinkClaim, UsageError
from harness.util.texts import many

# A tape does not depend on engine and sink. The run checks whether these have a job for its workload.
MOST = 100_000_000
NOBODY = EngineManifest("none", (), "", shipped=True, sinks=(SinkClaim("none", "keep", "none"),), checksum=True)


@takes("rate", "duration", *EVENTS)
def tape(
    scenario: Scenario = DEFAULT_SCENARIO,
    *,
    of: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Write every record of this stored run to --out, with names in place of codes.",
            autocompletion=shell_completion.run,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="A .parquet or .csv file; with --of.")] = None,
    as_json: Json = False,
    **flags: Any,
) -> None:
    """Preview the events of a seed and a preset, or export the records of a run as a table."""
    if of or out:
        _write(of, out, [scenario] * (scenario != DEFAULT_SCENARIO) + [*flags], as_json=as_json)
        return
    name, keys = plan.read_scenario(scenario)
    # The tape is only shown here. The run checks whether its late events are allowed.
    keys = {"late_dropped_max": "any", **keys, "sink": "", "requires": []}
    spec, _ = plan.resolve(name, keys, flags, lambda *_: NOBODY)
    if (events := Schedule(spec.tape).total) > MOST:
        raise UsageError(
            f"A tape of {events:,} events takes minutes to preview; the limit is {MOST:,}. Lower --rate or "
            "--duration: a shorter one has the same disorder."
        )
    shown = preview.preview(spec)
    answer(as_json, msgspec.to_builtins(shown), "\n".join(preview.lines(shown)))


def _write(of: Path | None, out: Path | None, beside: list[str], *, as_json: bool) -> None:
    if of is None or out is None:
        raise UsageError("--of RUN and --out FILE belong together: the run, and the file for its records. Give both.")
    if beside:
        raise UsageError(f"--of {of} reads the events of that run. Leave out {', '.join(beside)}.")
    from harness.drivers import export_log

    count = export_log.write(StoredRun.open(of), out)
    told = {"command": "tape", "run": str(of), "file": str(out), "records": count}
    answer(as_json, told, f"{many(count, 'record')} of {of} written to {out}")
