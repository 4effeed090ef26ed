"""What is known of utterances: their category, their act, and how many in a row asked something (ReSpAct).

The categories are those of the paper's Table 5. They limit nothing: an utterance is written first and labelled after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from arq_graph.agent.state import SpeechCategory, ToolInsight
from arq_graph.errors import InputError
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.yes import asks as asks_something

SPEECH = "speech"
"""Key of a message's `response_metadata`: an utterance's `category`, whether it `asks`, whether it `waits`."""

ANSWERS = "answers"
"""Key of a message's `response_metadata`: the id of the utterance that the customer answers within a task."""

_Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_ACTS = TypeAdapter(Annotated[dict[_Words, _Words], Field(min_length=1)])


def category_of(
    *,
    asks: bool,
    mentions_failure: bool = False,
    closes: bool = False,
    states_belief: bool = False,
    offers_choice: bool = False,
) -> SpeechCategory:
    """The category of an utterance; where several fit, the first of this order (ReSpAct, Table 5)."""
    if mentions_failure:
        return "alternative_suggestion"
    if closes:
        return "follow_up"
    if states_belief:
        return "assumption_verification"
    if not asks:
        return "status_update"
    return "clarification_request" if offers_choice else "probing_question"


def dialogue_acts_of(given: Mapping[str, str] | None) -> dict[str, str]:
    """The acts that speech is limited to, by name, with what each does; none where it is free."""
    try:
        return {} if given is None else _ACTS.validate_python(given)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]["msg"]
        raise InputError(
            f'dialogue_acts is {given!r:.80}: {wrong}; name each act, and say what it does: {{"Affirm": "say yes"}}'
        ) from error


def speech_of(message: BaseMessage) -> Mapping[str, Any]:
    """What the speaker knows of an utterance; empty for a message that it did not send."""
    kept = message.response_metadata.get(SPEECH)
    return kept if isinstance(kept, Mapping) else {}


def task_messages(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """The messages since the task was given: answers to the agent's utterances begin no new one."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if isinstance(message, HumanMessage) and ANSWERS not in message.response_metadata:
            return messages[index:]
    return messages


def questions_in_a_row(messages: Sequence[BaseMessage]) -> list[str]:
    """The agent's last utterances that asked something, with nothing done in between, the newest first."""
    found: list[str] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.text:
            if not (speech_of(message).get("asks") or asks_something(message.text)):
                break
            found.append(message.text)
        elif isinstance(message, ToolMessage):
            break
    return found


def question_for(insights: Sequence[ToolInsight], tools: Mapping[str, ToolArguments]) -> str:
    """Code's question for what a refused call lacks; empty if that is nothing that can be asked for."""
    lacking = [each for each in insights if each.kind in ("missing", "invalid") and each.argument]
    wanted = [tools[each.tool].labels.get(str(each.argument), str(each.argument)) for each in lacking]
    if not wanted:
        return ""
    *named, last = dict.fromkeys(wanted)
    listed = f"{', '.join(named)} and {last}" if named else last
    return f"To go on I need this from you: {listed}. Could you tell me?"
