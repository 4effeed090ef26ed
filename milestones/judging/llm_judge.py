"""A chat model as judge (Pre-Act, 4.3 and Appendix H): it is asked what code cannot decide, and code checks it."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import create_model

from arq_graph.errors import require_count
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judgement, select_milestones_to_judge
from arq_graph.milestones.judging.votes import Hearing, Vote, milestone_ids
from arq_graph.milestones.matching import Observations
from arq_graph.milestones.milestone import Milestone
from arq_graph.milestones.tool_schemas import get_tool_definitions
from arq_graph.milestones.transcript import Event, Message, Result, Transcript
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond
from arq_graph.reasoning.reasoner import ModelLike, make_reasoner
from arq_graph.reasoning.sections import as_json
from arq_graph.reasoning.steps import aperform_steps, perform_steps
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "milestone_judge.md"
TEMPERATURE_OF_VOTES = 0.7
MILESTONES_PER_CALL = 8
_CANDIDATES = 2
_REASON = "In one or two sentences: what was accomplished, or what went wrong?"
_QUOTE = (
    "What shows it, copied word for word from that one step: a few words or more, or the whole text where it is "
    "shorter; null if nothing is to be quoted."
)


class StateJudgement(ARQ):
    """Was the state or condition met, and at which step first?"""

    milestone: str = reinstate("The milestone's name and what it means, word for word.")
    dependencies_reached_at: str = query(
        "At which step was each of its dependencies reached, as far as it was?"
    )
    evidence: list[str] = query(
        "What in the conversation speaks for it or against it, said outright or implied? Each with its step.",
        max_length=6,
    )
    only_claimed_mixed_up_or_oversimplified: str | None = query(
        "Is any of it invented in part, taken from something else, only claimed, or put so simply that its meaning "
        "changed? What exactly?"
    )
    reason: str = respond(_REASON)
    step: int | None = respond(
        "Number of the first step that counts, as the rules say; null if there is none."
    )
    quote: str | None = respond(_QUOTE)
    achieved: bool | None = respond("Was it met? null: the conversation does not tell.")


class CallJudgement(ARQ):
    """Is one of the tool's calls that code saw genuine, and which is the first?"""

    milestone: str = reinstate("The milestone's name and what it means, word for word.")
    intent_of_the_calls: str = query(
        "Which intent of the user, stated or implicit, was each listed call to serve? Each with its step."
    )
    where_the_arguments_come_from: list[str] = query(
        "For each argument of each listed call: which step gave its value?", max_length=24
    )
    wrong_irrelevant_or_invented_arguments: list[str] = query(
        "Arguments that are wrong, in the wrong format, irrelevant to the intent, or given by nobody before: call's "
        "step, name, value.",
        max_length=12,
    )
    earlier_context_ignored: str | None = query(
        "What said or found before a call, such as a preference or a correction, does the call ignore?"
    )
    observation_misread: str | None = query(
        "What of a call's result did the agent misread, mix up or oversimplify in what it said or did next?"
    )
    reason: str = respond(_REASON)
    step: int | None = respond("Step of the first genuine call; null if there is none.")
    quote: str | None = respond(
        "What speaks against a call that is not genuine, copied word for word from any step; null if none is."
    )
    achieved: bool | None = respond(
        "Is one of the listed calls genuine? null: the conversation does not tell."
    )


@lru_cache(maxsize=512)
def _batch_blueprint(kinds: tuple[tuple[str, bool], ...]) -> type[ARQ]:
    """One blueprint for several milestones: the intents once, then a required property for each.

    `kinds` are their ids, each with whether it is a call (an FC). The schema of equal batches is prepared once.
    """
    fields: dict[str, Any] = {
        "intent_of_the_conversation": (str, query("What does the user want, in one sentence?")),
        "implicit_intents": (
            list[str],
            query("What does the user want or agree to without saying it outright?", max_length=6),
        ),
    }
    for id, is_call in kinds:
        judgement = CallJudgement if is_call else StateJudgement
        fields[id] = (judgement, respond(str(judgement.__doc__)))
    return create_model("MilestoneJudgements", __base__=ARQ, __doc__="Judge each milestone.", **fields)


class LLMJudge:
    """A chat model that judges the milestones which code cannot decide, and may veto calls.

    It sees the agent's instructions and tools, the milestones, what code observed, and the conversation as
    numbered steps. What it says counts as far as code finds its evidence: a quote that is not in the step it
    names, or a step that does not exist, is asked for once more and then leaves the milestone undecided, with a
    remark. It grants no call that code did not see. Of an FC it names the first genuine call, which vetoes those
    before it, or says that none is. Of an NFC it names the first step that comes after its dependencies.

    One conversation costs at most `votes` × batches asks, in parallel, each with at most the reasoner's
    `max_attempts` + 1 answers. The prompt's head does not depend on the conversation, unless its record brings
    the instructions and tools.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you. Unless that
            says otherwise, the mode is `arq`, and the temperature, unless the model has one, 0 with one vote and 0.7
            with several.
        tools: The agent's tools, as the judge is shown them; None: those that the transcript brings.
        votes: How often each milestone is asked about. The verdict is what more than half of the votes say, step
            included; where there is no such majority it stays undecided. A vote that fails is left out.
        instructions: What the agent was told; None: what the transcript brings.

    Raises:
        InputError: A setting is out of its range, or the model is none.
        ToolError: A tool has no name, or cannot be described.
    """

    def __init__(
        self,
        model: ModelLike,
        *,
        tools: Any = None,
        votes: int = 1,
        instructions: str | None = None,
    ) -> None:
        self.votes = require_count("votes", votes)
        self.reasoner = make_reasoner(model, "judge", 0.0 if votes == 1 else TEMPERATURE_OF_VOTES)
        self.template = PromptTemplate(PROMPT, PROMPT.parent)
        self.tools = None if tools is None else get_tool_definitions(tools)
        self.instructions = instructions

    def __call__(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation, of which code observed what `observe` gives; it raises what `score` does."""
        return perform_steps(self._asking(Hearing(graph, transcript, observations)), self.reasoner.ask_all)

    async def ajudge(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation without blocking."""
        asking = self._asking(Hearing(graph, transcript, observations))
        return await aperform_steps(asking, self.reasoner.aask_all)

    def _asking(self, hearing: Hearing) -> Generator[list[Question[Any]], Sequence[Vote], Judgement]:
        """Ask about each batch of milestones, once for each vote, all at the same time."""
        asked = select_milestones_to_judge(hearing.graph, hearing.observations)
        starts = range(0, len(asked), MILESTONES_PER_CALL)
        batches = [asked[start : start + MILESTONES_PER_CALL] for start in starts]
        votes = yield self._questions(hearing, batches)
        said = Judgement()
        for number, batch in enumerate(batches):
            said += hearing.judgement(batch, votes[number * self.votes : (number + 1) * self.votes])
        return said

    def _questions(self, hearing: Hearing, batches: Sequence[Sequence[Milestone]]) -> list[Question[Any]]:
        graph, transcript = hearing.graph, hearing.transcript
        told = {
            "instructions": transcript.instructions if self.instructions is None else self.instructions,
            "tools": _shown_tools(
                get_tool_definitions(transcript.tools) if self.tools is None else self.tools
            ),
            "milestones": _shown_milestones(graph),
        }
        head = SystemMessage(self.template.render("head", told))
        steps = [as_json(_shown_step(*each)) for each in transcript.enumerate_events()]
        body = "<steps>[\n" + ",\n".join(steps) + "\n]</steps>\n"
        ids, events = milestone_ids(graph), hearing.observations.events
        seen = {id: list(events[name]) for name, id in ids.items() if events.get(name)}
        candidates = min(_CANDIDATES, self.reasoner.settings.max_candidates)
        questions = []
        for number, batch in enumerate(batches, start=1):
            blueprint = _batch_blueprint(tuple((ids[each.name], each.type == "FC") for each in batch))
            check = partial(hearing.complaints, batch)
            for vote in range(1, self.votes + 1):
                # If a cache stands before the model, votes on the same text would all be one vote.
                which = {"vote": vote} if self.votes > 1 else {}
                if transcript.history:
                    which["from_step"] = transcript.history + 1
                now = {"judge": [ids[each.name] for each in batch], **which}
                tail = self.template.render("tail", {"seen": seen, "now": now})
                name = f"batch-{number}-vote-{vote}"
                prompt = [head, HumanMessage(body + tail)]
                questions.append(Question(blueprint, prompt, check, name, candidates))
        return questions


def _shown_step(number: int, event: Event) -> dict[str, Any]:
    step: dict[str, Any] = {"step": number}
    if isinstance(event, Message):
        return {**step, "from": event.speaker, "text": event.text}
    if isinstance(event, Result):
        step |= {"from": "tool", "tool": event.tool, "result": event.text}
        return step | _said({"of_step": event.call, "failed": event.failed})
    step |= {"from": "agent", "calls": event.tool}
    if event.malformed is not None:
        return {**step, "malformed_arguments": event.malformed}
    return {**step, "arguments": dict(event.arguments)}


def _shown_milestones(graph: MilestoneGraph) -> list[dict[str, Any]]:
    """What the milestones mean, and what comes before each."""
    ids = milestone_ids(graph)
    shown = []
    for milestone in graph.milestones:
        is_call = milestone.type == "FC"
        kind = "join" if milestone.is_derived else "call" if is_call else "state"
        more = {
            "description": milestone.description,
            "tool": milestone.tool_name if is_call else None,
            "arguments": milestone.model_dump(mode="json")["arguments"],
            "dependencies": [ids.get(name, name) for name in milestone.dependencies],
            "requires": milestone.requires if len(milestone.dependencies) > 1 else None,
            "holds": milestone.holds,
        }
        shown.append({"id": ids[milestone.name], "type": kind, "name": milestone.name, **_said(more)})
    return shown


def _shown_tools(definitions: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = {"name": "name", "description": "description", "parameters": "arguments"}
    return [_said({shown: each.get(key) for key, shown in keys.items()}) for each in definitions]


def _said(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", False, [], {})}
