"""What the offline tool caller takes from a conversation as the value of an argument, and what it does not."""

import pytest

from tests.models.prompts import (
    FLAG,
    NUMBER,
    TEXT,
    WHOLE,
    arguments_of,
    closed,
    list_of,
    one_of,
    propose,
    tool,
)

USE = "the customer needs it: use the tool"


def given(schema, said, name, *entries, description="", **kwargs):
    """The value of one required argument of a look-up."""
    described = tool("look_up", "", USE, **{name: (schema, description or said)})
    return arguments_of(described, *entries, **kwargs).get(name)


@pytest.mark.parametrize(
    ("name", "description", "said", "value"),
    [
        ("order_id", "Id of the order, like ORD-123.", "Where is ORD-7788?", "ORD-7788"),
        ("order_id", "Id of the order, like ORD-123.", "where is ord-7788", "ORD-7788"),
        ("order_id", "The order's number.", "Where is order 4711?", "4711"),
        ("order_id", "The order's number.", "Where is order #4711?", "4711"),
        ("booking_reference", "Six letters and digits, e.g. AB12CD.", "My booking is XK93QT", "XK93QT"),
        ("card_number", "Library card, 8 digits.", "my card is 12345678", "12345678"),
        ("pin", "4 digits", "it is 12345", None),
        ("booking_id", "Like BK-12.", "What about order ORD-5?", None),
        ("order_id", "The order's number.", "I need 2 lamps for 40 euros on 2025-03-01", None),
        ("order_id", "The order's number.", "Cancel ticket 4711", None),
        ("email", "", "Write to anna.b@corp.example, please.", "anna.b@corp.example"),
        ("phone", "", "Call me at +47 555 12 345!", "+47 555 12 345"),
        ("phone_number", "", "I was there on 2025-03-01", None),
        ("website", "", "see https://a.example/x?y=1.", "https://a.example/x?y=1"),
        ("date", "YYYY-MM-DD", "on 2 June 2031, please", "2031-06-02"),
        ("date", "", "on June 2nd, 2031", "2031-06-02"),
        ("date", "", "on 2031-06-02", "2031-06-02"),
        ("date", "", "on 25.12.2031", "2031-12-25"),
        ("date", "", "tomorrow, please", "tomorrow"),
        ("date", "", "I may come by", None),
        ("time", "HH:MM", "at 7pm for us", "19:00"),
        ("time", "", "at 18:30", "18:30"),
        ("time", "", "noon", "12:00"),
        ("name", "", "my name is anna berg and I need help", "anna berg"),
        ("guest_name", "", "A table under the name Okafor, please", "Okafor"),
        ("patient_name", "", "This is Li Wei calling", "Li Wei"),
        ("name", "", "I'm looking for a lamp", None),
        ("name", "", "I'm on Monday there", None),
        ("city", "", "What is the weather in Oslo?", "Oslo"),
        ("city", "", "What is the weather in New York City today?", "New York City"),
        ("city", "", "What is the weather?", None),
        ("address", "", "Bring it to 12 Main Street, please", "12 Main Street"),
        ("title", "Title of the book.", 'Do you have "The Dispossessed"?', "The Dispossessed"),
        ("title", "Title of the book.", "Do you have Dune?", "Dune"),
        ("title", "Title of the book.", "The title is dune", "dune"),
        ("title", "Title of the book.", "do you have that one?", None),
        ("author", "", "Anything by Ursula Le Guin?", "Ursula Le Guin"),
        ("medicine", "", "I need more aspirin, I take two a day", "aspirin"),
        ("product", "Name of the product.", "Do you have a garden hose?", "garden hose"),
        ("size", "One of: small, medium, large.", "a large one", "large"),
        ("room_kind", "Kind of room, e.g. single, double, suite.", "a double for me", "double"),
        ("query", "What to search for.", "Find me vegan restaurants nearby", "vegan restaurants nearby"),
        (
            "description",
            "What the problem is.",
            "Hi! My screen flickers since noon.",
            "My screen flickers since noon.",
        ),
        ("reason", "", "I cancel because it is too late.", "it is too late"),
        ("reason", "", "I want to cancel.", None),
    ],
)
def test_a_string_is_found_by_name_shape_and_description(name, description, said, value):
    assert given(TEXT, description, name, said) == value


@pytest.mark.parametrize(
    ("schema", "name", "description", "said", "value"),
    [
        (WHOLE, "guests", "Number of guests.", "A room for two people", 2),
        (WHOLE, "party_size", "", "a table for 4 tonight", 4),
        (WHOLE, "party_size", "", "a table for 4 at 7pm, we are coming", 4),
        (WHOLE, "party_size", "", "a table at 7pm", None),
        (WHOLE, "nights", "", "three nights please", 3),
        (WHOLE, "quantity", "How many.", "quantity: 12", 12),
        (WHOLE, "order_number", "", "order 4711, please", 4711),
        (WHOLE, "party_size", "", "2 pizzas, please", None),
        (NUMBER, "amount", "In euros.", "send 49.50 euros to her", 49.5),
        (NUMBER, "amount", "", "send $1,200 now", 1200),
        (NUMBER, "max_price", "", "under $80 please", 80),
        (NUMBER, "weight", "Weight in kilograms.", "it is 2.5 kilograms", 2.5),
        (FLAG, "gift_wrap", "", "with gift wrap please", True),
        (FLAG, "gift_wrap", "", "no gift wrap please", False),
        (FLAG, "breakfast_included", "", "a room without breakfast", False),
        (FLAG, "gift_wrap", "", "a lamp please", None),
        (one_of("economy", "business"), "cabin", "", "in business class", "business"),
        (one_of("S", "M", "L"), "size", "", "a shirt in L", "L"),
        (one_of("S", "M", "L"), "size", "", "i'd like a shirt", None),
        (one_of("window", "aisle"), "seat", "", "not the window, an aisle seat", "aisle"),
        (one_of("in_progress", "closed"), "status", "", "those in progress", "in_progress"),
        (list_of(one_of("ham", "olives", "corn")), "toppings", "", "with ham and olives", ["ham", "olives"]),
        (
            list_of(TEXT),
            "toppings",
            "",
            "a pizza with ham, corn and olives please",
            ["ham", "corn", "olives"],
        ),
        (list_of(TEXT), "order_ids", "Ids like ORD-1.", "ORD-1 and ORD-2", ["ORD-1", "ORD-2"]),
    ],
)
def test_a_value_has_the_arguments_type(schema, name, description, said, value):
    assert given(schema, description, name, said) == value


def test_the_latest_value_wins():
    entries = ("a room for 2 guests", "agent: For 2 guests?", "Sorry, 3 guests")
    assert given(WHOLE, "", "guests", *entries) == 3


def test_a_correction_within_a_message_wins():
    assert given(TEXT, "Like ORD-1.", "order_id", "ORD-1, no, I mean ORD-2") == "ORD-2"
    assert given(TEXT, "Like ORD-1.", "order_id", "not ORD-1 but ORD-2") == "ORD-2"


def test_a_bare_answer_to_the_agents_question_counts():
    ask = "agent: What is your {}?"
    assert given(TEXT, "", "username", "help", ask.format("username"), "jdoe") == "jdoe"
    assert (
        given(TEXT, "", "patient_name", "help", ask.format("patient name"), "It's mia wong, please.")
        == "mia wong"
    )
    assert given(TEXT, "", "city", "help", ask.format("city"), "lisbon") == "lisbon"
    assert given(WHOLE, "", "party_size", "help", ask.format("party size"), "5") == 5
    assert given(FLAG, "", "gift_wrap", "help", "agent: Shall I add gift wrap?", "yes please") is True
    assert given(TEXT, "", "city", "help", ask.format("city"), "why do you ask?") is None
    assert given(TEXT, "", "username", "help", ask.format("username"), "ok") is None


def test_two_dates_are_a_beginning_and_an_end():
    described = tool(
        "search_rooms", check_in=(TEXT, "Day of arrival."), check_out=(TEXT, "Day of departure.")
    )
    both = {"check_in": "2031-05-12", "check_out": "2031-05-15"}
    assert arguments_of(described, "a room from 12 to 15 May 2031") == both
    assert arguments_of(described, "from 2031-05-12 until 2031-05-15") == both
    assert arguments_of(described, "a room on 2031-05-12") == {"check_in": "2031-05-12"}


def test_from_and_to_are_not_mixed_up():
    described = tool(
        "transfer_money",
        "",
        "the customer wants to transfer money: transfer the money",
        from_account=(TEXT, "6 digits."),
        to_account=(TEXT, "6 digits."),
        amount=(NUMBER, "In euros."),
    )
    wanted = {"from_account": "111111", "to_account": "222222", "amount": 50}
    assert arguments_of(described, "transfer 50 euros from 111111 to 222222") == wanted
    assert arguments_of(described, "transfer 50 euros to 222222 from account 111111") == wanted
    route = tool("find_trains", origin=(TEXT, ""), destination=(TEXT, ""))
    assert arguments_of(route, "a train from Oslo to Bergen") == {"origin": "Oslo", "destination": "Bergen"}


def test_an_identifier_of_something_else_is_not_taken():
    described = tool(
        "get_order", order_id=(TEXT, "Number of the order."), customer_id=(TEXT, "Number of the customer.")
    )
    given_both = arguments_of(described, "order 17171 for customer 42424")
    assert given_both == {"order_id": "17171", "customer_id": "42424"}
    assert arguments_of(described, "order 17171") == {"order_id": "17171"}


def test_tomorrow_is_a_date_where_the_prompt_knows_today():
    today = [{"id": "V1", "name": "current_date", "value": "2031-05-30"}]
    assert given(TEXT, "", "date", "tomorrow please", variables=today) == "2031-05-31"
    assert given(TEXT, "", "date", "on June 2", variables=today) == "2031-06-02"
    assert given(TEXT, "", "date", "next Monday", variables=today) == "2031-06-02"


def test_a_variable_gives_a_value_that_nobody_said():
    known = [{"id": "V1", "name": "customer_id", "value": "C-9"}]
    assert given(TEXT, "", "customer_id", "my balance?", variables=known) == "C-9"
    nested = [{"id": "V1", "name": "customer", "value": {"customer_id": "C-8", "tier": "gold"}}]
    assert given(TEXT, "", "customer_id", "my balance?", variables=nested) == "C-8"


def test_a_result_gives_an_argument_of_the_next_tool():
    found = ("find_customer", {"email": "a@b.example"}, {"customer_id": "C-7", "name": "Ann"})
    assert given(TEXT, "", "customer_id", "my balance?", found) == "C-7"


def test_of_several_records_only_the_one_spoken_of_gives_a_value():
    flights = [{"flight_id": "F1", "airline": "Nordic"}, {"flight_id": "F2", "airline": "Iberia"}]
    found = ("search_flights", {}, flights)
    assert (
        given(TEXT, "", "flight_id", "Any flights?", found, "agent: Nordic or Iberia.", "the Iberia one")
        == "F2"
    )
    assert given(TEXT, "", "flight_id", "Any flights?", found, "agent: Nordic or Iberia.", "book it") is None


def test_a_failed_call_gives_no_values():
    found = ("find_customer", {}, {"customer_id": "C-7"}, "error")
    assert given(TEXT, "", "customer_id", "my balance?", found) is None


def test_an_object_is_given_once_all_it_requires_is():
    contact = closed(name=TEXT, email=TEXT)
    assert given(contact, "", "contact", "my name is Ann Lee, ann@b.example") == {
        "name": "Ann Lee",
        "email": "ann@b.example",
    }
    assert given(contact, "", "contact", "my name is Ann Lee") is None


def test_values_of_an_earlier_request_are_not_carried_into_another():
    described = tool(
        "book_appointment",
        "",
        "the patient wants an appointment: book the appointment",
        doctor=(TEXT, "Name of the doctor, such as Smith."),
        date=(TEXT, "The day."),
        time=(TEXT, "Time of day."),
    )
    entries = ("an appointment with Dr. Smith on 2031-01-02 at 11:00", "agent: Booked.")
    another = arguments_of(described, *entries, "and now an appointment with Dr. Lee on 2031-03-04")
    assert another == {"doctor": "Lee", "date": "2031-03-04"}


def test_what_is_given_says_where_it_stands():
    described = tool("get_order", order_id=(TEXT, "Like ORD-1."))
    (call,) = propose(described, "Where is ORD-5?")
    assert call["arguments"]["order_id"]["value_in_context"] == "M1: ORD-5"


def test_an_open_object_is_not_made_up():
    described = tool(
        "save", "", "the customer wants to save: save it", data=({"type": "object"}, "Anything.")
    )
    described["schemas"]["data"] = {"type": "string", "description": "The value as a string that holds JSON"}
    (call,) = propose(described, "save it please")
    assert call["arguments"]["data"]["given"] is False
