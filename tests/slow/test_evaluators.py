"""The examples of evaluators in the libraries that they are for; those that aren't installed are skipped."""

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "examples" / "evaluators"
DECIDED = {"goal_completion": 4 / 7, "progress_rate": 5.5 / 7}
"""The means over the seven decided conversations of the bicycle rental; the eighth is undecided."""


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_langsmith_keeps_the_range_of_an_undecided_conversation(capsys):
    pytest.importorskip("langsmith")
    load("langsmith_evaluate").main()
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "goal_completion" in line or "progress_rate" in line]) == 16
    assert any("None [0.0, 1.0]" in line for line in lines)
    assert any("None [0.4, 1.0]" in line for line in lines)


def test_inspect_ai_leaves_undecided_conversations_out_of_its_means(tmp_path):
    inspect_ai = pytest.importorskip("inspect_ai")
    [log] = inspect_ai.eval(
        load("inspect_scorer").rental(), model="mockllm/model", display="none", log_dir=str(tmp_path)
    )
    assert log.status == "success"
    assert {score.name: score.metrics["mean"].value for score in log.results.scores} == pytest.approx(DECIDED)
    assert [score.unscored_samples for score in log.results.scores] == [1, 1]
    [waiting] = [sample for sample in log.samples if sample.id == "waiting list"]
    metadata = waiting.scores["milestones"].metadata["progress_rate"]
    assert (metadata["low"], metadata["high"]) == (0.4, 1.0)


def test_pydantic_evals_labels_an_undecided_goal(capsys):
    pytest.importorskip("pydantic_evals")
    load("pydantic_evals_evaluator").main()
    output = " ".join(capsys.readouterr().out.split())
    assert "undecided" in output
    assert "57.1% ✔" in output


async def test_deepeval_calls_an_undecided_conversation_neither_good_nor_bad(monkeypatch):
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    pytest.importorskip("deepeval")
    example = load("deepeval_metric")
    metric = example.MilestoneMetric(example.parse_milestones(example.GRAPH))
    call = example.ToolCall(name="find_order", input_parameters={"order": 17}, output="delayed")
    turns = [
        example.Turn(role="user", content="Where is my order 17?"),
        example.Turn(role="assistant", content="It is delayed.", tools_called=[call]),
    ]
    case = example.ConversationalTestCase(turns=turns)
    assert await metric.a_measure(case) == pytest.approx(1 / 3)
    assert metric.is_successful() is False
    judged = example.GRAPH.replace("check: {said_by: agent, pattern: sorry}, ", "")
    metric = example.MilestoneMetric(example.parse_milestones(judged))
    assert metric.measure(case) is None
    assert metric.is_successful() is None
    assert metric.score_breakdown["low"] == pytest.approx(1 / 3)
    assert metric.score_breakdown["high"] == 1.0
