"""The locustfile of a load in one process: each ad server of the tape is one Locust user (generators/ad_server.py).

harness/load/fleet.py starts it. With `--workers` the users are spread over processes: generators/load_master.py.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import gevent  # type: ignore[import-untyped]
from locust import LoadTestShape, User, events
from locust.env import Environment

from generators.ad_server import STATUS_S, AdServer, stop_collecting
from generators.fleet import CONFIG_VARIABLE, Fleet, LoadConfig, go_first

FAILED = 1

AdServer.fleet = FLEET = Fleet(LoadConfig.read(Path(os.environ[CONFIG_VARIABLE])))
go_first()


class Tape(LoadTestShape):
    """A load shape with all ad servers at once; it ends when the tape does."""

    def tick(self) -> tuple[int, float] | None:
        servers = FLEET.config.tape.senders
        return None if FLEET.ended else (servers, servers)


@events.init.add_listener  # type: ignore[untyped-decorator]
def begin(environment: Environment, **_: Any) -> None:
    """Handle SIGTERM here: Locust handles it only after a headless shape has ended, and the harness must be able to
    stop it before.
    """
    gevent.signal_handler(signal.SIGTERM, _quit, environment)
    gevent.spawn(_keep_status)
    stop_collecting()


@events.user_error.add_listener  # type: ignore[untyped-decorator]
def give_up(user_instance: User, exception: BaseException, **_: Any) -> None:
    """End the process if an ad server fails: with fewer servers the load would not be the planned one."""
    FLEET.fail(f"an ad server failed: {type(exception).__name__}: {exception}")
    print(f"An ad server failed, so the load is broken off: {exception!r}", file=sys.stderr, flush=True)
    gevent.spawn(_quit, user_instance.environment)


@events.quitting.add_listener  # type: ignore[untyped-decorator]
def end(environment: Environment, **_: Any) -> None:
    well = FLEET.close()
    environment.process_exit_code = 0 if well and FLEET.ended else FAILED


def _quit(environment: Environment) -> None:
    """Quit before the end of the tape. The harness waits for the send log, but not for a broker that is down."""
    FLEET.hurry()
    if environment.runner is not None:
        environment.runner.quit()


def _keep_status() -> None:
    while True:
        FLEET.producer.poll()
        FLEET.write_status()
        gevent.sleep(STATUS_S)
