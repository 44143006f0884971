"""One key of a table in TOML: its reader, and the sentences that docs/reference/ prints about it.

Both stand in one place, so that the page can't differ from the program. A sentence is Markdown without links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.util import toml_reader
from harness.util.toml_reader import Reader

# What a reader takes, in words.
TAKES: Mapping[Reader, str] = {
    toml_reader.text: "a text",
    toml_reader.texts: "a list of texts",
    toml_reader.flag: "`true` or `false`",
    toml_reader.table: "a table",
    toml_reader.table_of_texts: "a table of texts",
}


@dataclass(frozen=True)
class TomlKey:
    """A key with its reader. A key that is not required has a default, given in words."""

    read: Reader
    help: str
    default: str = ""
    takes: str = ""  # the allowed values in words, if the reader alone does not show them
    example: str = ""  # a whole line of TOML
    required: bool = False

    @property
    def allowed(self) -> str:
        """Return the allowed values in words."""
        return self.takes or TAKES[self.read]


def read(value: Any, keys: Mapping[str, TomlKey], where: str) -> dict[str, Any]:
    """Read a table of such keys. An optional key that is missing is missing from the result."""
    optional = [name for name, key in keys.items() if not key.required]
    return toml_reader.read(value, {name: key.read for name, key in keys.items()}, where, optional=optional)


def quoted(words: Iterable[str], last: str = "or") -> str:
    """Format words as TOML texts, for `takes`: `"a"`, `"b"` or `"c"`."""
    *first, final = [f'`"{word}"`' for word in words]
    return f"{', '.join(first)} {last} {final}" if first else final
