"""Retrieval: the agent's retrievers search once a turn, and prompts show what they find, as passages to cite."""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Sequence
from functools import partial
from inspect import isawaitable
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import AnyMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    run_in_executor,
    set_config_context,
)
from langgraph.errors import GraphBubbleUp

from arq_graph.agent.knowledge import Knowledge
from arq_graph.agent.passage import Passage
from arq_graph.agent.spec import Agent
from arq_graph.errors import describe_error, require_type, shorten
from arq_graph.nodes.events import PassagesFound
from arq_graph.nodes.node import Node, Update, get_channel_types
from arq_graph.nodes.state_view import StateView, view_state
from arq_graph.reasoning.asking import hide_config
from arq_graph.reasoning.conversation import CHARACTERS_PER_TOKEN, Conversation
from arq_graph.reasoning.deadlines import DeadlineThreads, TimedCall
from arq_graph.reasoning.sections import clean, make_id
from arq_graph.reasoning.steps import run_awaitable

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
        self.declare_channels({messages_key: list[AnyMessage]} | get_channel_types("passages"))

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Search once a turn."""
        state = view_state(self.agent, input, self.messages_key)
        if not self._is_due(state):
            return {}
        query = build_query(state.conversation)
        results = self._search(query, config) if query else []
        return self._make_update(state, query, results)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Search once a turn, without blocking."""
        state = view_state(self.agent, input, self.messages_key)
        if not self._is_due(state):
            return {}
        query = build_query(state.conversation)
        results = await self._asearch(query, config) if query else []
        return self._make_update(state, query, results)

    def _is_due(self, state: StateView) -> bool:
        if not self.agent.knowledge or state.conversation.current_turn_results:
            return False
        return not state.read_turn_records("passages", Passage, state.turn_id)

    def _search(self, query: str, config: RunnableConfig | None) -> list[Any]:
        """Return the result of each retriever, or its error."""
        hidden = hide_config(config, get_callback_manager_for_config)
        with set_config_context(hidden) as context:
            calls: list[TimedCall[Any] | Exception] = []
            for knowledge in self.agent.knowledge:
                calls.append(context.run(self._start, knowledge, query, hidden))
        return [self._wait(call) for call in calls]

    def _start(self, knowledge: Knowledge, query: str, config: RunnableConfig) -> TimedCall[Any] | Exception:
        search = partial(_call, knowledge.retriever, query, config)
        try:
            return self._threads.start(search, pause=0, seconds=knowledge.timeout, on_end=_ignore)
        except TimeoutError as error:  # too many earlier searches haven't ended
            return error

    def _wait(self, call: TimedCall[Any] | Exception) -> Any:
        if isinstance(call, Exception):
            return call
        call.thread.join(max(0, call.deadline - time.monotonic()))
        try:
            return call.get_result()
        except GraphBubbleUp:  # LangGraph's own, such as an interrupt
            raise
        except Exception as error:
            return error
        finally:
            self._threads.abandon(call)

    async def _asearch(self, query: str, config: RunnableConfig | None) -> list[Any]:
        hidden = hide_config(config, get_async_callback_manager_for_config)
        tasks: list[asyncio.Task[Any]] = []
        with set_config_context(hidden) as context:
            for knowledge in self.agent.knowledge:
                search = _acall_in_time(knowledge, query, hidden)
                tasks.append(asyncio.create_task(search, context=context.copy()))
            return await asyncio.gather(*tasks)

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
        passages = selection.passages
        event = PassagesFound(
            query=query,
            passages=tuple(passages),
            left_out=selection.left_out_count,
            failures=tuple(failures),
        )
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
            full_length = len(text)
            if full_length > room and not is_first:
                self.left_out_count += 1
                continue
            self._texts.add(words)
            is_first = False
            text = text[:room]
            room -= len(text)
            passage = Passage(
                turn=self._turn_id,
                id=make_id("S", len(self.passages) + 1),
                text=text,
                shortened_from_characters=full_length if len(text) < full_length else None,
                **_read_labels(document),
            )
            self.passages.append(passage)


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


def _call(retriever: Any, query: str, config: RunnableConfig) -> Any:
    if isinstance(retriever, Runnable):
        return retriever.invoke(query, config)
    result = retriever(query)
    return run_awaitable(result) if isawaitable(result) else result


async def _acall(retriever: Any, query: str, config: RunnableConfig) -> Any:
    if isinstance(retriever, Runnable):
        return await retriever.ainvoke(query, config)
    result = await run_in_executor(None, retriever, query)
    return await result if isawaitable(result) else result


async def _acall_in_time(knowledge: Knowledge, query: str, config: RunnableConfig) -> Any:
    """Return a retriever's result, or its error; its task isn't waited for once its time is up."""
    task = asyncio.ensure_future(_acall(knowledge.retriever, query, config))
    try:
        await asyncio.wait([task], timeout=knowledge.timeout)
        if not task.done():
            return TimeoutError(f"the answer was not complete after {knowledge.timeout:.3g} s")
        if task.cancelled():
            return RuntimeError("its task was cancelled")
        return task.result()
    except GraphBubbleUp:
        raise
    except Exception as error:
        return error
    finally:
        task.cancel()


def _ignore() -> None:
    """Do nothing when a search has ended: its thread is joined."""
