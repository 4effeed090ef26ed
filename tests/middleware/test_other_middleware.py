"""Guidelines for an agent of `create_agent` beside LangChain's other middleware."""

import warnings
from typing import Any

import pytest
from langchain.agents import middleware as langchains
from langchain.agents.middleware import SummarizationMiddleware, TodoListMiddleware
from langgraph.types import Command

from arq_graph import ScriptedChatModel
from tests.brain import Prompt
from tests.middleware.shop import (
    CANCEL,
    LOOK_UP,
    QUESTION,
    RAN,
    THREAD,
    Shop,
    ask_about,
    get_reply,
    make_calls,
)


def make_constant_model(answer: Any) -> ScriptedChatModel:
    """Return a model that always gives this answer."""
    return ScriptedChatModel(lambda _: answer)


ANSWERS = [make_calls(LOOK_UP), "It is late.", make_calls(CANCEL), "It is done."]
RETRY: Any = {"max_retries": 1, "initial_delay": 0, "jitter": False}
TO_CLEAR = langchains.ClearToolUsesEdit(trigger=1, keep=0)
SELECTED = {"tools": ["get_order", "cancel_order"]}
OTHER_MIDDLEWARE: dict[str, tuple[Any, str]] = {
    "operator": (lambda: ask_about("get_order", "cancel_order"), "before"),
    "personal data": (lambda: langchains.PIIMiddleware("email", apply_to_output=True), "before"),
    "model calls": (lambda: langchains.ModelCallLimitMiddleware(run_limit=2), "before"),
    "tool calls": (lambda: langchains.ToolCallLimitMiddleware(run_limit=1), "before"),
    "clear results": (lambda: langchains.ContextEditingMiddleware(edits=[TO_CLEAR]), "before"),
    "other model": (lambda: langchains.ModelFallbackMiddleware(ScriptedChatModel(ANSWERS)), "before"),
    "prompt": (lambda: langchains.dynamic_prompt(lambda request: "Be brief."), "before"),
    "summary": (
        lambda: SummarizationMiddleware(
            make_constant_model("-"), trigger=("messages", 6), keep=("messages", 2)
        ),
        "before",
    ),
    "todo list": (TodoListMiddleware, "before"),
    "choice of tools": (
        lambda: langchains.LLMToolSelectorMiddleware(model=make_constant_model(SELECTED)),
        "behind",
    ),
    "model again": (lambda: langchains.ModelRetryMiddleware(**RETRY), "behind"),
    "tool error": (lambda: langchains.ToolErrorMiddleware(lambda error, call: "it failed"), "behind"),
    "tool again": (lambda: langchains.ToolRetryMiddleware(**RETRY), "behind"),
    "emulated tools": (
        lambda: langchains.LLMToolEmulator(tools=["weather"], model=make_constant_model("sunny")),
        "behind",
    ),
}


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param(list(OTHER_MIDDLEWARE), id="all"),
        *(pytest.param([kind], marks=pytest.mark.slow, id=kind) for kind in OTHER_MIDDLEWARE),
    ],
)
@pytest.mark.parametrize("runs", ["async"], indirect=True)
def test_a_conversation_is_the_same_beside_other_middleware(kinds, runs):
    placed: dict[str, list[Any]] = {"before": [], "behind": []}
    for kind in kinds:
        make_middleware, place = OTHER_MIDDLEWARE[kind]
        placed[place].append(make_middleware())
    down = [ValueError("down")] * {"other model": 9, "model again": 1}.get(kinds[-1], 0)
    shop = Shop(*down, *ANSWERS, judge={"G1": 9, "G2": 9}, reply="Well.", **placed)
    replies = []
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for text in ("Where is A-1?", "Cancel A-1", "Yes"):
            state = runs.invoke(shop.app, {"messages": [("user", text)]}, THREAD)
            if "__interrupt__" in state:
                approval: Any = Command(resume={"decisions": [{"type": "approve"}]})
                state = runs.invoke(shop.app, approval, THREAD)
            replies.append(get_reply(state))
    assert replies == ["Well.", f"Well.\n\n{QUESTION}", "Well."]
    assert RAN == [("get_order", "A-1"), ("cancel_order", "A-1")]
    assert all(Prompt(call).section("active_guidelines") for call in shop.agent_model.calls)


def test_a_summary_behind_the_matching_warns_how_to_correct_it():
    summary = SummarizationMiddleware(make_constant_model("-"), trigger=("messages", 3), keep=("messages", 2))
    shop = Shop(make_calls(LOOK_UP), "Late.", behind=[summary])
    with pytest.warns(UserWarning, match=r"GuidelineMiddleware\) belongs after .* such as a summary"):
        shop.say()
