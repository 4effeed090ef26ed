"""Milestone files: what they may say, how they are written, and how a mistake is told."""

from __future__ import annotations

import pickle
import re
import warnings

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
        graph = MilestoneGraph.from_yaml(file)
    assert graph.file == str(file)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        file.write_text(AS_PUBLISHED.replace("      - escalate\n", ""))
        MilestoneGraph.from_yaml(file)


def test_an_fc_may_have_another_name_than_its_tool():
    graph = graph_of("""
- {name: Start, type: NFC}
- {name: offer_discount, type: FC, tool: get_discount}
- {name: cancelOrder, type: FC}
- {name: End, type: NFC, dependencies: [offer_discount]}
""")
    assert score(graph, conversation(called("get_discount"))).goal_completed is True
    found = graph.check(tools=["get_discount", "cancel_order"])
    assert [(one.milestone, one.line) for one in found.errors] == [("cancelOrder", 4)]
    assert "did you mean `cancel_order`" in found.errors[0].message


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
    assert (graph.failed_if.text, graph.grounded) == ("(?i)^error", "strict")
    assert [str(rule) for rule in graph.forbidden] == [
        "cancel_order(order_id: {'absent': True})",
        "agent says /guarantee/",
    ]
    offer = graph.milestone("offer_discount")
    assert (offer.called_tool, offer.weight, offer.dependencies) == (
        "get_discount_expedited_shipping",
        2.5,
        ("Start",),
    )
    good = {
        "order_id": "ORD17",
        "amount": 2,
        "kind": "a",
        "date": "2024-05-20",
        "insured": "no",
        "zip": "01234",
    }
    good |= {"gift": False, "options": {"colour": "red"}}
    told = user(" ".join(map(str, ["ORD17 2 a 2024-05-20 no 01234 red", *good])))
    tool = "get_discount_expedited_shipping"
    assert "offer_discount" in score(graph, conversation(told, called(tool, **good))).reached
    for wrong in ({"insured": False}, {"zip": 1234}, {"amount": 3}, {"note": "no"}, {"order_id": "ORD"}):
        assert "offer_discount" not in score(graph, conversation(told, called(tool, **good | wrong))).reached
    assert graph.milestone("Offer Trying Later").holds is True
    assert graph.milestone("Checked").check == "operator:eq"


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
    assert not graph_of(body).check()
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
        ("failed_if: x", 1, "`milestones` is missing"),
        ("milestones: {a: b}", 1, "`milestones` must be a list"),
        ("- {type: FC}", 1, "name` is missing"),
        ("- {name: ' ', type: FC}", 1, "name` must have at least 1"),
        ("- name: a\n  type: FCC", 2, "type` must be 'FC', 'NFC' or 'Aggregator'"),
        ("- name: a\n  type: FC\n  requries: all", 3, "`requries`; did you mean `requires`"),
        ("- name: a\n  type: FC\n  requires: some", 3, "'any' or 'all'"),
        ("- name: a\n  type: NFC\n  tool: x", 1, "`tool` is a key of an FC"),
        ("- name: a\n  type: FC\n  weight: 0", 3, "greater than 0"),
        ("- name: a\n  type: FC\n  weight: heavy", 3, "a number"),
        ("- name: a\n  type: NFC\n  check: {said_by: agnet, pattern: x}", 3, "did you mean `agent`"),
        ("- name: a\n  type: NFC\n  check: {said_by: agent}", 3, "pattern` is missing"),
        ("- name: a\n  type: NFC\n  check: {pattern: '('}", 3, "not a regular expression"),
        ("- name: a\n  type: NFC\n  check: agent says so", 3, "module:function"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {regex: '('}", 4, "not a regular expression"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {min: 3, max: 1}", 4, "greater than"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {one_of: a}", 4, "must be a list"),
        ("- {name: a, type: FC}\n- {name: a, type: FC}", 2, "two milestones are named 'a'.*line 1"),
        ("forbidden:\n- {arguments: {a: 1}}\nmilestones: []", 2, "either a `tool`"),
        ("forbidden:\n- {tool: a, pattern: b}\nmilestones: []", 2, "either a `tool`"),
        ("grounded: loosely\nmilestones: []", 1, "'strict'"),
        ("milestones:\n\t- a", 2, "not YAML"),
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


CHECKED = {
    "depends on 'gett', which is no milestone.*did you mean `get`": (
        "- {name: Start, type: NFC}\n- {name: get, type: FC}\n- {name: End, type: NFC, dependencies: [gett]}",
        "error",
        3,
    ),
    "no milestone named 'Start'": ("- {name: a, type: FC}\n- {name: End, type: NFC}", "error", None),
    "no milestone named 'End'": ("- {name: a, type: FC}\n- {name: Start, type: NFC}", "error", None),
    "End cannot be reached: ": (
        "- {name: Start, type: NFC}\n- {name: a, type: FC, dependencies: [b]}\n"
        "- {name: b, type: FC, dependencies: [a]}\n- {name: End, type: NFC, dependencies: [a]}",
        "error",
        4,
    ),
    "Start depends on": (
        "- {name: Start, type: NFC, dependencies: [a]}\n- {name: a, type: FC, dependencies: [Start]}\n"
        "- {name: End, type: NFC, dependencies: [a]}",
        "error",
        1,
    ),
    "End is never observed": ("- {name: Start, type: NFC}\n- {name: End, type: FC}", "error", 2),
    "End is never observed by itself": (
        "- {name: Start, type: NFC}\n- {name: End, type: NFC, check: {pattern: x}}",
        "error",
        2,
    ),
    "'b' can never be reached": (
        "- {name: Start, type: NFC}\n- {name: a, type: FC}\n- {name: b, type: FC, dependencies: [c]}\n"
        "- {name: c, type: FC, dependencies: [b]}\n- {name: End, type: NFC, dependencies: [a, b]}",
        "warning",
        3,
    ),
    "End cannot be reached from 'b': a dead end": (
        "- {name: Start, type: NFC}\n- {name: a, type: FC}\n- {name: b, type: FC}\n"
        "- {name: End, type: NFC, dependencies: [a]}",
        "warning",
        3,
    ),
    "a cycle: 'a'": (
        "- {name: Start, type: NFC}\n- {name: a, type: FC, dependencies: [a, Start]}\n"
        "- {name: End, type: NFC, dependencies: [a]}",
        "warning",
        2,
    ),
    "must be exactly .*did you mean `regex`": (
        "- {name: Start, type: NFC}\n- name: a\n  type: FC\n  arguments: {x: {regexp: b}}\n"
        "- {name: End, type: NFC, dependencies: [a]}",
        "warning",
        2,
    ),
    "End needs nothing": ("- {name: Start, type: NFC}\n- {name: End, type: NFC}", "warning", 2),
}


@pytest.mark.parametrize("said", CHECKED)
def test_check_reports_what_is_wrong_or_doubtful_with_its_line(said):
    text, severity, line = CHECKED[said]
    found = graph_of(text).check()
    hits = [one for one in found if re.search(said, one.message)]
    assert [(one.severity, one.line) for one in hits] == [(severity, line)]
    assert hits[0] in (found.errors if severity == "error" else found.warnings)


def test_a_sound_graph_has_no_findings():
    found = graph_of(OPTIONAL_KEYS).check(tools=["get_discount_expedited_shipping", "cancel_order"])
    assert not found
    assert list(found) == []


def test_a_graph_that_cannot_be_measured_on_is_refused_with_its_line(tmp_path):
    file = tmp_path / "graph.yaml"
    file.write_text("- {name: Start, type: NFC}\n- {name: End, type: NFC, dependencies: [b, c]}\n")
    with pytest.raises(SpecError, match=r"graph\.yaml:2: 'End' depends on 'b'.*and 1 more"):
        MilestoneGraph.from_yaml(file)


def test_the_graph_is_a_networkx_graph_that_cannot_be_changed_by_accident():
    graph = graph_of(AS_PUBLISHED)
    assert nx.has_path(graph, "Start", "End")
    assert list(graph.successors("Start")) == ["get_download_status"]
    assert graph.nodes["All Done"]["requires"] == "all"
    with pytest.raises(nx.NetworkXError):
        graph.remove_node("escalate")
    changed = graph.copy()
    changed.remove_node("escalate")
    assert "escalate" in graph
    assert sorted(nx.descendants(graph.reverse(), "Offer Trying Later")) == [
        "Start",
        "escalate",
        "get_download_status",
    ]


def test_a_graph_can_be_sent_to_another_process():
    graph = graph_of(
        "- {name: Start, type: NFC}\n- {name: a, type: NFC, check: 'operator:eq'}\n"
        "- {name: End, type: NFC, dependencies: [a]}"
    )
    talk = conversation(user("hi"))
    assert score(graph, talk).goal_completed is False
    sent = pickle.loads(pickle.dumps(graph))
    assert sent.milestones == graph.milestones
    assert score(sent, talk) == score(graph, talk)
    with pytest.raises(nx.NetworkXError):
        sent.add_node("x")
