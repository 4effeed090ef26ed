"""An agent written as a YAML file."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from arq_graph import Agent, Guideline, Term, Variable
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
  tools: [orders:get_order, cancel_order]
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
  continuous: true
  sensitive_to_tools: false
tools:
- orders:search
- orders:cancel_order
confirm: {cancel_order: operator}
glossary:
- name: ARC
  description: an advance reader's copy
  synonyms: [proof, no]
variables:
- {name: tier, description: the customer's tier, value: [1, 2.5, true, null, {opens: 9:30}]}
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


def with_guideline(text: str) -> str:
    return "name: n\nprofile: p\nguidelines:\n" + textwrap.dedent(text)


def test_a_whole_file_is_read(folder: Path) -> None:
    agent = read(folder, ORDERS)
    assert agent.name == "Order desk"
    assert agent.profile == "A friendly clerk of a small bookshop."
    assert [guideline.id for guideline in agent.guidelines] == ["G1", "vip", "slow"]
    vip, slow = agent.guideline("vip"), agent.guideline("slow")
    assert callable(vip.condition)
    assert vip.condition({"vip": True}) is True
    assert (vip.depends_on, vip.overrides, vip.priority, vip.on_failure) == (
        ("G1",),
        ("slow",),
        3,
        "activate",
    )
    assert (slow.condition, slow.continuous, slow.sensitive_to_tools) == (None, True, False)
    assert agent.grants == {"get_order": ("G1",), "search": (), "cancel_order": ("G1",)}
    assert agent.always_available == {"search", "cancel_order"}
    assert agent.confirm["cancel_order"].by == "operator"
    assert agent.glossary[0].synonyms == ("proof", "no")
    assert agent.variables[0].value == [1, 2.5, True, None, {"opens": "9:30"}]
    assert agent.variables[1].value == "2021-03-04"
    assert agent.fallback.startswith("I'm sorry")


def test_the_documented_example_is_a_whole_agent(folder: Path) -> None:
    documented = str(sys.modules[Agent.__module__].__doc__)
    agent = read(folder, documented.partition("```yaml")[2].partition("```")[0])
    assert agent.grants == {"get_order": ("G1",), "search": (), "cancel_order": ()}
    assert agent.confirm["cancel_order"].ask == "Shall I cancel {order_id}?"


def test_words_that_yaml_is_known_to_turn_into_something_else_stay_text(folder: Path) -> None:
    agent = read(
        folder,
        "name: no\nprofile: 12:30\nglossary: [{name: on, description: 0123, synonyms: [y, 1e5, 0x1F, true, 2.50]}]\n",
    )
    assert (agent.name, agent.profile) == ("no", "12:30")
    term = agent.glossary[0]
    assert (term.name, term.description) == ("on", "0123")
    assert term.synonyms == ("y", "1e5", "0x1F", "true", "2.50")


def test_anchors_are_followed(folder: Path) -> None:
    agent = read(
        folder,
        with_guideline("""\
            - {action: answer, tools: &tools [orders:get_order]}
            - {action: look, tools: *tools}
            """),
    )
    assert agent.grants == {"get_order": ("G1", "G2")}


words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(str.strip)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(
    [*Agent.model_fields, *Guideline.model_fields, *Term.model_fields, *Variable.model_fields, "function"]
)
almost_agents = st.recursive(
    values | st.sampled_from(["orders:get_order", "search", "G1", "G2", "operator"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=25,
)
in_one_folder = settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@in_one_folder
@given(st.binary(max_size=200) | st.text("abn:-[]{}&*!#|>'\"%@`?, \n\t0", max_size=60).map(str.encode))
@example(b"!")
@example(b"--- a\n...\n%YAML 9.9\n")
@example(b"<<: 3")
def test_no_bytes_lead_to_any_other_error(folder: Path, content: bytes) -> None:
    try:
        read(folder, content)
    except SpecError as error:
        assert error.file


@in_one_folder
@given(st.dictionaries(keys, almost_agents, max_size=8))
def test_no_values_lead_to_any_other_error(folder: Path, document: dict[str, Any]) -> None:
    content = yaml.safe_dump({"name": "n", "profile": "p", **document}, sort_keys=False)
    try:
        read(folder, content)
    except SpecError as error:
        assert error.line is not None


def test_the_json_schema_describes_the_file_for_editors() -> None:
    schema = Agent.model_json_schema()
    assert schema["required"] == ["name", "profile"]
    assert schema["properties"].keys() == set(Agent.model_fields)
    guideline = schema["$defs"]["Guideline"]
    assert guideline["properties"]["tools"]["items"]["type"] == "string"
    assert "customer" in str(schema["$defs"]["Confirmation"]["anyOf"][0])
    assert "observation" in guideline["properties"]["action"]["description"]
    assert guideline["additionalProperties"] is False
