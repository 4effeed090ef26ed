"""Journeys in YAML files, and what an agent says about its journeys before any conversation."""

import json
import textwrap
from pathlib import Path

import jsonschema
import pytest
import yaml

from arq_graph import Agent, Journey, JourneyStep, ScriptedChatModel
from arq_graph.errors import SpecError
from tests.journeys.returns import make_shop

SHOP = '''
def get_order(order_id: str) -> str:
    """Look an order up."""
    return order_id

def refund(order_id: str) -> str:
    """Refund an order."""
    return order_id

def is_guest(state):
    return not state.get("account")
'''

AGENT = """\
name: Shop
profile: You sell lamps.
journeys:
- id: return
  condition: the customer wants to return an item
  give_up: the customer wants to keep the item
  sensitive_to_tools: false
  steps:
  - {id: who, journey: identify}
  - {id: order, action: ask which order it is, after: who, tools: [shop:get_order]}
  - id: refund
    condition: the item is faulty
    action: refund it
    after: [order]
    tools: [shop:refund]
    done_when: the customer has the money
  - {id: close, action: say goodbye, after: [order, refund], requires: all}
- id: identify
  steps:
  - {id: name, action: ask for the name, condition: {function: "shop:is_guest"}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def read(folder: Path, content: str) -> Agent:
    (folder / "agent.yaml").write_text(content)
    return Agent.from_yaml(folder / "agent.yaml")


def test_a_whole_journey_is_read(folder):
    agent = read(folder, AGENT)
    returning, identify = agent.journeys
    who, order, refund, close = returning.steps
    assert (returning.condition, returning.sensitive_to_tools) == (
        "the customer wants to return an item",
        False,
    )
    assert returning.give_up == "the customer wants to keep the item"
    assert (who.journey, who.action, order.after) == ("identify", None, ("who",))
    assert (refund.condition, refund.done_when) == ("the item is faulty", "the customer has the money")
    assert (close.after, close.requires, refund.requires) == (("order", "refund"), "all", "any")
    assert callable(identify.steps[0].condition)
    assert agent.grants == {"get_order": ("return-order",), "refund": ("return-refund",)}


def steps(text: str) -> str:
    """Return an agent's file whose journey has these steps; the first is in line 6."""
    head = "name: n\nprofile: p\njourneys:\n- id: return\n  steps:\n"
    return head + textwrap.indent(textwrap.dedent(text), "  ")


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (steps("- {id: a, action: b}\n- {id: c, action: d, after: aa}\n"), 7, "did you mean `a`?"),
        (steps("- {id: a, action: b}\n- id: a\n  action: d\n"), 7, "is used twice: 'a'"),
        (steps("- {id: a, action: b}\n- id: c\n"), 7, "has neither an `action` nor a `journey`"),
        (steps("- {id: a, journey: retrun}\n"), 6, "no journey has that id; did you mean `return`?"),
        (steps("- {id: a, journey: return}\n"), 5, "contain the journey itself: return → return"),
        (steps("- {id: a, action: b, after: a}\n"), 5, "go in a circle: a → a"),
        (steps("- {id: a, action: b, requires: al}\n"), 6, "'any' or 'all', but is 'al'; did you mean `all`"),
        (
            steps("- {id: a, action: b, tool: [shop:refund]}\n"),
            6,
            "unknown key `tool`; did you mean `tools`?",
        ),
        (steps("- {id: a, action: b, tools: [shop:refnd]}\n"), 6, "did you mean `refund`?"),
        (steps("- {id: a, action: b, done_when: {function: shop:is_gest}}\n"), 6, "did you mean `is_guest`?"),
        (steps(f"- id: {'a' * 60}\n  action: b\n"), 6, "together with that of its journey it may have 63"),
        (steps("").replace("steps:", "steps: []"), 5, "`journeys[0].steps` must have at least 1 item"),
        (AGENT + "- {id: return, steps: [{id: a, action: b}]}\n", 21, "leads to the id 'return', which"),
        (AGENT + "guidelines: [{id: return-order, action: b}]\n", 4, "leads to the id 'return-order', which"),
        (AGENT + "guidelines:\n- {action: b, depends_on: [return-odrer]}\n", 22, "mean `return-order`?"),
    ],
)
def test_a_mistake_is_reported_with_its_line(folder, content, line, message):
    with pytest.raises(SpecError) as caught:
        read(folder, content)
    assert message in str(caught.value)
    assert caught.value.line == line


def test_steps_that_do_not_fit_together_are_reported_beside_values_that_are_not_valid(folder):
    content = AGENT.replace("after: who", "after: whoo").replace("requires: all", "requires: al")
    more = "guidelines: [{action: be quick, depends_on: [return]}]\nconfirm: {refund: customer}\n"
    with pytest.raises(SpecError) as caught:
        read(folder, content + more)
    problems = str(caught.value).split("\n")
    assert len(problems) == 2  # neither the guideline that depends on a journey nor the confirmation
    assert ":10: `journeys[0].steps[1].after` names 'whoo'" in problems[0]
    assert ":17: `journeys[0].steps[3].requires` must be 'any' or 'all'" in problems[1]


def test_one_mistake_is_reported_once(folder):
    with pytest.raises(SpecError) as caught:
        read(folder, AGENT.replace("after: who", "after: whoo"))
    assert str(caught.value).count("whoo") == 1


def test_editors_know_the_fields_of_a_journey():
    schema = Agent.model_json_schema()
    document = yaml.safe_load(AGENT)
    jsonschema.validate(document, schema)
    step = schema["$defs"]["JourneyStep"]["properties"]
    assert step["requires"]["description"].startswith("`any`: it opens once one of these is done")
    assert step["after"]["anyOf"][1] == {"type": "string"}
    document["journeys"][0]["steps"][1]["afer"] = "who"
    with pytest.raises(jsonschema.ValidationError, match="afer"):
        jsonschema.validate(document, schema)


def test_the_condition_of_a_journey_is_prepared_once(folder):
    def answer(call):
        reasons = {"continuous_rationale": "…", "sensitive_to_tools_rationale": "…"}
        return {
            id: {**reasons, "continuous": False, "sensitive_to_tools": True}
            for id in call.schema["properties"]
        }

    model = ScriptedChatModel(answer)
    agent = read(folder, AGENT.replace("  sensitive_to_tools: false\n", ""))
    prepared = agent.prepare(model)
    assert [journey.sensitive_to_tools for journey in prepared.journeys] == [True, None]
    (entry,) = json.loads((folder / "agent.prepared.json").read_text())
    assert (entry["condition"], entry["action"]) == ("the customer wants to return an item", None)
    read_again = Agent.from_yaml(folder / "agent.yaml")
    assert read_again.prepare(model).journeys[0].condition_rule.sensitive_to_tools is True
    assert len(model.calls) == 1


def test_instructions_without_a_matcher_list_the_steps_in_their_order():
    identify = Journey("identify", None, [JourneyStep("name", "ask for the name")])
    steps = [
        JourneyStep("who", journey="identify"),
        JourneyStep("order", "look the order up", after="who"),
        JourneyStep("gift", "ask who sent it", condition="it was a gift", after="order"),
        JourneyStep("close", "say goodbye", after=["order", "gift"], requires="all"),
    ]
    wish = "the customer wants to return an item"
    journey = Journey("return", wish, steps, give_up="the customer wants to keep it")
    shop = make_shop(guidelines=[], journeys=[journey, identify])
    assert shop.describe_instructions() == textwrap.dedent("""\
        You sell lamps.

        - when the customer wants to return an item, go through the journey return:
          - who: the journey identify
          - order, after who: look the order up
          - gift, after order, when it was a gift: ask who sent it
          - close, after order and gift: say goodbye
          It ends when the customer wants to keep it.
        - the journey identify:
          - name: ask for the name""")
