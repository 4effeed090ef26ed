"""Examples to fine-tune a planner's model on: what the planner asks at each step of a recorded conversation, and the
answer that leads to what was done there (Pre-Act 3.2, Algorithm 1, Appendices B and E).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, HumanMessage, ToolCall, convert_to_messages
from langchain_core.tools import StructuredTool
from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.apps.guided import PROFILE
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.arms import instructions_of
from arq_graph.milestones.finetuning import RecordedTurn, recorded_turns
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.tool_schemas import tool_definitions
from arq_graph.milestones.transcript import Call, Transcript
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes.channels import first_problem
from arq_graph.nodes.plan_schema import FINAL_ANSWER
from arq_graph.nodes.planner import Planner, PreActPlanner, ReActPlanner
from arq_graph.nodes.proposed_calls import property_of
from arq_graph.nodes.tool_arguments import in_words
from arq_graph.nodes.turns import outcome_of
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.blocks import as_taken
from arq_graph.reasoning.blueprint import in_mode, response_fields
from arq_graph.reasoning.conversation import Conversation, Line
from arq_graph.reasoning.performing import perform_steps
from arq_graph.reasoning.sections import as_json, clean

UNFILLED = "[to be filled in]"
"""What stands where a person or a model has to write something."""
_FINAL = "give the final answer"
_WHY = {"failed": "the call failed", "empty": "nothing was found"}
_SHORT = 200


class TurnReasons(Record):
    """What no record holds of a turn: the reasons of its plans' steps, and what was expected of each call.

    `turn` is the same for turns in which the same was said and done, `said` are the lines that a planner reads, and
    `reasons` has an answer for each question, empty as long as nobody has written it.
    """

    turn: str
    conversation: str
    said: tuple[str, ...]
    reasons: dict[str, str]


@dataclass(frozen=True)
class TurnExamples:
    """What a recorded turn gives to learn from.

    Args:
        transcript: The conversation.
        rows: For each action a `prompt` and its `completion`, in the chat format of TRL. While reasons are missing, the
            answer stands under `unfilled` instead, so that nothing is trained on it.
        reasons: What has to be written by a person or a model.
        left_out: Why there are no rows: the planner would not take one of the actions, or the tools are not known.
    """

    transcript: Transcript
    rows: tuple[dict[str, Any], ...] = ()
    reasons: TurnReasons | None = None
    left_out: str = ""


class _Step(NamedTuple):
    """A step of a plan, its call, and what the questions about it are."""

    step: str
    call: ToolCall | None
    why: str
    expects: str = ""


def finetuning_examples(
    transcripts: Iterable[Transcript],
    stage: Literal[1, 2],
    *,
    agent: Agent | None = None,
    tools: Any = None,
    reasons: Mapping[str, TurnReasons] | None = None,
) -> Iterator[TurnExamples]:
    """Make examples of recorded conversations, turn by turn (Pre-Act 3.2.1, Algorithm 1).

    Each prompt is the one that the planner sends in mode `direct`, and each answer one that it has read and taken.

    Args:
        transcripts: The conversations, as `read_transcripts` gives them.
        stage: 1: ReAct, with thoughts that the record tells. 2: Pre-Act, with plans whose reasons it does not tell.
        agent: Whose instructions and tools stand in the prompts, as `without_guidelines` gives them, because no record
            tells which guidelines were active; None: those of each record.
        tools: The tools, where the records do not bring them, as for `score`.
        reasons: What was written, by `turn`.
    """
    kind = ReActPlanner if stage == 1 else PreActPlanner
    spec = without_guidelines(agent) if agent else None

    @lru_cache(maxsize=8)
    def made(told: str, known: str) -> Planner:
        return kind(ScriptedChatModel([]), spec or _agent(told, json.loads(known)), mode="direct")

    def planner_of(transcript: Transcript) -> Planner:
        given = (transcript.extra.get("tools") or transcript.tools) if tools is None else tools
        known = "" if agent else json.dumps(tool_definitions(given))
        planner = made("" if agent else transcript.instructions, known)
        called = {call.tool for _, call in transcript.calls() if call.malformed is None}
        if unknown := called - planner.tools.keys():
            raise InputError(f"no tool {min(unknown)!r} is known: name the tools, or the agent that has them")
        return planner

    for transcript in transcripts:
        try:
            planner = planner_of(transcript)
        except Exception as error:  # whatever a broken schema of a tool leads to
            yield TurnExamples(transcript, left_out=f"its tools: {error}")
            continue
        for turn in recorded_turns(transcript):
            plans = _plans(turn)
            whole = [*turn.messages(), *([AIMessage(turn.answer)] if turn.answer else [])]
            said = [line.text for line in Conversation(whole).lines]
            asked = {question: "" for plan in plans for step in plan for question in step[2:] if question}
            key = fingerprint(said, *asked).split()[-1][:16]
            blank = TurnReasons(turn=key, conversation=transcript.id, said=said, reasons=asked)
            given = (reasons or {}).get(key, blank)
            try:
                rows = tuple(_rows(turn, plans, {**asked, **given.reasons}, planner))
                yield TurnExamples(transcript, rows, given)
            except InputError as error:
                yield TurnExamples(transcript, reasons=given, left_out=str(error))


def without_guidelines(agent: Agent) -> Agent:
    """The agent as a planner alone takes it: its profile tells all of its guidelines, and any tool may be called."""
    if not agent.guidelines:
        return agent
    return agent.replace(profile=instructions_of(agent), guidelines=(), tools=tuple(agent.toolbox.values()))


def _agent(told: str, definitions: Sequence[Mapping[str, Any]]) -> Agent:
    tools = [
        StructuredTool(
            name=each["name"],
            description=each.get("description") or in_words(each["name"]),
            args_schema={"type": "object", "properties": {}, **each.get("parameters", {})},
            func=lambda **_: None,
        )
        for each in definitions
    ]
    return Agent("Agent", told or PROFILE, tools=tools)


def _plans(turn: RecordedTurn) -> list[list[_Step]]:
    """The plans of a turn, each with a final answer as its last step.

    A plan reaches as far as could be foreseen: up to the next call that failed or found nothing.
    """
    talk, plans = Conversation(turn.messages()), list[list[_Step]]([[]])
    line = talk.last_customer_line

    def add(step: str, call: ToolCall | None = None) -> None:
        place = f"{sum(map(len, plans)) + 1}. {step}"
        called = f" {as_json(call['args'])}" if call else ""
        why = f"{place}{called}, planned after {line.id if line else 'nothing'}: why, and why at this place?"
        expects = f"{place}: what is its result expected to tell?" if call else ""
        plans[-1].append(_Step(step, call, why, expects))

    for (message, _), result in zip(turn.calls, talk.results, strict=True):
        add(f"call {message.tool_calls[0]['name']}", message.tool_calls[0])
        if _ended(result) != "as_expected":
            add(_FINAL)
            plans.append([])
            line = result
    add(_FINAL)
    return plans


def _ended(line: Line) -> str:
    """How a result ended. A tool that gives back no text, such as one that does something, has told enough."""
    outcome = outcome_of(line)
    has_told = outcome == "told" or (outcome == "empty" and not line.message.text.strip())
    return "as_expected" if has_told else outcome


def _rows(
    turn: RecordedTurn, plans: Sequence[Sequence[_Step]], reasons: Mapping[str, str], planner: Planner
) -> Iterator[dict[str, Any]]:
    """A row for each action of a turn; raises what the planner says against one."""
    is_plan, results = isinstance(planner, PreActPlanner), Conversation(turn.messages()).results
    if is_plan and not turn.answer:
        raise InputError("it ends without an answer, so that nobody knows its plan")
    key = "completion" if not is_plan or all(map(str.strip, reasons.values())) else "unfilled"
    state: dict[str, Any] = {"messages": [*turn.history]}
    made = 0
    for ahead in (plan[at:] for plan in plans for at in range(len(plan))):
        if not ahead[0].call and (ahead[0] is not plans[-1][-1] or not turn.answer):
            continue  # a plan in whose place another one was made, or a record that ends here
        given = _answer(ahead, turn, results[:made], reasons, planner)
        chat, update = _taught(planner, state, given)
        yield {"prompt": chat[:2], key: chat[2:]}
        if ahead[0].call:
            call, result = turn.calls[made]
            calls = update["messages"][-1].model_copy(update={"content": call.content})
            told = result.model_copy(update={"tool_call_id": calls.tool_calls[0]["id"]})
            state = {**state, **update, "messages": [*state["messages"], calls, told]}
            made += 1


def _taught(planner: Planner, state: Any, given: Mapping[str, Any]) -> tuple[list[dict[str, str]], Any]:
    """The planner's question and the answer, as a chat, and the update that the planner makes of it."""
    said: list[str] = []

    def answer(questions: Any) -> list[Answer[Any]]:
        (question,) = questions
        try:
            value = question.blueprint.model_validate(given, context="direct")
        except ValidationError as error:
            raise InputError(first_problem(error)) from None
        if question.check and (complaints := question.check(value)):
            raise InputError(f"its planner would not do that: {complaints[0].message}")
        said.extend(message.text for message in as_taken(convert_to_messages(question.messages), None))
        said.append(json.dumps(in_mode(value, "direct"), ensure_ascii=False))
        return [Answer(value, "", said[-1])]

    update = perform_steps(planner.steps(planner.reader(state)), answer)
    told = zip(("system", "user", "assistant"), map(clean, said), strict=True)
    return [{"role": role, "content": text} for role, text in told], update


def _answer(
    ahead: Sequence[_Step],
    turn: RecordedTurn,
    done: Sequence[Line],
    reasons: Mapping[str, str],
    planner: Planner,
) -> dict[str, Any]:
    """The answer that takes the first of the steps ahead, as the planner's schema has it."""
    now, asked = ahead[0], response_fields(planner.blueprint)
    tool, said = now.call and now.call["name"], {"asks_for": [], "answer": turn.answer}
    expected = {} if "thought" in asked else {"expected": reasons.get(now.expects) or UNFILLED}
    action = _call(now.call, turn, planner, expected) if now.call else {FINAL_ANSWER: said}
    answer: dict[str, Any] = {"action": action, **({"still_wanted": None} if "still_wanted" in asked else {})}
    if "thought" in asked:
        return {**answer, "thought": f"{tool} is needed." if tool else "What to answer is known."}
    steps = [
        {"step": each.step, "reason": reasons[each.why] or UNFILLED, "tool": each.call and each.call["name"]}
        for each in ahead
    ]
    ended, change = _ended(done[-1]) if done else None, None
    if done and ended != "as_expected":
        if not tool:
            steps[0]["step"] = f"{_FINAL} without what {done[-1].id} was to tell"
        change = {"what": f"Next: {steps[0]['step']}.", "why": f"{done[-1].id}: {_WHY[str(ended)]}."}
    told = [f"{each.id}, {each.call and each.call['name']}: {each.message.text[:_SHORT]}" for each in done]
    answer |= {"previous_steps": "\n".join(told) or None, "observation": ended}
    return {**answer, "change": change, "next_steps": steps}


def _call(call: ToolCall, turn: RecordedTurn, planner: Planner, further: Mapping[str, str]) -> dict[str, Any]:
    """A call; each of its values rests on what the customer said, where that has it, or else on what is known."""
    tool, arguments, said = planner.tools[call["name"]], dict(call["args"]), Grounding()
    for message in turn.history:
        if isinstance(message, HumanMessage):
            said.tell(message.text)
    decisions: dict[str, Any] = {}
    for each in tool.arguments:
        given, value = each.name in arguments, arguments.pop(each.name, None)
        basis = "known" if said.invented(Call(tool.name, {each.name: value})) else "this_request"
        written = value if each.schema is not None or value is None else json.dumps(value)
        decisions[each.key] = {"basis": basis if given else "nobody", "given": given, "value": written}
    if arguments:
        raise InputError(f"{tool.name} has no argument {min(arguments)!r}")
    made = {**({"arguments": decisions} if decisions else {}), **further}
    return {property_of(tool.name, (FINAL_ANSWER,)): made or {"go_ahead": True}}
