"""Examples to fine-tune a planner's model on: what the planner asks at each step of a recorded conversation, and the
answer that leads to what was done there (Pre-Act 3.2, Algorithm 1, Appendices B and E).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, convert_to_messages
from langchain_core.tools import StructuredTool
from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.apps.agents import PROFILE
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.arms import describe_instructions
from arq_graph.milestones.evaluation.results import read_stored_conversation
from arq_graph.milestones.grounding import Grounding
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.transcript import Call, Transcript
from arq_graph.milestones.transcripts.formats import read_transcripts
from arq_graph.milestones.turn_level.predictors import make_openai_definitions
from arq_graph.milestones.turn_level.turn_steps import Dataset, convert_events_to_messages
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes.channels import describe_first_error
from arq_graph.nodes.messages import classify_result
from arq_graph.nodes.plan_schema import FINAL_ANSWER
from arq_graph.nodes.planner import Planner, PreActPlanner, ReActPlanner
from arq_graph.nodes.proposed_calls import get_property_name
from arq_graph.nodes.speaking.move_schema import ACT
from arq_graph.nodes.tool_arguments import name_in_words
from arq_graph.reasoning.answer import Answer
from arq_graph.reasoning.blocks import join_text_blocks
from arq_graph.reasoning.blueprint import dump_in_mode, list_response_fields
from arq_graph.reasoning.conversation import Conversation, Line
from arq_graph.reasoning.sections import as_json, clean
from arq_graph.reasoning.steps import perform_steps

UNFILLED = "[to be filled in]"
"""What stands where a person or a model has to write something."""
_FINAL = "give the final answer"
_IS_MOVE = "a move in a world of text is not a call of a tool, so no planner can learn it"
_WHY = {"failed": "the call failed", "empty": "nothing was found"}
_SHORT = 200


class TurnExamples(Record):
    """What a recorded turn gives to learn from; what no record holds of it is kept in a file as this, without rows.

    Args:
        turn: The same where the same was said and done; empty where a whole conversation is left out.
        conversation: The conversation's task, or else its id or place: the same for all runs of a task.
        said: The lines that a planner reads.
        reasons: By question, why each step was planned and what was expected of each call; empty until it is written.
        rows: For each action a `prompt` and its `completion`, in the chat format of TRL. While reasons are missing, the
            answer stands under `unfilled` instead, so that nothing is trained on it.
        left_out: Why there are no rows, in words.
        stand_ins: What a stand-in did in the conversation, as in `Transcript`: then it is nothing to train on.
    """

    turn: str
    conversation: str = ""
    stand_ins: tuple[str, ...] = ()
    said: tuple[dict[str, Any], ...] = ()
    reasons: dict[str, str]
    rows: tuple[dict[str, Any], ...] = ()
    left_out: str = ""


class _Turn(NamedTuple):
    """What was said and done up to a customer's message, and after it: each call with what was said beside it and its
    result, and the answer, which is empty where the record ends before it; and all of it as a planner reads it.
    """

    history: list[BaseMessage]
    calls: list[tuple[AIMessage, BaseMessage]]
    answer: str
    talk: Conversation


class _Step(NamedTuple):
    """A step of a plan as the planner writes it, its call, and what the call is expected to tell."""

    written: dict[str, Any]
    call: ToolCall | None
    expected: str


def make_finetuning_examples(
    transcripts: Dataset,
    stage: Literal[1, 2],
    *,
    agent: Agent | None = None,
    tools: Any = None,
    reasons: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[TurnExamples]:
    """Make examples of recorded conversations, turn by turn (Pre-Act 3.2.1, Algorithm 1).

    Each prompt is the one that the planner sends in mode `direct`, and each answer one that it has read and taken.

    Args:
        transcripts: A file that `read_transcripts` reads, a transcript, or transcripts.
        stage: 1: ReAct, with thoughts that the record tells. 2: Pre-Act, with plans whose reasons it does not tell.
        agent: Whose instructions and tools stand in the prompts, as `move_guidelines_to_profile` gives them, because no
            record tells which guidelines were active; results of other agents are left out. None: those of each record.
        tools: The tools, where the records do not bring them: OpenAI definitions, LangChain tools, or schemas by name.
        reasons: What was written, by `turn` and question.

    Raises:
        InputError: The file cannot be read.
        ToolError: One of the `tools` has nothing but a name, or cannot be described.
    """
    kind = ReActPlanner if stage == 1 else PreActPlanner
    spec = move_guidelines_to_profile(agent) if agent else None
    known = [] if spec else None if tools is None else make_openai_definitions(tools)

    @lru_cache(maxsize=8)
    def planner_of(told: str, definitions: str) -> Planner:
        tools = [
            StructuredTool(
                name=each["name"],
                description=each["description"] or name_in_words(each["name"]),
                args_schema=each["parameters"],
                func=lambda **_: None,
            )
            for each in (tool["function"] for tool in json.loads(definitions))
        ]
        known_agent = spec or Agent("Agent", told or PROFILE, tools=tools)
        return kind(ScriptedChatModel([]), known_agent, mode="direct")

    records = read_transcripts(transcripts) if isinstance(transcripts, str | Path) else transcripts
    for number, record in enumerate([records] if isinstance(records, Transcript) else records):
        if not isinstance(record, Transcript):
            unread = f"{record!r:.80} is no transcript: read it with `read_transcript`"
            yield TurnExamples(turn="", reasons={}, left_out=str(getattr(record, "error", unread)))
            continue
        name = clean(record.task or record.id or f"conversation {number}")
        called = {call.tool for _, call in record.enumerate_calls() if call.malformed is None}
        try:
            given = (
                make_openai_definitions(record.extra.get("tools") or record.tools) if known is None else known
            )
            planner = planner_of("" if spec else record.instructions, json.dumps(given))
            unknown = sorted(called - planner.tools.keys())
            undefined = (
                unknown and f"the tool {unknown[0]!r} is not defined (give it with --tools or --agent)"
            )
            wrong = _IS_MOVE if ACT in unknown else undefined
        except Exception as error:  # whatever a broken schema of a tool leads to
            wrong = f"the tools cannot be used: {error}"
        if (kept := read_stored_conversation(record.extra)) and (held := kept.record):
            if agent and (other := record.extra.get("agent", agent.name)) != agent.name:
                wrong = f"their agent is {other!r}, not {agent.name!r} (give its file with --agent)"
            elif "active" in held.expected:
                wrong = "only the matcher was asked, so there is no reply to learn"
            elif not called and held.outcome.get("success") is False:
                wrong = "the agent called no tool, and its world says that it failed"
        if wrong:
            yield TurnExamples(turn="", reasons={}, left_out=wrong)
            continue
        for turn in _turns(record):
            said = [line.text for line in turn.talk.lines]
            key = fingerprint(said).split()[-1][:16]
            plans, answers = _plans(turn, (reasons or {}).get(key, {}))
            found: dict[str, Any] = {"said": tuple(map(json.loads, said)), "stand_ins": record.stand_ins}
            under = "unfilled" if stage == 2 and not all(answers.values()) else "completion"
            try:
                chats = list(_chats(turn, plans, planner))
                found["rows"] = tuple({"prompt": chat[:2], under: chat[2:]} for chat in chats)
            except InputError as error:
                found["left_out"] = str(error)
            yield TurnExamples(turn=key, conversation=name, reasons=answers, **found)


def move_guidelines_to_profile(agent: Agent) -> Agent:
    """The agent as a planner alone takes it: its profile tells all of its guidelines, and any tool may be called."""
    if not agent.guidelines:
        return agent
    return agent.replace(
        profile=describe_instructions(agent), guidelines=(), tools=tuple(agent.toolbox.values())
    )


def _turns(transcript: Transcript) -> Iterator[_Turn]:
    """The turns of a conversation in which its agent did something. Pre-Act 3.2.1, Algorithm 1.

    Calls that were made at the same time follow one another. Words before a call stand beside it, and several messages
    behind the last call are one answer. A malformed call is left out with its result. What the agent says before the
    customer, or the conversation began with, is history alone; a system message within a turn is history of the next.
    """
    began_with = sum(1 for _ in convert_events_to_messages(transcript.events[: transcript.history]))
    messages = [*convert_events_to_messages(transcript.events), HumanMessage("")]  # which ends the last turn
    history, later = list[BaseMessage](), list[BaseMessage]()
    calls, answer = list[tuple[AIMessage, BaseMessage]](), ""
    for number, message in enumerate(messages):
        if isinstance(message, AIMessage):
            answer = "\n\n".join(filter(None, (answer, message.text)))
            # Their results follow directly, in the same order.
            for at, call in enumerate(message.tool_calls, start=number + 1):
                calls.append((AIMessage(answer, tool_calls=[call]), messages[at]))
                answer = ""
        elif message.type != "tool" and not (calls or answer):
            history.append(message)
        elif isinstance(message, HumanMessage):
            said = [*history, *chain(*calls), *([AIMessage(answer)] if answer else [])]
            if number > began_with and any(isinstance(each, HumanMessage) for each in history):
                yield _Turn(history, calls, answer, Conversation(said))
            history, later, calls, answer = [*said, *later, message], [], [], ""
        elif message.type == "system":
            later.append(message)


def _plans(turn: _Turn, written: Mapping[str, str]) -> tuple[list[list[_Step]], dict[str, str]]:
    """What was still ahead at each call of a turn and at its answer, the final answer always last; and each question
    about it with its answer.

    A plan reaches as far as could be foreseen: up to the next call that failed or found nothing.
    """
    plans, answers, numbers = list[list[_Step]]([[]]), dict[str, str](), count(1)
    after = turn.talk.last_customer_line

    def add(step: str, call: ToolCall | None = None) -> None:
        place, known = f"{next(numbers)}. {step}", f"planned after {after.id if after else 'nothing'}"
        called = f" {as_json(call['args'])}" if call else ""
        asked = [f"{place}{called}, {known}: why, and why at this place?"]
        asked += [f"{place}: what is its result expected to tell?"] if call else []
        answers.update({question: written.get(question, "").strip() for question in asked})
        why, *expected = (answers[question] or UNFILLED for question in asked)
        told = {"step": step, "reason": why, "tool": call and call["name"]}
        plans[-1].append(_Step(told, call, "".join(expected)))

    for (message, _), result in zip(turn.calls, turn.talk.current_turn_results, strict=True):
        (call,) = message.tool_calls
        add(f"call {call['name']}", call)
        if _ended(result) != "as_expected":
            add(_FINAL)
            plans.append([])
            after = result
    add(_FINAL)
    last = plans[-1][-1]
    return [plan[at:] for plan in plans for at, step in enumerate(plan) if step.call or step is last], answers


def _ended(line: Line) -> str:
    """How a result ended. A tool that gives back no text, such as one that does something, has told enough."""
    outcome = classify_result(line)
    has_told = outcome == "filled" or (outcome == "empty" and not line.message.text.strip())
    return "as_expected" if has_told else outcome


def _chats(turn: _Turn, plans: Sequence[Sequence[_Step]], planner: Planner) -> Iterator[list[dict[str, str]]]:
    """A chat for each action of a turn: in Algorithm 1 the pairs (Ip, Op), of each call with the results before it, and
    of the answer with all of them. Raises what the planner says against an action.
    """
    if isinstance(planner, PreActPlanner) and not turn.answer:
        raise InputError("there is no answer at the end, so nobody knows the plan")
    state: dict[str, Any] = {"messages": turn.history}
    for at, ahead in enumerate(plans if turn.answer else plans[:-1]):
        chat, update = _taught(
            planner, state, _answer(ahead, turn, turn.talk.current_turn_results[:at], planner)
        )
        yield chat
        if at < len(turn.calls):
            said, result = turn.calls[at]
            call = update["messages"][-1].model_copy(update={"content": said.content})
            told = result.model_copy(update={"tool_call_id": call.tool_calls[0]["id"]})
            state = {**state, **update, "messages": [*state["messages"], call, told]}


def _taught(planner: Planner, state: Any, given: Mapping[str, Any]) -> tuple[list[dict[str, str]], Any]:
    """The planner's question and the answer, as a chat, and the update that the planner makes of it."""
    said: list[str] = []

    def answer(questions: Any) -> list[Answer[Any]]:
        (question,) = questions
        try:
            value = question.blueprint.model_validate(given, context="direct")
        except ValidationError as error:
            raise InputError(describe_first_error(error)) from None
        if question.check and (complaints := question.check(value)):
            # What follows tells the model what to do instead.
            why = complaints[0].message.partition("; ")[0].partition(": ")[0]
            raise InputError(f"the planner would not do that: {why}")
        said.extend(message.text for message in join_text_blocks(convert_to_messages(question.messages)))
        said.append(json.dumps(dump_in_mode(value, "direct"), ensure_ascii=False))
        return [Answer(value, "", said[-1])]

    update = perform_steps(planner.steps(planner.view_state(state)), answer)
    told = zip(("system", "user", "assistant"), map(clean, said), strict=True)
    return [{"role": role, "content": text} for role, text in told], update


def _answer(ahead: Sequence[_Step], turn: _Turn, done: Sequence[Line], planner: Planner) -> dict[str, Any]:
    """The answer that takes the first of the steps ahead: of all its parts, those that the planner's schema has."""
    call, asked = ahead[0].call, list_response_fields(planner.blueprint)
    steps = [dict(each.written) for each in ahead]
    ended, change = _ended(done[-1]) if done else None, None
    if ended in _WHY:
        if not call:
            steps[0]["step"] = f"{_FINAL} without what {done[-1].id} was to tell"
        change = {"what": f"Next: {steps[0]['step']}.", "why": f"{done[-1].id}: {_WHY[ended]}."}
    told = [f"{each.id}, {each.call and each.call['name']}: {each.message.text[:_SHORT]}" for each in done]
    action: dict[str, Any] = {FINAL_ANSWER: {"asks_for": [], "answer": turn.answer}}
    if call:
        expected = {"expected": ahead[0].expected} if "next_steps" in asked else {}
        made = {**_arguments(call, turn, planner), **expected}
        action = {get_property_name(call["name"], (FINAL_ANSWER,)): made or {"go_ahead": True}}
    parts = {
        "still_wanted": None,
        "thought": f"{call['name']} is needed." if call else "What to answer is known.",
        "previous_steps": "\n".join(told) or None,
        "observation": ended,
        "change": change,
        "next_steps": steps,
        "action": action,
    }
    return {name: parts[name] for name in asked}


def _arguments(call: ToolCall, turn: _Turn, planner: Planner) -> dict[str, Any]:
    """A call's arguments; each value rests on what the customer said, where that has it, or else on what is known."""
    tool, arguments, said = planner.tools[call["name"]], dict(call["args"]), Grounding()
    for message in turn.history:
        if isinstance(message, HumanMessage):
            said.add_text(message.text)
    decisions: dict[str, Any] = {}
    for each in tool.arguments:
        given, value = each.name in arguments, arguments.pop(each.name, None)
        basis = (
            "known" if said.find_invented_arguments(Call(tool.name, {each.name: value})) else "this_request"
        )
        written = value if each.schema is not None or value is None else json.dumps(value)
        decisions[each.key] = {"basis": basis if given else "nobody", "given": given, "value": written}
    if arguments:
        raise InputError(f"{tool.name} has no argument {min(arguments)!r}")
    return {"arguments": decisions} if decisions else {}
