"""The chat models that come with the library: one that answers from a script, one that works offline."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arq_graph.models.offline.model import OfflineChatModel as OfflineChatModel
    from arq_graph.models.scripted import ScriptedCall as ScriptedCall
    from arq_graph.models.scripted import ScriptedChatModel as ScriptedChatModel

__all__ = ["OfflineChatModel", "ScriptedCall", "ScriptedChatModel"]

_MODULES = {
    "OfflineChatModel": "arq_graph.models.offline.model",
    "ScriptedCall": "arq_graph.models.scripted",
    "ScriptedChatModel": "arq_graph.models.scripted",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
