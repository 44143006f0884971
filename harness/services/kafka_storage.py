"""Formats a Kafka data folder without Kafka's own tool: the node's identity and the cluster's features.

The tool writes both, but is a Java program that takes a second. The features are the same for every cluster of one
version, so the tool's output is cached once, and later folders are written from it.
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
from pathlib import Path

from harness.terminal.command_end import cache_folder

WHO, FEATURES = "meta.properties", "bootstrap.checkpoint"


def write(folder: Path, node: int, cluster: str, features: Path) -> None:
    folder.mkdir(parents=True)
    who = {"version": "1", "cluster.id": cluster, "node.id": str(node), "directory.id": new_id()}
    (folder / WHO).write_text("".join(f"{key}={value}\n" for key, value in who.items()))
    shutil.copyfile(features, folder / FEATURES)


def kept_features(jars: Path) -> Path:
    """Return the cached features of the Kafka in this folder, whose name identifies its version."""
    return cache_folder() / "kafka" / f"{jars.name}.{FEATURES}"


def keep(features: Path, jars: Path) -> None:
    place = kept_features(jars)
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_suffix(f".{os.getpid()}.part")
    with part.open("wb") as stream:
        stream.write(features.read_bytes())
        stream.flush()
        os.fsync(stream.fileno())  # a power failure leaves the whole file or none
    part.replace(place)


def new_id() -> str:
    """Return a uuid in Kafka's format. The first byte is 0: the tool would read a leading dash as an option."""
    return base64.urlsafe_b64encode(b"\x00" + secrets.token_bytes(15)).decode().rstrip("=")
