"""Observing milestones: genuine calls, arguments that hold, patterns, functions, and grounded values."""

import pytest

from arq_graph.agent import patterns
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones import (
    Call,
    MilestoneGraph,
    Result,
    Transcript,
    parse_milestones,
    read_milestones,
    score,
)
from tests.milestones.conversations import agent, called, conversation, user


def make_text(milestone: str, more: str = "") -> str:
    return f"""{more}
milestones:
- {{name: Start, type: NFC}}
- {{name: goal, {milestone}}}
- {{name: End, type: NFC, dependencies: [goal]}}
"""


def make_graph(milestone: str, more: str = "") -> MilestoneGraph:
    return parse_milestones(make_text(milestone, more))


def observe_goal(graph: MilestoneGraph, transcript: Transcript, **options) -> tuple[int, ...]:
    return score(graph, transcript, **options).observations.events.get("goal", ())


GET_ORDER = make_graph("type: FC, tool: get_order")


def test_an_object_that_is_not_a_graph_or_a_transcript_is_refused_with_the_way_to_one():
    with pytest.raises(InputError, match=r"transcript is a list: .*read_transcript"):
        score(GET_ORDER, [{"role": "user", "content": "hi"}])
    with pytest.raises(InputError, match=r"graph is a str: .*read_milestones"):
        score("goals.yaml", conversation(user("hi")))


@pytest.mark.parametrize(
    ("malformed", "result", "failed", "events"),
    [
        (None, "no error", False, (1, 5)),
        (None, "none", True, (5,)),
        (None, "ERROR: none", False, (5,)),
        ("{", "ok", False, (5,)),
    ],
    ids=["genuine", "marked as failed", "failed_if", "malformed"],
)
def test_genuine_calls_are_observed_but_not_failed_or_malformed_ones(malformed, result, failed, events):
    graph = make_graph("type: FC, tool: get_order", 'failed_if: "(?i)^error"')
    call = [Call("get_order", {}, malformed=malformed), Result(1, "get_order", result, failed)]
    assert observe_goal(graph, conversation(call, called("other"), called("get_order"))) == events


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        ("7", [7, 7.0], [8, "7", True]),
        ("true", [True], [1, "true", False]),
        ("no", ["no"], [False, "yes"]),
        ("{equals: {min: 1}}", [{"min": 1}], [5]),
        ("{equals: {a: x, b: [1, 2]}}", [{"b": [1, 2], "a": "x"}], [{"a": "x", "b": [2, 1]}]),
        ('{regex: "ORD\\\\d+"}', ["ORD1", "ORD123"], ["ORD", "my ORD1", None, 5]),
        ("{regex: '[0-9]+'}", [12, "12"], [1.5, True]),
        ("{min: 2, max: 3}", [2, 3, 2.5, "2"], [1, 4, "x", None, True, float("nan")]),
        ("{min: 1e3}", [1000, 2000], [9]),
        ("{min: 2, regex: '1?[0-9]'}", [2, 12], [1, 22]),
        ("{min: 2024-01-01, max: 2024-12-31}", ["2024-05-20"], ["2025-01-01", 5]),
        ("Zoe\u0308", ["Zo\u00eb", " Zo\u00eb "], ["Zoe", "zo\u00eb"]),
        ("{one_of: [economy, business]}", ["economy"], ["first", None]),
        ("{absent: false}", ["x", 0, ""], [None]),
    ],
)
def test_arguments_must_hold(constraint, good, bad):
    graph = make_graph(f"type: FC, arguments: {{it: {constraint}}}")
    for value in good:
        assert observe_goal(graph, conversation(called("goal", it=value, more=1))) == (1,), value
    for value in bad:
        assert observe_goal(graph, conversation(called("goal", it=value, more=1))) == (), value
    assert observe_goal(graph, conversation(called("goal", more=1))) == ()


def test_an_argument_that_must_be_absent_may_be_null():
    graph = make_graph("type: FC, arguments: {it: {absent: true}}")
    calls = [called("goal"), called("goal", it=None), called("goal", it="")]
    assert observe_goal(graph, conversation(*calls)) == (1, 3)


ADDRESS = {
    "type": "object",
    "properties": {"zip": {"type": "string"}, "lines": {"type": "array", "items": {"type": "string"}}},
    "required": ["zip"],
}
PARAMETERS = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "note": {"type": "string"},
        "address": {"$ref": "#/$defs/Address"},
        "kind": {"anyOf": [{"type": "string", "enum": ["new", "old"]}, {"type": "null"}]},
    },
    "required": ["id", "address", "kind"],
    "$defs": {"Address": ADDRESS},
}


@pytest.mark.parametrize(
    ("changed", "is_genuine"),
    [
        ({"id": 3.0}, True),
        ({"id": "3"}, False),
        ({"id": True}, False),
        ({"id": None}, False),
        ({"kind": None}, True),
        ({"kind": "other"}, False),
        ({"address": {}}, False),
        ({"address": {"zip": "1", "lines": "one"}, "note": 5}, True),  # neither is required
    ],
)
def test_every_required_argument_must_be_there_in_its_type(changed, is_genuine):
    talk = conversation(called("get_order", **{"id": 3, "address": {"zip": "1"}, "kind": "new"} | changed))
    tool = {"type": "function", "function": {"name": "get_order", "parameters": PARAMETERS}}
    assert bool(observe_goal(GET_ORDER, talk, tools=[tool])) == is_genuine
    # The same if the record brings the schema.
    recorded = Transcript(talk.events, tools={"get_order": PARAMETERS})
    assert bool(observe_goal(GET_ORDER, recorded)) == is_genuine


def test_without_a_schema_or_with_a_broken_one_no_argument_is_required():
    talk = conversation(called("get_order", id="3"))
    circular = {"$defs": {"it": {"$ref": "#/$defs/it"}}, "$ref": "#/$defs/it"}
    for tools in ({}, {"get_order": circular}):
        assert observe_goal(GET_ORDER, Transcript(talk.events, tools=tools)) == (1,)


def test_a_call_with_an_invented_argument_is_not_genuine_where_grounding_is_strict():
    strict = make_graph("type: FC, tool: get_order", "grounded: strict")
    invented = conversation(user("Where is my order?"), called("get_order", id=17))
    assert observe_goal(strict, conversation(user("Where is order 17?"), called("get_order", id=17))) == (2,)
    assert observe_goal(strict, invented) == ()
    assert observe_goal(GET_ORDER, invented) == (2,)


@pytest.mark.parametrize(
    ("speaker", "events"), [("agent", (2, 6)), ("user", (1,)), ("tool", (4,)), (None, (1, 2, 4, 6))]
)
def test_a_pattern_is_searched_in_what_the_named_speaker_says(speaker, events):
    said_by = f"said_by: {speaker}, " if speaker else ""
    graph = make_graph(f"type: NFC, check: {{{said_by}pattern: later}}")
    talk = conversation(
        user("later?"), agent("try later"), called("x", "later"), user("no"), agent("later then")
    )
    assert observe_goal(graph, talk) == events
    assert score(graph, talk).undecided == ()
    assert score(make_graph("type: NFC"), talk).undecided == ("goal",)


@pytest.mark.parametrize("text", ["It’s **£24-25** now", "It’s £24-25\u00a0now", "It’s £24\u201125\u202fnow"])
def test_a_message_is_searched_as_its_reader_sees_it(text):
    graph = make_graph("type: NFC, check: {pattern: '£24-25 now'}")
    assert observe_goal(graph, conversation(agent(text))) == (1,)
    assert observe_goal(graph, conversation(agent("…"), called("x", text))) == ()  # a result is data


CHECKS = """
def again(event, earlier):
    return event.text in [other.text for other in earlier]

def fails(event, earlier):
    raise TypeError("no")

async def waits(event, earlier):
    return False
"""


def read_graph_with_check(folder, function: str) -> MilestoneGraph:
    (folder / f"{folder.name}_checks.py").write_text(CHECKS)
    file = folder / "graph.yaml"
    file.write_text(make_text(f"type: NFC, check: '{folder.name}_checks:{function}'"))
    return read_milestones(file)


def test_a_check_may_be_a_function_beside_the_file(tmp_path):
    talk = conversation(user("Where?"), agent("Here."), user("Where?"), user("Where?"))
    assert observe_goal(read_graph_with_check(tmp_path, "again"), talk) == (3, 4)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("nothing", "nothing"),
        ("fails", r"'goal'.*event 1.*TypeError: no"),
        ("waits", "`check` names '.*:waits', which is async, but isn't awaited: write it with `def`"),
    ],
)
def test_a_function_that_is_missing_or_fails_is_named_with_its_line(tmp_path, function, message):
    with pytest.raises(SpecError, match=message) as raised:
        score(read_graph_with_check(tmp_path, function), conversation(user("hi")))
    assert raised.value.line == 4


@pytest.mark.parametrize(
    ("milestone", "more", "message"),
    [
        ("type: NFC, check: {pattern: '(a|aa)+$'}", "", "milestone 'goal' fails at event 1"),
        ("type: FC, tool: x, arguments: {id: {regex: '(a|aa)+'}}", "", "milestone 'goal' fails at event 2"),
        ("type: FC, tool: x", "failed_if: '(a|aa)+$'", "`failed_if` fails at event 3"),
        ("type: FC, tool: x", "forbidden: [{pattern: '(a|aa)+$'}]", "`forbidden` fails at event 1"),
    ],
)
def test_a_pattern_that_backtracks_for_ever_is_stopped_and_named(monkeypatch, milestone, more, message):
    monkeypatch.setattr(patterns, "SECONDS_PER_SEARCH", 0.01)
    endless = "a" * 80 + "b"
    talk = conversation(user(endless), called("x", endless, id=endless), id="talk 7")
    with pytest.raises(SpecError, match=f"check of {message} of conversation talk 7.* after 0.01 s"):
        score(make_graph(milestone, more), talk)


def find_invented(*parts) -> dict[int, tuple[str, ...]]:
    return dict(score(GET_ORDER, conversation(*parts)).invented_arguments)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("my id is Mia_Li-3668.", "mia_li_3668"),
        ("it's ORD-123 45", "ORD12345"),
        ("call (555) 010-2020", "5550102020"),
        ("that is $1,203.50", 1203.5),
        ("that is 1203.5 dollars", "1,203.50"),
        ("one way, please", "one_way"),
        ("on May 20th, 2024", "2024-05-20"),
        ("on 5/20", "2024-05-20"),
        ("CAFÉ Zoë", "café zoë"),
        ("ﬁne", "fine"),
        ("from 9:00 to 13:00", "9:00–13:00"),
        ("9:00‒13:00", "9:00"),
        ("1 May to 24 May", "2024-05-01–2024-05-24"),
        ("我的订单是ORD-77。", "ORD-77"),
        ("提前3天", 3),
        ("제 주문은 ORD-77이에요.", "ORD-77"),
        ("สั่งซื้อเลขที่1001ครับ", "1001"),
        ("anything", True),
        ("anything", None),
        ("anything", "--"),
    ],
)
def test_a_value_that_was_said_in_another_spelling_is_grounded(text, value):
    assert find_invented(user(text), called("x", it=value)) == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("my order 255", 25),
        ("flight HAT136", 136),
        ("on May 19", "2024-05-20"),
        ("Mia and Tom Li", "Mia Li"),
        ("it was for dinner", "ordinn"),
        ("nothing", 0),
        ("order 12 and 345", "A12345"),
        ("from 9:00", "9:00–13:00"),
        ("订单ORD-77", "ORD-7"),
    ],
)
def test_a_value_that_was_not_said_may_be_invented(text, value):
    assert find_invented(user(text), called("x", it=value)) == {2: ("it",)}


def test_only_what_the_customer_or_a_tool_said_before_the_call_counts():
    calls = (called("find", "order 18", id=17), called("get", id=18), called("get", id=19))
    assert find_invented(agent("Is it order 17?"), *calls, user("It is 19.")) == {2: ("id",), 6: ("id",)}
    # Two utterances are not taken as one.
    assert find_invented(user("ORD-12"), user("345"), called("get", id="ORD12345")) == {3: ("id",)}


def test_values_inside_lists_are_named_by_their_path_and_numbers_end_where_their_digits_do():
    people = [{"first": "Mia", "last": "Li"}, {"first": "Tom", "last": "Li"}]
    booking = called("book", people=people, options={"a": {"b": 3}})
    assert find_invented(user("For Mia Li"), booking) == {2: ("people[1].first", "options.a.b")}
    numbers = called("x", a=1, b=234, c=1234, d=7, e=1234.56, f=5678)
    assert find_invented(user("1,234,5678 and 1,234.56x and 7,890a"), numbers) == {2: ("a", "b", "e")}


def test_an_id_that_reads_like_a_number_of_a_million_digits_is_a_word():
    assert find_invented(user("It is 12e345678901."), called("get", id="12e345678901")) == {}
