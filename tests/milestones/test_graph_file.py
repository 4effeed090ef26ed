"""Milestone files: what they may say, how they are written, and how a mistake is told."""

from __future__ import annotations

import pickle
import re

import networkx as nx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from arq_graph.errors import SpecError
from arq_graph.milestones import Milestone, MilestoneGraph, score
from tests.milestones.conversations import called, conversation, graph_of, user

AS_PUBLISHED = """\
milestones:
  - name: Start
    type: NFC
    description: Conversation begins: nothing is known yet
    dependencies: []

  - name: get_download_status
    type: FC
    description: Looks up the user's download, "as is"; may fail
    dependencies:
      - Start
  - name: Offer Trying Later
    type: NFC
    description: 'Quoted: as it should be'
    dependencies:
      - get_download_status
      - escalate
  - name: escalate
    type: FC
    description: [sic] hands over
      to a person: the customer's
      last resort
    dependencies: [get_download_status, Offer Trying Later]
  - name: All Done
    type: Aggrigator
    description: >
      Folded: text
      over lines
    dependencies: [Offer Trying Later, escalate]
  - name: No
    type: NFC
    description: *bold* words
    dependencies: [All Done]
  - name: End
    type: NFC
    description: Over
    dependencies: [No]
"""


def test_published_files_load_with_their_quirks():
    graph = graph_of(AS_PUBLISHED)
    described = {one.name: one.description for one in graph.milestones}
    assert described == {
        "Start": "Conversation begins: nothing is known yet",
        "get_download_status": 'Looks up the user\'s download, "as is"; may fail',
        "Offer Trying Later": "Quoted: as it should be",
        "escalate": "[sic] hands over to a person: the customer's last resort",
        "All Done": "Folded: text over lines",
        "No": "*bold* words",
        "End": "Over",
    }
    # Quoting moved no line.
    assert [one.line for one in graph.milestones] == [2, 7, 12, 18, 24, 30, 34]
    assert graph.milestone("All Done").type == "Aggregator"
    found = graph.check()
    assert not found.errors
    assert [(one.line, one.severity) for one in found.warnings] == [(12, "warning")]
    assert "'Offer Trying Later', 'escalate' depend on each other" in found.warnings[0].message


def test_a_doubtful_file_loads_with_a_warning(tmp_path):
    file = tmp_path / "graph.yaml"
    file.write_text(AS_PUBLISHED)
    with pytest.warns(UserWarning, match=r"graph\.yaml.*line 12: a cycle"):
        assert MilestoneGraph.from_yaml(file).file == str(file)


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
    options: {colour: red}
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
    graph = graph_of(OPTIONAL_KEYS)
    offer = graph.milestone("offer_discount")
    tool = "get_discount_expedited_shipping"
    assert (offer.called_tool, offer.weight, offer.dependencies) == (tool, 2.5, ("Start",))
    good = {"order_id": "ORD17", "amount": 2, "kind": "a", "date": "2024-05-20", "insured": "no"}
    good |= {"zip": "01234", "gift": False, "options": {"colour": "red"}}
    told = user(" ".join(map(str, ["ORD17 2 a 2024-05-20 no 01234 red", *good])))
    assert "offer_discount" in score(graph, conversation(told, called(tool, **good))).reached
    for wrong in ({"insured": False}, {"zip": 1234}, {"amount": 3}, {"note": "no"}, {"order_id": "ORD"}):
        assert "offer_discount" not in score(graph, conversation(told, called(tool, **good | wrong))).reached
    assert not graph.check(tools=[tool, "cancel_order"])


def test_what_is_written_reads_back_the_same():
    text = "generated_by: gpt-4o\nreviewed: {by: Ann, date: 2025-03-31}\n" + OPTIONAL_KEYS.replace(
        "requires: all, dep", "requires: all, description: 'Ende: gut', dep"
    )
    text += "- {name: one, type: Aggregator, requires: any, dependencies: [Checked]}\n"
    graph = graph_of(text)
    again = graph_of(graph.to_yaml())
    for name in ("milestones", "forbidden", "failed_if", "grounded", "generated_by", "reviewed"):
        assert getattr(again, name) == getattr(graph, name)
    assert again.to_yaml() == graph.to_yaml()


def test_a_generated_graph_is_doubtful_until_somebody_has_reviewed_it():
    body = "milestones:\n- {name: Start, type: NFC}\n- {name: a, type: FC}\n- {name: End, type: NFC, dependencies: [a]}"
    [warning] = graph_of(f"generated_by: gpt-4o\n{body}").check().warnings
    assert "generated by gpt-4o, and nobody has reviewed it" in warning.message
    graph = graph_of(f"generated_by: gpt-4o\nreviewed: {{by: Ann, date: 2025-03-31}}\n{body}")
    assert not graph.check()
    assert str(graph.reviewed) == "reviewed by Ann on 2025-03-31"


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).map(str.strip)
names = words.filter(bool) | st.sampled_from(
    ["no", "on", "1e5", "0o17", "12:30", "2024-05-20", "~", "null", "nULL", ": x", "# y", "1.5e10"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=30)
@given(
    texts=st.lists(names, min_size=2, max_size=2, unique=True).filter(
        lambda all: not {"Start", "End"} & set(all)
    ),
    arguments=st.dictionaries(names, values, max_size=3),
)
@example(texts=["1.5e10", "nULL"], arguments={"no": "1.5e10", "on": "0o17"})
def test_any_name_and_any_value_survives_writing_and_reading(texts, arguments):
    name, tool = texts
    graph = MilestoneGraph(
        [
            Milestone(name="Start", type="NFC"),
            *MilestoneGraph.from_actions([{"name": tool, "args": arguments}]).milestones[1:2],
            Milestone(name=name, type="Aggregator", description=tool, dependencies=(tool,)),
            Milestone(name="End", type="NFC", dependencies=(name,)),
        ]
    )
    assert graph_of(graph.to_yaml()).milestones == graph.milestones


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "`milestones` is missing"),
        ("stones: []", 1, "unknown key `stones`.*did you mean `milestones`"),
        ("- {name: ' ', type: FC}", 1, "name` must have at least 1"),
        ("- name: a\n  type: FCC", 2, "type` must be 'FC', 'NFC' or 'Aggregator'"),
        ("- name: a\n  type: FC\n  requries: all", 3, "`requries`; did you mean `requires`"),
        ("- name: a\n  type: NFC\n  tool: x", 1, "`tool` is a key of an FC"),
        ("- name: a\n  type: FC\n  weight: 0", 3, "greater than 0"),
        ("- name: a\n  type: NFC\n  check: {said_by: agnet, pattern: x}", 3, "did you mean `agent`"),
        ("- name: a\n  type: NFC\n  check: {said_by: agent}", 3, "pattern` is missing"),
        ("- name: a\n  type: NFC\n  check: {pattern: '('}", 3, "not a regular expression"),
        ("- name: a\n  type: NFC\n  check: agent says so", 3, "module:function"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {regex: '('}", 4, "not a regular expression"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {min: 3, max: 1}", 4, "greater than"),
        ("- {name: a, type: FC}\n- {name: a, type: FC}", 2, "two milestones are named 'a'.*line 1"),
        ("forbidden:\n- {arguments: {a: 1}}\nmilestones: []", 2, "either a `tool`"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, text, line, said):
    file = tmp_path / "graph.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=said) as raised:
        MilestoneGraph.from_yaml(file)
    assert f"graph.yaml:{line}: " in str(raised.value)


@settings(max_examples=30)
@given(st.text(st.sampled_from("-: \n'\"[]{}#&*!|>abc,0"), max_size=60) | st.text(max_size=40))
def test_any_text_is_a_graph_or_a_clear_error(text):
    for whole in (text, f"- name: a\n  type: FC\n  description: {text}\n"):
        try:
            graph_of(whole)
        except SpecError as error:
            assert str(error)


def test_an_action_that_is_no_call_is_named():
    for action in ({"kwargs": {}}, {"name": "x", "kwargs": [1]}, "x"):
        with pytest.raises(SpecError, match="action 1"):
            MilestoneGraph.from_actions([action])


START, A, END = "{name: Start, type: NFC}", "{name: a, type: FC}", "{name: End, type: NFC, dependencies: [a]}"


@pytest.mark.parametrize(
    ("milestones", "severity", "line", "said"),
    [
        ((START, "{name: get, type: FC}", END.replace("a]", "gett]")), "error", 3, "did you mean `get`"),
        ((A, END), "error", None, "no milestone named 'Start'"),
        ((A, START), "error", None, "no milestone named 'End'"),
        (
            (START, A.replace("}", ", dependencies: [b]}"), "{name: b, type: FC, dependencies: [a]}", END),
            "error",
            4,
            "End cannot be reached: ",
        ),
        ((START.replace("}", ", dependencies: [a]}"), A, END), "error", 1, "Start depends on"),
        ((START, "{name: End, type: FC}"), "error", 2, "End is never observed"),
        ((START, "{name: End, type: NFC, check: {pattern: x}}"), "error", 2, "End is never observed"),
        (
            (START, A, "{name: b, type: FC, dependencies: [b]}", END.replace("a]", "a, b]")),
            "warning",
            3,
            "'b' can never be reached",
        ),
        ((START, A, "{name: b, type: FC}", END), "warning", 3, "from 'b': a dead end"),
        ((START, A.replace("}", ", dependencies: [a, Start]}"), END), "warning", 2, "a cycle: 'a'"),
        (
            (START, A.replace("}", ", arguments: {x: {regexp: b}}}"), END),
            "warning",
            2,
            "did you mean `regex`",
        ),
        ((START, "{name: End, type: NFC}"), "warning", 2, "End needs nothing"),
    ],
)
def test_check_reports_what_is_wrong_or_doubtful_with_its_line(milestones, severity, line, said):
    found = graph_of("\n".join(f"- {each}" for each in milestones)).check()
    [hit] = [one for one in found if re.search(said, one.message)]
    assert (hit.severity, hit.line) == (severity, line)
    assert hit in (found.errors if severity == "error" else found.warnings)


def test_a_tool_that_the_agent_does_not_have_is_an_error():
    graph = graph_of(f"- {START}\n- {{name: cancelOrder, type: FC}}\n- {END.replace('a]', 'cancelOrder]')}")
    [error] = graph.check(tools=["get_discount", "cancel_order"]).errors
    assert (error.milestone, error.line) == ("cancelOrder", 2)
    assert "did you mean `cancel_order`" in error.message


def test_a_graph_that_cannot_be_measured_on_is_refused_with_its_line(tmp_path):
    file = tmp_path / "graph.yaml"
    file.write_text("- {name: Start, type: NFC}\n- {name: End, type: NFC, dependencies: [b, c]}\n")
    with pytest.raises(SpecError, match=r"graph\.yaml:2: 'End' depends on 'b'.*and 1 more"):
        MilestoneGraph.from_yaml(file)
    graph = MilestoneGraph.from_yaml(file, check=False)
    graph.check()
    with pytest.raises(SpecError, match="'End' depends on 'b'"):
        score(graph, conversation(user("hi")))


def test_the_graph_is_a_networkx_graph_that_cannot_be_changed_by_accident():
    graph = graph_of(AS_PUBLISHED)
    assert list(graph.successors("Start")) == ["get_download_status"]
    assert graph.nodes["All Done"]["requires"] == "all"
    with pytest.raises(nx.NetworkXError):
        graph.remove_node("escalate")
    changed = graph.copy()
    changed.remove_node("escalate")
    assert "escalate" in graph
    assert nx.descendants(graph.reverse(), "escalate") == {
        "Start",
        "get_download_status",
        "Offer Trying Later",
    }


def test_a_graph_can_be_sent_to_another_process():
    checked = "{name: a, type: NFC, check: 'operator:eq'}"
    graph = graph_of(f"- {START}\n- {checked}\n- {END}")
    talk = conversation(user("hi"))
    assert score(graph, talk).goal_completed is False
    sent = pickle.loads(pickle.dumps(graph))
    assert sent.milestones == graph.milestones
    assert score(sent, talk) == score(graph, talk)
    with pytest.raises(nx.NetworkXError):
        sent.add_node("x")
