from __future__ import annotations

import pickle
import warnings

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.errors import SpecError
from arq_graph.milestones import (
    Absent,
    Called,
    Equals,
    Forbidden,
    Function,
    Matches,
    Milestone,
    MilestoneGraph,
    OneOf,
    Pattern,
    Said,
    Within,
    parse_yaml,
    score,
)
from tests.milestones.conversations import called, conversation, user

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
    graph = parse_yaml(AS_PUBLISHED, file="published.yaml")
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
    graph = parse_yaml("""
- {name: Start, type: NFC}
- {name: offer_discount, type: FC, tool: get_discount}
- {name: cancelOrder, type: FC}
- {name: End, type: NFC, dependencies: [offer_discount]}
""")
    assert score(graph, conversation(called("get_discount"))).goal_completed is True
    found = graph.check(tools=["get_discount", "cancel_order"])
    assert [(one.milestone, one.line) for one in found.errors] == [("cancelOrder", 4)]
    assert "did you mean 'cancel_order'" in found.errors[0].message


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
  check: rules:is_checked
  dependencies: [Start]
- {name: End, type: NFC, requires: all, dependencies: [Offer Trying Later, Checked]}
"""


def test_every_optional_key_is_read():
    graph = parse_yaml(OPTIONAL_KEYS)
    assert graph.failed_if == Pattern("(?i)^error")
    assert graph.grounded == "strict"
    assert graph.forbidden == (
        Forbidden(Called("cancel_order", {"order_id": Absent()})),
        Forbidden(Said(Pattern("guarantee"), "agent")),
    )
    assert graph.milestones == (
        Milestone("Start", "NFC"),
        Milestone(
            "offer_discount",
            "FC",
            dependencies=("Start",),
            weight=2.5,
            tool="get_discount_expedited_shipping",
            arguments={
                "order_id": Matches(Pattern(r"ORD\d+")),
                "amount": Within(1, 2.5),
                "kind": OneOf(("a", "b")),
                "note": Absent(),
                # No surprises of YAML 1.1: dates, words and codes stay what is written.
                "date": Equals("2024-05-20"),
                "insured": Equals("no"),
                "zip": Equals("01234"),
                "gift": Equals(False),
                "options": Equals({"colour": "red"}),
            },
        ),
        Milestone(
            "Offer Trying Later",
            "NFC",
            dependencies=("offer_discount",),
            check=Said(Pattern("try (again )?later"), "agent"),
            holds=True,
        ),
        Milestone("Checked", "NFC", dependencies=("Start",), check=Function("rules:is_checked")),
        Milestone("End", "NFC", dependencies=("Offer Trying Later", "Checked"), requires="all"),
    )


def test_what_is_written_reads_back_the_same():
    graph = parse_yaml(OPTIONAL_KEYS)
    again = parse_yaml(graph.to_yaml())
    assert again.milestones == graph.milestones
    assert again.forbidden == graph.forbidden
    assert (again.failed_if, again.grounded) == (graph.failed_if, graph.grounded)


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12).map(str.strip)
names = words.filter(bool)
tricky = st.sampled_from(
    ["no", "on", "1e5", "0o17", "12:30", "2024-05-20", "~", "null", ": x", "# y", "1.0e5"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
    | tricky,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names | tricky, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150)
@given(
    texts=st.lists(names | tricky, min_size=3, max_size=3, unique=True).filter(
        lambda names: not {"Start", "End"} & set(names)
    ),
    description=words | tricky,
    arguments=st.dictionaries(names | tricky, values, max_size=3),
    weight=st.floats(1e-6, 1e6) | st.integers(1, 10**12),
)
def test_any_name_and_any_value_survives_writing_and_reading(texts, description, arguments, weight):
    name, tool, other = texts
    graph = MilestoneGraph(
        [
            Milestone("Start", "NFC"),
            Milestone(
                name,
                "FC",
                description,
                ("Start",),
                weight=weight,
                tool=tool,
                arguments={key: Equals(value) for key, value in arguments.items()},
            ),
            Milestone(other, "Aggregator", dependencies=(name,)),
            Milestone("End", "NFC", dependencies=(other,)),
        ]
    )
    assert parse_yaml(graph.to_yaml()).milestones == graph.milestones


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 1, "mapping with the keys milestones"),
        ("just words", 1, "mapping with the keys milestones"),
        ("stones: []", 1, "no key 'stones'.*did you mean `milestones`"),
        ("failed_if: x", 1, "no `milestones:` list"),
        ("milestones: {a: b}", 1, "`milestones` is a list"),
        ("- words", 1, "a milestone is a mapping"),
        ("- {type: FC}", 1, "without a `name`"),
        ("- {name: a}", 1, "'a' has no `type`"),
        ("- {name: ' ', type: FC}", 1, "name is empty"),
        ("- {name: [a], type: FC}", 1, "name is text"),
        ("- name: a\n  type: FCC", 2, "`type` is 'FCC'; it is one of FC, NFC, Aggregator.*did you mean"),
        ("- name: a\n  type: FC\n  requries: all", 3, "no key 'requries'; did you mean `requires`"),
        ("- name: a\n  type: FC\n  requires: some", 3, "one of any, all"),
        ("- name: a\n  type: Aggregator\n  requires: any", 3, "a join requires all"),
        ("- name: a\n  type: NFC\n  tool: x", 3, "`tool` is for an FC only"),
        ("- name: a\n  type: FC\n  check: {pattern: x}", 3, "`check` is for an NFC only"),
        ("- name: a\n  type: FC\n  weight: 0", 3, "number above 0"),
        ("- name: a\n  type: FC\n  weight: heavy", 3, "number above 0"),
        ("- name: a\n  type: FC\n  weight: true", 3, "number above 0"),
        ("- name: a\n  type: NFC\n  holds: sometimes", 3, "true or false"),
        ("- name: a\n  type: NFC\n  check: {said_by: agnet, pattern: x}", 3, "user, agent, tool.*`agent`"),
        ("- name: a\n  type: NFC\n  check: {said_by: agent}", 3, "no `pattern`"),
        ("- name: a\n  type: NFC\n  check: {pattern: '('}", 3, "not a regular expression"),
        ("- name: a\n  type: NFC\n  check: {pattern: '((a{1000}){1000}){1000}'}", 3, "too large"),
        ("- name: a\n  type: NFC\n  check: agent says so", 3, "module:function"),
        ("- name: a\n  type: FC\n  dependencies: {a: b}", 3, "`dependencies` is a list"),
        ("- name: a\n  type: FC\n  dependencies:\n  - [b]", 4, "a dependency of 'a' is text"),
        ("- name: a\n  type: FC\n  arguments: [x]", 3, "`arguments` is a mapping"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {regex: '('}", 4, "'x'.*not a regular expression"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {min: 3, max: 1}", 4, "greater than"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {min: 1, regex: a}", 4, "cannot stand together"),
        (
            "- name: a\n  type: FC\n  arguments:\n    x: {min: 1e3}",
            4,
            "text that reads as a number: write 1000",
        ),
        ("- name: a\n  type: FC\n  arguments:\n    x: {absent: maybe}", 4, "true or false"),
        ("- name: a\n  type: FC\n  arguments:\n    x: {one_of: a}", 4, "must be a list"),
        ("- name: a\n  type: FC\n  name: b", 3, "'name' stands here again .first in line 1"),
        ("- {name: a, type: FC}\n- {name: a, type: FC}", 2, "two milestones are named 'a'.*line 1"),
        ("forbidden:\n- {arguments: {a: 1}}\nmilestones: []", 2, "without a `tool`"),
        ("forbidden:\n- {tool: a, pattern: b}\nmilestones: []", 2, "not both"),
        ("grounded: loosely\nmilestones: []", 1, "one of strict"),
        ("failed_if: '('\nmilestones: []", 1, "not a regular expression"),
        ("milestones:\n- name: [a", 3, "not YAML"),
        ("milestones:\n\t- a", 2, "not YAML"),
        ("a: 1\n---\nb: 2", 2, "second document"),
        ("milestones: &m []\nforbidden: *m", 1, "not supported"),
        ("milestones: !!python/object:os.system []", 1, "the tag .* is not supported"),
        ("? [a]\n: b", 1, "a key is a list or a mapping"),
        ("a: \x00", 1, "not YAML"),
    ],
)
def test_a_mistake_is_told_with_its_line(text, line, said):
    with pytest.raises(SpecError, match=said) as raised:
        parse_yaml(text, file="graph.yaml")
    assert str(raised.value).startswith(f"graph.yaml:{line}: ")


def test_a_yaml_bomb_is_refused():
    layers = "\n".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12))
    with pytest.raises(SpecError, match="not supported"):
        parse_yaml(f"l0: &l0 [lol]\n{layers}\n")


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "{a: " * 100_000, "- " * 100_000])
def test_a_file_nested_without_end_is_refused(text):
    with pytest.raises(SpecError, match="nested more than 40 deep"):
        parse_yaml(text)


@settings(max_examples=150)
@given(st.text(st.sampled_from("-: \n'\"[]{}#&*!|>abc,0"), max_size=60) | st.text(max_size=40))
def test_any_text_is_a_graph_or_a_clear_error(text):
    for whole in (text, f"- name: a\n  type: FC\n  description: {text}\n"):
        try:
            parse_yaml(whole)
        except SpecError as error:
            assert str(error)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SpecError, match=r"none\.yaml: .*No such file"):
        MilestoneGraph.from_yaml(tmp_path / "none.yaml")
    with pytest.raises(SpecError, match="cannot be read"):
        MilestoneGraph.from_yaml(tmp_path)
    broken = tmp_path / "latin.yaml"
    broken.write_bytes(b"milestones:\n- name: caf\xe9\n")
    with pytest.raises(SpecError, match=r"latin\.yaml:2: not UTF-8"):
        MilestoneGraph.from_yaml(broken)


def test_windows_line_ends_and_a_byte_order_mark_do_not_matter(tmp_path):
    file = tmp_path / "windows.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + AS_PUBLISHED.replace("\n", "\r\n").encode())
    with pytest.warns(UserWarning, match="cycle"):
        graph = MilestoneGraph.from_yaml(file)
    assert graph.milestone("Start").description == "Conversation begins: nothing is known yet"
    assert graph.milestone("End").line == 34


CHECKED = {
    "depends on 'gett', which is no milestone.*did you mean 'get'": (
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
    "End must be an NFC": ("- {name: Start, type: NFC}\n- {name: End, type: FC}", "error", 2),
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
    "lists a dependency twice": (
        "- {name: Start, type: NFC}\n- {name: a, type: FC}\n- {name: End, type: NFC, dependencies: [a, a]}",
        "warning",
        3,
    ),
    "joins nothing": (
        "- {name: Start, type: NFC}\n- {name: a, type: FC}\n- {name: j, type: Aggregator}\n"
        "- {name: End, type: NFC, dependencies: [a, j], requires: all}",
        "warning",
        3,
    ),
    "must be exactly .*for a rule, write `regex`": (
        "- {name: Start, type: NFC}\n- name: a\n  type: FC\n  arguments: {x: {regexp: b}}\n"
        "- {name: End, type: NFC, dependencies: [a]}",
        "warning",
        2,
    ),
    "End needs nothing": ("- {name: Start, type: NFC}\n- {name: End, type: NFC}", "warning", 2),
}


@pytest.mark.parametrize("said", CHECKED)
def test_check_reports_what_is_wrong_or_doubtful_with_its_line(said):
    import re

    text, severity, line = CHECKED[said]
    found = parse_yaml(text).check()
    hits = [one for one in found if re.search(said, one.message)]
    assert [(one.severity, one.line) for one in hits] == [(severity, line)]
    assert hits[0] in (found.errors if severity == "error" else found.warnings)


def test_a_sound_graph_has_no_findings():
    found = parse_yaml(OPTIONAL_KEYS).check(tools=["get_discount_expedited_shipping", "cancel_order"])
    assert not found
    assert list(found) == []


def test_a_graph_that_cannot_be_measured_on_is_refused_with_its_line(tmp_path):
    file = tmp_path / "graph.yaml"
    file.write_text("- {name: Start, type: NFC}\n- {name: End, type: NFC, dependencies: [b, c]}\n")
    with pytest.raises(SpecError, match=r"graph\.yaml:2: 'End' depends on 'b'.*and 1 more"):
        MilestoneGraph.from_yaml(file)


def test_the_graph_is_a_networkx_graph_that_cannot_be_changed_by_accident():
    graph = parse_yaml(AS_PUBLISHED)
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
    graph = parse_yaml(
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


def test_a_weight_may_begin_with_its_point():
    graph = parse_yaml(
        "- {name: Start, type: NFC}\n- {name: a, type: FC, weight: .5}\n- {name: End, type: NFC}"
    )
    assert graph.milestone("a").weight == 0.5
