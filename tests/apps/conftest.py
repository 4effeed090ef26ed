"""Each test that takes `runs` runs once sync and once async."""

from tests.running import runs

__all__ = ["runs"]
