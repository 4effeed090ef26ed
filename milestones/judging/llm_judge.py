"""A chat model as judge (Pre-Act, 4.3 and Appendix H): it is asked what code cannot decide, and code checks it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph.errors import InputError
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.blueprint import batch_blueprint
from arq_graph.milestones.judging.judge import in_question
from arq_graph.milestones.judging.judgement import Judgement, Remark
from arq_graph.milestones.judging.shown import (
    cut,
    fitted,
    milestone_ids,
    shown_milestones,
    shown_steps,
    shown_tools,
    with_dependencies,
)
from arq_graph.milestones.judging.votes import Hearing, Vote
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.observations import Observations
from arq_graph.milestones.tool_schemas import tool_definitions
from arq_graph.milestones.transcript import Transcript
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.blueprint import Mode
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.sections import as_json
from arq_graph.reasoning.templates import PromptTemplate

PROMPTS = Path(__file__).parent.parent / "prompts"
TEMPERATURE_OF_VOTES = 0.7
SECTION_TOKENS = 20_000
"""What the agent's instructions, its tools and the milestones may take, each by itself."""
LONGEST_DESCRIPTION = 1_000
"""Characters of a milestone's description, where there is no room for all of them."""
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
    the instructions and tools. A prompt is bounded: instructions and tools of more than 20,000 tokens are cut,
    and of a longer list of milestones an ask shows its own and what they depend on; a remark says each.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you. Unless the model
            or the reasoner has a temperature, it is 0 with one vote and 0.7 with several.
        tools: The agent's tools, as the judge is shown them; None: those that the transcript brings.
        votes: How often each milestone is asked about. The verdict is what more than half of the votes say, step
            included; where there is no such majority it stays undecided. A vote that fails is left out.
        veto: Whether calls are judged, too; otherwise only NFCs are.
        instructions: What the agent was told; None: what the transcript brings.
        date: The day of the conversation, where the prompt is to name one.
        milestones_per_call: How many milestones one ask is about, 1 or more.
        mode: `arq` (all queries), `cot` (free reasoning, then the response) or `direct`; None: the reasoner's.
        template: A replacement for the shipped prompt.
        max_transcript_tokens: Bounds the numbered steps. Over it, the longest texts of the conversation are
            shortened; a conversation that is too long even so is not judged. A remark says either.

    Raises:
        InputError: A setting is out of its range, or the model is none.
        PromptError: The template cannot be read or lacks a block.
        ToolError: A tool has no name, or cannot be described.
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
        template: str | Path = PROMPTS / "milestone_judge.md",
        max_transcript_tokens: int = 60_000,
    ) -> None:
        counts = {"votes": votes, "milestones_per_call": milestones_per_call}
        for setting, value in {**counts, "max_transcript_tokens": max_transcript_tokens}.items():
            if value < 1:
                raise InputError(f"{setting} is {value}: it must be a number from 1 on")
        if not isinstance(model, Reasoner):
            temperature = 0.0 if votes == 1 else TEMPERATURE_OF_VOTES
            model = Reasoner(model, module="judge", mode=mode or "arq", temperature=temperature)
        self.reasoner = model
        self.mode: Mode = mode or model.mode
        self.votes = votes
        self.veto = veto
        self.milestones_per_call = milestones_per_call
        self.max_transcript_tokens = max_transcript_tokens
        self.template = PromptTemplate(template, PROMPTS, needs=("head", "tail"))
        self.tools = None if tools is None else tool_definitions(tools)
        self.instructions = instructions
        self.date = None if date is None else str(date)

    def __call__(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation.

        Args:
            graph: The milestones.
            transcript: What happened.
            observations: What code observed in it, as `observe` gives it.

        Raises:
            ReasoningError: The model gave no answer.
            SpecError: The graph cannot be measured on.
        """
        asked = _Asked(self, graph, transcript, observations)
        return asked.judgement(self.reasoner.ask_all(asked.questions, mode=self.mode))

    async def ajudge(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation without blocking; arguments and errors are those of a call."""
        asked = _Asked(self, graph, transcript, observations)
        return asked.judgement(await self.reasoner.aask_all(asked.questions, mode=self.mode))


class _Asked:
    """What a judge is asked about one conversation: a question for each batch of milestones and each vote."""

    def __init__(
        self, judge: LLMJudge, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> None:
        self.questions: list[Question[Any]] = []
        self._judge = judge
        self._hearing = Hearing(graph, transcript, observations)
        self._batches: list[tuple[Milestone, ...]] = []
        self._left_out: list[str] = []
        if asked := in_question(graph, observations, veto=judge.veto):
            size = judge.milestones_per_call
            self._ask([asked[start : start + size] for start in range(0, len(asked), size)])

    def _ask(self, batches: list[tuple[Milestone, ...]]) -> None:
        judge, graph, transcript = self._judge, self._hearing.graph, self._hearing.transcript
        steps = fitted(partial(shown_steps, transcript), judge.max_transcript_tokens)
        if steps is None:
            self._left_out.append(
                "not judged: the conversation is too long for the judge, even with each text cut short; raise "
                f"max_transcript_tokens (it is {judge.max_transcript_tokens})"
            )
            return
        if short := [str(step["step"]) for step in steps if "shortened_from_characters" in step]:
            numbers = ", ".join(short[:20]) + (", …" if len(short) > 20 else "")
            self._left_out.append(f"the judge was not shown the middle of the texts of steps {numbers}")
        agent = self._agent()
        every = shown_milestones(graph, graph)
        if fitted(lambda _: every, SECTION_TOKENS) is None:
            every = []
            self._left_out.append(
                "each ask showed the judge a part of the milestones only, with long descriptions cut short"
            )
        self._batches = batches
        ids, events = milestone_ids(graph), self._hearing.observations.events
        body = "<steps>[\n" + ",\n".join(map(as_json, steps)) + "\n]</steps>\n"
        candidates = min(_CANDIDATES, judge.reasoner.max_candidates)
        for number, batch in enumerate(batches, start=1):
            near = with_dependencies(graph, batch)
            milestones = every or shown_milestones(graph, near, LONGEST_DESCRIPTION)
            head = SystemMessage(judge.template.render("head", {**agent, "milestones": milestones}))
            seen = {id: list(events[name]) for name, id in ids.items() if name in near and events.get(name)}
            blueprint = batch_blueprint(tuple((ids[each.name], each.type == "FC") for each in batch))
            check = partial(self._hearing.complaints, batch)
            for vote in range(1, judge.votes + 1):
                # Votes on one text would be one vote where a cache of answers stands before the model.
                which = {"vote": vote} if judge.votes > 1 else {}
                now = {"judge": [ids[each.name] for each in batch], **which}
                tail = judge.template.render("tail", {"seen": seen, "now": now})
                name = f"batch-{number}-vote-{vote}"
                prompt = [head, HumanMessage(body + tail)]
                self.questions.append(Question(blueprint, prompt, check, name, candidates))

    def _agent(self) -> dict[str, Any]:
        """What the prompt says of the agent."""
        judge, transcript = self._judge, self._hearing.transcript
        told: Any = transcript.instructions if judge.instructions is None else judge.instructions
        if len(shown := fitted(partial(cut, "text", told), SECTION_TOKENS) or {}) > 1:
            told = shown
            self._left_out.append("the judge was not shown the middle of the agent's instructions")
        known = tool_definitions(transcript.tools) if judge.tools is None else judge.tools
        tools = fitted(partial(shown_tools, known), SECTION_TOKENS) or []
        if tools != shown_tools(known, None):
            what = "all that the agent's tools say of themselves" if tools else "the agent's tools"
            self._left_out.append(f"the judge was not shown {what}")
        return {"instructions": told, "tools": tools, "date": judge.date}

    def judgement(self, votes: Sequence[Vote]) -> Judgement:
        """What the answers come to, in the order of the questions."""
        said = Judgement(remarks=tuple(map(Remark, self._left_out)))
        for number, batch in enumerate(self._batches):
            each = votes[number * self._judge.votes : (number + 1) * self._judge.votes]
            said += self._hearing.judgement(batch, each)
        return said
