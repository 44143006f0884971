"""One key of a table in TOML: its reader, and the sentences that docs/reference/ prints about it.

Both stand in one place, so that the page can't differ from the program. A sentence is Markdown without links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.util import toml_reader
from harness.util.toml_reader import OneOf, Reader, SomeOf, WholeNumber

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
    """A key with its reader."""

    read: Reader
    help: str
    default: str = ""  # in words, if it is another than `usual` says by itself
    takes: str = ""  # the allowed values in words, if the reader alone does not show them
    example: str = ""  # a whole line of TOML
    required: bool = False

    @property
    def allowed(self) -> str:
        """Return the allowed values in words."""
        if self.takes:
            return self.takes
        match self.read:
            case OneOf(words):
                return quoted(words)
            case SomeOf(words):
                return f"a list of {quoted(words, 'and')}"
            case WholeNumber(low, high):
                return f"{low:,} to {high:,}"
        return TAKES[self.read]

    @property
    def usual(self) -> str:
        """Return the default in words; "" for a required key, which has none."""
        return "" if self.required else self.default or ("`false`" if self.read is toml_reader.flag else "none")


def read(value: Any, keys: Mapping[str, TomlKey], where: str) -> dict[str, Any]:
    """Read a table of such keys. An optional key that is missing is missing from the result."""
    optional = [name for name, key in keys.items() if not key.required]
    return toml_reader.read(value, {name: key.read for name, key in keys.items()}, where, optional=optional)


def quoted(words: Iterable[str], last: str = "or") -> str:
    """Format words as TOML texts, for `takes`: `"a"`, `"b"` or `"c"`."""
    *first, final = [f'`"{word}"`' for word in words]
    return f"{', '.join(first)} {last} {final}" if first else final
