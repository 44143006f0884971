"""The launcher and what it prepares: which Python, what is to be done in which order, what is said when it fails."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from harness.install import installer, jvm, prepare
from harness.install.installer import Step, StepError
from harness.model import HarnessError, Stopped
from harness.util.wait import wait_until

ROOT = Path(__file__).resolve().parents[3]
SHELLS = ("sh", "dash", "bash")  # the first one is often one of the others
ASKS_FOR_LOCK = "import sys; sys.path.insert(0, sys.argv[1]); from harness.install import prepare; print(prepare.LOCK)"


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


# ---------------------------------------------------------------- The file `streamgauge`


@pytest.fixture
def launcher(tmp_path: Path) -> ModuleType:
    """A copy of the launcher in a folder of its own, as a module."""
    copy = shutil.copy(ROOT / "streamgauge", tmp_path / "streamgauge")
    loader = importlib.machinery.SourceFileLoader("launcher_under_test", str(copy))
    loader_spec = importlib.util.spec_from_loader("launcher_under_test", loader)
    assert loader_spec
    module = importlib.util.module_from_spec(loader_spec)
    loader.exec_module(module)
    return module


def test_the_launcher_can_be_read_by_an_old_python():
    ast.parse((ROOT / "streamgauge").read_text(), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ((3, 9, 2), "is Python 3.9.2"),
        ((3, 10, 13), "is Python 3.10.13"),
        ((3, 11, 0), ""),
        ((3, 13, 9), ""),
        ((3, 14, 0), "is Python 3.14.0"),
    ],
)
def test_which_python_will_do(launcher, version, said):
    assert launcher.complaint(version) == said


def test_a_python_that_cannot_make_environments_says_what_to_install(launcher):
    said = launcher.complaint((3, 12, 1), find=lambda name: None if name == "ensurepip" else name)
    assert said == "lacks ensurepip (Debian, Ubuntu: install python3.12-venv)"


def test_another_python_is_taken_only_if_it_runs(launcher, tmp_path, monkeypatch):
    program(tmp_path / "bin/python3.11", "#!/bin/sh\necho 'pyenv: python3.11: command not found' >&2\nexit 127\n")
    good = program(tmp_path / "bin/python3.13", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/nowhere")
    path, looked_at = launcher.find_another()
    assert path == str(good)
    assert looked_at[1] == f"{tmp_path / 'bin/python3.11'} does not run (pyenv: python3.11: command not found)"


def test_without_any_python_that_will_do_one_sentence_names_all_that_were_seen(launcher, monkeypatch, capfd):
    monkeypatch.setattr(launcher, "complaint", lambda: "is Python 3.9.18")
    monkeypatch.setenv("PATH", "/nowhere")
    assert launcher.main(["ls"]) == 4
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith(
        f"streamgauge: Python 3.11 to 3.13 is needed, and none was found: {sys.executable} is Python 3.9.18. Install"
    )


def test_without_any_python_at_all_the_shell_says_it(tmp_path):
    command = ["/bin/sh", shutil.copy(ROOT / "streamgauge", tmp_path / "streamgauge"), "ls"]
    done = subprocess.run(command, env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert done.stderr.startswith("streamgauge: Python 3.11 to 3.13 is needed, and no python3 on PATH runs. Install")


def test_a_checkout_that_is_not_whole_says_so(tmp_path):
    """The launcher alone, as somebody might copy it to a folder on PATH."""
    shutil.copy(ROOT / "streamgauge", tmp_path / "streamgauge")

    done = subprocess.run(
        [sys.executable, "-I", "-S", tmp_path / "streamgauge", "ls"], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(
        f"streamgauge: {tmp_path} is not a whole copy of the project: No module named 'harness'"
    )


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("shell", sorted({os.path.realpath(found) for found in map(shutil.which, SHELLS) if found}))
def test_a_launcher_with_closed_descriptors_ends_as_ever(shell, closed, tmp_path):
    copy = shutil.copy(ROOT / "streamgauge", tmp_path / "streamgauge")

    done = subprocess.run(["sh", "-c", f"{shell} {copy} ls {closed}"], capture_output=True, text=True, check=False)

    assert done.returncode == 4
    assert "2>" in closed or "is not a whole copy of the project" in done.stderr
    assert "Bad file descriptor" not in done.stdout + done.stderr


# ---------------------------------------------------------------- What is to be done


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["run"], True),
        (["run", "mobile", "--rate", "5"], True),
        (["--json", "run"], True),
        (["test"], True),
        (["gate", "--base", "a", "--head", "b"], True),
        (["run", "--list"], False),
        (["run", "--engine=reference"], False),
        (["run", "--kafka", "there:9092"], False),
        (["up", "--help"], False),
        (["ls"], False),
        (["doctor"], False),
        (["--version"], False),
        ([], False),
    ],
)
def test_which_commands_are_refused_early_without_java(arguments, needed):
    assert prepare.needs_java(arguments) is needed


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A checkout without .venv, in which every step of a preparation is written down and works at once."""
    venv = tmp_path / ".venv"
    monkeypatch.setattr(prepare, "VENV", venv)
    monkeypatch.setattr(prepare, "VENV_PYTHON", venv / "bin/python")
    monkeypatch.setattr(prepare, "UV", venv / "bin/uv")
    monkeypatch.setattr(prepare, "STAMP", venv / "streamgauge.json")
    monkeypatch.setattr(prepare, "FETCHED", venv / "install-cache")
    monkeypatch.setattr(prepare, "LOG", tmp_path / ".venv.log")
    monkeypatch.setattr(prepare, "JARS_LOG", tmp_path / ".venv.jars.log")
    monkeypatch.setattr(prepare, "LOCK", tmp_path / ".venv.lock")
    monkeypatch.setattr(prepare, "index_settings", lambda _: {})
    monkeypatch.setattr(prepare, "why_no_java", lambda: "")
    monkeypatch.setattr(prepare, "ROOM_NEEDED", 0)
    steps: list[str] = []

    def run_step(what: str, command: list[str], *_: object) -> None:
        assert not prepare.STAMP.exists()
        steps.append(what)
        program(venv / "bin/python", "#!/bin/sh\n")
        program(venv / "bin/uv", "#!/bin/sh\n")
        (prepare.FETCHED / "pip").mkdir(parents=True, exist_ok=True)

    def run_side_by_side(side_by_side: list[Step], _: object) -> list[StepError]:
        alone = [step.what for step in side_by_side] == [JARS]
        assert alone or not prepare.STAMP.exists()
        tested = [str(prepare.TEST) in step.command for step in side_by_side]
        steps.append(" and ".join(step.what for step in side_by_side) + (" with tests" if any(tested) else ""))
        return []

    monkeypatch.setattr(prepare, "run_step", run_step)
    monkeypatch.setattr(prepare, "run_side_by_side", run_side_by_side)
    return steps


VERSION = ".".join(map(str, sys.version_info[:3]))
JARS = "fetching the JVM artifacts"
PACKAGES = "installing the packages (Spark alone is 450 MB)"
WITHOUT_JARS = [f"making .venv with Python {VERSION}", "fetching the installer", PACKAGES]
FIRST_STEPS = [*WITHOUT_JARS[:2], f"{PACKAGES} and {JARS}"]


def prepared(arguments: list[str], steps: list[str]) -> list[str]:
    """What is done for a command, the way main does it."""
    steps.clear()
    if not prepare.is_ready(prepare.read_stamp(), arguments):
        prepare.prepare(arguments)
        assert prepare.is_ready(prepare.read_stamp(), arguments)
    return steps.copy()


def test_a_first_use_does_everything_and_the_next_nothing(checkout):
    assert prepared(["ls"], checkout) == FIRST_STEPS
    assert prepared(["ls"], checkout) == []
    assert prepared(["run"], checkout) == []


def test_the_tests_packages_come_with_the_first_test_and_stay(checkout):
    prepared(["run"], checkout)
    assert prepared(["test"], checkout) == ["bringing the packages up to date with tests"]
    assert prepared(["run"], checkout) == []
    prepare.write_stamp(prepare.read_stamp() | {"packages": "older locks"})
    assert prepared(["run"], checkout) == ["bringing the packages up to date with tests"]


def test_changed_jars_are_fetched_by_the_next_command_that_needs_them(checkout):
    prepared(["run"], checkout)
    prepare.write_stamp(prepare.read_stamp() | {"jars": "older pins"})
    assert prepared(["ls"], checkout) == []
    assert prepared(["run"], checkout) == [JARS]


def test_nothing_of_what_was_fetched_stays_when_all_is_installed(checkout):
    prepared(["run"], checkout)
    assert not prepare.FETCHED.exists()


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (StepError("The network is gone.", passing=True), True),
        (StepError("It does not build.", passing=False), False),
        (KeyboardInterrupt(), True),
    ],
)
def test_what_was_fetched_stays_for_the_next_try_unless_it_may_be_the_cause(checkout, monkeypatch, error, kept):
    working = vars(prepare)["run_side_by_side"]

    def fails(*_: object) -> list[StepError]:
        (prepare.FETCHED / "wheel").touch()
        raise error

    monkeypatch.setattr(prepare, "run_side_by_side", fails)
    with pytest.raises(type(error)):
        prepare.prepare(["run"])
    assert (prepare.FETCHED / "wheel").exists() is kept
    (prepare.VENV / "lib").mkdir()
    (prepare.VENV / "lib64").symlink_to("lib")

    def looks(*_: object) -> list[StepError]:
        assert (prepare.FETCHED / "wheel").exists() is kept
        assert not (prepare.VENV / "lib").exists(), "all else is made anew"
        return []

    monkeypatch.setattr(prepare, "run_side_by_side", looks)
    prepare.prepare(["run"])
    monkeypatch.setattr(prepare, "run_side_by_side", working)
    assert prepared(["run"], checkout) == []


def test_an_environment_without_pip_is_made_where_python_brings_a_wheel_of_it(checkout, monkeypatch):
    commands: list[list[str]] = []
    working = vars(prepare)["run_step"]

    def run_step(what: str, command: list[str], *rest: object) -> None:
        commands.append(command)
        working(what, command, *rest)

    monkeypatch.setattr(prepare, "run_step", run_step)
    for wheel, wanted in ((Path("/a/pip.whl"), True), (None, False)):
        commands.clear()
        monkeypatch.setattr(prepare, "bundled_pip", lambda wheel=wheel: wheel)
        prepare.STAMP.unlink(missing_ok=True)
        prepare.prepare(["ls"])
        assert ("--without-pip" in commands[0]) is wanted


def test_the_jars_are_fetched_beside_the_packages_by_the_ivy_that_comes_with_them(checkout, monkeypatch):
    """By a command of its own, which finds Ivy in the installer's cache, and whose bytes are counted."""
    monkeypatch.setattr(prepare, "ROOM_NEEDED", 700)
    packages, jars = prepare.packages_step(True, False), prepare.jars_step()
    cache = packages.command[packages.command.index("--cache-dir") + 1]
    assert jars.command[-3:] == ["-m", "harness.install.jvm", f"--ivy-below={cache}"]
    assert packages.log != jars.log
    assert packages.part
    assert jars.part
    assert packages.part.count().total == 700
    assert jars.part.count().total == jvm.amount(jvm.DEFAULT_SETS).total > 50_000_000


def test_two_checkouts_that_share_one_environment_share_its_lock(tmp_path):
    """Else one takes the other's half-made environment for a broken one, and clears it."""
    locks = set()
    (tmp_path / "shared/.venv").mkdir(parents=True)
    for name in ("one", "two"):
        shutil.copytree(ROOT / "harness", tmp_path / name / "harness", ignore=shutil.ignore_patterns("__pycache__"))
        (tmp_path / name / ".venv").symlink_to(tmp_path / "shared/.venv")
        asked = [sys.executable, "-I", "-c", ASKS_FOR_LOCK, str(tmp_path / name)]
        locks.add(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    assert locks == {str(tmp_path / "shared/.venv.lock")}


# ---------------------------------------------------------------- A checkout that is not ours to write

NOBODY = 65534
ASKS_FOR_PLACE = "import sys; sys.path.insert(0, sys.argv[1]); from harness.install import prepare; print(prepare.VENV)"


class ForAll:
    """A checkout as an administrator installs it, and somebody else who uses it."""

    def __init__(self, folder: Path) -> None:
        self.home, self.checkout = folder / "home", folder / "checkout"
        for name in ("harness", "requirements", "workloads"):
            shutil.copytree(ROOT / name, self.checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "streamgauge", self.checkout)
        self.home.mkdir()
        self.python, self.others = _python_for_all(), ["setpriv", f"--reuid={NOBODY}", "--clear-groups"]
        if os.geteuid():
            self.others = []
        else:
            os.chown(self.home, NOBODY, NOBODY)
        self.write(may=False)

    def write(self, *, may: bool) -> None:
        for path in (self.checkout, self.checkout / ".venv"):
            if path.exists():
                path.chmod(0o755 if may else 0o555)

    def ask(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        command = [*self.others, self.python, "-I", *words]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), **env}
        return subprocess.run(command, env=environment, cwd=self.home, capture_output=True, text=True, check=False)

    def place(self, **env: str) -> Path:
        done = self.ask("-c", ASKS_FOR_PLACE, str(self.checkout), **env)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())


def _python_for_all() -> str:
    """Root's own Python may lie where nobody else looks."""
    found = [path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(path).exists()]
    for path in [] if os.geteuid() == 0 else [sys.executable]:
        found.insert(0, path)
    for path in found:
        asked = [path, "-I", "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
        if subprocess.run(asked, check=False).returncode == 0:
            return path
    pytest.skip("no Python of 3.11 or newer that another user could run: NOT TRIED as another user")


@pytest.fixture
def for_all() -> Iterator[ForAll]:
    """Not below pytest's own folder, which is closed to others."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("no setpriv here: NOT TRIED as another user")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        shared = ForAll(Path(folder))
        yield shared
        shared.write(may=True)


def test_an_environment_that_cannot_lie_in_the_checkout_lies_in_the_cache(for_all):
    place = for_all.place()

    assert place.parent == for_all.home / ".cache/streamgauge"
    assert place.name.startswith("venv-")
    assert for_all.place(XDG_CACHE_HOME=str(for_all.home / "else")) == for_all.home / "else/streamgauge" / place.name


def test_a_checkout_that_is_ours_holds_its_environment():
    """As root everything is ours."""
    assert prepare.place_of_venv(ROOT) == ROOT / ".venv"


def test_what_was_made_for_all_users_is_used_by_all_until_it_is_outdated(for_all, monkeypatch):
    monkeypatch.setattr(prepare, "ROOT", for_all.checkout)
    stamp = prepare.wanted({}, "")
    for_all.write(may=True)
    for name in ("python", "uv"):
        program(for_all.checkout / ".venv/bin" / name, "#!/bin/sh\n").chmod(0o755)
    (for_all.checkout / ".venv/streamgauge.json").write_text(json.dumps(stamp))
    for_all.write(may=False)
    assert for_all.place() == for_all.checkout / ".venv"

    for_all.write(may=True)
    (for_all.checkout / ".venv/streamgauge.json").write_text(json.dumps(stamp | {"packages": "older locks"}))
    for_all.write(may=False)
    assert for_all.place().parent == for_all.home / ".cache/streamgauge"


def test_the_tests_of_a_checkout_that_is_not_ours_say_why_they_do_not_run(for_all):
    done = for_all.ask(str(for_all.checkout / "streamgauge"), "test", "quick")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"streamgauge: The tests write into {for_all.checkout}, which is not yours to write. "
        "Take a copy that is yours.\n"
    )


def test_where_neither_checkout_nor_cache_can_be_written_one_sentence_says_both(for_all):
    done = for_all.ask(str(for_all.checkout / "streamgauge"), "ls", XDG_CACHE_HOME="/proc")

    assert (done.returncode, done.stdout) == (4, "")
    assert "in /proc/streamgauge, but nothing can be written there" in done.stderr
    assert "Use a copy of the project that is yours, or set XDG_CACHE_HOME" in done.stderr


@pytest.mark.parametrize(
    "question", [["test", "--help"], ["run", "-h"], ["--version"], ["-V"], ["engines", "add", "-h"]]
)
def test_a_question_installs_nothing(checkout, monkeypatch, capsys, question):
    """Neither before the first use, nor what only the tests need, nor what other lock files want."""
    handed_over: list[list[str]] = []
    monkeypatch.setattr(prepare, "hand_over", handed_over.append)

    assert prepare.main(question) == 0
    assert capsys.readouterr().out
    assert (checkout, handed_over) == ([], [])
    prepared(["run"], checkout)
    checkout.clear()
    prepare.main(question)
    prepare.write_stamp(prepare.read_stamp() | {"packages": "older locks"})
    prepare.main(question)
    assert (checkout, handed_over) == ([], [question, question])


def test_before_the_first_use_help_names_every_command(capsys, checkout):
    prepare.main(["--help"])

    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    for command in ("run", "recheck", "chaos", "test", "ls"):
        assert f"\n  {command}\n" in told


def test_a_shell_that_asks_how_a_line_goes_on_installs_nothing(checkout, monkeypatch, capsys):
    monkeypatch.setenv("_STREAMGAUGE_COMPLETE", "complete_bash")

    assert prepare.main([]) == 0
    assert (checkout, capsys.readouterr().out) == ([], "")


@pytest.mark.parametrize("harm", ["stamp gone", "stamp torn", "python gone", "installer gone"])
def test_whatever_is_not_whole_is_made_anew(checkout, harm):
    prepared(["run"], checkout)
    if harm == "stamp torn":
        prepare.STAMP.write_text('{"packages": ')
    else:
        {"stamp gone": prepare.STAMP, "python gone": prepare.VENV_PYTHON, "installer gone": prepare.UV}[harm].unlink()
    assert prepared(["run"], checkout) == FIRST_STEPS


def test_an_interrupted_update_leaves_no_stamp(checkout, monkeypatch):
    prepared(["run"], checkout)
    working = vars(prepare)["run_side_by_side"]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(prepare, "run_side_by_side", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prepare.prepare(["test"])
    monkeypatch.setattr(prepare, "run_side_by_side", working)
    assert prepared(["run"], checkout) == FIRST_STEPS


def test_without_java_a_run_is_refused_before_anything_is_installed_and_a_list_is_not(checkout, monkeypatch):
    monkeypatch.setattr(prepare, "why_no_java", lambda: "Java 17 or newer is needed.")
    with pytest.raises(HarnessError, match="Java 17"):
        prepare.prepare(["run"])
    assert checkout == []
    assert prepared(["ls"], checkout) == WITHOUT_JARS
    assert prepared(["ls"], checkout) == []
    monkeypatch.setattr(prepare, "why_no_java", lambda: "")
    assert prepared(["run"], checkout) == [JARS]


def test_jars_that_cannot_be_fetched_stop_only_who_needs_them(checkout, monkeypatch, capsys):
    no_maven = StepError("The Maven repository was not reached.", passing=True)

    def without_maven(steps: list[Step], _: object) -> list[StepError]:
        if len(steps) == 1:
            raise no_maven
        return [no_maven]

    monkeypatch.setattr(prepare, "run_side_by_side", without_maven)
    prepared(["ls"], checkout)
    assert "Going on without the JVM artifacts, which this command does not need. The Maven" in capsys.readouterr().err
    with pytest.raises(HarnessError, match="not reached"):
        prepare.prepare(["run"])
    prepare.STAMP.unlink()
    with pytest.raises(HarnessError, match="not reached"):
        prepare.prepare(["run"])
    assert prepared(["ls"], checkout) == [], "the packages were installed all the same"


def test_a_full_disk_is_said_before_it_is_filled(checkout, monkeypatch):
    monkeypatch.setattr(prepare, "ROOM_NEEDED", 10**18)
    with pytest.raises(HarnessError, match=r"needs 1000000000\.0 GB for a while .* GB are free"):
        prepare.prepare(["run"])
    assert checkout == []


def test_a_second_first_use_waits_and_finds_it_done(checkout, capsys):
    with prepare.only_one():
        second = threading.Thread(target=prepare.prepare, args=(["run"],))
        second.start()
        wait_until(
            lambda: "another streamgauge is preparing .venv; waiting for it" in capsys.readouterr().err,
            deadline_s=30,
            what="the second to say that it waits",
        )
        for step in FIRST_STEPS:
            vars(prepare)["run_step"](step, [])
        prepare.write_stamp(prepare.wanted({}, "run"))
    second.join()
    assert checkout == FIRST_STEPS


def test_doctor_says_what_it_can_before_it_installs(checkout, capsys):
    prepare.prepare(["doctor"])
    said = capsys.readouterr()
    assert said.out == ""
    assert f"streamgauge: Python: ok, {VERSION}" in said.err


def test_main_hands_over_or_ends_in_one_sentence(checkout, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    handed_over: list[list[str]] = []
    monkeypatch.setattr(prepare, "hand_over", handed_over.append)
    prepare.main(["run", "mobile"])
    assert handed_over == [["run", "mobile"]]
    for error, code, words in [
        (HarnessError("It broke."), 4, "streamgauge: It broke."),
        (Stopped(signal.SIGINT), 130, "streamgauge: Stopped by Ctrl-C. Incomplete files are not used"),
        (PermissionError(13, "Permission denied", "x"), 4, "Preparing failed: [Errno 13] Permission denied: 'x'."),
        (
            KeyError("never seen"),
            4,
            "streamgauge: Something unexpected happened: KeyError: 'never seen'. The traceback",
        ),
    ]:

        def fail(*_: object, error: BaseException = error) -> None:
            raise error

        monkeypatch.setattr(prepare, "read_stamp", fail)
        capsys.readouterr()
        assert prepare.main(["run"]) == code
        assert words in capsys.readouterr().err


# ---------------------------------------------------------------- The stamp


def test_the_stamp_depends_on_every_lock_and_on_the_place(tmp_path, monkeypatch):
    before = prepare.wanted({"test": ""}, "run")
    for name, part in (("BOOTSTRAP", "packages"), ("RUN", "packages"), ("TEST", "test")):
        with monkeypatch.context() as patch:
            changed = tmp_path / name
            changed.write_bytes(getattr(prepare, name).read_bytes() + b"#")
            patch.setattr(prepare, name, changed)
            after = prepare.wanted({"test": ""}, "run")
            assert {key for key in after if after[key] != before[key]} == {part}
    monkeypatch.setattr(prepare, "ROOT", tmp_path)
    assert prepare.wanted({}, "run")["packages"] != before["packages"]


# ---------------------------------------------------------------- The lock files


@pytest.mark.parametrize("lock", [installer.BOOTSTRAP, prepare.RUN, prepare.TEST], ids=lambda path: path.name)
def test_locks_pin_every_package_with_hashes_and_name_no_place(lock):
    text = lock.read_text()
    assert not re.search(r"://|--index|--find-links|--extra|(?<![\w.])/\w|@ ", text)
    entries = re.split(r"\n(?=\S)", text.strip())
    for entry in entries:
        assert re.match(r"[a-z0-9][\w.-]*==[\w.!+]+ ", entry), entry
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry


def test_a_stamp_without_an_environment_is_none(checkout):
    prepare.STAMP.parent.mkdir()
    prepare.STAMP.write_text(json.dumps(prepare.wanted({}, "run")))
    assert prepare.read_stamp() == {}
