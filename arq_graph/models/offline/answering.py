"""From a prompt and a schema to an answer: which step is asked, what its rules say, and the rest by guessing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from arq_graph.models.offline.calls import propose_calls
from arq_graph.models.offline.filling import Filler, properties_of
from arq_graph.models.offline.guessing import Guesses
from arq_graph.models.offline.judging import judge_milestones
from arq_graph.models.offline.matching import judge_guidelines
from arq_graph.models.offline.planning import plan_next
from arq_graph.models.offline.playing import play_user
from arq_graph.models.offline.replies import Reply
from arq_graph.models.offline.revision import revise
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import read_prompt
from arq_graph.models.offline.speakers import next_move
from arq_graph.models.offline.workflow import draft_milestones


def answer(messages: Sequence[BaseMessage], schema: Mapping[str, Any]) -> Any:
    """An instance of the schema.

    Args:
        messages: The prompt.
        schema: A JSON schema, in OpenAI's strict subset or near it.
    """
    scene = Scene(read_prompt(messages))
    guesses = Guesses(scene)
    return Filler(schema, guesses).fill(suggestion(scene, schema) or guesses.corrected)


def suggestion(scene: Scene, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What the rules say about the properties of the schema; those that they know nothing about are left out."""
    properties = properties_of(schema, schema)
    if "action" in properties and properties.keys() & {"next_steps", "thought"}:
        return plan_next(scene, schema)
    if "move" in properties and "thoughts_left" in scene.prompt.now:
        return next_move(scene, schema)
    suggested: dict[str, Any] = {}
    if "finished" in properties and "wishes" in scene.prompt.sections:
        return play_user(scene.prompt)
    if scene.prompt.entries("guidelines"):
        asked = {name: tuple(properties_of(field, schema)) for name, field in properties.items()}
        suggested |= judge_guidelines(scene, asked)
    if scene.prompt.entries("tools"):
        suggested |= propose_calls(scene, properties, schema)
    if "revisions" in properties or "active_guidelines" in scene.prompt.sections:
        suggested |= revise(scene)
    if "milestones" in properties and "workflow" in scene.prompt.sections:
        suggested |= draft_milestones(scene.prompt)
    if scene.prompt.entries("steps") and scene.prompt.entries("milestones"):
        suggested |= judge_milestones(scene.prompt)
    return suggested


def reply_text(messages: Sequence[BaseMessage]) -> str:
    """A reply in words, for a call that asks for no schema."""
    return Reply(Scene(read_prompt(messages))).text
