"""Speaking: think, speak or act, one move at a time, under rules that code holds (ReSpAct, section 3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import Move, PlannedCall, ToolInsight
from arq_graph.errors import InputError, ReasoningError
from arq_graph.nodes.blueprint_node import (
    PROMPTS,
    NodeSettings,
    Steps,
    Update,
    checked,
    checked_agent,
    counted,
)
from arq_graph.nodes.channels import Reader, emit, our_channels
from arq_graph.nodes.choice import chosen as chosen_of
from arq_graph.nodes.confirmation import Agrees, Settled, put
from arq_graph.nodes.events import Spoke, ToolsDecided, total_usage
from arq_graph.nodes.events import Thought as ThoughtEvent
from arq_graph.nodes.gate import Gate
from arq_graph.nodes.speaking.calls import CallJudge, JudgedMove
from arq_graph.nodes.speaking.dialogue_acts import categorise, dialogue_acts_of
from arq_graph.nodes.speaking.examples import speaker_examples
from arq_graph.nodes.speaking.moves import ACT, SPEAK, THINK, Setting, move_blueprint, property_of
from arq_graph.nodes.speaking.policies import Policy, policies_of
from arq_graph.nodes.speaking.questions import SPEECH, fallback_statement, question_for
from arq_graph.nodes.speaking.standing import Standing, StandingOf
from arq_graph.nodes.spec_sections import designed, shown_tool, shown_variables
from arq_graph.nodes.strategy import Strategy, new_call, tools_of
from arq_graph.nodes.tool_arguments import ToolArguments
from arq_graph.nodes.worked_examples import Example, shown
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.reasoner import Reasoner

DEFAULT_STEPS: Mapping[Setting, int] = {"chat": 8, "task": 40}
"""How many steps a speaker makes unless set otherwise: calls of a turn; calls, actions and utterances of a task."""


@dataclass
class _Course:
    """What happened in one run of the node so far."""

    thoughts: list[str] = field(default_factory=list)
    answers: list[Answer[Any]] = field(default_factory=list)
    judged: list[JudgedMove] = field(default_factory=list)
    still_wanted: Sequence[str] = ()


class Speaker(Strategy):
    """Make the next move: think, speak, or act with a tool or in a world; write it as a message, and to `moves`.

    Thoughts change nothing outside and are part of the run that they lead to. Whatever the model answers, code holds:
    a call that the customer has to agree to runs only after code's own question and their yes; a value that no
    customer message and no tool told is put to them in the same way; there are at
    most `max_questions` questions with nothing done in between, and none comes twice in a row; nothing is said twice
    in a row, whatever was done in between. What is refused is asked for again within the reasoner's `max_candidates`;
    after that code asks the open question itself, or gives the agent's `fallback`. One run asks the model for at most
    `max_thoughts` + 1 moves.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification. Its tools are gated by its active guidelines, as for `ToolCaller`; those with
            `confirm` "customer" are the consequential ones.
        in_world: Whether there is a world to act in: `ActInWorld` takes its actions.
        setting: In a `chat`, speaking ends the turn. In a `task`, an utterance waits for its answer (in `Listen`)
            unless it ends the task.
        policies: The rules that are switched on: names of shipped ones, policies of your own; None: all shipped ones.
        dialogue_acts: What speech is limited to: `household`, or descriptions by name; None: free.
        max_steps: How many calls one turn of a chat may make (8), or calls, actions and utterances a task (40).
        max_thoughts: How many thoughts may come before one move.
        max_questions: How many questions may follow each other with nothing done in between; in a task, how many
            utterances that wait for an answer.
        max_results: From how many entries on a tool's result counts as too many.
        draft: Keep an utterance in `moves`, where `MessageReviser` finds it as its draft, in place of sending it; in
            a chat.
        agrees: What else is a yes of the customer's; see `Strategy`.
        temperature: 0.05 unless given; left out for models that take none or have one set.
        template: A replacement for the shipped prompt.
        examples: Worked examples in the prompt.
        reads: Further channels of the state that policies look at; a mapping names their types too.
        **settings: `mode`, `max_history_tokens`, `count_tokens`, `messages_key`: as for `BlueprintNode`.

    Raises:
        InputError: A setting is out of its range, or names a policy or preset that does not exist.
        ReasoningError: When run: the model gave no answer.
        StateError: When run: a channel holds another type.
    """

    module = "speaker"

    def __init__(
        self,
        model: BaseChatModel | str | Reasoner,
        agent: Agent,
        *,
        in_world: bool = False,
        setting: Setting = "chat",
        policies: Sequence[str | Policy] | None = None,
        dialogue_acts: str | Mapping[str, str] | None = None,
        max_steps: int | None = None,
        max_thoughts: int = 2,
        max_questions: int = 3,
        max_results: int = 5,
        draft: bool = False,
        agrees: Agrees | None = None,
        temperature: float | None = 0.05,
        template: str | Path = PROMPTS / "speaker.md",
        examples: Sequence[Example] | None = None,
        reads: Sequence[str] | Mapping[str, Any] = (),
        **settings: Unpack[NodeSettings],
    ) -> None:
        self.agent = checked_agent(agent)
        tools = tools_of(agent)
        self.setting = checked("setting", setting, Setting)
        self.draft = draft
        if draft and setting != "chat":
            raise InputError("draft belongs to a chat: in a task what is said waits for its answer")
        self.max_steps = counted("max_steps", DEFAULT_STEPS[setting] if max_steps is None else max_steps)
        self.max_thoughts = counted("max_thoughts", max_thoughts, least=0)
        self.max_questions = counted("max_questions", max_questions, least=0)
        self.max_results = counted("max_results", max_results)
        self.policies = policies_of(policies)
        self.dialogue_acts = dialogue_acts_of(dialogue_acts)
        self.in_world = in_world
        if in_world and ACT in agent.toolbox:
            raise InputError(
                f"a tool is called {ACT!r}, which is how actions in the world are called: rename it"
            )
        self.moves = move_blueprint(
            list(tools.values()),
            in_world=in_world,
            setting=setting,
            policies=self.policies,
            dialogue_acts=self.dialogue_acts,
            confirmed=bool(agent.confirmed_by("customer")),
        )
        super().__init__(
            model,
            agent,
            self.moves.blueprint,
            template,
            agrees=agrees,
            temperature=temperature,
            reads=reads,
            **settings,
        )
        examples = speaker_examples() if examples is None else examples
        self.head = self.template.render(
            "head",
            {
                **designed(agent),
                "guided": bool(agent.guidelines),
                "in_world": in_world,
                "setting": setting,
                "policies": [{"name": each.name, "rule": each.rule} for each in self.policies.values()],
                "dialogue_acts": dict(self.dialogue_acts),
                "tools": [self._shown_tool(tool) for tool in self.tools.values()],
                "examples": [shown(example, self.mode) for example in examples],
            },
        )
        self._stands = StandingOf(
            self.agent, self.tools, self.policies, setting, self.max_steps, self.max_questions
        )
        self._labels = {name: tool.labels for name, tool in self.tools.items()}

    def _shown_tool(self, tool: ToolArguments) -> dict[str, Any]:
        entry = shown_tool(self.agent, tool)
        if property_of(tool.name) != tool.name:
            entry["key"] = property_of(tool.name)
        return entry

    def channels(self) -> dict[str, Any]:
        """What it reads and writes besides the messages."""
        world = ("world",) if self.in_world else ()
        return {**super().channels(), **our_channels("moves", *world)}

    def objections(self, gate: Gate) -> Callable[[str], str]:
        """A policy that forbids the tool now."""
        rules = self._stands.rules(gate.state, gate.conversation, ())
        return lambda tool: f"a policy forbids {tool} now" if tool in rules.forbidden else ""

    def decide(self, gate: Gate, settled: Settled) -> Steps:
        """Think as often as it may, then speak or act."""
        state = gate.state
        variables = shown_variables(self.agent, state)
        standing = self._stands(gate, settled, variables)
        course = _Course()
        while True:
            check = self._check(standing, course)
            tail = standing.tail(variables, course.thoughts, self.max_thoughts, self.max_results)
            prompt = self.prompt(standing.conversation, tail, head=self.head)
            (answer,) = yield [Question(self.blueprint, prompt, check=check)]
            if isinstance(answer, ReasoningError):
                raise answer
            course.answers.append(answer)
            made = course.judged[-1]
            if made.kind != THINK or made.refusals:
                return self._update(state, standing, course)
            course.thoughts.append(made.text)
            emit(ThoughtEvent(turn=standing.conversation.turn, text=made.text))

    def _check(self, standing: Standing, course: _Course) -> Any:
        def check(value: Any) -> list[Complaint]:
            key, chosen = chosen_of(value.move)
            course.still_wanted = getattr(value, "still_wanted", None) or ()
            name = type(value).__name__
            if key == THINK:
                move = standing.judge_thought(name, chosen.thought, course.thoughts, self.max_thoughts)
            elif key == SPEAK:
                judge = standing.speech_judge(name, self.max_results)
                move = judge.judge(chosen, self._waiting(standing, course))
            elif key == ACT and self.in_world:
                move = standing.judge_action(name, chosen.action)
            else:
                tool = self.moves.tools[key]
                move = CallJudge(name, key, tool, standing.situation, standing.grounds, standing.rules).judge(
                    chosen
                )
            course.judged.append(move)
            return [*move.faults, *move.refusals]

        return check

    def _waiting(self, standing: Standing, course: _Course) -> list[ToolInsight]:
        """The calls that code puts to the customer below what is said: the newest version of each tool's."""
        situation = standing.situation
        again = [
            *situation.settled.insights,
            *situation.settled.still_wanted(situation.gate, self.tools, course.still_wanted),
        ]
        proposed = {i.tool: i for each in course.judged for i in each.insights if i.kind == "confirm"}
        return [*(each for each in again if each.kind == "confirm"), *proposed.values()]

    def _update(self, state: Reader, standing: Standing, course: _Course) -> Update:
        made = course.judged[-1]
        waiting = self._waiting(standing, course)
        if made.refusals:
            made = self._recourse(standing, course.judged, waiting)
        waiting = waiting if made.kind == "speak" else []
        settled = [each for each in standing.situation.settled.insights if each.kind != "confirm"]
        insights = [*settled, *_decided(course.judged, made, waiting), *waiting]
        faults = tuple(map(str, course.answers[-1].complaints))
        after = standing.conversation.lines[-1].id if standing.conversation.lines else ""
        record = Move(turn=standing.task, kind=made.kind, text=made.text, after=after, faults=faults)
        kept = {
            "calls": sum(len(answer.attempts) for answer in course.answers),
            "usage": total_usage(course.answers),
        }
        turn = standing.conversation.turn
        messages: list[BaseMessage] = []
        agreements: Update = {}
        if made.kind == "act":
            call = made.call or PlannedCall(tool=ACT, arguments={"action": made.text})
            messages.append(self.calling([new_call(call.tool, call.arguments)]))
            emit(ToolsDecided(turn=turn, decisions=tuple(insights), **kept))
        else:
            said = self._labelled(made, bool(waiting))
            if not self.draft:
                name = self.reply_name or self.agent.name
                reply = AIMessage(made.text, id=str(uuid4()), name=name, response_metadata={SPEECH: said})
                reply, agreements = put(self.agent, state, reply, waiting)
                messages.append(reply)
            labels = {"category": said["category"], "dialogue_act": said.get("dialogue_act")}
            record = record.model_copy(
                update={**labels, "by_code": made.speech is None, "questions_left": standing.row.left}
            )
            heard = {name: said[name] for name in ("asks", "waits")}
            emit(
                Spoke(
                    turn=turn,
                    text=made.text,
                    **labels,
                    **heard,
                    draft=self.draft,
                    decisions=tuple(insights),
                    faults=faults,
                    **kept,
                )
            )
        thoughts = [
            Move(turn=standing.task, kind="think", text=text, after=after) for text in course.thoughts
        ]
        return {
            "moves": state.written("moves", [*standing.moves, *thoughts, record]),
            **agreements,
            **self.update(standing.situation.gate, insights, messages),
        }

    def _labelled(self, made: JudgedMove, put_below: bool) -> dict[str, Any]:
        """What is kept of an utterance, beside its words: its category comes after it (Table 5)."""
        speech = made.speech
        waits = self.setting == "task" and (
            put_below or (made.asks if speech is None else not speech.ends_task)
        )
        said: dict[str, Any] = {"asks": made.asks or waits, "waits": waits}
        if speech is None:
            fails, believes = not (made.asks or put_below), put_below
            said["category"] = categorise(
                asks=made.asks or put_below, mentions_failure=fails, states_belief=believes
            )
            return said
        said["category"] = categorise(
            asks=made.asks,
            mentions_failure=speech.mentions_failure,
            closes=speech.closes,
            states_belief=speech.states_belief,
            offers_choice=speech.offers_choice,
        )
        if self.dialogue_acts:
            said["dialogue_act"] = speech.dialogue_act
        return said

    def _recourse(
        self, standing: Standing, judged: Sequence[JudgedMove], waiting: Sequence[ToolInsight]
    ) -> JudgedMove:
        """What is done where no acceptable move came: the open question, or a statement; code makes both."""
        last = judged[-1]
        if waiting:
            return JudgedMove("speak", "")
        if last.kind == "act" and last.call is None and last.text and not standing.is_over:
            return replace(last, refusals=())  # the world refuses it, and counts it
        asked = next((each for each in reversed(judged) if each.insights), None)
        question = question_for(asked.insights, self._labels) if asked else None
        may_ask = not (standing.is_over and self.setting == "task")
        if asked and question and may_ask and not standing.row.faults(question, asks=True):
            return JudgedMove("speak", question, insights=asked.insights, asks=True)
        return JudgedMove("speak", fallback_statement(self.agent))


def _decided(
    judged: Sequence[JudgedMove], made: JudgedMove, waiting: Sequence[ToolInsight]
) -> list[ToolInsight]:
    """What is kept about calls: what was made, what is asked for, and what was not done."""
    every = [insight for each in judged for insight in each.insights]
    every += [insight for insight in made.insights if insight not in every]
    found: list[ToolInsight] = []
    for insight in every:
        if insight in waiting:
            continue
        runs = insight.kind == "run" and made.call is not None and insight in made.insights
        asks = insight.kind in ("missing", "invalid") and made.kind == "speak" and made.asks
        if not (runs or asks):
            insight = insight.model_copy(update={"kind": "declined", "argument": None})
        found.append(insight)
    return found
