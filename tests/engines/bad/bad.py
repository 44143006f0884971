"""Engines that behave badly, each in one way. Those that count at all count as the reference does.

python bad.py silent|exits|chatty|stubborn|parent CONFIG.json
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from workloads.ad_impressions.jobs import reference

GIGABYTE = 1 << 30
CHUNK = b"x" * 1023 + b"\n"


def silent(_config: str) -> None:
    """Starts, says one thing, and never answers."""
    print("waiting for a licence", flush=True)
    signal.pause()


def exits(_config: str) -> None:
    print("\x1b[31mreading settings\x00", flush=True)
    raise SystemExit("no such table: impressions")


def chatty(config: str) -> None:
    """Counts, and says a gigabyte meanwhile."""

    def talk() -> None:
        for _ in range(GIGABYTE // (1024 * len(CHUNK))):
            os.write(1, CHUNK * 1024)
        os.write(1, b"out of words\n")

    threading.Thread(target=talk, daemon=True).start()
    reference.main(config)


def stubborn(config: str) -> None:
    """Counts, and hears no SIGTERM."""
    counting = subprocess.Popen([sys.executable, "-m", "workloads.ad_impressions.jobs.reference", config])
    signal.signal(signal.SIGTERM, lambda *_: print("not now", flush=True))
    counting.wait()


def parent(_config: str) -> None:
    """Leaves two children behind, of which one has a session of its own, and ends."""
    for own_session in (False, True):
        subprocess.Popen(["sleep", "600"], start_new_session=own_session)
    sys.exit("gone, but not alone")


KINDS = {"silent": silent, "exits": exits, "chatty": chatty, "stubborn": stubborn, "parent": parent}

if __name__ == "__main__":
    KINDS[sys.argv[1]](sys.argv[2])
