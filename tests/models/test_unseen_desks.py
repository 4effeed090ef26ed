"""Whole conversations of desks that the offline model has never seen, through the compiled graph."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, create_guided_agent
from arq_graph.agent.spec import Term, Variable


class Talk:
    """A conversation with an agent, turn by turn.

    Args:
        agent: The agent.
        mode: How much the model is asked to reason.
    """

    def __init__(self, agent: Agent, mode: Literal["arq", "cot", "direct"] = "arq") -> None:
        self._app = create_guided_agent("offline", agent, checkpointer=MemorySaver(), mode=mode)
        self._thread: Any = {"configurable": {"thread_id": "t"}}
        self._seen = 0

    def say(self, text: str) -> tuple[list[dict[str, Any]], str]:
        """Say something; returns the calls that were made, and the reply."""
        state = self._app.invoke({"messages": [("user", text)]}, self._thread)
        new = state["messages"][self._seen :]
        self._seen = len(state["messages"])
        for revision in state["revisions"]:
            assert revision.violations == (), revision
        calls = [call for m in new if isinstance(m, AIMessage) for call in m.tool_calls]
        return [{call["name"]: call["args"]} for call in calls], str(state["messages"][-1].text)


def search_rooms(
    check_in: str, check_out: str, guests: int, kind: Literal["double", "suite"] | None = None
) -> list:
    """Search for free rooms.

    Args:
        check_in: Day of arrival (YYYY-MM-DD).
        check_out: Day of departure (YYYY-MM-DD).
        guests: Number of guests.
        kind: Kind of room.
    """
    return [] if kind == "suite" else [{"room": "204", "price": 120}]


def book_room(room: str, check_in: str, check_out: str, guest_name: str) -> dict:
    """Book a room for a guest.

    Args:
        room: Room number, e.g. 204.
        check_in: Day of arrival (YYYY-MM-DD).
        check_out: Day of departure (YYYY-MM-DD).
        guest_name: Full name of the guest.
    """
    return {"confirmation": "BK-7781"}


HOTEL = Agent(
    name="Hotel Aurora",
    profile="You are the front desk of Hotel Aurora. Breakfast is served from 7 to 10.",
    guidelines=[
        Guideline("the guest greets", 'welcome them and say "It is lovely to have you here."'),
        Guideline(
            "the guest asks whether a room is free", "search and tell which are free", tools=[search_rooms]
        ),
        Guideline("no rooms are free", "apologise and suggest another date"),
        Guideline("the guest wants to book a room", "book the room and confirm it", tools=[book_room]),
        Guideline("the guest asks for a late check-out", "tell them that it costs 20 euros"),
        Guideline("the guest complains about noise", "apologise and offer to move them to another room"),
    ],
    confirm={"book_room": "customer"},
    variables=[Variable("today", "the current date", "2031-05-02")],
)


@pytest.mark.parametrize("mode", ["arq", "cot", "direct"])
def test_a_hotel_desk_searches_books_and_knows_its_house(mode):
    talk = Talk(HOTEL, mode)
    dates = {"check_in": "2031-05-12", "check_out": "2031-05-15"}
    assert "It is lovely to have you here." in talk.say("Hello!")[1]
    calls, reply = talk.say("Do you have a double room from 12 to 15 May for two people?")
    assert calls == [{"search_rooms": {**dates, "guests": 2, "kind": "double"}}]
    assert "204" in reply
    calls, reply = talk.say("I'd like to book room 204")
    assert (calls, "guest name" in reply) == ([], True)
    calls, reply = talk.say("Anna Berg")
    assert (calls, "Shall I book the room" in reply) == ([], True)
    calls, reply = talk.say("Yes please")
    assert calls == [{"book_room": {"room": "204", **dates, "guest_name": "Anna Berg"}}]
    assert "BK-7781" in reply
    assert "20 euros" in talk.say("Can I check out later on the last day?")[1]
    assert "from 7 to 10" in talk.say("When is breakfast?")[1]
    assert "move you to another room" in talk.say("The people next door are so loud!!")[1]
    assert "another date" in talk.say("Is a suite free from 12 to 15 May for two?")[1]
    assert "do not have that information" in talk.say("Do you have a helipad?")[1]
    assert talk.say("thanks, bye")[0] == []


def find_book(title: str) -> Any:
    """Find a book in the catalogue by its title."""
    return {"Dune": {"status": "on loan", "due": "June 1"}, "Emma": {"status": "available"}}.get(
        title, "not found"
    )


def place_hold(card_number: str, title: str) -> str:
    """Place a hold on a book.

    Args:
        card_number: Number of the library card (8 digits).
        title: Title of the book.
    """
    return "The hold is placed."


LIBRARY = Agent(
    name="City Library",
    profile="You are the help desk of the City Library. A library card costs 12 euros a year.",
    guidelines=[
        Guideline("the reader asks whether the library has a book", "look it up and tell", tools=[find_book]),
        Guideline("the book is on loan", "tell when it is due and offer to place a hold", tools=[place_hold]),
        Guideline("the book is not in the catalogue", "suggest an inter-library loan"),
        Guideline(
            "the reader asks about something unrelated to the library", "say that you only help with books"
        ),
        Guideline("the reader thanks the agent", 'say "Happy reading!"'),
    ],
    glossary=[Term("inter-library loan", "borrowing a book from another library", ("ILL",))],
)


def test_a_library_desk_waits_for_what_it_only_offered():
    talk = Talk(LIBRARY)
    calls, reply = talk.say("Hi, do you have Dune?")
    assert calls == [{"find_book": {"title": "Dune"}}]
    assert "place a hold?" in reply
    calls, reply = talk.say("yes, please place a hold")
    assert (calls, "card number" in reply) == ([], True)
    assert talk.say("12345678")[0] == [{"place_hold": {"card_number": "12345678", "title": "Dune"}}]
    calls, reply = talk.say("And Emma?")
    assert (calls, "available" in reply) == ([{"find_book": {"title": "Emma"}}], True)
    calls, reply = talk.say("What about 'The Unknown Book'?")
    assert calls == [{"find_book": {"title": "The Unknown Book"}}]
    assert "inter-library loan" in reply
    assert "another library" in talk.say("what's an inter-library loan?")[1]
    assert "12 euros" in talk.say("how much is a library card?")[1]
    assert "I only help with books" in talk.say("what's the weather tomorrow?")[1]
    assert talk.say("Thank you so much")[1] == "Happy reading!"


def get_balance(account_number: str) -> float:
    """Get the balance of an account.

    Args:
        account_number: Account number, 6 digits.
    """
    return 42.5


def transfer_money(from_account: str, to_account: str, amount: float) -> dict:
    """Transfer money between accounts.

    Args:
        from_account: Account number to take the money from, 6 digits.
        to_account: Account number to send the money to, 6 digits.
        amount: Amount in euros.
    """
    return {"status": "executed"}


def block_card(card_digits: str, reason: Literal["lost", "stolen"]) -> dict:
    """Block a bank card.

    Args:
        card_digits: Last four digits of the card.
        reason: Why it is blocked.
    """
    return {"replacement_days": 5}


BANK = Agent(
    name="Nordbank",
    profile="You are the assistant of Nordbank. Branches are open from 9 to 16.",
    guidelines=[
        Guideline("the customer asks for their balance", "get the balance and tell it", tools=[get_balance]),
        Guideline("the balance is below 100", "warn them that a low balance can lead to fees"),
        Guideline("the customer wants to transfer money", "transfer the money", tools=[transfer_money]),
        Guideline("the customer's card is lost or stolen", "block the card", tools=[block_card]),
        Guideline("the customer asks for investment advice", "refuse politely and refer them to a branch"),
        Guideline("the customer wants to speak to a person", "transfer them to a human adviser"),
        Guideline(None, "never ask for a PIN"),
    ],
    confirm={"transfer_money": "customer"},
)


def test_a_bank_moves_no_money_without_a_yes_to_the_latest_amount():
    talk = Talk(BANK)
    assert talk.say("what's my balance?")[0] == []
    calls, reply = talk.say("123456")
    assert calls == [{"get_balance": {"account_number": "123456"}}]
    assert ("42.5" in reply, "fees" in reply) == (True, True)
    wanted = {"from_account": "123456", "to_account": "654321", "amount": 60}
    assert talk.say("Please transfer 50 euros from 123456 to 654321")[0] == []
    calls, reply = talk.say("no, make it 60")
    assert (calls, "amount: 60" in reply) == ([], True)
    assert talk.say("yes")[0] == [{"transfer_money": wanted}]
    assert talk.say("I lost my card")[0] == []
    assert talk.say("1234")[0] == [{"block_card": {"card_digits": "1234", "reason": "lost"}}]
    calls, reply = talk.say("Should I invest in stocks?")
    assert ("cannot help" in reply, "a branch" in reply) == (True, True)
    assert "human adviser" in talk.say("I want to talk to a real human")[1]


def find_slots(doctor: str, day: str) -> list[str]:
    """Find free appointments with a doctor.

    Args:
        doctor: Name of the doctor, such as Smith.
        day: The day.
    """
    return ["09:30", "11:00"]


def book_appointment(doctor: str, day: str, time: str, patient_name: str, phone: str | None = None) -> dict:
    """Book an appointment.

    Args:
        doctor: Name of the doctor, such as Smith.
        day: The day.
        time: Time of day (HH:MM).
        patient_name: The patient's full name.
        phone: Phone number for a reminder.
    """
    return {"appointment": "A-55"}


CLINIC = Agent(
    name="Green Clinic",
    profile="You are the reception of Green Clinic.",
    guidelines=[
        Guideline(
            "the patient wants to make an appointment",
            "find free appointments and offer the times",
            tools=[find_slots, book_appointment],
        ),
        Guideline("the patient reports chest pain", "tell them to call 112 immediately"),
        Guideline("the patient is under 18", "ask for a parent's phone number"),
    ],
    variables=[Variable("today", "the current date", "2031-05-02")],
)


def test_a_clinic_keeps_one_patients_appointment_apart_from_the_next_ones():
    talk = Talk(CLINIC)
    calls, reply = talk.say("Hello, I need an appointment with Dr. Smith tomorrow")
    assert calls == [{"find_slots": {"doctor": "Smith", "day": "2031-05-03"}}]
    assert ("09:30" in reply, "?" in reply) == (True, True)
    calls, _ = talk.say("11:00 please, my name is Peter Pan, call me at +47 555 12345")
    booked = {"doctor": "Smith", "day": "2031-05-03", "time": "11:00", "patient_name": "Peter Pan"}
    assert calls == [{"book_appointment": {**booked, "phone": "+47 555 12345"}}]
    assert "112" in talk.say("I also have a strong pain in my chest")[1]
    calls, reply = talk.say("My daughter is 12 and needs an appointment with doctor Lee on June 3")
    assert calls == [{"find_slots": {"doctor": "Lee", "day": "2031-06-03"}}]
    assert "time" in reply


def order_pizza(
    pizza: Literal["margherita", "pepperoni"],
    size: Literal["small", "large"],
    quantity: int = 1,
    extra_cheese: bool = False,
) -> dict:
    """Order a pizza.

    Args:
        pizza: Which pizza.
        size: How big.
        quantity: How many.
        extra_cheese: Whether extra cheese is added.
    """
    return {"order_number": "P-12"}


PIZZERIA = Agent(
    name="Pizza Napoli",
    profile="You take orders for Pizza Napoli. We accept cash and cards.",
    guidelines=[
        Guideline("the customer wants to order a pizza", "order the pizza", tools=[order_pizza]),
        Guideline("the customer asks for a discount", "offer the lunch deal"),
        Guideline("the customer complains that the pizza is late", "apologise and offer a free drink"),
    ],
)


def test_a_pizza_place_takes_an_order_in_one_sentence_or_piece_by_piece():
    whole = Talk(PIZZERIA)
    calls, _ = whole.say("I'd like two large margherita with extra cheese please")
    wanted = {"pizza": "margherita", "size": "large", "quantity": 2, "extra_cheese": True}
    assert calls == [{"order_pizza": wanted}]
    assert "lunch deal" in whole.say("any discounts?")[1]
    assert "cash and cards" in whole.say("do you take cards?")[1]
    assert "free drink" in whole.say("My pizza is 40 minutes late!")[1]
    parts = Talk(PIZZERIA)
    calls, reply = parts.say("I want to order a pizza")
    assert (calls, "pizza" in reply, "size" in reply) == ([], True, True)
    assert parts.say("pepperoni, small")[0] == [{"order_pizza": {"pizza": "pepperoni", "size": "small"}}]


def reset_password(username: str) -> str:
    """Reset the password of a user.

    Args:
        username: Login name, such as jdoe.
    """
    return "A reset link was sent."


def check_service(service: Literal["vpn", "wifi"]) -> dict:
    """Check whether a service is up."""
    return {"service": service, "status": "outage" if service == "vpn" else "up"}


def create_ticket(title: str, description: str, priority: Literal["normal", "urgent"] = "normal") -> dict:
    """Create a support ticket.

    Args:
        title: Short title of the problem.
        description: What the problem is.
        priority: How urgent it is.
    """
    return {"ticket": "INC-4"}


HELPDESK = Agent(
    name="IT help desk",
    profile="You are the IT help desk of a company.",
    guidelines=[
        Guideline("the user forgot their password", "reset the password", tools=[reset_password]),
        Guideline("the user has a problem with vpn or wifi", "check the service", tools=[check_service]),
        Guideline("there is an outage", "apologise for the outage and tell them that we are working on it"),
        Guideline(
            "the user reports a broken laptop", "create a ticket and tell its number", tools=[create_ticket]
        ),
    ],
)


def test_a_help_desk_tells_an_outage_from_a_broken_device():
    talk = Talk(HELPDESK)
    calls, reply = talk.say("i forgot my pasword")
    assert (calls, "username" in reply) == ([], True)
    assert talk.say("jdoe")[0] == [{"reset_password": {"username": "jdoe"}}]
    calls, reply = talk.say("The VPN isn't working")
    assert calls == [{"check_service": {"service": "vpn"}}]
    assert "working on it" in reply
    calls, reply = talk.say("The wifi has a problem, too")
    assert calls == [{"check_service": {"service": "wifi"}}]
    assert "working on it" not in reply
    (call,), reply = talk.say("My laptop is broken, its screen flickers")
    assert call["create_ticket"]["description"] == "My laptop is broken, its screen flickers"
    assert "INC-4" in reply
