"""Load the CPU in bursts, as a neighbour for measurements: `python -m tools.hog [SECONDS]`.

Two processes are each busy for 0.2 to 4 seconds and idle for as long, like builds and tests of others. They end with
the command, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import time


def hog(seed: int, until_s: float, parent: int) -> None:
    draws = random.Random(seed)
    while time.monotonic() < until_s and os.getppid() == parent:
        busy_until_s = time.monotonic() + draws.uniform(0.2, 4.0)
        while time.monotonic() < busy_until_s:
            sum(range(10_000))
        time.sleep(draws.uniform(0.2, 4.0))


def main() -> None:
    until_s = time.monotonic() + float(sys.argv[1] if len(sys.argv) > 1 else 600)
    hogs = [multiprocessing.Process(target=hog, args=(seed, until_s, os.getpid()), daemon=True) for seed in (1, 2)]
    for each in hogs:
        each.start()
    for each in hogs:
        each.join()


if __name__ == "__main__":
    main()
