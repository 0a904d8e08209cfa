"""What every test can use: the shared captures, and a way out where there are no namespaces."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tree import ROOT

# No deadline: a slow machine is no failure. In CI the examples are the same in every run.
settings.register_profile("emu", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.load_profile("emu")
IN_TURN = ("crash", "lab")


@functools.cache
def without_namespaces() -> str | None:
    """Why no network namespace can be made here, or None if one can."""
    mnexec = shutil.which("mnexec")
    if mnexec is None:
        return "mnexec is not installed (Debian package mininet)"
    try:
        probe = subprocess.run([mnexec, "-n", "true"], capture_output=True, text=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return "mnexec -n hangs"
    return None if probe.returncode == 0 else f"mnexec -n: {probe.stderr.strip() or probe.returncode}"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips `lab` tests where no namespace can be made; never in CI, which must be able to.

    What looks at the whole machine, its namespaces and processes, runs one after the other, beside all else.
    """
    for item in items:
        if item.get_closest_marker("lab") or any(item.path.is_relative_to(ROOT / "tests" / each) for each in IN_TURN):
            item.add_marker(pytest.mark.xdist_group("machine"))
    wanting = [item for item in items if item.get_closest_marker("lab")]
    if wanting and "CI" not in os.environ and (reason := without_namespaces()):
        for item in wanting:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of shared captures and vectors, beside the checkout; skips where there is none."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder
