"""Agents with more guidelines than a turn can judge: which of them a matching pass judges."""

import asyncio
import sys
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, Guideline, errors
from arq_graph.nodes import GuidelineMatcher
from tests.brain import brain, get_prompts
from tests.order_tools import get_order, ran
from tests.running import Runs

TOPICS = ("parcels", "invoices", "vouchers", "passwords", "mattresses", "recycling")


def make_guidelines(*topics: str) -> list[Guideline]:
    """Make two guidelines about each topic, which form a batch."""
    guidelines: list[Guideline] = []
    for topic in topics:
        for number in (1, 2):
            condition = f"the customer writes about {topic} ({number})"
            guidelines.append(Guideline(condition, f"help with {topic}", id=f"{topic}-{number}"))
    return guidelines


def make_desk(*guidelines: Guideline) -> Agent:
    return Agent("Desk", "You help.", guidelines or make_guidelines(*TOPICS))


def make_matcher(model: Any, agent: Agent, **settings: Any) -> GuidelineMatcher:
    return GuidelineMatcher(model, agent, **{"batch_size": 2, "max_judged": 2, **settings})


def customer(text: str) -> list[Any]:
    return [HumanMessage(text, id="h1")]


def run_pass(node: Any, messages: Any, stored: Any = (), **state: Any) -> list[dict[str, Any]]:
    update = node.invoke({"messages": messages, "guideline_matches": list(stored), **state})
    return list(update["guideline_matches"])


def pop_judged(model: Any) -> set[str]:
    """Return the ids that were judged since the last call of this function."""
    judged: set[str] = set()
    for prompt in get_prompts(model, "matcher"):
        judged.update(prompt.now["judge"])
    model.calls.clear()
    return judged


def select(agent: Agent, messages: Any, **settings: Any) -> set[str]:
    """Return the ids that a first matching pass judges."""
    model = brain()
    run_pass(make_matcher(model, agent, **settings), messages)
    return pop_judged(model)


def list_active(records: list[dict[str, Any]]) -> set[str]:
    return {record["guideline"] for record in records if record["active"]}


class TopicEmbeddings(Embeddings):
    """Embeddings that count the topics in a text; they record their calls, and refuse to block an event loop."""

    def __init__(self, error: Exception | None = None) -> None:
        self.calls: list[str] = []
        self.error = error

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(f"{len(texts)} documents")
        return [self._embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.calls.append("query")
        return self._embed(text)

    def _embed(self, text: str) -> list[float]:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        if self.error:
            raise self.error
        return [float(text.lower().count(topic)) for topic in TOPICS]


@pytest.mark.parametrize("embeddings", [None, TopicEmbeddings()], ids=["spelling", "embeddings"])
def test_nearest_batches_are_judged_and_others_leave_no_record(embeddings):
    model = brain(judge={"vouchers-1": 9})
    node = make_matcher(model, make_desk(), embeddings=embeddings, max_judged=3)
    records = run_pass(node, customer("I have a question about PASSWORDS, and about Vouchers"))
    assert {record["guideline"] for record in records} == pop_judged(model)
    assert {record["guideline"].split("-")[0] for record in records} == {"passwords", "vouchers"}
    assert list_active(records) == {"vouchers-1"}


def test_up_to_max_judged_all_are_judged_in_the_usual_batches():
    requests = []
    for max_judged in (6, None):
        model = brain()
        node = make_matcher(model, make_desk(*make_guidelines(*TOPICS[:3])), max_judged=max_judged)
        run_pass(node, customer("Passwords!"))
        requests.append(sorted((prompt.head, str(prompt.schema)) for prompt in get_prompts(model, "matcher")))
    assert len(requests[0]) == 3
    assert requests[0] == requests[1]


def is_vip(state):
    return state["variables"].get("tier") == "vip"


def test_guidelines_that_are_always_judged_are_never_left_out():
    always = [
        Guideline("the customer is sad", "console", id="sad", always_judge=True),
        Guideline(None, "introduce yourself", id="first"),
        Guideline(is_vip, "thank them", id="vip"),
        Guideline(is_vip, "be fast", id="fast", continuous=True),
    ]
    model = brain(judge={"sad": 9})
    node = make_matcher(model, make_desk(*make_guidelines(*TOPICS), *always))
    run_pass(node, customer("Vouchers?"))
    assert pop_judged(model) == {"vouchers-1", "vouchers-2", "sad", "first"}
    records = run_pass(node, customer("Vouchers?"), variables={"tier": "vip"})
    assert pop_judged(model) == {"vouchers-1", "vouchers-2", "sad", "first", "vip"}
    assert list_active(records) == {"sad", "first", "vip", "fast"}


@pytest.mark.parametrize("keep", ["all", "active"])
def test_open_guidelines_of_the_previous_turn_are_judged_again(keep):
    still_open = {
        "vouchers-1": {"score": 4, "condition_applies": "not_known_yet"},
        "vouchers-2": 9,
        "passwords-1": {
            "score": 8,
            "guideline_previously_applied": "fully",
            "guideline_should_reapply": False,
        },
    }
    model = brain(judge=still_open)
    node = make_matcher(model, make_desk(), max_judged=4, keep_matches=keep)
    stored = run_pass(node, customer("Vouchers and passwords?"))
    model.calls.clear()
    reply = [AIMessage("Which parcels?", id="a1"), HumanMessage("In May.", id="h2")]
    run_pass(node, [*customer("Vouchers and passwords?"), *reply], stored)
    assert pop_judged(model) >= {*still_open}


def test_the_agents_question_belongs_to_the_search_text_of_a_short_answer():
    messages = [
        HumanMessage("Hello", id="h0"),
        AIMessage("Is it about recycling?", id="a0"),
        *customer("Yes"),
    ]
    assert select(make_desk(), messages) == {"recycling-1", "recycling-2"}


def test_guideline_whose_tool_awaits_an_argument_is_judged():
    granting = Guideline("the customer asks for the status", "look it up", id="status", tools=[get_order])
    missing = {"agent": "Desk", "turn": "h0", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    messages = [HumanMessage("Hello", id="h0"), AIMessage("Which number?", id="a0"), *customer("vouchers 17")]
    model = brain()
    node = make_matcher(model, make_desk(*make_guidelines(*TOPICS), granting))
    run_pass(node, messages, tool_insights=[missing])
    assert "status" in pop_judged(model)


def test_relations_come_out_as_if_all_guidelines_had_been_judged():
    agent = make_desk(
        *make_guidelines(*TOPICS),
        Guideline("they are in a hurry", id="hurry"),
        Guideline("they are ill", id="ill", entails=["hurry"]),
        Guideline("x", "do x", id="x", depends_on=["hurry"], entails=["y"]),
        Guideline("y", "do y", id="y"),
        Guideline("z", "do z", id="z", overrides=["y"]),
        Guideline("unrelated", "do nothing", id="unrelated"),
        Guideline("the customer writes about zebras", "help", id="zebra", entails=["x"]),
        Guideline("w", "w", id="w"),
    )
    judge: dict[str, int] = {}
    model = brain(judge=judge)
    node = make_matcher(model, agent, batch_size=1, max_judged=1)
    for matched, active in (
        ({"zebra": 9, "ill": 9, "x": 9}, {"zebra", "ill", "hurry", "x", "y"}),
        ({"zebra": 9, "ill": 9, "z": 9}, {"zebra", "ill", "hurry", "x", "z"}),
        ({"zebra": 9, "unrelated": 9}, {"zebra"}),  # x depends on a guideline that isn't active
    ):
        judge.clear()
        judge.update(matched)
        assert list_active(run_pass(node, customer("Zebras!"))) == active
        assert pop_judged(model) == {"zebra", "x", "hurry", "ill", "z", "y"}


def test_rematch_searches_with_the_results_and_keeps_earlier_matches():
    model = brain(judge={"mattresses-1": 9})
    node = make_matcher(model, make_desk())
    first = run_pass(node, customer("Mattresses?"))
    model.calls.clear()
    second = run_pass(node, [*customer("Mattresses?"), *ran("parcels")], first)
    judged = {"mattresses-2", "parcels-1", "parcels-2"}
    assert pop_judged(model) == judged
    assert {record["guideline"] for record in second} == {"mattresses-1", *judged}


def make_worded_desk(*conditions: str) -> Agent:
    return make_desk(*(Guideline(text, "help", id=f"G{n}") for n, text in enumerate(conditions, start=1)))


def test_two_nearest_guidelines_of_a_batch_decide():
    """Three that name vouchers among others, two that do with one thing more, and one about them alone."""
    many = ["vouchers invoices passwords parcels"] * 3
    some = ["vouchers parcels", "vouchers parcels", "recycling"]
    one = ["vouchers", "mattresses", "mattresses"]
    desk = make_worded_desk(*many, *some, *one)
    judged = select(desk, customer("vouchers"), batch_size=3, embeddings=TopicEmbeddings())
    assert judged == {"G4", "G5", "G6"}


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        (("客户抱怨", "客户询问订单", "客户要求退款"), "我想退款"),
        (("vitamin C", "minerals", "vitamin D"), "Have you got D?"),
    ],
)
def test_short_words_are_found_in_any_script(conditions, text):
    assert select(make_worded_desk(*conditions), customer(text), batch_size=1, max_judged=1) == {"G3"}


@pytest.mark.parametrize("messages", [[], [AIMessage("Hello!", id="a1")], customer("Qqq")])
def test_no_guideline_is_chosen_if_none_is_near(messages):
    assert select(make_desk(), messages) == set()


def test_guidelines_are_embedded_once_and_the_search_text_in_each_pass(runs: Runs):
    embeddings = TopicEmbeddings()
    node = make_matcher(brain(), make_desk(), embeddings=embeddings)
    runs.invoke(node, {"messages": []})
    assert embeddings.calls == []
    for _ in range(2):
        update = runs.invoke(node, {"messages": customer("Vouchers?")})
        judged = [record["guideline"] for record in update["guideline_matches"]]
        assert judged == ["vouchers-1", "vouchers-2"]
    assert embeddings.calls == ["12 documents", "query", "query"]


class StatusError(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__("no")
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    [
        (
            ConnectionError("lost."),
            errors.ModelUnavailableError,
            "failed: ConnectionError: lost. Try again later.",
        ),
        (StatusError(401), errors.ModelRequestError, "failed: StatusError: no. Look at the API key"),
        (KeyError("a bug"), KeyError, "a bug"),
    ],
)
def test_failing_embeddings_stop_the_turn(error, raised, message, runs: Runs):
    node = make_matcher(brain(), make_desk(), embeddings=TopicEmbeddings(error))
    with pytest.raises(raised, match=message):
        runs.invoke(node, {"messages": customer("Vouchers?")})


class FixedEmbeddings(TopicEmbeddings):
    """Embeddings that return these vectors."""

    def __init__(self, documents: Any, query: Any) -> None:
        super().__init__()
        self.documents, self.query = documents, query

    def embed_documents(self, texts: list[str]) -> Any:
        self.calls.append("documents")
        return self.documents

    def embed_query(self, text: str) -> Any:
        return self.query


ROWS = [[1.0, 2.0]] * 12


@pytest.mark.parametrize(
    ("documents", "query", "problem"),
    [
        ([*ROWS[1:], [float("nan"), 1]], [1, 1], r"the shape \(12, 2\) and lengths from nan to nan"),
        (ROWS[1:], [1, 1], r"the shape \(11, 2\) .*\. They must have the shape \(12, n\)"),
        ([*ROWS[1:], [1.0]], [1, 1], "different lengths or aren't numbers"),
        (ROWS, [1, 1, 1], r"the shape \(1, 3\) .*\. They must have the shape \(1, 2\)"),
    ],
)
def test_unusable_vectors_stop_the_turn_and_are_asked_again_in_the_next(documents, query, problem):
    embeddings = FixedEmbeddings(documents, query)
    model = brain()
    node = make_matcher(model, make_desk(), embeddings=embeddings)
    with pytest.raises(
        errors.ModelRequestError, match=f"the vectors that FixedEmbeddings returned have .*{problem}"
    ):
        run_pass(node, customer("Vouchers?"))
    embeddings.documents, embeddings.query = ROWS, [1, 1]
    run_pass(node, customer("Vouchers?"))
    assert len(pop_judged(model)) == 2
    assert len(embeddings.calls) == (1 if documents is ROWS else 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_judged": 0}, "max_judged must be a whole number from 1 on"),
        ({"max_judged": None, "embeddings": TopicEmbeddings()}, "give max_judged= too"),
        ({"embeddings": TopicEmbeddings}, "is the class TopicEmbeddings: give LangChain embeddings"),
    ],
)
def test_invalid_settings_are_refused(settings, message):
    with pytest.raises(errors.InputError, match=message):
        make_matcher(brain(), make_desk(), **settings)


def test_embeddings_without_numpy_name_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(errors.InputError, match=r'pip install "arq_graph\[embeddings\]"'):
        make_matcher(brain(), make_desk(), embeddings=TopicEmbeddings())
