"""Each test that takes `runs` runs once sync and once async."""

from tests.as_objects import records_as_objects
from tests.running import runs

__all__ = ["records_as_objects", "runs"]
