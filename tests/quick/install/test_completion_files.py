"""`completion SHELL --install`: one line for each shell, which can be given twice and spoils no file of a user."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.install import completion_files
from harness.install.completion_files import install
from harness.model import HarnessError

START = {"bash": ".bashrc", "zsh": ".zshrc"}


@pytest.fixture
def env(tmp_path):
    return {"HOME": str(tmp_path / "a home")}


@pytest.mark.parametrize("shell", START)
def test_a_start_file_gets_one_line_however_often_it_is_installed(shell, env):
    start = Path(env["HOME"]) / START[shell]
    start.parent.mkdir()
    start.write_text("alias ll='ls -l'")  # no end of line

    first = install(shell, "one", env)
    second = install(shell, "two", env)

    script = Path(env["HOME"]) / f".local/share/streamgauge/completion.{shell}"
    assert first == [script, start]
    assert second == [script]
    assert start.read_text() == f"alias ll='ls -l'\nsource '{script}'\n"
    assert script.read_text().endswith("two\n")


def test_fish_needs_no_line(env):
    (script,) = install("fish", "complete", env)

    assert script == Path(env["HOME"]) / ".config/fish/completions/streamgauge.fish"
    assert script.read_text() == "complete\n"


def test_zsh_loads_what_completes_before_it_is_used(env):
    script, _ = install("zsh", "compdef x y", env)

    assert script.read_text() == f"{completion_files.ZSH_BEGINS}compdef x y\n"


def test_folders_of_the_environment_are_obeyed(env, tmp_path):
    of_zsh = {**env, "ZDOTDIR": str(tmp_path / "z"), "XDG_DATA_HOME": str(tmp_path / "data")}

    assert install("zsh", "s", of_zsh) == [tmp_path / "data/streamgauge/completion.zsh", tmp_path / "z/.zshrc"]
    assert install("fish", "s", {**env, "XDG_CONFIG_HOME": str(tmp_path / "c")}) == [
        tmp_path / "c/fish/completions/streamgauge.fish"
    ]


def test_a_link_to_a_start_file_stays_a_link(env, tmp_path):
    start = Path(env["HOME"]) / ".bashrc"
    start.parent.mkdir()
    (tmp_path / "dotfiles").write_text("# mine\n")
    start.symlink_to(tmp_path / "dotfiles")

    install("bash", "s", env)

    assert start.is_symlink()
    assert (tmp_path / "dotfiles").read_text().startswith("# mine\nsource ")


def test_a_file_that_cannot_be_written_is_named(env):
    (Path(env["HOME"]) / ".bashrc").mkdir(parents=True)

    with pytest.raises(HarnessError, match=r"\.bashrc can't be used: Is a directory"):
        install("bash", "s", env)


def test_a_new_bash_reads_it(env):
    script, start = install("bash", "complete -W 'run ls' streamgauge", env)

    done = subprocess.run(
        ["bash", "--norc", "-c", f"source {str(start)!r}; complete -p streamgauge"],
        capture_output=True,
        text=True,
        check=True,
        env={**env, "PATH": "/usr/bin:/bin"},
    )

    assert done.stdout == "complete -W 'run ls' streamgauge\n"
    assert script.exists()
