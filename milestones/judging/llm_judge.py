"""A chat model as judge (Pre-Act, 4.3 and Appendix H): it is asked what code cannot decide, and code checks it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.blueprint import batch_blueprint, in_batches
from arq_graph.milestones.judging.bounds import Budget
from arq_graph.milestones.judging.hearing import Answers, Hearing, OnFailure
from arq_graph.milestones.judging.judge import in_question
from arq_graph.milestones.judging.judgement import Judgement, Remark
from arq_graph.milestones.judging.shown import (
    ShownGraph,
    fitted_tools,
    listed,
    milestone_ids,
    shown_graph,
    shown_instructions,
    shown_part,
    shown_tools,
)
from arq_graph.milestones.judging.steps import Steps, shown_steps
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.transcript import Transcript
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.conversation import CountTokens, estimate_tokens
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.templates import PromptTemplate

PROMPTS = Path(__file__).parent.parent / "prompts"
TEMPERATURE_OF_VOTES = 0.7
_CANDIDATES = 2


class LLMJudge:
    """A chat model that judges the milestones which code cannot decide, and may veto calls.

    It sees the agent's instructions and tools, the milestones, what code observed, and the conversation as
    numbered steps. What it says counts as far as code finds its evidence: a quote that is not in the step it
    names, or a step that does not exist, is asked for once more and then leaves the milestone undecided, with a
    remark. It grants no call that code did not see. Of an FC it names the first genuine call, which vetoes those
    before it, or says that none is. Of an NFC it names the first step that comes after its dependencies.

    One conversation costs at most `votes` × batches asks, in parallel, each with at most the reasoner's
    `max_attempts` + 1 answers. The prompt's head does not depend on the conversation, unless its record brings
    the instructions and tools; all asks about one conversation begin with the same text, as long as the list of
    milestones is within `max_section_tokens`.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        tools: The agent's tools, as the judge is shown them; None: those that the transcript brings.
        votes: How often each milestone is asked about. The verdict is what more than half of the votes say, step
            included; where there is no such majority it stays undecided.
        veto: Whether calls are judged, too; otherwise only NFCs are.
        instructions: What the agent was told; None: what the transcript brings.
        date: The day of the conversation, where the prompt is to name one.
        milestones_per_call: How many milestones one ask is about, 1 or more.
        mode: `arq` (all queries), `cot` (free reasoning, then the response) or `direct`; None: the reasoner's.
        temperature: 0 with one vote and 0.7 with several, unless given; a model that has one of its own keeps it,
            which with several votes should not be 0. It belongs to a `Reasoner` where one is given.
        template: A replacement for the shipped prompt.
        max_transcript_tokens: Bounds the numbered steps, and nothing else of a prompt. Over it, the longest texts
            of the conversation are shortened, which the prompt and a remark say; a conversation that is too long
            even so is not judged, which a remark says.
        max_section_tokens: Bounds what stands beside the steps, each by itself: the agent's instructions, its
            tools, the milestones. Over it, instructions and tools are shortened, and an ask shows the milestones
            that it is about and what they depend on instead of all, with long descriptions cut; a remark says each.
        count_tokens: How the tokens of both are counted.
        on_failure: What becomes of milestones for which the model gave no answer at all: `raise`, or leave them
            `undecided` with a remark. One vote of several that fails is left out, with a remark.

    Raises:
        InputError: A setting is out of its range, or the model is none.
        PromptError: The template cannot be read or lacks a block.
        ToolError: A tool has no name.
    """

    def __init__(
        self,
        model: BaseChatModel | str | Reasoner,
        *,
        tools: Any = None,
        votes: int = 1,
        veto: bool = True,
        instructions: str | None = None,
        date: str | datetime.date | None = None,
        milestones_per_call: int = 8,
        mode: Mode | None = None,
        temperature: float | None = None,
        template: str | Path = PROMPTS / "milestone_judge.md",
        max_transcript_tokens: int = 60_000,
        max_section_tokens: int = 20_000,
        count_tokens: CountTokens = estimate_tokens,
        on_failure: OnFailure = "raise",
    ) -> None:
        self.votes = _at_least_one("votes", votes)
        self.milestones_per_call = _at_least_one("milestones_per_call", milestones_per_call)
        self.max_transcript_tokens = _at_least_one("max_transcript_tokens", max_transcript_tokens)
        self.max_section_tokens = _at_least_one("max_section_tokens", max_section_tokens)
        if on_failure not in ("raise", "undecided"):
            raise InputError(f'on_failure is {on_failure!r}: it must be "raise" or "undecided"')
        if temperature is None:
            temperature = 0.0 if votes == 1 else TEMPERATURE_OF_VOTES
        self.reasoner = (
            model
            if isinstance(model, Reasoner)
            else Reasoner(model, module="judge", mode=mode or "arq", temperature=temperature)
        )
        self.mode: Mode = mode or self.reasoner.mode
        self.veto = veto
        self.on_failure: OnFailure = on_failure
        self.template = PromptTemplate(template, PROMPTS, needs=("head", "tail"))
        self._tools = None if tools is None else shown_tools(listed(tools))
        self._instructions = instructions
        self._date = None if date is None else str(date)
        self._count_tokens: Callable[[str], int] = count_tokens
        self._section = Budget(self.max_section_tokens, count_tokens)

    def __call__(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation.

        Args:
            graph: The milestones.
            transcript: What happened.
            observations: What code observed in it, as `observe` gives it.

        Raises:
            ReasoningError: The model gave no answer, and `on_failure` is "raise".
            SpecError: The graph cannot be measured on.
        """
        hearing, questions = self._hearing(graph, transcript, observations)
        return hearing.judgement(self._by_batch(self.reasoner.ask_all(questions, mode=self.mode)))

    async def ajudge(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation without blocking; arguments and errors are those of a call."""
        hearing, questions = self._hearing(graph, transcript, observations)
        return hearing.judgement(self._by_batch(await self.reasoner.aask_all(questions, mode=self.mode)))

    def _hearing(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> tuple[Hearing, list[Question[Any]]]:
        asked = in_question(graph, observations, veto=self.veto)
        steps = shown_steps(transcript, self.max_transcript_tokens, self._count_tokens) if asked else None
        remarks = _remarks(steps, self.max_transcript_tokens) if asked else ()
        batches = tuple(asked[part] for part in in_batches(len(asked), self.milestones_per_call))
        if steps is None:
            return Hearing(graph, transcript, observations, (), self.on_failure, remarks), []
        agent, cuts = self._agent(transcript)
        whole = shown_graph(graph, observations, self._section)
        if whole is None:
            cuts.append(
                Remark(
                    "each ask showed the judge a part of the milestones only, with long descriptions cut short"
                )
            )
        hearing = Hearing(graph, transcript, observations, batches, self.on_failure, (*remarks, *cuts))
        ids = milestone_ids(graph)
        questions: list[Question[Any]] = []
        for number, batch in enumerate(batches, start=1):
            shown = whole or shown_part(graph, observations, batch, self._section)
            head = SystemMessage(self.template.render("head", {**agent, "milestones": shown.milestones}))
            blueprint = batch_blueprint(
                tuple((ids[milestone.name], milestone.type == "FC") for milestone in batch)
            )
            for vote in range(1, self.votes + 1):
                now: dict[str, Any] = {"judge": [ids[milestone.name] for milestone in batch]}
                name = f"batch-{number}"
                if self.votes > 1:
                    # Votes on one text would be one vote where a cache of answers stands before the model.
                    now["vote"] = vote
                    name = f"{name}-vote-{vote}"
                messages: list[BaseMessage] = [head, self._body(shown, steps, now)]
                check = partial(hearing.complaints, batch)
                candidates = min(_CANDIDATES, self.reasoner.max_candidates)
                questions.append(Question(blueprint, messages, check, name, candidates))
        return hearing, questions

    def _agent(self, transcript: Transcript) -> tuple[dict[str, Any], list[Remark]]:
        """What the prompt says of the agent, and what of it is left out."""
        remarks = []
        told = self._instructions if self._instructions is not None else transcript.instructions
        instructions = told and shown_instructions(told, self._section)
        if instructions != told:
            remarks.append(Remark("the judge was not shown the middle of the agent's instructions"))
        all_tools = self._tools if self._tools is not None else shown_tools(transcript.tools)
        tools = fitted_tools(all_tools, self._section)
        if tools != all_tools:
            what = "all that the agent's tools say of themselves" if tools else "the agent's tools"
            remarks.append(Remark(f"the judge was not shown {what}"))
        return {"instructions": instructions, "tools": tools, "date": self._date}, remarks

    def _body(self, shown: ShownGraph, steps: Steps, now: dict[str, Any]) -> HumanMessage:
        tail = self.template.render("tail", {"seen": shown.seen, "now": now})
        return HumanMessage(f"<steps>{steps.text}</steps>\n{tail}")

    def _by_batch(self, answers: Answers) -> list[Answers]:
        return [answers[start : start + self.votes] for start in range(0, len(answers), self.votes)]


def _remarks(steps: Steps | None, max_tokens: int) -> tuple[Remark, ...]:
    if steps is None:
        return (
            Remark(
                "not judged: the conversation is too long for the judge, even with each text cut short; raise "
                f"max_transcript_tokens (it is {max_tokens})"
            ),
        )
    if steps.shortened:
        numbers = ", ".join(map(str, steps.shortened[:20])) + (", …" if len(steps.shortened) > 20 else "")
        return (Remark(f"the judge was not shown the middle of the texts of steps {numbers}"),)
    return ()


def _at_least_one(setting: str, value: int) -> int:
    if not isinstance(value, int) or value < 1:
        raise InputError(f"{setting} is {value!r}: it must be a number from 1 on")
    return value
