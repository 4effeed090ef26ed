"""Canned replies in a specification: in Python, in a file, and what is said about mistakes."""

import jsonschema
import pytest
import yaml

from arq_graph import Agent, Reply, Variable, errors
from tests.order_tools import get_order

FILE = """
name: Desk
profile: You help with orders.
variables: [{name: tier, description: The tier.}]
composition: strict
replies:
- id: late
  text: {en: "Order {order} is late.", de: "Bestellung {order} ist verspätet."}
  when: the order is late
  fields:
    order: {customer: true, type: integer, max_length: 12}
- id: tier
  text: You are {tier}, or {{so}}.
  fields: {tier: {variable: tier.name}}
- {id: other, text: A colleague will call you., otherwise: true}
"""


def make_agent(*replies, composition="free", **fields):
    settings = {"tools": [get_order], "variables": [Variable("tier", "The tier.")], **fields}
    return Agent("Desk", "You help.", replies=replies, composition=composition, **settings)


def test_a_file_says_the_same_as_python(tmp_path):
    path = tmp_path / "desk.yaml"
    path.write_text(FILE)
    agent = Agent.from_yaml(path)
    late = Reply(
        "late",
        {"en": "Order {order} is late.", "de": "Bestellung {order} ist verspätet."},
        "the order is late",
        {"order": {"customer": True, "type": "integer", "max_length": 12}},
    )
    assert (agent.composition, agent.replies[0]) == ("strict", late)
    jsonschema.validate(yaml.safe_load(FILE), Agent.model_json_schema())


@pytest.mark.parametrize(
    ("replies", "composition", "message"),
    [
        ([], "strict", "`composition` is strict, which needs a reply with `otherwise: true`"),
        ([], "prefer", "`composition` is prefer, but there are no `replies`"),
        ([Reply("a", "A", otherwise=True), Reply("b", "B", otherwise=True)], "free", "second reply"),
        ([Reply("a", "A"), Reply("a", "B")], "free", r"`replies\[1\].id` is used twice: 'a'"),
        ([Reply("a", "{x}", fields={"x": {"customer": True}}, otherwise=True)], "free", "must be empty"),
        (
            [Reply("a", "A {x}")],
            "free",
            r"`replies\[0\].text` must hold nothing in braces, but has \{x\}",
        ),
        ([Reply("a", "A", fields={"x": {"customer": True}})], "free", r"must hold \{x\}"),
        (
            [Reply("a", "A {tiket}", fields={"ticket": {"customer": True}})],
            "free",
            r"must hold \{ticket\}, and nothing else in braces, but has \{tiket\}; did you mean `ticket`",
        ),
        (
            [Reply("a", {"en": "{x}", "de": "{y}"}, fields={"x": {"customer": True}})],
            "free",
            r"text.de` must",
        ),
        ([Reply("a", "{x", fields={"x": {"customer": True}})], "free", "must hold"),
        ([Reply("a", "{x!r}", fields={"x": {"customer": True}})], "free", "must hold"),
        ([Reply("a", "{x}", fields={"x": {"knowledge": True}})], "free", "the agent has no `knowledge`"),
        ([Reply("a", "{x}", fields={"x": {}})], "free", "fields.x` has no source"),
        ([Reply("a", "{x}", fields={"x": {"customer": True, "this_turn": True}})], "free", "has no `result`"),
        (
            [Reply("a", "{x}", fields={"x": {"result": "get_oder.status"}})],
            "free",
            r"`replies\[0\].fields.x.result` must begin with a tool of this agent, but is 'get_oder.status'; "
            "did you mean `get_order`",
        ),
        ([Reply("a", "{x}", fields={"x": {"variable": "teir"}})], "free", "did you mean `tier`"),
    ],
)
def test_a_mistake_is_named_with_its_place(replies, composition, message):
    with pytest.raises(errors.SpecError, match=message):
        make_agent(*replies, composition=composition)


@pytest.mark.parametrize(
    "fields", [{"text": {}}, {"text": "A", "fields": {"x": {"type": "float"}}}, {"text": ""}]
)
def test_a_reply_with_invalid_values_is_refused(fields):
    with pytest.raises(errors.SpecError):
        Reply("a", **fields)


def test_a_file_names_every_mistake_with_its_line(tmp_path):
    path = tmp_path / "desk.yaml"
    path.write_text(FILE.replace("id: tier", "id: late").replace("type: integer", "type: whole"))
    with pytest.raises(errors.SpecError) as raised:
        Agent.from_yaml(path)
    assert f"{path}:11: `replies[0].fields.order.type` must be" in str(raised.value)
    assert f"{path}:12: `replies[1].id` is used twice" in str(raised.value)
