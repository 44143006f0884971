"""`--live` and `live`: the page comes up with the command and ends with it, and the run's evidence is what it was."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from harness.drivers import one_run
from harness.model import Exit, UsageError
from harness.services import children, live_page
from tests.program.calls import exit_code, invoked, only

FAST = ("run", "--engine", "fake", "--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5")
pytestmark = pytest.mark.usefixtures("few_probes")


def frames_of(page: Path) -> list[dict[str, Any]]:
    data = page.read_text().partition('id="frames">')[2].partition("</script>")[0]
    frames: list[dict[str, Any]] = json.loads(data)["frames"]
    return frames


def test_a_run_has_a_page_while_it_goes_on_and_a_file_afterwards(tmp_path, monkeypatch):
    whole, seen = one_run.report, dict[str, bytes]()

    def looked_at(*arguments: Any) -> object:
        (url,) = (path.read_text() for path in tmp_path.glob("*/live/url"))
        seen["page"] = urlopen(url, timeout=20).read()
        seen["first event"] = next(line for line in urlopen(f"{url}events", timeout=20) if line.startswith(b"data: {"))
        return whole(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(one_run, "report", looked_at)
        done = invoked(*FAST, "--live", "--out", tmp_path)

    run = only(tmp_path)
    assert done.exit_code == Exit.PASS
    assert "Live page: http://127.0.0.1:" in done.stderr
    assert "live.html replays it in a browser" in done.stderr
    assert b"streamgauge" in seen["page"]
    first = json.loads(seen["first event"][6:])
    assert first["set"]["now"]["offered"] == first["set"]["now"]["planned"] > 0
    assert first["set"]["verdict"]["judged"]["outcome"] == "PASS"
    assert frames_of(run / "live.html")[-1]["set"]
    assert not (run / "live" / "url").exists()
    assert not live_page.pids()
    assert invoked("recheck", run).exit_code == Exit.PASS, "what the page wrote is no evidence"


def test_the_map_ends_as_the_verdict_has_it(tmp_path):
    done = invoked(*FAST, "--conf", "misbehave=drop:300", "--fault", "none", "--live", "--out", tmp_path)

    assert done.exit_code == Exit.FAIL
    numbers = [
        frame["set"]["numbers"] for frame in frames_of(only(tmp_path) / "live.html") if "numbers" in frame["set"]
    ]
    assert (numbers[-1]["open"], numbers[-1]["wrong"]) == (0, 1)


def test_a_stored_run_is_made_into_a_file(tmp_path):
    invoked(*FAST, "--out", tmp_path)
    run = only(tmp_path)
    assert not (run / "live.html").exists()

    done = invoked("live", run, "--json")

    assert json.loads(done.stdout) == {"command": "live", "page": str(run / "live.html"), "exit": 0}
    assert frames_of(run / "live.html")


def test_a_run_of_an_older_version_has_nothing_to_replay(tmp_path):
    invoked(*FAST, "--out", tmp_path)
    (only(tmp_path) / "live" / "lines.jsonl").unlink()

    with pytest.raises(UsageError, match=r"nothing to replay: it has no live/lines\.jsonl"):
        invoked("live", only(tmp_path))


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is not a run"):
        invoked("live", tmp_path)


def test_a_port_that_is_taken_is_refused_before_anything_starts(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(UsageError, match="Cannot listen on port"):
        invoked(*FAST, "--live-port", str(taken.getsockname()[1]), "--out", tmp_path)

    assert [*tmp_path.iterdir()] == []


def test_an_experiment_has_one_page_and_each_of_its_runs_a_file(tmp_path):
    chaos = ("chaos", "--engine", "fake", "--sink", "absolute", "--fault", "kill@c3:batch=3", "--fault", "none")
    small = ("--rate", "100", "--duration", "12s", "--window", "4s", "--campaigns", "5")
    done = invoked(*chaos, *small, "--live", "--out", tmp_path)

    experiment = only(tmp_path)
    assert done.stderr.count("Live page: ") == 1
    runs = [*(experiment / "runs").iterdir()]
    assert len(runs) == 2
    assert all((run / "live.html").exists() for run in runs)
    data = (experiment / "live.html").read_text().partition('id="frames">')[2].partition("</script>")[0]
    cases = json.loads(data)["experiment"]["cases"]
    assert [case["state"] for case in cases] == ["PASS", "PASS"]
    assert {case["run"] for case in cases} == {f"runs/{run.name}" for run in runs}
    assert {frame["run"] for frame in frames_of(experiment / "live.html")} == {cases[-1]["run"]}


def test_a_guard_ends_what_was_started_inside_of_it_and_spares_the_rest(tmp_path):
    sleeps = ["sleep", "300"]
    with children.guard():
        outside = children.spawn(sleeps, name="outside", log=tmp_path / "outside.log")
        with children.guard():
            inside = children.spawn(sleeps, name="inside", log=tmp_path / "inside.log")
        assert not inside.alive()
        assert outside.alive()
    assert not outside.alive()


@pytest.mark.parametrize("flag", ["--web", "--no-web"])
def test_the_flag_of_locusts_page_says_what_to_use_now(flag, capsys, tmp_path):
    assert exit_code(*FAST, flag, "--out", str(tmp_path)) == Exit.USAGE

    said = capsys.readouterr().err
    assert f"There is no {flag} any more. Locust's page is gone" in said
    assert "--live" in said
    assert [*tmp_path.iterdir()] == []


def test_the_key_of_locusts_page_says_what_to_use_now(tmp_path):
    (tmp_path / "old.toml").write_text("# an old scenario\nweb = true\n")

    with pytest.raises(UsageError, match=r"web is no key any more\. .*--live"):
        invoked("run", tmp_path / "old.toml")
