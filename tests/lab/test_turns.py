"""What looks at the whole machine never runs beside another that does."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process runs all, in turn")
def test_tests_of_the_machine_are_one_group(request: pytest.FixtureRequest) -> None:
    assert request.node.nodeid.endswith("@machine")
