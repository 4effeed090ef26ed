"""`arq-graph finetune-data`: recorded conversations become what a planner is asked, and the answer that was right."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from arq_graph import Agent, Reasoner, ScriptedChatModel, create_preact_agent, errors
from arq_graph.experiments.finetuning import make_finetuning_examples
from arq_graph.milestones import read_transcript
from tests.cli.shop import TOOLS
from tests.test_docs import blocks

SYSTEM = """SYSTEM: You run the post office of a small town.
{"name": "find_parcel", "description": "Find a parcel", "parameters": {"type": "object", "properties":
{"number": {"type": "string", "description": "Its number"}}, "required": ["number"]}}
{"name": "open_case", "description": "Open a case", "parameters": {"type": "object", "properties":
{"number": {"type": "string"}, "urgent": {"type": "boolean"}}, "required": ["number"]}}
{"name": "office_hours", "description": "Tell the hours", "parameters": {"type": "object", "properties": {}}}"""


def call(tool: str, result: Any, **arguments: Any) -> str:
    written = f'{{"name": "{tool}", "arguments": \'{json.dumps(arguments)}\'}}'
    return f"ASSISTANT: <functioncall> {written} <|endoftext|>\n\nFUNCTION RESPONSE: {json.dumps(result)}"


FOUND = call("find_parcel", {"at": "the depot"}, number="P-7")
LOST = call("find_parcel", {"error": "no connection"}, number="P-7")
OPENED = call("open_case", {"case": 12}, number="P-7")
ASKED = "USER: Where is my parcel P-7?"


def says(text: str) -> str:
    return f"ASSISTANT: {text} <|endoftext|>"


def glaive(*parts: str) -> dict[str, Any]:
    """A conversation as the function-calling data set writes it."""
    return {"system": SYSTEM, "chat": "\n\n".join(parts)}


def chat(*texts: str) -> list[dict[str, Any]]:
    """Messages, each written as its role and its content."""
    return [dict(zip(("role", "content"), text.split(" ", 1), strict=True)) for text in texts]


def calling(*calls: tuple[str, str], content: str = "") -> dict[str, Any]:
    """A message of the agent with calls, each a tool and its arguments as a text; the tool is its id."""
    made = [{"id": name, "function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    return {"role": "assistant", "content": content, "tool_calls": made}


def tool_result(tool: str, text: str) -> dict[str, Any]:
    """Return the result of a call of the tool."""
    return {"role": "tool", "tool_call_id": tool, "content": text}


DESCRIBED = """
get_order:
  description: Look an order up.
  arguments: {order_id: {type: string, description: "The number of the order, like B-1."}}
  returns: in the workshop
"""
ORDER_TALK = [
    *chat("user Where is B-1?"),
    calling(("get_order", '{"order_id": "B-1"}')),
    tool_result("get_order", "in the workshop"),
    *chat("assistant In the workshop."),
]
HELLO = glaive("USER: Hello", says("Good morning!"))


@pytest.fixture
def make_data(cli, folder):
    """Make data of conversations; return what was printed, the rows, and each answer as an object."""

    def make(records: Sequence[Any], stage: int, *more: str | Path):
        (folder / "talks.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
        done = cli("finetune-data", "talks.jsonl", "--stage", str(stage), "--out", "data.jsonl", *more)
        rows = read(folder / "data.jsonl")
        return done, rows, [answer_of(row) for row in rows]

    return make


def read(file: Path) -> list[dict[str, Any]]:
    return (
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    )


def answer_of(row: dict[str, Any]) -> dict[str, Any]:
    (message,) = row.get("completion") or row["unfilled"]
    assert message["role"] == "assistant"
    return json.loads(message["content"])


def actions(answers: Sequence[dict[str, Any]]) -> list[str]:
    return [next(iter(answer["action"])) for answer in answers]


def fill(file: Path, words: str = "reason {}") -> None:
    """Write every reason, as a person would in an editor."""
    entries = read(file)
    for entry in entries:
        numbered = enumerate(entry["reasons"], start=1)
        entry["reasons"] = {question: words.format(number) for number, question in numbered}
    # An editor may leave out the last line break.
    file.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")


def test_each_action_of_a_turn_is_an_example_with_the_history_before_it(make_data):
    done, rows, answers = make_data([glaive(ASKED, FOUND, says("It is at the depot."), "USER: Thanks!")], 1)
    assert done.code == 0, done.err
    assert "2 examples from 1 of 1 conversation" in done.words
    assert actions(answers) == ["find_parcel", "final_answer"]
    assert "find_parcel" in answers[0]["thought"]
    assert answers[0]["action"]["find_parcel"]["arguments"]["number"]["value"] == "P-7"
    assert answers[1]["action"]["final_answer"]["answer"] == "It is at the depot."
    first, second = ([message["content"] for message in row["prompt"]] for row in rows)
    assert [message["role"] for message in rows[0]["prompt"]] == ["system", "user"]
    assert "the post office of a small town" in first[0]
    assert '"Find a parcel"' in first[0]
    assert "Where is my parcel P-7?" in first[1]
    assert "the depot" not in first[1]
    assert "the depot" in second[1]


def test_a_plan_has_what_is_done_and_what_is_left_and_its_reasons_are_to_be_filled_in(make_data, folder):
    talk = glaive(ASKED, FOUND, OPENED, says("I opened a case."))
    done, rows, answers = make_data([talk], 2)
    assert done.code == 0, done.err
    assert "3 examples cannot be trained on yet" in done.words
    assert [set(row) for row in rows] == [{"prompt", "unfilled"}] * 3
    steps = [[step["tool"] for step in answer["next_steps"]] for answer in answers]
    assert steps == [["find_parcel", "open_case", None], ["open_case", None], [None]]
    assert {step["reason"] for answer in answers for step in answer["next_steps"]} == {"[to be filled in]"}
    assert answers[0]["previous_steps"] is None
    assert "the depot" in answers[1]["previous_steps"]
    assert "open_case" in answers[2]["previous_steps"]
    assert [answer["observation"] for answer in answers] == [None, "as_expected", "as_expected"]
    fill(folder / "data.reasons.jsonl")
    done, rows, answers = make_data([talk], 2)
    assert "cannot be trained on" not in done.words
    assert [set(row) for row in rows] == [{"prompt", "completion"}] * 3
    # A step has the same reason in every plan that lists it, and the next prompt shows it.
    reasons = [[step["reason"] for step in answer["next_steps"]] for answer in answers]
    assert reasons == [["reason 1", "reason 3", "reason 5"], ["reason 3", "reason 5"], ["reason 5"]]
    assert answers[0]["action"]["find_parcel"]["expected"] == "reason 2"
    assert "reason 3" in rows[1]["prompt"][1]["content"]
    assert "[to be filled in]" not in (folder / "data.jsonl").read_text()


def test_of_several_answers_to_a_question_the_last_that_is_filled_in_counts(make_data, folder):
    talks = [glaive(ASKED, FOUND, says("At the depot.")), HELLO]
    make_data(talks, 2)
    file = folder / "data.reasons.jsonl"
    blank = read(file)
    fill(file)
    first, second = read(file)
    question = next(iter(first["reasons"]))
    first["reasons"][question] = "  "
    file.write_text("\n".join(map(json.dumps, [first, second, *blank])))
    _, rows, answers = make_data(talks, 2)
    assert ["completion" in row for row in rows] == [False, False, True]
    assert answers[1]["next_steps"][0]["reason"] == "reason 3"
    with file.open("a") as stream:
        stream.write(json.dumps(first | {"reasons": {question: "corrected"}}))
    _, rows, answers = make_data(talks, 2)
    assert all("completion" in row for row in rows)
    assert answers[0]["next_steps"][0]["reason"] == "corrected"


def test_what_a_person_wrote_stays_when_conversations_are_added(make_data, folder):
    talk = glaive(ASKED, FOUND, says("At the depot."))
    make_data([talk], 2)
    fill(folder / "data.reasons.jsonl", "as I said")
    _, rows, answers = make_data([HELLO, talk, talk], 2)
    assert ["completion" in row for row in rows] == [False, True, True]
    assert answers[1]["next_steps"][0]["reason"] == "as I said"
    # One line for each turn, however often it was seen, with what was said in it.
    first, second = read(folder / "data.reasons.jsonl")
    assert first["turn"] != second["turn"]
    assert second["lines"][0] == {"id": "M1", "from": "customer", "text": "Hello"}


def test_an_answer_to_a_question_that_is_not_asked_is_reported(make_data, folder):
    make_data([HELLO], 2)
    file = folder / "data.reasons.jsonl"
    fill(file)
    file.write_text(file.read_text().replace("why at this place", "why here"))
    done, rows, _ = make_data([HELLO], 2)
    assert "answers 1 question that these conversations do not ask, such as: 1. give the final" in done.words
    assert "unfilled" in rows[0]


def test_the_pages_program_has_a_model_write_reasons_and_continues_where_it_stopped(make_data, folder):
    talks = [glaive(ASKED, FOUND, says("At the depot.")), HELLO]
    make_data(talks, 2)
    page = Path(__file__).parents[2] / "docs" / "finetuning.md"
    program = next(text for text in blocks(page, "python") if "def write_reasons" in text)
    names: dict[str, Any] = {}
    exec(program.split("reasons = Path")[0], names)

    def answers(count: int) -> dict[str, Any]:
        about = {"wanted": "M1: a parcel", "known_then": [], "nothing_later": True}
        return {**about, "answers": [f"reason {number}" for number in range(count)]}

    file = folder / "data.reasons.jsonl"
    names["write_reasons"](file, Reasoner(ScriptedChatModel([answers(3), answers(2)])))
    _, rows, _ = make_data(talks, 2)
    assert ["completion" in row for row in rows] == [True, True, False]  # the second had an answer too many
    names["write_reasons"](file, Reasoner(ScriptedChatModel([answers(1)])))
    _, rows, found = make_data(talks, 2)
    assert ["completion" in row for row in rows] == [True, True, True]
    assert found[2]["next_steps"][0]["reason"] == "reason 0"


def test_no_plan_foresees_a_failure_and_what_follows_one_is_another_plan(make_data):
    _, _, answers = make_data([glaive(ASKED, LOST, OPENED, says("I cannot look now, but opened a case."))], 2)
    steps = [[step["tool"] for step in answer["next_steps"]] for answer in answers]
    assert steps == [["find_parcel", None], ["open_case", None], [None]]
    assert [answer["observation"] for answer in answers] == [None, "failed", "as_expected"]
    assert answers[0]["change"] is None
    assert "open_case" in answers[1]["change"]["what"]
    assert "T1" in answers[1]["change"]["why"]


@pytest.mark.parametrize("result", [{"error": "no connection"}, []], ids=["failed", "empty"])
def test_an_answer_behind_a_failure_is_given_once_and_says_what_it_lacks(make_data, result):
    _, _, answers = make_data(
        [glaive(ASKED, call("find_parcel", result, number="P-7"), says("I cannot see it now."))], 2
    )
    assert actions(answers) == ["find_parcel", "final_answer"]
    assert answers[1]["observation"] == ("failed" if result else "empty")
    assert "without what T1 was to tell" in answers[1]["change"]["what"]
    assert answers[0]["next_steps"][1] != answers[1]["next_steps"][0]


def test_a_tool_that_gives_back_nothing_has_not_failed(make_data):
    silent = 'ASSISTANT: <functioncall> {"name": "office_hours", "arguments": \'{}\'} <|endoftext|>'
    _, _, answers = make_data([glaive("USER: When?", silent, "FUNCTION RESPONSE: ", OPENED, says("Now."))], 2)
    assert [step["tool"] for step in answers[0]["next_steps"]] == ["office_hours", "open_case", None]
    assert answers[1]["observation"] == "as_expected"


def test_calls_made_at_the_same_time_are_taught_one_after_the_other(make_data):
    results = [
        {"role": "tool", "tool_call_id": name, "content": name.upper()} for name in ("second", "first")
    ]
    said = [calling(("first", ""), ("second", ""), content="One moment."), *results]
    talk = {
        "tools": [{"name": name, "parameters": {"type": "object"}} for name in ("first", "second")],
        "messages": [*chat("user Do both."), *said, *chat("assistant Done.", "assistant Anything else?")],
    }
    _, rows, answers = make_data([talk], 1)
    assert actions(answers) == ["first", "second", "final_answer"]
    assert answers[2]["action"]["final_answer"]["answer"] == "Done.\n\nAnything else?"
    shown = rows[1]["prompt"][1]["content"]
    assert '"FIRST"' in shown
    assert '"SECOND"' not in shown
    assert "One moment." in shown
    assert "One moment." not in json.dumps(answers)


def test_an_argument_says_what_its_value_rests_on_or_that_it_was_not_given(make_data):
    talk = glaive(
        "USER: Where is my parcel?", call("find_parcel", {"at": "home"}, number="P-9"), says("Home.")
    )
    other = glaive(ASKED, OPENED, says("Opened."))
    _, _, answers = make_data([talk, other], 1)
    assert answers[0]["action"]["find_parcel"]["arguments"]["number"]["basis"] == "known"
    decisions = answers[2]["action"]["open_case"]["arguments"]
    assert decisions["number"]["basis"] == "this_request"
    assert decisions["urgent"] == {"basis": "nobody", "given": False, "value": None}


def test_a_conversation_that_cannot_be_used_is_left_out_alone(make_data):
    good = glaive(ASKED, FOUND, says("At the depot."))
    broken = [{"name": "look", "parameters": {"properties": ["where"]}}, {"name": "look here"}]
    talks = [{"tools": [tool], "messages": chat("user Hello")} for tool in broken]
    done, _, answers = make_data([*talks, {"chat": "nobody said this"}, good], 1)
    assert done.code == 0, done.err
    assert "1 conversation left out, because talks.jsonl: record 2" in done.words
    assert done.words.count("1 conversation left out, because the tools cannot be used") == 2
    assert "'look here'" in done.words
    assert len(answers) == 2


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("--tools tools.yaml:get_ordr", "the file has no tool 'get_ordr'; did you mean `get_order`"),
        (
            "--tools desk:get_order --tools tools.yaml",
            "desk:get_order and tools.yaml have different tools called",
        ),
        ("no-results", "no-results cannot be read: it holds no .jsonl file"),
        (". --tools agent.yaml", "data.jsonl would stand in a folder that is read"),
        ("--validation pipe.jsonl", "name a regular file"),
    ],
)
def test_a_wrong_option_is_an_error_and_no_data_is_written(make_data, shop, folder, given, why):
    (folder / "tools.yaml").write_text(DESCRIBED)
    (folder / "no-results").mkdir()
    os.mkfifo("pipe.jsonl")
    done, rows, _ = make_data([chat("user Hello", "assistant Hi.")], 1, *given.split())
    assert (done.code, done.out, rows) == (1, "", [])
    assert why in done.words


def test_arguments_keep_their_order_and_odd_types_are_json(make_data):
    parameters = {"properties": {"z": {"type": "object"}, "a": {"type": "integer"}}}
    noted = calling(("note", '{"a": 4, "z": {"open": [1, null]}}'))
    tools = [{"name": "note", "parameters": parameters}]
    _, _, (answer,) = make_data([{"tools": tools, "messages": [*chat("user Note it, 4 times."), noted]}], 1)
    decisions = answer["action"]["note"]["arguments"]
    assert list(decisions) == ["z", "a"]
    assert json.loads(decisions["z"]["value"]) == {"open": [1, None]}
    assert decisions["a"]["value"] == 4


def test_a_malformed_call_is_left_out_with_a_warning(make_data):
    broken = 'ASSISTANT: <functioncall> {"name": "open_case", "arguments": \'{oops\'} <|endoftext|>'
    done, rows, answers = make_data(
        [glaive(ASKED, broken, 'FUNCTION RESPONSE: "no"', FOUND, says("At the depot."))], 1
    )
    assert "1 call left out, because the arguments are no JSON object" in done.words
    assert actions(answers) == ["find_parcel", "final_answer"]
    assert '"result": "no"' not in rows[1]["prompt"][1]["content"]


@pytest.mark.parametrize(
    ("action", "why"),
    [
        (call("find_parcel", "?", number=7), "the planner would not do that"),
        (call("find_parcel", "?", number="P-7", colour="red"), "no argument 'colour'"),
        (f"{FOUND}\n\n{FOUND}", "the same call was already made"),
        (call("burn_parcel", "?", number="P-7"), "because the tool 'burn_parcel' is not defined"),
        (
            call("act", "You are there.", action="go to desk 1"),
            "a move in a world of text is not a call of a tool",
        ),
        (says("Call find_parcel(number=P-7) yourself."), "'find_parcel' is internal"),
    ],
)
def test_a_turn_that_the_planner_would_not_do_is_left_out_with_the_reason(make_data, action, why):
    good = HELLO
    done, _, answers = make_data([glaive(ASKED, action, says("So it is.")), good], 1)
    assert done.code == 0, done.err
    assert "1 turn left out" in done.words or "1 conversation left out" in done.words
    assert why in done.words
    assert "final answer" not in done.words  # which is said to a model
    assert [each["action"]["final_answer"]["answer"] for each in answers] == ["Good morning!"]


def test_a_turn_without_an_answer_teaches_its_calls_but_no_plan(make_data):
    talk = glaive(ASKED, FOUND)
    _, _, answers = make_data([talk], 1)
    assert actions(answers) == ["find_parcel"]
    done, rows, _ = make_data([talk, HELLO], 2)
    assert "1 turn left out, because there is no answer at the end" in done.words
    assert len(rows) == 1


def test_a_greeting_is_no_action_but_history(make_data):
    _, rows, answers = make_data([glaive(says("How can I help?"), ASKED, FOUND, says("At the depot."))], 1)
    assert actions(answers) == ["find_parcel", "final_answer"]
    assert "How can I help?" in rows[0]["prompt"][1]["content"]


def test_a_system_message_within_a_turn_is_seen_from_the_next_turn_on(make_data):
    talk = chat("user Hello", "assistant One moment.", "system They are a member.", "assistant Here I am.")
    _, rows, _ = make_data([[*talk, *chat("user Thanks", "assistant You are welcome.")]], 1)
    assert ["They are a member." in row["prompt"][1]["content"] for row in rows] == [False, True]


def test_what_a_conversation_began_with_is_no_action_of_its_agent(make_data):
    talk = chat("user Hello", "assistant Good morning!", "user Are you open?", "assistant Yes.")
    _, rows, answers = make_data([{"messages": talk, "history": 2}], 1)
    assert [each["action"]["final_answer"]["answer"] for each in answers] == ["Yes."]
    assert "Good morning!" in rows[0]["prompt"][1]["content"]


def test_the_same_example_stands_once_and_the_order_is_that_of_the_conversations(make_data, folder):
    talks = [glaive(ASKED, FOUND, says(said)) for said in ("At the depot.", "At the depot.", "It is there.")]
    done, _, answers = make_data(talks, 1)
    before = (folder / "data.jsonl").read_bytes()
    assert "3 more were the same as others" in done.words
    assert actions(answers) == ["find_parcel", "final_answer", "final_answer"]
    make_data(talks, 1)
    assert (folder / "data.jsonl").read_bytes() == before


def test_one_conversation_in_ten_is_for_validation_with_all_runs_of_its_task(make_data, folder):
    talks = [
        {"task_id": task, "messages": chat(f"user Question {task}", f"assistant Answer {task}, {run}")}
        for task in range(60)
        for run in range(2)
    ]
    _, rows, _ = make_data(talks, 1, "--validation", "held-out.jsonl")
    held = read(folder / "held-out.jsonl")
    assert len(rows) + len(held) == 120
    assert 4 <= len(held) <= 24
    of = [{json.dumps(row["prompt"][1]) for row in part} for part in (rows, held)]
    assert of[0].isdisjoint(of[1])


def test_conversations_without_a_name_are_named_by_their_place(make_data, folder):
    talks = [{"id": "", "messages": chat(f"user Question {number}", "assistant Yes.")} for number in range(3)]
    make_data(talks, 2)
    names = [entry["conversation"] for entry in read(folder / "data.reasons.jsonl")]
    assert names == ["conversation 0", "conversation 1", "conversation 2"]


def test_tools_are_named_as_in_an_agents_file(make_data, folder):
    (folder / "tools.yaml").write_text(DESCRIBED)
    done, rows, answers = make_data([ORDER_TALK], 1, "--tools", "tools.yaml:get_order")
    assert done.code == 0, done.err
    assert actions(answers) == ["get_order", "final_answer"]
    assert "The number of the order, like B-1." in rows[0]["prompt"][0]["content"]


def test_of_a_folder_of_results_those_that_reached_their_goal_and_a_stand_in_is_marked(cli, shop, folder):
    (folder / "runs").mkdir()
    cli("evaluate", "suite.yaml", "--model", "offline", "--results", "runs/one.jsonl")
    of_tau = [{"traj": chat("user Hi", f"assistant {reward}"), "reward": reward} for reward in (1.0, 0.0)]
    (folder / "runs" / "two.jsonl").write_text("\n".join(map(json.dumps, of_tau)))
    given = ["--stage", "2", "--out", "data.jsonl", "--tools", "agent.yaml", "--goal-completed"]
    done = cli("finetune-data", "runs", *given)
    assert done.code == 0, done.err
    assert "5 examples from 2 of 4 conversations." in done.words
    why = "2 conversations left out, because nothing says that they reached their goal"
    assert why in done.words
    assert "warning: 4 examples came from the offline model: it shows that the recipe works" in done.words
    *held, recorded = read(folder / "data.reasons.jsonl")
    assert {(each["conversation"], *each["stand_ins"]) for each in held} == {
        ("order (helpful)", "the agent's model")
    }
    assert (recorded["lines"][-1]["text"], "stand_ins" in recorded) == ("1.0", False)
    scored = cli("score", "runs", "--milestones", "milestones.yaml")
    assert scored.out.startswith("No evidence: the agent's model was a stand-in.")
    assert "4 conversations" in scored.out


def test_of_results_what_no_planner_can_learn_and_what_another_agent_did_is_left_out(cli, shop, folder):
    world = "class World:\n    get_order = staticmethod(get_order)\n    outcome = lambda self: {'success': False}\n"
    (folder / "desk.py").write_text(f"{TOOLS}\n{world}")
    (folder / "other.yaml").write_text("name: Florist\nprofile: You sell flowers.\n")
    said = {"says": "Good morning.", "expect": {"says": [{"pattern": "."}]}}
    cases = [{"name": "none", "says": "Hello.", "expect": {"active": []}}, {"name": "reply", **said}]
    cases += [
        {"name": "idle", "world": "desk:World", **said},
        {"name": "else", "agent": "other.yaml", **said},
    ]
    suite = {"defaults": {"agent": "agent.yaml"}, "scenarios": cases}
    Path("cases.yaml").write_text(json.dumps(suite))
    arms = ["--model", "offline", "--arms", "direct"]
    cli("evaluate", "cases.yaml", *arms, "--results", "runs.jsonl")
    done = cli("finetune-data", "runs.jsonl", "--stage", "1", "--out", "data.jsonl", "--agent", shop)
    assert "from 1 of 4 conversations" in done.words
    assert "1 conversation left out, because only the matcher was asked" in done.words
    assert "1 conversation left out, because the agent called no tool" in done.words
    assert "1 conversation left out, because their agent is 'Florist'" in done.words


def test_tools_and_instructions_may_come_from_an_agent(make_data, shop):
    done, _, _ = make_data([ORDER_TALK], 1)
    assert done.code == 1
    assert "the tool 'get_order' is not defined (give it with --tools or --agent)" in done.words
    assert "there is nothing to learn from" in done.words
    done, rows, answers = make_data([ORDER_TALK], 1, "--agent", shop)
    assert done.code == 0, done.err
    assert actions(answers) == ["get_order", "final_answer"]
    head = rows[0]["prompt"][0]["content"]
    assert "You help the customers of a bike shop." in head
    assert "be polite" in head
    assert "The number of the order, like B-1." in head


def test_in_python_a_file_is_read_and_anything_but_a_transcript_is_left_out(tmp_path):
    talk = chat("user Hello", "assistant Hi.")
    (tmp_path / "talk.json").write_text(json.dumps(talk))
    of_file, of_talk = (
        make_finetuning_examples(tmp_path / "talk.json", 2),
        make_finetuning_examples(read_transcript(talk), 2),
    )
    assert [turn.rows for turn in of_file] == [turn.rows for turn in of_talk]
    (broken,) = make_finetuning_examples([talk], 1)
    assert "isn't a transcript: read it with `read_transcript`" in broken.left_out
    with pytest.raises(errors.InputError, match="cannot be read"):
        list(make_finetuning_examples("nowhere.json", 1))


@pytest.mark.parametrize(
    ("broken", "why"), [('"reasons": ["so"], "was"', "reasons"), ('"rea"sons"', "Invalid JSON")]
)
def test_a_broken_line_of_reasons_is_an_error_and_nothing_is_written(make_data, folder, broken, why):
    make_data([HELLO], 2)
    file = folder / "data.reasons.jsonl"
    file.write_text(file.read_text() + file.read_text().replace('"reasons"', broken))
    before = file.read_bytes()
    done, _, _ = make_data([HELLO], 2)
    assert done.code == 1
    assert "data.reasons.jsonl, line 2, is not a turn with its reasons" in done.words
    assert why in done.words
    assert file.read_bytes() == before


def test_an_example_longer_than_a_trainer_takes_is_reported(make_data):
    done, _, _ = make_data([glaive(f"USER: {'Hello ' * 3000}", says("Yes?")), HELLO], 1)
    assert "The longest has about 5," in done.words
    assert "1 example with more than 4,096 tokens" in done.words


@pytest.mark.parametrize(("stage", "strategy"), [(1, "react"), (2, "pre-act")])
def test_a_model_that_learned_the_answers_plays_the_conversation_again(
    stage, strategy, tmp_path, monkeypatch
):
    """The prompts are those that a planner sends, and it takes the answers: so the tuned model fits into it."""
    (tmp_path / "desk.py").write_text(TOOLS)
    monkeypatch.syspath_prepend(tmp_path)
    agent = Agent(
        "Bike shop", "You help the customers of a bike shop.", tools=["desk:get_order", "desk:cancel_order"]
    )
    found = json.dumps({"order_id": "B-1", "status": "in the workshop"})
    gone = json.dumps({"order_id": "B-1", "cancelled": True, "reason": "late"})
    asked = chat("user Cancel B-1, it is late.")
    looked = [calling(("get_order", '{"order_id": "B-1"}')), tool_result("get_order", found)]
    cancelled = calling(("cancel_order", '{"order_id": "B-1", "reason": "late"}'))
    done = [cancelled, tool_result("cancel_order", gone), *chat("assistant It is cancelled.")]
    transcripts = [read_transcript([*asked, *looked, *done])]
    (blank,) = make_finetuning_examples(transcripts, stage, agent=agent)
    filled = {blank.turn: {question: f"known: {question}" for question in blank.reasons}}
    (learned,) = make_finetuning_examples(transcripts, stage, agent=agent, reasons=filled)
    answers = {json.dumps(row["prompt"]): row["completion"][0]["content"] for row in learned.rows}

    def recall(asked):
        roles = {"human": "user"}
        prompt = [{"role": roles.get(each.type, each.type), "content": each.text} for each in asked.messages]
        return answers[json.dumps(prompt)]

    model = ScriptedChatModel(recall)
    state = create_preact_agent(model, agent, strategy=strategy, mode="direct").invoke({"messages": asked})
    assert state["messages"][-1].text == "It is cancelled."
    assert len(model.calls) == 3
