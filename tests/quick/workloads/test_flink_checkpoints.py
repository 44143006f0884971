"""Where the Flink job goes on, the newest checkpoint that is complete, of whichever start; and how far that is."""

from __future__ import annotations

import struct

from workloads.jobs.flink_checkpoints import kept, newest_checkpoint, offsets_in

FOR_EVER = -(2**63)
TOPIC = "streamgauge-a-run"


def checkpoint(folder, job, number, complete=True):
    place = folder / job / f"chk-{number}"
    place.mkdir(parents=True)
    (place / "data").touch()
    if complete:
        (place / "_metadata").touch()
    return place


def test_there_is_none_at_first(tmp_path):
    (tmp_path / "first" / "shared").mkdir(parents=True)

    assert newest_checkpoint(tmp_path) is None
    assert newest_checkpoint(tmp_path / "not there") is None


def test_numbers_count_and_not_names(tmp_path):
    checkpoint(tmp_path, "first", 9)
    newest = checkpoint(tmp_path, "first", 10)

    assert newest_checkpoint(tmp_path) == newest


def test_the_start_does_not_matter_and_what_is_half_written_does_not_count(tmp_path):
    newest = checkpoint(tmp_path, "a-second-start", 12)
    checkpoint(tmp_path, "the-first-start", 7)
    checkpoint(tmp_path, "a-third-start", 13, complete=False)

    assert newest_checkpoint(tmp_path) == newest


def state_of(topic, partition, offset, end=FOR_EVER):
    """As Flink's Kafka source writes a partition into a checkpoint."""
    return struct.pack(">H", len(topic)) + topic.encode() + struct.pack(">iqq", partition, offset, end)


def test_a_checkpoint_tells_how_far_each_partition_was_read(tmp_path):
    newest = checkpoint(tmp_path, "a-start", 3)
    assigned = struct.pack(">H", len(TOPIC)) + TOPIC.encode() + struct.pack(">iii", 0, 1, 7)  # another kind of state
    parts = [assigned, state_of(TOPIC, 0, 12), b"\n", state_of(TOPIC, 3, 0x0A0A), state_of("another", 1, 5)]
    (newest / "_metadata").write_bytes(b"\0\n".join([*parts, state_of(TOPIC, 2, -2)]))

    assert offsets_in(newest, TOPIC) == {0: 12, 3: 0x0A0A}


def test_a_checkpoint_that_was_deleted_meanwhile_tells_nothing(tmp_path):
    assert offsets_in(tmp_path / "chk-4", TOPIC) == {}


def test_a_savepoint_is_found_by_its_number_and_whole_in_a_copy_too(tmp_path):
    checkpoint(tmp_path / "state", "a-start", 12)
    savepoint = tmp_path / "state" / "savepoint-1a-2b"
    savepoint.mkdir()
    beginning = struct.pack(">iiq", 0x4960672D, 6, 13)  # as Flink begins all metadata
    (savepoint / "_metadata").write_bytes(beginning + state_of(TOPIC, 0, 12))
    (savepoint / "state-of-an-operator").touch()

    newest = kept(savepoint)
    copy = (tmp_path / "state").rename(tmp_path / "copy")

    found = newest_checkpoint(copy)
    assert found is not None
    assert (newest.name, found.name) == ("chk-13", "chk-13")
    assert offsets_in(found, TOPIC) == {0: 12}
    assert (found / "state-of-an-operator").exists()
