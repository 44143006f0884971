"""Write the page of an experiment, finished or not."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from harness.experiments.folder import Folder

if TYPE_CHECKING:
    from reports.page import Page

KINDS = ("chaos", "search", "compare", "pairs", "gate", "scale")  # the kinds of experiments that have a page


def write_page(experiment: Folder) -> Page:
    """Drawing is slow to import, and most commands draw nothing."""
    page: Page = import_module(f"reports.{experiment.kind}_page").write(experiment)
    return page
