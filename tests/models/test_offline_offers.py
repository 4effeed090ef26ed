"""What an active guideline tells the agent to offer stands in the reply, whatever else the reply tells."""

from __future__ import annotations

from typing import Any

import pytest

from tests.models.prompts import reply

ORDER = ("get_order", {"order_id": "K-1"}, {"order_id": "K-1", "status": "delayed", "days": 3})
TIMES = ("find_times", {"day": "Monday"}, ["09:30", "11:00"])
DRAFT = "Your order K-1 is delayed by 3 days."


def replied(action: str, result: Any = ORDER, draft: str | None = None) -> str:
    return reply("What about K-1?", result, guidelines={"G1": action}, draft=draft)


@pytest.mark.parametrize("draft", [None, DRAFT])
@pytest.mark.parametrize(
    ("action", "offered"),
    [
        ("offer a voucher", "I can offer you a voucher."),
        ("offer free shipping", "I can offer you free shipping."),
        ("offer the loyalty card", "I can offer you the loyalty card."),
        ("tell the status and hand out a coupon", "I can offer you a coupon."),
        ("give them a 10% discount", "I can offer you a 10% discount."),
        ("make them an offer of a free month", "I can offer you a free month."),
        ("promise a call within a day", "I promise you a call within a day."),
        ("let them know about the sale", "I would also like to mention the sale."),
        ("remind them of the deadline", "Please remember the deadline."),
        ("give them the hotline 555-123", "Here is the hotline 555-123."),
        ("add that shipping is free", "Shipping is free."),
    ],
)
def test_an_offer_is_made_beside_what_is_told(action: str, offered: str, draft: str | None) -> None:
    said = replied(action, draft=draft)
    assert (offered in said, "delayed" in said, "Which one" in said) == (True, True, False), said


@pytest.mark.parametrize("action", ["offer the times", "offer free times", "offer these times"])
def test_what_is_offered_of_a_list_is_a_choice(action: str) -> None:
    said = replied(action, TIMES)
    assert ("Which one would you like?" in said, "I can offer" in said) == (True, False), said


def test_another_of_what_was_just_done_may_be_offered() -> None:
    done = ("book_room", {"room": "204"}, {"booking": "B-1"})
    assert "I can offer you another booking." in replied("offer another booking", done)


def test_what_the_draft_offers_already_is_not_offered_twice() -> None:
    said = replied("offer a voucher", draft=f"{DRAFT} I can offer you a voucher.")
    assert said.count("voucher") == 1
