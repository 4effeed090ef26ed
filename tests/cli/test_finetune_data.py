"""`arq-graph finetune-data`: the files of examples and reasons, what is left out, and the options."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from arq_graph import Reasoner, ScriptedChatModel
from tests.cli.shop import TOOLS
from tests.experiments.parcels import (
    FIND,
    FOUND,
    GREETING,
    QUESTION,
    make_call_message,
    make_messages,
    make_result_message,
    record_conversation,
    record_reply,
)
from tests.test_docs import find_blocks

TOOLS_FILE = """
get_order:
  description: Look an order up.
  arguments: {order_id: {type: string, description: "The number of the order, like B-1."}}
  returns: in the workshop
"""
ORDER_CONVERSATION = [
    *make_messages("user Where is B-1?"),
    make_call_message(("get_order", '{"order_id": "B-1"}')),
    make_result_message("get_order", "in the workshop"),
    *make_messages("assistant In the workshop."),
]
REASONS = Path("data.reasons.jsonl")


@pytest.fixture
def make_data(cli, folder):
    """Make data of conversations; return what the command printed, and the examples."""

    def make(conversations: Sequence[Any], stage: int, *options: str | Path):
        write_lines(Path("talks.jsonl"), conversations)
        result = cli("finetune-data", "talks.jsonl", "--stage", str(stage), "--out", "data.jsonl", *options)
        return result, read_lines(Path("data.jsonl"))

    return make


def read_lines(file: Path) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write_lines(file: Path, values: Sequence[Any]) -> None:
    """Write a file without a line break at its end, as some editors do."""
    file.write_text("\n".join(map(json.dumps, values)), encoding="utf-8")


def fill_in(text: str = "because {}") -> None:
    """Write every reason, as a person would in an editor."""
    turns = read_lines(REASONS)
    for turn in turns:
        for number, question in enumerate(turn["reasons"], start=1):
            turn["reasons"][question] = text.format(number)
    write_lines(REASONS, turns)


def list_actions(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [next(iter(read_answer(row)["action"])) for row in rows]


def read_answer(row: dict[str, Any]) -> dict[str, Any]:
    [message] = row.get("completion") or row["unfilled"]
    return json.loads(message["content"])


def is_filled(rows: Sequence[dict[str, Any]]) -> list[bool]:
    return ["completion" in row for row in rows]


def get_first_reason(row: dict[str, Any]) -> str:
    return read_answer(row)["next_steps"][0]["reason"]


def test_examples_are_counted_and_written_once_in_the_order_of_the_conversations(make_data):
    other = record_conversation(QUESTION, FIND, record_reply("It is there."))
    result, rows = make_data([FOUND, FOUND, other], 1)
    assert result.code == 0, result.err
    assert "3 examples from 3 of 3 conversations; 3 more were the same as others" in result.words
    assert list_actions(rows) == ["find_parcel", "final_answer", "final_answer"]
    file = Path("data.jsonl").read_bytes()
    make_data([FOUND, FOUND, other], 1)
    assert Path("data.jsonl").read_bytes() == file


def test_reasons_that_a_person_fills_in_stay_when_conversations_are_added(make_data):
    result, rows = make_data([FOUND], 2)
    assert "2 examples cannot be trained on yet" in result.words
    assert is_filled(rows) == [False, False]
    fill_in()
    result, rows = make_data([GREETING, FOUND, FOUND], 2)
    assert "1 example cannot be trained on yet" in result.words
    assert is_filled(rows) == [False, True, True]
    assert get_first_reason(rows[1]) == "because 1"
    # The file has one line for each turn, with the turn's own lines.
    found, greeting = read_lines(REASONS)
    assert found["turn"] != greeting["turn"]
    assert greeting["lines"][0] == {"id": "M1", "from": "customer", "text": "Hello"}


def test_the_last_reason_that_is_filled_in_counts(make_data):
    make_data([FOUND, GREETING], 2)
    blank = read_lines(REASONS)
    fill_in()
    found, greeting = read_lines(REASONS)
    question = next(iter(found["reasons"]))
    found["reasons"][question] = "  "
    write_lines(REASONS, [found, greeting, *blank])
    _, rows = make_data([FOUND, GREETING], 2)
    assert is_filled(rows) == [False, False, True]
    assert get_first_reason(rows[1]) == "because 3"
    found["reasons"] = {question: "corrected"}
    write_lines(REASONS, [*read_lines(REASONS), found])
    _, rows = make_data([FOUND, GREETING], 2)
    assert is_filled(rows) == [True, True, True]
    assert get_first_reason(rows[0]) == "corrected"


def test_a_reason_for_a_question_that_is_not_asked_is_reported(make_data):
    make_data([GREETING], 2)
    fill_in()
    REASONS.write_text(REASONS.read_text().replace("why at this place", "why here"))
    result, rows = make_data([GREETING], 2)
    expected = "answers 1 question that these conversations do not ask, such as: 1. give the final"
    assert expected in result.words
    assert is_filled(rows) == [False]


@pytest.mark.parametrize(
    ("broken", "problem"), [('"reasons": ["so"], "was"', "reasons"), ('"rea"sons"', "Invalid JSON")]
)
def test_a_broken_line_of_reasons_is_an_error_and_nothing_is_written(make_data, broken, problem):
    make_data([GREETING], 2)
    line = REASONS.read_text()
    REASONS.write_text(line + line.replace('"reasons"', broken))
    before = REASONS.read_bytes()
    result, _ = make_data([GREETING], 2)
    assert result.code == 1
    assert "data.reasons.jsonl, line 2, is not a turn with its reasons" in result.words
    assert problem in result.words
    assert REASONS.read_bytes() == before


def test_the_program_of_the_page_has_a_model_write_reasons_and_continues_where_it_stopped(make_data):
    make_data([FOUND, GREETING], 2)
    page = Path(__file__).parents[2] / "docs" / "fine-tuning.md"
    program = next(text for text in find_blocks(page, "python") if "def write_reasons" in text)
    names: dict[str, Any] = {}
    exec(program.split("reasons = Path")[0], names)

    def make_answers(count: int) -> dict[str, Any]:
        about = {"wanted": "M1: a parcel", "known_then": [], "nothing_later": True}
        return {**about, "answers": [f"reason {number}" for number in range(count)]}

    def write_reasons(*answers: dict[str, Any]) -> list[dict[str, Any]]:
        names["write_reasons"](REASONS, Reasoner(ScriptedChatModel([*answers])))
        _, rows = make_data([FOUND, GREETING], 2)
        return rows

    rows = write_reasons(make_answers(3), make_answers(2))
    assert is_filled(rows) == [True, True, False]  # the second answer has a reason too many
    rows = write_reasons(make_answers(1))
    assert is_filled(rows) == [True, True, True]
    assert get_first_reason(rows[2]) == "reason 0"


def test_what_is_left_out_is_counted_by_reason(make_data):
    malformed = 'ASSISTANT: <functioncall> {"name": "open_case", "arguments": \'{oops\'} <|endoftext|>'
    unknown_tool = {"tools": [{"name": "look here"}], "messages": make_messages("user Hello")}
    conversations = [
        unknown_tool,
        {"chat": "nobody said this"},
        record_conversation(QUESTION, f"{FIND}\n\n{FIND}", record_reply("So it is.")),
        record_conversation(QUESTION, malformed, 'FUNCTION RESPONSE: "no"', FIND, record_reply("There.")),
    ]
    result, rows = make_data(conversations, 1)
    assert result.code == 0, result.err
    assert list_actions(rows) == ["find_parcel", "final_answer"]
    for message in (
        "2 examples from 1 of 4 conversations",
        "1 conversation left out, because the tools cannot be used",
        "1 conversation left out, because talks.jsonl: record 1",
        "1 turn left out, because the planner would not do that: the same call was already made",
        "1 call left out, because the arguments are no JSON object",
    ):
        assert message in result.words


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--tools tools.yaml:get_ordr", "the file has no tool 'get_ordr'; did you mean `get_order`"),
        (
            "--tools desk:get_order --tools tools.yaml",
            "desk:get_order and tools.yaml have different tools called",
        ),
        ("no-results", "no-results cannot be read: it holds no .jsonl file"),
        (". --tools agent.yaml", "data.jsonl would stand in a folder that is read"),
    ],
)
def test_a_wrong_option_is_an_error_and_no_data_is_written(make_data, shop, options, problem):
    Path("tools.yaml").write_text(TOOLS_FILE)
    Path("no-results").mkdir()
    result, rows = make_data([make_messages("user Hello", "assistant Hi.")], 1, *options.split())
    assert (result.code, result.out, rows) == (1, "", [])
    assert problem in result.words


def test_one_conversation_in_ten_is_for_validation_with_all_runs_of_its_task(make_data):
    conversations = []
    for task in range(30):
        for run in range(2):
            messages = make_messages(f"user Question {task}", f"assistant Answer {task}, {run}")
            conversations.append({"task_id": task, "messages": messages})
    _, rows = make_data(conversations, 1, "--validation", "validation.jsonl")
    validation_rows = read_lines(Path("validation.jsonl"))
    assert len(rows) + len(validation_rows) == 60
    assert 2 <= len(validation_rows) <= 14
    questions = {json.dumps(row["prompt"][1]) for row in rows}
    assert questions.isdisjoint(json.dumps(row["prompt"][1]) for row in validation_rows)


def test_an_example_longer_than_a_trainer_takes_is_reported(make_data):
    long = record_conversation(f"USER: {'Hello ' * 3000}", record_reply("Yes?"))
    result, _ = make_data([long, GREETING], 1)
    assert "The longest has about 5," in result.words
    assert "1 example with more than 4,096 tokens" in result.words


def test_tools_and_instructions_come_from_a_file_or_an_agent(make_data, shop):
    Path("tools.yaml").write_text(TOOLS_FILE)
    result, _ = make_data([ORDER_CONVERSATION], 1)
    assert result.code == 1
    assert "the tool 'get_order' is not defined (give it with --tools or --agent)" in result.words
    assert "there is nothing to learn from" in result.words
    for option, instructions in (
        (("--tools", "tools.yaml:get_order"), ""),
        (("--agent", shop), "You help the customers of a bike shop."),
    ):
        result, rows = make_data([ORDER_CONVERSATION], 1, *option)
        assert result.code == 0, result.err
        assert list_actions(rows) == ["get_order", "final_answer"]
        system = rows[0]["prompt"][0]["content"]
        assert "The number of the order, like B-1." in system
        assert instructions in system
    assert "be polite" in system


def test_results_that_reached_their_goal_are_selected_and_the_offline_models_are_marked(cli, shop, folder):
    (folder / "runs").mkdir()
    cli("evaluate", "suite.yaml", "--model", "offline", "--results", "runs/one.jsonl")
    tau_results = []
    for reward in (1.0, 0.0):
        tau_results.append({"traj": make_messages("user Hi", f"assistant {reward}"), "reward": reward})
    write_lines(folder / "runs" / "two.jsonl", tau_results)
    options = ["--stage", "2", "--out", "data.jsonl", "--tools", "agent.yaml", "--goal-completed"]
    result = cli("finetune-data", "runs", *options)
    assert result.code == 0, result.err
    assert "5 examples from 2 of 4 conversations." in result.words
    assert "2 conversations left out, because nothing says that they reached their goal" in result.words
    assert "warning: 4 examples came from the offline model: it shows that the recipe works" in result.words
    *offline_turns, tau_turn = read_lines(REASONS)
    for turn in offline_turns:
        assert (turn["conversation"], turn["stand_ins"]) == ("order (helpful)", ["the agent's model"])
    assert (tau_turn["lines"][-1]["text"], "stand_ins" in tau_turn) == ("1.0", False)
    scored = cli("score", "runs", "--milestones", "milestones.yaml")
    assert scored.out.startswith("No evidence: the agent's model was a fake.")
    assert "4 conversations" in scored.out


def test_results_that_no_planner_can_learn_and_those_of_other_agents_are_left_out(cli, shop, folder):
    world = "class World:\n    get_order = staticmethod(get_order)\n    outcome = lambda self: {'success': False}\n"
    (folder / "desk.py").write_text(f"{TOOLS}\n{world}")
    (folder / "other.yaml").write_text("name: Florist\nprofile: You sell flowers.\n")
    scenario = {"says": "Good morning.", "expect": {"says": [{"pattern": "."}]}}
    scenarios = [
        {"name": "matcher alone", "says": "Hello.", "expect": {"active": []}},
        {"name": "reply", **scenario},
        {"name": "idle", "world": "desk:World", **scenario},
        {"name": "other agent", "agent": "other.yaml", **scenario},
    ]
    suite = {"defaults": {"agent": "agent.yaml"}, "scenarios": scenarios}
    (folder / "cases.yaml").write_text(json.dumps(suite))
    cli("evaluate", "cases.yaml", "--model", "offline", "--arms", "direct", "--results", "runs.jsonl")
    result = cli("finetune-data", "runs.jsonl", "--stage", "1", "--out", "data.jsonl", "--agent", shop)
    assert "from 1 of 4 conversations" in result.words
    assert "1 conversation left out, because only the matcher was asked" in result.words
    assert "1 conversation left out, because the agent called no tool" in result.words
    assert "1 conversation left out, because their agent is 'Florist'" in result.words
