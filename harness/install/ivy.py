"""Runs Ivy, the one inside pyspark, which resolves and fetches JVM artifacts.

Ivy asks for one file after the other, so artifacts whose place in the repository is known are shared out to several
Ivys at the same time. The user's own settings are honoured: an Ivy settings file named by a variable, else the mirror
and the proxy of Maven's settings. Standard library only.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from harness.host import disk_space
from harness.install.origin import HOW_TO_MEND
from harness.install.progress import Amount
from harness.model import HarnessError
from harness.terminal.command_end import cache_folder
from harness.util.wait import DeadlinePassed, wait_until

# The launcher imports this at every start, so what only a fetch needs is imported by the functions that fetch.
if TYPE_CHECKING:
    from harness.install.maven_settings import Mirror

SETTINGS_VARIABLE = "STREAMGAUGE_IVY_SETTINGS"
PINNED = Path(__file__).with_name("ivy.sha256")
DEADLINE_S = 900
TOLD_EVERY_S = 15.0
POLL_S = 0.2
MOST_AT_ONCE = 4
FEWEST_EACH = 5  # artifacts: a start of Ivy takes about as long as so many small ones
AS_LONG_AS_BYTES = 400_000  # the requests for one artifact take as long as this many bytes
# By default Java formats and parses in the user's locale, and we read what Ivy writes. The rest makes a short run
# cheaper: other work goes on beside it.
SHORT_RUN = ("-Duser.language=en", "-Duser.country=US", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# Where uv's cache has the source of Spark: by index, or by the digest of an index of the user's own.
_UNPACKED = tuple(f"sdists-v*/{index}/pyspark/*/*/src/deps/jars/ivy-*.jar" for index in ("*", "*/*"))

Say = Callable[[str], None]


# ---------------------------------------------------------------- Artifacts and their places


@dataclass(frozen=True)
class Artifact:
    """A jar in a Maven repository: its path there, as in org/apache/kafka/kafka-clients/4.3.1/x.jar, and its bytes."""

    path: PurePosixPath
    size: int

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def dependency(self) -> str:
        """Return the line of an ivy.xml that asks for this jar and nothing else."""
        from xml.sax.saxutils import quoteattr

        *organisation, module, revision, _ = self.path.parts
        names = {"org": ".".join(organisation), "name": module, "rev": revision, "transitive": "false"}
        return f"<dependency {' '.join(f'{name}={quoteattr(value)}' for name, value in names.items())}/>"


def read_artifacts(path: Path) -> list[Artifact]:
    """Parse lines of size and path. A set that was pinned by an older version has no such list."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    pairs = (line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#"))
    return [Artifact(PurePosixPath(name), int(size)) for size, name in pairs]


def write_artifacts(path: Path, artifacts: Sequence[Artifact]) -> None:
    by_path = sorted(artifacts, key=lambda each: str(each.path))
    path.write_text("".join(f"{each.size:>10}  {each.path}\n" for each in by_path), encoding="utf-8")


def shares(artifacts: Sequence[Artifact]) -> list[list[Artifact]]:
    """Share artifacts out to several Ivys so that all take about as long: large ones first, each to the least busy."""
    count = max(1, min(MOST_AT_ONCE, len(artifacts) // FEWEST_EACH))
    found: list[list[Artifact]] = [[] for _ in range(count)]
    for artifact in sorted(artifacts, key=lambda each: each.size, reverse=True):
        min(found, key=lambda share: sum(each.size + AS_LONG_AS_BYTES for each in share)).append(artifact)
    return found


def ivy_xml(name: str, artifacts: Sequence[Artifact]) -> str:
    dependencies = "\n    ".join(artifact.dependency for artifact in artifacts)
    return f"""<ivy-module version="2.0">
  <info organisation="streamgauge" module="{name}"/>
  <configurations><conf name="default"/></configurations>
  <dependencies defaultconf="default->default">
    {dependencies}
  </dependencies>
</ivy-module>
"""


# ---------------------------------------------------------------- Ivy itself


def installed() -> Path:
    """Return the Ivy inside pyspark. Locating the package does not import it."""
    found = _installed()
    if not found:
        raise HarnessError(f"No pyspark with an Ivy inside is installed for {sys.executable}. {HOW_TO_MEND}")
    return found[-1]


def _installed() -> list[Path]:
    importlib.invalidate_caches()  # it may have been installed since this program began
    spec = importlib.util.find_spec("pyspark")
    locations = list(spec.submodule_search_locations or []) if spec else []
    return [jar for location in locations for jar in sorted(Path(location).glob("jars/ivy-*.jar"))]


def wait_for(cache: Path) -> Path:
    """Return Ivy as soon as it is on the disk. uv unpacks Spark's source into its cache before it builds and installs
    Spark, which takes much longer. It may not have verified the source yet, so Ivy has a pinned sum.
    """

    def found() -> list[Path]:
        return [jar for place in _UNPACKED for jar in cache.glob(place) if is_pinned(jar)] or _installed()

    try:
        return wait_until(found, deadline_s=DEADLINE_S, what="the Ivy inside Spark", every_s=POLL_S)[-1]
    except DeadlinePassed:
        raise HarnessError(
            f"The JVM artifacts wait for the Ivy inside Spark, and Spark was not installed within {DEADLINE_S} s. "
            "The network may be slow or down. Start the same command again."
        ) from None


def is_pinned(jar: Path) -> bool:
    """Return whether this is the Ivy of the Spark that requirements/run.lock pins."""
    with suppress(OSError), jar.open("rb") as stream:
        seen = hashlib.file_digest(stream, "sha256").hexdigest()
        return f"{seen}  {jar.name}" in PINNED.read_text(encoding="utf-8").splitlines()
    return False


def settings_file(scratch: Path, *, poms: bool) -> Path:
    """Return the settings for Ivy. Without POMs a jar is fetched by two requests, but what it needs stays unknown."""
    from harness.install import maven_settings

    if own := os.environ.get(SETTINGS_VARIABLE):
        return Path(own)
    path = scratch / "ivysettings.xml"
    mirror = maven_settings.read(maven_settings.user_settings()).mirror
    path.write_text(settings_xml(mirror, maven_settings.realm_of(mirror) if mirror else "", poms), encoding="utf-8")
    return path


def settings_xml(mirror: Mirror | None, realm: str, poms: bool) -> str:
    """Format Ivy's settings. Ivy has Maven's central repository built in. The switched-off lookups cost a request per
    file and more than double the time: sources, documentation, and weak checksums of files that we verify with our own
    strong ones.
    """
    from urllib.parse import urlsplit
    from xml.sax.saxutils import quoteattr

    root = f" root={quoteattr(mirror.url)}" if mirror else ""
    account = ""
    if mirror and realm:
        values = (urlsplit(mirror.url).hostname or "", realm, mirror.username, mirror.password)
        names = zip(("host", "realm", "username", "passwd"), values, strict=True)
        account = f"\n  <credentials {' '.join(f'{name}={quoteattr(value)}' for name, value in names)}/>"
    return f"""<ivysettings>
  <property name="ivy.maven.lookup.sources" value="false"/>
  <property name="ivy.maven.lookup.javadoc" value="false"/>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="central"/>{account}
  <resolvers>
    <ibiblio name="central" m2compatible="true" useMavenMetadata="false" usepoms="{str(poms).lower()}"{root}/>
  </resolvers>
</ivysettings>
"""


def command(java: Path, jar: Path, place: Path, *, settings: Path, ivy_file: Path, pattern: str) -> list[str]:
    """Return the command of an Ivy with all of its own files below `place`. `pattern` names the fetched files."""
    from harness.install import maven_settings

    place.mkdir(parents=True, exist_ok=True)
    options = place / "java.options"  # a file, because everybody can read the command lines of processes
    proxy = maven_settings.java_options(maven_settings.read(maven_settings.user_settings()), os.environ)
    options.write_text("".join(f"{_quoted(option)}\n" for option in proxy), encoding="utf-8")
    return [
        *(str(java), *SHORT_RUN, f"-Divy.default.ivy.user.dir={place / 'ivy'}", "-Djava.net.useSystemProxies=true"),
        *([f"@{options}"] if proxy else []),
        *("-jar", str(jar), "-settings", str(settings), "-ivy", str(ivy_file), "-retrieve", pattern),
    ]


def _quoted(option: str) -> str:
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def run(commands: Sequence[Sequence[str]], which: str, log: Path, say: Say, count: Callable[[], Amount]) -> int:
    """Run Ivys side by side, all with the same log, and return the first exit code that is not 0. Report progress to
    the user in intervals."""
    began, next_line = time.monotonic(), time.monotonic() + TOLD_EVERY_S
    ivys: list[subprocess.Popen[bytes]] = []
    with log.open("wb") as output:
        try:
            for each in commands:
                ivys.append(subprocess.Popen(each, stdin=subprocess.DEVNULL, stdout=output, stderr=output))
            while (now := time.monotonic()) - began < DEADLINE_S:
                if all(ivy.poll() is not None for ivy in ivys):
                    return next((ivy.returncode for ivy in ivys if ivy.returncode), 0)
                if now >= next_line:
                    say(f"Fetching the JVM artifacts of {which} ... {count()}, {now - began:.0f} s so far")
                    next_line = now + TOLD_EVERY_S
                time.sleep(min(POLL_S, TOLD_EVERY_S))
        finally:
            for ivy in ivys:
                ivy.kill()
                ivy.wait()
    raise HarnessError(
        f"Fetching the JVM artifacts of {which} did not end within {DEADLINE_S} s. "
        f"The network may be slow or down. Ivy's log is {log}. Start the same command again: it keeps what has come."
    )


def explain_failure(which: str, code: int, said: str, log: Path) -> str:
    """Explain a failed fetch to the user in one sentence, from Ivy's output."""
    if disk_space.ended_of_full(said, log.parent):
        cause, remedy = f"the disk of {cache_folder()} is full", "free about 200 MB there, or set XDG_CACHE_HOME"
    elif re.search(
        r"Host \S+ not found|UnknownHost|ConnectException|timed out|unreachable|Connection refused|SSLHandshake", said
    ):
        cause = "the Maven repository was not reached"
        remedy = (
            "check the network; a proxy is taken from HTTPS_PROXY or Maven's settings, a mirror from Maven's settings "
            f"(~/.m2/settings.xml) or from an Ivy settings file that {SETTINGS_VARIABLE} names"
        )
    else:
        missing = re.findall(r"::\s+(\S+#\S+;\S+): not found", said)
        cause = f"the repository has no {missing[0]}" if missing else f"Ivy ended with code {code}"
        remedy = f"read the log; a mirror may lack files ({SETTINGS_VARIABLE} chooses another one)"
    return f"The JVM artifacts of {which} could not be fetched: {cause}. To go on, {remedy}. Ivy's log is {log}."
