"""Agents in YAML files: how they are read, and how mistakes in them are reported."""

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
    vip, slow = agent.get_guideline("vip"), agent.get_guideline("slow")
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


def test_words_without_quotes_are_parsed_as_in_json(folder: Path) -> None:
    agent = read(folder, ORDERS)
    (term,) = agent.glossary
    assert (term.name, term.description) == ("no", "0123")
    assert term.synonyms == ("on", "12:30", "1e5", "0x1F", "true", "2.50")
    assert agent.variables[0].value == [1, 2.5, True, None, "1", "null", {"opens": "9:30"}]
    assert agent.variables[1].value == "2021-03-04"


def read_error(folder: Path, content: str | bytes) -> SpecError:
    with pytest.raises(SpecError) as caught:
        read(folder, content)
    assert caught.value.file == str(folder / "agent.yaml")
    return caught.value


def make_desk(text: str) -> str:
    return "name: n\nprofile: p\n" + textwrap.dedent(text)


def make_desk_with(text: str) -> str:
    return make_desk("guidelines:\n") + textwrap.dedent(text)


NOT_YAML = "Indent with spaces only, and put text in quotes"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("# later\n\n", 1, "`profile` is missing"),
        ("just text", 1, "the agent file must be a mapping (its keys: name, profile, "),
        ("name: n\nprofile:\n", 2, "`profile` must be text, but is None"),
        (make_desk("name: m\n"), 3, "the key `name` is used twice here"),
        (make_desk("guidlines: []\n"), 3, "unknown key `guidlines`; did you mean `guidelines`?"),
        (make_desk_with("- condition: c\naction: a\n"), 5, "unknown key `action` (its keys: name, profile,"),
        ("? [a]\n: b\n", 1, "a key must be a word"),
        (make_desk_with("- action: a\n- action: {say: hi}\n"), 5, "[1].action` must be text"),
        (make_desk_with("- {action: a, id: x}\n- action: b\n  id: x\n"), 6, "[1].id` is used twice: 'x'"),
        (make_desk_with("- action: a\n  tools: [orders:search, orders:serch]\n"), 5, "mean `search`?"),
        (
            make_desk_with("- action: a\n  depends_on:\n  - G9\n- action: b\n"),
            6,
            "but no guideline has that id",
        ),
        (make_desk_with("- action: a\n  continuous: maybe\n"), 5, "must be true or false, but is 'maybe'"),
        (make_desk_with("- action: a\n  priority: 1.5\n"), 5, "must be a whole number, but is 1.5"),
        (make_desk_with("- action: a\n  on_failure: skpi\n"), 5, "'activate' or 'skip', but is 'skpi'; did"),
        (make_desk_with("- action: a\n  condition: {function: orders:is_vp}\n"), 5, "did you mean `is_vip`?"),
        (make_desk("confirm:\n  serch: operator\ntools: [orders:search]\n"), 4, "did you mean `search`?"),
        (
            make_desk("confirm:\n  search:\n    by: customer\n    ask: Shall I?\ntools: [orders:search]\n"),
            6,
            "`confirm.search.ask` must hold {title}",
        ),
        ("name: n\n\tprofile: p\n", 2, NOT_YAML),
        (make_desk_with("- action: !important be quick\n"), 4, "put text that begins with ! in quotes"),
        (b"name: n\nprofile: a\0b\n", None, "control characters are not allowed"),
        (b"name: n\nprofile: caf\xe9\n", 2, "is not UTF-8"),
        (make_desk("variables:\n- &a {name: b, description: c}\n- *a\n"), 4, "is used twice: 'b'"),
        (make_desk("checks: [{by: orders:search}]\n"), 3, "`checks[0].on` is missing: write input or output"),
        (make_desk("variables: &a [*a]\n"), 3, "an alias (`*name`) stands for itself"),
        ("[" * 900, 1, "is nested more than 40 deep"),
    ],
)
def test_a_mistake_is_reported_with_its_line(folder, content, line, message):
    error = read_error(folder, content)
    assert message in str(error)
    assert error.line == line
    place = folder / "agent.yaml"
    assert str(error).startswith(f"{place}:{line}: " if line else f"{place}: ")


def test_all_mistakes_are_reported_together_in_the_order_of_their_lines(folder: Path) -> None:
    content = """\
        guidlines: []
        guidelines:
        - action: ''
        - {action: a, id: vip, priority: high}
        glossary: none
        """
    lines = str(read_error(folder, make_desk(content))).split("\n")
    assert [line.removeprefix(f"{folder / 'agent.yaml'}:")[:2] for line in lines] == ["3:", "5:", "6:", "7:"]


def test_a_misspelt_key_is_the_only_mistake_even_if_it_holds_the_tools(folder: Path) -> None:
    content = "guidlines: [{action: a, tools: [orders:search]}]\nconfirm: {search: customer}\n"
    assert len(str(read_error(folder, make_desk(content))).split("\n")) == 1


def test_a_broken_installation_of_the_mcp_adapters_is_reported(tmp_path: Path, monkeypatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "langchain_mcp_adapters"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "langchain_mcp_adapters.py").write_text("raise ImportError('there is no `mcp.old`')")
    (tmp_path / "desk.yaml").write_text(
        "name: D\nprofile: P\nmcp: {shop: {command: x}}\ntools: [mcp:shop/buy]\n"
    )
    with pytest.raises(SpecError, match=r'desk.yaml:3: .*arq_graph\[mcp\]": there is no `mcp.old`'):
        Agent.from_yaml(tmp_path / "desk.yaml")


def test_a_missing_file_is_reported(folder: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere\.yaml: the agent file cannot be read: No such file"):
        Agent.from_yaml("nowhere.yaml")
    with pytest.raises(SpecError, match="cannot be read: Is a dir"):
        Agent.from_yaml(folder)


PUNCTUATION = st.text("abn:-[]{}&*!#|>'\"%@`?, \n\t0", max_size=60).map(str.encode)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.binary(max_size=200) | PUNCTUATION)
@example(b"!")
@example(b"--- a\n...\n%YAML 9.9\n")
@example(b"<<: 3")
def test_no_content_leads_to_another_error(folder: Path, content: bytes) -> None:
    try:
        read(folder, content)
    except SpecError as error:
        assert error.file
