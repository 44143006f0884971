"""Records the topics that a run creates in an external Kafka, so that these are deleted and nothing else.

The name of a run's topic ends in random bits, and its creation is recorded with the id that the broker assigned. A
topic is deleted by its recorded id: a refused creation leaves no record, and another topic of the same name has another
id. Topics and consumer groups that an engine creates belong to the run if their name contains the whole name of the
run's topic, which no one else can guess. The records outlive a killed run; the next run with the same Kafka deletes its
topics.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.model import HarnessError, KafkaAddress
from harness.services import kafka, state_records
from harness.services.owners import is_dead, locked, owner_mark

RANDOM_BYTES = 6
TOPICS = "topics"


@dataclass(frozen=True)
class CreatedTopic:
    """A topic of a run, with the id that the broker assigned at its creation."""

    owner: str
    bootstrap: str
    name: str
    id: str


def of_this_run_alone(name: str) -> str:
    """Return a unique and unguessable name: it ends in random bits."""
    return f"{name}-{secrets.token_hex(RANDOM_BYTES)}"


def create(address: KafkaAddress, name: str, partitions: int, *, appended: bool = False) -> None:
    """Create a topic. In an external Kafka the creation is recorded; a refused one is not."""
    given = kafka.create_topic(address, name, partitions, appended=appended)
    if address.external:
        state_records.write(TOPICS, CreatedTopic(owner_mark(), address.bootstrap, name, given))


def delete_own(address: KafkaAddress, run_topic: str) -> list[str]:
    """Delete the recorded topics of this process's run, and its engine's; report the topics that remain."""

    def of_this_run(topic: CreatedTopic) -> bool:
        return topic.owner == owner_mark() and topic.name.startswith(run_topic)

    return _delete(address, of_this_run)


def delete_left(address: KafkaAddress) -> list[str]:
    """Delete the topics of killed runs of this machine in the same Kafka; report what was done."""
    with locked("topics"):
        servers = set(address.bootstrap.split(","))
        left = [topic for _, topic in _records() if is_dead(topic.owner) and servers & set(topic.bootstrap.split(","))]
        if not left:
            return []
        stays = _delete(address, left.__contains__)
    kept = {topic.name for _, topic in _records()}
    gone = [topic.name for topic in left if topic.name not in kept]
    done = [f"Deleted topic {name}, which a dead run left in Kafka." for name in gone]
    return [*done, *stays]


def _delete(address: KafkaAddress, wanted: Callable[[CreatedTopic], bool]) -> list[str]:
    """A record is kept as long as its topic exists, so that a later run can delete it."""
    records = {file: topic for file, topic in _records() if wanted(topic)}
    if not records:
        return []
    names = [topic.name for topic in records.values()]
    try:
        ids = {**_below(address, names), **{topic.name: topic.id for topic in records.values()}}
        stays = kafka.delete_topics(address, ids)
        told = [*_told_of_topics(address, stays), *_told_of_groups(address, names)]
    except HarnessError as error:
        return [f"{_these('Topic', names)} may stay in Kafka at {address.bootstrap}: {error}"]
    for file, topic in records.items():
        if topic.name not in stays:
            file.unlink(missing_ok=True)
    return told


def _below(address: KafkaAddress, names: list[str]) -> Mapping[str, str]:
    """Return the current ids of topics whose name contains that of a run's topic and a dot."""
    every = kafka.topic_ids(address)
    return {each: given for each, given in every.items() if any(f"{name}." in each for name in names)}


def _told_of_topics(address: KafkaAddress, stays: Mapping[str, str]) -> Iterator[str]:
    if not stays:
        return
    why = "; ".join(dict.fromkeys(stays.values()))
    yield (
        f"{_these('Topic', stays)} {'stays' if len(stays) == 1 else 'stay'} in Kafka at {address.bootstrap}, which "
        f"refused the deletion ({why}). To remove: "
        + "; ".join(f"kafka-topics --bootstrap-server {address.bootstrap} --delete --topic {name}" for name in stays)
    )


def _told_of_groups(address: KafkaAddress, names: list[str]) -> Iterator[str]:
    stays = kafka.delete_groups_holding(address, names)
    if stays:
        why = "; ".join(dict.fromkeys(stays.values()))
        yield f"{_these('Consumer group', stays)} may stay in Kafka at {address.bootstrap} ({why})."


def _these(what: str, names: Mapping[str, str] | list[str]) -> str:
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _records() -> list[tuple[Path, CreatedTopic]]:
    return state_records.read(TOPICS, CreatedTopic)
