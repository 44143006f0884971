"""What an engine wrote into its folder comes into the run, also what it wrote half of."""

from __future__ import annotations

from harness.engines.kept import Kept


def test_what_grows_is_added_and_what_was_begun_anew_is_taken_anew(tmp_path):
    folder, run = tmp_path / "engine", tmp_path / "run"
    folder.mkdir()
    run.mkdir()
    kept = Kept(folder, run)
    kept.copy()
    (folder / "progress.jsonl").write_text('{"at": 1}\n{"at"')
    (folder / "progress-engine-1-second-1.jsonl").write_text("second\n")
    (folder / "engine_settings.json").write_text("{}")
    (folder / "checkpoints.jsonl").write_text('{"at": 1}\n')
    (folder / "engine.json").write_text("a password")
    kept.copy()
    assert (run / "progress.jsonl").read_text() == '{"at": 1}\n{"at"'

    with (folder / "progress.jsonl").open("a") as file:
        file.write(": 2}\n")
    (folder / "progress-engine-1-second-1.jsonl").write_text("2\n")
    kept.copy()
    kept.copy()

    assert {path.name: path.read_text() for path in run.iterdir()} == {
        "progress.jsonl": '{"at": 1}\n{"at": 2}\n',
        "progress-engine-1-second-1.jsonl": "2\n",
        "engine_settings.json": "{}",
        "checkpoints.jsonl": '{"at": 1}\n',
    }


def test_a_folder_that_is_the_runs_own_is_left_alone(tmp_path):
    (tmp_path / "progress.jsonl").write_text("1\n")
    Kept(tmp_path, tmp_path).copy()
    assert (tmp_path / "progress.jsonl").read_text() == "1\n"
