"""Selects the JVMs of a run that start from an archive of classes: the broker, and a shipped engine's JVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.engines.environments import jars_inside
from harness.engines.job import Surroundings
from harness.install import archives, jvm
from harness.install.archives import Archive, Start
from harness.model import EngineManifest, RunSpec
from harness.services.kafka import FRUGAL, in_order

BROKER = "broker"


@dataclass(frozen=True)
class Archives:
    """The archives of a run; None if the JVM is not ours."""

    broker: Archive | None
    engine: Archive | None

    @property
    def all(self) -> tuple[Archive, ...]:
        return tuple(filter(None, (self.broker, self.engine)))


@dataclass(frozen=True)
class Starts:
    """The options with which the JVMs of a run start."""

    broker: Start
    engine: Start
    every_option: tuple[str, ...] = ()  # for every JVM of the engine, also those that its own commands start


def in_words(starts: Starts) -> dict[str, dict[str, str]]:
    """Return the entries for the fairness card."""
    told = {"archive of classes": {"broker": starts.broker.state, "engine": starts.engine.state}}
    return told | ({"options of all JVMs": {"engine": " ".join(starts.every_option)}} if starts.every_option else {})


COLD = Starts(archives.COLD, archives.COLD)


def archives_of(spec: RunSpec, manifest: EngineManifest, surroundings: Surroundings) -> Archives:
    if not spec.archive or manifest.simulated:
        return Archives(None, None)
    java = jvm.java()
    broker = None if spec.kafka else archives.archive_of(BROKER, java, in_order(jvm.jars("services")), FRUGAL)
    if not manifest.archive:
        return Archives(broker, None)
    # The job decides which classes are loaded; engines with the same jars differ little.
    jars = (*surroundings.jars, *jars_inside(manifest, surroundings.python))
    flags = tuple(f"{name}={value}" for name, value in sorted(spec.conf.items()) if "JavaOptions" in name)
    return Archives(broker, archives.archive_of(manifest.id, java, jars, flags))


def starts(found: Archives) -> Starts:
    """Return starts with the existing archives."""
    return _each(found, archives.start)


def makings(found: Archives) -> Starts:
    """Return starts that write the archives which do not exist yet."""
    return _each(found, _making)


def _each(found: Archives, start: Callable[[Archive], Start]) -> Starts:
    broker, engine = (start(each) if each else archives.COLD for each in (found.broker, found.engine))
    return Starts(broker, engine)


def _making(archive: Archive) -> Start:
    return archives.making(archive) if archives.lacks(archive) else archives.start(archive)
