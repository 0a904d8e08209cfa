"""`emu clean` ends and removes what dead runs left, and touches nobody else's."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emu.errors import MachineError
from emu.lab import registry
from emu.lab.clean import clean
from emu.lab.owner import Owner
from tests.lab.fabrics import REPOSITORY


def dead() -> Owner:
    """The owner that a process was that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        this = Owner.this_process()
        stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        owner = Owner(process.pid, int(stat[19]), this.pid_namespace)
        assert not owner.is_dead
    assert owner.is_dead
    return owner


@contextmanager
def sleeper(owner: Owner | str, run: str = "emu-test") -> Iterator[subprocess.Popen[bytes]]:
    """A process that belongs to a run."""
    environment = {"EMU_RUN": run, "EMU_OWNER": str(owner)}
    with subprocess.Popen(["/bin/sleep", "60"], env=environment) as process:
        try:
            deadline = time.monotonic() + 5
            while b"EMU_RUN" not in Path(f"/proc/{process.pid}/environ").read_bytes():
                assert time.monotonic() < deadline
            yield process
        finally:
            process.kill()


@pytest.fixture(autouse=True)
def own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A registry that no run of this machine uses."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(registry, "SYSTEM_FOLDER", tmp_path / "none")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path / "emu"


def test_owners_are_told_apart() -> None:
    this = Owner.this_process()
    assert Owner.parse(str(this)) == this
    assert not this.is_dead
    assert Owner(this.pid, this.start_ticks + 1, this.pid_namespace).is_dead  # the number was used again
    assert not Owner(this.pid, this.start_ticks + 1, this.pid_namespace + 1).is_dead  # cannot be known from here
    for text in ("", "1:2", "1:2:x", "1:2:3:4", "-1:2:3"):
        assert Owner.parse(text) is None


def test_only_processes_of_dead_runs_end() -> None:
    owner = dead()
    elsewhere = Owner(owner.pid, owner.start_ticks, owner.pid_namespace + 1)
    with (
        sleeper(owner) as left,
        sleeper(Owner.this_process()) as ours,
        sleeper(elsewhere) as other,
        sleeper("nonsense") as unknown,
        sleeper(owner, run="") as unnamed,
    ):
        assert cleaned("emu-test") == [f"process {left.pid} of run emu-test"]
        assert left.wait(5) == -9
        for process in (ours, other, unknown, unnamed):
            assert process.poll() is None
    assert cleaned("emu-test") == []


def cleaned(run_id: str) -> list[str]:
    """What `clean` removed of a run; there may be others of this machine's."""
    return [line for line in clean() if line.endswith(f" {run_id}")]


def test_a_zombie_owner_is_dead() -> None:
    process = subprocess.Popen(["/bin/sleep", "60"])
    this = Owner.this_process()
    stat = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    owner = Owner(process.pid, int(stat[19]), this.pid_namespace)
    assert not owner.is_dead
    process.kill()
    deadline = time.monotonic() + 5
    while not owner.is_dead and time.monotonic() < deadline:
        time.sleep(0.01)
    assert owner.is_dead
    process.wait()


def test_only_results_of_dead_runs_are_removed(tmp_path: Path, own_registry: Path) -> None:
    folders = {name: tmp_path / name for name in ("dead", "alive", "kept")}
    for folder in folders.values():
        folder.mkdir()
        (folder / "file").write_text("x")
    (tmp_path / "link").symlink_to(folders["kept"])
    registry.register("emu-alive").write(folders["alive"])
    registry.Record(own_registry / "emu-dead", dead()).write(folders["dead"]).write(tmp_path / "link")
    registry.Record(own_registry / "emu-none", dead()).write(tmp_path / "never made")
    (own_registry / "emu-broken").write_text("{")
    assert clean() == [f"{folders['dead']} of run emu-dead", f"{tmp_path / 'link'} of run emu-dead"]
    assert [folder.exists() for folder in folders.values()] == [False, True, True]
    assert not (tmp_path / "link").is_symlink()
    assert (folders["kept"] / "file").exists()
    assert sorted(file.name for file in own_registry.iterdir()) == ["emu-alive", "emu-broken"]


def test_a_run_that_ends_well_takes_its_entry_along(own_registry: Path) -> None:
    record = registry.register("emu-well")
    assert [each.run_id for each in registry.records()] == ["emu-well"]
    record.remove()
    record.remove()
    assert list(registry.records()) == []
    assert not own_registry.exists()


def test_a_run_that_ends_leaves_the_entries_of_others(own_registry: Path) -> None:
    first, second = registry.register("emu-first"), registry.register("emu-second")
    first.remove()
    assert [each.run_id for each in registry.records()] == ["emu-second"]
    second.remove()
    assert not own_registry.exists()


def test_a_registry_that_cannot_be_written_is_the_machines_fault(
    own_registry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = registry.register("emu-full")

    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", refuse)
    with pytest.raises(MachineError, match="No space left.*TMPDIR"):
        record.write(own_registry / "x")
    with pytest.raises(MachineError, match="No space left.*TMPDIR"):
        registry.register("emu-full-too")


IN_ANOTHER_PID_NAMESPACE = """
import sys
from pathlib import Path
from emu.lab.registry import register
record = register("emu-inside").write(Path(sys.argv[1]))
print("entered", flush=True)
sys.stdin.readline()
"""


@pytest.mark.lab
def test_the_record_of_a_pid_namespace_that_has_ended_is_removed(tmp_path: Path, own_registry: Path) -> None:
    """Its number says nothing here, whether it lives or not; its lock does."""
    (tmp_path / "left").mkdir()
    command = ["unshare", "-p", "-f", "--mount-proc", "--kill-child", sys.executable, "-c", IN_ANOTHER_PID_NAMESPACE]
    with subprocess.Popen(
        [*command, str(tmp_path / "left")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != "entered\n":
                pytest.skip("PID namespaces cannot be made here")
            (record,) = registry.records()
            assert not record.owner.is_of_this_namespace
            assert clean() == []
            assert (tmp_path / "left").exists()
        finally:
            process.kill()
    deadline = time.monotonic() + 5
    while not record.is_dead and time.monotonic() < deadline:
        time.sleep(0.01)
    assert clean() == [f"{tmp_path / 'left'} of run emu-inside"]
    assert list(registry.records()) == []
    assert not own_registry.exists()


def test_a_record_that_was_never_locked_may_be_of_a_living_run(own_registry: Path) -> None:
    own = Owner.this_process()
    elsewhere = Owner(own.pid, own.start_ticks, own.pid_namespace + 1)
    own_registry.mkdir()
    (own_registry / "emu-unlocked").write_text(f'{{"owner": "{elsewhere}", "paths": []}}')
    assert clean() == []
    assert [each.run_id for each in registry.records()] == ["emu-unlocked"]


def test_a_registry_that_others_can_write_is_not_believed(tmp_path: Path, own_registry: Path) -> None:
    (tmp_path / "precious").mkdir()
    own_registry.mkdir()
    own_registry.chmod(0o777)
    entry = registry.Record(own_registry / "emu-planted", dead())
    entry.write(tmp_path / "precious")
    assert clean() == []
    assert (tmp_path / "precious").exists()
    assert registry.register("emu-mine").file.parent == tmp_path / f"emu-{registry._user()}"
    (tmp_path / f"emu-{registry._user()}").chmod(0o777)
    with pytest.raises(MachineError, match="TMPDIR"):
        registry.register("emu-nowhere")
