"""The cost of a turn at the endpoint, in counts, and the recall of preselection."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from arq_graph import create_guided_agent
from arq_graph.errors import ArqGraphError
from benchmarks.counting import count_turn
from benchmarks.floor import FloorGraph, TurnCalls
from benchmarks.in_process import make_agent, make_model
from benchmarks.many_guidelines import LIMITS, measure_recalls
from benchmarks.turn import TURN

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("guidelines", "calls", "characters", "with_schemas"),
    [(3, 4, 45_000, 75_000), (20, 13, 45_000, 75_000), (200, 43, 210_000, float("inf"))],
)
def test_a_turn_with_one_tool_call_stays_within_its_budget(guidelines, calls, characters, with_schemas):
    counted = count_turn(guidelines)
    assert counted.tools_run == 1
    assert counted.calls <= calls
    assert counted.waves <= 4
    assert counted.prompt_characters <= characters
    assert counted.prompt_characters + counted.schema_characters <= with_schemas


def test_the_floor_of_a_turn_makes_the_model_calls_of_a_guided_turn():
    model, floor_model = make_model(), make_model()
    guided = create_guided_agent(model, make_agent(20)).invoke(TURN)
    floor = FloorGraph(floor_model, TurnCalls.from_recorded(model.calls), is_async=False)
    messages = floor.compile().invoke(TURN)["messages"]
    assert sorted(call.text for call in floor_model.calls) == sorted(call.text for call in model.calls)
    assert [message.type for message in messages] == [message.type for message in guided["messages"]]


def test_a_labelled_set_of_messages_measures_what_preselection_finds(tmp_path):
    rules = [{"id": f"r{n}", "condition": f"asks about topic{n}", "action": "help"} for n in range(200)]
    agent = {"name": "Desk", "profile": "You help.", "guidelines": rules}
    (tmp_path / "desk.yaml").write_text(json.dumps(agent))
    messages = [
        {"says": "topic7?", "needs": ["r7"]},
        {"says": "Hmm.", "agent": "topic9?", "needs": ["r9", "r190"]},
    ]
    (tmp_path / "own.yaml").write_text(json.dumps({"agent": "desk.yaml", "messages": messages}))
    (recall,) = measure_recalls(tmp_path / "own.yaml")
    assert recall.chosen_by == "spelling"
    assert recall.shares == pytest.approx([2 / 3] * len(LIMITS))
    printed = run_recall(tmp_path / "own.yaml")
    assert printed.returncode == 0
    lines = re.sub("[│┃]", " ", printed.stdout).splitlines()
    (row,) = [line.split() for line in lines if "r190" in line]
    assert row == ["Hmm.", "spelling", *["r190"] * len(LIMITS)]


NEEDS = [{"says": "topic7?", "needs": ["r7"]}]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": [{"says": "topic7?", "needs": ["r700"]}]}, "no guideline of id 'r700'"),
        ({"embeddings": "openai:text-embedding-3-small"}, "cannot be made; give a string of LangChain's"),
        ({"embeddings": "nobody:small"}, "install its package, and set its key: Provider 'nobody'"),
    ],
)
def test_the_error_about_a_labelled_set_names_its_cause(fields, message, tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("OPENAI_")]:
        monkeypatch.delenv(name)
    agent = {"name": "Desk", "profile": "You help.", "guidelines": [{"id": "r7", "action": "help"}]}
    (tmp_path / "desk.yaml").write_text(json.dumps(agent))
    (tmp_path / "own.yaml").write_text(json.dumps({"agent": "desk.yaml", "messages": NEEDS, **fields}))
    with pytest.raises(ArqGraphError, match=message):
        list(measure_recalls(tmp_path / "own.yaml"))


def run_recall(file: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "recall", str(file)]
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
