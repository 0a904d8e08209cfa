"""The source tree as the tests of its shape see it: files by module name, and what each imports."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("emu", "topologies", "traffic")


def python_files(*folders: str) -> list[Path]:
    """Every Python file in these folders of the checkout, stubs apart."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def module_name(path: Path) -> str:
    """`emu/wire/__init__.py` is `emu.wire`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def sources() -> dict[str, str]:
    """The text of every module of the three packages, by name."""
    return {module_name(path): path.read_text(encoding="utf-8") for path in python_files(*PACKAGES)}


def imports(module: str, source: str, known: Collection[str], is_package: bool = False) -> Iterator[tuple[int, str]]:
    """Line and name of everything `module` imports anywhere: a known module's full name, else the package named."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
                base = f"{above}.{base}".strip(".")
            for alias in node.names:
                whole = f"{base}.{alias.name}"
                yield node.lineno, whole if whole in known else base


def import_graph(texts: Mapping[str, str]) -> dict[str, dict[str, int]]:
    """For each module: what it imports, and on which line first."""
    graph: dict[str, dict[str, int]] = {}
    for module, source in texts.items():
        is_package = any(other.startswith(f"{module}.") for other in texts)
        graph[module] = {}
        for line, name in imports(module, source, texts.keys(), is_package):
            graph[module].setdefault(name, line)
    return graph
