"""The strategies under which the customer must agree."""

from __future__ import annotations

import pytest

# Those that decide and speak as another one does are for the slow tests.
ALIKE = [pytest.param(name, marks=pytest.mark.slow) for name in ("pre-act", "react", "eager")]


@pytest.fixture(params=["tools", "respact", "middleware", *ALIKE])
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)
