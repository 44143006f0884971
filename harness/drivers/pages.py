"""Write the page of an experiment, finished or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.experiments.folder import Folder

if TYPE_CHECKING:
    from reports.page import Page

KINDS = ("chaos", "search", "compare", "pairs", "gate")  # the kinds of experiments that have a page


def write_page(experiment: Folder) -> Page:
    """Drawing is slow to import, and most commands draw nothing."""
    from reports import chaos_page, compare_page, gate_page, pairs_page, search_page

    pages = (chaos_page, search_page, compare_page, pairs_page, gate_page)
    page: Page = dict(zip(KINDS, pages, strict=True))[experiment.kind].write(experiment)
    return page
