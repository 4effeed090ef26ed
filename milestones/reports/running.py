"""Scoring many conversations, one at a time: what goes wrong with one does not stop the rest."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Coroutine, Iterable, Iterator, Mapping
from contextlib import aclosing
from traceback import walk_tb
from typing import Any, cast

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
from arq_graph.milestones.judging.judge import AnyJudge, Judge, ask_judge
from arq_graph.milestones.reports.records import (
    BrokenConversation,
    ConversationRecord,
    GraphRecord,
    conversation_record,
)
from arq_graph.milestones.reports.running_files import Located, located
from arq_graph.milestones.reports.running_graphs import Graphs, GraphSource
from arq_graph.milestones.scoring import Score, ascore, score
from arq_graph.milestones.tool_schemas import argument_schemas
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord

CONCURRENCY = 8
MOST_UNREACHED = 3
"""So many conversations in a row whose judge is not reached end a run: the others would fare no better."""


class UnansweredConversation(BrokenConversation):
    """A conversation that the judge gave no answer about; it is worth another try."""


Outcome = ConversationRecord | BrokenConversation
_Chosen = tuple[Transcript, str, MilestoneGraph]


class ConversationScorer:
    """Scores conversations, each on its graph, and turns what is wrong with one into a broken record.

    Args:
        graph: One graph for all, one for each use case by its name, or a function that gives each its own.
        tools: The agent's tools, for their schemas: OpenAI definitions, LangChain tools, or schemas by name;
            None: those that each transcript brings.
        judge: Decides what code cannot; None: such milestones stay undecided.

    Raises:
        SpecError: A graph cannot be measured on, or a function that it names cannot be loaded.
        ToolError: A tool has no name.
    """

    def __init__(self, graph: GraphSource, *, tools: Any = None, judge: AnyJudge | None = None) -> None:
        self._graphs = Graphs(graph)
        self._tools = argument_schemas(tools) if tools is not None else None
        self._judge = judge
        self._unreached = 0

    @property
    def graphs(self) -> Mapping[str, GraphRecord]:
        """The graphs that were measured on so far, by name."""
        return self._graphs.used

    def pass_over(self, one: Located) -> None:
        """Take note of a conversation that was scored before, so that graphs keep their names."""
        self._chosen(one)

    def score(self, one: Located) -> Outcome:
        """Score one conversation; what goes wrong with it alone makes a `BrokenConversation`.

        Raises:
            InputError: The judge is async, or is none: it gives no verdicts.
            PromptError: The judge's template is wrong.
            ModelRequestError: The model behind the judge refused several conversations in a row.
            ModelUnavailableError: It could not be reached for several in a row.
        """
        chosen = self._chosen(one)
        if isinstance(chosen, Exception):
            return self._failed(one, chosen)
        transcript, name, graph = chosen
        try:
            measured = score(graph, transcript, tools=self._tools, judge=cast(Judge | None, self._judge))
            return self._scored(one, transcript, name, measured)
        except Exception as error:
            return self._failed(one, error)

    def ascore(self, one: Located) -> Coroutine[Any, Any, Outcome]:
        """Score one conversation; see `score`. Its graph is chosen by the call, not by what is awaited."""
        return self._ascore(one, self._chosen(one))

    async def _ascore(self, one: Located, chosen: _Chosen | Exception) -> Outcome:
        if isinstance(chosen, Exception):
            return self._failed(one, chosen)
        transcript, name, graph = chosen
        try:
            measured = await ascore(graph, transcript, tools=self._tools, judge=self._judge)
            return self._scored(one, transcript, name, measured)
        except Exception as error:
            return self._failed(one, error)

    def _chosen(self, one: Located) -> _Chosen | Exception:
        if isinstance(one.item, BrokenRecord):
            return one.item.error
        try:
            return one.item, *self._graphs.choose(one.item)
        except Exception as error:
            return error

    def _scored(self, one: Located, transcript: Transcript, graph: str, measured: Score) -> Outcome:
        record = conversation_record(transcript, measured, graph=graph, source=one.source, record=one.record)
        self._unreached = 0
        return record

    def _failed(self, one: Located, error: Exception) -> BrokenConversation:
        if isinstance(error, PromptError) or _is_about_the_judge(error):
            raise error
        if isinstance(error, ModelRequestError | ModelUnavailableError):
            self._unreached += 1
            if self._unreached >= MOST_UNREACHED:
                raise error
        else:
            self._unreached = 0
        kind = UnansweredConversation if isinstance(error, ReasoningError) else BrokenConversation
        return kind(source=one.source, record=one.record, error=_said(one, error))


def score_transcripts(
    transcripts: Iterable[Transcript | BrokenRecord],
    graph: GraphSource,
    *,
    tools: Any = None,
    judge: Judge | None = None,
    source: str | None = None,
) -> Iterator[Outcome]:
    """Score conversations one at a time; memory holds one.

    What is wrong with one conversation (its record, its use case, a pattern that does not finish on it, a
    judge that has no answer, any exception of a judge or of a function that gives it its graph) makes a
    `BrokenConversation` that says what and where, and does not stop the rest. What concerns all of them is
    raised: a graph that cannot be measured on before the first, what is wrong with the judge itself where it
    is first asked, if it does not show before.

    Args:
        transcripts: What `read_transcripts` gives.
        graph: One graph for all, one for each use case by its name, or a function that gives each its own,
            such as `gold_graph`.
        tools: The agent's tools, for their schemas; None: those that each transcript brings.
        judge: Decides what code cannot; None: such milestones stay undecided.
        source: The file that they were read from, for the records.

    Raises:
        SpecError: A graph cannot be measured on, or a function that it names cannot be loaded.
        ToolError: A tool has no name.
        InputError: The judge is async or gives no verdicts, or the source cannot be read at all.
        PromptError: The judge's template is wrong.
        ModelRequestError: The model behind the judge refused three conversations in a row.
        ModelUnavailableError: It could not be reached for three in a row.
    """
    if judge is not None and (not callable(judge) or inspect.iscoroutinefunction(judge)):
        raise InputError("the judge is async or no function: use `ascore_transcripts`, or give another")
    scorer = ConversationScorer(graph, tools=tools, judge=judge)
    return (scorer.score(one) for one in located(transcripts, source=source))


def ascore_transcripts(
    transcripts: Iterable[Transcript | BrokenRecord],
    graph: GraphSource,
    *,
    tools: Any = None,
    judge: AnyJudge | None = None,
    source: str | None = None,
    concurrency: int = CONCURRENCY,
) -> AsyncGenerator[Outcome, None]:
    """Score conversations while a judge waits for its model; see `score_transcripts`.

    They are given as they finish, not in the order of the source: `record` says where each stands.

    Args:
        transcripts: What `read_transcripts` gives.
        graph: One graph for all, one for each use case by its name, or a function that gives each its own.
        tools: The agent's tools, for their schemas; None: those that each transcript brings.
        judge: Decides what code cannot; None: such milestones stay undecided.
        source: The file that they were read from, for the records.
        concurrency: How many are scored at once, from 1; so many are held in memory.

    Raises:
        InputError: `concurrency` is below 1.
    """
    scorer = ConversationScorer(graph, tools=tools, judge=judge)
    return _outcomes(in_parallel(scorer, located(transcripts, source=source), concurrency))


async def _outcomes(pairs: AsyncGenerator[tuple[Located, Outcome], None]) -> AsyncGenerator[Outcome, None]:
    async with aclosing(pairs):
        async for _, outcome in pairs:
            yield outcome


def in_parallel(
    scorer: ConversationScorer,
    conversations: Iterable[Located],
    concurrency: int = CONCURRENCY,
) -> AsyncGenerator[tuple[Located, Outcome], None]:
    """Score several conversations at once; each is given as it finishes.

    Args:
        scorer: Scores them.
        conversations: What is scored, read as there is room.
        concurrency: How many at once, from 1.

    Raises:
        InputError: `concurrency` is below 1.
    """
    if concurrency < 1:
        raise InputError(f"concurrency is {concurrency}; at least one conversation is scored at a time")
    # Graphs get their names as the conversations are taken, in the order of the source, not as the tasks begin.
    return at_once(((one, scorer.ascore(one)) for one in conversations), concurrency)


def _is_about_the_judge(error: Exception) -> bool:
    # What a judge itself raises about one conversation comes from further down than `ask_judge`'s own checks.
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    return isinstance(error, InputError) and bool(frames) and frames[-1].f_globals is ask_judge.__globals__


def _said(one: Located, error: Exception) -> str:
    if isinstance(one.item, BrokenRecord):
        return str(error)  # names file and record itself
    place = f"{one.source}: record {one.record}" if one.source else f"record {one.record}"
    # Our own errors are whole sentences; of any other, the type is half of what it says.
    return (
        f"{place}: {error}"
        if isinstance(error, ArqGraphError)
        else f"{place}: {type(error).__name__}: {error}"
    )
