"""What is installed works: `make test-wheel` runs this file alone, against the built wheel, far from the checkout."""

import os
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import Command

from arq_graph import Agent, Guideline, create_guided_agent, milestones
from arq_graph.milestones import MilestoneGraph, read_transcript, score, score_transcripts, write_html
from arq_graph.nodes import GuidelineMatcher

ROOT = Path(__file__).parent.parent
DESK = Path(str(resources.files("arq_graph.examples.order_desk")))
TALK = {
    "messages": [
        {"role": "user", "content": "A lamp, please."},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "buy", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "done"},
        {"role": "assistant", "content": "It is yours."},
    ]
}


EVALUATION = """
from arq_graph.milestones import MilestoneGraph, Scenario, Suite, UserSpec, evaluate

class App:
    def invoke(self, given, config=None):
        return "hi"

graph = MilestoneGraph.from_actions([{"name": "buy", "kwargs": {}}])
user = UserSpec.model_validate({"intents": ["A lamp, please."]})
print(len(evaluate(Suite([Scenario("lamp", user, graph)]), {"app": App()}, runs=3).conversations))
"""


def run_command(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "arq_graph", *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": "100", "PYTHONWARNINGS": "error::ResourceWarning"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_under_test_is_the_one_that_was_installed() -> None:
    installed = os.environ.get("ARQ_GRAPH_INSTALLED", str(ROOT))
    assert Path(milestones.__file__).is_relative_to(installed)


def test_every_folder_of_the_checkout_is_packed() -> None:
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("not in a checkout")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = settings["tool"]["setuptools"]["packages"]
    found = ["arq_graph.examples.order_desk"]
    for top in ("arq_graph", "nodes", "milestones"):
        inside = "" if top == "arq_graph" else "arq_graph."
        folders = [path.parent.relative_to(ROOT).parts for path in (ROOT / top).rglob("__init__.py")]
        found += [inside + ".".join(parts) for parts in folders]
    assert sorted(named) == sorted(found)


@pytest.mark.parametrize(
    "file",
    [
        "arq_graph/py.typed",
        "arq_graph.nodes/py.typed",
        "arq_graph.nodes/yes.yaml",
        "arq_graph.nodes/prompts/guideline_matcher.md",
        "arq_graph.nodes/prompts/guideline_matcher.yaml",
        "arq_graph.agent/preparation.md",
        "arq_graph.cli/scaffold/common/dot-github/workflows/agent.yml",
        "arq_graph.milestones/py.typed",
        "arq_graph.milestones/prompts/milestone_judge.md",
        "arq_graph.milestones.users/personas.yaml",
        "arq_graph.milestones.reports/page/page.html",
        "arq_graph.examples.order_desk/agent.yaml",
    ],
)
def test_data_is_packed_with_the_code(file: str) -> None:
    package, _, path = file.partition("/")
    assert resources.files(package).joinpath(path).is_file()


def test_a_guided_turn_runs() -> None:
    agent = Agent("Desk", "You help.", [Guideline(None, 'greet them with "Welcome!"')])
    state = create_guided_agent("offline", agent).invoke({"messages": [("user", "Hello")]})
    assert "Welcome!" in state["messages"][-1].text
    assert state["guideline_matches"][0]["active"]
    assert GuidelineMatcher("offline", agent).invoke(state)["guideline_matches"]


def open_door() -> str:
    """Open the door."""
    return "The door is open."


def test_an_operator_decides_and_an_unfit_answer_can_be_repeated() -> None:
    rule = Guideline("the customer asks to open the door", "open it", tools=[open_door])
    porter = Agent("Porter", "You open doors.", [rule], confirm={"open_door": "operator"})
    app = create_guided_agent("offline", porter, checkpointer=MemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    (interrupt,) = app.invoke({"messages": [("user", "Please open the door.")]}, thread)["__interrupt__"]
    assert interrupt.value["action_requests"][0]["name"] == "open_door"
    with pytest.raises(Exception, match="invalid response"):
        app.invoke(Command(resume="yes"), thread)
    messages = app.invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)["messages"]
    assert "The door is open." in [message.text for message in messages]


def test_a_conversation_is_scored_and_its_page_written(tmp_path: Path) -> None:
    graph = MilestoneGraph.from_actions([{"name": "buy", "kwargs": {}}])
    talk = read_transcript(TALK)
    assert score(graph, talk).goal_completed is True
    write_html(tmp_path / "page.html", score_transcripts(graph, [talk]).report(), [talk])
    assert "A lamp, please." in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_runs_and_is_explained(tmp_path: Path) -> None:
    assert "Thanks, that is all. Goodbye!" in run_command(tmp_path, "demo", "--no-evaluation")
    assert "wrap-up" in run_command(tmp_path, "explain")


@pytest.mark.slow
def test_a_new_project_passes_its_own_tests(tmp_path: Path) -> None:
    run_command(tmp_path, "init", "desk")
    folder = tmp_path / "desk"
    assert "6 conversations" in run_command(folder, "evaluate", "suite.yaml")
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(tests, cwd=folder, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout
    served = [sys.executable, "-c", "import graph; print(type(graph.graph).__name__)"]
    done = subprocess.run(served, cwd=folder, capture_output=True, text=True, check=False)
    assert done.stdout == "CompiledStateGraph\n", done.stderr


@pytest.mark.slow
def test_an_evaluation_prints_no_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", EVALUATION]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("3\n", "", 0)


@pytest.mark.slow
def test_files_have_schemas_for_editors(tmp_path: Path) -> None:
    assert '"properties"' in run_command(tmp_path, "schema", "suite")
