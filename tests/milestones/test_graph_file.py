"""Milestone files: what they may contain, how they are written, and how mistakes in them are reported."""

import pickle
import re

import networkx as nx
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arq_graph.errors import SpecError
from arq_graph.milestones import (
    MilestoneGraph,
    check_milestones,
    dump_milestones,
    parse_milestones,
    read_milestones,
    score,
)
from tests.milestones.conversations import called, conversation, user

AS_PUBLISHED = """\
milestones:
  - name: Start
    type: NFC
    description: Conversation begins
    dependencies: []

  - name: get_status
    type: FC
    description: Looks up the user's download, "as is"; may fail
    dependencies:
      - Start
      - escalate
  - name: escalate
    type: FC
    dependencies: [get_status]
  - name: No
    type: Aggrigator
    dependencies: [escalate]
  - {name: End, type: NFC, dependencies: [No]}
"""


def test_published_files_load_with_their_quirks_and_a_warning(tmp_path):
    file = tmp_path / "graph.yaml"
    file.write_text(AS_PUBLISHED)
    with pytest.warns(UserWarning, match=r"graph\.yaml.*line 7: a cycle"):
        graph = read_milestones(file)
    assert [milestone.line for milestone in graph.milestones] == [2, 7, 13, 16, 19]
    assert graph.get_milestone("get_status").description == 'Looks up the user\'s download, "as is"; may fail'
    assert graph.get_milestone("No").type == "Aggregator"
    [finding] = check_milestones(graph)
    assert (finding.severity, finding.line) == ("warning", 7)
    assert (
        "'get_status', 'escalate' depend on each other; only 'get_status' can come first" in finding.message
    )


def test_files_with_aliases_as_yaml_dumps_them_are_read():
    after_start = ["Start"]
    data = [{"name": "Start", "type": "NFC"}]
    data += [{"name": name, "type": "FC", "dependencies": after_start} for name in ("find", "pay")]
    data.append({"name": "End", "type": "NFC", "dependencies": ["find", "pay"]})
    text = yaml.safe_dump(data)
    assert "*id001" in text
    assert list(parse_milestones(text).edges("Start")) == [("Start", "find"), ("Start", "pay")]


OPTIONAL_KEYS = """\
failed_if: "(?i)^error"
grounded: strict
forbidden:
- {tool: cancel_order, arguments: {order_id: {absent: true}}}
- {said_by: agent, pattern: "guarantee"}
milestones:
- {name: Start, type: NFC}
- name: offer_discount
  type: FC
  tool: get_discount_expedited_shipping
  arguments:
    order_id: {regex: "ORD\\\\d+"}
    amount: {min: 1, max: 2.5}
    kind: {one_of: [a, b]}
    note: {absent: true}
    date: 2024-05-20
    insured: no
    zip: 01234
    gift: false
    options: {equals: {colour: red}}
  requires: any
  weight: 2.5
  dependencies: Start
- name: Offer Trying Later
  type: nfc
  check: {said_by: agent, pattern: "try (again )?later"}
  holds: true
  dependencies: [offer_discount]
- name: Checked
  type: NFC
  check: operator:eq
  dependencies: [Start]
- {name: End, type: NFC, requires: all, dependencies: [Offer Trying Later, Checked]}
"""


def test_every_optional_key_is_read_and_no_word_is_taken_for_something_else():
    graph = parse_milestones(OPTIONAL_KEYS)
    offer = graph.get_milestone("offer_discount")
    tool = "get_discount_expedited_shipping"
    assert (offer.tool_name, offer.weight, offer.dependencies) == (tool, 2.5, ("Start",))
    good = {"order_id": "ORD17", "amount": 2, "kind": "a", "date": "2024-05-20", "insured": "no"}
    good |= {"zip": "01234", "gift": False, "options": {"colour": "red"}}
    request = user("ORD17 2 a 2024-05-20 no 01234 red")
    assert "offer_discount" in score(graph, conversation(request, called(tool, **good))).reached
    for wrong in ({"insured": False}, {"zip": 1234}, {"amount": 3}, {"note": "no"}, {"order_id": "ORD"}):
        talk = conversation(request, called(tool, **good | wrong))
        assert "offer_discount" not in score(graph, talk).reached
    assert not check_milestones(graph, [tool, "cancel_order"])


def test_a_graph_that_is_dumped_and_parsed_is_the_same():
    join = "- {name: one, type: Aggregator, requires: any, description: 'a: b', dependencies: [Checked]}\n"
    text = "generated_by: me\nreviewed: {by: Ann, date: 2025-03-31}\n" + OPTIONAL_KEYS + join
    graph = parse_milestones(text)
    again = parse_milestones(dump_milestones(graph))
    for name in ("milestones", "forbidden", "failed_if", "grounded", "generated_by", "reviewed"):
        assert getattr(again, name) == getattr(graph, name)
    assert dump_milestones(again) == dump_milestones(graph)


names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12).map(lambda text: f"t{text}e")
names |= st.sampled_from(
    ["no", "on", "1e5", "0o17", "12:30", "2024-05-20", "~", "null", "nULL", ": x", "# y", "1.5e10"]
)
numbers = st.integers(-(10**9), 10**9) | st.floats(-9, 9).map(lambda number: round(number, 3))
values = st.recursive(
    st.none() | st.booleans() | numbers | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=30)
@given(tool=names, arguments=st.dictionaries(names, values, max_size=3))
@example(tool="1.5e10", arguments={"no": "1.5e10", "on": "0o17"})
@example(tool="nULL", arguments={})
def test_any_name_and_any_value_survives_dumping_and_parsing(tool, arguments):
    graph = MilestoneGraph.from_actions([{"name": tool, "args": arguments}])
    assert parse_milestones(dump_milestones(graph)).milestones == graph.milestones


START = "- {name: Start, type: NFC}"
A = "- {name: a, type: FC}"
END = "- {name: End, type: NFC, dependencies: [a]}"


def test_a_generated_graph_is_doubtful_until_somebody_has_reviewed_it():
    body = f"milestones:\n{START}\n{A}\n{END}"
    [warning] = check_milestones(parse_milestones(f"generated_by: gpt-4o\n{body}")).warnings
    assert "generated by gpt-4o, and nobody has reviewed it" in warning.message
    reviewed = "generated_by: gpt-4o\nreviewed: {by: Ann, date: 2025-03-31}"
    graph = parse_milestones(f"{reviewed}\n{body}")
    assert not check_milestones(graph)
    assert str(graph.reviewed) == "reviewed by Ann on 2025-03-31"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "`milestones` is missing"),
        ("- name: a\n  type: FC\n  requries: all", 3, "`requries`; did you mean `requires`"),
        ("- name: a\n  type: NFC\n  tool: x", 1, "`tool` is a key of an FC"),
        ("- name: a\n  type: FC\n  weight: 0", 3, "greater than 0"),
        ("- name: a\n  type: NFC\n  check: {said_by: agnet, pattern: x}", 3, "did you mean `agent`"),
        ("- name: a\n  type: NFC\n  check: {pattern: '('}", 3, "not a regular expression"),
        ("- name: a\n  type: NFC\n  check: agent says so", 3, "module:function"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {min: 3, max: 1}", 4, "greater than"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {regexp: b}", 4, "`regexp`; did you mean `regex`"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {city: Rome}", 4, r"is written \{equals: "),
        (f"{A}\n{A}", 2, "two milestones are named 'a'.*line 1"),
        ("forbidden:\n- {arguments: {a: 1}}\nmilestones: []", 2, "either a `tool`"),
    ],
)
def test_a_mistake_is_reported_with_its_line(tmp_path, text, line, message):
    file = tmp_path / "graph.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=message) as raised:
        read_milestones(file)
    assert f"graph.yaml:{line}: " in str(raised.value)
    assert "Pydantic" not in str(raised.value)


@pytest.mark.parametrize("action", [{"kwargs": {}}, {"name": "x", "kwargs": [1]}, "x"])
def test_an_action_that_is_not_a_call_is_named(action):
    with pytest.raises(SpecError, match="action 1"):
        MilestoneGraph.from_actions([action])


A_AND_B_NEED_EACH_OTHER = (
    "- {name: a, type: FC, dependencies: [b]}",
    "- {name: b, type: FC, dependencies: [a]}",
)
CANNOT_BE_ENTERED = (
    "End cannot be reached, since there is a cycle: each of 'a', 'b' needs another one of them first, so none of them "
    "can be reached; let one of them depend only on milestones outside the cycle"
)


@pytest.mark.parametrize(
    ("milestones", "severity", "line", "message"),
    [
        ((START, "- {name: get, type: FC}", END.replace("a]", "gett]")), "error", 3, "did you mean `get`"),
        ((A, END), "error", None, "no milestone named 'Start'"),
        ((A, START), "error", None, "no milestone named 'End'"),
        ((START, *A_AND_B_NEED_EACH_OTHER, END), "error", 4, CANNOT_BE_ENTERED),
        ((START.replace("}", ", dependencies: [a]}"), A, END), "error", 1, "Start depends on"),
        ((START, "- {name: End, type: FC}"), "error", 2, "End is never observed"),
        ((START, "- {name: End, type: NFC, check: {pattern: x}}"), "error", 2, "End is never observed"),
        (
            (START, A, "- {name: b, type: FC, dependencies: [b]}", END.replace("a]", "a, b]")),
            "warning",
            3,
            "a cycle: 'b' depends on itself, so it can't be reached; leave that out of its `dependencies`",
        ),
        ((START, A, "- {name: b, type: FC}", END), "warning", 3, "from 'b': a dead end"),
        (
            (START, A.replace("}", ", dependencies: [a, Start]}"), END),
            "warning",
            2,
            "a cycle: 'a' depends on itself, which",
        ),
        ((START, "- {name: End, type: NFC}"), "warning", 2, "End needs nothing"),
    ],
)
def test_findings_have_a_severity_and_a_line(milestones, severity, line, message):
    findings = check_milestones(parse_milestones("\n".join(milestones)))
    [finding] = [finding for finding in findings if re.search(message, finding.message)]
    assert (finding.severity, finding.line) == (severity, line)
    assert finding in (findings.errors if severity == "error" else findings.warnings)


def test_a_tool_or_an_argument_that_the_agent_does_not_have_is_an_error():
    graph = parse_milestones(
        "forbidden:\n- {tool: book, unless: [{siez: 1}]}\n"
        f"milestones:\n{START}\n- {{name: book, type: FC, arguments: {{size: 1, siez: 2}}}}\n"
        "- {name: cancelOrder, type: FC}\n- {name: End, type: NFC, dependencies: [book, cancelOrder]}"
    )
    tool = {"name": "book", "parameters": {"properties": {"size": {"type": "integer"}}}}
    errors = check_milestones(graph, [tool, "cancel_order"]).errors
    assert [error.line for error in errors] == [2, 5, 6]
    assert all("did you mean `size`" in error.message for error in errors[:2])
    assert errors[2].milestone == "cancelOrder"
    assert "did you mean `cancel_order`" in errors[2].message
    open_tool = {"name": "book", "parameters": tool["parameters"] | {"additionalProperties": True}}
    for book in (open_tool, "book"):
        assert not check_milestones(graph, [book, "cancelOrder"])


def test_a_graph_on_which_nothing_can_be_measured_is_refused_with_its_line(tmp_path):
    file = tmp_path / "graph.yaml"
    file.write_text("- {name: Start, type: NFC}\n- {name: End, type: NFC, dependencies: [b, c]}\n")
    for check in (True, False):
        with pytest.raises(SpecError, match=r"graph\.yaml:2: 'End' depends on 'b'.*and 1 more"):
            score(read_milestones(file, check=check), conversation(user("hi")))


def test_the_graph_is_a_networkx_graph_that_can_be_pickled_and_copied_and_is_frozen():
    graph = parse_milestones(f"{START}\n{A.replace('FC', 'NFC, check: operator:eq')}\n{END}")
    before = score(graph, conversation(user("hi")))
    unpickled = pickle.loads(pickle.dumps(graph))
    assert score(unpickled, conversation(user("hi"))) == before
    for frozen in (graph, unpickled):
        assert nx.descendants(frozen.reverse(), "End") == {"Start", "a"}
        copy = frozen.copy()
        copy.remove_node("a")
        with pytest.raises(nx.NetworkXError):
            frozen.remove_node("a")
