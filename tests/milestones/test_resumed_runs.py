"""Evaluations that continue an earlier run in its results file."""

from pathlib import Path
from typing import Any

import pytest

from arq_graph import Guideline, ScriptedChatModel, Term
from arq_graph.errors import InputError
from arq_graph.milestones import (
    evaluate,
)
from tests.milestones.evaluated import (
    Answers,
    Says,
    buyer,
    shop_agent,
    suite,
    talker,
)


def test_a_resumed_run_repeats_no_conversation_and_can_grow(tmp_path: Path):
    file, app = tmp_path / "results.jsonl", Answers(talker)
    first = evaluate(suite("red", "blue"), {"app": app}, runs=2, results=file)
    calls = len(app.threads)
    again = evaluate(suite("red", "blue"), {"app": app}, runs=2, resume=True, results=file)
    assert (len(app.threads), again) == (calls, first)
    arms = {"app": app, "buys": Answers(buyer)}
    report = evaluate(suite("red", "new"), arms, runs=3, resume=True, results=file)
    assert len(report.conversations) == 12


def test_a_resumed_run_has_the_labels_of_todays_scenarios(tmp_path: Path):
    settings: dict[str, Any] = {"arms": {"app": Answers(buyer)}, "results": tmp_path / "results.jsonl"}
    evaluate(suite(use_case="shop", probes="patience"), **settings)
    labels = {"use_case": "desk", "probes": "speed", "twin": "blue", "task": "light"}
    (record,) = evaluate(suite(**labels), resume=True, **settings).conversations
    assert record.model_dump(include=set(labels)) == labels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"glossary": "a lantern"}, "the agent's glossary of scenario"),
        ({"priority": 3}, "the agent's guidelines or their tools of scenario"),
        ({"world": Says}, "the world of scenario"),
        ({"model": ScriptedChatModel([], model_name="other")}, "the agent's model"),
        ({"depends_on": {"the endpoint": "there"}}, "the endpoint"),
        ({"seed": 2}, "the seed"),
    ],
)
def test_a_run_that_changed_is_not_resumed_and_the_change_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
):
    def run(resume: bool, seed: int = 1, glossary: str = "a light", priority: int = 0, **more: Any):
        settings = {name: more.pop(name) for name in ("model", "depends_on") if name in more}
        agent = shop_agent(
            guidelines=[Guideline("they ask for a lamp", "sell one", priority=priority)],
            glossary=[Term("lamp", glossary)],
        )
        lamps = suite(agent=agent, **more).replace(seed=seed)
        file = tmp_path / "results.jsonl"
        return evaluate(lamps, {"app": Answers(talker)}, results=file, resume=resume, **settings)

    run(resume=False)
    assert run(resume=True).conversations
    with pytest.raises(InputError, match=f"the results of another run: {message}.* changed since") as error:
        run(resume=True, **change)
    assert str(error.value).count("of scenario") <= 1, "nothing else has changed"
