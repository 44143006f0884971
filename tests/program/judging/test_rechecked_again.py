"""A stored run that has been judged is judged so once more: the verdict in its folder changes nothing."""

from __future__ import annotations

import pytest

from tests.quick import rechecked
from tests.quick.test_rechecked import NAMES


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return {store.path.name: store for store in rechecked.unpacked(tmp_path_factory.mktemp("stored"))}


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_is_judged_once_more_as_before(stores, name):
    verdict = rechecked.verdict_of(name).read_text()

    assert rechecked.rechecked(stores[name]).decode() == verdict
    assert rechecked.rechecked(stores[name]).decode() == verdict
