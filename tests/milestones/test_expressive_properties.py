"""Random graphs with every rule of the format score as the definition says."""

import random

import pytest

from arq_graph.milestones import MilestoneGraph, Score, Transcript, Verdict, score
from arq_graph.milestones.measure import compute_progress_rate
from tests.milestones.brute_force import Definition
from tests.milestones.brute_rules import Rules
from tests.milestones.expressive_cases import make_expressive_case


def check_seeds(seeds: range) -> dict[str, int]:
    """Compare each case with the definition; return how many cases had what can differ."""
    seen = dict.fromkeys(("cases", "observed", "forbidden", "spared", "undecided", "skipped"), 0)
    for seed in seeds:
        case = make_expressive_case(seed)
        if case is None:
            continue
        graph, transcript = case
        result, rules, definition = (
            score(graph, transcript),
            Rules(graph, transcript),
            Definition(graph.milestones),
        )
        observed = rules.observe()
        undecided = [milestone.name for milestone in graph.milestones if milestone.is_decided_by_judge]
        reached = definition.reach(observed, len(transcript))
        at_end = dict.fromkeys(rules.find_undecided_states(), (len(transcript) + 1,))
        possibly = definition.reach(observed | at_end, len(transcript), undecided)
        assert set(result.undecided) == {*undecided, *at_end}, seed
        assert dict(result.observations.events) == observed, seed
        assert (result.reached, result.possibly_reached) == (reached, possibly), seed
        forbidden, at_least = rules.forbid(reached), rules.forbid(possibly)
        assert [event.event for event in result.forbidden] == at_least, seed
        goals = {"End" in reached and not forbidden, "End" in possibly and not at_least}
        if result.progress_range is not None:
            assert result.goal_completed == (goals.pop() if len(goals) == 1 else None), seed
            rates = [float(definition.get_progress_rate(names)) for names in (reached, possibly)]
            assert list(result.progress_range) == rates, seed
            check_that_progress_never_falls(graph, definition, seed)
            check_that_the_range_holds_a_decision(graph, transcript, result, seed)
        seen["cases"] += 1
        optional = {milestone.name for milestone in graph.milestones if milestone.optional}
        seen["skipped"] += bool(optional - reached.keys()) and len(reached) > 1
        seen["observed"] += bool(observed)
        seen["forbidden"] += bool(at_least)
        seen["spared"] += len(rules.forbid({})) > len(at_least)
        seen["undecided"] += result.goal_completed is None
    return seen


def check_that_progress_never_falls(graph: MilestoneGraph, definition: Definition, seed: int) -> None:
    """Compare the rates of growing sets of milestones, also of sets that no conversation reaches."""
    names = list(graph)
    random.Random(seed).shuffle(names)
    last = 0.0
    for size in range(0, len(names) + 1, 3):
        rate = compute_progress_rate(graph, names[:size])
        assert rate == float(definition.get_progress_rate(names[:size])) >= last, seed
        assert (rate == 1) == ("End" in names[:size]), seed
        last = rate


def test_random_graphs_with_every_rule_equal_the_definition():
    seen = check_seeds(range(60))
    assert min(seen.values()) > 1, seen


@pytest.mark.slow
def test_many_random_graphs_with_every_rule_equal_the_definition():
    assert check_seeds(range(60, 2_700))["cases"] > 2_000


def check_that_the_range_holds_a_decision(
    graph: MilestoneGraph, transcript: Transcript, ranged: Score, seed: int
) -> None:
    """Decide what is undecided at random, as a judge may, and compare goal and progress with what was possible."""
    chance = random.Random(seed)
    verdicts = []
    for name in ranged.undecided:
        event = chance.randint(1, len(transcript))
        quote = transcript.events[event - 1].text
        verdicts.append(chance.choice((Verdict(name, True, event, quote), Verdict(name, False))))
    decided = score(graph, transcript, judge=lambda *_: verdicts)
    low, high = ranged.progress_range
    assert low <= decided.progress_range[0] <= decided.progress_range[1] <= high, seed
    if ranged.goal_completed is not None:
        assert decided.goal_completed == ranged.goal_completed, seed
