"""The result folder: written under a temporary name, renamed when it is whole, never over another without leave.

A disk that fills up meanwhile costs the end of messages.csv and queues.csv, not the result: room for that is kept from
the beginning.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from emu.errors import MachineError, ScenarioError
from emu.frame import Message
from emu.lab.interrupts import Interrupts
from emu.lab.registry import Record, register
from emu.measure import series
from emu.measure.series import Sample
from emu.parts import PARTS, unpack
from emu.report.output import to_json
from emu.report.room import remedy
from emu.report.rows import Rows
from emu.units import NS
from emu.verbs import QP

RESULT, MESSAGES, QUEUES, CAPTURES = "result.json", "messages.csv", "queues.csv", "captures"
RESERVE, RESERVE_BYTES = ".reserve", 1 << 20  # for result.json
NAME_LIMIT = 60  # characters of a capture's name: file names have at most 255 bytes
# What a result folder may hold; anything else in it is somebody's own, and --force does not touch it.
OURS = {RESULT, MESSAGES, QUEUES, "trace.json", CAPTURES, "report.html"}
TIMES = ("posted_ns", "delivered_ns", "completed_ns", "latency_ns", "fabric_latency_ns", "completion_latency_ns")
COLUMNS = (
    *("src", "dst", "qp", "number", "size_bytes", "status", "retransmitted"),
    *TIMES,
    *(f"{part}_ns" for part in PARTS),
)


class ResultFolder:
    """Use with `with`: what was not finished leaves nothing behind. Times in its files are nanoseconds."""

    def __init__(self, path: str | Path, *, force: bool, with_messages: bool = True) -> None:
        self._path = _absolute(path)
        self._force = force
        self._with_messages = with_messages
        self._partial: Path | None = None
        self._record: Record | None = None  # for `emu clean`, should we be killed
        self._messages: Rows | None = None
        self._queues: Rows | None = None

    def __enter__(self) -> Self:
        """Make the temporary folder. Raises ScenarioError if the folder exists, MachineError for a full disk."""
        try:
            with Interrupts(), self._errors_named():
                self._check()
                self._make()
        except BaseException:
            self._undo()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        with Interrupts():
            self._undo()

    def on_message(self, message: Message) -> None:
        """Add a finished message to messages.csv. If that fails, `settle` says so: a run is not lost by it."""
        assert self._messages is not None
        self._messages.add(_row(message))

    def on_sample(self, sample: Sample) -> None:
        """Add a sample to queues.csv, in the same way."""
        assert self._queues is not None
        time_ps, name, of, lane, value = sample
        self._queues.add((time_ps / NS, name, of, lane if lane >= 0 else "", value))

    def capture_path(self, scenario_name: str) -> Path:
        """Where a capture of that scenario belongs: captures/NAME.pcapng, as far as NAME can be a file's."""
        assert self._partial is not None
        name = re.sub(r"[^\w.+-]", "_", scenario_name).lstrip(".-")[:NAME_LIMIT] or "capture"
        folder = self._partial / CAPTURES
        with self._errors_named():
            folder.mkdir(exist_ok=True)
        return folder / f"{name}.pcapng"

    def settle(self) -> list[str]:
        """Close messages.csv and queues.csv; a line about each that ends early, after a whole row, for want of room."""
        files = (self._messages, self._queues)
        return [line for rows in files if rows is not None for line in (rows.settle(),) if line is not None]

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write result.json and give the folder its name. Raises ScenarioError, MachineError."""
        assert self._partial is not None
        with Interrupts(), self._errors_named():
            self.settle()
            (self._partial / RESERVE).unlink(missing_ok=True)
            (self._partial / RESULT).write_text(to_json(result) + "\n", encoding="utf-8")
            self._replace()

    def _make(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        partial = tempfile.mkdtemp(prefix=f".{self._path.name}.", suffix=".partial", dir=self._path.parent)
        self._partial = Path(partial)
        with suppress(MachineError, OSError):  # then `emu clean` will not know of it
            self._record = register(f"emu-out-{secrets.token_hex(4)}")
            self._record = self._record.write(self._partial)
        self._partial.chmod(0o777 & ~_umask())
        with (self._partial / RESERVE).open("wb") as reserve:
            _reserve(reserve.fileno())
        if self._with_messages:
            self._messages = Rows(self._partial / MESSAGES, COLUMNS)
            self._queues = Rows(self._partial / QUEUES, series.COLUMNS)

    def _undo(self) -> None:
        """Remove what was not finished, whatever stands in the way of a part of it."""
        for rows in (self._messages, self._queues):
            if rows is not None:
                rows.close()
        if self._partial is not None:
            shutil.rmtree(self._partial, ignore_errors=True)
        if self._record is not None:
            with suppress(OSError):
                self._record.remove()

    def _check(self) -> None:
        if not os.path.lexists(self._path):
            return
        if not self._force:
            raise ScenarioError(f"--out {self._path} exists already; --force overwrites it")
        if not self._path.is_dir():
            raise ScenarioError(f"--out {self._path} is no folder, so --force does not overwrite it")
        foreign = sorted(entry.name for entry in self._path.iterdir() if entry.name not in OURS)
        if foreign:
            raise ScenarioError(f"--out {self._path} holds what no run wrote ({foreign[0]}): not overwritten")

    def _replace(self) -> None:
        assert self._partial is not None
        self._check()  # it may have come into being meanwhile
        if self._path.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{self._path.name}.", suffix=".old", dir=self._path.parent))
            self._path.rename(old)  # onto an empty folder
            self._partial.rename(self._path)
            shutil.rmtree(old, ignore_errors=True)
        else:
            self._partial.rename(self._path)
        self._partial = None

    @contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            text, way_out = f"--out {self._path}: {error.strerror}", remedy(error)
            if way_out is not None:
                raise MachineError(f"{text}; {way_out}") from None
            raise ScenarioError(text) from None


def _absolute(path: str | Path) -> Path:
    try:
        return Path(path).resolve()
    except OSError as error:  # the current folder: of others a name is enough
        raise ScenarioError(f"--out {path}: the current folder cannot be had ({error.strerror})") from None
    except RuntimeError:  # pathlib's word for ELOOP
        raise ScenarioError(f"--out {path}: a symbolic link leads back to itself") from None


def _reserve(file: int) -> None:
    """Raises OSError if there is no room; a file system that cannot promise any is taken as it is."""
    try:
        os.posix_fallocate(file, 0, RESERVE_BYTES)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _row(message: Message) -> list[Any]:
    qp = cast(QP, message.flow)
    delivered = message.delivered_ps >= 0
    times = (
        message.posted_ps / NS,
        message.delivered_ps / NS if delivered else "",
        message.completed_ps / NS,
        (message.delivered_ps - message.posted_ps) / NS if delivered else "",
        (message.last_bit_ps - message.first_bit_ps) / NS if delivered else "",
        (message.completed_ps - message.posted_ps) / NS,
    )
    return [
        *(qp.pd.context.name, qp.peer.pd.context.name if qp.peer else "", qp.qp_num, message.number),
        *(message.size_bytes, message.status, message.retransmitted),
        *times,
        *((part_ps / NS for part_ps in unpack(message.parts)) if delivered else [""] * len(PARTS)),
    ]
