"""Build a long column from parts, without a second copy of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 1 << 20  # rows; the system extends a long array without copying it


class Growing:
    """A column that grows in place.

    Keeping all parts and joining them at the end takes twice the memory and leaves holes where the parts were.
    """

    def __init__(self) -> None:
        self._rows: NDArray[Any] | None = None
        self._end = 0

    def add(self, part: NDArray[Any]) -> None:
        if self._rows is None:
            self._rows = np.empty(0, dtype=part.dtype)
        if part.dtype != self._rows.dtype:
            self._rows = self._rows.astype(np.result_type(self._rows, part))
        end = self._end + len(part)
        if end > len(self._rows):
            self._rows.resize(max(end, min(2 * end, end + STEP)), refcheck=False)  # no other reference exists
        self._rows[self._end : end] = part
        self._end = end

    def finish(self) -> NDArray[Any]:
        """Return the whole column. Call it once."""
        assert self._rows is not None, "at least one part gives it its type"
        self._rows.resize(self._end, refcheck=False)
        return self._rows
