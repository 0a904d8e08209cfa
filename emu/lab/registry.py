"""What each run may leave on this machine, written down while it lasts, so that `emu clean` knows it of a dead one."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from emu.errors import MachineError
from emu.lab.owner import Owner

SYSTEM_FOLDER = Path("/run")
ATTEMPTS = 10  # at a folder that other runs, as they end, may remove as empty


@dataclass(frozen=True, slots=True)
class Record:
    """A run's entry: whose it is, and which temporary files and folders it may leave behind.

    Its process keeps the entry's file locked while it lives, so that whoever cannot see the process can tell.
    """

    file: Path
    owner: Owner
    paths: tuple[Path, ...] = ()
    locked: bool = False
    opened: int | None = field(default=None, compare=False)  # holds the lock

    @property
    def run_id(self) -> str:
        """The run's id, as in its processes' environment."""
        return self.file.name

    @property
    def is_dead(self) -> bool:
        """Whether its process surely ended: by its number where that counts here, else by its lock."""
        if self.owner.is_of_this_namespace:
            return self.owner.is_dead
        return self.locked and _is_free(self.file)

    def write(self, *paths: Path) -> Record:
        """The entry with these paths too, as it now stands in the registry. Raises MachineError."""
        try:
            return self._write((*self.paths, *(path.absolute() for path in paths)))
        except OSError as error:
            raise _not_written(self.file, error) from None

    def remove(self) -> None:
        """Forget the run, and the registry's folder if it was the last; nothing else it left is touched."""
        with suppress(OSError):
            self.file.unlink(missing_ok=True)
            self.file.parent.rmdir()
        if self.opened is not None:
            with suppress(OSError):  # closed before
                os.close(self.opened)

    def _write(self, paths: tuple[Path, ...]) -> Record:
        opened = self.opened
        if opened is None:
            opened = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            locked = _lock(opened, fcntl.LOCK_EX)
            entry = {"owner": str(self.owner), "paths": [str(path) for path in paths], "locked": locked}
            text = json.dumps(entry).encode()
            os.pwrite(opened, text, 0)
            os.ftruncate(opened, len(text))
        except OSError:
            if self.opened is None:
                os.close(opened)
            raise
        return Record(self.file, self.owner, paths, locked, opened)


def register(run_id: str) -> Record:
    """Enter a run of this process. Raises MachineError if the registry cannot be written."""
    try:
        owner = Owner.this_process()
    except OSError as error:
        raise MachineError(f"/proc does not show this process ({error.strerror}): mount it") from None
    for attempt in range(ATTEMPTS):
        folder = _own_folder()
        try:
            return Record(folder / run_id, owner)._write(())
        except FileNotFoundError as error:
            if attempt == ATTEMPTS - 1:
                raise _not_written(folder, error) from None
        except OSError as error:
            raise _not_written(folder, error) from None
    raise AssertionError


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
                locked = entry.get("locked") is True
            except (OSError, ValueError, KeyError, TypeError, AttributeError):
                continue  # gone meanwhile, or not ours to understand
            if owner is not None:
                yield Record(file, owner, paths, locked)


def _lock(opened: int, how: int) -> bool:
    """Lock a file until it is closed; whether that can be."""
    try:
        fcntl.flock(opened, how)
    except OSError:
        return False
    return True


def _is_free(file: Path) -> bool:
    """Whether nobody holds the lock any more."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return _lock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(opened)


def _not_written(path: Path, error: OSError) -> MachineError:
    return MachineError(f"{error.filename or path} cannot be written ({error.strerror}): make room or set TMPDIR")


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
    try:
        last.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise _not_written(last, error) from None
    if last.exists() and not _is_ours(last):
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
    try:
        lines = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except OSError:  # no /proc
        lines = []
    for line in lines:
        inside, outside, count = map(int, line.split())
        if inside <= os.geteuid() < inside + count:
            return outside + os.geteuid() - inside
    return os.geteuid()
