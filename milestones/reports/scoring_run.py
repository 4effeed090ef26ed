"""Score many conversations: an error in one does not stop the rest, and a killed run can be resumed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import (
    ModelRequestError,
    ModelUnavailableError,
    PromptError,
    ReasoningError,
    describe_error,
    require_count,
)
from arq_graph.milestones.concurrency import run_concurrently
from arq_graph.milestones.event_loop import run_in_any_thread, run_in_loop
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judge import Judge, JudgeError
from arq_graph.milestones.reports.graph_registry import (
    GraphRegistry,
    GraphSource,
    fingerprint_graphs,
    make_graph_selector,
)
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    Record,
    ReportedConversation,
    make_conversation_record,
)
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.scoring import ascore
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.tool_schemas import get_argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord

CONCURRENCY = 8
MAX_UNREACHED = 3
"""The run ends after so many conversations in a row in which the judge's model was unreachable."""


class UnansweredConversation(BrokenConversation):
    """A conversation about which the judge gave no answer; it is worth another try."""


class _StoredScore(Record):
    at: int
    scored: ConversationRecord


OnOutcome = Callable[[ReportedConversation], None]
NumberedOutcomes = Mapping[int, ReportedConversation]
"""Outcomes by the conversation's number."""


@dataclass
class ScoringRun:
    """Conversations that are scored, once, by `report()` or `areport()`.

    `score_transcripts` makes one, and describes its settings and errors.

    Attributes:
        store: The file to which each score is written as it comes.
        stored_records: The scores in that file, by the conversation's number.
        outcomes: The outcomes so far, by the conversation's number.
        stand_ins: The parts that fakes played in the conversations so far.
        numbers: The numbers of the conversations.
    """

    _conversations: Iterable[Transcript | BrokenRecord]
    _select_graph: Callable[[Transcript], MilestoneGraph]
    _registry: GraphRegistry
    _schemas: Any
    _judge: Judge | None
    _concurrency: int
    store: RunStore | None
    stored_records: dict[int, ConversationRecord]
    outcomes: dict[int, ReportedConversation] = field(default_factory=dict)
    stand_ins: set[str] = field(default_factory=set)
    numbers: Iterable[int] = field(default_factory=count)
    _unreached: int = 0

    def report(self, *, on_outcome: OnOutcome = lambda _: None) -> Report:
        """Score all conversations one at a time, from code that is not async; see `areport`."""
        self._concurrency = 1
        scoring = self.areport(on_outcome=on_outcome)
        if hasattr(self._judge, "ajudge"):  # its model may have connections that belong to the loop
            return run_in_loop(scoring, "areport")
        return run_in_any_thread(scoring)

    async def areport(self, *, on_outcome: OnOutcome = lambda _: None) -> Report:
        """Score all conversations, several at once, and report them; `on_outcome` is called with each as it comes."""
        with self.store or nullcontext():
            async with aclosing(run_concurrently(self._make_work(), self._concurrency)) as finished:
                async for new_outcomes in finished:
                    self._add_outcomes(dict(new_outcomes), on_outcome)
        return self._make_report()

    def collect_report(
        self, scored: Iterable[NumberedOutcomes], *, on_outcome: OnOutcome = lambda _: None
    ) -> Report:
        """Report conversations that other processes score; `on_outcome` is called with each as it comes."""
        with self.store or nullcontext():
            if self.store is not None:
                self.store.require_appendable()
            for new_outcomes in scored:
                self._add_outcomes(new_outcomes, on_outcome)
        return self._make_report()

    def _add_outcomes(self, new_outcomes: NumberedOutcomes, on_outcome: OnOutcome) -> None:
        self.outcomes |= new_outcomes
        for number, outcome in new_outcomes.items():
            self._store_outcome(number, outcome)
        for outcome in new_outcomes.values():
            on_outcome(outcome)

    def _make_report(self) -> Report:
        if self._judge is not None:
            from arq_graph.models.resolve import is_offline  # scoring without a model does not need it

            if is_offline(self._judge):
                self.stand_ins.add("the judge")
        conversations: list[ConversationRecord] = []
        broken: list[BrokenConversation] = []
        for _, outcome in sorted(self.outcomes.items()):
            if isinstance(outcome, ConversationRecord):
                conversations.append(outcome)
            else:
                broken.append(outcome)
        return Report(
            stand_ins=tuple(sorted(self.stand_ins)),
            conversations=tuple(conversations),
            broken=tuple(broken),
            graphs=self._registry.records,
        )

    def _make_work(self) -> Iterator[tuple[int, Coroutine[Any, Any, ReportedConversation]]]:
        for number, source in zip(self.numbers, self._conversations, strict=False):
            is_done = isinstance(source, BrokenRecord) or self._find_stored_record(number, source)
            if self.store is not None and not is_done:
                self.store.require_appendable()
            yield number, self._score(number, source)

    def _find_stored_record(self, number: int, transcript: Transcript) -> ConversationRecord | None:
        stored = self.stored_records.get(number)
        if stored is None or (stored.id, stored.events) != (transcript.id, len(transcript)):
            return None
        return stored

    async def _score(self, number: int, transcript: Transcript | BrokenRecord) -> ReportedConversation:
        if isinstance(transcript, BrokenRecord):
            return BrokenConversation(
                source=transcript.source, record=transcript.index, error=str(transcript.error)
            )
        position = number if transcript.record is None else transcript.record
        self.stand_ins.update(name for name in transcript.stand_ins if name != "the judge")
        try:
            graph = self._select_graph(transcript)
            graph_name = self._registry.register(graph, transcript.task or transcript.id or "milestones")
            stored = self._find_stored_record(number, transcript)
            if stored is not None:
                return stored.model_copy(update={"source": transcript.source})
            self.stored_records.pop(number, None)
            score = await ascore(graph, transcript, tools=self._schemas, judge=self._judge)
            self._unreached = 0
            return make_conversation_record(
                transcript, score, graph=graph_name, source=transcript.source, record=position
            )
        except Exception as error:
            return self._make_broken_conversation(transcript.source, position, error)

    def _make_broken_conversation(
        self, source: str | None, position: int, error: Exception
    ) -> ReportedConversation:
        """Return the record of a conversation that can't be scored; raise an error that concerns all of them."""
        if isinstance(error, ModelRequestError | ModelUnavailableError):
            self._unreached += 1
        else:
            self._unreached = 0
        if isinstance(error, PromptError | JudgeError) or self._unreached >= MAX_UNREACHED:
            raise error
        kind = UnansweredConversation if isinstance(error, ReasoningError) else BrokenConversation
        place = f"{source}: record {position}" if source else f"record {position}"
        description = describe_error(error, with_location=False)
        return kind(source=source, record=position, error=f"{place}: {description}")

    def _store_outcome(self, number: int, outcome: ReportedConversation) -> None:
        if not isinstance(outcome, ConversationRecord) or number in self.stored_records:
            return
        self.stored_records[number] = outcome
        if self.store is not None:
            entry = _StoredScore(at=number, scored=outcome)
            try:
                self.store.append_line(entry.model_dump_json(exclude_defaults=True).encode())
            except PydanticSerializationError:  # of a lone surrogate, which a transcript's names may hold
                self.store.append(entry.model_dump(mode="json", exclude_defaults=True))


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

    An error in one conversation (its record, its use case, a pattern that does not finish on it, a judge that has no
    answer, any exception of a judge or of a function that gives it its graph) makes a `BrokenConversation` that says
    what is wrong and where, and does not stop the rest. An error that concerns all of them is raised: a graph that
    can't be measured on, before the first; an error of the judge itself, when it is first asked.

    Args:
        graph: One graph for all, one for each use case by its name, or a function that gives each its own, such as
            `gold_graph`.
        transcripts: The conversations, as `read_transcripts` yields them; memory holds as many as are scored at once.
        tools: The agent's tools, for their schemas: OpenAI definitions, LangChain tools, or schemas by name; None:
            those that each transcript brings.
        judge: Judges milestones that code can't check. Without one they stay undecided.
        concurrency: The number that is scored at once, from 1, while a judge waits for its model.
        results: A JSON Lines file to which each score is written as it comes. Conversations of the same run that it
            holds are not scored again. None: scores are not stored.
        depends_on: Anything else that the scores depend on, such as the judge's model, by the name that errors show.

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
    registry = GraphRegistry()
    select_graph = make_graph_selector(graph, registry)
    schemas = None if tools is None else get_argument_schemas(tools)
    require_count("concurrency", concurrency)
    store = None
    if results is not None:
        fingerprints = {"the milestones": fingerprint_graphs(graph), "the tools": fingerprint(tools)}
        store = RunStore(results, "score", fingerprints | dict(depends_on or {}))
    stored_records: dict[int, ConversationRecord] = {}
    for entry in store.entries() if store else ():
        # Entries that cannot be read are scored again.
        with suppress(KeyError, TypeError, ValueError):
            stored = _StoredScore.model_validate(entry)
            stored_records[stored.at] = stored.scored
    return ScoringRun(transcripts, select_graph, registry, schemas, judge, concurrency, store, stored_records)
