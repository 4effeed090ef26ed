"""How far a conversation got toward its goal: milestone graphs, goal completion and progress rate, for any agent.

The public names stand once, in `__init__.pyi`: type checkers read that list, and at run time each name loads its
module when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
