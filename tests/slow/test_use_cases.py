"""The five use cases with every arm that plays them: each conversation comes to its end."""

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Suite, evaluate
from tests.suites.test_use_cases import REACHED_OFFLINE
from tests.suites.use_case_desk import FOLDER

pytestmark = pytest.mark.slow


def test_every_conversation_of_the_use_cases_comes_to_its_end():
    suite = Suite.from_yaml(FOLDER / "suite.yaml")
    easy = [one for one in suite.scenarios if one.name in REACHED_OFFLINE.values()]
    others = [one for one in suite.scenarios[::9] if one not in easy]
    some = Suite(scenarios=easy + others, seed=suite.seed)
    found = evaluate(some, load_arms(["guided", "react", "pre-act"]), model="offline", concurrency=4)
    assert len(found.conversations) == 3 * len(some.scenarios)
    assert {one.ended for one in found.conversations} <= {"user", "turns"}
    # All five reach some goals with each arm: the graphs, the worlds and the customers fit together.
    for arm in found.summary.arms:
        reached = {
            one.use_case
            for one in found.conversations
            if one.arm == arm and one.goal in [each.name for each in one.reached]
        }
        assert len(reached) == 5, arm
