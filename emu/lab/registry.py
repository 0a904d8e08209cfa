"""What each run may leave on this machine, written down while it lasts, so that `emu clean` knows it of a dead one."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from emu.errors import MachineError
from emu.lab.owner import Owner

SYSTEM_FOLDER = Path("/run")


@dataclass(frozen=True, slots=True)
class Record:
    """A run's entry: whose it is, and which temporary files and folders it may leave behind."""

    file: Path
    owner: Owner
    paths: tuple[Path, ...] = ()

    @property
    def run_id(self) -> str:
        """The run's id, as in its processes' environment."""
        return self.file.name

    def write(self, *paths: Path) -> Record:
        """The entry with these paths too, as it now stands in the registry."""
        entry = Record(self.file, self.owner, (*self.paths, *(path.absolute() for path in paths)))
        text = json.dumps({"owner": str(entry.owner), "paths": [str(path) for path in entry.paths]})
        temporary = entry.file.with_name(f".{entry.file.name}")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(entry.file)
        return entry

    def remove(self) -> None:
        """Forget the run; nothing it left is touched."""
        self.file.unlink(missing_ok=True)


def register(run_id: str) -> Record:
    """Enter a run of this process. Raises MachineError if the registry cannot be written."""
    try:
        return Record(_own_folder() / run_id, Owner.this_process()).write()
    except OSError as error:
        raise MachineError(f"{error.filename} cannot be written ({error.strerror}): make room or set TMPDIR") from None


def records() -> Iterator[Record]:
    """Every entry of this user's runs, dead or alive."""
    for folder in _folders():
        if not _is_ours(folder):
            continue
        for file in sorted(folder.glob("emu-*")):
            try:
                entry = json.loads(file.read_text(encoding="utf-8"))
                owner = Owner.parse(entry["owner"])
                paths = tuple(Path(path) for path in entry["paths"])
            except (OSError, ValueError, KeyError, TypeError):
                continue  # gone meanwhile, or not ours to understand
            if owner is not None:
                yield Record(file, owner, paths)


def _folders() -> list[Path]:
    """Where a registry may be, best first."""
    own = os.environ.get("XDG_RUNTIME_DIR")
    candidates = [Path(own) / "emu"] if own else []
    return [*candidates, SYSTEM_FOLDER / "emu", Path(tempfile.gettempdir()) / f"emu-{_user()}"]


def _own_folder() -> Path:
    *others, last = _folders()
    for folder in others:
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError:
            continue
        if _is_ours(folder) and os.access(folder, os.W_OK):
            return folder
    last.mkdir(mode=0o700, exist_ok=True)
    if not _is_ours(last):
        raise MachineError(f"{last} belongs to someone else: remove it or set TMPDIR to a folder of your own")
    return last


def _is_ours(folder: Path) -> bool:
    """A folder, no link to one, that no one but us can write: others could make us delete what we should not."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _user() -> int:
    """The user outside any user namespace: inside ours everyone is root."""
    for line in Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines():
        inside, outside, count = map(int, line.split())
        if inside <= os.geteuid() < inside + count:
            return outside + os.geteuid() - inside
    return os.geteuid()
