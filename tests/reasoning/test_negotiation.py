"""One of several parallel asks looks for a method that works; the others wait, and never for nobody."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from itertools import count

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import HumanMessage

from arq_graph.errors import ModelUnavailableError
from arq_graph.models.scripted import ScriptedChatModel
from arq_graph.reasoning.answer import Question
from arq_graph.reasoning.methods import METHODS
from arq_graph.reasoning.negotiation import Ended, Negotiation, Wait, negotiation_with
from arq_graph.reasoning.reasoner import Reasoner
from tests.reasoning.verdict import GOOD, PROMPT, Verdict

SCHEMA, FUNCTION, OBJECT = METHODS
numbers = count()


class Unsupported(Exception):
    status_code = 400


def method_of(call) -> str:
    if "tools" in call.kwargs:
        return FUNCTION.name
    return SCHEMA.name if call.schema else OBJECT.name


def scripted(script) -> ScriptedChatModel:
    return ScriptedChatModel(script, model_name=f"negotiated-{next(numbers)}")


def advance(route):
    """Drive `move_on` until it waits or ends; gives the wait or the result."""
    moving = route.move_on()
    try:
        return moving, next(moving)
    except StopIteration as ended:
        return moving, ended.value


def resume(moving, found):
    try:
        return moving.send(found)
    except StopIteration as ended:
        return ended.value


# One ask


def test_the_methods_are_tried_in_order_and_then_there_is_none():
    route = Negotiation().join()
    tried = [route.method]
    while advance(route)[1]:
        tried.append(route.method)
    assert tried == list(METHODS)
    assert route.method is SCHEMA
    assert route.works


def test_what_one_ask_finds_the_next_one_starts_with():
    shared = Negotiation()
    route = shared.join()
    advance(route)
    route.gave_answer()
    following = shared.join()
    assert (following.method, following.works) == (FUNCTION, True)


def test_a_method_that_failed_is_not_where_the_next_ask_begins():
    shared = Negotiation()
    route = shared.join()
    advance(route)
    route.leave()
    assert (shared.join().method, shared.join().works) == (FUNCTION, False)


def test_an_object_that_is_no_valid_answer_proves_nothing_for_later_asks():
    shared = Negotiation()
    route = shared.join()
    route.gave_object()
    assert route.works
    assert not shared.join().works


def test_a_method_proven_meanwhile_is_taken_instead_of_searching():
    shared = Negotiation()
    late, other = shared.join(), shared.join()
    advance(other)
    other.gave_answer()
    assert advance(late)[1] is True
    assert (late.method, late.works) == (FUNCTION, True)


def test_a_method_that_works_for_others_is_not_to_blame_for_ones_own_failure():
    shared = Negotiation()
    mine, other = shared.join(), shared.join()
    other.gave_answer()
    assert advance(mine)[1] is False
    assert (mine.method, mine.works) == (SCHEMA, True)


# Several asks


def test_the_second_waits_for_the_first_and_takes_what_it_finds():
    shared = Negotiation()
    leader, follower = shared.join(), shared.join()
    assert advance(leader)[1] is True
    moving, wait = advance(follower)
    assert isinstance(wait, Wait)
    leader.gave_object()
    assert resume(moving, wait.search.result(0)) is True
    assert (follower.method, follower.works) == (FUNCTION, True)


def test_who_waits_learns_that_no_method_works():
    shared = Negotiation()
    leader, follower, late = shared.join(), shared.join(), shared.join()
    advance(leader)
    moving, wait = advance(follower)
    assert advance(leader)[1] is True
    assert advance(leader)[1] is False
    assert resume(moving, wait.search.result(0)) is False
    assert advance(late)[1] is False


def test_who_waits_for_one_that_went_away_searches_on():
    shared = Negotiation()
    leader, follower = shared.join(), shared.join()
    advance(leader)
    moving, wait = advance(follower)
    leader.leave(ZeroDivisionError())
    assert wait.search.result(0) is Ended.VACANT
    assert resume(moving, Ended.VACANT) is True
    assert follower.method is FUNCTION
    assert not follower.works


def test_who_waits_for_an_endpoint_that_is_down_is_told_so():
    shared = Negotiation()
    leader, follower = shared.join(), shared.join()
    advance(leader)
    moving, wait = advance(follower)
    leader.leave(ModelUnavailableError("down"))
    with pytest.raises(ModelUnavailableError, match="down"):
        resume(moving, wait.search.result(0))


def test_who_waited_long_enough_searches_alone():
    shared = Negotiation()
    leader, follower, third = shared.join(), shared.join(), shared.join()
    advance(leader)
    moving, _ = advance(follower)
    assert resume(moving, None) is True
    assert follower.method is FUNCTION
    assert isinstance(advance(third)[1], Wait)


# With models


def test_parallel_asks_make_one_search(asks):
    arrived = threading.Barrier(5)

    def script(call):
        if method_of(call) == SCHEMA.name:
            arrived.wait(60)
        return GOOD if method_of(call) == OBJECT.name else Unsupported()

    async def ascript(call):
        await asyncio.sleep(0)
        return GOOD if method_of(call) == OBJECT.name else Unsupported()

    model = scripted(ascript if asks.is_async else script)
    answers = asks.all(Reasoner(model), [Question(Verdict, PROMPT)] * 5)
    assert all(answer.satisfied for answer in answers)
    methods = [method_of(call) for call in model.calls]
    assert [methods.count(method.name) for method in METHODS] == [5, 1, 5]


async def test_a_cancelled_search_is_taken_over():
    searching, cancelled = asyncio.Event(), asyncio.Event()

    async def script(call):
        if method_of(call) == SCHEMA.name:
            return Unsupported()
        if not searching.is_set():
            searching.set()
            await cancelled.wait()
        return GOOD

    reasoner = Reasoner(scripted(script))
    leader = asyncio.create_task(reasoner.aask(Verdict, PROMPT))
    await searching.wait()
    followers = [asyncio.create_task(reasoner.aask(Verdict, PROMPT)) for _ in range(3)]
    await asyncio.sleep(0)
    leader.cancel()
    answers = await asyncio.wait_for(asyncio.gather(*followers), 60)
    assert all(answer.satisfied for answer in answers)


async def test_one_that_stops_waiting_does_not_end_the_wait_of_others():
    searching, go = asyncio.Event(), asyncio.Event()
    refused = []

    async def script(call):
        if method_of(call) == SCHEMA.name:
            refused.append(call)
            return Unsupported()
        searching.set()
        await go.wait()
        return GOOD

    model = scripted(script)
    reasoner = Reasoner(model)
    leader = asyncio.create_task(reasoner.aask(Verdict, PROMPT))
    # All three start with the first method, and are refused; one of them searches, two wait.
    impatient, patient = (asyncio.create_task(reasoner.aask(Verdict, PROMPT)) for _ in range(2))
    await searching.wait()
    while len(refused) < 3:
        await asyncio.sleep(0)
    for _ in range(20):
        await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    go.set()
    answers = await asyncio.wait_for(asyncio.gather(leader, patient), 60)
    assert all(answer.satisfied for answer in answers)
    assert [method_of(call) for call in model.calls].count(FUNCTION.name) == 2


def test_a_search_that_ends_in_a_bug_is_taken_over_by_a_thread_that_waits():
    arrived = threading.Barrier(2)
    bug = threading.Event()

    def script(call):
        if method_of(call) == SCHEMA.name:
            arrived.wait(60)
            return Unsupported()
        if not bug.is_set():
            bug.set()
            return ZeroDivisionError("a bug")
        return GOOD

    reasoner = Reasoner(scripted(script))
    outcomes = []

    def ask():
        try:
            outcomes.append(reasoner.ask(Verdict, PROMPT).satisfied)
        except ZeroDivisionError:
            outcomes.append("bug")

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outcomes, key=str) == [True, "bug"]


async def test_a_thread_and_a_task_share_a_search():
    searching, go = threading.Event(), threading.Event()

    def script(call):
        if method_of(call) == SCHEMA.name:
            return Unsupported()
        searching.set()
        go.wait(60)
        return GOOD

    model = scripted(script)
    reasoner = Reasoner(model)
    in_thread = asyncio.create_task(asyncio.to_thread(reasoner.ask, Verdict, PROMPT))
    await asyncio.to_thread(searching.wait, 60)
    asking = asyncio.create_task(reasoner.aask(Verdict, PROMPT))
    await asyncio.sleep(0)
    go.set()
    answers = await asyncio.wait_for(asyncio.gather(in_thread, asking), 60)
    assert all(answer.satisfied for answer in answers)


def test_different_prompts_in_parallel_each_get_their_own_answer(asks):
    def script(call):
        if method_of(call) != OBJECT.name:
            return Unsupported()
        return {**GOOD, "rationale": call.messages[-1].text}

    questions = [Question(Verdict, [HumanMessage(f"Case {number}")]) for number in range(8)]
    answers = asks.all(Reasoner(scripted(script)), questions)
    assert [answer.value.rationale for answer in answers] == [f"Case {number}" for number in range(8)]


# Memory


def test_two_models_of_one_class_name_and_address_are_one_endpoint():
    from langchain_openai import ChatOpenAI

    def known(**fields):
        settings = {"model": "a", "api_key": "k", "base_url": "http://127.0.0.1:1/v1", **fields}
        return negotiation_with(ChatOpenAI(**settings))

    assert known() is known(temperature=0.3)
    assert known() is not known(model="b")
    assert known() is not known(base_url="http://127.0.0.1:2/v1")


def test_a_model_without_name_or_address_is_an_endpoint_of_its_own():
    first, second = FakeListChatModel(responses=["x"]), FakeListChatModel(responses=["x"])
    assert negotiation_with(first) is negotiation_with(first)
    assert negotiation_with(first) is not negotiation_with(second)
    known = weakref.ref(negotiation_with(first))
    del first
    gc.collect()
    assert known() is None


def test_the_memory_is_bounded_and_keeps_what_is_used():
    used = ScriptedChatModel([], model_name="used")
    known = negotiation_with(used)
    first = negotiation_with(ScriptedChatModel([], model_name="flood-0"))
    for number in range(1, 600):
        negotiation_with(ScriptedChatModel([], model_name=f"flood-{number}"))
        assert negotiation_with(used) is known
    assert negotiation_with(ScriptedChatModel([], model_name="flood-0")) is not first
