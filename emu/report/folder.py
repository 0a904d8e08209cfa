"""The result folder: written under a temporary name, renamed when it is whole, never over another without leave."""

from __future__ import annotations

import csv
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
from typing import Any, Self, TextIO, cast

from emu.errors import MachineError, ScenarioError
from emu.frame import Message
from emu.lab.registry import Record, register
from emu.parts import PARTS, unpack
from emu.report.output import to_json
from emu.units import NS
from emu.verbs import QP

RESULT, MESSAGES, CAPTURES = "result.json", "messages.csv", "captures"
NAME_LIMIT = 60  # characters of a capture's name: file names have at most 255 bytes
# What a result folder may hold; anything else in it is somebody's own, and --force does not touch it.
OURS = {RESULT, MESSAGES, "queues.csv", "trace.json", CAPTURES, "report.html"}
TIMES = ("posted_ns", "delivered_ns", "completed_ns", "latency_ns", "fabric_latency_ns", "completion_latency_ns")
COLUMNS = (
    *("src", "dst", "qp", "number", "size_bytes", "status", "retransmitted"),
    *TIMES,
    *(f"{part}_ns" for part in PARTS),
)


class ResultFolder:
    """Use with `with`: what was not finished leaves nothing behind. Times in messages.csv are nanoseconds."""

    def __init__(self, path: str | Path, *, force: bool, with_messages: bool = True) -> None:
        self._path = Path(path).resolve()
        self._force = force
        self._with_messages = with_messages
        self._partial: Path | None = None
        self._record: Record | None = None  # for `emu clean`, should we be killed
        self._messages: TextIO | None = None
        self._writer: Any = None

    def __enter__(self) -> Self:
        """Make the temporary folder. Raises ScenarioError if the folder exists, MachineError for a full disk."""
        self._check()
        with self._errors_named():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            partial = tempfile.mkdtemp(prefix=f".{self._path.name}.", suffix=".partial", dir=self._path.parent)
            self._partial = Path(partial)
            with suppress(MachineError):
                self._record = register(f"emu-out-{secrets.token_hex(4)}").write(self._partial)
            self._partial.chmod(0o777 & ~_umask())
            if self._with_messages:
                self._messages = (self._partial / MESSAGES).open("w", encoding="utf-8", newline="")
                self._writer = csv.writer(self._messages, lineterminator="\n")
                self._writer.writerow(COLUMNS)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._messages is not None:
            self._messages.close()
        if self._partial is not None:
            shutil.rmtree(self._partial, ignore_errors=True)
        if self._record is not None:
            self._record.remove()

    def on_message(self, message: Message) -> None:
        """Add a finished message to messages.csv."""
        with self._errors_named():
            self._writer.writerow(_row(message))

    def capture_path(self, scenario_name: str) -> Path:
        """Where a capture of that scenario belongs: captures/NAME.pcapng, as far as NAME can be a file's."""
        assert self._partial is not None
        name = re.sub(r"[^\w.+-]", "_", scenario_name).lstrip(".-")[:NAME_LIMIT] or "capture"
        folder = self._partial / CAPTURES
        with self._errors_named():
            folder.mkdir(exist_ok=True)
        return folder / f"{name}.pcapng"

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write result.json and give the folder its name."""
        assert self._partial is not None
        with self._errors_named():
            if self._messages is not None:
                self._messages.close()
            (self._partial / RESULT).write_text(to_json(result) + "\n", encoding="utf-8")
            self._replace()

    def _check(self) -> None:
        if not os.path.lexists(self._path):
            return
        if not self._force:
            raise ScenarioError(f"--out {self._path} exists already; --force overwrites it")
        if not self._path.is_dir():
            raise ScenarioError(f"--out {self._path} is no folder, so --force does not overwrite it")
        with self._errors_named():
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
            text = f"--out {self._path}: {error.strerror}"
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
                raise MachineError(f"{text}; free some space, or write elsewhere") from None
            raise ScenarioError(text) from None


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
