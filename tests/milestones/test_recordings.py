"""Recordings: a run whose model answers were kept is held again without its models, and what changed is told."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
from arq_graph.errors import InputError
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import (
    Limits,
    LLMJudge,
    Milestone,
    MilestoneGraph,
    ReplayChatModel,
    Report,
    Scenario,
    Suite,
    evaluate,
    write_report,
)
from arq_graph.models.offline.model import OfflineChatModel
from tests.brain import filled, inlined
from tests.milestones.evaluated import speaking
from tests.reasoning.endpoint import Endpoint, Reply, Request, ok, status, text

ORDER = {"order_id": "ORD-1002"}
LOOK_UP = "look the order up and tell its status"
TOLD = "the agent told the customer the status"
OFFLINE = OfflineChatModel()


def get_order(order_id: str) -> str:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return f"{order_id} is at the warehouse"


def get_order_of(order_id: str, year: int = 2025) -> str:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
        year: When it was placed.
    """
    return get_order(order_id)


def orders(*names: str, action: str = LOOK_UP, tool: Any = get_order, **fields: Any) -> Suite:
    """Scenarios of a customer who asks about an order."""
    found = Milestone(name="Found", type="FC", tool=tool.__name__, dependencies=("Start",))
    said = Milestone(name="Told", type="NFC", description=TOLD, dependencies=("Found",))
    ends = (Milestone(name="Start", type="NFC"), Milestone(name="End", type="NFC", dependencies=("Told",)))
    agent = Agent("Desk", "A desk.", [Guideline("they ask about an order", action)], tools=[tool])
    every = {"milestones": MilestoneGraph([ends[0], found, said, ends[1]]), "agent": agent, **fields}
    every["user"] = {"intents": [{"request": "Where is my order ORD-1002?", "slots": ORDER}]}
    return Suite(scenarios=tuple(Scenario(name=name, **every) for name in names or ("late",)), name="orders")


class Numbered(ScriptedChatModel):
    """Answers as the offline model does, or as a function says; it never calls a tool by the same id."""

    def __init__(self, answer: Callable[[Any], Any] | None = None, name: str = "") -> None:
        super().__init__(answer or self._as_offline, model_name=name or f"numbered-{uuid4().hex}")

    @staticmethod
    def _as_offline(call: Any) -> Any:
        if call.schema is None and call.messages[-1].type == "human":
            return AIMessage("", tool_calls=[{"name": "get_order", "args": ORDER, "id": uuid4().hex}])
        return offline(call)


def offline(call: Any) -> Any:
    return OFFLINE._generate(call.messages, **call.kwargs).generations[0].message


def person() -> ScriptedChatModel:
    """Plays the user, and never says the same twice."""
    number = count(1)
    return ScriptedChatModel(
        lambda call: speaking(f"{next(number)}: where is my order ORD-1002?", finished='"agent"' in call.text)
    )


def judging() -> ScriptedChatModel:
    """Judges that the status was told, once in two times."""
    number = count(1)
    no = {"achieved": False, "step": None, "quote": None, "reason": "not so"}

    def answer(call: Any) -> Any:
        given = filled(inlined(call.schema))
        given["M3"] |= no if next(number) % 2 else no | {"achieved": True, "step": 1}
        return given

    return ScriptedChatModel(answer)


def held(tried: Suite, *names: str, **settings: Any) -> Report:
    return evaluate(tried, load_arms(list(names or ("guided",))), **settings)


def written(report: Report, folder: Path) -> bytes:
    write_report(folder / "report.json", report)
    return (folder / "report.json").read_bytes()


def assert_same(one: Report, other: Report, folder: Path) -> None:
    assert one.conversations
    assert written(one, folder) == written(other, folder)


# --- the same report -------------------------------------------------------------------------------------------------


def test_a_replay_gives_the_same_report_byte_for_byte_in_every_arm_with_users_and_judge(tmp_path: Path):
    file, tried = tmp_path / "run.jsonl", orders()
    names = ["guided", "direct", "react", "pre-act", "respact", "create_agent"]
    asked = {"model": Numbered(), "user_model": person(), "judge": LLMJudge(judging(), votes=2)}
    first = held(tried, *names, runs=2, results=file, record=True, **asked)
    model, user = ReplayChatModel(file), ReplayChatModel(file, role="user_model")
    judge = LLMJudge(ReplayChatModel(file, role="judge"), votes=2)
    again = held(tried, *names, runs=2, concurrency=1, model=model, user_model=user, judge=judge)
    assert len(first.conversations) == 12
    assert any(one.agreement for one in first.conversations)
    assert_same(first, again, tmp_path)
    assert (model.model_name, user.model_name) == (asked["model"].model_name, "scripted")


def test_what_a_stand_in_said_stays_a_stand_ins_in_the_replay(tmp_path: Path):
    first = held(orders(), model="offline", results=tmp_path / "run.jsonl", record=True)
    again = held(orders(), model=ReplayChatModel(tmp_path))
    assert again.stand_ins == ("the agent's model",)
    assert_same(first, again, tmp_path)


def test_a_run_that_was_stopped_and_killed_replays_as_one_that_was_not(tmp_path: Path):
    file, tried = tmp_path / "run.jsonl", orders("a", "b")
    asked = {"model": Numbered(), "user_model": person()}
    settings: dict[str, Any] = {"runs": 2, "results": file, "record": True, **asked}
    stopped = held(tried, max_calls=10, concurrency=1, **settings)
    with file.open("ab") as end:
        end.write(b'{"arq_graph": {"calls": 3')  # killed in the middle of a line
    whole = held(tried, resume=True, **settings)
    assert (stopped.missing > 1, whole.missing) == (True, 0)
    replay = {"model": ReplayChatModel(file), "user_model": ReplayChatModel(file, role="user_model")}
    assert_same(whole, held(tried, runs=2, **replay), tmp_path)
    kept = {"results": tmp_path / "replay.jsonl", "record": True}
    held(tried, runs=1, **kept, **replay)
    assert_same(whole, held(tried, runs=2, resume=True, **kept, **replay), tmp_path)


# --- what a model or its endpoint did --------------------------------------------------------------------------------


def endpoints(request: Request) -> Reply:
    roles = {"system": SystemMessage, "assistant": AIMessage}
    messages = [roles.get(each["role"], HumanMessage)(each["content"]) for each in request.messages]
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": request.schema}}
    return ok(json.loads(str(OFFLINE.invoke(messages, response_format=form).text)))


def in_words(request: Request) -> Reply:
    return text("I would rather say it in words.")


def refused(request: Request) -> Reply:
    return status(400, "response_format is not supported")


def in_prompt_alone(request: Request) -> Reply:
    schema = json.loads(request.prompt.rpartition("schema's order:\n")[2].partition("\n")[0])
    request.body["tools"] = [{"function": {"parameters": schema}}]
    return endpoints(request)


OTHERS = {
    "json_schema is refused": {"json_schema": refused},
    "json_schema is answered in words": {"json_schema": in_words},
    "schemas are taken in the prompt alone": {
        "json_schema": refused,
        "function_calling": refused,
        "json_mode": in_prompt_alone,
    },
}


@pytest.mark.parametrize("others", OTHERS.values(), ids=list(OTHERS))
def test_however_an_endpoint_had_to_be_asked_its_answers_are_found(others: dict[str, Any], tmp_path: Path):
    with Endpoint(lambda request: others.get(request.method, endpoints)(request)) as endpoint:
        settings: dict[str, Any] = {"results": tmp_path / "run.jsonl", "record": True}
        first = held(orders("a", "b"), model=endpoint.chat_model(), **settings)
    # In another order, others find it out.
    again = held(orders("a", "b"), model=ReplayChatModel(tmp_path), concurrency=1)
    assert all(one.error is None for one in first.conversations)
    assert_same(first, again, tmp_path)


class Overloaded(Exception):
    status_code = 429


class TooLong(Exception):
    status_code = 400


async def never(call: Any) -> Any:
    await asyncio.sleep(60)


def lost(call: Any) -> Any:
    raise Overloaded("slow down")


def rejected(call: Any) -> Any:
    raise TooLong("maximum context length is 7 tokens")


def broken(call: Any) -> Any:
    raise KeyError("a bug of its own")


def invalid(call: Any) -> Any:
    return '{"no": "such query"}'


def cut_off(call: Any) -> Any:
    return AIMessage('{"G1', response_metadata={"finish_reason": "length"})


FAULTS = [(never, 50), (lost, 50), (rejected, 50), (broken, 50), (invalid, 50), (None, 5)]
FAULTS += [(cut_off, 50), (cut_off, 6)]  # which is asked for again, unless it was the last call


@pytest.mark.parametrize(("fault", "calls"), FAULTS)
def test_what_went_wrong_in_the_run_goes_wrong_in_the_replay(fault: Any, calls: int, tmp_path: Path):
    number = count(1)

    async def answer(call: Any) -> Any:
        if next(number) != 6 or fault is None:
            return offline(call)
        return await fault(call) if fault is never else fault(call)

    tried = orders("a", "b", limits=Limits(seconds=0.5 if fault is never else None, calls=calls))
    model = Numbered(answer).model_copy(update={"max_tokens": 500 if fault is cut_off else None})
    settings: dict[str, Any] = {"results": tmp_path / "run.jsonl", "record": True, "concurrency": 1}
    first = held(tried, model=model, **settings)
    again = held(tried, model=ReplayChatModel(tmp_path), concurrency=2)
    assert len(first.conversations) + len(first.failed) == 2
    assert (calls > 6) is any(one.ended == "user" for one in first.conversations)
    assert_same(first, again, tmp_path)


@pytest.mark.parametrize("limit", [None, 500])
def test_an_answer_that_was_cut_off_while_it_was_streamed_is_none_in_the_replay_either(
    limit: int | None, tmp_path: Path
):
    number = count(1)

    def answer(request: Request) -> Reply:
        if request.method == "json_schema":
            return refused(request)
        whole = endpoints(request)
        if not request.body.get("stream") or next(number) % 2 == 0 or whole.message is None:
            return whole
        almost = {"content": whole.message["content"][:-2]}
        return replace(whole, message=almost, finish_reason="length")

    def streams(scenario: Scenario, agent: Any, model: Any) -> Any:
        return create_guided_agent(model, agent, stream=True)

    arm, settings = {"streams": streams}, {"results": tmp_path / "run.jsonl", "record": True}
    with Endpoint(answer) as endpoint:
        first = evaluate(orders(), arm, model=endpoint.chat_model(max_tokens=limit), **settings)
    assert [one.ended for one in first.conversations] == ["user" if limit else "error"]
    assert_same(first, evaluate(orders(), arm, model=ReplayChatModel(tmp_path)), tmp_path)


# --- what is not recorded --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arm", "changes", "told"),
    [
        (
            "guided",
            {"action": "be brief"},
            "late / guided / 1: what the module 'matcher' asks .*: message 1 of 2 differs",
        ),
        (
            "create_agent",
            {"tool": get_order_of},
            "late / create_agent / 1: .* or the tools, differ from what they were",
        ),
        ("guided", {"name": "early"}, "early / guided / 1: it is not in the recording"),
    ],
)
def test_a_prompt_or_a_schema_that_changed_ends_the_replay(arm: str, changes: Any, told: str, tmp_path: Path):
    held(orders(), arm, model=Numbered(), results=tmp_path / "run.jsonl", record=True)
    with pytest.raises(InputError, match=told):
        held(orders(changes.pop("name", "late"), **changes), arm, model=ReplayChatModel(tmp_path))


def test_a_request_that_is_not_made_any_more_ends_the_replay(tmp_path: Path):
    settings: dict[str, Any] = {"results": tmp_path / "run.jsonl", "record": True}
    held(orders(), model=Numbered(), judge=LLMJudge(judging()), **settings)
    with pytest.raises(
        InputError, match=r"late / guided / 1: 1 of the recorded requests .* the module 'judge'"
    ):
        held(orders(), model=ReplayChatModel(tmp_path))


def test_a_request_beyond_the_recorded_ones_ends_the_replay(tmp_path: Path):
    held(orders(), model=Numbered(), results=tmp_path / "run.jsonl", record=True)
    with pytest.raises(
        InputError, match=r"late / guided / 1: what the module 'judge' asks .* no further answer for it"
    ):
        held(orders(), model=ReplayChatModel(tmp_path), judge=LLMJudge(ReplayChatModel(tmp_path)))


def test_what_no_replay_can_be_made_of_is_told(tmp_path: Path):
    with pytest.raises(InputError, match="record=True needs results="):
        held(orders(), record=True)
    held(orders(), model="offline", results=tmp_path / "run.jsonl")
    for given, told in (
        (tmp_path, "no recording is there"),
        (tmp_path / "none.jsonl", "cannot be read: No such file"),
    ):
        with pytest.raises(InputError, match=told):
            ReplayChatModel(given)
    held(orders(), model="offline", results=tmp_path / "other.jsonl", record=True)
    with pytest.raises(InputError, match="only in conversations that `evaluate` holds"):
        ReplayChatModel(tmp_path / "other.jsonl").invoke("hello")
