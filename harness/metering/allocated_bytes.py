"""Measure exactly how many bytes the threads of JVMs have allocated, by an agent in each JVM (AllocatedBytes.java).

The agent also collects garbage on request, so that a JVM begins what is measured with an empty heap.

Without an agent, HotSpot's `Thread.print -e` (attach protocol) rounds to whole megabytes, or gigabytes from 10 GB on,
stops all threads, and omits those that ended. An agent needs a JDK, whose javac compiles it once.

The sum is exact since Java 21 and in late updates of 17. In older versions, the last allocations of a thread that ends
are lost, those of a tenth of a second at most. The same is true of a killed JVM of any version.

With an agent a JVM starts some tenths of a second later, and Java 25 does not use its AOT cache. A JVM that writes a
class archive must not get the options: it would refuse to start.
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
# A JVM that starts from a class archive made without an agent logs that, since Java 24 as an error, to stdout, where a
# job may write its results.
WARNINGS_TO_STDERR = ("-Xlog:all=off:stdout", "-Xlog:all=warning:stderr")
ANSWER_S = 1.0  # a frozen JVM accepts the connection, but sends nothing
ANSWER = ">q"
SOCKET, COLLECT = ".socket", ".collect"
COLLECTED_S = 30.0  # several JVMs collect at the same time on one core
SHORT = "/tmp"  # and not TMPDIR: the path of a socket has 107 characters at most


class Agents:
    """The agents in one engine's JVMs. Their sockets are in a folder of their own, whose path has to be short."""

    def __init__(self) -> None:
        self.reason = ""  # why there is no sum
        self._folder = Path(tempfile.mkdtemp(prefix="streamgauge-allocated-", dir=SHORT))
        lease_folder(self._folder)  # a later command removes it if this one is killed
        self._jar = self._made()

    def close(self) -> None:
        release_folder(self._folder)

    @property
    def options(self) -> tuple[str, ...]:
        """Return the options for every JVM of the engine, quoted for JAVA_TOOL_OPTIONS."""
        return (f'"-javaagent:{self._jar}={self._folder}"', *WARNINGS_TO_STDERR) if self._jar else ()

    def allocated_bytes(self, java_pids: Sequence[int]) -> int | None:
        """Sum over all JVMs that have ever run; None while one of `java_pids` does not answer."""
        if not self._jar:
            return None
        told = list(self._told())
        silent = set(java_pids) - {pid for pid, _ in told}
        self.reason = (
            f"the JVM with pid {min(silent)} has not reported yet" if silent else "" if told else "there is no JVM"
        )
        return None if self.reason else sum(allocated for _, allocated in told)

    def collect(self) -> None:
        """Collect the garbage of all JVMs, and wait for it. One that has ended or is frozen is left alone."""
        for path in self._folder.glob(f"*{COLLECT}"):
            _asked(path, COLLECTED_S)

    def _told(self) -> Iterator[tuple[int, int]]:
        """Yield the process and the bytes of each JVM. One that has ended left a file."""
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
    """Return the agent's jar, which is compiled on first use."""
    javac = jvm.java().resolve().with_name("javac")
    if not javac.is_file():
        raise HarnessError(
            f"{jvm.java()} comes without a compiler (javac), which is needed for the counting agent; install a JDK"
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
    # Otherwise javac concatenates strings by a bootstrap call, which would slow down each start.
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


def _asked(path: Path, within_s: float = ANSWER_S) -> bytes:
    """Ask a JVM; b"" if it has ended or is frozen."""
    with socket.socket(socket.AF_UNIX) as plug:
        plug.settimeout(within_s)
        try:
            plug.connect(str(path))
            return plug.recv(struct.calcsize(ANSWER))
        except OSError:
            return b""
