"""A checkout, or installed: how the program is called, and where its own files lie."""

from __future__ import annotations

import ast

from harness.install import origin
from harness.install.origin import ROOT

OF_A_CHECKOUT = {"harness/cli/own_tests.py"}  # there it is meant


def test_this_is_a_checkout():
    assert origin.IS_CHECKOUT
    assert origin.COMMAND == "./streamgauge"
    assert (ROOT / "tests").is_dir()


def test_what_is_shown_to_be_typed_can_be_typed_where_no_launcher_is():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("harness", "reports")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in OF_A_CHECKOUT and "./" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "./streamgauge" in node.value
    ]

    assert found == [], "use harness.install.origin.COMMAND"
