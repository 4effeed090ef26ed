"""Strict replies: what is sent, what code refuses to fill in, and what is sent in its place."""

import pytest
from langchain_core.messages import HumanMessage

from arq_graph import Knowledge, Reply, errors
from arq_graph.nodes import KnowledgeRetriever, ReplyChooser
from tests.brain import brain, get_prompts
from tests.order_tools import ran
from tests.replies.bank import (
    BALANCE,
    OTHERWISE,
    RESULT,
    choose,
    make_bank,
    make_state,
)

pytestmark = pytest.mark.filterwarnings("ignore:guidelines were not matched")
MONEY = ("balance", {"amount": ("59.90", "T1")})


def reply_to(answers, state=None, agent=None, **settings):
    """Return the update for these answers of a model, one after the other, and the model."""
    model = brain(reply=answers)
    chooser = ReplyChooser(model, agent or make_bank(), **settings)
    return chooser.invoke(state or make_state()), model


def get_text(answer, state=None, agent=None, **settings):
    update, _ = reply_to(answer, state, agent, **settings)
    return update["messages"][0].text


def get_complaint(answer, state=None, agent=None):
    """Return what the model was told about its answer."""
    _, model = reply_to(answer, state, agent)
    return get_prompts(model, "message")[1].complaint


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_the_chosen_replies_are_filled_in_and_become_paragraphs(mode):
    update, model = reply_to(choose("hello", MONEY), mode=mode)
    assert update["messages"][0].text == "Good day!\n\nYou have 59.90 euros."
    (revision,) = update["revisions"]
    assert revision["sent"] and not revision["violations"]
    assert revision["replies"] == [
        {"reply": "hello", "values": {}},
        {"reply": "balance", "values": {"amount": {"value": "59.90", "source": "T1"}}},
    ]
    assert len(model.calls) == 1


@pytest.mark.parametrize(
    ("language", "text"), [("de-AT", "Guten Tag!"), ("EN", "Good day!"), ("fr", "Good day!")]
)
def test_the_model_names_the_language_and_an_unknown_one_is_the_first(language, text):
    assert get_text(choose("hello", language=language)) == text


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (("card", {"card": ("4-2", "T1")}), "The card 4-2 is blocked."),  # an item of a list
        (("tier", {"tier": ("gold", "V1")}), "You are gold."),
        (
            ("balance", {"amount": ("59.9", "T1")}),
            "You have 59.90 euros.",
        ),  # equal, and shown as the tool has it
        (
            ("owner", {"name": ("Ada {day}", "T1")}),
            "Ada {day} owns it; write {name}.",
        ),  # braces stay as they are
    ],
)
def test_a_whole_value_of_an_allowed_source_is_filled_in(reply, text):
    assert get_text(choose(reply)) == text


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (("balance", {"amount": ("59", "T1")}), '"59" is not a whole value of T1, which has ["59.90"]'),
        (("balance", {"amount": ("9.90", "T1")}), "is not a whole value"),
        (("balance", {"amount": ("59.90 euros", "T1")}), "is not a whole value"),
        (("card", {"card": ("4-", "T1")}), 'which has ["4-1", "4-2"]'),
        (("card", {"card": ("4-1, 4-2", "T1")}), "is not a whole value"),
        (("balance", {"amount": ("59.90", "T2")}), '"T2" is no source of it'),
        (("balance", {"amount": ("59.90", "M1")}), '"M1" is no source of it'),
        (("balance", {"amount": ("gold", "V1")}), '"V1" is no source of it'),
        (("tier", {"tier": ("gold", "T1")}), 'the field allows {"variable": "tier"}'),
        (("tier", {"tier": ("silver", "V1")}), "is not a whole value"),
        (("balance", {}), "it has no value"),
        ("balanse", "there is no reply"),
        (("balance", {"sum": ("59.90", "T1")}), "it has no value"),
    ],
)
def test_any_other_value_is_asked_for_once_more(reply, complaint):
    assert complaint in get_complaint([choose(reply), choose("hello")])
    update, _ = reply_to([choose(reply), choose(MONEY)])
    assert update["messages"][0].text == "You have 59.90 euros."
    assert [revision["content"] for revision in update["revisions"]] == ["", "You have 59.90 euros."]


def test_after_that_the_reply_for_all_other_cases_is_sent_and_recorded():
    update, model = reply_to(choose("hello", ("balance", {"amount": ("1000", "T1")})))
    assert update["messages"][0].text == OTHERWISE
    *candidates, sent = update["revisions"]
    assert sent["replies"] == [{"reply": "other", "values": {}}]
    assert sent["violations"] == ["no choice was acceptable: 'other' was sent"]
    assert candidates[0]["replies"][1]["values"] == {"amount": {"value": "1000", "source": "T1"}}
    assert len(model.calls) == len(candidates) == 2


def test_it_is_sent_in_the_customers_language():
    other = Reply("other", {"en": OTHERWISE, "de": "Wir rufen Sie an."}, otherwise=True)
    assert get_text(choose("?", language="de"), agent=make_bank(replies=[other])) == "Wir rufen Sie an."


@pytest.mark.parametrize("answer", [choose(), choose("hello", is_every_reply_right=False), "FREE TEXT"])
def test_an_empty_or_doubtful_choice_or_none_is_replaced_too(answer):
    assert get_text(answer) == OTHERWISE


def test_a_model_that_gives_no_valid_answer_is_replaced_and_one_out_of_reach_is_an_error():
    assert get_text({"replies": "FREE TEXT"}, max_attempts=1) == OTHERWISE
    with pytest.raises(errors.ModelUnavailableError):
        get_text(ConnectionError("gone"), timeout=0.05)


ACCOUNTS = """{"bank": {"name": "HB"}, "accounts": [
    {"id": "A", "sum": 5, "cards": [{"no": "1"}, {"no": "2"}]},
    {"id": "B", "sum": 7, "cards": [{"no": "3"}]},
    {"id": "C", "sum": 5, "cards": [{"no": "2"}]}]}"""


@pytest.mark.parametrize(
    ("values", "is_sent"),
    [
        ({"id": "A", "sum": "5"}, True),
        ({"id": "C", "sum": "5"}, True),
        ({"id": "A", "sum": "7"}, False),
        ({"id": "A", "sum": "5", "no": "2"}, True),
        ({"id": "B", "sum": "7", "no": "2"}, False),
        ({"id": "C", "no": "2", "bank": "HB"}, True),
    ],
)
def test_the_values_of_a_reply_are_those_of_one_item_of_a_list(values, is_sent):
    paths = {"id": "accounts.id", "sum": "accounts.sum", "no": "accounts.cards.no", "bank": "bank.name"}
    fields = {name: {"result": f"get_account.{paths[name]}"} for name in values}
    reply = Reply("list", " ".join(f"{{{name}}}" for name in values), fields=fields)
    answer = choose(("list", {name: (value, "T1") for name, value in values.items()}))
    text = get_text(answer, make_state("Hm", ACCOUNTS), make_bank(reply))
    assert text == (" ".join(values.values()) if is_sent else OTHERWISE)


def test_they_are_those_of_one_result_of_a_tool():
    fields = {name: {"result": f"get_account.{name}"} for name in ("id", "sum")}
    reply = Reply("sum", "{id} has {sum}", fields=fields)
    results = ['{"id": "A", "sum": 5}', '{"id": "B", "sum": 7}']
    for source, text in {"T1": OTHERWISE, " T1": OTHERWISE, "T2": "B has 7"}.items():
        answer = choose(("sum", {"id": ("A" if "1" in source else "B", source), "sum": ("7", "T2")}))
        assert get_text(answer, make_state("Hm", *results), make_bank(reply)) == text


def test_fields_that_share_a_path_may_show_two_items():
    path = {"result": "get_account.accounts.id"}
    reply = Reply("both", "{first} and {second}", fields={"first": path, "second": path})
    answer = choose(("both", {"first": ("A", "T1"), "second": ("B", "T1")}))
    assert get_text(answer, make_state("Hm", ACCOUNTS), make_bank(reply)) == "A and B"


HANDBOOK = ["Cards are free.\nAlways.", "Loans <b>never</b>", "Long" * 30]


def test_a_passage_is_filled_in_whole_by_its_id():
    field = {"knowledge": True, "multiline": True, "max_length": 100}
    reply = Reply("book", "We say: {text}", fields={"text": field})
    agent = make_bank(reply, knowledge=[Knowledge(lambda query: HANDBOOK, max_tokens=50)])
    found = KnowledgeRetriever(agent).invoke({"messages": make_state()["messages"][:1]})
    state = make_state() | found
    for value in ("", HANDBOOK[0]):
        update, _ = reply_to(choose(("book", {"text": (value, "S1")})), state, agent)
        assert update["messages"][0].text == f"We say: {HANDBOOK[0]}"
        assert update["revisions"][-1]["cited"] == ["S1"]
    for value, source in (("Cards are free.", "S1"), ("", "S2"), ("", "S3"), ("", "T1"), ("", "S9")):
        assert get_text(choose(("book", {"text": (value, source)})), state, agent) == OTHERWISE


ERROR = [HumanMessage("Hm", id="h1"), *ran(RESULT, tool="get_account", status="error")]
OTHER_TOOL = [HumanMessage("Hm", id="h1"), *ran(RESULT, tool="block_card")]
EARLIER_TURN = [*make_state()["messages"], HumanMessage("And now?", id="h2")]


@pytest.mark.parametrize(
    ("messages", "this_turn", "is_allowed"),
    [
        (ERROR, False, False),
        (OTHER_TOOL, False, False),
        (EARLIER_TURN, False, True),
        (EARLIER_TURN, True, False),
    ],
    ids=["error", "other tool", "earlier turn", "earlier turn, but only this one counts"],
)
def test_which_results_count(messages, this_turn, is_allowed):
    field = {"result": "get_account.balance", "this_turn": this_turn}
    agent = make_bank(BALANCE.replace(fields={"amount": field}))
    text = "You have 59.90 euros." if is_allowed else OTHERWISE
    assert get_text(choose(MONEY), {"messages": messages}, agent) == text


@pytest.mark.parametrize(
    ("message", "value", "is_whole"),
    [
        ("It's (4-17), please.", "4-17", True),
        ("It's 4-171", "4-17", False),
        ("It's 34-17.", "4-17", False),
        ("Ada  Day\nlost it", "Ada Day", True),
        ("Ada B. Day", "Ada Day", False),
        ("4-17", "4-17", True),
        ("I have -5 euros", "5", False),
        ("I have \u22125 euros", "5", False),
        ("I am there 9:00–13:00.", "9:00", True),
        ("I am there 9:00–13:00.", "13:00", True),
        ("I am there 9:00–13:00.", "9:00–13:00", True),
        ("I am there 9:00–13:00.", "3:00", False),
        ("Card 4-17", "4", False),
        ("3.5", "3", False),
    ],
)
def test_the_customers_own_words_are_whole_words_of_a_message(message, value, is_whole):
    text = f"The card {value} is blocked." if is_whole else OTHERWISE
    state = {"messages": [HumanMessage(message, id="h1")]}
    assert get_text(choose(("card", {"card": (value, "M1")})), state) == text


@pytest.mark.parametrize(
    ("field", "value", "is_sent"),
    [
        ({"type": "integer"}, "12", True),
        ({"type": "integer"}, "12.5", False),
        ({"type": "number"}, "12.5", True),
        ({"type": "number"}, "twelve", False),
        ({"type": "date"}, "2026-03-01", True),
        ({"type": "date"}, "2026-02-30", False),
        ({"type": "time"}, "12:30", True),
        ({"type": "datetime"}, "2026-03-01T12:30:00Z", True),
        ({"max_length": 3}, "four", False),
        ({}, "", False),
        ({}, "one\ntwo", False),
        ({"multiline": True}, "one\ntwo", True),
        ({"multiline": True}, "one\x1b[31m", False),
        ({}, "one\u2028two", False),
        ({}, "<b>x</b>", False),
        ({}, "&lt;", False),
        ({}, "[here](https://evil.example)", False),
        ({}, "\u202eabc", False),
        ({}, "5 < 6 & 7", True),
        ({}, "{amount} {0} %s {{x}}", True),
    ],
)
def test_a_value_has_the_type_and_length_of_its_field_and_no_markup(field, value, is_sent):
    note = Reply("note", "Note: {note}.", fields={"note": {"result": "get_account", **field}})
    text = get_text(choose(("note", {"note": (value, "T1")})), make_state("Hm", value), make_bank(note))
    assert text == (f"Note: {value}." if is_sent else OTHERWISE)


def test_the_prompt_shows_the_replies_and_their_sources_and_asks_for_nothing_else():
    _, model = reply_to(choose("hello"), make_state(draft="FREE TEXT"), draft_key="draft")
    (prompt,) = get_prompts(model, "message")
    replies = prompt.section("replies")
    assert replies[1] == {
        "id": "balance",
        "text": {"en": "You have {amount} euros.", "de": "Sie haben {amount} Euro."},
        "fields": {"amount": {"result": "get_account.balance", "type": "number"}},
    }
    assert replies[-1]["otherwise"] is True
    assert prompt.section("draft") == "FREE TEXT"
    assert "revisions" not in prompt.schema["properties"]
