"""A node's view of a state: the conversation, and the records in channels, read and replaced for one agent."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, Literal, TypeVar

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, convert_to_messages
from langgraph.config import get_stream_writer
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.check import CheckDecision
from arq_graph.agent.record import Record
from arq_graph.agent.spec import Agent
from arq_graph.agent.state import GuidelineMatch, HistorySummary
from arq_graph.errors import InputError, StateError, describe_first_error
from arq_graph.nodes.events import Event
from arq_graph.nodes.run_cache import RunCache, get_run_cache
from arq_graph.nodes.shown_summary import find_current_summary, show_summary
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.history import History

M = TypeVar("M", bound=BaseMessage)
R = TypeVar("R", bound=Record)

_ENCODER = json.JSONEncoder(default=str)

WITHHELD = "[withheld: a check has blocked this message]"


@dataclass(frozen=True)
class StateView:
    """A node's view of a state: a dict, a dataclass or a Pydantic model.

    `is_speculative` says that other nodes of the turn may still change the state: the node is only asked early (see
    `Parallel`), so no event is emitted. `history_tokens` and `shows_images` are those of `Conversation`.
    `agent_fingerprint` is that of the agent's specification; if it is empty, the name alone decides whose a record is.
    """

    raw: Any
    messages_key: str = "messages"
    channels: Mapping[str, Any] = field(default_factory=dict)
    agent_name: str = ""
    is_speculative: bool = False
    history_tokens: int = 16_000
    shows_images: bool = True
    agent_fingerprint: str = ""

    def get(self, channel: str) -> Any:
        """Return the channel's value, or None if the state doesn't have it."""
        if isinstance(self.raw, Mapping):
            return self.raw.get(channel)
        return getattr(self.raw, channel, None)

    def emit(self, event: Event | None) -> None:
        """Write an event to `stream_mode="custom"`, with the agent and the turn, unless the view is speculative."""
        if event is None or self.is_speculative:
            return
        try:
            write = get_stream_writer()
        except (RuntimeError, KeyError):  # outside a graph there is no stream
            return
        write(event.model_copy(update={"agent": self.agent_name, "turn": self.turn_id}))

    @cached_property
    def messages(self) -> list[AnyMessage]:
        """The thread's messages.

        Raises:
            StateError: The state has no channel of messages, or it holds something else.
        """
        value = self.get(self.messages_key)
        if value is None:
            raise StateError(
                f"the state has no channel {self.messages_key!r}: add one for the messages to the graph, or name "
                "the one that it has with messages_key="
            )
        if isinstance(value, list) and all(issubclass(kind, BaseMessage) for kind in set(map(type, value))):
            return list(value)
        try:
            return convert_to_messages(value)  # type: ignore[return-value]
        except (TypeError, ValueError, NotImplementedError) as error:
            raise StateError(
                f"channel {self.messages_key!r} holds something that isn't a message: {error}"
            ) from error

    def require_message(self) -> None:
        """Raise InputError if there is no message to answer."""
        if not self.messages:
            raise InputError(
                f"channel {self.messages_key!r} has no message to answer: give at least one, such as "
                '("user", "Hello")'
            )

    @cached_property
    def history(self) -> History:
        """The thread's messages as numbered lines."""
        return self._run_cache.number_messages(self.messages)

    @cached_property
    def conversation(self) -> Conversation:
        """The thread's messages as numbered lines, the first of them summarised if the history is long."""
        summary = self.summary
        if summary is None:
            return self._whole_conversation

        def summarize() -> Conversation:
            return replace(self._whole_conversation, summary=show_summary(summary, self._whole_conversation))

        return self._run_cache.derive("summarized", (self._whole_conversation, summary), summarize)

    @cached_property
    def _whole_conversation(self) -> Conversation:
        def show() -> Conversation:
            return Conversation(self._shown_history, self.history_tokens, self.shows_images)

        return self._run_cache.derive((self.history_tokens, self.shows_images), self._shown_history, show)

    @cached_property
    def _shown_history(self) -> History:
        """The history without the words of messages that a check has blocked."""
        blocked_ids = self.blocked_message_ids
        if not blocked_ids:
            return self.history

        def withhold() -> History:
            return History(withhold_messages(self.messages, blocked_ids))

        return self._run_cache.derive("shown", (self.history, blocked_ids), withhold)

    @cached_property
    def blocked_message_ids(self) -> frozenset[str]:
        """The ids of the customer's messages that a check of this agent has blocked."""
        blocked_ids: set[str] = set()
        for decision in self.read_records_of_name("checks", CheckDecision):
            if decision.on == "input" and decision.then == "block":
                blocked_ids.update(decision.message_ids)
        return frozenset(blocked_ids)

    @cached_property
    def summary(self) -> HistorySummary | None:
        """The agent's summary of the thread's first lines, or any agent's for a node that belongs to none.

        None if there is none, or if the history doesn't begin with these lines any more.
        """
        rows = [row for row in self._rows("summaries") if self.agent_name in ("", row["agent"])]
        summaries = _parse_records("summaries", HistorySummary, rows[-1:])
        return find_current_summary(summaries, self._whole_conversation)

    @cached_property
    def _run_cache(self) -> RunCache:
        return get_run_cache()

    @cached_property
    def turn_id(self) -> str:
        """The id of the current turn, which its records carry."""
        for message in reversed(self.messages):
            if isinstance(message, HumanMessage):
                return message.id or self._whole_conversation.turn_id
        return ""

    @property
    def answered_turn_id(self) -> str | None:
        """The turn of the agent's last reply before the customer's last message."""
        return self._whole_conversation.answered_turn_id

    @cached_property
    def current_turn_matches(self) -> list[GuidelineMatch]:
        """This turn's matches, one for each guideline; none if guidelines weren't matched in this turn."""
        matches: list[GuidelineMatch] = []
        for record in self.read_turn_records("guideline_matches", GuidelineMatch, self.turn_id):
            matches.extend(record.expand())
        return matches

    def read_records(self, channel: str, record_type: type[R]) -> list[R]:
        """Return the agent's own records in a channel."""
        rows = self.get(channel) or ()

        def parse() -> list[R]:
            _check_rows(channel, rows)
            return _parse_records(
                channel, record_type, [row for row in rows if self._find_owner(row) == "own"]
            )

        if not isinstance(rows, list):
            return parse()
        key = channel, record_type, self.agent_name, self.agent_fingerprint
        return list(self._run_cache.derive(key, rows, parse))

    def read_records_of_name(self, channel: str, record_type: type[R]) -> list[R]:
        """Return the records of all agents that have this agent's name."""
        rows = self._rows(channel)
        return _parse_records(channel, record_type, [row for row in rows if row["agent"] == self.agent_name])

    def read_turn_records(self, channel: str, record_type: type[R], turn_id: str | None) -> list[R]:
        """Return the agent's own records of a turn.

        Records made before the turn's message was sent again with other words don't count.
        """
        # A record has no hash if the thread doesn't have its turn's message.
        valid_hashes = ("", self._message_hash(turn_id))
        records = self.read_records(channel, record_type)
        return [
            record for record in records if record.turn == turn_id and record.message_hash in valid_hashes
        ]

    def read_record(self, channel: str, record_type: type[R]) -> R | None:
        """Return the agent's record in a channel that holds one per agent; else the record that names no agent.

        See `read_lasting_records`.
        """
        records = self.read_lasting_records(channel, record_type)
        return records[-1] if records else None

    def read_lasting_records(self, channel: str, record_type: type[R]) -> list[R]:
        """Return the agent's records in a channel that is kept across turns; else those that name no agent.

        A namesake's record of an earlier turn counts, too: the specification may have been edited since. One of this
        turn is that of another agent, since no specification changes within a turn.
        """
        own_rows: list[Mapping[str, Any]] = []
        earlier_rows: list[Mapping[str, Any]] = []
        nameless_rows: list[Mapping[str, Any]] = []
        for row in self._rows(channel):
            owner = self._find_owner(row)
            if owner == "own":
                own_rows.append(row)
            elif owner == "namesake" and row.get("turn") != self.turn_id:
                earlier_rows.append(row)
            elif not row["agent"]:
                nameless_rows.append(row)
        return _parse_records(channel, record_type, own_rows or earlier_rows or nameless_rows)

    def read_mapping(self, channel: str) -> dict[str, Any]:
        """Return the dict in a channel; an empty one if nothing was written to it."""
        value = self.get(channel) or {}
        if not isinstance(value, Mapping):
            raise make_channel_error(channel, f"a dict of names and values, not {type(value).__name__}")
        return dict(value)

    def build_channel_value(self, channel: str, records: Collection[Record]) -> list[dict[str, Any]]:
        """Return the channel's value with these records as the agent's own, and other agents' left untouched.

        A namesake may be an earlier version of this agent, whose question the customer is about to answer. So its rows
        stay until they are older than the last turn, or the agent writes one with the same id, as its own.
        """
        own_rows: list[dict[str, Any]] = []
        turn_ids = {record.turn for record in records if not record.message_hash}
        hashes = {turn_id: self._message_hash(turn_id) for turn_id in turn_ids}
        for record in records:
            row = record.model_dump(mode="json")
            row["agent"] = self.agent_name
            row["specification"] = record.specification or self.agent_fingerprint
            row["message_hash"] = record.message_hash or hashes[record.turn]
            own_rows.append(row)
        recent_turns = (self.turn_id, self.answered_turn_id)
        written_ids = {row["id"] for row in own_rows if "id" in row}
        rows: list[dict[str, Any]] = []
        for earlier_row in self._rows(channel):
            owner = self._find_owner(earlier_row)
            is_recent = earlier_row.get("turn") in recent_turns
            is_replaced = earlier_row.get("id") in written_ids
            if owner == "other" or (owner == "namesake" and is_recent and not is_replaced):
                rows.append(dict(earlier_row))
        return rows + own_rows

    def _find_owner(self, row: Mapping[str, Any]) -> Literal["own", "namesake", "other"]:
        """Return whose a record is: this agent's, that of one with the same name, or another agent's."""
        if row["agent"] != self.agent_name:
            return "other"
        fingerprint = row.get("specification")  # older records don't have it
        if not fingerprint or not self.agent_fingerprint or fingerprint == self.agent_fingerprint:
            return "own"
        return "namesake"

    def _message_hash(self, turn_id: str | None) -> str:
        """Hash the message that began a turn; "" if the thread doesn't have it."""
        for message in reversed(self.messages):
            if isinstance(message, HumanMessage) and message.id and message.id == turn_id:
                return _hash_content(message)
        for line in reversed(self.history.lines):  # a message without an id
            if line.speaker == "customer" and line.turn_id == turn_id:
                return _hash_content(line.message)
        return ""

    def _rows(self, channel: str) -> Sequence[Mapping[str, Any]]:
        rows = self.get(channel) or ()
        _check_rows(channel, rows)
        return rows


def withhold_messages(messages: Sequence[M], ids: Collection[str]) -> list[M]:
    """Return messages with a note in the place of the content of those with these ids."""
    shown: list[M] = []
    for message in messages:
        if message.id in ids:
            message = message.model_copy(update={"content": WITHHELD})
        shown.append(message)
    return shown


def _hash_content(message: BaseMessage) -> str:
    content = _ENCODER.encode(message.content)
    return blake2b(content.encode(), digest_size=8).hexdigest()


def _check_rows(channel: str, rows: Any) -> None:
    expected = "a list of records as plain JSON, each with its agent"
    if not isinstance(rows, Sequence):
        raise make_channel_error(channel, expected)
    for row in rows:
        is_mapping = isinstance(row, (dict, Mapping))  # a dict by itself is recognized faster
        if not is_mapping or not isinstance(row.get("agent"), str):
            raise make_channel_error(channel, expected)


def view_state(agent: Agent | None, state: Any, messages_key: str = "messages") -> StateView:
    """Return a view of a state for the records of an agent; None: for the records that name no agent."""
    if agent is None:
        return StateView(state, messages_key)
    return StateView(state, messages_key, agent_name=agent.name, agent_fingerprint=agent.fingerprint)


def _parse_records(channel: str, record_type: type[R], rows: Sequence[Mapping[str, Any]]) -> list[R]:
    try:
        return _make_list_adapter(record_type).validate_python(rows)
    except ValidationError as error:
        _, _, problem = describe_first_error(error).partition(".")  # the place begins with the record's index
        raise make_channel_error(channel, f"records of the form {record_type.__name__}: {problem}") from error


@cache
def _make_list_adapter(record_type: type[R]) -> TypeAdapter[list[R]]:
    return TypeAdapter(list[record_type])  # type: ignore[valid-type]


def make_channel_error(channel: str, expected: str) -> StateError:
    """Return the error about a channel whose value isn't what is `expected`."""
    return StateError(
        f"channel {channel!r} must hold {expected}. If the channel is your graph's own, rename it: arq_graph uses "
        "this name. If another version of arq_graph saved this thread, it can't be resumed."
    )
