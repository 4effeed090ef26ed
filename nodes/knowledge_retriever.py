"""Retrieval: the agent's retrievers search once a turn, and prompts show what they find, as passages to cite."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.agent.knowledge import Knowledge
from arq_graph.agent.passage import Passage
from arq_graph.agent.spec import Agent
from arq_graph.errors import describe_error, require_type, shorten
from arq_graph.nodes.events import PassagesFound
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.side_calls import acall_side_by_side, call_side_by_side
from arq_graph.nodes.state_view import StateView, view_state
from arq_graph.reasoning.conversation import CHARACTERS_PER_TOKEN, Conversation
from arq_graph.reasoning.deadlines import DeadlineThreads
from arq_graph.reasoning.sections import clean, make_id

SHORT_QUERY = 60
"""If the customer has written fewer characters than this, the messages before it are searched with, too."""

MAX_QUERY_MESSAGES = 3
MAX_MESSAGE_CHARACTERS = 2_000
MAX_LABEL_CHARACTERS = 200
"""The most characters of a title, a source or an address."""


class KnowledgeRetriever(Node):
    """Search with the customer's words in all of the agent's `knowledge`, and write what is found to `passages`.

    Put it before the nodes that act: beside the matcher, or before it. It searches once a turn: if the turn has
    passages or tool results already, nothing happens. The query is the customer's last message; if it is shorter than
    60 characters, the messages before it come first, up to three in all.

    The passages are numbered `S1`, `S2`, … in the order of the retrievers, each text once. A passage for which its
    retriever's `max_tokens` leave no room is left out; a first one that is longer is cut. The retrievers search at the
    same time. If one raises an error, takes longer than its `timeout` or returns something else than documents and
    texts, a warning and the event `PassagesFound` say so, and the turn goes on without its passages.

    Args:
        agent: The specification.
        messages_key: Channel of the messages.

    Raises:
        InputError: `agent` isn't an `Agent`.
        StateError: When run: a channel holds another type.
    """

    name = "knowledge"

    def __init__(self, agent: Agent, *, messages_key: str = "messages") -> None:
        self.agent = require_type("agent", agent, Agent, "make one with Agent(…)")
        self.messages_key = messages_key
        self._threads = DeadlineThreads()
        self._searches = [(knowledge.retriever, knowledge.timeout) for knowledge in agent.knowledge]
        self.declare_channels({messages_key: list[AnyMessage]} | get_channel_types("passages"))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Search once a turn."""
        state = view_state(self.agent, input, self.messages_key)
        if not self._is_due(state):
            return {}
        query = build_query(state.conversation)
        results = call_side_by_side(self._searches, query, self._threads, config) if query else []
        return self._make_update(state, query, results)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Search once a turn, without blocking."""
        state = view_state(self.agent, input, self.messages_key)
        if not self._is_due(state):
            return {}
        query = build_query(state.conversation)
        results = await acall_side_by_side(self._searches, query, config) if query else []
        return self._make_update(state, query, results)

    def _is_due(self, state: StateView) -> bool:
        if not self.agent.knowledge or state.conversation.current_turn_results:
            return False
        return not state.read_turn_records("passages", Passage, state.turn_id)

    def _make_update(self, state: StateView, query: str, results: Sequence[Any]) -> Update:
        """Number what was found, and report what failed."""
        selection = _Selection(state.turn_id)
        failures: list[str] = []
        for knowledge, result in zip(self.agent.knowledge, results, strict=False):  # none without a query
            try:
                documents = _read_documents(result)
            except Exception as error:
                failures.append(self._report_failure(knowledge, error))
            else:
                selection.add(documents[: knowledge.max_passages], knowledge.max_tokens)
        passages, left_out = tuple(selection.passages), selection.left_out_count
        event = PassagesFound(query=query, passages=passages, left_out=left_out, failures=tuple(failures))
        state.emit(event)
        return {"passages": state.build_channel_value("passages", passages)}

    def _report_failure(self, knowledge: Knowledge, error: Exception) -> str:
        reason = shorten(describe_error(error))
        warnings.warn(
            f"the retriever {knowledge.name} of agent {self.agent.name!r} failed, so the turn goes on without its "
            f"passages: {reason}",
            stacklevel=1,
        )
        return f"{knowledge.name}: {reason}"


def build_query(conversation: Conversation) -> str:
    """Return what to search with: the customer's last message, after those before it if it is short."""
    texts: list[str] = []
    length = 0
    for line in reversed(conversation.lines):
        if line.speaker != "customer":
            continue
        text = line.text.strip()[:MAX_MESSAGE_CHARACTERS]
        texts.insert(0, text)
        length += len(text)
        if length >= SHORT_QUERY or len(texts) == MAX_QUERY_MESSAGES:
            break
    return "\n".join(filter(None, texts))


class _Selection:
    """The passages of a turn: each text once, as far as there is room for it."""

    def __init__(self, turn_id: str) -> None:
        self.passages: list[Passage] = []
        self.left_out_count = 0
        self._turn_id = turn_id
        self._texts: set[str] = set()

    def add(self, documents: Sequence[Document], max_tokens: int) -> None:
        """Add the documents of one retriever, up to so many tokens; a first one that is longer is cut."""
        room = max_tokens * CHARACTERS_PER_TOKEN
        is_first = True
        for document in documents:
            text = clean(document.page_content).strip()
            words = " ".join(text.split())
            if not words or words in self._texts:
                continue
            if len(text) > room and not is_first:
                self.left_out_count += 1
                continue
            self._texts.add(words)
            is_first = False
            fields: dict[str, Any] = _read_labels(document)
            if len(text) > room:
                fields["shortened_from_characters"] = len(text)
            text = text[:room]
            room -= len(text)
            id = make_id("S", len(self.passages) + 1)
            self.passages.append(Passage(turn=self._turn_id, id=id, text=text, **fields))


def _read_documents(result: Any) -> list[Document]:
    """Return what a retriever returned as documents.

    Raises:
        Exception: The retriever raised it.
        TypeError: It returned something else than documents and texts.
    """
    if isinstance(result, Exception):
        raise result
    if not isinstance(result, list | tuple):
        raise TypeError(f"it returned {type(result).__name__}, not a list of documents or texts")
    documents: list[Document] = []
    for item in result:
        if isinstance(item, str):
            item = Document(item)
        if not isinstance(item, Document):
            raise TypeError(f"it returned a list with {type(item).__name__}, not of documents or texts")
        documents.append(item)
    return documents


def _read_labels(document: Document) -> dict[str, str]:
    """Return where a document comes from, as far as its metadata say it in text."""
    labels: dict[str, str] = {}
    for key in ("title", "source", "url"):
        value = document.metadata.get(key)
        if isinstance(value, str):
            labels[key] = clean(value)[:MAX_LABEL_CHARACTERS]
    return labels
