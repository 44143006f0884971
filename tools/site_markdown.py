"""Hooks of mkdocs: the Markdown of docs/ is written for a forge, and the site has to read it in the same way.

A link that leaves docs/ leads to the file in the project's repository, whose address is in pyproject.toml alone. Lists
are indented as Python-Markdown expects it. What changes the text are pure functions. Standard library only: mkdocs and
this file run in an environment of their own.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[1]
BRANCH = "main"
FENCE = re.compile(r" *(`{3,}|~{3,})")
# A fenced block, or code within a line.
CODE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1[`~]* *$|(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\2(?!`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"""(\]\(|\b(?:src|href)=")([^)\s"#:]+)(?=[)\s"#])""")
ITEM = re.compile(r"( *)([-*+]|(\d{1,9})[.)])( +)(?=\S)")
BLOCK = re.compile(r" *(#{1,6} |\||>|`{3}|~{3})")  # a line that ends a paragraph
DEEP = 4  # a line that is indented by so much more than its block is code
TAB = 4  # the indentation of Python-Markdown


def on_config(config: Any) -> Any:
    """Link to the repository in the footer. The theme's own `repo_url` would ask the forge for figures."""
    link = {"icon": "material/source-repository", "link": repository(), "name": "Repository"}
    config.extra["social"] = [link]
    return config


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    docs = Path(config.docs_dir)
    return lists_of_a_forge(with_links_out(markdown, page.file.src_uri, docs, repository()))


def repository() -> str:
    """Return the address of the repository, without a slash at its end."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        address: str = tomllib.load(stream)["project"]["urls"]["Repository"]
    return address.rstrip("/")


# ---------------------------------------------------------------- Links


def with_links_out(markdown: str, page: str, docs: Path, address: str) -> str:
    """Lead the links of a page that leave docs/ to the repository. A link to a file that does not exist stays, and
    mkdocs reports it.
    """

    def led(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(docs.name, posixpath.dirname(page), link[2]))
        inside = path == docs.name or path.startswith((f"{docs.name}/", "../", "/"))
        target = docs.parent / path
        if inside or not target.exists():
            return link[0]
        return f"{link[1]}{address}/{'tree' if target.is_dir() else 'blob'}/{BRANCH}/{quote(path)}"

    return outside_code(markdown, lambda text: LINK.sub(led, text))


def outside_code(markdown: str, change: Callable[[str], str]) -> str:
    """Change all text that is neither a fenced block nor code within a line."""
    parts: list[str] = []
    end = 0
    for code in CODE.finditer(markdown):
        parts += [change(markdown[end : code.start()]), code[0]]
        end = code.end()
    return "".join([*parts, change(markdown[end:])])


# ---------------------------------------------------------------- Lists and tables


def lists_of_a_forge(markdown: str) -> str:
    """Indent what is inside of list items by four blanks a level, and begin lists and tables after an empty line. A
    forge needs neither. In the code of a table's row it wants a backslash before a pipe, which Python-Markdown prints.
    """
    lines = Lines()
    for line in markdown.splitlines():
        lines.add(line)
    return "\n".join(lines.done) + "\n"


class Lines:
    """The lines so far, and what is open after the last one of them."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.items: list[int] = []  # for each open list item, where its text begins in the source
        self.fence = ""

    def add(self, line: str) -> None:
        if not line.strip():
            self.done.append("")
        elif self.fence:
            self.done.append(self._moved(line))
            if line.strip().startswith(self.fence) and not line.strip().strip("`~"):
                self.fence = ""
        else:
            self._add_text(line)

    def _add_text(self, line: str) -> None:
        after_blank = not self.done or not self.done[-1]
        in_list = bool(self.items)
        item = self._item(line, after_blank=after_blank)
        if item or after_blank or BLOCK.match(line):
            self._leave(_indent(line))
        if not after_blank and not in_list and (item or (line.startswith("|") and not self.done[-1].startswith("|"))):
            self.done.append("")
        if item:
            self.done.append(f"{' ' * TAB * len(self.items)}{item[2]} {line[item.end() :]}")
            self.items.append(item.end())
        else:
            self.done.append(self._moved(_plain_row(line) if line.lstrip().startswith("|") else self._no_item(line)))
        opened = FENCE.match(line[item.end() :] if item else line)
        self.fence = opened[1] if opened else ""

    def _item(self, line: str, *, after_blank: bool) -> re.Match[str] | None:
        """Return the match if the line begins a list item. Inside of a paragraph only a bullet or a 1 does."""
        item, indent = ITEM.match(line), _indent(line)
        base = next((text for text in reversed(self.items) if text <= indent), 0)
        in_paragraph = not after_blank and base == (self.items[-1] if self.items else 0)
        if not item or indent - base >= DEEP or (in_paragraph and item[3] not in (None, "1")):
            return None
        return item

    def _no_item(self, line: str) -> str:
        """Keep a number at the start of a line in a paragraph, which would begin a list once the line is indented."""
        is_code = _indent(line) - (self.items[-1] if self.items else 0) >= DEEP
        return line if is_code else re.sub(r"^( *\d{1,9})([.)] )", r"\1\\\2", line)

    def _leave(self, indent: int) -> None:
        while self.items and indent < self.items[-1]:
            self.items.pop()

    def _moved(self, line: str) -> str:
        if not self.items:
            return line
        return " " * (TAB * len(self.items) + max(0, _indent(line) - self.items[-1])) + line.lstrip(" ")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _plain_row(row: str) -> str:
    return re.sub(r"`[^`]+`", lambda code: code[0].replace(r"\|", "|"), row)
