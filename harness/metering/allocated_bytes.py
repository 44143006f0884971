"""How many bytes the threads of JVMs have allocated, exactly, as an agent in each of them tells (AllocatedBytes.java).

What HotSpot tells without an agent, `Thread.print -e` by its attach protocol, is rounded to whole megabytes or, from
10 GB on, gigabytes, stops all threads, and has nothing of those that ended. An agent costs a JDK, whose javac compiles
it once.

The sum is exact since Java 21 and in late updates of 17. Before, a thread that ends takes along what it allocated after
the agent's last look, a tenth of a second at most; so does a JVM that is killed, of any version.

With an agent a JVM starts some tenths of a second later, and Java 25 leaves its AOT cache unused. One that writes an
archive of classes must not get the options: it would refuse to start.
"""

from __future__ import annotations

import hashlib
import socket
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.install import jvm
from harness.model import HarnessError
from harness.services.owners import lease_folder, release_folder
from harness.terminal.command_end import cache_folder

SOURCE = Path(__file__).with_name("AllocatedBytes.java")
MANIFEST = f"Manifest-Version: 1.0\nPremain-Class: {SOURCE.stem}\n"
COMPILE_DEADLINE_S = 120
# A JVM that starts from an archive of classes which knew of no agent says so, since Java 24 as an error, and on stdout,
# which may be where a job puts its results.
WARNINGS_TO_STDERR = ("-Xlog:all=off:stdout", "-Xlog:all=warning:stderr")
ANSWER_S = 1.0  # a JVM that is frozen accepts, and says nothing
ANSWER = ">q"
SOCKET = ".socket"
SHORT = "/tmp"  # whatever TMPDIR says: the path of a socket has 107 letters at most


class Agents:
    """Those of one engine's JVMs. They answer in a folder of their own, whose path has to be short for a socket."""

    def __init__(self) -> None:
        self.reason = ""  # why there are none
        self._folder = Path(tempfile.mkdtemp(prefix="streamgauge-allocated-", dir=SHORT))
        lease_folder(self._folder)  # a later command removes it, should this one be killed
        self._jar = self._made()

    def close(self) -> None:
        release_folder(self._folder)

    @property
    def options(self) -> tuple[str, ...]:
        """For every JVM of the engine, before it starts; quoted as JAVA_TOOL_OPTIONS wants it."""
        return (f'"-javaagent:{self._jar}={self._folder}"', *WARNINGS_TO_STDERR) if self._jar else ()

    def allocated_bytes(self, java_pids: Sequence[int]) -> int | None:
        """Sum over all JVMs that ever were; None while one of these does not answer."""
        if not self._jar:
            return None
        told = list(self._told())
        silent = set(java_pids) - {pid for pid, _ in told}
        self.reason = (
            f"the JVM with pid {min(silent)} has not told yet" if silent else "" if told else "there is no JVM"
        )
        return None if self.reason else sum(allocated for _, allocated in told)

    def _told(self) -> Iterator[tuple[int, int]]:
        """The process and the bytes of each JVM. One that is gone has left a file."""
        for path in self._folder.glob(f"*{SOCKET}"):
            answer = _asked(path) or path.with_suffix("").read_bytes()
            if len(answer) == struct.calcsize(ANSWER):
                yield int(path.name.partition("-")[0]), struct.unpack(ANSWER, answer)[0]

    def _made(self) -> Path | None:
        try:
            return agent()
        except HarnessError as error:
            self.reason = str(error)
            return None


def agent() -> Path:
    """The agent's jar, compiled on first use."""
    javac = jvm.java().resolve().with_name("javac")
    if not javac.is_file():
        raise HarnessError(
            f"{jvm.java()} is a runtime without a compiler, and the agent that counts has to be compiled"
        )
    digest = hashlib.sha256(str(javac).encode() + SOURCE.read_bytes()).hexdigest()
    jar = cache_folder() / "classes" / f"allocated-bytes-{digest[:16]}.jar"
    if not jar.is_file():
        with jvm.only_one(jar, say=lambda _: None), tempfile.TemporaryDirectory(dir=jar.parent) as place:
            _compile(javac, Path(place), jar)
    return jar


def _compile(javac: Path, place: Path, jar: Path) -> None:
    classes, part = place / "classes", place / "agent.jar"
    command = [str(javac), *(f"-J{option}" for option in jvm.ENGLISH), "-nowarn", "--release", str(jvm.MINIMUM_JAVA)]
    # Of one string and another javac makes a bootstrap call otherwise, which would take its time in each start.
    command += ["-XDstringConcat=inline", "-d", str(classes), str(SOURCE)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_DEADLINE_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"{javac} did not compile {SOURCE.name}: {error}") from None
    if done.returncode:
        raise HarnessError(f"{SOURCE.name} does not compile with {javac}: {done.stderr.strip()[:300]}")
    with zipfile.ZipFile(part, "w") as archive:
        archive.writestr("META-INF/MANIFEST.MF", MANIFEST)
        for path in sorted(classes.glob("*.class")):
            archive.write(path, path.name)
    part.replace(jar)


def _asked(path: Path) -> bytes:
    """Nothing from a JVM that is gone or frozen."""
    with socket.socket(socket.AF_UNIX) as plug:
        plug.settimeout(ANSWER_S)
        try:
            plug.connect(str(path))
            return plug.recv(struct.calcsize(ANSWER))
        except OSError:
            return b""
