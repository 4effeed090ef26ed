"""Where a milestone is observed: genuine calls, arguments that hold, words, functions, and grounded values."""

from __future__ import annotations

import pytest

from arq_graph.errors import InputError, SpecError
from arq_graph.milestones import (
    Call,
    MilestoneGraph,
    Result,
    Transcript,
    parse_milestones,
    patterns,
    read_milestones,
    score,
)
from tests.milestones.conversations import agent, called, conversation, user


def text_of(milestone: str, more: str = "") -> str:
    return f"""{more}
milestones:
- {{name: Start, type: NFC}}
- {{name: goal, {milestone}}}
- {{name: End, type: NFC, dependencies: [goal]}}
"""


def graph_of(milestone: str, more: str = "") -> MilestoneGraph:
    return parse_milestones(text_of(milestone, more))


def observed(graph: MilestoneGraph, transcript: Transcript, **options) -> tuple[int, ...]:
    return score(graph, transcript, **options).observations.events.get("goal", ())


FC = graph_of("type: FC, tool: get_order")


def test_what_is_no_graph_or_transcript_is_refused_with_the_way_to_one():
    with pytest.raises(InputError, match=r"transcript is a list: .*read_transcript"):
        score(FC, [{"role": "user", "content": "hi"}])
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
def test_each_genuine_call_is_observed_and_none_that_failed_or_cannot_be_read(
    malformed, result, failed, events
):
    graph = graph_of("type: FC, tool: get_order", 'failed_if: "(?i)^error"')
    call = [Call("get_order", {}, malformed=malformed), Result(1, "get_order", result, failed)]
    assert observed(graph, conversation(call, called("other"), called("get_order"))) == events


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        ("7", [7, 7.0], [8, "7", True]),
        ("true", [True], [1, "true", False]),
        ("no", ["no"], [False, "yes"]),
        ("{equals: {min: 1}}", [{"min": 1}], [5]),
        (
            "{equals: {city: Rome, days: [1, 2]}}",
            [{"days": [1, 2], "city": "Rome"}],
            [{"city": "Rome", "days": [2, 1]}],
        ),
        ('{regex: "ORD\\\\d+"}', ["ORD1", "ORD123"], ["ORD", "my ORD1", None, 5]),
        ("{regex: '[0-9]+'}", [12, "12"], [1.5, True]),
        ("{min: 2, max: 3}", [2, 3, 2.5, "2"], [1, 4, "x", None, True, float("nan")]),
        ("{min: 1e3}", [1000, 2000], [9]),
        ("{min: 2, regex: '1?[0-9]'}", [2, 12], [1, 22]),
        ("{min: 2024-01-01, max: 2024-12-31}", ["2024-05-20"], ["2025-01-01", 5]),
        ("{max: 2024-12-31}", ["2024-05-20"], ["2025-01-01", 5]),
        ("Zoe\u0308", ["Zo\u00eb", " Zo\u00eb "], ["Zoe", "zo\u00eb"]),
        ("{one_of: [economy, business]}", ["economy"], ["first", None]),
        ("{absent: false}", ["x", 0, ""], [None]),
    ],
)
def test_arguments_must_hold(constraint, good, bad):
    graph = graph_of(f"type: FC, arguments: {{it: {constraint}}}")
    for value in good:
        assert observed(graph, conversation(called("goal", it=value, more=1))) == (1,), value
    for value in bad:
        assert observed(graph, conversation(called("goal", it=value, more=1))) == (), value
    assert observed(graph, conversation(called("goal", more=1))) == ()


def test_an_argument_that_must_be_absent_may_be_null():
    graph = graph_of("type: FC, arguments: {it: {absent: true}}")
    calls = [called("goal"), called("goal", it=None), called("goal", it="")]
    assert observed(graph, conversation(*calls)) == (1, 3)


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
        ({}, True),
        ({"id": 3.0}, True),
        ({"id": "3"}, False),
        ({"id": True}, False),
        ({"id": None}, False),
        ({"kind": None}, True),
        ({"kind": "other"}, False),
        ({"address": {}}, False),
        ({"address": {"zip": "1", "lines": "one"}}, True),  # not required
        ({"note": 5}, True),  # not required
    ],
)
def test_every_required_argument_must_be_there_in_its_type(changed, is_genuine):
    arguments = {"id": 3, "address": {"zip": "12345"}, "kind": "new"} | changed
    talk = conversation(called("get_order", **arguments))
    tool = {"type": "function", "function": {"name": "get_order", "parameters": PARAMETERS}}
    assert bool(observed(FC, talk, tools=[tool])) == is_genuine
    # The same where the record brings the schema itself; without one that can be read, nothing is asked.
    assert bool(observed(FC, Transcript(talk.events, tools={"get_order": PARAMETERS}))) == is_genuine
    assert observed(FC, talk) == (1,)
    circle = {"$defs": {"it": {"$ref": "#/$defs/it"}}, "$ref": "#/$defs/it"}
    assert observed(FC, Transcript(talk.events, tools={"get_order": circle})) == (1,)


def test_an_invented_argument_is_no_genuine_call_where_grounding_is_strict():
    strict = graph_of("type: FC, tool: get_order", "grounded: strict")
    invented = conversation(user("Where is my order?"), called("get_order", id=17))
    assert observed(strict, conversation(user("Where is order 17?"), called("get_order", id=17))) == (2,)
    assert observed(strict, invented) == ()
    assert observed(FC, invented) == (2,)


@pytest.mark.parametrize(
    ("voice", "events"), [("agent", (2, 6)), ("user", (1,)), ("tool", (4,)), (None, (1, 2, 4, 6))]
)
def test_a_check_looks_at_who_says_it(voice, events):
    said_by = f"said_by: {voice}, " if voice else ""
    graph = graph_of(f"type: NFC, check: {{{said_by}pattern: later}}")
    talk = conversation(
        user("later?"), agent("try later"), called("x", "later"), user("no"), agent("later then")
    )
    assert observed(graph, talk) == events
    assert score(graph, talk).undecided == ()
    assert score(graph_of("type: NFC"), talk).undecided == ("goal",)


@pytest.mark.parametrize("said", ["It’s **£24-25** now", "It’s £24-25\u00a0now", "It’s £24\u201125\u202fnow"])
def test_a_message_is_searched_as_its_reader_sees_it(said):
    graph = graph_of("type: NFC, check: {pattern: '£24-25 now'}")
    assert observed(graph, conversation(agent(said))) == (1,)
    assert observed(graph, conversation(agent("…"), called("x", said))) == ()  # a result is data


CHECKS = """
def again(event, earlier):
    return event.text in [one.text for one in earlier]

def fails(event, earlier):
    raise TypeError("no")
"""


def checked_by(folder, name: str) -> MilestoneGraph:
    (folder / f"{folder.name}_checks.py").write_text(CHECKS)
    file = folder / "graph.yaml"
    file.write_text(text_of(f"type: NFC, check: '{folder.name}_checks:{name}'"))
    return read_milestones(file)


def test_a_check_may_be_a_function_beside_the_file(tmp_path):
    talk = conversation(user("Where?"), agent("Here."), user("Where?"), user("Where?"))
    assert observed(checked_by(tmp_path, "again"), talk) == (3, 4)


@pytest.mark.parametrize(
    ("name", "said"), [("nothing", "nothing"), ("fails", r"'goal'.*event 1.*TypeError: no")]
)
def test_a_function_that_is_not_there_or_fails_is_named_with_its_line(tmp_path, name, said):
    with pytest.raises(SpecError, match=said) as raised:
        score(checked_by(tmp_path, name), conversation(user("hi")))
    assert raised.value.line == 4


@pytest.mark.parametrize(
    ("rule", "more", "said"),
    [
        ("type: NFC, check: {pattern: '(a|aa)+$'}", "", "milestone 'goal' fails at event 1"),
        ("type: FC, tool: x, arguments: {id: {regex: '(a|aa)+'}}", "", "milestone 'goal' fails at event 3"),
        ("type: FC, tool: x", "failed_if: '(a|aa)+$'", "`failed_if` fails at event 3"),
        ("type: FC, tool: x", "forbidden: [{pattern: '(a|aa)+$'}]", "`forbidden` fails at event 1"),
    ],
)
def test_a_pattern_that_backtracks_for_ever_is_stopped_and_named(monkeypatch, rule, more, said):
    monkeypatch.setattr(patterns, "SECONDS_PER_SEARCH", patterns.SECONDS_PER_SEARCH / 10)
    endless = "a" * 80 + "b"
    talk = conversation(user(endless), called("x", endless, id=endless), id="talk 7")
    with pytest.raises(SpecError, match=f"check of {said} of conversation talk 7.* after 0.1 s"):
        score(graph_of(rule, more), talk)


def invented(*parts) -> dict[int, tuple[str, ...]]:
    return dict(score(MilestoneGraph.from_actions([{"name": "x"}]), conversation(*parts)).invented_arguments)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("my id is Mia_Li-3668.", "mia_li_3668"),
        ("ORDER  #W-17", "order #w-17"),
        ("it's ORD-123 45", "ORD12345"),
        ("call (555) 010-2020", "5550102020"),
        ("that is $1,203.50", 1203.5),
        ("that is 1203.5 dollars", "1,203.50"),
        ("one way, please", "one_way"),
        ("on May 20th, 2024", "2024-05-20"),
        ("on 5/20", "2024-05-20"),
        ("on 20.5.2024", "2024-05-20"),
        ("CAFÉ Zoë", "café zoë"),
        ("ﬁne", "fine"),
        ("anything", True),
        ("anything", None),
        ("anything", "--"),
    ],
)
def test_a_value_that_was_said_in_other_spelling_is_grounded(said, value):
    assert invented(user(said), called("x", it=value)) == {}


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("my order 255", 25),
        ("flight HAT136", 136),
        ("from New York", "JFK"),
        ("on May 19", "2024-05-20"),
        ("Mia and Tom Li", "Mia Li"),
        ("it was for dinner", "ordinn"),
        ("nothing", 0),
        ("order 12 and 345", "A12345"),
    ],
)
def test_a_value_that_was_not_said_may_be_invented(said, value):
    assert invented(user(said), called("x", it=value)) == {2: ("it",)}


def test_only_what_the_customer_or_a_tool_said_before_the_call_counts():
    calls = (called("find", "order 18", id=17), called("get", id=18), called("get", id=19))
    assert invented(agent("Is it order 17?"), *calls, user("It is 19.")) == {2: ("id",), 6: ("id",)}
    # Two utterances are not read as one.
    assert invented(user("ORD-12"), user("345"), called("get", id="ORD12345")) == {3: ("id",)}


def test_values_inside_lists_are_named_by_their_path_and_numbers_end_where_their_digits_do():
    people = [{"first": "Mia", "last": "Li"}, {"first": "Tom", "last": "Li"}]
    booked = called("book", people=people, options={"a": {"b": 3}})
    assert invented(user("For Mia Li"), booked) == {2: ("people[1].first", "options.a.b")}
    numbers = called("x", a=1, b=234, c=1234, d=7, e=1234.56, f=5678)
    assert invented(user("1,234,5678 and 1,234.56x and 7,890a"), numbers) == {2: ("a", "b", "e")}
