"""Size budgets and headers: a file is one noun, a function one verb."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tree import PACKAGES, ROOT, python_files

FILE_LINES = 300
FUNCTION_LINES = 40
FILES = python_files(*PACKAGES, "tests")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def too_long(source: str) -> Iterator[str]:
    """What is over its budget: the file, or a function in it, signature and docstring included."""
    lines = source.count("\n")
    if lines > FILE_LINES:
        yield f"{lines} lines; at most {FILE_LINES}"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES:
                yield f"line {node.lineno}: {node.name} has {length} lines; at most {FUNCTION_LINES}"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_size_budget(path: Path) -> None:
    assert list(too_long(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "__init__.py"], ids=name_of)
def test_every_file_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_the_budget_can_be_overrun() -> None:
    just_right = "def f():\n" + "    g()\n" * (FUNCTION_LINES - 1)
    assert list(too_long(just_right)) == []
    assert list(too_long(just_right + "    g()\n")) == ["line 1: f has 41 lines; at most 40"]
    assert list(too_long("x = 1\n" * FILE_LINES)) == []
    assert list(too_long("x = 1\n" * (FILE_LINES + 1))) == ["301 lines; at most 300"]
