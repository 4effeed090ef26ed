"""Utterances: their category, their dialogue act, and how many in a row asked something (ReSpAct).

The categories are those of the paper's Table 5. They limit nothing: an utterance is written first and labelled after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from arq_graph.agent.state import SpeechCategory
from arq_graph.nodes.messages import read_note
from arq_graph.nodes.yes import has_question_mark

SPEECH = "speech"
"""Key of a message's `response_metadata`: an utterance's `category`, whether it `asks`, whether it `waits`."""

HOUSEHOLD_ACTS: Mapping[str, str] = {
    "ReqForInstruction": "ask what is to be done next",
    "RequestOtherInfo": "ask for a detail of the task that is no place and no state of a thing",
    "InfoObjectLocAndOD": "tell where a thing is, or how it looks or stands",
    "ReqForObjLocAndOD": "ask where a thing is, or how it looks or stands",
    "InformationOther": "tell anything else that helps",
    "AlternateQuestions": "ask which of several things or ways is meant, and name them",
    "Affirm": "say yes",
    "Deny": "say no",
    "OtherInterfaceComment": "remark on how things can be handled here, or on where one stands",
    "NotifyFailure": "say that something did not work",
}
"""The dialogue acts of a helper in a household (ReSpAct, E.3), for `dialogue_acts`; the names are Gella et al.'s
(2022)."""

ANSWERS = "answers"
"""Key of a message's `response_metadata`: the id of the utterance that the customer answers within a task."""


def classify_speech(speech: Any, *, asks: bool, confirms: bool) -> SpeechCategory:
    """Return the category of an utterance; where several fit, the first (ReSpAct, Table 5).

    `speech` holds the model's answers about the utterance, None for a text that no model wrote; `confirms` is True if
    the generated confirmation question follows it.
    """
    if speech is None:
        return "assumption_verification" if confirms else "alternative_suggestion"
    if speech.mentions_failure:
        return "alternative_suggestion"
    if speech.closes:
        return "follow_up"
    if confirms or speech.states_belief:
        return "assumption_verification"
    if not asks:
        return "status_update"
    return "clarification_request" if speech.offers_choice else "probing_question"


def find_task_messages(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """Return the messages since the task was given; answers to the agent's utterances don't begin a new one."""
    start = 0
    for position, message in enumerate(messages):
        if isinstance(message, HumanMessage) and ANSWERS not in message.response_metadata:
            start = position
    return messages[start:]


def find_recent_questions(messages: Sequence[BaseMessage]) -> list[str]:
    """Return the agent's last utterances that asked something, with nothing done in between, the newest first."""
    questions: list[str] = []
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            break
        if isinstance(message, AIMessage) and message.text:
            note = read_note(message, SPEECH)
            # An utterance that waits for an answer counts as a question: `max_questions` limits both.
            if not (note.get("asks") or note.get("waits") or has_question_mark(message.text)):
                break
            questions.append(message.text)
    return questions
