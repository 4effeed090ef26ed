"""What all tests share: `runs`, for what is run once sync and once async, and how property tests are run.

They try the same examples in every run, and no machine is too slow for them.

`pytest --hypothesis-profile=fresh` draws others.
"""

import gc
import os
from pathlib import Path

from hypothesis import HealthCheck, settings

from tests.running import runs

__all__ = ["runs"]
pytest_plugins = ["pytester"]

gc.disable()  # while all is imported: it would go through ever more that stays

# No test speaks TLS, and to load all authorities for every client takes longer than most tests.
os.environ.pop("SSL_CERT_FILE", None)
os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)

_ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("repeatable", _ANY_SPEED, derandomize=True)
settings.register_profile("fresh", _ANY_SPEED)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what is loaded by now: it stays, and there is much of it."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
