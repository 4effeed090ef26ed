"""Reasoning steps as LangGraph nodes, to add to any `StateGraph`: `arq_graph.nodes` is this folder.

The public names are listed in `__init__.pyi`: type checkers read that list, and at run time each name loads its module
when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
