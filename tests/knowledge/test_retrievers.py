"""Retrievers of every kind: what is taken from them, and what happens if one fails."""

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from arq_graph import Knowledge, ScriptedChatModel, create_guided_agent
from arq_graph.nodes import KnowledgeRetriever
from tests.brain import brain
from tests.knowledge.library import CARE, QUESTION, Shelf, make_desk, make_input


class OneDocument(BaseRetriever):
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [CARE]


async def find_async(query: str) -> list[str]:
    return [CARE.page_content]


class FindsLater:
    """An object whose method returns a coroutine."""

    def find(self, query: str) -> Any:
        return find_async(query)


def make_store() -> InMemoryVectorStore:
    return InMemoryVectorStore.from_documents([CARE], DeterministicFakeEmbedding(size=8))


def search(*knowledge: Any, runs: Any = None) -> list[dict[str, Any]]:
    node = KnowledgeRetriever(make_desk(*knowledge))
    update = node.invoke(make_input(QUESTION)) if runs is None else runs.invoke(node, make_input(QUESTION))
    return list(update["passages"])


def list_texts(passages: list[dict[str, Any]]) -> list[str]:
    return [passage["text"] for passage in passages]


@pytest.mark.parametrize(
    "retriever",
    [
        OneDocument(),
        make_store().as_retriever(),
        RunnableLambda(lambda query: [CARE]),
        Shelf(CARE),
        Shelf(CARE.page_content),
        lambda: make_store().as_retriever(),
        lambda: Shelf(CARE),
        find_async,
        FindsLater().find,
    ],
)
def test_every_kind_of_retriever_is_searched(retriever, runs):
    assert list_texts(search(retriever, runs=runs)) == ["Wash it at 30 degrees."]


def test_passages_are_numbered_across_retrievers_and_each_text_comes_once():
    passages = search(Shelf("First.", "Second. "), Shelf("Second.\n", " ", "Third."))
    assert [(passage["id"], passage["text"]) for passage in passages] == [
        ("S1", "First."),
        ("S2", "Second."),
        ("S3", "Third."),
    ]


def test_only_so_many_passages_are_taken_from_each_retriever():
    first = Knowledge(Shelf("A.", "B.", "C."), max_passages=2)
    assert list_texts(search(first, Shelf(*"123456"))) == ["A.", "B.", *"1234"]


def test_a_passage_is_whole_or_left_out_and_a_first_one_that_is_too_long_is_cut():
    found = Shelf("a" * 150, "b" * 51, "c" * 50)
    assert list_texts(search(Knowledge(found, max_tokens=50))) == ["a" * 150, "c" * 50]
    (cut,) = search(Knowledge(Shelf("a" * 300, "b"), max_tokens=50))
    assert (cut["text"], cut["shortened_from_characters"]) == ("a" * 200, 300)


def test_the_event_counts_what_there_was_no_room_for():
    found = Knowledge(Shelf("a" * 150, "b" * 51, "c" * 51), max_tokens=50)
    app = create_guided_agent(brain(), make_desk(found))
    events = app.stream(make_input(QUESTION), stream_mode="custom")
    assert [event.left_out for event in events if event.type == "passages_found"] == [2]


def test_only_texts_of_the_metadata_are_shown_and_no_long_ones():
    metadata = {"title": ["a"], "source": 3, "url": "u" * 999, "secret": "x"}
    (passage,) = search(Shelf(Document("Text.", metadata=metadata)))
    assert (passage["title"], passage["source"], passage["url"]) == ("", "", "u" * 200)
    assert "secret" not in str(passage)


def fail(query: str) -> Any:
    raise ConnectionError("the index is down")


async def fail_async(query: str) -> Any:
    raise ConnectionError("the index is down")


@pytest.mark.parametrize(
    ("retriever", "reason"),
    [
        (fail, "ConnectionError: the index is down"),
        (fail_async, "ConnectionError: the index is down"),
        (RunnableLambda(fail), "ConnectionError: the index is down"),
        (lambda query: "a text", "it returned str, not a list of documents or texts"),
        (lambda query: None, "it returned NoneType"),
        (lambda query: [CARE, 3], "it returned a list with int"),
    ],
)
def test_a_retriever_that_fails_is_a_warning_and_an_event_and_not_the_end_of_the_turn(
    retriever, reason, runs
):
    model = brain(reply="I do not know.")
    app = create_guided_agent(model, make_desk(retriever, Shelf("Dry it flat.")))
    with pytest.warns(UserWarning, match=f"of agent 'Desk' failed, so the turn goes on .*{reason}"):
        parts = runs.stream(app, make_input(QUESTION), stream_mode=["custom", "values"])
    (event,) = [part for mode, part in parts if mode == "custom" and part.type == "passages_found"]
    assert reason in event.failures[0]
    assert [passage.text for passage in event.passages] == ["Dry it flat."]
    assert parts[-1][1]["messages"][-1].text == "I do not know."


@pytest.mark.parametrize("is_stubborn", [False, True])
def test_a_retriever_that_does_not_answer_in_time_is_not_waited_for(is_stubborn, runs):
    released = threading.Event()

    async def hang(query: str) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not is_stubborn:
                raise
            await asyncio.Event().wait()

    def block(query: str) -> Any:
        released.wait()
        return []

    hanging = [Knowledge(block, timeout=0.02)]
    if runs.runner is not None:
        hanging.append(Knowledge(hang, timeout=0.02))
    with pytest.warns(UserWarning, match=r"TimeoutError: the answer was not complete after 0.02 s"):
        passages = search(*hanging, Shelf("Dry it flat."), runs=runs)
    released.set()
    assert list_texts(passages) == ["Dry it flat."]


def test_a_model_that_a_retriever_asks_is_not_streamed_to_users(runs):
    rewriter = ScriptedChatModel(["the query in other words"])

    def find(query: str) -> list[str]:
        return [f"About {rewriter.invoke(query).text}."]

    async def find_later(query: str) -> list[str]:
        return [f"About {(await rewriter.ainvoke(query, {'tags': ['own']})).text}."]

    for retriever in (find, RunnableLambda(find), find_later):
        rewriter = ScriptedChatModel(["the query in other words"])
        app = create_guided_agent(brain(reply="Yes."), make_desk(retriever))
        parts = runs.stream(app, make_input(QUESTION), stream_mode=["messages", "values"])
        texts = [message[0].text for mode, message in parts if mode == "messages"]
        assert parts[-1][1]["passages"][0]["text"] == "About the query in other words."
        assert "".join(texts) == "Yes."


def test_the_config_of_the_run_reaches_the_retriever(runs):
    seen: list[Any] = []

    def find(query: str, config: Any) -> list[str]:
        seen.append(config["configurable"]["shelf"])
        return []

    app = create_guided_agent(brain(), make_desk(RunnableLambda(find)))
    runs.invoke(app, make_input(QUESTION), {"configurable": {"shelf": "coats"}})
    assert seen == ["coats"]
