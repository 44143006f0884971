"""A long column that is put together of parts, without a second one beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEP = 1 << 20  # rows; the system makes a long array longer without a copy of it


class Growing:
    """Parts that are kept until all are there, and then joined, take twice the room: where they lay stay holes."""

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
            self._rows.resize(max(end, min(2 * end, end + STEP)), refcheck=False)  # nobody else has seen it
        self._rows[self._end : end] = part
        self._end = end

    def whole(self) -> NDArray[Any]:
        """All of it, to be asked for once."""
        assert self._rows is not None, "at least one part gives it its type"
        self._rows.resize(self._end, refcheck=False)
        return self._rows
