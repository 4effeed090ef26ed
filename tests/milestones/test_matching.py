from __future__ import annotations

import pytest

from arq_graph.errors import SpecError
from arq_graph.milestones import (
    Call,
    MilestoneGraph,
    Result,
    Transcript,
    score,
)
from tests.milestones.conversations import agent, called, conversation, user


def graph_of(milestone: str, more: str = "") -> MilestoneGraph:
    return MilestoneGraph.parse_yaml(f"""
{more}
milestones:
- {{name: Start, type: NFC}}
- {milestone}
- {{name: End, type: NFC, dependencies: [goal]}}
""")


def observed(graph: MilestoneGraph, transcript: Transcript, **options) -> tuple[int, ...]:
    return score(graph, transcript, **options).observations.events.get("goal", ())


FC = "{name: goal, type: FC, tool: get_order}"


def test_a_genuine_call_is_observed_at_the_call_each_time():
    talk = conversation(user("hi"), called("get_order"), called("other"), called("get_order"))
    assert observed(graph_of(FC), talk) == (2, 6)


def test_a_call_that_the_record_marks_as_failed_is_no_genuine_call():
    talk = Transcript((Call("get_order", {}), Result(1, "get_order", "no such order", failed=True)))
    assert observed(graph_of(FC), talk) == ()


def test_a_result_that_matches_failed_if_is_a_failed_call():
    graph = graph_of(FC, 'failed_if: "(?i)^error"')
    assert observed(graph, conversation(called("get_order", "ERROR: none"))) == ()
    assert observed(graph, conversation(called("get_order", "no error at all"))) == (1,)


def test_a_call_with_malformed_arguments_never_counts():
    talk = Transcript((Call("get_order", {}, malformed='{"id": '), Result(1, "get_order", "ok")))
    assert observed(graph_of(FC), talk) == ()


@pytest.mark.parametrize(
    ("constraint", "good", "bad"),
    [
        ("7", [7, 7.0], [8, "7", True]),
        ("true", [True], [1, "true", False]),
        ("no", ["no"], [False, "yes"]),
        ("2024-05-20", ["2024-05-20"], ["2024-05-21"]),
        ("{equals: {min: 1}}", [{"min": 1}], [5]),
        (
            "{city: Rome, days: [1, 2]}",
            [{"days": [1, 2], "city": "Rome"}],
            [{"city": "Rome", "days": [2, 1]}],
        ),
        ('{regex: "ORD\\\\d+"}', ["ORD1", "ORD123"], ["ORD", "my ORD1", None, 5]),
        ("{regex: '[0-9]+'}", [12, "12"], [1.5, True]),
        ("{min: 2, max: 3}", [2, 3, 2.5, "2"], [1, 4, "x", None, True, float("nan")]),
        ("{min: 2}", [2, 99], [1]),
        ("{min: 1e3}", [1000, 2000], [9]),
        ("{min: 2, regex: '1?[0-9]'}", [2, 12], [1, 22]),
        ("{max: 2}", [2, -5], [3]),
        ("{min: 2024-01-01, max: 2024-12-31}", ["2024-05-20"], ["2025-01-01", 5]),
        ("{one_of: [economy, business]}", ["economy"], ["first", None]),
        ("{absent: false}", ["x", 0, ""], [None]),
    ],
)
def test_arguments_must_hold(constraint, good, bad):
    graph = graph_of(f"{{name: goal, type: FC, arguments: {{it: {constraint}}}}}")
    for value in good:
        assert observed(graph, conversation(called("goal", it=value, more=1))) == (1,), value
    for value in bad:
        assert observed(graph, conversation(called("goal", it=value, more=1))) == (), value
    assert observed(graph, conversation(called("goal", more=1))) == ()


def test_an_argument_that_must_be_absent_may_be_null():
    graph = graph_of("{name: goal, type: FC, arguments: {it: {absent: true}}}")
    assert observed(graph, conversation(called("goal"))) == (1,)
    assert observed(graph, conversation(called("goal", it=None))) == (1,)
    assert observed(graph, conversation(called("goal", it=""))) == ()


SCHEMA = {
    "type": "function",
    "function": {
        "name": "get_order",
        "parameters": {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "note": {"type": "string"},
                "address": {"$ref": "#/$defs/Address"},
                "kind": {"anyOf": [{"type": "string", "enum": ["new", "old"]}, {"type": "null"}]},
            },
            "required": ["id", "address", "kind"],
            "$defs": {
                "Address": {
                    "type": "object",
                    "properties": {
                        "zip": {"type": "string"},
                        "lines": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["zip"],
                }
            },
        },
    },
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
        ({"address": {"zip": 12345}}, False),
        ({"address": {"zip": "1", "lines": "one"}}, True),  # not required
        ({"note": 5}, True),  # not required
    ],
)
def test_every_required_argument_must_be_there_in_its_type(changed, is_genuine):
    arguments = {"id": 3, "address": {"zip": "12345"}, "kind": "new"} | changed
    talk = conversation(called("get_order", **arguments))
    assert bool(observed(graph_of(FC), talk, tools=[SCHEMA])) == is_genuine
    # The same where the record brings the schema itself.
    recorded = Transcript(talk.events, tools={"get_order": SCHEMA["function"]["parameters"]})
    assert bool(observed(graph_of(FC), recorded)) == is_genuine
    assert observed(graph_of(FC), talk) == (1,)


@pytest.mark.parametrize(
    "part", [{"enum": 5}, {"type": [{}]}, {"anyOf": 5}, {"allOf": [5, "x"]}, {"items": 5}, {"$ref": {}}, 7]
)
def test_a_part_of_a_schema_that_is_none_asks_for_nothing(part):
    for schema in (
        {"properties": {"id": part}, "required": ["id"]},
        {"properties": part, "required": [{}, "id"]},
    ):
        for value in (3, [1], {"x": 1}):
            recorded = conversation(called("get_order", id=value), tools={"get_order": schema})
            assert observed(graph_of(FC), recorded) == (1,)


def deep(levels: int, leaf: object = 1) -> object:
    value = leaf
    for _ in range(levels):
        value = [value]
    return value


def test_values_nested_deeper_than_the_stack_are_compared():
    graph = MilestoneGraph.from_actions([{"name": "goal", "args": {"it": deep(5_000)}}], grounded="strict")
    assert observed(graph, conversation(user("1"), called("goal", it=deep(5_000)))) == (2,)
    assert observed(graph, conversation(user("2"), called("goal", it=deep(5_000, 2)))) == ()


def test_an_invented_argument_is_no_genuine_call_where_grounding_is_strict():
    strict = graph_of(FC, "grounded: strict")
    asked = conversation(user("Where is order 17?"), called("get_order", id=17))
    invented = conversation(user("Where is my order?"), called("get_order", id=17))
    assert observed(strict, asked) == (2,)
    assert observed(strict, invented) == ()
    assert observed(graph_of(FC), invented) == (2,)


@pytest.mark.parametrize(
    ("voice", "events"), [("agent", (2, 6)), ("user", (1,)), ("tool", (4,)), (None, (1, 2, 4, 6))]
)
def test_a_check_looks_at_who_says_it(voice, events):
    said_by = f"said_by: {voice}, " if voice else ""
    graph = graph_of(f"{{name: goal, type: NFC, check: {{{said_by}pattern: later}}}}")
    talk = conversation(
        user("later?"), agent("try later"), called("x", "later"), user("no"), agent("later then")
    )
    assert observed(graph, talk) == events
    assert score(graph, talk).undecided == ()


def test_a_check_may_be_a_function_beside_the_file(tmp_path):
    (tmp_path / "my_checks.py").write_text(
        "def asked_twice(event, earlier):\n"
        "    return getattr(event, 'text', '').endswith('?')"
        " and any(getattr(one, 'text', '').endswith('?') for one in earlier)\n"
    )
    file = tmp_path / "graph.yaml"
    file.write_text(
        "milestones:\n- {name: Start, type: NFC}\n"
        "- {name: goal, type: NFC, check: 'my_checks:asked_twice'}\n"
        "- {name: End, type: NFC, dependencies: [goal]}\n"
    )
    graph = MilestoneGraph.from_yaml(file)
    talk = conversation(user("Where?"), agent("Here."), user("Where?"), user("Where?"))
    assert observed(graph, talk) == (3, 4)


@pytest.mark.parametrize(
    ("name", "said"), [("my_checks2:nothing", "nothing"), ("no_such_module:x", "no_such_module")]
)
def test_a_function_that_is_not_there_is_named_with_its_line(tmp_path, name, said):
    (tmp_path / "my_checks2.py").write_text("number = 3\n")
    file = tmp_path / "graph.yaml"
    file.write_text(
        "milestones:\n- {name: Start, type: NFC}\n"
        f"- {{name: goal, type: NFC, check: '{name}'}}\n"
        "- {name: End, type: NFC, dependencies: [goal]}\n"
    )
    graph = MilestoneGraph.from_yaml(file)
    with pytest.raises(SpecError, match=said) as raised:
        score(graph, conversation(user("hi")))
    assert raised.value.line == 3


def test_a_function_that_fails_is_named():
    graph = graph_of("{name: goal, type: NFC, check: 'operator:truediv'}")
    with pytest.raises(SpecError, match=r"goal.*event 1.*TypeError"):
        score(graph, conversation(user("hi")))


@pytest.mark.parametrize(
    "milestone",
    [
        "{name: goal, type: NFC, check: {pattern: '(a|aa)+$'}}",
        "{name: goal, type: FC, tool: get_order, arguments: {id: {regex: '(a|aa)+'}}}",
    ],
)
def test_a_pattern_that_backtracks_for_ever_is_stopped_and_named(milestone):
    endless = "a" * 80 + "b"
    talk = conversation(user(endless), called("get_order", id=endless), id="talk 7")
    with pytest.raises(SpecError, match=r"'goal'.*event [13] of conversation talk 7.* after 1 s") as raised:
        score(graph_of(milestone), talk)
    assert raised.value.line == 5


def test_an_nfc_that_nothing_decides_is_undecided():
    graph = graph_of("{name: goal, type: NFC}")
    assert score(graph, conversation(user("hi"))).undecided == ("goal",)
