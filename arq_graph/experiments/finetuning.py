"""Examples to fine-tune a planner's model on: its prompt at each step of a recorded conversation, and the answer that
leads to what was done there (Pre-Act 3.2, Algorithm 1, Appendices B and E).
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from langchain_core.tools import StructuredTool
from pydantic import ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.apps.agents import PROFILE
from arq_graph.errors import InputError, UnsatisfiedError, describe_first_error
from arq_graph.experiments.planner_answers import (
    ReasonSheet,
    RecordedTurn,
    compose_answer,
    reconstruct_plans,
    split_turns,
)
from arq_graph.milestones.evaluation.results import parse_stored_conversation
from arq_graph.milestones.reports.records import Record
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord
from arq_graph.milestones.turn_level.predictors import make_openai_definitions
from arq_graph.milestones.turn_level.turn_steps import Dataset, read_records
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.nodes.planner import PreActPlanner, ReActPlanner
from arq_graph.nodes.speaking.move_schema import WORLD_CALL
from arq_graph.reasoning.blueprint import dump_in_mode, read_answer
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.sections import clean, name_in_words

Chat: TypeAlias = list[dict[str, str]]
"""Messages in the format of TRL: a system message, a user's and the assistant's."""

_WORLD_MOVE = "a move in a world of text is not a call of a tool, so no planner can learn it"


class TurnExamples(Record):
    """The examples of one recorded turn; without its rows, it is a line of the file of reasons.

    Args:
        turn: A key that is the same where the same was said and done; empty where a whole conversation is left out.
        conversation: The conversation's task, or else its id or place: the same for all runs of a task.
        stand_ins: The parts that fakes played in the conversation, as in `Transcript`: then it is nothing to train on.
        lines: The lines that a planner reads.
        reasons: By question, why each step was planned and what was expected of each call; empty until it is written.
        rows: For each action a `prompt` and its `completion`, in the chat format of TRL. While reasons are missing, the
            answer is under `unfilled` instead, so that nothing is trained on it.
        left_out: Why there are no rows.
    """

    turn: str
    conversation: str = ""
    stand_ins: tuple[str, ...] = ()
    lines: tuple[dict[str, Any], ...] = ()
    reasons: dict[str, str]
    rows: tuple[dict[str, Any], ...] = ()
    left_out: str = ""


class PlannerTrainer:
    """A planner whose model gives prepared answers, so that its prompts are those of a real run."""

    def __init__(self, planner_class: type[ReActPlanner | PreActPlanner], agent: Agent) -> None:
        self._answer = ""
        self._model = ScriptedChatModel(lambda _: self._answer)
        reasoner = Reasoner(self._model, mode="direct", max_candidates=1, on_unsatisfied="raise")
        self.planner = planner_class(reasoner, agent)

    def make_chats(self, turn: RecordedTurn, sheet: ReasonSheet) -> list[Chat]:
        """Return a chat for each action of a turn: in Algorithm 1 the pairs (Ip, Op).

        The prompt before a call shows the results of the calls before it, and the prompt before the answer all.

        Raises:
            InputError: The planner would not do one of these actions.
        """
        plans = reconstruct_plans(turn, sheet)
        if not turn.answer:
            if isinstance(self.planner, PreActPlanner):
                raise InputError("there is no answer at the end, so nobody knows the plan")
            plans = plans[:-1]
        results = turn.conversation.current_turn_results
        state: dict[str, Any] = {"messages": turn.history}
        chats = []
        for number, plan in enumerate(plans):
            answer = compose_answer(self.planner, turn, plan, results[:number])
            chat, update = self._take_action(state, answer)
            chats.append(chat)
            if number < len(turn.calls):
                recorded_call, result = turn.calls[number]
                call = update["messages"][-1].model_copy(update={"content": recorded_call.content})
                result = result.model_copy(update={"tool_call_id": call.tool_calls[0]["id"]})
                messages = state["messages"] + [call, result]
                state = state | update | {"messages": messages}
        return chats

    def _take_action(self, state: Any, answer: dict[str, Any]) -> tuple[Chat, dict[str, Any]]:
        """Return the planner's prompt and its answer as a chat, and the update that the planner makes of it."""
        try:
            value, _ = read_answer(self.planner.blueprint, "direct", json.dumps(answer))
        except ValidationError as error:
            raise InputError(describe_first_error(error)) from None
        self._answer = json.dumps(dump_in_mode(value, "direct"), ensure_ascii=False)
        self._model.calls.clear()
        try:
            with warnings.catch_warnings():
                # A recorded confirmation question has no record in this state, and needs none.
                warnings.filterwarnings("ignore", "agent .* asks the customer before it calls")
                update = self.planner.invoke(state)
        except UnsatisfiedError as error:
            complaint = error.attempts[-1].complaints[0].message
            # What follows tells the model what to do instead.
            reason = complaint.partition("; ")[0].partition(": ")[0]
            raise InputError(f"the planner would not do that: {reason}") from None
        (call,) = self._model.calls
        system, user = call.messages
        chat = [
            {"role": "system", "content": clean(system.text)},
            {"role": "user", "content": clean(user.text)},
            {"role": "assistant", "content": clean(self._answer)},
        ]
        return chat, update


def make_finetuning_examples(
    transcripts: Dataset,
    stage: Literal[1, 2],
    *,
    agent: Agent | None = None,
    tools: Any = None,
    reasons: Mapping[str, Mapping[str, str]] | None = None,
) -> Iterator[TurnExamples]:
    """Make examples of recorded conversations, turn by turn (Pre-Act 3.2.1, Algorithm 1).

    Each prompt is the one that the planner sends in mode `direct`, and each answer one that it has accepted.

    Args:
        transcripts: A file that `read_transcripts` reads, a transcript, or transcripts.
        stage: 1: ReAct, with thoughts that the record tells. 2: Pre-Act, with plans whose reasons it does not tell.
        agent: The agent whose instructions and tools the prompts show, as `move_guidelines_to_profile` gives them,
            because no record tells which guidelines were active; results of other agents are left out. None: those of
            each record.
        tools: The tools, where the records do not bring them: OpenAI definitions, LangChain tools, or schemas by name.
        reasons: What was written, by `turn` and question.

    Raises:
        InputError: The file cannot be read.
        ToolError: One of the `tools` has nothing but a name, or cannot be described.
    """
    get_trainer = _make_trainer_getter(stage, agent, tools)
    for number, record in enumerate(read_records(transcripts)):
        if isinstance(record, BrokenRecord):
            yield TurnExamples(turn="", reasons={}, left_out=str(record.error))
            continue
        problem = _find_result_problem(record, agent)
        try:
            trainer = get_trainer(record)
            problem = problem or _find_tool_problem(record, trainer)
        except Exception as error:  # whatever a broken schema of a tool leads to
            problem = problem or f"the tools cannot be used: {error}"
        if problem:
            yield TurnExamples(turn="", reasons={}, left_out=problem)
            continue
        conversation = clean(record.task or record.id or f"conversation {number}")
        for turn in split_turns(record):
            examples = _make_turn_examples(turn, trainer, reasons or {})
            yield examples.model_copy(update={"conversation": conversation, "stand_ins": record.stand_ins})


def move_guidelines_to_profile(agent: Agent) -> Agent:
    """Return the agent for a planner alone: its profile lists its guidelines, and any of its tools may be called."""
    instructions = agent.describe_instructions()
    return agent.replace(profile=instructions, guidelines=(), tools=tuple(agent.toolbox.values()))


def _make_trainer_getter(
    stage: Literal[1, 2], agent: Agent | None, tools: Any
) -> Callable[[Transcript], PlannerTrainer]:
    """Return a function that makes the trainer for a record; most records share one."""
    planner_class = ReActPlanner if stage == 1 else PreActPlanner
    if agent is not None:
        trainer = PlannerTrainer(planner_class, move_guidelines_to_profile(agent))
        return lambda _: trainer
    known_definitions = None if tools is None else make_openai_definitions(tools)

    @lru_cache(maxsize=8)
    def make_trainer(instructions: str, definitions: str) -> PlannerTrainer:
        record_tools = [_make_tool(definition["function"]) for definition in json.loads(definitions)]
        return PlannerTrainer(planner_class, Agent("Agent", instructions or PROFILE, tools=record_tools))

    def get_trainer(record: Transcript) -> PlannerTrainer:
        definitions = known_definitions
        if definitions is None:
            definitions = make_openai_definitions(record.extra.get("tools") or record.tools)
        return make_trainer(record.instructions, json.dumps(definitions))

    return get_trainer


def _make_tool(function: Mapping[str, Any]) -> StructuredTool:
    """Return a tool with this description, which is never run."""
    return StructuredTool(
        name=function["name"],
        description=function["description"] or name_in_words(function["name"]),
        args_schema=function["parameters"],
        func=lambda **_: None,
    )


def _make_turn_examples(
    turn: RecordedTurn, trainer: PlannerTrainer, reasons: Mapping[str, Mapping[str, str]]
) -> TurnExamples:
    texts = turn.conversation.render_lines(range(len(turn.conversation.lines)))
    lines = [text for _, text in sorted(texts.items())]
    key = fingerprint(lines).split()[-1][:16]
    sheet = ReasonSheet(reasons.get(key, {}))
    chats: list[Chat] = []
    left_out = ""
    try:
        chats = trainer.make_chats(turn, sheet)
    except InputError as error:
        left_out = str(error)
    is_planned = isinstance(trainer.planner, PreActPlanner)
    is_unfilled = is_planned and not all(sheet.answers.values())
    answer_key = "unfilled" if is_unfilled else "completion"
    return TurnExamples(
        turn=key,
        lines=tuple(map(json.loads, lines)),
        reasons=sheet.answers,
        rows=tuple({"prompt": chat[:2], answer_key: chat[2:]} for chat in chats),
        left_out=left_out,
    )


def _find_result_problem(record: Transcript, agent: Agent | None) -> str:
    """Return why nothing can be learned from a result of an evaluation, or ""."""
    stored = parse_stored_conversation(record.extra)
    if stored is None or stored.record is None:
        return ""
    if agent is not None:
        name = record.extra.get("agent", agent.name)
        if name != agent.name:
            return f"their agent is {name!r}, not {agent.name!r} (give its file with --agent)"
    if "active" in stored.record.expected:
        return "only the matcher was asked, so there is no reply to learn"
    if stored.record.outcome.get("success") is False and not _list_called_tools(record):
        return "the agent called no tool, and its world says that it failed"
    return ""


def _find_tool_problem(record: Transcript, trainer: PlannerTrainer) -> str:
    """Return why the calls of a record cannot be learned, or ""."""
    unknown = sorted(_list_called_tools(record) - trainer.planner.tools.keys())
    if WORLD_CALL in unknown:
        return _WORLD_MOVE
    if unknown:
        return f"the tool {unknown[0]!r} is not defined (give it with --tools or --agent)"
    return ""


def _list_called_tools(record: Transcript) -> set[str]:
    return {call.tool for _, call in record.enumerate_calls() if call.malformed is None}
