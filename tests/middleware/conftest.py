"""Every test of the middleware begins without calls."""

import pytest

from tests.middleware.shop import RAN


@pytest.fixture(autouse=True)
def clear_calls() -> None:
    RAN.clear()
