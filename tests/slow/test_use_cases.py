"""The five use cases with every arm that plays them: each conversation comes to its end."""

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import Suite, evaluate
from tests.suites.test_use_cases import REACHED_OFFLINE
from tests.suites.use_case_desk import FOLDER

pytestmark = pytest.mark.slow


def test_every_conversation_of_the_use_cases_comes_to_its_end():
    suite = Suite.from_yaml(FOLDER / "suite.yaml")
    easy = [scenario for scenario in suite.scenarios if scenario.name in REACHED_OFFLINE.values()]
    others = [scenario for scenario in suite.scenarios[::9] if scenario not in easy]
    sample = Suite(scenarios=easy + others, seed=suite.seed)
    report = evaluate(sample, load_arms(["guided", "react", "pre-act"]), model="offline", concurrency=4)
    assert len(report.conversations) == 3 * len(sample.scenarios)
    assert {record.ended for record in report.conversations} <= {"user", "turns"}
    # All five reach some goals with each arm: the graphs, the worlds and the customers fit together.
    for arm in report.summary.arms:
        use_cases = set()
        for record in report.conversations:
            reached = [milestone.name for milestone in record.reached]
            if record.arm == arm and record.goal in reached:
                use_cases.add(record.use_case)
        assert len(use_cases) == 5, arm
