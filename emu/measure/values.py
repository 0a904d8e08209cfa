"""Many integers, of which minimum, mean and percentiles are wanted: exact, in memory that does not grow."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Iterator
from heapq import merge
from typing import BinaryIO

from emu.errors import MachineError
from emu.units import NS

CHUNK = 1 << 16  # values kept in memory; more are sorted and put in a temporary file that has no name
READ_AHEAD = 1 << 10
ITEM_BYTES = 8
PERCENTILES = {"p50": 500, "p90": 900, "p99": 990, "p999": 999}  # in thousandths


class Values:
    """Append what was measured; ask for a summary at the end. Raises MachineError where the disk is full."""

    __slots__ = ("_chunks", "_file", "_latest", "count", "total")

    def __init__(self) -> None:
        self._latest: array[int] = array("q")
        self._chunks: list[int] = []  # where each sorted chunk begins in the file
        self._file: BinaryIO | None = None
        self.count = 0
        self.total = 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, value: int) -> None:
        """Add one."""
        self.count += 1
        self.total += value
        self._latest.append(value)
        if len(self._latest) == CHUNK:
            self._spill()

    def ordered(self) -> Iterator[int]:
        """All values, smallest first."""
        return merge(sorted(self._latest), *(self._chunk(start) for start in self._chunks))

    def summary_ns(self) -> dict[str, float]:
        """min, mean, p50, p90, p99, p999 and max in nanoseconds, by nearest rank; zeros where there is no value."""
        if not self.count:
            return dict.fromkeys(("min", "mean", *PERCENTILES, "max"), 0)
        ranks = {name: nearest_rank(self.count, thousandths) for name, thousandths in PERCENTILES.items()}
        wanted = {1: 0, self.count: 0, **dict.fromkeys(ranks.values(), 0)}
        for rank, value in enumerate(self.ordered(), start=1):
            if rank in wanted:
                wanted[rank] = value
        summary = {"min": wanted[1] / NS, "mean": self.total / self.count / NS}
        summary |= {name: wanted[rank] / NS for name, rank in ranks.items()}
        return summary | {"max": wanted[self.count] / NS}

    def _spill(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as we do
            self._chunks.append(self._file.seek(0, 2))
            array("q", sorted(self._latest)).tofile(self._file)
        except OSError as error:
            raise MachineError(
                f"no room for measured values in {tempfile.gettempdir()} ({error.strerror}): set TMPDIR"
            ) from None
        self._latest = array("q")

    def _chunk(self, start: int) -> Iterator[int]:
        assert self._file is not None
        for at in range(start, start + CHUNK * ITEM_BYTES, READ_AHEAD * ITEM_BYTES):
            self._file.seek(at)
            values: array[int] = array("q")
            values.fromfile(self._file, READ_AHEAD)
            yield from values


def nearest_rank(count: int, thousandths: int) -> int:
    """The rank, from 1, of the smallest of `count` values that at least that share of all does not exceed."""
    return max(1, -(-count * thousandths // 1000))
