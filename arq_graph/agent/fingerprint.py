"""What shapes a conversation, part by part, so that two runs can be told apart and the difference be named."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arq_graph.agent.tools import argument_schema

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from arq_graph.agent.spec import Agent


def fingerprint(agent: Agent) -> dict[str, str]:
    """Return a digest of each part; see `Agent.fingerprint`."""
    guidelines = agent.guidelines
    always = sorted(agent.always_available)
    parts: dict[str, Any] = {
        "profile": [agent.name, agent.profile, agent.fallback],
        "guidelines": [
            [g.id, _said(g.condition), g.action, g.continuous, g.on_failure, g.sensitive_to_tools]
            for g in guidelines
        ],
        "relations": [[g.id, g.entails, g.depends_on, g.overrides] for g in guidelines],
        "priorities": [[g.id, g.priority] for g in guidelines],
        "tools": [always, agent.grants, [_tool(tool) for _, tool in sorted(agent.toolbox.items())]],
        "confirmations": {name: [each.by, each.ask] for name, each in agent.confirm.items()},
        "glossary": [[term.name, term.description, term.synonyms] for term in agent.glossary],
        "variables": [[v.name, v.description, v.value, v.settable] for v in agent.variables],
    }
    return {name: _digest(part) for name, part in parts.items()}


def _digest(part: Any) -> str:
    text = json.dumps(part, sort_keys=True, ensure_ascii=False, default=_plain)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(value: Any) -> Any:
    return dict(value) if hasattr(value, "keys") else str(value)


def _tool(tool: BaseTool) -> list[Any]:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None) or type(tool)
    return [tool.name, tool.description, argument_schema(tool), _source(function)]


def _said(condition: str | Callable[..., Any] | None) -> str | None:
    return _source(condition) if callable(condition) else condition


def _source(function: Any) -> str:
    """Its name and the text of its module; of what has no file, its own source, or only its name."""
    named = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', type(function).__qualname__)}"
    try:
        return f"{named.rpartition(':')[2]}\n{Path(inspect.getfile(inspect.unwrap(function))).read_text('utf-8')}"
    except (OSError, TypeError, UnicodeDecodeError):
        pass
    try:
        return f"{named}\n{inspect.getsource(function)}"
    except (OSError, TypeError):
        return named
