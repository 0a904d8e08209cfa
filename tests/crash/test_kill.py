"""`kill -9`, then `emu clean`: everything is as before the run, and what is somebody else's stays."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.tree import ROOT

pytestmark = pytest.mark.lab
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"
ALONE = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
AS_USER = [*ALONE[:1], "--user", "--map-root-user", *ALONE[1:]]  # the namespaces of one without root


def killed(alone: list[str], when: str) -> dict[str, Any]:
    """What tests/crash/killed.py saw; skips where its namespaces cannot be made."""
    probe = "mount -t tmpfs none /tmp && mount -t tmpfs none /run && ip netns add probe"
    environment = {**os.environ, "PATH": PATH, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("XDG_RUNTIME_DIR", None)
    if shutil.which(alone[0], path=PATH) is None or shutil.which("ip", path=PATH) is None:
        pytest.skip("unshare (util-linux) or ip (iproute2) is missing")
    if subprocess.run([*alone, "sh", "-c", probe], env=environment, capture_output=True, check=False).returncode:
        pytest.skip("namespaces of these kinds cannot be made here")
    done = subprocess.run(
        [*alone, sys.executable, "-m", "tests.crash.killed", when],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.mark.parametrize("when", ["building", "running", "stopped"])
@pytest.mark.parametrize("alone", [ALONE, AS_USER], ids=["root", "user"])
def test_all_is_as_before(alone: list[str], when: str) -> None:
    seen = killed(alone, when)
    before, left, after = seen["before"], seen["left"], seen["after"]
    assert seen["holders"]
    assert left["files"] != before["files"]  # the run's entry
    assert any(name.endswith(".partial") for name in left["work"])
    code, printed, said = seen["cleaned"]
    assert (code, said) == (0, "")
    assert "of run emu-out-" in printed
    assert (f"removed process {seen['holders'][0]} of run emu-" in printed) == (when == "stopped")
    assert seen["again"] == [0, "nothing to remove\n", ""]
    for key in ("processes", "namespaces", "named", "interfaces", "mounts", "files"):
        assert after[key] == before[key], key
    assert after["named"] == ["h1"]
    assert "s1-eth1@s1-eth2" in after["interfaces"]
    assert "sleep" in after["processes"][str(seen["somebody"])]
    assert [name for name in after["work"] if name != "cap.pcapng"] == ["long.yaml"]


@pytest.mark.parametrize("alone", [ALONE], ids=["root"])
def test_the_capture_is_readable_up_to_the_last_whole_record(alone: list[str]) -> None:
    code, printed, said = killed(alone, "running")["decoded"]
    result = json.loads(printed)
    assert code == 0
    assert result["frames"] == result["icrc"]["ok"] > 0
    assert result["icrc"]["bad"] == result["icrc"]["unchecked"] == 0
    assert said == "" or "ends inside a record" in said
