"""What is shipped is whole, and the install step says what it lacks: one list, one line, exit code 3."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tree import PACKAGES, ROOT, python_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LIST = Path("scripts/debian-packages.txt")
NEEDED_BY_INSTALL = ("bash", "cat", "dirname", "env", "rm")
NOBODY = 65534


def needs() -> list[tuple[str, str]]:
    """The system packages, each with the command that tells whether it is there."""
    lines = (ROOT / LIST).read_text(encoding="utf-8").splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line and line[0] != "#"]


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A bare checkout that anyone can read, whose list of packages is empty."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scripts").mkdir()
        shutil.copy(ROOT / "scripts/install.sh", folder / "scripts")
        shutil.copy(ROOT / "pyproject.toml", folder)
        (folder / LIST).touch()
        folder.chmod(0o755)
        yield folder


def tools(folder: Path, *more: str) -> str:
    """A PATH that holds a shell's barest tools and `more`, but neither apt-get nor sudo nor Python."""
    path = folder / "bin"
    path.mkdir()
    for tool in (*NEEDED_BY_INSTALL, *more):
        (path / tool).symlink_to(shutil.which(tool) or "/bin/true")
    return str(path)


def install(
    checkout: Path, *arguments: str, user: int | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the install step there, as `user` where this process may become another."""
    if user is not None and os.geteuid() == 0:
        try:
            subprocess.run(["true"], user=user, check=True)
        except (PermissionError, OSError):
            pytest.skip("cannot become another user here")
    else:
        user = None
    return subprocess.run(
        ["bash", "scripts/install.sh", *arguments],
        cwd=checkout,
        env={"PATH": os.environ["PATH"]} | environment,
        user=user,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusal(result: subprocess.CompletedProcess[str]) -> str:
    """The one line in which the step says why it stopped."""
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize(("package", "check"), needs(), ids=[package for package, _ in needs()])
def test_the_list_holds_what_is_here(package: str, check: str) -> None:
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    environment = {"PATH": path, "PYTHON": sys.executable}
    if check.endswith("# tests") and not shutil.which(package):
        pytest.skip(f"{package} is not installed: only tests need it")
    assert subprocess.run(["bash", "-c", check], env=environment, capture_output=True, check=False).returncode == 0


def test_there_is_one_list() -> None:
    for place in ("Makefile", "Vagrantfile", ".ci/run"):
        text = (ROOT / place).read_text(encoding="utf-8")
        assert not re.search(r"apt-get|mininet|python3-venv", text), place
    assert "scripts/install.sh" in (ROOT / "Vagrantfile").read_text(encoding="utf-8")


def test_elsewhere_than_on_debian_it_says_what_to_install(checkout: Path) -> None:
    (checkout / LIST).write_text("# a comment\nmissing  false\nthere  true\n")
    assert refusal(install(checkout, PATH=tools(checkout))).endswith(": missing\n")


def test_what_only_tests_need_stops_nobody(checkout: Path) -> None:
    (checkout / LIST).write_text("for-tests  false  # tests\nmissing  false\n")
    path = tools(checkout)
    for arguments in ((), ("tests",)):
        assert refusal(install(checkout, *arguments, PATH=path)).endswith(": missing\n")
    (checkout / LIST).write_text("for-tests  false  # tests\n")
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/python").symlink_to(sys.executable)
    (checkout / ".venv/installed-from").write_text(f"{checkout}\n")
    assert (install(checkout, PATH=path).returncode, install(checkout, PATH=path).stdout) == (0, "")
    done = install(checkout, "tests", PATH=path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("install: not to be had here, so some tests are skipped: for-tests\n")


def test_without_root_or_sudo_it_says_what_to_run(checkout: Path) -> None:
    (checkout / LIST).write_text("missing  false\n")
    result = install(checkout, user=NOBODY, PATH=tools(checkout, "apt-get"))
    assert refusal(result).endswith("as root, run: apt-get install --no-install-recommends missing\n")


def test_a_checkout_of_someone_else_is_left_alone(checkout: Path) -> None:
    if os.geteuid() != 0:
        checkout.chmod(0o555)
    assert "cannot write" in refusal(install(checkout, user=NOBODY))


def test_an_old_python_is_refused(checkout: Path) -> None:
    old = checkout / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert "no Python 3.11 or later" in refusal(install(checkout, PYTHON=str(old)))


def test_installed_already_it_does_nothing() -> None:
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("not run from the checkout's .venv")
    result = install(ROOT)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@pytest.mark.parametrize("target", ["install", "demo", "test", "test-all", "lint", "bench"])
def test_make_knows(target: str) -> None:
    result = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert "scripts/install.sh" in result.stdout


@pytest.mark.parametrize("script", ["scripts/install.sh", "scripts/with-caches", ".ci/run"])
def test_scripts_can_be_run(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)
    assert subprocess.run(["bash", "-n", script], cwd=ROOT, check=False).returncode == 0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built from a copy of the tree: the checkout may be read-only."""
    copy, built = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("built")
    for name in (*PACKAGES, "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    build = f"from setuptools import build_meta; build_meta.build_wheel({str(built)!r})"
    result = subprocess.run([sys.executable, "-c", build], cwd=copy, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    (path,) = built.glob("fabric_emu-*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_every_module_and_data_file(wheel: zipfile.ZipFile) -> None:
    kinds = ("emu/profiles/*.yaml", "emu/wireshark/*.lua", "traffic/scenarios/*.yaml")
    data = [path for kind in kinds for path in ROOT.glob(kind)]
    wanted = {str(path.relative_to(ROOT)) for path in [*python_files(*PACKAGES), *data]}
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == wanted


def test_the_wheel_brings_the_command(wheel: zipfile.ZipFile) -> None:
    (entry_points,) = (name for name in wheel.namelist() if name.endswith("entry_points.txt"))
    assert wheel.read(entry_points).decode() == "[console_scripts]\nemu = emu.start:main\n"


def test_mininet_imports_without_the_old_distutils() -> None:
    """Python 3.12 dropped distutils, which Mininet imports: what stands in for it comes with setuptools."""
    lost = "import distutils, sys; sys.exit('setuptools' not in distutils.__file__)"
    assert subprocess.run([sys.executable, "-W", "error", "-c", lost], check=False).returncode == 0
    everything = "import mininet.topo, mininet.net, mininet.cli"
    assert subprocess.run([sys.executable, "-W", "error", "-c", everything], check=False).returncode == 0


@pytest.mark.long
def test_the_stubs_of_mininet_agree_with_it(tmp_path: Path) -> None:
    modules = [f"mininet.{path.stem}" for path in (ROOT / "tests/typings/mininet").glob("[a-z]*.pyi")]
    result = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--ignore-missing-stub", "--concise", *modules],
        env=os.environ | {"MYPYPATH": str(ROOT / "tests/typings")},
        cwd=tmp_path,  # mypy.stubtest keeps its cache where it runs
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_what_is_promised_about_python_is_said_once() -> None:
    versions = [line.rpartition(" ")[2] for line in PROJECT["project"]["classifiers"] if "Python :: 3." in line]
    assert PROJECT["project"]["requires-python"] == f">={versions[0]}"
