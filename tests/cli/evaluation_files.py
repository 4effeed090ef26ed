"""A suite in a folder: an agent, its milestones, a world, and arms of its own."""

from __future__ import annotations

from pathlib import Path

AGENT = """
name: Desk
profile: The order desk of a shop.
guidelines:
- {condition: the customer asks about an order, action: look the order up and tell its status, tools: [desk:get_order]}
"""
MODULE = '''
class World:
    def __init__(self, seed):
        self.orders = {"ORD-1002": "at the warehouse"}

    def get_order(self, order_id: str) -> str:
        """Look up an order.

        Args:
            order_id: The number of the order, like ORD-1001.
        """
        return self.orders[order_id]


class Echo:
    def invoke(self, input, config=None):
        return "You said: \\x1b[31m" + input["messages"][-1].text


class Kaputt:
    def __init__(self, words):
        self.words = words

    def invoke(self, input, config=None):
        raise RuntimeError(self.words)


class Unreached:
    def invoke(self, input, config=None):
        from arq_graph import ScriptedChatModel

        def fail(call):
            raise ConnectionError("no way there")

        ScriptedChatModel(fail).invoke("hello")


get_order = World(0).get_order
echo, kaputt, unreached = Echo(), Kaputt("kaputt"), Unreached()
hostile = Kaputt("\\x1b[2J[bold]gone\\nmore")
'''
MILESTONES = """
milestones:
- {name: Start, type: NFC}
- {name: get_order, type: FC, dependencies: [Start]}
- name: Told
  type: NFC
  check: {said_by: agent, pattern: "(?i)warehouse"}
  dependencies: [get_order]
- {name: End, type: NFC, dependencies: [Told]}
"""
SUITE = """
name: Desk
defaults: {agent: agent.yaml, milestones: milestones.yaml, world: "desk:World", limits: {turns: 4}}
scenarios:
- name: order
  kinds: [helpful, unhelpful]
  goal: Told
  user:
    intents: [{request: "Where is my order?", slots: {order_id: ORD-1002}}]
"""


def write_suite(folder: Path) -> Path:
    for name, text in {
        "agent.yaml": AGENT,
        "desk.py": MODULE,
        "milestones.yaml": MILESTONES,
        "suite.yaml": SUITE,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "suite.yaml"
