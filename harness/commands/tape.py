"""`streamgauge tape`."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from generators import preview
from harness import plan
from harness.commands.planned import EVENTS, Scenario
from harness.commands.shared import Json
from harness.flags import takes
from harness.model import DEFAULT_SCENARIO, EngineManifest, SinkClaim

# A tape is that of every engine and sink: whether these have a job of its workload is a question of the run.
NOBODY = EngineManifest("none", (), "", shipped=True, sinks=(SinkClaim("none", "keep", "none"),), checksum=True)


@takes("rate", "duration", *EVENTS)
def tape(scenario: Scenario = DEFAULT_SCENARIO, *, as_json: Json = False, **flags: Any) -> None:
    """Show what a seed and a preset will send."""
    name, keys = plan.read_scenario(scenario)
    # A tape is only looked at here: whether its late events would be allowed is a question of the run.
    keys = {"late_dropped_max": "any", **keys, "sink": ""}
    spec, _ = plan.resolve(name, keys, flags, lambda *_: NOBODY)
    shown = preview.preview(spec)
    print(json.dumps(msgspec.to_builtins(shown)) if as_json else "\n".join(preview.lines(shown)))
