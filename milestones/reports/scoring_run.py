"""Scoring many conversations: what goes wrong with one does not stop the rest, and a run can go on after a kill."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.errors import (
    ArqGraphError,
    InputError,
    ModelRequestError,
    ModelUnavailableError,
    PromptError,
    ReasoningError,
)
from arq_graph.milestones.at_once import at_once
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.judging.judge import AnyJudge, Judge, JudgeError
from arq_graph.milestones.reports.graph_choice import GraphChoice, GraphSource, fingerprint_of_graphs
from arq_graph.milestones.reports.records import BrokenConversation, ConversationRecord, conversation_record
from arq_graph.milestones.reports.report import Report
from arq_graph.milestones.scoring import Score, ascore, score
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.tool_schemas import argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord, read_transcripts

CONCURRENCY = 8
MOST_UNREACHED = 3
"""So many conversations in a row whose judge is not reached end a run: the others would fare no better."""


Place = tuple[int, int]
"""File and record as numbers, in the order in which they are read."""

# What is wrong with a file itself comes after all that could be read of it.
_END_OF_FILE = 1 << 62


@dataclass(frozen=True, slots=True)
class Located:
    """A conversation, or a record that is none, and where it stands: its file, and its position there, from 0.

    `record` is None where the file itself cannot be read on; `number` is the file's place among those that are read.
    """

    item: Transcript | BrokenRecord
    record: int | None
    source: str | None = None
    number: int = 0

    @property
    def place(self) -> Place:
        """Where it stands, as numbers."""
        return self.number, _END_OF_FILE if self.record is None else self.record


class UnansweredConversation(BrokenConversation):
    """A conversation that the judge gave no answer about; it is worth another try."""


Outcome = ConversationRecord | BrokenConversation
Done = Callable[[Outcome], None]
_Chosen = tuple[Transcript, str, MilestoneGraph] | Exception


class ScoringRun:
    """Conversations as they are scored: `for` and `async for` give each outcome as it comes, `report()` all of them.

    `score_transcripts` makes one, and says what its settings are and what is raised. `store` holds outcomes as they
    come; `kept` is what it holds, and `outcomes` what became of each conversation so far, both by place.
    """

    def __init__(
        self,
        conversations: Iterable[Located],
        graph: GraphSource,
        *,
        tools: Any = None,
        judge: AnyJudge | None = None,
        concurrency: int = CONCURRENCY,
        store: RunStore | None = None,
    ) -> None:
        if concurrency < 1:
            raise InputError(f"concurrency is {concurrency}; at least one conversation is scored at a time")
        self.outcomes: dict[Place, Outcome] = {}
        self._conversations = iter(conversations)
        self._choice = GraphChoice(graph)
        self._tools = argument_schemas(tools) if tools is not None else None
        self._judge = judge
        self._concurrency = concurrency
        self._store = store
        self.kept = {} if store is None else dict(_kept(store))
        self._begun = 0
        self._unreached = 0

    def __iter__(self) -> Iterator[Outcome]:
        with self._store or nullcontext():
            for one in self._conversations:
                chosen = self._chosen(one)
                yield self._done(one, self._before(one) or self._score(one, chosen))

    async def __aiter__(self) -> AsyncIterator[Outcome]:
        if self._begun > len(self.outcomes):
            raise InputError(
                "a loop over this run was left while conversations were under way: make a new run"
            )
        # Graphs get their names as conversations are taken, in the order of the source, not as they finish.
        works = ((one, self._ascore(one, self._chosen(one))) for one in self._conversations)
        with self._store or nullcontext():
            async with aclosing(at_once(works, self._concurrency)) as finished:
                async for one, outcome in finished:
                    yield self._done(one, outcome)

    def report(self, *, done: Done = lambda _: None, stand_ins: Sequence[str] = ()) -> Report:
        """Score what is left, and report all of it.

        Args:
            done: Called with each outcome as it comes, those of an earlier run included.
            stand_ins: What a stand-in did, such as "the judge"; see `Report`.
        """
        for outcome in self:
            done(outcome)
        return self._report(stand_ins)

    async def areport(self, *, done: Done = lambda _: None, stand_ins: Sequence[str] = ()) -> Report:
        """Score what is left, several conversations at once; see `report`."""
        async for outcome in self:
            done(outcome)
        return self._report(stand_ins)

    def _report(self, stand_ins: Sequence[str]) -> Report:
        ordered = [self.outcomes[place] for place in sorted(self.outcomes)]
        return Report(
            stand_ins=tuple(stand_ins),
            conversations=tuple(one for one in ordered if isinstance(one, ConversationRecord)),
            broken=tuple(one for one in ordered if isinstance(one, BrokenConversation)),
            graphs=self._choice.used,
        )

    def _chosen(self, one: Located) -> _Chosen:
        self._begun += 1
        if isinstance(one.item, BrokenRecord):
            return one.item.error
        try:
            return one.item, *self._choice.of(one.item)
        except Exception as error:
            return error

    def _before(self, one: Located) -> Outcome | None:
        """The outcome of an earlier run, if it is that of this conversation."""
        kept = self.kept.get(one.place)
        if kept is None or not _is_of(kept, one.item):
            self.kept.pop(one.place, None)
            return None
        return kept.model_copy(update={"source": one.source})

    def _score(self, one: Located, chosen: _Chosen) -> Outcome:
        try:
            transcript, name, graph = _unbroken(chosen)
            measured = score(graph, transcript, tools=self._tools, judge=cast(Judge | None, self._judge))
            return self._scored(one, transcript, name, measured)
        except Exception as error:
            return self._failed(one, error)

    async def _ascore(self, one: Located, chosen: _Chosen) -> Outcome:
        if before := self._before(one):
            return before
        try:
            transcript, name, graph = _unbroken(chosen)
            measured = await ascore(graph, transcript, tools=self._tools, judge=self._judge)
            return self._scored(one, transcript, name, measured)
        except Exception as error:
            return self._failed(one, error)

    def _scored(self, one: Located, transcript: Transcript, graph: str, measured: Score) -> Outcome:
        record = conversation_record(transcript, measured, graph=graph, source=one.source, record=one.record)
        self._unreached = 0
        return record

    def _failed(self, one: Located, error: Exception) -> Outcome:
        """What is told of a conversation that cannot be scored; raises what concerns all of them."""
        is_unreached = isinstance(error, ModelRequestError | ModelUnavailableError)
        self._unreached = self._unreached + 1 if is_unreached else 0
        if isinstance(error, PromptError | JudgeError) or self._unreached >= MOST_UNREACHED:
            raise error
        kind = UnansweredConversation if isinstance(error, ReasoningError) else BrokenConversation
        return kind(source=one.source, record=one.record, error=_said(one, error))

    def _done(self, one: Located, outcome: Outcome) -> Outcome:
        is_new = one.place not in self.kept
        if self._store is not None and is_new and not isinstance(outcome, UnansweredConversation):
            kind = "scored" if isinstance(outcome, ConversationRecord) else "broken"
            held = outcome.model_dump(mode="json", exclude_defaults=True)
            self._store.append({"at": one.place, kind: held})
            self.kept[one.place] = outcome
        self.outcomes[one.place] = outcome
        return outcome


def score_transcripts(
    transcripts: Iterable[Transcript | BrokenRecord],
    graph: GraphSource,
    *,
    tools: Any = None,
    judge: AnyJudge | None = None,
    source: str | None = None,
    concurrency: int = CONCURRENCY,
    results: str | Path | None = None,
    depends_on: Mapping[str, str] | None = None,
) -> ScoringRun:
    """Score conversations: one at a time by `for` or `report()`, several at once by `async for` or `areport()`.

    What is wrong with one conversation (its record, its use case, a pattern that does not finish on it, a judge that
    has no answer, any exception of a judge or of a function that gives it its graph) makes a `BrokenConversation`
    that says what and where, and does not stop the rest. What concerns all of them is raised: a graph that cannot be
    measured on before the first, what is wrong with the judge itself where it is first asked.

    Several at once are given as they finish: `record` says where each stands, and the report has them in order.

    Args:
        transcripts: What `read_transcripts` gives; memory holds as many as are scored at once.
        graph: One graph for all, one for each use case by its name, or a function that gives each its own, such as
            `gold_graph`.
        tools: The agent's tools, for their schemas: OpenAI definitions, LangChain tools, or schemas by name; None:
            those that each transcript brings.
        judge: Decides what code cannot, by `areport()` also an async one; None: such milestones stay undecided.
        source: The file that they were read from, for the records.
        concurrency: How many are scored at once, from 1, while a judge waits for its model.
        results: A JSON Lines file in which each outcome is kept as it comes. Where it holds some of the same run,
            those conversations are not scored again. None: nowhere.
        depends_on: What else the outcomes depend on, by a name that a message can show, such as the judge's model.

    Raises:
        SpecError: A graph cannot be measured on, or a function that it names cannot be loaded.
        ToolError: A tool has no name.
        InputError: `concurrency` is below 1, or `results` holds another run or cannot be written. In the loop: the
            judge is async or gives no verdicts, or the source cannot be read at all.
        PromptError: The judge's template is wrong.
        ModelRequestError: The model behind the judge refused three conversations in a row.
        ModelUnavailableError: It could not be reached for three in a row.
    """
    store = None
    if results is not None:
        of = {"the milestones": fingerprint_of_graphs(graph), "the tools": fingerprint(tools)}
        store = RunStore(results, "score", {**of, **(depends_on or {})})
    read = (Located(item, record, source) for record, item in enumerate(transcripts))
    return ScoringRun(read, graph, tools=tools, judge=judge, concurrency=concurrency, store=store)


def read_files(
    files: Sequence[Path],
    *,
    use_case: str | None = None,
    limit: int | None = None,
    read: Callable[[Path], Iterable[Transcript | BrokenRecord]] = read_transcripts,
) -> Iterator[Located]:
    """The conversations of several files, one at a time; memory holds one.

    A file that cannot be read on, even in its middle, is given as a broken record, and the next one begins.

    Args:
        files: The files.
        use_case: Conversations of this use case alone; None: all. Broken records are always given.
        limit: How many conversations at most, above 0; None: all. Broken records do not count.
        read: Reads one file, as `read_transcripts` does.
    """
    given = 0
    for number, file in enumerate(files):
        try:
            for record, item in enumerate(read(file)):
                if isinstance(item, Transcript):
                    if use_case is not None and item.use_case != use_case:
                        continue
                    given += 1
                yield Located(item, record, str(file), number)
                if given == limit:
                    return
        except InputError as error:
            yield Located(BrokenRecord(0, error), None, str(file), number)


def _kept(store: RunStore) -> Iterator[tuple[Place, Outcome]]:
    for entry in store.entries():
        # What cannot be read is scored again: no outcome is lost, and none counts twice.
        with suppress(KeyError, TypeError, ValueError):
            number, record = entry["at"]
            kind = ConversationRecord if "scored" in entry else BrokenConversation
            yield (number, record), kind.model_validate(entry.get("scored") or entry["broken"])


def _is_of(kept: Outcome, item: Transcript | BrokenRecord) -> bool:
    if isinstance(kept, BrokenConversation) or isinstance(item, BrokenRecord):
        return isinstance(kept, BrokenConversation)
    return (item.id, len(item)) == (kept.id, kept.events)


def _unbroken(chosen: _Chosen) -> tuple[Transcript, str, MilestoneGraph]:
    if isinstance(chosen, Exception):
        raise chosen
    return chosen


def _said(one: Located, error: Exception) -> str:
    if isinstance(one.item, BrokenRecord):
        return str(error)  # names file and record itself
    place = f"{one.source}: record {one.record}" if one.source else f"record {one.record}"
    # Our own errors are whole sentences; of any other, the type is half of what it says.
    named = "" if isinstance(error, ArqGraphError) else f"{type(error).__name__}: "
    return f"{place}: {named}{error}"
