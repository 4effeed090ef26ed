"""The offline chat model: deterministic, without state, from nothing but the messages and the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from arq_graph.models.in_process import InProcessChatModel, object_message, requested_schema, text_message
from arq_graph.models.offline.activation import judge_guidelines, settle_guidelines
from arq_graph.models.offline.instance import UNSAID, Instances
from arq_graph.models.offline.milestone_answers import draft_milestones, judge_milestones
from arq_graph.models.offline.prompt import Prompt, read_prompt
from arq_graph.models.offline.reply import NOT_UNDERSTOOD, Reply, revise
from arq_graph.models.offline.stems import label, stems
from arq_graph.models.offline.tool_choice import candidate_answers, move, plan

_MOST_ANSWERS = 2  # times that a simulated user says the same


class OfflineChatModel(InProcessChatModel):
    """A stand-in for a chat model that works without network, key or weights.

    It shows how a graph runs; it understands nothing. It reads the sections of the prompt and fills whatever schema
    it is asked for with a valid instance: a guideline is active where the stems of its condition were just said, an
    argument is what has the type, the format or the shape that is wanted, and a reply is what the guidelines' actions
    say between quotes and what the tools told. The same prompt always gets the same answer. What matches nothing is
    answered with `NOT_UNDERSTOOD`; so is a call without a schema.
    """

    model_name: str = "offline"

    @property
    def _llm_type(self) -> str:
        return "arq-graph-offline"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_answer_message(messages, kwargs))])


def is_stand_in(model: object) -> bool:
    """Whether what a model says is evidence of nothing, because the offline model says it.

    Args:
        model: A chat model, a model string, a `Reasoner`, or a mapping of them by module, of which one is enough.
    """
    if isinstance(model, Mapping):
        return any(map(is_stand_in, model.values()))
    model = getattr(model, "model", model)
    return isinstance(model, OfflineChatModel) or model == "offline"


def _answer_message(messages: Sequence[BaseMessage], kwargs: Mapping[str, Any]) -> AIMessage:
    text = "\n\n".join(str(message.text) for message in messages)
    _, schema = requested_schema(kwargs)
    prompt = read_prompt(messages)
    if schema is None:
        return text_message(Reply(prompt).text, text)
    answer = json.dumps(_answer(prompt, schema), ensure_ascii=False)
    # Half a surrogate pair, cut out of a customer's message, cannot be sent as UTF-8.
    return object_message(answer.encode(errors="replace").decode(), text, kwargs)


def _answer(prompt: Prompt, schema: Mapping[str, Any]) -> Any:
    confirmed = {place.rpartition(".")[2] for place in prompt.complaints}
    kinds = Instances(schema, NOT_UNDERSTOOD if not prompt.sections else "-", confirmed)
    suggested = _suggested(prompt, kinds, kinds.asked(schema))
    if prompt.waiting and isinstance(suggested, dict):
        suggested["still_wanted"] = [] if prompt.says_no else [each.get("id") for each in prompt.waiting]
    return kinds.of(suggested)


def _suggested(prompt: Prompt, kinds: Instances, properties: Mapping[str, Any]) -> Any:
    """What the step that is asked says, known by the sections of its prompt and the queries of its blueprint."""
    sections = prompt.sections
    if "move" in properties:
        return move(prompt, properties["move"], kinds)
    if "action" in properties and properties.keys() & {"next_steps", "thought"}:
        return plan(prompt, properties["action"], kinds)
    if "revisions" in properties:
        return revise(prompt)
    if "finished" in properties and "wishes" in sections:
        return _play_customer(prompt)
    if "milestones" in properties and "workflow" in sections:
        return draft_milestones(prompt)
    if "steps" in sections and "milestones" in sections:
        return judge_milestones(prompt)
    if any("sensitive_to_tools" in kinds.asked(each) for each in properties.values()):
        return settle_guidelines(prompt)
    if "guidelines" in sections:
        return judge_guidelines(prompt, properties, kinds)
    return candidate_answers(prompt, properties, kinds) if "tools" in sections else UNSAID


def _play_customer(prompt: Prompt) -> dict[str, Any]:
    """What the user says next, from the sections `wishes`, `known`, `closing` and `talk`."""
    talk = prompt.entries("talk")
    said = [str(entry.get("text")) for entry in talk if entry.get("from") == "you"]
    last = str(talk[-1].get("text")) if talk and talk[-1].get("from") == "agent" else ""
    closing = str(prompt.sections.get("closing") or "")
    wishes = [wish for wish in prompt.entries("wishes") if wish.get("request")]
    begun = [wish for wish in reversed(wishes) if wish["request"] in said]
    answers = _answers(prompt, begun, stems(last)) if begun and "?" in last else iter(())
    further = [*answers, *(wish["request"] for wish in wishes if wish not in begun), closing]
    new = (text for text in further if said.count(text) < (_MOST_ANSWERS if text not in (closing, "") else 1))
    message = "" if closing and closing in said else next(new, "")
    return {"message": message or "Exit.", "finished": not message, "one_message_of_the_user": True}


def _answers(prompt: Prompt, wishes: list[dict[str, Any]], asked: frozenset[str]) -> Iterator[str]:
    """What may be said to a question, the fittest first."""
    for wish in wishes:
        yield from (str(said) for topic, said in (wish.get("answers") or {}).items() if stems(topic) <= asked)
        yield from (f"Yes, {offer}, please." for offer in wish.get("accepts") or () if stems(offer) <= asked)
    for facts in [*(wish.get("slots") for wish in wishes), prompt.sections.get("known")]:
        known = facts.items() if isinstance(facts, dict) else ()
        told = [f"the {label(name)} is {value}" for name, value in known if stems(name) <= asked]
        if told:
            yield f"T{', '.join(told)[1:]}."
    yield "I do not know that."
    yield from (str(wish["fallback"]) for wish in wishes if wish.get("fallback"))
