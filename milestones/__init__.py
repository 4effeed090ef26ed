"""Measure how far conversations of any agent got toward their goal: milestone graphs, goal completion, progress rate.

The public names stand once, in `__init__.pyi`: type checkers read that list, and at run time each name loads its
module when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
