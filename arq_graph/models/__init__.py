"""The chat models that come with the library: one that answers from a script, one that works offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arq_graph.lazy import lazily

if TYPE_CHECKING:
    from arq_graph.models.offline.model import OfflineChatModel as OfflineChatModel
    from arq_graph.models.offline.model import is_stand_in as is_stand_in
    from arq_graph.models.scripted import ScriptedCall as ScriptedCall
    from arq_graph.models.scripted import ScriptedChatModel as ScriptedChatModel

__all__ = ["OfflineChatModel", "ScriptedCall", "ScriptedChatModel", "is_stand_in"]

_MODULES = {
    "OfflineChatModel": "arq_graph.models.offline.model",
    "ScriptedCall": "arq_graph.models.scripted",
    "ScriptedChatModel": "arq_graph.models.scripted",
    "is_stand_in": "arq_graph.models.offline.model",
}

__getattr__, __dir__ = lazily(__name__, _MODULES)
