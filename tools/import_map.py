"""Count the folders of the program and the imports between them, and check that these have no cycle.

python -m tools.import_map [CHECKOUT]
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PROGRAM = ("harness", "workloads", "generators", "reports")
WHOLE = ("workloads", "reports")  # each counts as one folder, with all its subfolders


def modules(root: Path) -> dict[str, Path]:
    paths = [path for folder in PROGRAM for path in sorted((root / folder).rglob("*.py"))]
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def room(module: str, known: dict[str, Path]) -> str:
    """Return the folder of a module. A module directly in `harness` counts as a folder of its own."""
    top, folder = module.partition(".")[0], module.rpartition(".")[0]
    if top in WHOLE:
        return top
    return module if known[module].name == "__init__.py" or folder == "harness" else folder


def arrows(root: Path) -> Counter[tuple[str, str]]:
    known, found = modules(root), Counter[tuple[str, str]]()
    for module, path in known.items():
        for each in imported(path, known):
            if each in known and room(each, known) != room(module, known):
                found[room(module, known), room(each, known)] += 1
    return found


def main(root: Path) -> None:
    found = arrows(root)
    rooms = {each for pair in found for each in pair}
    graph = {each: {to for start, to in found if start == each} for each in rooms}
    try:
        floors: dict[str, int] = {}
        for each in TopologicalSorter(graph).static_order():
            floors[each] = 1 + max((floors[below] for below in graph[each]), default=0)
        said = f"{max(floors.values())} floors, no circle"
    except CycleError as error:
        said = f"a circle: {' -> '.join(error.args[1])}"
    print(f"{len(rooms)} rooms, {len(found)} arrows, {sum(found.values())} imports, {said}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd())
