"""A florist: its agent, a suite of cases, and arms that answer them without a model."""

import json
from pathlib import Path

AGENT = """
name: Florist
profile: You are a florist.
guidelines:
- {id: card, condition: the customer orders tulips, action: 'say "I recommend a card."'}
- {id: roses, condition: the customer asks about roses, action: 'say "We have red roses."'}
"""
SUITE = """
name: florist
defaults: {agent: agent.yaml}
scenarios:
- name: tulips
  twin: lilies
  use_case: orders
  probes: An order makes one of two guidelines active.
  says: I would like to order tulips.
  expect: {active: [card]}
- name: lilies
  use_case: questions
  says: Do you have lilies?
  expect: {active: [roses]}
- name: roses
  use_case: questions
  says: Do you have roses?
  expect: {says: [{pattern: "red roses"}], never: [card]}
- name: politely
  use_case: questions
  says: And roses for tomorrow?
  expect: {says: [{criterion: is polite}]}
"""
TULIPS = SUITE.partition("- name: lilies")[0].replace("  twin: lilies\n", "")
ROSES = """
- name: roses
  says: Do you have roses?
  expect: {says: [{pattern: "red roses"}]}
"""
ARMS = """
from langchain_core.messages import AIMessage

class Says:
    def __init__(self, text):
        self.text = text
    def invoke(self, given, config=None):
        return {"messages": [*given["messages"], AIMessage(self.text)]}

def knows(scenario, agent, model, matcher_only):
    return Says({"tulips": "active: card", "lilies": "active: roses"}.get(scenario.name, "We have red roses."))

def speaks(scenario, agent, model):
    return Says("We have red roses.")

def guesses(scenario, agent, model, matcher_only):
    return Says("active: card")
"""
BOTH = ("--arms", "arms:knows,arms:guesses")


def read_table(file: Path, title: str) -> dict[str, list[str]]:
    """Return the rows of a table by name, without the column that counts the cases."""
    for table in json.loads(file.read_text())["tables"]:
        if table["title"] == title:
            first = 1 if table["columns"][0] == "n" else 0
            return {row["name"]: row["cells"][first:] for row in table["rows"]}
    raise KeyError(title)
