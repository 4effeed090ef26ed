"""History summary: condensing the beginning of a conversation that has become too long for a prompt."""

from __future__ import annotations

import warnings
from collections.abc import Container, Generator, Sequence
from dataclasses import replace
from typing import Any, Unpack

from langgraph.errors import GraphBubbleUp

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import HistorySummary, SummaryPoint
from arq_graph.errors import BlueprintError, describe_error, shorten
from arq_graph.nodes.agent_node import AgentNode, NodeSettings
from arq_graph.nodes.blueprint_node import NodeSteps, QuestionBatch
from arq_graph.nodes.confirmation import QUESTION_ID, has_no_checkpointer
from arq_graph.nodes.events import HistorySummarized
from arq_graph.nodes.messages import read_note
from arq_graph.nodes.shown_summary import show_summary
from arq_graph.nodes.state_view import StateView
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.history import Line
from arq_graph.reasoning.reasoner import ModelLike
from arq_graph.reasoning.sections import as_json
from arq_graph.reasoning.values import collect_values, find_values, has_value

MAX_CALLS = 4
"""The most summaries that one turn asks for; it needs more than one only if a long history comes all at once."""

_MAX_QUOTED = 200


class Point(ARQ, defer_build=True):
    """One thing to remember."""

    text: str = respond("In one sentence, with every name, id, number and date exactly as given.")
    sources: list[str] = respond("The ids of the messages and results that say it, M… and T….")


class Summary(ARQ):
    """Condense the beginning of the conversation into points."""

    earlier_points: str | None = reinstate(
        "What <summary> holds that still counts, and what of it has changed. Null: there is none."
    )
    about_the_customer: str = query(
        "What did the customer tell of themselves, their wishes and their limits?"
    )
    requests_and_outcomes: str = query("What did they ask for, and what came of each request?")
    promises_and_open_matters: str = query("What did the agent promise or refuse, and what is still open?")
    points: list[Point] = respond("What a later reply may need; the most likely first.")
    says_only_what_its_sources_say: bool = verify(
        "Does every point say no more than its sources?", must_be=True
    )
    is_anything_needed_missing: bool = verify(
        "Is anything missing that a later reply may well need?", must_be=False
    )


class HistorySummarizer(AgentNode[Summary]):
    """Summarise the beginning of a conversation once it is longer than `history_tokens`; write `summaries`.

    It belongs after the reply. While a conversation isn't too long, no model is asked. Once it is, the summary and the
    last turns, which stay as they are, together take half of `history_tokens`. Every prompt of the agent then shows the
    summary, which stays the same until the conversation is too long again. The messages of the thread stay, too.

    If a point names no source, an unknown one, or a value that its sources don't have, the model is asked once more;
    if it does so again, the point is dropped. If no summary can be made, a warning and the event `HistorySummarized`
    say why, and the next turn tries again.

    Args:
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        agent: The specification.
        **settings: `template`, `temperature` (0.1), `history_tokens` and the others of `BlueprintNode`.

    Raises:
        InputError: A setting is out of its range.
    """

    module = "summary"
    prompt_name = "history_summarizer"
    make_example_blueprint = staticmethod(lambda _: Summary)
    default_temperature = 0.1

    def __init__(self, model: ModelLike, agent: Agent, **settings: Unpack[NodeSettings]) -> None:
        super().__init__(model, agent, Summary, **settings)
        self.head = self.render_head()
        # The last turns take 1/4 of `history_tokens`; at four characters a token, the points take 1/8, the lines that
        # are kept word for word 1/16, and the values 1/16. That is half of it.
        self._recent_tokens = self._history_tokens // 4
        self._point_characters = self._history_tokens // 2
        self._line_characters = self._value_characters = self._history_tokens // 4
        self._prompt_tokens = 2 * self._history_tokens

    def should_run(self, state: Any, *, is_forgotten: bool = False) -> bool:
        """Return whether a state's history is too long, or its summary is one of another history.

        `is_forgotten` says that the graph forgets its state after the turn, so that a summary would be of no use.
        """
        return self._should_run(self.view_state(state), is_forgotten=is_forgotten)

    def _should_run(self, state: StateView, *, is_forgotten: bool = False) -> bool:
        is_outdated = state.summary is None and bool(state.read_records("summaries", HistorySummary))
        if not is_outdated and not self._is_too_long(state.conversation):
            return False
        # A caller who stores the state without a checkpointer passes the channel, even if it is empty.
        if is_forgotten or (has_no_checkpointer() and state.get("summaries") is None):
            _warn_of_long_history(self.agent)
            return False
        return True

    def _is_too_long(self, conversation: Conversation) -> bool:
        return conversation.token_count > self._history_tokens

    def steps(self, state: StateView) -> NodeSteps:
        """Summarise what the prompts will no longer show; drop a summary of another history."""
        if not self._should_run(state):
            return {}
        summary = state.summary
        if self._is_too_long(state.conversation):
            summary = yield from self._summarise(state)
        if summary is not None and summary is state.summary:
            return {}
        records = [summary] if summary else []
        return {"summaries": state.build_channel_value("summaries", records)}

    def _summarise(self, state: StateView) -> Generator[QuestionBatch, Any, HistorySummary | None]:
        """Return a summary of all but the last turns or, if the model gives none, the summary that there is."""
        summary = state.summary
        stop = _find_last_turns(state.conversation, self._recent_tokens)
        for _ in range(MAX_CALLS):
            start = summary.line_count if summary else 0
            if start >= stop:
                break
            end = _find_end(state.conversation, start, stop, self._prompt_tokens)
            longer_summary = yield from self._extend(state, summary, end)
            if longer_summary is None:
                break
            summary = longer_summary
        return summary

    def _extend(
        self, state: StateView, previous: HistorySummary | None, end: int
    ) -> Generator[QuestionBatch, Any, HistorySummary | None]:
        """Ask for a summary of the lines before `end`; if none comes, return None, with a warning and an event."""
        conversation, start = state.conversation, 0
        if previous:
            conversation = replace(conversation, summary=show_summary(previous, conversation))
            start = previous.line_count
        review = _SummaryReview(conversation, previous, end, max_characters=self._point_characters)
        up_to = conversation.lines[end - 1].id
        now = {
            "up_to": up_to,
            "max_characters": self._point_characters,
            "characters_of_results": self._line_characters,
        }
        values = {"now": now, "has_summary": previous is not None}
        # Whatever fails, such as a template of the developer's: the reply is written, and the turn has to succeed. So
        # this doesn't use `ask_questions` either, which raises errors.
        answer: Answer[Summary] | Exception
        try:
            prompt = self.build_prompt(conversation, values, shown=range(start, end))
            (answer,) = yield QuestionBatch([Question(Summary, prompt, review.check, max_candidates=2)])
        except GraphBubbleUp:  # LangGraph's own, such as an interrupt
            raise
        except Exception as error:
            answer = error
        if isinstance(answer, Exception):
            self._report_failure(state, up_to, _describe_failure(answer))
            return None
        points, dropped = review.sort_points(answer.value)
        if not points and answer.complaints:
            failure = f"no point of the answer could be used: {answer.complaints[0]}"
            self._report_failure(state, up_to, failure, dropped)
            return None
        state.emit(HistorySummarized(up_to=up_to, points=tuple(points), dropped=tuple(dropped)))
        return self._make_summary(state, points, end)

    def _report_failure(
        self, state: StateView, up_to: str, failure: str, dropped: Sequence[str] = ()
    ) -> None:
        """Say in a warning and in an event why there is no new summary."""
        warnings.warn(
            f"the long history of agent {self.agent.name!r} could not be summarised, so prompts leave out the oldest "
            f"turns until a later turn succeeds: {failure}",
            stacklevel=1,
        )
        state.emit(HistorySummarized(up_to=up_to, dropped=tuple(dropped), failure=failure))

    def _make_summary(self, state: StateView, points: Sequence[SummaryPoint], end: int) -> HistorySummary:
        conversation = state.conversation
        cited_ids: set[str] = set()
        for point in points:
            cited_ids.update(point.sources)
        values = collect_values(conversation.lines[:end], self._value_characters)
        kept_lines = _choose_kept_lines(conversation, end, cited_ids, self._line_characters)
        return HistorySummary(
            turn=state.turn_id,
            line_count=end,
            history_hash=conversation.history.hash_lines(end),
            points=tuple(points),
            kept_lines=tuple(kept_lines),
            values={id: tuple(line_values) for id, line_values in values.items()},
        )


class _SummaryReview:
    """The review of answers that summarise a conversation up to the line `end`."""

    def __init__(
        self, conversation: Conversation, previous: HistorySummary | None, end: int, *, max_characters: int
    ) -> None:
        self._max_characters = max_characters
        self._had_points = bool(previous and previous.points)
        self._lines = {line.id: line for line in conversation.lines[:end]}

    def check(self, answer: Summary) -> list[Complaint]:
        """Return the complaints about an answer."""
        complaints: list[Complaint] = []
        characters = 0
        for number, point in enumerate(answer.points):
            characters += len(point.text)
            if problem := self._find_problem(point):
                complaints.append(Complaint("Summary", f"points[{number}]", problem))
        if characters > self._max_characters:
            problem = f"the points have {characters} characters, but at most {self._max_characters} are shown"
            complaints.append(Complaint("Summary", "points", problem))
        if not answer.points and self._had_points:
            complaints.append(Complaint("Summary", "points", "nothing is left of <summary>"))
        return complaints

    def sort_points(self, answer: Summary) -> tuple[list[SummaryPoint], list[str]]:
        """Return the points without a problem, as many as there is room for, and why each of the others is dropped."""
        points: list[SummaryPoint] = []
        dropped: list[str] = []
        characters_left = self._max_characters
        for point in answer.points:
            problem = self._find_problem(point)
            if problem is None and len(point.text) > characters_left:
                problem = f"at most {self._max_characters} characters of points are shown"
            if problem:
                dropped.append(f"the point {as_json(shorten(point.text, _MAX_QUOTED))} is dropped: {problem}")
            else:
                points.append(SummaryPoint(text=point.text, sources=tuple(point.sources)))
                characters_left -= len(point.text)
        return points, dropped

    def _find_problem(self, point: Point) -> str | None:
        unknown_ids = [id for id in point.sources if id not in self._lines]
        if unknown_ids or not point.sources:
            return f"its sources must be ids of messages and results, not {as_json(unknown_ids)}"
        source_text = "\n".join(_get_text(self._lines[id]) for id in point.sources)
        for value in find_values(point.text):
            if not has_value(source_text, value):
                return f"{as_json(value)} stands in none of its sources: write it as a message has it, and cite that"
        return None


def _get_text(line: Line) -> str:
    """Return the text of a line, and the call that it is the result of."""
    if line.call is None:
        return line.text
    return f"{line.text}\n{line.call['name']} {as_json(line.call['args'])}"


def _find_last_turns(conversation: Conversation, max_tokens: int) -> int:
    """Return the index at which the last turns begin: as many as fit into `max_tokens`, but at least the last one."""
    start: int | None = None
    tokens = 0
    for index in range(len(conversation.lines) - 1, -1, -1):
        tokens += conversation.token_counts[index]
        if start is not None and tokens > max_tokens:
            break
        if conversation.lines[index].speaker == "customer":
            start = index
    return start or 0


def _find_end(conversation: Conversation, start: int, stop: int, max_tokens: int) -> int:
    """Return the index of the first line after `start` that one prompt can't hold; `stop` if it can hold all before."""
    tokens = 0
    for index in range(start, stop):
        tokens += conversation.token_counts[index]
        if tokens > max_tokens and index > start:
            return index
    return stop


def _describe_failure(error: Exception) -> str:
    """Describe an error for readers of a text, who can't look at its attributes."""
    if isinstance(error, BlueprintError):
        return error.problem
    return shorten(describe_error(error, with_location=False))


def _choose_kept_lines(
    conversation: Conversation, end: int, cited_ids: Container[str], max_characters: int
) -> list[str]:
    """Return the ids of covered lines that prompts show word for word: as many as there is room for, in their order.

    Confirmation questions with their answers have precedence over results that points cite, and newer lines over older.
    """
    questions_and_answers: list[int] = []
    cited_results: list[int] = []
    is_question_open = False
    for index, line in enumerate(conversation.lines[:end]):
        if line.speaker == "agent":
            is_question_open = bool(read_note(line.message, QUESTION_ID))
        if line.speaker in ("agent", "customer") and is_question_open:
            questions_and_answers.append(index)
        elif line.speaker == "tool" and line.id in cited_ids:
            cited_results.append(index)
    candidates = questions_and_answers[::-1] + cited_results[::-1]
    texts = conversation.render_lines(candidates)
    chosen: list[int] = []
    for index in candidates:
        length = len(texts[index])
        if length <= max_characters:
            chosen.append(index)
            max_characters -= length
    return [conversation.lines[index].id for index in sorted(chosen)]


def _warn_of_long_history(agent: Agent) -> None:
    warnings.warn(
        f"the history of agent {agent.name!r} is too long for a prompt, so its oldest turns are left out. They aren't "
        "summarised, since nothing keeps a summary for the next turn: compile the graph with a checkpointer and "
        "run each conversation under a thread_id of its own, or set summary=None",
        stacklevel=1,  # one place, so that Python warns once and not in every turn
    )
