"""An agent written as a YAML file: what is read, and what people do wrong in it and are told."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from arq_graph import Agent
from arq_graph.errors import SpecError

TOOLS = '''
def get_order(order_id: str) -> str:
    """Look an order up."""
    return order_id

def search(title: str) -> str:
    """Search the shelves."""
    return title

async def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    return order_id

def is_vip(state):
    return bool(state.get("vip"))
'''

ORDERS = """\
name: Order desk
profile: >
  A friendly clerk
  of a small bookshop.
guidelines:
- condition: the customer asks where their order is
  action: look it up and tell its status
  tools: [orders:get_order, orders:cancel_order]
- id: vip
  condition: {function: "orders:is_vip"}
  action: be quick
  depends_on: [G1]
  overrides: [slow]
  priority: 3
  on_failure: activate
- id: slow
  condition: null
  action: take your time
  tools: [orders:get_order, orders:cancel_order]
  continuous: true
  sensitive_to_tools: false
  always_judge: true
tools:
- orders:search
- orders:cancel_order
confirm: {cancel_order: operator}
glossary:
- {name: no, description: 0123, synonyms: [on, 12:30, 1e5, 0x1F, "true", "2.50"]}
variables:
- {name: tier, description: the customer's tier, value: [1, 2.5, true, null, "1", "null", {opens: 9:30}]}
- {name: since, description: customer since, value: 2021-03-04}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.py").write_text(TOOLS)
    return tmp_path


def read(folder: Path, content: str | bytes) -> Agent:
    file = folder / "agent.yaml"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return Agent.from_yaml(file)


def test_a_whole_file_is_read(folder: Path) -> None:
    agent = read(folder, ORDERS)
    assert agent.profile == "A friendly clerk of a small bookshop."
    assert [guideline.id for guideline in agent.guidelines] == ["G1", "vip", "slow"]
    vip, slow = agent.guideline("vip"), agent.guideline("slow")
    assert callable(vip.condition)
    assert vip.condition({"vip": True}) is True
    assert (vip.depends_on, vip.overrides, vip.priority) == (("G1",), ("slow",), 3)
    assert (slow.condition, slow.continuous, slow.sensitive_to_tools) == (None, True, False)
    assert (slow.always_judge, vip.always_judge) == (True, False)
    both = ("G1", "slow")
    assert agent.grants == {"get_order": both, "search": (), "cancel_order": both}
    assert agent.always_available == {"search", "cancel_order"}
    assert agent.confirm["cancel_order"].by == "operator"
    assert agent.fallback.startswith("I'm sorry")


def test_words_that_yaml_is_known_to_turn_into_something_else_stay_text(folder: Path) -> None:
    agent = read(folder, ORDERS)
    (term,) = agent.glossary
    assert (term.name, term.description) == ("no", "0123")
    assert term.synonyms == ("on", "12:30", "1e5", "0x1F", "true", "2.50")
    assert agent.variables[0].value == [1, 2.5, True, None, "1", "null", {"opens": "9:30"}]
    assert agent.variables[1].value == "2021-03-04"


def mistake(folder: Path, content: str | bytes) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read(folder, content)
    assert caught.value.file == str(folder / "agent.yaml")
    return caught.value


def desk(text: str) -> str:
    return "name: n\nprofile: p\n" + textwrap.dedent(text)


def with_guideline(text: str) -> str:
    return desk("guidelines:\n") + textwrap.dedent(text)


NOT_YAML = "Indent with spaces only, and put text in quotes"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("# later\n\n", 1, "`profile` is missing"),
        ("just text", 1, "the agent file must be a mapping (its keys: name, profile, "),
        ("name: n\nprofile:\n", 2, "`profile` must be text, but is None"),
        ("name: n\nprofile: 12\n", 2, "`profile` must be text, but is 12"),
        (desk("name: m\n"), 3, "the key `name` stands here a second time"),
        (desk("guidlines: []\n"), 3, "unknown key `guidlines`; did you mean `guidelines`?"),
        (with_guideline("- condition: c\naction: a\n"), 5, "unknown key `action` (its keys: name, profile,"),
        ("? [a]\n: b\n", 1, "a key must be a word"),
        (with_guideline("- action: a\n- action: {say: hi}\n"), 5, "[1].action` must be text"),
        (with_guideline("- {action: a, id: x}\n- action: b\n  id: x\n"), 6, "[1].id` is used twice: 'x'"),
        (with_guideline("- action: a\n  tool: [x:y]\n"), 5, "unknown key `tool`; did you mean `tools`?"),
        (with_guideline("- action: a\n  tools: [orders:search, orders:serch]\n"), 5, "mean `search`?"),
        (with_guideline("- action: a\n  depends_on:\n  - G9\n- action: b\n"), 6, "the id of no guideline"),
        (with_guideline("- action: a\n  continuous: maybe\n"), 5, "must be true or false, but is 'maybe'"),
        (with_guideline("- action: a\n  priority: 1.5\n"), 5, "must be a whole number, but is 1.5"),
        (with_guideline("- action: a\n  on_failure: skpi\n"), 5, "'activate' or 'skip', but is 'skpi'; did"),
        (with_guideline("- action: a\n  condition: orders:is_vip\n"), 5, '{function: "orders:is_vip"}'),
        (with_guideline("- action: a\n  condition: {function: orders:is_vp}\n"), 5, "did you mean `is_vip`?"),
        (desk("confirm:\n  serch: operator\ntools: [orders:search]\n"), 4, "did you mean `search`?"),
        (
            desk("confirm:\n  search: custmer\ntools: [orders:search]\n"),
            4,
            "`confirm.search` must be 'customer', ",
        ),
        (
            desk("confirm:\n  search:\n    by: customer\n    ask: Shall I?\ntools: [orders:search]\n"),
            6,
            "`confirm.search.ask` must hold {title}",
        ),
        ("name: n\n\tprofile: p\n", 2, NOT_YAML),
        (with_guideline("- action: tell them: it is late\n"), 4, NOT_YAML),
        (with_guideline('- action: "say "hi" now"\n'), 4, NOT_YAML),
        (with_guideline("- action: *never* lie\n"), 4, NOT_YAML),
        (with_guideline('- action: "never closed\n- action: b\n'), 6, "a quoted scalar in line 4"),
        (with_guideline("- action: !important be quick\n"), 4, "put text that begins with ! in quotes"),
        (b"name: n\nprofile: a\0b\n", None, "control characters are not allowed"),
        (b"name: n\nprofile: caf\xe9\n", 2, "is not UTF-8"),
        (desk("variables: &a\n- b\n- *a\n"), 5, "the alias `*a` is not known here; write out"),
        ("[" * 900, 1, "is nested more than 40 deep"),
    ],
)
def test_a_mistake_is_told_with_its_line(folder, content, line, message):
    error = mistake(folder, content)
    assert message in str(error)
    assert error.line == line
    place = folder / "agent.yaml"
    assert str(error).startswith(f"{place}:{line}: " if line else f"{place}: ")


def test_all_mistakes_of_a_file_are_told_together_in_the_order_of_their_lines(folder: Path) -> None:
    content = """\
        guidlines: []
        guidelines:
        - action: ''
        - {action: a, id: vip, priority: high}
        glossary: none
        """
    told = str(mistake(folder, desk(content))).split("\n")
    assert [line.removeprefix(f"{folder / 'agent.yaml'}:")[:2] for line in told] == ["3:", "5:", "6:", "7:"]


def test_why_the_tools_of_mcp_servers_cannot_be_loaded_is_told(tmp_path: Path, monkeypatch) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == "langchain_mcp_adapters"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "langchain_mcp_adapters.py").write_text("raise ImportError('there is no `mcp.old`')")
    (tmp_path / "desk.yaml").write_text(
        "name: D\nprofile: P\nmcp: {shop: {command: x}}\ntools: [mcp:shop/buy]\n"
    )
    with pytest.raises(SpecError, match=r'desk.yaml:3: .*arq_graph\[mcp\]": there is no `mcp.old`'):
        Agent.from_yaml(tmp_path / "desk.yaml")


def test_a_missing_file_is_told(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: the agent file cannot be read: No such file"):
        Agent.from_yaml("nowhere.yaml")
    with pytest.raises(SpecError, match="cannot be read: Is a dir"):
        Agent.from_yaml(folder)


signs = st.text("abn:-[]{}&*!#|>'\"%@`?, \n\t0", max_size=60).map(str.encode)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=200) | signs)
@example(b"!")
@example(b"--- a\n...\n%YAML 9.9\n")
@example(b"<<: 3")
def test_nothing_that_a_file_may_hold_leads_to_any_other_error(folder: Path, content: bytes) -> None:
    try:
        read(folder, content)
    except SpecError as error:
        assert error.file
