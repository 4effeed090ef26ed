"""Whether a text puts a call to the customer, so that a "yes" to it can be one to that call."""

from __future__ import annotations

import re

from arq_graph.agent.state import ToolInsight
from arq_graph.nodes.agreement import asks_something
from arq_graph.nodes.asking_for_yes import Deed
from arq_graph.nodes.confirmation import NOT_AGREED
from arq_graph.nodes.speaking.grounds import beginnings, unsaid
from arq_graph.nodes.speaking.naming import unnamed_values
from arq_graph.reasoning.sections import as_json


def unnamed(call: ToolInsight, text: str, description: str) -> str | None:
    """Why a yes to a text would be no yes to all that a call would do; None if it would be one.

    Every value has to be named. Where it is the deed itself that needs a yes, an English question has to ask for
    that deed and nothing else: "Shall I keep A-1?" names the value too.

    Args:
        call: The call.
        text: The text.
        description: What the tool does; a call without a value that can be said has to be named by its words.
    """
    if left_out := unnamed_values(call.tool, call.arguments, text):
        values = as_json({name: call.arguments[name] for name in left_out})
        return f"it asks for a yes without saying to what: name {values}"
    if not has_sayable(call) and not _shares_words(call, text, description):
        return f"it asks for a yes without saying to what: {doing(call, description)}"
    return _misasked(call, text, description)


def _misasked(call: ToolInsight, text: str, description: str) -> str | None:
    if call.problem != NOT_AGREED or Deed.of(call.tool, call.arguments, description).is_asked_for(text):
        return None
    done = as_json(doing(call, description))
    return f"a yes to it could be one to something else: ask nothing but whether you shall do this: {done}"


def is_about(call: ToolInsight, text: str, description: str) -> bool:
    """Whether a text may be taken for a question about a call: it says one of its values, or speaks of what it does.

    Args:
        call: The call.
        text: The text.
        description: What the tool does.
    """
    if _shares_words(call, text, description):
        return True
    if not has_sayable(call):
        return asks_something(text)
    return len(unsaid(call.tool, call.arguments, [text])) < len(unsaid(call.tool, call.arguments, [""]))


def has_sayable(call: ToolInsight) -> bool:
    """Whether a call has a value that can be said: one beside true, false and null."""
    return bool(unsaid(call.tool, call.arguments, [""]))


def doing(call: ToolInsight, description: str) -> str:
    """What a call does, in a few words."""
    first = re.split(r"(?<=[.!?])\s|\n", description.strip(), maxsplit=1)[0].rstrip(".")
    return first or call.tool.replace("_", " ")


def _shares_words(call: ToolInsight, text: str, description: str) -> bool:
    about = beginnings(f"{call.tool.replace('_', ' ')} {description}")
    return not about or not about.isdisjoint(beginnings(text))
