"""Agents for tests of the matcher, their matching passes, and judgements that a model gives."""

from langchain_core.messages import HumanMessage

from arq_graph import Agent, Guideline
from arq_graph.nodes import GuidelineMatcher
from tests.brain import DONE, brain, get_prompts
from tests.order_tools import ran
from tests.schemas import without_null

HELLO = HumanMessage("Hello", id="h1")
AFTER_TOOL = [HELLO, *ran()]
PARTIALLY = {
    **DONE,
    "guideline_previously_applied": "partially",
    "is_missing_part_cosmetic_or_functional": "cosmetic",
}
FUNCTIONAL = {**PARTIALLY, "is_missing_part_cosmetic_or_functional": "functional", "should_apply": True}
CONTINUOUS = {"score": 9, "guideline_is_continuous": True, "should_apply": True}
UNKNOWN = {"score": 4, "condition_applies": "not_known_yet", "condition_application_rationale": "the date"}
INDEPENDENT = {"score": 2, "could_a_tool_change_that": False}


def make_agent(*guidelines, tools=()):
    return Agent("Desk", "You help.", guidelines, tools=tools)


def make_guidelines(count, **fields):
    return [Guideline(f"condition {n}", f"action {n}", **fields) for n in range(1, count + 1)]


def run_pass(node, messages=(HELLO,), stored=(), **state):
    """Run one matching pass; return its records by guideline id."""
    update = node.invoke({"messages": list(messages), "guideline_matches": list(stored), **state})
    return {record["guideline"]: record for record in update["guideline_matches"]}


def rematch(node, records):
    return run_pass(node, AFTER_TOOL, records.values())


def match(agent, judge=None, *, mode="arq", **state):
    """Return the records by guideline id, and the model."""
    model = brain(judge=judge)
    return run_pass(GuidelineMatcher(model, agent, mode=mode), **state), model


def list_active(records):
    return [id for id, record in records.items() if record["active"]]


def list_judged(model):
    return sorted(prompt.now["judge"] for prompt in get_prompts(model, "matcher"))


def list_properties(prompt):
    """Return the properties of each guideline's judgement."""
    properties = {}
    for guideline in prompt.section("guidelines"):
        schema = prompt.schema["properties"][guideline["id"]]
        properties[guideline["id"]] = without_null(schema)["properties"]
    return properties


GREET = make_agent(Guideline("the customer greets", "greet back"))
ALWAYS = make_agent(Guideline(None, "greet"))


def is_vip(state):
    """The customer is a VIP."""
    return state["variables"].get("tier") == "vip"
