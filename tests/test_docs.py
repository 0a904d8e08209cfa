"""The documentation keeps up with the code: keys, defaults, layout, links; its commands print what it shows."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emu.cli import COMMANDS, main
from emu.commands import exit_codes
from emu.scenario.profile import load_profile, profile_names
from emu.scenario.schema import json_schema
from tests.console import Block, agrees, console_blocks, prepare, run
from tests.test_floors import FLOORS
from tests.tree import PACKAGES, ROOT, python_files

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
LINES = 200
WORDS = re.compile(r"`([^`\n]+)`")


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def words(text: str) -> set[str]:
    """What stands in backticks, also piece by piece where it is dotted or a list."""
    found = set(WORDS.findall(text))
    return found | {piece for word in found for piece in re.split(r"[\s,.{}:\[\]]+", word)}


def schema_keys(schema: dict[str, Any]) -> Iterator[str]:
    for definition in [schema, *schema["$defs"].values()]:
        yield from definition["properties"]


def keys(value: Any, skip: frozenset[str]) -> Iterator[str]:
    """Every key of a result, at any depth; what is under the keys to skip has keys of its own making."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            if key not in skip:
                yield from keys(part, skip)
    elif isinstance(value, list):
        for part in value:
            yield from keys(part, skip)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Result folders of real runs: `run`, and `latency`."""
    folder = tmp_path_factory.mktemp("results")
    for command in ("run hello", "latency --sizes 64B"):
        name, *rest = command.split()
        assert main([name, *rest, "--wire", "memory", "--quiet", "--out", str(folder / name)]) == 0
    return folder


@pytest.mark.parametrize(
    ("name", "skip"), [("run", {"scenario", "by_reason", "statuses"}), ("latency", {"inputs", "topology"})]
)
def test_every_key_of_a_result_is_documented(results: Path, name: str, skip: set[str]) -> None:
    result = json.loads((results / name / "result.json").read_text(encoding="utf-8"))
    found = set(keys(result, frozenset(skip)))
    assert len(found) > 10
    assert sorted(found - words(page("results.md") + page("commands.md"))) == []


def test_every_column_of_a_result_is_documented(results: Path) -> None:
    with (results / "run" / "messages.csv").open(encoding="utf-8") as file:
        columns = next(csv.reader(file))
    assert sorted(set(columns) - words(page("results.md"))) == []


def test_every_exit_code_is_documented() -> None:
    codes = re.findall(r"^  (\d+)", exit_codes.HELP, re.MULTILINE)
    assert len(codes) > 5
    assert re.findall(r"^\| (\d+) \|", page("commands.md"), re.MULTILINE) == codes


def test_every_key_of_a_scenario_is_documented() -> None:
    found = set(schema_keys(json_schema()))
    assert {"hop_latency", "hosts_per_leaf", "until", "retry_cnt", "num_rc_per_pe"} <= found
    assert sorted(found - words(page("scenarios.md") + page("host-path.md"))) == []


def test_every_value_of_the_profiles_is_documented_as_it_is() -> None:
    profiles = {name: load_profile(name).provenance() for name in profile_names()}
    rows = dict[str, list[str]]()
    for text in (page("scenarios.md"), page("host-path.md")):
        tables = re.findall(r"^\| `([\w.]+\.)` \| what \| `native` \| `roce` \| `ndr` \|\n(.*?)\n\n", text, re.M | re.S)
        assert len(tables) > 1
        for section, table in tables:
            for line in table.splitlines()[1:]:
                key, _, *cells = (cell.strip() for cell in line.strip("|").split(" | "))
                rows[section + key.strip("` ")] = cells
    for column, name in enumerate(("native", "roce", "ndr")):
        expected = {path: f"{origin.value} {origin.kind}" for path, origin in profiles[name].items()}
        assert {path: cells[column] for path, cells in rows.items()} == expected, name
    assert {path: each.value for path, each in profiles["roce-63"].items() if each != profiles["roce"][path]} == {
        "fabric.hop_latency": "795ns"
    }


def test_the_layout_is_documented_as_it_is() -> None:
    text = page("architecture.md")
    for path in python_files(*PACKAGES):
        folder = str(path.parent.relative_to(ROOT))
        start = "`emu/`: " if folder == "emu" else f"| `{folder}` |"
        if path.name != "__init__.py":
            row = text[text.index(f"\n{start}") :].partition("\n\n" if folder == "emu" else "|\n")[0]
            assert path.stem in re.split(r"\W+", row), path.relative_to(ROOT)


def test_the_floors_are_documented_as_they_are() -> None:
    shown = {
        int(number): names.split()
        for number, names in re.findall(r"^ +(\d+)  +((?:emu|traffic|topologies)\S*.*)$", page("architecture.md"), re.M)
    }
    assert shown == {floor: names.split() for floor, names in FLOORS.items()}


def test_the_commands_are_documented() -> None:
    assert [name for name in COMMANDS if f"| `emu {name}" not in page("commands.md")] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    options = set(re.findall(r"(?<![\w-])--[a-z-]+", capsys.readouterr().out)) - {"--help"}
    assert sorted(options - set(re.findall(r"--[a-z-]+", page("commands.md")))) == []


@pytest.mark.parametrize("path", [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_links_lead_somewhere_and_pages_stay_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in target]
    assert [target for target in targets if not (path.parent / target).exists()] == []
    named = re.findall(r"`((?:emu|tests|topologies|traffic|scripts|docs)/[\w./-]+)`", text)
    assert [name for name in named if not (ROOT / name).exists()] == []
    assert text.count("\n") <= LINES


def shown() -> Iterator[Any]:
    """Each page's blocks of commands; one whose commands take their time is a long test."""
    for path, block in console_blocks(*PAGES):
        marks = [pytest.mark.long] if "--published" in block.text else []
        yield pytest.param(path, block, marks=marks, id=f"{path.name}-line-{block.line}")


@pytest.mark.parametrize(("path", "block"), list(shown()))
def test_the_documentation_shows_what_comes_out(path: Path, block: Block, tmp_path: Path) -> None:
    prepare(tmp_path, path)
    for command, printed in run(block, tmp_path, "memory"):
        assert agrees(command.shown, printed), f"{path.name}:{block.line}: $ {command.text}\n{printed}"
