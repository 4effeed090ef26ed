"""How guidelines bear on one another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph import Agent, Guideline
from arq_graph.errors import SpecError


def resolve(scores: dict[str, int], *guidelines: Guideline) -> Any:
    return Agent("n", "p", guidelines).relations.resolve(scores)


def guideline(id: str, **relations: Any) -> Guideline:
    return Guideline("condition", "action", id=id, **relations)


def test_what_an_active_guideline_entails_comes_in_with_the_highest_score_that_reaches_it() -> None:
    chain = [guideline("a", entails=["b"]), guideline("b", entails=["c"]), guideline("c")]
    resolution = resolve({"a": 8}, *chain)
    assert resolution.active == {"a": 8, "b": 8, "c": 8}
    assert resolution.entailed == {"b": "a", "c": "b"}
    assert resolve({"a": 6, "b": 9}, *chain).active["c"] == 9
    assert resolve({"a": 9, "c": 7}, *chain).active["c"] == 9
    assert resolve({"a": 6, "c": 7}, *chain).active["c"] == 7


def test_an_overridden_guideline_goes_with_its_dependents_and_what_only_it_entailed() -> None:
    guidelines = [
        guideline("a", overrides=["b"]),
        guideline("b", entails=["d", "e", "f"]),
        guideline("c", depends_on=["b"]),
        guideline("d"),
        guideline("e"),
        guideline("f"),
        guideline("g", entails=["f"]),
    ]
    resolution = resolve({"a": 6, "b": 9, "c": 9, "e": 7, "g": 7}, *guidelines)
    assert resolution.active == {"a": 6, "e": 7, "f": 7, "g": 7}
    assert resolution.entailed == {"f": "g"}
    assert resolution.removed == {
        "b": "overridden by a",
        "c": "depends on b, which is not active",
        "d": "entailed by b, which was removed",
    }


def test_a_guideline_that_lacks_what_it_depends_on_overrides_nothing() -> None:
    guidelines = [guideline("a", overrides=["b"], depends_on=["c"]), guideline("b"), guideline("c")]
    assert resolve({"a": 9, "b": 7}, *guidelines).active == {"b": 7}


def test_the_stronger_guideline_overrides_first() -> None:
    def chain(priority: int) -> list[Guideline]:
        middle = guideline("b", overrides=["c"], priority=priority)
        return [guideline("a", overrides=["b"]), middle, guideline("c")]

    assert resolve({"a": 7, "b": 9, "c": 8}, *chain(0)).active == {"a": 7}, "the higher score acts first"
    assert resolve({"a": 9, "b": 7, "c": 8}, *chain(1)).active == {"a": 9}, "priority comes before score"
    assert resolve({"a": 7, "b": 7, "c": 8}, *chain(0)).active == {"a": 7, "c": 8}, (
        "else the one written first"
    )


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"entails": ["G9"]}, {}, r"`guidelines\[0\].entails\[0\]` names 'G9', the id of no guideline"),
        ({"depends_on": ["bb"]}, {}, "did you mean `b`"),
        ({"overrides": ["a"]}, {}, "goes in a circle: a → a"),
        ({"depends_on": ["b"]}, {"depends_on": ["c"]}, "goes in a circle: a → b → c → a"),
        ({"overrides": ["b"]}, {"overrides": ["a"]}, "goes in a circle: a → b → a"),
    ],
)
def test_relations_that_cannot_hold_are_refused(first: Any, second: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Agent("n", "p", [guideline("a", **first), guideline("b", **second), guideline("c", depends_on=["a"])])


@st.composite
def agents_and_scores(draw: st.DrawFn) -> tuple[Agent, dict[str, int]]:
    size = draw(st.integers(1, 8))
    ids = [f"g{number}" for number in range(size)]
    ranked = draw(st.permutations(ids))  # overrides and dependencies point down their own orders: no circles
    guidelines = []
    for number, id in enumerate(ids):
        depends = draw(st.sets(st.sampled_from(ids[:number]), max_size=2)) if number else set()
        below = ranked[: ranked.index(id)]
        entails = draw(st.sets(st.sampled_from(ids), max_size=2)) - {id}
        overrides = draw(st.sets(st.sampled_from(below), max_size=2)) if below else set()
        guidelines.append(
            guideline(
                id,
                priority=draw(st.integers(0, 2)),
                depends_on=sorted(depends),
                entails=sorted(entails),
                overrides=sorted(overrides - depends - entails),
            )
        )
    scores = draw(st.dictionaries(st.sampled_from(ids), st.integers(6, 10)))
    return Agent("n", "p", guidelines), scores


@settings(max_examples=30)
@given(agents_and_scores())
def test_what_is_active_in_the_end_holds_together(case: tuple[Agent, dict[str, int]]) -> None:
    agent, scores = case
    resolution = agent.relations.resolve(scores)
    active = resolution.active
    assert not active.keys() & resolution.removed.keys()
    assert scores.keys() <= active.keys() | resolution.removed.keys()
    assert active.keys() <= scores.keys() | resolution.entailed.keys()
    assert resolution.entailed.keys() == active.keys() - scores.keys()
    for id in active:
        this = agent.guideline(id)
        assert set(this.depends_on) <= active.keys()
        assert not set(this.overrides) & active.keys()
        assert set(this.entails) <= active.keys() | resolution.removed.keys()
    for id, by in resolution.entailed.items():
        assert by in active
        assert id in agent.guideline(by).entails
    for id, score in active.items():  # the highest score that reaches it
        reaching = [id]
        for reached in reaching:
            reaching += [g for g in active if reached in agent.guideline(g).entails and g not in reaching]
        assert score == max(scores[origin] for origin in reaching if origin in scores)


@settings(max_examples=30)
@given(agents_and_scores(), st.sets(st.integers(0, 7)))
def test_with_all_that_bears_on_them_given_guidelines_come_out_as_if_all_had_been_matched(
    case: tuple[Agent, dict[str, int]], places: set[int]
) -> None:
    agent, scores = case
    looked_at = agent.relations.find_related(f"g{place}" for place in places)
    part = agent.relations.resolve({id: score for id, score in scores.items() if id in looked_at}).active
    whole = agent.relations.resolve(scores).active
    given_ones = {f"g{place}" for place in places} & scores.keys()
    assert part.keys() & given_ones == whole.keys() & given_ones
    assert part.keys() <= whole.keys()
