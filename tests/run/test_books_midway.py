"""A run that ends in the middle of things: its books agree at any instant, with pauses, credits, notices on the way."""

from __future__ import annotations

import pytest

from emu.run import Options, run
from tests.capture import lossless

RUNS = {"pfc": lossless.pfc, "credits": lossless.credits}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("first_ns", [500, 2_500, 4_500, 6_500])
@pytest.mark.parametrize("step_ns", [211, pytest.param(83, marks=pytest.mark.long)])
def test_books_agree_at_any_instant(name: str, first_ns: int, step_ns: int) -> None:
    for until_ns in range(first_ns, first_ns + 2_000, step_ns):
        result = run(RUNS[name](f"run.until={until_ns}ns"), Options(wire="memory"))  # or InvariantBroken
        assert result["virtual_ns"] == until_ns
