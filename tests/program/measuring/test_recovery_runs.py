"""Recovery of whole runs of the fake engine."""

from __future__ import annotations

import pytest

from harness.judging.stored_run import StoredRun
from harness.measuring import measure
from harness.measuring.measurement import Recovery
from harness.measuring.watched import link_twin
from harness.rundir.store import Store
from tests.program.runner.test_run import fake_run
from tests.quick.measuring.test_recovery import values


@pytest.mark.parametrize(("sink", "wrong"), [("absolute", False), ("increment", True)])
def test_a_whole_run_keeps_its_recovery(tmp_path, sink, wrong):
    verdict, store, _ = fake_run(tmp_path, sink=sink, fault="kill@c3:batch=5")
    _, twin, _ = fake_run(tmp_path, sink=sink, fault="none")
    link_twin(store, twin.path)
    measure.save(StoredRun(store), verdict)

    kept: tuple[Recovery, ...] = Store(store.path).read_as(measure.RECOVERY, tuple[Recovery, ...])
    (found,) = kept
    assert found.fault == "kill@c3:batch=5"
    assert 0 < found.struck_s <= found.landed_s
    told = values(found)
    assert told["longest_silence_s"]
    assert found.quantities["longest_silence_s"].over_twin is not None
    if wrong:
        assert told["wrong_value_s"] is None
        assert "never corrected" in found.quantities["wrong_value_s"].note
        assert "withheld" in found.quantities["first_output_s"].note
    else:
        assert told["wrong_value_s"] == 0.0
        assert told["restart_s"] is not None
        assert told["first_output_s"]


def test_a_fault_that_landed_is_measured_beside_one_whose_moment_never_came(tmp_path):
    verdict, store, _ = fake_run(tmp_path, sink="absolute", fault="kill@c3:batch=5; kill@batch>=9999")
    measure.save(StoredRun(store), verdict)

    assert [each["fault"] for each in store.read_json(measure.RECOVERY)] == ["kill@c3:batch=5"]


def test_a_run_without_a_fault_has_none(tmp_path):
    verdict, store, _ = fake_run(tmp_path, fault="none")
    measure.save(StoredRun(store), verdict)

    assert store.read_json(measure.RECOVERY) == []
