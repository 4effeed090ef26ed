"""Property tests try the same examples in every run, and no machine is too slow for them.

`pytest --hypothesis-profile=fresh` draws others.
"""

from hypothesis import HealthCheck, settings

_ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("repeatable", _ANY_SPEED, derandomize=True)
settings.register_profile("fresh", _ANY_SPEED)
settings.load_profile("repeatable")
