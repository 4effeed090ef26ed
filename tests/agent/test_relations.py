"""The relations between guidelines."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph import Agent, Guideline
from arq_graph.agent.relations import Resolution
from arq_graph.errors import SpecError


def resolve(scores: dict[str, int], *guidelines: Guideline) -> Resolution:
    return Agent("n", "p", guidelines).relations.resolve(scores)


def make_guideline(id: str, **relations: Any) -> Guideline:
    return Guideline("condition", "action", id=id, **relations)


def test_an_entailed_guideline_gets_the_highest_score_that_reaches_it() -> None:
    chain = [make_guideline("a", entails=["b"]), make_guideline("b", entails=["c"]), make_guideline("c")]
    resolution = resolve({"a": 8}, *chain)
    assert resolution.active == {"a": 8, "b": 8, "c": 8}
    assert resolution.entailed == {"b": "a", "c": "b"}
    assert resolve({"a": 6, "b": 9}, *chain).active["c"] == 9
    assert resolve({"a": 9, "c": 7}, *chain).active["c"] == 9
    assert resolve({"a": 6, "c": 7}, *chain).active["c"] == 7


def test_an_overridden_guideline_takes_along_its_dependents_and_what_only_it_entailed() -> None:
    guidelines = [
        make_guideline("a", overrides=["b"]),
        make_guideline("b", entails=["d", "e", "f"]),
        make_guideline("c", depends_on=["b"]),
        make_guideline("d"),
        make_guideline("e"),
        make_guideline("f"),
        make_guideline("g", entails=["f"]),
    ]
    resolution = resolve({"a": 6, "b": 9, "c": 9, "e": 7, "g": 7}, *guidelines)
    assert resolution.active == {"a": 6, "e": 7, "f": 7, "g": 7}
    assert resolution.entailed == {"f": "g"}
    assert resolution.removed == {
        "b": "overridden by a",
        "c": "depends on b, which is not active",
        "d": "entailed by b, which was removed",
    }


def test_a_guideline_without_its_dependency_overrides_nothing() -> None:
    first = make_guideline("a", overrides=["b"], depends_on=["c"])
    assert resolve({"a": 9, "b": 7}, first, make_guideline("b"), make_guideline("c")).active == {"b": 7}


def test_the_stronger_guideline_overrides_first() -> None:
    def make_chain(priority: int) -> list[Guideline]:
        middle = make_guideline("b", overrides=["c"], priority=priority)
        return [make_guideline("a", overrides=["b"]), middle, make_guideline("c")]

    assert resolve({"a": 7, "b": 9, "c": 8}, *make_chain(0)).active == {"a": 7}, "by score"
    assert resolve({"a": 9, "b": 7, "c": 8}, *make_chain(1)).active == {"a": 9}, "by priority before score"
    assert resolve({"a": 7, "b": 7, "c": 8}, *make_chain(0)).active == {"a": 7, "c": 8}, "by position"


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"entails": ["G9"]}, {}, r"`guidelines\[0\].entails\[0\]` names 'G9', but no guideline has that id"),
        ({"depends_on": ["bb"]}, {}, "did you mean `b`"),
        ({"overrides": ["a"]}, {}, "goes in a circle: a → a"),
        ({"depends_on": ["b"]}, {"depends_on": ["c"]}, "goes in a circle: a → b → c → a"),
    ],
)
def test_impossible_relations_are_refused(first: Any, second: Any, message: str) -> None:
    guidelines = [make_guideline("a", **first), make_guideline("b", **second)]
    with pytest.raises(SpecError, match=message):
        Agent("n", "p", [*guidelines, make_guideline("c", depends_on=["a"])])


@st.composite
def agents_and_scores(draw: st.DrawFn) -> tuple[Agent, dict[str, int]]:
    size = draw(st.integers(1, 8))
    ids = [f"g{number}" for number in range(size)]
    # Overrides and dependencies go down two orders of their own, so that there are no circles.
    ranked = draw(st.permutations(ids))
    guidelines = []
    for number, id in enumerate(ids):
        lower_ids = ranked[: ranked.index(id)]
        depends_on = draw(st.sets(st.sampled_from(ids[:number]), max_size=2)) if number else set()
        entails = draw(st.sets(st.sampled_from(ids), max_size=2)) - {id}
        overrides = draw(st.sets(st.sampled_from(lower_ids), max_size=2)) if lower_ids else set()
        relations = {
            "depends_on": sorted(depends_on),
            "entails": sorted(entails),
            "overrides": sorted(overrides - depends_on - entails),
        }
        guidelines.append(make_guideline(id, priority=draw(st.integers(0, 2)), **relations))
    scores = draw(st.dictionaries(st.sampled_from(ids), st.integers(6, 10)))
    return Agent("n", "p", guidelines), scores


@settings(max_examples=25)
@given(agents_and_scores())
def test_the_active_guidelines_satisfy_all_relations(case: tuple[Agent, dict[str, int]]) -> None:
    agent, scores = case
    resolution = agent.relations.resolve(scores)
    active = resolution.active
    assert not active.keys() & resolution.removed.keys()
    assert scores.keys() <= active.keys() | resolution.removed.keys()
    assert resolution.entailed.keys() == active.keys() - scores.keys()
    for id in active:
        guideline = agent.get_guideline(id)
        assert set(guideline.depends_on) <= active.keys()
        assert not set(guideline.overrides) & active.keys()
        assert set(guideline.entails) <= active.keys() | resolution.removed.keys()
    for id, origin in resolution.entailed.items():
        assert origin in active
        assert id in agent.get_guideline(origin).entails
    for id, score in active.items():
        origins = [id]
        for reached in origins:
            origins += [g for g in active if reached in agent.get_guideline(g).entails and g not in origins]
        assert score == max(scores[origin] for origin in origins if origin in scores)


@settings(max_examples=25)
@given(agents_and_scores(), st.sets(st.integers(0, 7)))
def test_matching_only_related_guidelines_gives_the_same_result(
    case: tuple[Agent, dict[str, int]], numbers: set[int]
) -> None:
    agent, scores = case
    ids = {f"g{number}" for number in numbers}
    related = agent.relations.find_related(ids)
    partial = agent.relations.resolve({id: scores[id] for id in scores.keys() & related}).active
    whole = agent.relations.resolve(scores).active
    matched_ids = ids & scores.keys()
    assert partial.keys() & matched_ids == whole.keys() & matched_ids
    assert partial.keys() <= whole.keys()
