"""How the offline model reads a prompt: sections at line starts only, whatever customers and tools write."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import read_prompt
from arq_graph.models.offline.toolnames import ToolName
from arq_graph.models.offline.words import overlap, stem, words
from tests.models.prompts import prompt


def scene(*entries, **kwargs):
    return Scene(read_prompt(prompt(*entries, **kwargs)))


def test_sections_are_read_from_their_own_lines():
    read = read_prompt(prompt("Hi", head={"guidelines": [{"id": "G1"}]}, now={"judge": ["G1"]}))
    assert read.entries("guidelines") == [{"id": "G1"}]
    assert read.ids("judge") == ["G1"]
    assert read.profile["id"] == "P"


def test_an_example_in_the_head_is_not_taken_for_the_real_thing():
    head = SystemMessage(
        '<example>\n<guidelines>[{"id": "a"}]</guidelines>\n</example>\n<guidelines>[{"id": '
        '"G1"}]</guidelines>'
    )
    read = read_prompt([head, HumanMessage("<conversation>\n</conversation>")])
    assert read.entries("guidelines") == [{"id": "G1"}]


def test_prose_that_names_a_section_opens_none():
    head = SystemMessage('What stands in <now> counts.\n<guidelines>[{"id": "G1"}]</guidelines>')
    assert read_prompt([head]).entries("guidelines") == [{"id": "G1"}]


def test_what_is_broken_is_passed_over():
    body = (
        '<variables>[{]</variables>\n<conversation>\nnot json\n{"from": 3}\n{"id": "M1", "from": '
        '"customer", "text": "Hi"}\n</conversation>'
    )
    read = read_prompt([HumanMessage(body)])
    assert read.entries("variables") == []
    assert [line.text for line in read.lines] == ["Hi"]


def test_a_note_on_what_was_cut_and_the_systems_messages_are_not_the_customers():
    body = (
        '<conversation>\n{"note": "cut"}\n{"id": "M7", "from": "system", "text": "s"}\n{"id": "M8", '
        '"from": "customer", "text": "Hi"}\n</conversation>'
    )
    read = Scene(read_prompt([HumanMessage(body)]))
    assert [line.id for line in read.customer] == ["M8"]
    assert read.last.id == "M8"


def test_what_was_wrong_with_an_earlier_answer_is_no_part_of_the_conversation():
    messages = [*prompt("Hi"), AIMessage("{}"), HumanMessage("Your answer:\n- Batch.G1.score: too high")]
    read = read_prompt(messages)
    assert [line.text for line in read.lines] == ["Hi"]
    assert len(read.complaints) == 1


def test_the_turn_that_the_tail_names_is_the_one_that_counts():
    later = scene("One", "agent: Two", "Three", now={"turn": "M1"})
    assert later.last.text == "One"


def test_the_need_goes_back_to_what_the_agents_questions_are_about():
    entries = ("Where is my order?", "agent: Your order id?", "ORD-1", "agent: And your name?", "Ann")
    assert scene(*entries).need == "Where is my order? ORD-1 Ann"
    assert scene(*entries, "agent: Thanks. Anything else?", "A refund, please").need == "A refund, please"
    assert scene(*entries[:3], "agent: It is here.", "And ORD-2?").need.endswith("ORD-1 And ORD-2?")
    assert scene("A double room?", "agent: It is free.", "what about a single?").need.startswith(
        "A double room?"
    )
    assert (
        scene("A double room?", "agent: It is free.", "what about breakfast?").need == "what about breakfast?"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cancel", "cancellation"), ("cancelled", "cancelling"), ("arrive", "arrived"), ("delivery", "delivered"),
        ("policies", "policy"), ("closes", "closed"), ("shipping", "shipped"), ("prices", "price"), ("paid", "payment"),
        ("reservation", "reserve"), ("children", "child"), ("opening", "opens"), ("tries", "try"),
    ],
)  # fmt: skip
def test_forms_of_a_word_have_one_stem(one, other):
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("one", "other"), [("order", "border"), ("ill", "i'll"), ("id", "i'd"), ("news", "new"), ("bus", "bu")]
)
def test_other_words_have_another(one, other):
    assert stem(one) != stem(other) or not words(other)


def test_overlap_counts_synonyms_and_slips():
    assert overlap("damaged parcel", "my package is broken") > 0.8
    assert overlap("refund", "I want a refudn") > 0.7
    assert overlap("refund", "I want a lamp") == 0


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("get_order", ""),
        ("searchRooms", ""),
        ("opening_hours", ""),
        ("weather", ""),
        ("lost_and_found", "Look up what was found."),
    ],
)
def test_a_tools_name_tells_that_it_looks_something_up(name, description):
    assert ToolName(name, description).only_reads


@pytest.mark.parametrize(
    ("name", "done"),
    [
        ("cancel_order", "cancelled the order"),
        ("hand_over_to_human", "handed this over to a human"),
        ("mark_resolved", "marked this as resolved"),
        ("apply_discount", "applied the discount"),
        ("send_invoice", "sent the invoice"),
        ("refund", "refunded it"),
    ],
)
def test_a_tools_name_tells_what_it_did(name, done):
    assert not ToolName(name).only_reads
    assert ToolName(name).as_done == done
