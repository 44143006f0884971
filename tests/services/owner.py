"""An owner of embedded services in a process of its own, for tests that kill it: says its addresses, then stays."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from harness.services.children import guard
from harness.services.kafka import EmbeddedKafka
from harness.services.redis import EmbeddedRedis


def main(folder: Path, jars: Path, java: Path) -> None:
    with guard():
        kafka, redis = EmbeddedKafka(folder, jars, java, heap="512m"), EmbeddedRedis(folder)
        (folder / "draft").write_text(f"{kafka.start().bootstrap} {redis.start().url}")
        (folder / "draft").rename(folder / "addresses")
        signal.pause()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
