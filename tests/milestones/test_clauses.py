"""From a published form of file and conversation to the numbers, and from any conversation to the definition.

`test_measure_cases` has a case for every clause of the measure. Here the graph has the quirks of published files (two
milestones that each depend on the other, a join that is misspelt, colons in descriptions, milestones that are not named
like their tools) and the conversations are in the Pre-Act authors' steps.
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from hypothesis import given, settings

from arq_graph.milestones import (
    MilestoneGraph,
    ProgressTracker,
    Transcript,
    observe,
    read_transcripts,
    score,
)
from tests.milestones.brute_force import Definition
from tests.milestones.random_conversations import graphs, transcripts

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


def test_several_conversations_of_one_file_are_scored_each_by_itself(tmp_path, graph):
    read_back = read(tmp_path, steps(LOOK_UP), steps(LOOK_UP, REFUND, HAND_OVER), steps(SORRY))
    assert [score(graph, one).progress_rate for one in read_back] == [1 / 4, 1, 0]
    assert [one.id for one in read_back] == ["0", "1", "2"]


def test_a_milestone_that_is_not_named_like_its_tool_needs_to_be_told_which(tmp_path):
    untold = MilestoneGraph.parse_yaml(
        "\n".join(line for line in PUBLISHED.splitlines() if "tool:" not in line)
    )
    [transcript] = read(tmp_path, steps(LOOK_UP, REFUND, HAND_OVER))
    assert score(untold, transcript).reached == {"Start": 0}
    # The check with the agent's tools says so, for each of the four.
    tools = ["get_download_status", "restart_download", "refund_order", "hand_over"]
    assert [one.milestone for one in untold.check(tools).errors] == [
        "Check Download",
        "Retry",
        "Refund",
        "Escalate",
    ]
    assert not MilestoneGraph.parse_yaml(PUBLISHED).check(tools).errors


def test_undecided_states_of_a_published_file_make_a_range(tmp_path):
    published = "\n".join(line for line in PUBLISHED.splitlines() if "check:" not in line)
    [transcript] = read(tmp_path, steps(LOOK_UP, RETRY))
    measured = score(MilestoneGraph.parse_yaml(published), transcript)
    # Without the apology half the join is done (see above); with it at event 3, End is reached with Retry at 4.
    assert measured.undecided == ("Apology",)
    assert measured.progress_range == (2 / 4, 1)
    assert measured.goal_completed is None
    # On the other road nothing hangs on it.
    [transcript] = read(tmp_path, steps(LOOK_UP, REFUND, HAND_OVER))
    assert score(MilestoneGraph.parse_yaml(published), transcript).goal_completed is True


def test_the_steps_are_tracked_live_as_in_the_whole(tmp_path, graph):
    [transcript] = read(tmp_path, steps(LOOK_UP, SORRY, "Human: Please!", REFUND, RETRY))
    tracker = ProgressTracker(graph)
    rates = []
    for event in transcript.events:
        tracker.feed(event)
        rates.append(tracker.score().progress_rate)
    # Of a call, the result counts: 0, 0, look-up, apology, the customer, -, refund, -, retry. With look-up, apology
    # and refund: the join (3 - 1) / (3 + 1), and Refund 2 / (2 + 2): both 1/2.
    assert rates == [0, 0, 1 / 4, 2 / 4, 2 / 4, 2 / 4, 2 / 4, 2 / 4, 1]
    assert tracker.score() == score(graph, transcript)


@settings(max_examples=60)
@given(graph=graphs(judged=True), transcript=transcripts)
def test_a_score_is_what_the_definition_says(graph, transcript):
    measured = score(graph, transcript)
    observed = observe(graph, transcript)
    definition = Definition(graph.milestones)
    low = definition.reach(observed.events, len(transcript))
    high = definition.reach(observed.events, len(transcript), always=observed.undecided)
    assert measured.reached == low
    assert measured.possibly_reached == high
    if measured.progress_range is None:
        return
    rates = tuple(float(definition.progress_rate(reached)) for reached in (low, high))
    assert measured.progress_range == rates
    assert 0 <= rates[0] <= rates[1] <= 1
    for reached, rate in ((low, rates[0]), (high, rates[1])):
        assert (rate == 1) == ("End" in reached)
    completed = [("End" in reached and not measured.forbidden) for reached in (low, high)]
    assert measured.goal_completed == (completed[0] if completed[0] == completed[1] else None)


@settings(max_examples=30)
@given(graph=graphs(judged=True), transcript=transcripts)
def test_each_of_the_2_to_the_k_decisions_lies_in_the_range(graph, transcript):
    measured = score(graph, transcript)
    undecided = measured.undecided
    if measured.progress_range is None or len(undecided) > 4:
        return
    observed = observe(graph, transcript)
    definition = Definition(graph.milestones)
    low, high = measured.progress_range
    for bits in range(2 ** len(undecided)):
        chosen = [name for number, name in enumerate(undecided) if bits >> number & 1]
        reached = definition.reach(observed.events, len(transcript), always=chosen)
        assert low <= float(definition.progress_rate(reached)) <= high
        assert measured.reached.keys() <= reached.keys() <= measured.possibly_reached.keys()
