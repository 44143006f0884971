"""`streamgauge tape`."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from generators import preview
from harness import plan
from harness.commands.planned import EVENTS, Scenario
from harness.commands.shared import Json
from harness.experiments import one_run
from harness.flags import takes


@takes("rate", "duration", *EVENTS)
def tape(scenario: Scenario = plan.DEFAULT_SCENARIO, *, as_json: Json = False, **flags: Any) -> None:
    """Show what a seed and a preset will send."""
    name, keys = plan.read_scenario(scenario)
    # A tape is only looked at here: whether its late events would be allowed is a question of the run.
    spec, _ = plan.resolve(name, {"late_dropped_max": "any", **keys}, flags, one_run.find_manifest)
    shown = preview.preview(spec)
    print(json.dumps(msgspec.to_builtins(shown)) if as_json else "\n".join(preview.lines(shown)))
