"""From a published form of file and conversation to the numbers.

The graph has the quirks of published files (two milestones that each depend on the other, a join that is misspelt,
colons in descriptions, milestones that are not named like their tools), and the conversations are in the Pre-Act
authors' steps.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from arq_graph.milestones import (
    MilestoneGraph,
    Transcript,
    read_transcripts,
    score,
)

PUBLISHED = """\
failed_if: "^Error"
milestones:
  - name: Start
    type: NFC
    description: The customer writes: nothing is known yet
    dependencies: []

  - name: Check Download
    type: FC
    tool: get_download_status
    description: Looks the download up, "as is"; may fail
    dependencies:
      - Start
  - name: Retry
    type: FC
    tool: restart_download
    description: Either comes first: this, or the refund
    dependencies: [Check Download, Refund]
  - name: Refund
    type: FC
    tool: refund_order
    description: Either comes first: this, or the retry
    arguments: {order: {regex: "D\\\\d+"}}
    dependencies: [Check Download, Retry]
  - name: Apology
    type: NFC
    description: The agent is sorry for it
    check: {said_by: agent, pattern: "(?i)sorry"}
    dependencies: [Check Download]
  - name: Retried And Sorry
    type: Aggrigator
    description: Both: the retry, and the apology
    dependencies: [Retry, Apology]
  - name: Escalate
    type: FC
    tool: hand_over
    description: [sic] the last resort: a person
    dependencies: [Refund]
  - name: End
    type: NFC
    description: The customer is helped
    dependencies: [Retried And Sorry, Escalate]
"""

LOOK_UP = (
    "Tool: get_download_status, Tool_Inputs: {'order': 'D7', 'since': None}, Observation: {'status': 'stuck'}"
)
RETRY = "Tool: restart_download, Tool_Inputs: {'order': 'D7', 'hosts': ('a', 'b')}, Observation: started"
REFUND = "Tool: refund_order, Tool_Inputs: {'order': 'D7', 'full': True}, Observation: {'refunded': 5.0}"
HAND_OVER = "Tool: hand_over, Tool_Inputs: {}, Observation: "
SORRY = "AI: I am sorry about that."


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> MilestoneGraph:
    file = tmp_path_factory.mktemp("published") / "milestones.yaml"
    file.write_text(PUBLISHED)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = MilestoneGraph.from_yaml(file)
    assert ["a cycle: 'Retry', 'Refund' depend on each other" in str(one.message) for one in seen] == [True]
    assert made.milestone("Retried And Sorry").type == "Aggregator"
    return made


def steps(*texts: str) -> dict[str, Any]:
    """A conversation in the authors' form: tool steps are numbered within the turn of the message before them."""
    turn, inner = 0, 0
    written = {}
    for text in ("Human: My download is stuck.", *texts):
        if text.startswith("Human"):
            turn, inner = turn + 1, 0
            written[f"Step {turn}_H"] = text
        elif text.startswith("AI"):
            written[f"Step {turn}_A"] = text
        else:
            inner += 1
            written[f"Int_Step {turn}.{inner}"] = text
    return {"Conversation": written}


def read(tmp_path: Any, *conversations: dict[str, Any]) -> list[Transcript]:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps(list(conversations)))
    found = list(read_transcripts(file))
    assert all(isinstance(one, Transcript) for one in found)
    return found


@pytest.mark.parametrize(
    ("talk", "reached", "rate"),
    [
        # Event 1 is the customer's; a tool's step is a call and its result. The join takes the later of 4 and 6.
        (
            [LOOK_UP, SORRY, "Human: And now?", RETRY],
            {"Check Download": 2, "Apology": 4, "Retry": 6, "Retried And Sorry": 6, "End": 6},
            1,
        ),
        # The other order of the join.
        (
            [LOOK_UP, RETRY, SORRY],
            {"Check Download": 2, "Retry": 4, "Apology": 6, "Retried And Sorry": 6, "End": 6},
            1,
        ),
        # The other road, without an apology.
        ([LOOK_UP, REFUND, HAND_OVER], {"Check Download": 2, "Refund": 4, "Escalate": 6, "End": 6}, 1),
        # The cycle from its other side: the retry leads to the refund.
        (
            [LOOK_UP, RETRY, REFUND, HAND_OVER],
            {"Check Download": 2, "Retry": 4, "Refund": 6, "Escalate": 8, "End": 8},
            1,
        ),
        # Nothing: 0.
        ([SORRY], {}, 0),
        # Check Download: depth 1; left: Refund, Escalate, End = 3, or the join with Apology as 1 further = 1 + 1 + 1.
        ([LOOK_UP], {"Check Download": 2}, 1 / 4),
        # Half a join. Depth of the join: 2 (Retry, or Apology) + 1 further = 3, need 1, left End: (3 - 1) / (3 + 1).
        ([LOOK_UP, SORRY], {"Check Download": 2, "Apology": 4}, 2 / 4),
        # The other half: the same, and Refund is still open.
        ([LOOK_UP, RETRY], {"Check Download": 2, "Retry": 4}, 2 / 4),
        # Refund: depth 2; left: Escalate, End = 2. Better than the join's (3 - 2) / (3 + 1).
        ([LOOK_UP, REFUND], {"Check Download": 2, "Refund": 4}, 2 / 4),
        # A cycle cannot reach itself: without the look-up neither counts.
        ([RETRY, REFUND, RETRY, REFUND, SORRY], {}, 0),
        # Out of order: only what comes after the look-up counts.
        ([REFUND, LOOK_UP, HAND_OVER], {"Check Download": 4}, 1 / 4),
        # A failed look-up is none, and what follows it has nothing to follow.
        ([LOOK_UP.replace("{'status': 'stuck'}", "Error: unknown"), REFUND], {}, 0),
        # An argument that does not hold: the refund of another order.
        ([LOOK_UP, REFUND.replace("'D7'", "7")], {"Check Download": 2}, 1 / 4),
    ],
)
def test_conversations_of_the_pre_act_authors_are_scored(tmp_path, graph, talk, reached, rate):
    [transcript] = read(tmp_path, steps(*talk))
    measured = score(graph, transcript)
    assert measured.reached == {"Start": 0, **reached}
    assert measured.progress_rate == rate
    assert measured.goal_completed is (rate == 1)
    assert measured.undecided == ()
