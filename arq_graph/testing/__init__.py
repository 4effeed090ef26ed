"""Tests of your own agent: what its model would answer, turn by turn, and what a conversation has to reach.

The public names stand once, in `__init__.pyi`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
