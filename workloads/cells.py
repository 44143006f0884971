"""Cells as one column of numbers: the number of a cell's key in the upper bits, the number of its field in the lower
bits, mostly a time in ms.

A job may write any field into the results. A field before 1970 or centuries away does not fit into a code: it gets a
number of its own when it first appears, so that it keeps its name and stays apart from all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

_BITS = 43
_MASK = (1 << _BITS) - 1
_MOST_FAR = 1 << 32
FAR = (1 << _BITS) - _MOST_FAR  # from here on a field is the number of one that does not fit
MOST_KEYS = 1 << (63 - _BITS)


class Codes:
    """The codes of one judgement. Equal codes are equal cells, if both are from the same `Codes`."""

    def __init__(self) -> None:
        self._far: list[int] = []
        self._numbers: dict[int, int] = {}

    def one(self, key: int, field: int) -> int:
        return key << _BITS | (field if 0 <= field < FAR else self._number(field))

    def of(self, keys: NDArray[np.integer[Any]], fields: Ints) -> Ints:
        far = (fields < 0) | (fields >= FAR)
        if far.any():
            fields = fields.copy()
            fields[far] = [self._number(field) for field in fields[far].tolist()]
        return np.asarray(keys.astype(np.int64) << _BITS | fields)

    def key(self, cell: int) -> int:
        return cell >> _BITS

    def field(self, cell: int) -> int:
        field = cell & _MASK
        return field if field < FAR else self._far[field - FAR]

    def keys(self, cells: Ints) -> Ints:
        return np.asarray(cells >> _BITS)

    def fields(self, cells: Ints) -> Ints:
        fields = np.asarray(cells & _MASK)
        for row in np.flatnonzero(fields >= FAR):
            fields[row] = self._far[fields[row] - FAR]
        return fields

    def _number(self, field: int) -> int:
        if field not in self._numbers:
            self._numbers[field] = FAR + len(self._far)
            self._far.append(field)
        return self._numbers[field]
