"""What counts as a yes and what as a no: words alone, whatever a model makes of them."""

from __future__ import annotations

import pytest

from arq_graph.nodes.agreement import repeats_what_was_put, says_no, says_yes
from arq_graph.nodes.asking_for_yes import Deed

PUT = "Shall I cancel order A-1?"


@pytest.mark.parametrize(
    "text",
    [
        "Aye!",
        "By all means.",
        "Let's do it.",
        "That would be lovely, thank you.",
        "I'd like that.",
        "You can go ahead.",
        "YES!!!",
        "Yes, that's what I want.",
        "Yes, if that's possible.",
        "Ok, great, please go ahead with the cancellation.",
        "Yes, everything looks correct. Please finalize the cancellation. Thank you very much for your help!",
        "Yes please, I really appreciate your patience.",
        "Yes please, that would be absolutely wonderful, thank you so much for all of your help today!",
        "That would be helpful, yes.",
        "👍 thanks",
        "Ja, mach das",
        "Bien sûr",
        "はい、お願いします。",
    ],
)
def test_a_yes_in_whatever_words(text):
    assert says_yes(text, PUT)
    assert not says_no(text, PUT)


@pytest.mark.parametrize(
    "text",
    [
        "Yes, subject to approval.",
        "Yes, over my dead body.",
        "Yes, were it up to me.",
        "Certainly sounds expensive.",
        "Proceed with caution.",
        "Yes, help me with another order.",
        "Thank you for your help.",
        "That's fine the way it is.",
        "Yesterday I said so.",
        "Gern, sobald das Geld da ist",
        "はい、でも明日",
        "",
        "...",
        "👍 or 👎",
    ],
)
def test_what_only_sounds_like_a_yes_is_none(text):
    assert not says_yes(text, PUT)


@pytest.mark.parametrize("put", ["Shall I book Oslo?", "Shall I cancel A-1 or move it?", ""])
def test_cancel_it_is_a_no_where_no_cancellation_alone_was_put(put):
    assert says_no("Cancel it.", put)
    assert not says_no("Cancel it.", PUT)


def test_what_was_put_may_be_said_in_another_form():
    assert repeats_what_was_put("Please cancel the order", PUT)
    assert says_yes("Yes, please proceed with the cancellation of A-1.", PUT)
    assert not says_yes("Yes, please proceed with the cancellation of A-2.", PUT)
    assert says_yes("Ja, storniere sie bitte.", "Soll ich A-1 stornieren? Sie ist bezahlt.")


def test_another_word_that_begins_alike_was_not_put():
    assert says_yes("Yes, restart it.", "Shall I restart A-1?")
    assert not says_yes("Yes, restore it.", "Shall I restart A-1?")
    assert not repeats_what_was_put("Refuse A-1.", "Shall I refund A-1?")


def test_a_question_may_stand_behind_a_colon_and_hold_one():
    deed = Deed.of("cancel_order", {"order_id": "A-1"}, "Cancel an order.")
    assert deed.is_asked_for(
        "I still need this from you: shall I cancel the order (order id: A-1)? Please confirm."
    )
    assert not deed.is_asked_for("If you want to cancel A-1: is it because of the price?")


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ('Please reply "yes" to confirm the cancellation of order A-1.', True),
        ("Type YES if you would like to cancel A-1.", True),
        ("I am about to cancel A-1. Please say “yes” to proceed.", True),
        ("Reply yes to keep A-1.", False),
        ("Reply yes to cancel A-1 or no to keep it.", False),
        ("Reply yes if you do not want to cancel A-1.", False),
        ("I will keep A-1. Reply yes to proceed.", False),
        ("I will cancel A-1. Say yes to tea.", False),
    ],
)
def test_a_yes_may_be_asked_for_by_its_word(text, asks):
    assert Deed.of("cancel_order", {"order_id": "A-1"}, "Cancel an order.").is_asked_for(text) is asks


@pytest.mark.parametrize(
    ("tool", "question", "asks"),
    [
        ("move_hive", "Shall I go ahead with moving H-1?", True),
        ("move_hive", "Would you like to see the movie H-1?", False),
        ("delete_hive", "Should I proceed with deleting H-1?", True),
        ("delete_hive", "Shall I deliver H-1?", False),
        ("restart_hive", "Shall I restore H-1?", False),
        ("refund_hive", "Would you like me to refuse H-1?", False),
    ],
)
def test_the_verb_may_stand_in_its_other_forms_and_no_other_verb_may(tool, question, asks):
    deed = Deed.of(tool, {"hive": "H-1"}, f"{tool.split('_')[0].title()} a hive.")
    assert deed.is_asked_for(question) is asks


@pytest.mark.parametrize(
    ("tool", "description", "question"),
    [
        (
            "giveDiscount",
            "Give a customer a discount on an order.",
            "Would you like me to apply a discount of 10 to A-1?",
        ),
        ("book_room", "Book a meeting room.", "Should I make the booking for A-1?"),
        ("process_return", "Starts the return of an item.", "Shall I start the return of A-1?"),
        ("pay", "Pay a bill.", "Would you like me to process the payment for A-1?"),
        (
            "order_cancel",
            "Endpoint to cancel an order in the shop.",
            "Do you really want me to cancel the order A-1?",
        ),
        ("renew", "", "I'm going to renew A-1. All right?"),
    ],
)
def test_tools_of_any_naming_are_asked_about_in_their_own_words(tool, description, question):
    deed = Deed.of(tool, {"number": "A-1", "percent": 10}, description)
    assert deed.is_asked_for(question)
    for other in ("Shall I look at A-1?", "Shall I start with A-1?", "A-1 is fine. OK?", "Any wish for A-1?"):
        assert not deed.is_asked_for(other)
