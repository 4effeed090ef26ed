"""Recorded conversations become what a planner is asked, and the answer that was right."""

import json
from typing import Any, Literal

import pytest

from arq_graph import Agent, ScriptedChatModel, create_preact_agent, errors
from arq_graph.experiments.finetuning import TurnExamples, make_finetuning_examples
from arq_graph.milestones import read_transcript
from tests.experiments.parcels import (
    FIND,
    GREETING,
    OPEN_CASE,
    QUESTION,
    REPLY,
    make_call_message,
    make_messages,
    make_result_message,
    record_call,
    record_conversation,
    record_reply,
)


def make_examples(record: Any, stage: Literal[1, 2] = 1, **options: Any) -> list[TurnExamples]:
    return list(make_finetuning_examples(read_transcript(record), stage, **options))


def read_answers(turns: list[TurnExamples]) -> list[dict[str, Any]]:
    """Return the answer of each example."""
    answers = []
    for turn in turns:
        for row in turn.rows:
            [message] = row.get("completion") or row["unfilled"]
            assert message["role"] == "assistant"
            answers.append(json.loads(message["content"]))
    return answers


def read_prompts(turns: list[TurnExamples]) -> list[tuple[str, str]]:
    """Return the system message and the user message of each example."""
    prompts = []
    for turn in turns:
        for row in turn.rows:
            system, user = row["prompt"]
            assert (system["role"], user["role"]) == ("system", "user")
            prompts.append((system["content"], user["content"]))
    return prompts


def list_actions(turns: list[TurnExamples]) -> list[str]:
    return [next(iter(answer["action"])) for answer in read_answers(turns)]


def list_final_answers(turns: list[TurnExamples]) -> list[str]:
    return [answer["action"]["final_answer"]["answer"] for answer in read_answers(turns)]


def list_steps(turns: list[TurnExamples], key: str) -> list[list[Any]]:
    """Return this part of each step of each plan."""
    return [[step[key] for step in answer["next_steps"]] for answer in read_answers(turns)]


def test_each_action_of_a_turn_is_an_example_with_the_history_before_it():
    turns = make_examples(record_conversation(QUESTION, FIND, REPLY, "USER: Thanks!"))
    call, reply = read_answers(turns)
    assert "find_parcel" in call["thought"]
    assert call["action"]["find_parcel"]["arguments"]["number"]["value"] == "P-7"
    assert reply["action"]["final_answer"]["answer"] == "At the depot."
    (system, before_call), (_, before_reply) = read_prompts(turns)
    assert "the post office of a small town" in system
    assert '"Find a parcel"' in system
    assert "Where is my parcel P-7?" in before_call
    assert "the depot" not in before_call
    assert "the depot" in before_reply


def test_a_plan_shows_what_is_done_and_left_and_takes_its_reasons_from_a_person():
    record = record_conversation(QUESTION, FIND, OPEN_CASE, record_reply("I opened a case."))
    [blank] = make_examples(record, 2)
    assert [set(row) for row in blank.rows] == [{"prompt", "unfilled"}] * 3
    steps = list_steps([blank], "tool")
    assert steps == [["find_parcel", "open_case", None], ["open_case", None], [None]]
    assert {reason for reasons in list_steps([blank], "reason") for reason in reasons} == {
        "[to be filled in]"
    }
    first, second, third = read_answers([blank])
    assert first["previous_steps"] is None
    assert "the depot" in second["previous_steps"]
    assert "open_case" in third["previous_steps"]
    observations = [answer["observation"] for answer in (first, second, third)]
    assert observations == [None, "as_expected", "as_expected"]

    reasons = {question: f"reason {number}" for number, question in enumerate(blank.reasons, start=1)}
    turns = make_examples(record, 2, reasons={blank.turn: reasons})
    assert [set(row) for row in turns[0].rows] == [{"prompt", "completion"}] * 3
    # A step has the same reason in every plan that lists it, and the next prompt shows it.
    expected = [["reason 1", "reason 3", "reason 5"], ["reason 3", "reason 5"], ["reason 5"]]
    assert list_steps(turns, "reason") == expected
    assert read_answers(turns)[0]["action"]["find_parcel"]["expected"] == "reason 2"
    assert "reason 3" in read_prompts(turns)[1][1]
    assert "[to be filled in]" not in turns[0].model_dump_json()


def test_no_plan_foresees_a_failure_and_the_next_one_says_what_changed():
    lost = record_call("find_parcel", {"error": "no connection"}, number="P-7")
    turns = make_examples(record_conversation(QUESTION, lost, OPEN_CASE, record_reply("I opened a case.")), 2)
    assert list_steps(turns, "tool") == [["find_parcel", None], ["open_case", None], [None]]
    first, second, third = read_answers(turns)
    assert [answer["observation"] for answer in (first, second, third)] == [None, "failed", "as_expected"]
    assert first["change"] is None
    assert "open_case" in second["change"]["what"]
    assert "T1" in second["change"]["why"]


@pytest.mark.parametrize(
    ("result", "observation"),
    [({"error": "no connection"}, "failed"), ([], "empty")],
    ids=["failed", "empty"],
)
def test_an_answer_after_a_failure_says_what_it_lacks(result, observation):
    call = record_call("find_parcel", result, number="P-7")
    turns = make_examples(record_conversation(QUESTION, call, record_reply("I cannot see it now.")), 2)
    assert list_actions(turns) == ["find_parcel", "final_answer"]
    first, second = read_answers(turns)
    assert second["observation"] == observation
    assert "without what T1 was to tell" in second["change"]["what"]
    assert first["next_steps"][1] != second["next_steps"][0]


def test_a_tool_that_returns_nothing_has_not_failed():
    call = 'ASSISTANT: <functioncall> {"name": "office_hours", "arguments": \'{}\'} <|endoftext|>'
    record = record_conversation("USER: When?", call, "FUNCTION RESPONSE: ", OPEN_CASE, record_reply("Now."))
    turns = make_examples(record, 2)
    assert list_steps(turns, "tool")[0] == ["office_hours", "open_case", None]
    assert read_answers(turns)[1]["observation"] == "as_expected"


def test_parallel_calls_are_taught_one_after_the_other():
    messages = [
        *make_messages("user Do both."),
        make_call_message(("first", ""), ("second", ""), content="One moment."),
        make_result_message("second", "SECOND"),
        make_result_message("first", "FIRST"),
        *make_messages("assistant Done.", "assistant Anything else?"),
    ]
    tools = [{"name": name, "parameters": {"type": "object"}} for name in ("first", "second")]
    turns = make_examples({"tools": tools, "messages": messages})
    assert list_actions(turns) == ["first", "second", "final_answer"]
    answers = read_answers(turns)
    assert answers[2]["action"]["final_answer"]["answer"] == "Done.\n\nAnything else?"
    assert "One moment." not in json.dumps(answers)
    before_second_call = read_prompts(turns)[1][1]
    assert '"FIRST"' in before_second_call
    assert '"SECOND"' not in before_second_call
    assert "One moment." in before_second_call


def test_an_argument_names_the_source_of_its_value_or_that_it_was_not_given():
    unsaid_number = record_call("find_parcel", {"at": "home"}, number="P-9")
    [call, _] = read_answers(make_examples(record_conversation("USER: Where is it?", unsaid_number, REPLY)))
    assert call["action"]["find_parcel"]["arguments"]["number"]["basis"] == "known"
    [call, _] = read_answers(make_examples(record_conversation(QUESTION, OPEN_CASE, REPLY)))
    decisions = call["action"]["open_case"]["arguments"]
    assert decisions["number"]["basis"] == "this_request"
    assert decisions["urgent"] == {"basis": "nobody", "given": False, "value": None}


def test_arguments_keep_their_order_and_odd_types_are_json():
    parameters = {"properties": {"z": {"type": "object"}, "a": {"type": "integer"}}}
    call = make_call_message(("note", '{"a": 4, "z": {"open": [1, null]}}'))
    record = {
        "tools": [{"name": "note", "parameters": parameters}],
        "messages": [*make_messages("user Note it, 4 times."), call],
    }
    [answer] = read_answers(make_examples(record))
    decisions = answer["action"]["note"]["arguments"]
    assert list(decisions) == ["z", "a"]
    assert json.loads(decisions["z"]["value"]) == {"open": [1, None]}
    assert decisions["a"]["value"] == 4


def test_a_malformed_call_is_left_out():
    call = 'ASSISTANT: <functioncall> {"name": "open_case", "arguments": \'{oops\'} <|endoftext|>'
    turns = make_examples(record_conversation(QUESTION, call, 'FUNCTION RESPONSE: "no"', FIND, REPLY))
    assert list_actions(turns) == ["find_parcel", "final_answer"]
    assert '"result": "no"' not in read_prompts(turns)[1][1]


@pytest.mark.parametrize(
    ("action", "reason"),
    [
        (record_call("find_parcel", "?", number=7), "the planner would not do that"),
        (record_call("find_parcel", "?", number="P-7", colour="red"), "no argument 'colour'"),
        (f"{FIND}\n\n{FIND}", "the same call was already made"),
        (record_call("burn_parcel", "?", number="P-7"), "the tool 'burn_parcel' is not defined"),
        (record_call("act", "You are there.", action="go to desk 1"), "a move in a world of text"),
        (record_reply("Call find_parcel(number=P-7) yourself."), "'find_parcel' is internal"),
    ],
)
def test_a_turn_that_the_planner_would_not_do_is_left_out_with_the_reason(action, reason):
    [turn] = make_examples(record_conversation(QUESTION, action, record_reply("So it is.")))
    assert turn.rows == ()
    assert reason in turn.left_out
    assert "final answer" not in turn.left_out  # only the model is told what to do instead


@pytest.mark.parametrize(
    "tool", [{"name": "look", "parameters": {"properties": ["where"]}}, {"name": "look here"}]
)
def test_a_conversation_with_broken_tools_is_left_out(tool):
    [turn] = make_examples({"tools": [tool], "messages": make_messages("user Hello", "assistant Hi.")})
    assert "the tools cannot be used" in turn.left_out


def test_a_turn_without_an_answer_teaches_its_calls_but_no_plan():
    record = record_conversation(QUESTION, FIND)
    assert list_actions(make_examples(record, 1)) == ["find_parcel"]
    [turn] = make_examples(record, 2)
    assert (turn.rows, "there is no answer at the end" in turn.left_out) == ((), True)


def test_a_greeting_and_the_history_of_a_record_are_no_actions():
    turns = make_examples(record_conversation(record_reply("How can I help?"), QUESTION, FIND, REPLY))
    assert list_actions(turns) == ["find_parcel", "final_answer"]
    assert "How can I help?" in read_prompts(turns)[0][1]
    messages = make_messages("user Hello", "assistant Good morning!", "user Are you open?", "assistant Yes.")
    turns = make_examples({"messages": messages, "history": 2})
    assert list_final_answers(turns) == ["Yes."]
    assert "Good morning!" in read_prompts(turns)[0][1]


def test_a_system_message_within_a_turn_is_seen_from_the_next_turn_on():
    first_turn = ("user Hello", "assistant One moment.", "system They are a member.", "assistant Here I am.")
    turns = make_examples(make_messages(*first_turn, "user Thanks", "assistant You are welcome."))
    assert ["They are a member." in user for _, user in read_prompts(turns)] == [False, True]


def test_a_conversation_without_a_name_is_named_by_its_place():
    messages = make_messages("user Question", "assistant Yes.")
    transcripts = [read_transcript({"id": "", "messages": messages})] * 2
    names = [turn.conversation for turn in make_finetuning_examples(transcripts, 1)]
    assert names == ["conversation 0", "conversation 1"]


def test_a_file_gives_the_same_examples_and_a_missing_file_is_an_error(tmp_path):
    file = tmp_path / "greeting.json"
    file.write_text(json.dumps(GREETING))
    [of_file], [of_record] = make_finetuning_examples(file, 2), make_examples(GREETING, 2)
    assert of_file.rows == of_record.rows
    with pytest.raises(errors.InputError, match="cannot be read"):
        list(make_finetuning_examples("nowhere.json", 1))


def get_order(order_id: str) -> dict[str, str]:
    """Look an order up."""
    return {"order_id": order_id, "status": "in the workshop"}


def cancel_order(order_id: str, reason: str = "none") -> dict[str, str]:
    """Cancel an order."""
    return {"order_id": order_id, "reason": reason}


@pytest.mark.parametrize(("stage", "strategy"), [(1, "react"), (2, "pre-act")])
def test_a_model_that_learned_the_answers_plays_the_conversation_again(stage, strategy):
    """The prompts are those that a planner sends, and it takes the answers: so the tuned model fits into it."""
    agent = Agent("Bike shop", "You help the customers of a bike shop.", tools=[get_order, cancel_order])
    question = make_messages("user Cancel B-1, it is late.")
    record = [
        *question,
        make_call_message(("get_order", '{"order_id": "B-1"}')),
        make_result_message("get_order", json.dumps(get_order("B-1"))),
        make_call_message(("cancel_order", '{"order_id": "B-1", "reason": "late"}')),
        make_result_message("cancel_order", json.dumps(cancel_order("B-1", "late"))),
        *make_messages("assistant It is cancelled."),
    ]
    [blank] = make_examples(record, stage, agent=agent)
    reasons = {question: f"known: {question}" for question in blank.reasons}
    [examples] = make_examples(record, stage, agent=agent, reasons={blank.turn: reasons})
    learned = {json.dumps(row["prompt"]): row["completion"][0]["content"] for row in examples.rows}

    def recall(call: Any) -> str:
        system, user = call.messages
        prompt = [{"role": "system", "content": system.text}, {"role": "user", "content": user.text}]
        return learned[json.dumps(prompt)]

    model = ScriptedChatModel(recall)
    app = create_preact_agent(model, agent, strategy=strategy, mode="direct")
    assert app.invoke({"messages": question})["messages"][-1].text == "It is cancelled."
    assert len(model.calls) == 3


def cancel_parcel(number: str) -> str:
    """Cancel a parcel."""
    return f"{number} is cancelled"


def test_a_recorded_question_for_a_yes_warns_of_no_missing_checkpointer(recwarn):
    desk = Agent("Post", "You help.", tools=[cancel_parcel], confirm={"cancel_parcel": "customer"})
    question = 'assistant Cancel parcel (number: "P-7")\nReply yes to go ahead.'
    record = make_messages("user Cancel P-7", question, "user No, thanks", "assistant As you like.")
    assert len(make_examples(record, agent=desk)) == 2
    assert not recwarn.list
