"""Agents of more guidelines than a turn can judge: which of them a look is about, and that no promise breaks by it."""

from __future__ import annotations

import asyncio
import sys
from threading import Thread
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import AIMessage, HumanMessage

from arq_graph import Agent, Guideline, Matching, create_guided_agent, errors
from arq_graph.nodes import GuidelineMatcher
from tests.brain import asked_by, brain
from tests.order_tools import get_order, ran
from tests.running import Runs

TOPICS = ("parcels", "invoices", "vouchers", "passwords", "mattresses", "recycling")
HELLO = HumanMessage("Hello", id="h0")


def about(*topics: str, **fields: Any) -> list[Guideline]:
    """Two guidelines about each topic: a batch of its own."""
    return [
        Guideline(
            f"the customer writes about {topic} ({n})", f"help with {topic}", id=f"{topic}-{n}", **fields
        )
        for topic in topics
        for n in (1, 2)
    ]


def desk(*guidelines: Guideline, **fields: Any) -> Agent:
    return Agent("Desk", "You help.", guidelines or about(*TOPICS), **fields)


def matcher(model: Any, agent: Agent, **settings: Any) -> GuidelineMatcher:
    return GuidelineMatcher(model, agent, **{"batch_size": 2, "max_judged": 2, **settings})


def said(*texts: str, id: str = "h1") -> list[Any]:
    """What the customer says, and before it, in turns, the agent and the customer."""
    kinds = (HumanMessage, AIMessage)
    return [kinds[at % 2](text, id=f"{id}-{at}" if at else id) for at, text in enumerate(reversed(texts))][
        ::-1
    ]


def look(node: Any, messages: Any, before: Any = (), **state: Any) -> list[dict[str, Any]]:
    records = node.invoke({"messages": messages, "guideline_matches": list(before), **state})[
        "guideline_matches"
    ]
    return list(records)


def judged(model: Any) -> set[str]:
    """What was judged since one last asked."""
    ids = {id for asked in asked_by(model, "matcher") for id in asked.now["judge"]}
    model.calls.clear()
    return ids


class Counted(Embeddings):
    """Embeddings that know the topics, count what they are asked, and are asked where they block no event loop."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.fails = fails

    def _of(self, text: str) -> list[float]:
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        if self.fails:
            raise self.fails
        return [float(text.lower().count(topic)) for topic in TOPICS]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(f"{len(texts)} documents")
        return [self._of(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append("query")
        return self._of(text)


@pytest.mark.parametrize("embeddings", [None, Counted()])
def test_a_look_judges_the_batches_that_are_nearest_and_the_others_leave_no_record(embeddings):
    model = brain(judge={"vouchers-1": 9})
    node = matcher(model, desk(), embeddings=embeddings, max_judged=3)
    records = look(node, said("I have a question about PASSWORDS, and about Vouchers"))
    assert {record["guideline"] for record in records} == judged(model)
    assert {record["guideline"].split("-")[0] for record in records} == {"passwords", "vouchers"}
    assert [record["guideline"] for record in records if record["active"]] == ["vouchers-1"]
    assert {each.split("-")[0] for each in judged_of(node, model, said("Invoices!"))} >= {"invoices"}


def judged_of(node: Any, model: Any, messages: Any, before: Any = (), **state: Any) -> set[str]:
    look(node, messages, before, **state)
    return judged(model)


def near(agent: Agent, messages: Any, **settings: Any) -> set[str]:
    """What is judged of an agent in a first look."""
    model = brain()
    return judged_of(matcher(model, agent, **settings), model, messages)


def test_what_a_guideline_does_tells_what_it_is_about_too():
    offers = [Guideline("they complain", f"offer {how} sofa", id=how) for how in ("one", "another")]
    assert near(desk(*about(*TOPICS[:3]), *offers), said("This sofa!")) == {"one", "another"}


def test_up_to_the_number_all_are_judged_in_the_batches_that_they_have_without_it():
    heads = []
    for most in (6, None):
        model = brain()
        look(matcher(model, desk(*about(*TOPICS[:3])), max_judged=most), said("Passwords!"))
        heads.append(sorted((asked.head, str(asked.schema)) for asked in asked_by(model, "matcher")))
    assert len(heads[0]) == 3
    assert heads[0] == heads[1]


def is_vip(state):
    return state["variables"].get("tier") == "vip"


def test_what_is_always_judged_is_never_left_out():
    always = [
        Guideline("the customer is sad", "console", id="sad", always_judge=True),
        Guideline(None, "introduce yourself", id="first"),
        Guideline(is_vip, "thank them", id="vip"),
        Guideline(is_vip, "be fast", id="fast", continuous=True),
    ]
    model = brain(judge={"sad": 9})
    node = matcher(model, desk(*about(*TOPICS), *always))
    assert judged_of(node, model, said("Vouchers?")) == {"vouchers-1", "vouchers-2", "sad", "first"}
    records = look(node, said("Vouchers?"), variables={"tier": "vip"})
    assert judged(model) == {"vouchers-1", "vouchers-2", "sad", "first", "vip"}
    assert {each["guideline"] for each in records if each["active"]} == {"sad", "first", "vip", "fast"}


OPEN = {
    "vouchers-1": {"score": 4, "condition_applies": "not_known_yet"},
    "vouchers-2": 9,
    "passwords-1": {"score": 8, "guideline_previously_applied": "fully", "guideline_should_reapply": False},
}


@pytest.mark.parametrize("keep", ["all", "active"])
def test_what_is_open_from_the_turn_before_is_judged_however_little_the_answer_says(keep):
    model = brain(judge=OPEN)
    node = matcher(model, desk(), max_judged=4, keep_matches=keep)
    before = look(node, said("Vouchers and passwords?"))
    model.calls.clear()
    later = [*said("Vouchers and passwords?"), *said("Which parcels?", "In May.", id="h2")]
    assert judged_of(node, model, later, before) >= {*OPEN}
    assert "passwords-2" not in judged_of(matcher(model, desk()), model, later, before)


def test_what_the_agent_asked_for_tells_what_a_short_answer_is_about():
    asked = near(desk(), said("Hello", "Is it about recycling?", "Yes"))
    assert asked == {"recycling-1", "recycling-2"}


def test_the_guideline_whose_tool_waits_for_an_argument_is_judged():
    granting = Guideline("the customer asks for the status", "look it up", id="status", tools=[get_order])
    model = brain()
    waiting = {"agent": "Desk", "turn": "h0", "tool": "get_order", "kind": "missing", "argument": "order_id"}
    talk = [HELLO, AIMessage("Which number?", id="a0"), HumanMessage("vouchers 17", id="h1")]
    node = matcher(model, desk(*about(*TOPICS), granting))
    assert "status" in judged_of(node, model, talk, tool_insights=[waiting])
    assert "status" not in judged_of(node, model, talk)


def test_relations_come_out_as_if_all_had_been_judged():
    related = [
        *about(*TOPICS),
        Guideline("they are in a hurry", id="hurry"),
        Guideline("they are ill", id="ill", entails=["hurry"]),
        Guideline("x", "do x", id="x", depends_on=["hurry"], entails=["y"]),
        Guideline("y", "do y", id="y"),
        Guideline("z", "do z", id="z", overrides=["y"]),
        Guideline("unrelated", "do nothing", id="unrelated"),
    ]
    rule = Guideline("the customer writes about zebras", "help", id="zebra", entails=["x"])
    agent = desk(*related, rule, Guideline("w", "w", id="w"))
    judge: dict[str, int] = {}
    model = brain(judge=judge)
    node = matcher(model, agent, batch_size=1, max_judged=1)
    for holds, active in (
        ({"zebra": 9, "ill": 9, "x": 9}, {"zebra", "ill", "hurry", "x", "y"}),
        ({"zebra": 9, "ill": 9, "z": 9}, {"zebra", "ill", "hurry", "x", "z"}),
        ({"zebra": 9, "unrelated": 9}, {"zebra"}),  # what it entails needs what is not the case
        ({"z": 9}, {"z"}),
    ):
        judge.clear()
        judge.update(holds)
        records = look(node, said("Zebras!"))
        assert {each["guideline"] for each in records if each["active"]} == active
        assert judged(model) == {"zebra", "x", "hurry", "ill", "z", "y"}


def test_a_later_look_goes_by_the_results_and_keeps_what_was_judged_before():
    model = brain(judge={"mattresses-1": 9})
    node = matcher(model, desk())
    first = look(node, said("Mattresses?"))
    model.calls.clear()
    second = look(node, [*said("Mattresses?"), *ran("parcels")], first)
    assert judged(model) == {"mattresses-2", "parcels-1", "parcels-2"}
    assert {each["guideline"] for each in second} == {
        "mattresses-1",
        "mattresses-2",
        "parcels-1",
        "parcels-2",
    }


def worded(*texts: str) -> Agent:
    return desk(*(Guideline(text, "help", id=f"G{n}") for n, text in enumerate(texts, start=1)))


def test_the_two_nearest_guidelines_of_a_batch_tell_how_near_it_is():
    """Three that name vouchers among others, two that do beside one thing more, and one about them alone."""
    many = ["vouchers invoices passwords parcels"] * 3
    some = ["vouchers parcels", "vouchers parcels", "recycling"]
    one = worded(*many, *some, "vouchers", "mattresses", "mattresses")
    assert near(one, said("vouchers"), batch_size=3, embeddings=Counted()) == {"G4", "G5", "G6"}


def test_what_few_guidelines_say_tells_more_than_what_many_do():
    fruit = worded("yellow balloon", "yellow balloons", "yellow balloonist", "kiwi fruit")
    assert near(fruit, said("a yellow ball, or a kiwi"), batch_size=1, max_judged=1) == {"G4"}


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        (("客户抱怨", "客户询问订单", "客户要求退款"), "我想退款"),
        (("怒っている", "注文について尋ねる", "お客様が返金を求める"), "返金してください"),
        (("불만", "주문 문의", "고객이 환불을 요청"), "환불해 주세요"),
        (("be kind", "an order", "pay it on PayPay返金"), "返金, ok?"),
        (("充電器", "傘", "新しいかばん"), "かばんが届かない"),
        (("vitamin C", "minerals", "vitamin D"), "Have you got D?"),
    ],
)
def test_words_of_a_few_characters_are_found_in_any_script(conditions, says):
    assert near(worded(*conditions), said(says), batch_size=1, max_judged=1) == {"G3"}


@pytest.mark.parametrize("messages", [[], [AIMessage("Hello!", id="a1")], said("Qqq")])
def test_where_nothing_is_near_nothing_is_chosen_and_before_the_customer_has_spoken_nothing_is_embedded(
    messages,
):
    embeddings = Counted()
    assert near(desk(), messages) == set()
    if not messages:
        near(desk(), messages, embeddings=embeddings)
    assert embeddings.asked == []


def test_embeddings_are_asked_for_the_guidelines_once_and_for_the_need_in_each_look(runs: Runs):
    embeddings = Counted()
    model = brain(judge={"vouchers-1": 9})
    app = create_guided_agent(
        model, desk(), matching=Matching(batch_size=2, max_judged=2, embeddings=embeddings)
    )
    assert embeddings.asked == []
    for _ in range(2):
        stream = runs.stream(app, {"messages": said("Vouchers?")}, stream_mode="custom")
        assert stream[0].judged == ("vouchers-1", "vouchers-2")
    assert embeddings.asked == ["12 documents", "query", "query"]


def test_while_one_call_of_the_embeddings_hangs_other_turns_go_on():
    class Hanging(Counted):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            made = super().embed_documents(texts)
            if len(self.asked) == 1:
                other = Thread(target=lambda: others.append(look(node, said("Passwords?"))), daemon=True)
                other.start()
                other.join(timeout=5)
                assert others
            return made

    others: list[Any] = []
    node = matcher(brain(), desk(), embeddings=Hanging())
    assert look(node, said("Vouchers?"))


class Answered(Exception):
    def __init__(self, status_code: int) -> None:
        super().__init__("no")
        self.status_code = status_code


@pytest.mark.parametrize(
    ("raised", "becomes", "why"),
    [
        (
            ConnectionError("lost."),
            errors.ModelUnavailableError,
            "failed: ConnectionError: lost. Try again later.",
        ),
        (Answered(401), errors.ModelRequestError, "failed: Answered: no. Look at the API key"),
        (KeyError("a bug"), KeyError, "a bug"),
    ],
)
def test_embeddings_that_cannot_be_had_stop_the_turn_and_say_so(raised, becomes, why, runs: Runs):
    node = matcher(brain(), desk(), embeddings=Counted(raised))
    with pytest.raises(becomes, match=why):
        runs.invoke(node, {"messages": said("Vouchers?")})


NAN = float("nan")


class Given(Counted):
    """Embeddings that return what they are given to return, and count what they are asked."""

    def __init__(self, documents: Any, query: Any) -> None:
        super().__init__()
        self.documents, self.query = documents, query

    def embed_documents(self, texts: list[str]) -> Any:
        self.asked.append("documents")
        return self.documents

    def embed_query(self, text: str) -> Any:
        return self.query


ROWS = [[1.0, 2.0]] * 12


@pytest.mark.parametrize(
    ("documents", "query", "came"),
    [
        ([*ROWS[1:], [NAN, 1]], [1, 1], r"the shape \(12, 2\) and of lengths from nan to nan"),
        ([*ROWS[1:], [0, 0]], [1, 1], r"lengths from 0 to 2.23607\. They must have the shape \(12, n\)"),
        (ROWS[1:], [1, 1], r"the shape \(11, 2\) .*\. They must have the shape \(12, n\)"),
        (None, [1, 1], "several lengths, or no numbers"),
        ([*ROWS[1:], [1.0]], [1, 1], "several lengths, or no numbers"),
        (ROWS, [0, 0], r"lengths from 0 to 0\. They must have the shape \(1, 2\)"),
        (ROWS, [1, 1, 1], r"the shape \(1, 3\) .*\. They must have the shape \(1, 2\)"),
        (ROWS, None, r"the shape \(1,\)"),
    ],
)
def test_embeddings_that_tell_nothing_stop_the_turn_and_are_asked_again_in_the_next(documents, query, came):
    embeddings = Given(documents, query)
    model = brain()
    node = matcher(model, desk(), embeddings=embeddings)
    with pytest.raises(errors.ModelRequestError, match=f"the vectors that Given returned are .*{came}"):
        look(node, said("Vouchers?"))
    embeddings.documents, embeddings.query = ROWS, [1, 1]
    assert len(judged_of(node, model, said("Vouchers?"))) == 2
    assert len(embeddings.asked) == (1 if documents is ROWS else 2)


def test_by_embeddings_the_nearest_are_judged_however_far_they_are():
    far = Given([[-1.0, 0.0]] * 10 + [[-1.0, 1.0]] * 2, [7.0, 0.0])
    assert near(desk(), said("Vouchers?"), embeddings=far) == {f"{TOPICS[-1]}-1", f"{TOPICS[-1]}-2"}


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"max_judged": 0}, "max_judged must be a whole number from 1 on"),
        ({"max_judged": None, "embeddings": Counted()}, "give max_judged= too"),
        ({"embeddings": "openai:text-embedding-3-small"}, "is a str: give LangChain embeddings"),
        ({"embeddings": Counted}, "is the class Counted: give LangChain embeddings"),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, why):
    with pytest.raises(errors.InputError, match=why):
        matcher(brain(), desk(), **wrong)


def test_embeddings_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(errors.InputError, match=r'pip install "arq_graph\[embeddings\]"'):
        matcher(brain(), desk(), embeddings=Counted())
