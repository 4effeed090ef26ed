"""A chat model as judge (Pre-Act, 4.3 and Appendix H): it decides what code cannot, and code checks its evidence."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import create_model

from arq_graph.errors import require_count
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judgement
from arq_graph.milestones.judging.votes import VoteCounter
from arq_graph.milestones.matching import Observations
from arq_graph.milestones.milestone import Milestone, MilestoneType
from arq_graph.milestones.tool_schemas import get_tool_definitions
from arq_graph.milestones.transcript import Event, Message, Result, Transcript
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond
from arq_graph.reasoning.reasoner import ModelLike, make_reasoner
from arq_graph.reasoning.sections import as_json
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "milestone_judge.md"
VOTING_TEMPERATURE = 0.7
MAX_CANDIDATES = 2

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


class LLMJudge:
    """A chat model that judges the milestones which code cannot decide, and may veto calls.

    It sees the agent's instructions and tools, the milestones, what code observed, and the conversation as
    numbered steps. A verdict counts only if code finds its evidence: if a quote isn't in the step it names, or
    the step doesn't exist, the model is asked once more; after that the milestone stays undecided, with a remark.
    For an FC the judge names the first genuine call, which vetoes those before it, or says that none is genuine; it
    can't add a call that code did not see. For an NFC it names the first step that comes after its dependencies.

    Each vote on up to 8 milestones is one question, all in parallel, each with at most the reasoner's
    `max_attempts` + 1 answers. The prompt's head does not depend on the conversation, unless its record brings
    the instructions and tools.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you. Defaults: the mode
            `arq`, and the model's own temperature, or else 0 with one vote and 0.7 with several.
        tools: The agent's tools, which the judge sees; None: those that the transcript brings.
        votes: How often each milestone is asked about. The verdict, step included, is that of more than half of the
            votes; without such a majority the milestone stays undecided. A vote that fails is left out.
        instructions: The agent's instructions; None: those that the transcript brings.

    Raises:
        InputError: A setting is out of its range, or the model isn't one.
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
        self.reasoner = make_reasoner(model, "judge", 0.0 if votes == 1 else VOTING_TEMPERATURE)
        self.template = PromptTemplate(PROMPT, PROMPT.parent)
        self.tools = None if tools is None else get_tool_definitions(tools)
        self.instructions = instructions

    def __call__(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation in which code observed `observations`; raises what `score` raises."""
        counter = VoteCounter(graph, transcript, observations)
        return counter.count(self.reasoner.ask_all(self._make_questions(counter)))

    async def ajudge(
        self, graph: MilestoneGraph, transcript: Transcript, observations: Observations
    ) -> Judgement:
        """Judge one conversation without blocking."""
        counter = VoteCounter(graph, transcript, observations)
        return counter.count(await self.reasoner.aask_all(self._make_questions(counter)))

    def _make_questions(self, counter: VoteCounter) -> list[Question[Any]]:
        """Return a question about each batch for each vote; all votes on a batch follow each other."""
        head = SystemMessage(self._render_head(counter))
        ids, transcript, events = counter.ids, counter.transcript, counter.observations.events
        observed = _drop_empty({id: list(events.get(name, ())) for name, id in ids.items()})
        steps = _format_steps(transcript)
        candidates = min(MAX_CANDIDATES, self.reasoner.settings.max_candidates)
        questions: list[Question[Any]] = []
        for number, batch in enumerate(counter.batches, start=1):
            judged_ids = [ids[milestone.name] for milestone in batch]
            blueprint = _make_batch_blueprint(tuple(judged_ids), tuple(milestone.type for milestone in batch))
            check = partial(counter.find_complaints, batch)
            for vote_number in range(1, self.votes + 1):
                task: dict[str, Any] = {"judge": judged_ids}
                if self.votes > 1:
                    # If a cache stands before the model, votes on the same text would all be one vote.
                    task["vote"] = vote_number
                if transcript.history_length:
                    task["from_step"] = transcript.history_length + 1
                tail = self.template.render("tail", {"seen": observed, "now": task})
                name = f"batch-{number}-vote-{vote_number}"
                prompt = [head, HumanMessage(steps + tail)]
                questions.append(Question(blueprint, prompt, check, name, candidates))
        return questions

    def _render_head(self, counter: VoteCounter) -> str:
        instructions, tools = self.instructions, self.tools
        if instructions is None:
            instructions = counter.transcript.instructions
        if tools is None:
            tools = get_tool_definitions(counter.transcript.tools)
        variables = {
            "instructions": instructions,
            "tools": list(map(_describe_tool, tools)),
            "milestones": [
                _describe_milestone(milestone, counter.ids) for milestone in counter.graph.milestones
            ],
        }
        return self.template.render("head", variables)


@lru_cache(maxsize=512)
def _make_batch_blueprint(ids: tuple[str, ...], types: tuple[MilestoneType, ...]) -> type[ARQ]:
    """Return one blueprint for several milestones: the intents once, then a required property for each.

    The schema of equal batches is prepared once.
    """
    fields: dict[str, Any] = {
        "intent_of_the_conversation": (str, query("What does the user want, in one sentence?")),
        "implicit_intents": (
            list[str],
            query("What does the user want or agree to without saying it outright?", max_length=6),
        ),
    }
    for id, type in zip(ids, types, strict=True):
        judgement = CallJudgement if type == "FC" else StateJudgement
        fields[id] = (judgement, respond(str(judgement.__doc__)))
    return create_model("MilestoneJudgements", __base__=ARQ, __doc__="Judge each milestone.", **fields)


def _format_steps(transcript: Transcript) -> str:
    steps = [as_json(_describe_step(number, event)) for number, event in transcript.enumerate_events()]
    return "<steps>[\n" + ",\n".join(steps) + "\n]</steps>\n"


def _describe_step(number: int, event: Event) -> dict[str, Any]:
    if isinstance(event, Message):
        return {"step": number, "from": event.speaker, "text": event.text}
    if isinstance(event, Result):
        step = {"step": number, "from": "tool", "tool": event.tool, "result": event.text}
        return step | _drop_empty({"of_step": event.call, "failed": event.failed})
    step = {"step": number, "from": event.by, "calls": event.tool}
    if event.malformed is not None:
        return step | {"malformed_arguments": event.malformed}
    return step | {"arguments": dict(event.arguments)}


def _describe_milestone(milestone: Milestone, ids: dict[str, str]) -> dict[str, Any]:
    kind = "state"
    if milestone.is_derived:
        kind = "join"
    elif milestone.type == "FC":
        kind = "call"
    details = {
        "description": milestone.description,
        "called_by": milestone.by if milestone.by == "user" else None,
        "tool": milestone.tool_name if milestone.type == "FC" else None,
        "arguments": milestone.model_dump(mode="json")["arguments"],
        "dependencies": [ids.get(name, name) for name in milestone.dependencies],
        "requires": milestone.requires if len(milestone.dependencies) > 1 else None,
        "holds": milestone.holds,
    }
    return {"id": ids[milestone.name], "type": kind, "name": milestone.name} | _drop_empty(details)


def _describe_tool(definition: dict[str, Any]) -> dict[str, Any]:
    fields = {
        "name": definition["name"],
        "description": definition.get("description"),
        "arguments": definition.get("parameters"),
    }
    return _drop_empty(fields)


def _drop_empty(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", False, [], {})}
