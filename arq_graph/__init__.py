"""LangGraph agents that follow their rules, and milestones that measure how far a conversation got.

The public names stand once, in `__init__.pyi`: type checkers read that list, and at run time each name loads its
module when it is first used.
"""

from pathlib import Path

import lazy_loader

_here = Path(__file__).resolve().parent
if not (_here / "nodes").is_dir() and (_here.parent / "nodes").is_dir():
    # In a checkout `nodes/` and `milestones/` stand beside this folder, and this folder shadows an installed
    # copy when Python runs from the repository's root.
    __path__.append(str(_here.parent))

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
