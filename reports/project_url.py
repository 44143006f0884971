"""The address of the project, as its metadata has it: `[project.urls]` of pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distributions

from harness.install.origin import IS_CHECKOUT, ROOT
from harness.terminal.command_end import PROGRAM

NAMES = ("Repository", "Source", "Homepage")  # the first of them that has an address


def of(path: str) -> str:
    """Return the address of a file of the repository; "" if the project has no address."""
    base = address()
    return f"{base}/blob/HEAD/{path}" if base else ""


def address() -> str:
    """Return the address of the project, without a slash at its end; "" if it has none."""
    return _of_project().rstrip("/")


@cache
def _of_project() -> str:
    urls = _in_checkout() if IS_CHECKOUT else _installed()
    return next((urls[name] for name in NAMES if name in urls), "")


def _in_checkout() -> Mapping[str, str]:
    """A file that is half edited must not cost a verdict."""
    try:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        urls: dict[str, str] = project["project"]["urls"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return urls


def _installed() -> Mapping[str, str]:
    """The metadata lie beside the package that holds the program, and not in the program's own environment."""
    found = next(iter(distributions(name=PROGRAM, path=[str(ROOT.parents[1])])), None)
    lines = (found.metadata.get_all("Project-URL") if found else None) or []
    return {name: address for name, _, address in (line.partition(", ") for line in lines)}
