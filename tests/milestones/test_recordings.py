"""Recordings: a run whose model answers were recorded is repeated without its models."""

import gzip
import json
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI

from arq_graph import Agent, Guideline, ScriptedChatModel
from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import (
    Limits,
    LLMJudge,
    Milestone,
    MilestoneGraph,
    RecordingChatModel,
    ReplayChatModel,
    Report,
    Scenario,
    Suite,
    evaluate,
)
from arq_graph.models.offline.model import OfflineChatModel
from tests.milestones.user_talks import make_user_answer
from tests.reasoning.endpoint import Endpoint, Reply, Request, ok, status, text
from tests.schemas import fill_schema, inline_references

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


def orders(*names: str, action: str = LOOK_UP, **fields: Any) -> Suite:
    """Scenarios of a customer who asks about an order."""
    milestones = [
        Milestone(name="Start", type="NFC"),
        Milestone(name="Found", type="FC", tool="get_order", dependencies=("Start",)),
        Milestone(name="Told", type="NFC", description=TOLD, dependencies=("Found",)),
        Milestone(name="End", type="NFC", dependencies=("Told",)),
    ]
    agent = Agent("Desk", "A desk.", [Guideline("they ask about an order", action)], tools=[get_order])
    fields = {"milestones": MilestoneGraph(milestones), "agent": agent, **fields}
    fields["user"] = {"intents": [{"request": "Where is my order ORD-1002?", "slots": ORDER}]}
    scenarios = tuple(Scenario(name=name, **fields) for name in names or ("late",))
    return Suite(scenarios=scenarios, name="orders")


class Numbered(ScriptedChatModel):
    """Answers as the offline model does, or as a function says; it never calls a tool by the same id."""

    def __init__(self, answer: Callable[[Any], Any] | None = None) -> None:
        super().__init__(answer or self._as_offline, model_name=f"numbered-{uuid4().hex}")

    @staticmethod
    def _as_offline(call: Any) -> Any:
        if call.schema is None and call.messages[-1].type == "human":
            return AIMessage("", tool_calls=[{"name": "get_order", "args": ORDER, "id": uuid4().hex}])
        return offline(call)


def offline(call: Any) -> Any:
    return OFFLINE._generate(call.messages, **call.kwargs).generations[0].message


def person() -> ScriptedChatModel:
    """Plays the user, and never says the same twice."""
    numbers = count(1)

    def answer(call: Any) -> Any:
        message = f"{next(numbers)}: where is my order ORD-1002?"
        return make_user_answer(message, finished='"agent"' in call.text)

    return ScriptedChatModel(answer)


def judging() -> ScriptedChatModel:
    """Judges that the status was told, once in two times."""
    numbers = count(1)

    def answer(call: Any) -> Any:
        verdicts = fill_schema(inline_references(call.schema))
        number = next(numbers)
        verdicts["M3"] |= {"achieved": False, "step": None, "quote": None, "reason": f"not so ({number})"}
        if number % 2 == 0:
            verdicts["M3"] |= {"achieved": True, "step": 1}
        return verdicts

    return ScriptedChatModel(answer)


def run(suite: Suite, *names: str, **settings: Any) -> Report:
    return evaluate(suite, load_arms(list(names or ("guided",))), **settings)


COSTS = {"model_calls", "steps", "input_tokens", "output_tokens"}
"""What a run spent on calls that failed or were repeated, which a replay doesn't make."""


def dump(report: Report, *, without: Collection[str] = ()) -> list[Any]:
    """Return what a report says of each conversation, apart from its duration."""
    conversations = (*report.conversations, *report.broken)
    return [conversation.model_dump(exclude={"turn_seconds", *without}) for conversation in conversations]


# --- the same report -------------------------------------------------------------------------------------------------


def test_a_replay_comes_to_the_same_report_in_every_arm_with_users_and_judge(tmp_path: Path):
    files = [tmp_path / name for name in ("model.jsonl", "user.jsonl", "judge.jsonl")]
    names = ["guided", "direct", "react", "pre-act", "respact", "create_agent"]
    agent, user, judge = map(RecordingChatModel, files, (Numbered(), person(), judging()))
    models: dict[str, Any] = {"model": agent, "user_model": user, "judge": LLMJudge(judge, votes=2)}
    first = run(orders(), *names, runs=2, **models)
    assert len(first.conversations) == 12
    assert any(one.agreement for one in first.conversations)
    agent, user, judge = map(ReplayChatModel, files)
    models = {"model": agent, "user_model": user, "judge": LLMJudge(judge, votes=2)}
    assert dump(run(orders(), *names, runs=2, concurrency=1, **models)) == dump(first)
    assert agent.model_name.startswith("numbered-")


def test_a_run_that_was_stopped_and_resumed_is_replayed_by_workers_from_a_compressed_file(tmp_path: Path):
    file, suite, model = tmp_path / "answers.jsonl", orders("a", "b"), Numbered()
    settings: dict[str, Any] = {"runs": 2, "results": tmp_path / "run.jsonl"}
    stopped = run(suite, model=RecordingChatModel(file, model), max_calls=10, concurrency=1, **settings)
    with file.open("ab") as end:
        end.write(b'{"conversation": "orders / a')  # killed in the middle of a line
    whole = run(suite, model=RecordingChatModel(file, model), resume=True, **settings)
    assert (stopped.missing > 1, whole.missing) == (True, 0)
    packed = tmp_path / "answers.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    with ThreadPoolExecutor(2) as pool:
        replayed = run(suite, model=ReplayChatModel(packed), runs=2, executor=pool, concurrency=2)
    assert dump(replayed) == dump(whole)


def test_what_the_offline_model_said_stays_no_evidence_in_the_replay(tmp_path: Path):
    run(orders(), model=RecordingChatModel(tmp_path / "answers.jsonl", "offline"))
    replayed = run(orders(), model=ReplayChatModel(tmp_path / "answers.jsonl"))
    assert replayed.stand_ins == ("the agent's model",)


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


@pytest.mark.parametrize("json_schema", [in_words, refused])
def test_however_an_endpoint_had_to_be_asked_its_answers_are_found(json_schema: Any, tmp_path: Path):
    def answer(request: Request) -> Reply:
        return json_schema(request) if request.method == "json_schema" else endpoints(request)

    with Endpoint(answer) as endpoint:
        model = RecordingChatModel(tmp_path / "answers.jsonl", endpoint.chat_model())
        first = run(orders("a", "b"), model=model)
        assert {request.body.get("temperature") for request in endpoint.requests} != {None}
    # One after the other, other conversations find the method out.
    again = run(orders("a", "b"), model=ReplayChatModel(tmp_path / "answers.jsonl"), concurrency=1)
    assert all(one.error is None for one in first.conversations)
    assert dump(again, without=COSTS) == dump(first, without=COSTS)


def invalid(call: Any) -> Any:
    return '{"no": "such query"}'


def cut_off(call: Any) -> Any:
    return AIMessage('{"G1', response_metadata={"finish_reason": "length"})


@pytest.mark.parametrize(("fault", "calls"), [(invalid, 50), (cut_off, 50), (None, 5)])
def test_what_went_wrong_in_the_run_goes_wrong_in_the_replay(fault: Any, calls: int, tmp_path: Path):
    numbers = count(1)

    def answer(call: Any) -> Any:
        return fault(call) if fault and next(numbers) == 6 else offline(call)

    suite = orders("a", "b", limits=Limits(calls=calls))
    model = Numbered(answer).model_copy(update={"max_tokens": 500})
    first = run(suite, model=RecordingChatModel(tmp_path / "answers.jsonl", model), concurrency=1)
    again = run(suite, model=ReplayChatModel(tmp_path / "answers.jsonl"), concurrency=2)
    assert {one.ended for one in first.conversations} == {"user" if fault else "calls"}
    assert dump(again, without=COSTS) == dump(first, without=COSTS)


def test_the_recorded_model_is_asked_with_its_own_settings_and_the_reasoners(tmp_path: Path):
    with Endpoint(endpoints) as endpoint:
        model: ChatOpenAI = endpoint.chat_model(max_tokens=700)
        run(orders(), model=RecordingChatModel(tmp_path / "answers.jsonl", model))
    settings = [(each.body["temperature"], each.body["max_completion_tokens"]) for each in endpoint.requests]
    with Endpoint(endpoints) as endpoint:
        run(orders(), model=endpoint.chat_model(max_tokens=700))
    assert settings == [
        (each.body["temperature"], each.body["max_completion_tokens"]) for each in endpoint.requests
    ]


def test_suites_share_a_recording_whatever_their_names(tmp_path: Path):
    file = tmp_path / "judge.jsonl"
    suites = [orders("eu / late"), orders("late").replace(name="orders / eu")]
    judge = LLMJudge(RecordingChatModel(file, judging()))
    recorded = [run(suite, model="offline", judge=judge) for suite in suites]
    assert recorded[0].conversations[0].reasons != recorded[1].conversations[0].reasons
    replay = LLMJudge(ReplayChatModel(file))
    for suite, report in zip(suites, recorded, strict=True):
        assert dump(run(suite, model="offline", judge=replay)) == dump(report)


# --- what is not recorded --------------------------------------------------------------------------------------------


def test_a_prompt_that_changed_and_a_scenario_that_is_new_are_not_in_the_recording(tmp_path: Path):
    file = tmp_path / "answers.jsonl"
    run(orders(), model=RecordingChatModel(file, Numbered()))
    changed = run(orders(action="be brief"), model=ReplayChatModel(file))
    assert "asks in 'orders / late / guided / 1'" in changed.broken[0].error
    assert "the module 'matcher'" in changed.broken[0].error
    new = run(orders("early"), model=ReplayChatModel(file))
    assert "holds no answers for 'orders / early / guided / 1'" in new.broken[0].error
    with pytest.raises(ModelUnavailableError, match="3 conversations in a row"):
        run(orders("early"), model=ReplayChatModel(file), runs=3)


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path):
    run(orders(), model="offline", results=tmp_path / "run.jsonl")
    with pytest.raises(InputError, match="holds no recording: make one with"):
        ReplayChatModel(tmp_path / "run.jsonl")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        ReplayChatModel(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="answers cannot be recorded in"):
        RecordingChatModel(tmp_path / "no" / "folder.jsonl", "offline")


def test_equal_requests_outside_an_evaluation_are_answered_in_their_order(tmp_path: Path):
    file, numbers = tmp_path / "answers.jsonl", count(1)
    model = RecordingChatModel(file, ScriptedChatModel(lambda _: f"answer {next(numbers)}"))
    for _ in range(2):
        model.invoke("hello")
    replay = ReplayChatModel(file)
    assert [replay.invoke("hello").text for _ in range(2)] == ["answer 1", "answer 2"]
    with pytest.raises(ModelUnavailableError, match="have changed since"):
        replay.invoke("hello")


def test_a_full_disk_is_an_error_and_what_was_recorded_before_is_replayed(tmp_path: Path):
    resource = pytest.importorskip("resource")
    file = tmp_path / "answers.jsonl"
    model = RecordingChatModel(file, ScriptedChatModel(["one", "two " * 300, "three"]))
    model.invoke("first")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(InputError, match=r"answers cannot be recorded in .*: File too large"):
            model.invoke("second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.stat().st_size == 1000
    model.invoke("third")
    replay = ReplayChatModel(file)
    assert [replay.invoke(request).text for request in ("first", "third")] == ["one", "three"]
