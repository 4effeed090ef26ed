"""The strategies under which the customer must agree, and a desk under each."""

from functools import cache

import pytest

from tests.agreement.desk import Desk

# Those that decide and speak as another one does are for the slow tests.
ALIKE = [pytest.param(name, marks=pytest.mark.slow) for name in ("pre-act", "react", "eager")]


@pytest.fixture(params=["tools", "respact", "middleware", *ALIKE])
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# A desk is built once, and each test begins with a new thread.
get_desk = cache(Desk)


@pytest.fixture
def desk(strategy: str) -> Desk:
    desk = get_desk(strategy)
    desk.reset()
    return desk


@pytest.fixture
def tools_desk() -> Desk:
    desk = get_desk("tools")
    desk.reset()
    return desk
