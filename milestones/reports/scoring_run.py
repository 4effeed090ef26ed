"""Scoring many conversations: what goes wrong with one does not stop the rest, and a run can go on after a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.modules import describe_error
from arq_graph.errors import (
    ModelRequestError,
    ModelUnavailableError,
    PromptError,
    ReasoningError,
    require_count,
)
from arq_graph.milestones.event_loop import run_in_loop
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.harness import run_concurrently
from arq_graph.milestones.judge import Judge, JudgeError
from arq_graph.milestones.reports.graph_choice import (
    GraphNames,
    GraphSource,
    fingerprint_of_graphs,
    graph_chooser,
)
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord, conversation_record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.scoring import ascore
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord

CONCURRENCY = 8
MOST_UNREACHED = 3
"""So many conversations in a row whose judge is not reached end a run: the others would fare no better."""


class UnansweredConversation(BrokenConversation):
    """A conversation that the judge gave no answer about; it is worth another try."""


Outcome = ConversationRecord | BrokenConversation
Done = Callable[[Outcome], None]


@dataclass
class ScoringRun:
    """Conversations that are scored, once, by `report()` or `areport()`.

    `score_transcripts` makes one, and says what its settings are and what is raised. `store` holds what was scored as
    it comes; `kept` is what it holds, and `outcomes` what became of each conversation so far, both by its number.
    """

    _conversations: Iterable[Transcript | BrokenRecord]
    _graph_of: Callable[[Transcript], MilestoneGraph]
    _graphs: GraphNames
    _settings: Mapping[str, Any]
    _concurrency: int
    store: RunStore | None
    kept: dict[int, ConversationRecord]
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    _stand_ins: dict[str, None] = field(default_factory=dict)
    _unreached: int = 0

    def report(self, *, done: Done = lambda _: None) -> Report:
        """Score all conversations one at a time, from code that is not async; see `areport`."""
        self._concurrency = 1
        return run_in_loop(
            self.areport(done=done), "areport" if hasattr(self._settings["judge"], "ajudge") else ""
        )

    async def areport(self, *, done: Done = lambda _: None) -> Report:
        """Score all conversations, several at once, and report them; `done` is called with each outcome as it comes."""
        works = ((number, self._outcome(number, one)) for number, one in enumerate(self._conversations))
        with self.store or nullcontext():
            async with aclosing(run_concurrently(works, self._concurrency)) as finished:
                async for number, outcome in finished:
                    self._keep(number, outcome, done)
        if (judge := self._settings["judge"]) is not None:
            from arq_graph.models.resolve import is_offline  # scoring without a model does not need it

            if is_offline(judge):
                self._stand_ins["the judge"] = None
        ordered = [self.outcomes[number] for number in sorted(self.outcomes)]
        return Report(
            stand_ins=tuple(self._stand_ins),
            conversations=tuple(one for one in ordered if isinstance(one, ConversationRecord)),
            broken=tuple(one for one in ordered if isinstance(one, BrokenConversation)),
            graphs=self._graphs.used,
        )

    async def _outcome(self, number: int, one: Transcript | BrokenRecord) -> Outcome:
        if isinstance(one, BrokenRecord):
            return BrokenConversation(source=one.source, record=one.index, error=str(one.error))
        record = number if one.record is None else one.record
        self._stand_ins |= dict.fromkeys(each for each in one.stand_ins if each != "the judge")
        try:
            graph = self._graph_of(one)
            name = self._graphs.of(graph, one.task or one.id or "milestones")
            kept = self.kept.get(number)
            if kept is not None and (kept.id, kept.events) == (one.id, len(one)):
                return kept.model_copy(update={"source": one.source})
            self.kept.pop(number, None)
            measured = await ascore(graph, one, **self._settings)
            self._unreached = 0
            return conversation_record(one, measured, graph=name, source=one.source, record=record)
        except Exception as error:
            return self._failed(one.source, record, error)

    def _failed(self, source: str | None, record: int, error: Exception) -> Outcome:
        """A conversation that cannot be scored; raises an error that concerns all of them."""
        is_unreached = isinstance(error, ModelRequestError | ModelUnavailableError)
        self._unreached = self._unreached + 1 if is_unreached else 0
        if isinstance(error, PromptError | JudgeError) or self._unreached >= MOST_UNREACHED:
            raise error
        kind = UnansweredConversation if isinstance(error, ReasoningError) else BrokenConversation
        place = f"{source}: record {record}" if source else f"record {record}"
        return kind(
            source=source, record=record, error=f"{place}: {describe_error(error, with_location=False)}"
        )

    def _keep(self, number: int, outcome: Outcome, done: Done) -> None:
        self.outcomes[number] = outcome
        if isinstance(outcome, ConversationRecord) and number not in self.kept:
            self.kept[number] = outcome
            if self.store is not None:
                held = outcome.model_dump(mode="json", exclude_defaults=True)
                self.store.append({"at": number, "scored": held})
        done(outcome)


def score_transcripts(
    graph: GraphSource,
    transcripts: Iterable[Transcript | BrokenRecord],
    *,
    tools: Any = None,
    judge: Judge | None = None,
    concurrency: int = CONCURRENCY,
    results: str | Path | None = None,
    depends_on: Mapping[str, str] | None = None,
) -> ScoringRun:
    """Score conversations: one at a time by `report()`, several at once by `areport()`; each once.

    What is wrong with one conversation (its record, its use case, a pattern that does not finish on it, a judge that
    has no answer, any exception of a judge or of a function that gives it its graph) makes a `BrokenConversation`
    that says what and where, and does not stop the rest. What concerns all of them is raised: a graph that cannot be
    measured on before the first, what is wrong with the judge itself where it is first asked.

    Args:
        graph: One graph for all, one for each use case by its name, or a function that gives each its own, such as
            `gold_graph`.
        transcripts: What `read_transcripts` gives; memory holds as many as are scored at once.
        tools: The agent's tools, for their schemas: OpenAI definitions, LangChain tools, or schemas by name; None:
            those that each transcript brings.
        judge: Decides what code cannot; None: such milestones stay undecided.
        concurrency: How many are scored at once, from 1, while a judge waits for its model.
        results: A JSON Lines file in which each score is kept as it comes. Where it holds some of the same run, those
            conversations are not scored again. None: nowhere.
        depends_on: What else the outcomes depend on, by a name that a message can show, such as the judge's model.

    Raises:
        SpecError: A graph cannot be measured on, or a function that it names cannot be loaded.
        ToolError: A tool has no name.
        InputError: `concurrency` is below 1, or `results` holds another run or cannot be written. By `report()`: the
            judge gives no verdicts, the source cannot be read at all, or the judge asks a model and an event loop
            runs already.
        PromptError: The judge's template is wrong.
        ModelRequestError: The model behind the judge refused three conversations in a row.
        ModelUnavailableError: It could not be reached for three in a row.
    """
    store, graphs = None, GraphNames()
    graph_of = graph_chooser(graph, graphs)
    settings = {"tools": None if tools is None else get_argument_schemas(tools), "judge": judge}
    require_count("concurrency", concurrency)
    if results is not None:
        of = {"the milestones": fingerprint_of_graphs(graph), "the tools": fingerprint(tools)}
        store = RunStore(results, "score", {**of, **(depends_on or {})})
    kept = dict(_kept(store)) if store else {}
    return ScoringRun(transcripts, graph_of, graphs, settings, concurrency, store, kept)


def _kept(store: RunStore) -> Iterator[tuple[int, ConversationRecord]]:
    for entry in store.entries():
        # Entries that cannot be read are scored again.
        with suppress(KeyError, TypeError, ValueError):
            yield int(entry["at"]), ConversationRecord.model_validate(entry["scored"])
