"""Declared events as an Arrow table, which is the input of the oracle, whether they were drawn or read back
from a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from workloads.declared.draws import Columns, names
from workloads.declared.fields import Decimal, Field, Fields, Integer, Named, Nested, Time, leaves

PRECISION = 18  # most digits of a decimal that fit into 64 bits
UNKNOWN = -1


class Arrow:
    """Converts numbers to the values that they stand for, and back, for one seed. `within` is a prefix of all paths."""

    def __init__(self, fields: Fields, seed: int, within: str = "") -> None:
        self._fields, self._seed, self._within = fields, seed, within
        self._leaves = dict(leaves(fields))
        self._dictionaries: dict[str, pa.Array] = {}

    def table(self, columns: Columns) -> pa.Table:
        """Return a column for each field, with an object as a struct. A field with a list of texts becomes a
        dictionary.
        """
        return pa.table({name: self._array(field, name, columns) for name, field in self._fields.items()})

    def flat(self, path: str, column: NDArray[Any]) -> pa.Array:
        """Convert one column without unknown numbers."""
        field = self._leaves[path]
        if isinstance(field, Named):
            return pa.DictionaryArray.from_arrays(column, self._names(field, path))
        return decimals(column, field.digits) if isinstance(field, Decimal) else pa.array(column)

    def known(self, path: str, column: NDArray[Any], held: NDArray[np.bool_]) -> pa.Array:
        """Convert a column where only the `held` rows have a number, and some of these stand for nothing."""
        named = isinstance(self._leaves[path], Named)
        rows = np.flatnonzero(held & (column >= 0) if named else held)
        places = np.full(len(column), UNKNOWN)
        places[rows] = np.arange(len(rows))
        values = self.flat(path, column[rows])
        return (values.dictionary_decode() if named else values).take(pa.array(places, mask=places == UNKNOWN))

    def numbers(self, path: str, values: list[Any]) -> NDArray[np.int64]:
        """Convert values back to numbers; UNKNOWN for a text that the field does not have. Raises ArrowInvalid for a
        number that the field can't hold.
        """
        field = self._leaves[path]
        column = pa.array(values, kind_of(field))
        if isinstance(field, Named):
            return np.asarray(pc.fill_null(pc.index_in(column, self._names(field, path)), UNKNOWN)).astype(np.int64)
        return units(column) if isinstance(field, Decimal) else np.asarray(column)

    def _array(self, field: Field, path: str, columns: Mapping[str, NDArray[Any]]) -> pa.Array:
        if not isinstance(field, Nested):
            return self.flat(path, columns[path])
        inner = [self._array(each, f"{path}.{name}", columns) for name, each in field.fields.items()]
        return pa.StructArray.from_arrays(inner, names=list(field.fields))

    def _names(self, field: Named, path: str) -> pa.Array:
        if path not in self._dictionaries:
            self._dictionaries[path] = pa.array(names(field, self._seed, self._within + path))
        return self._dictionaries[path]


def kind_of(field: Field) -> pa.DataType:
    """Return the Arrow type of a field."""
    match field:
        case Integer() | Time():
            return pa.int64()
        case Decimal():
            return pa.decimal128(PRECISION, field.digits)
    return pa.string()


def decimals(units: NDArray[np.int64], digits: int) -> pa.Array:
    """Convert whole numbers in units of the last digit. Arrow holds a decimal in 128 bits, with the sign in the upper
    half.
    """
    wide = np.empty((len(units), 2), dtype="<i8")
    wide[:, 0], wide[:, 1] = units, units >> 63
    return pa.Array.from_buffers(pa.decimal128(PRECISION, digits), len(units), [None, pa.py_buffer(wide)])


def units(column: pa.Array) -> NDArray[np.int64]:
    """Convert decimals back to whole numbers."""
    return np.frombuffer(column.buffers()[1], dtype="<i8")[0::2][column.offset : column.offset + len(column)]
