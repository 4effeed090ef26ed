"""Going through a graph: accepting, editing, dropping and adding milestones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph.errors import InputError
from arq_graph.milestones import Milestone, parse_yaml
from arq_graph.milestones.authoring.reviewing import GraphReview

GRAPH = """\
review: {generated_by: m, reviewed: false}
failed_if: oops
forbidden: [{tool: cancel}]
milestones:
- {name: Start, type: NFC}
- {name: a, type: FC}
- {name: b, type: NFC, dependencies: [a], check: {said_by: user, pattern: yes}}
- {name: c, type: FC, tool: cc, dependencies: [a, b], requires: all, weight: 2}
- {name: End, type: NFC, dependencies: [c, b]}
"""


def review(by: str = "Ann", **settings: object) -> GraphReview:
    return GraphReview(parse_yaml(GRAPH), by=by, date="2025-03-31", **settings)


def decided(under_way: GraphReview) -> dict[str, tuple[str, str]]:
    return {each.milestone: (each.what, each.by) for each in under_way.graph.review.entries}


def accept_all(under_way: GraphReview) -> None:
    while under_way.open:
        under_way.accept(under_way.open[0])


def test_a_graph_is_reviewed_when_all_is_decided():
    walk = review()
    assert walk.open == ("Start", "a", "b", "c", "End")
    walk.accept("a")
    assert walk.open == ("Start", "b", "c", "End")
    with pytest.raises(InputError, match="nobody has decided about 'Start'"):
        walk.finish()
    accept_all(walk)
    walk.finish()
    assert not walk.graph.is_unreviewed
    assert set(decided(walk).values()) == {("accepted", "Ann")}
    assert walk.graph.review.generated_by == "m"


def test_nothing_else_changes():
    walk, before = review(), parse_yaml(GRAPH)
    accept_all(walk)
    walk.finish()
    for key in ("milestones", "failed_if", "forbidden", "grounded"):
        assert getattr(walk.graph, key) == getattr(before, key)


def test_who_goes_on_with_a_review_keeps_what_the_first_decided():
    first = review()
    first.accept("Start")
    second = GraphReview(parse_yaml(first.graph.to_yaml()), by="Bo", date="2025-04-01")
    assert second.open == ("a", "b", "c", "End")
    accept_all(second)
    second.finish()
    assert decided(second)["Start"] == ("accepted", "Ann")
    assert second.graph.review.by == ("Ann", "Bo")
    assert second.open_to_reviewer == ("Start",)


def test_a_milestone_that_is_renamed_takes_its_dependents_along():
    walk = review()
    accept_all(walk)
    walk.finish()
    walk.edit("b", Milestone("agreed", "NFC", "The customer agrees.", ("a",)))
    assert walk.graph.milestone("c").dependencies == ("a", "agreed")
    assert walk.graph.milestone("End").dependencies == ("c", "agreed")
    assert walk.open == ()
    assert decided(walk)["agreed"] == ("edited", "Ann")
    assert "b" not in decided(walk)
    assert walk.graph.is_unreviewed  # until it is said again


def test_who_depended_on_what_is_dropped_is_looked_at_again():
    walk = review()
    accept_all(walk)
    walk.finish()
    assert walk.drop("b") == ("c", "End")
    assert walk.graph.milestone("c").dependencies == ("a",)
    assert walk.graph.milestone("End").dependencies == ("c", "a")
    assert walk.open == ("c", "End")
    assert decided(walk)["b"] == ("dropped", "Ann")
    assert walk.graph.is_unreviewed


def test_a_dropped_milestone_without_dependencies_leaves_start():
    walk = review()
    walk.drop("a")
    assert walk.graph.milestone("b").dependencies == ("Start",)
    assert walk.graph.milestone("c").dependencies == ("Start", "b")


def test_a_milestone_is_added_where_it_belongs():
    walk = review()
    walk.accept("c")
    walk.add(Milestone("paid", "NFC", dependencies=("c",)), after="c", dependents=["End"])
    assert list(walk.graph) == ["Start", "a", "b", "c", "paid", "End"]
    assert walk.graph.milestone("End").dependencies == ("c", "b", "paid")
    assert decided(walk)["paid"] == ("added", "Ann")
    walk.add(Milestone("last", "NFC"))
    assert list(walk.graph)[-2:] == ["last", "End"]
    walk.drop("last")
    walk.add(Milestone("last", "NFC"))
    assert decided(walk)["last"] == ("added", "Ann")


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda walk: walk.drop("Start"), "Start cannot be dropped"),
        (lambda walk: walk.drop("End"), "End cannot be dropped"),
        (lambda walk: walk.edit("End", Milestone("Over", "NFC")), "End cannot be renamed"),
        (lambda walk: walk.edit("a", Milestone("b", "FC")), "a milestone named 'b' already"),
        (lambda walk: walk.add(Milestone("a", "FC")), "a milestone named 'a' already"),
    ],
)
def test_what_would_break_the_graph_is_refused(act, said):
    walk = review()
    with pytest.raises(InputError, match=said):
        act(walk)
    assert walk.graph.milestones == parse_yaml(GRAPH).milestones


def test_a_graph_with_errors_is_not_reviewed():
    walk = review(tools=["a"])
    accept_all(walk)
    with pytest.raises(InputError, match="'cc' is no tool of the agent"):
        walk.finish()
    walk.edit("c", Milestone("c", "NFC", dependencies=("a", "b")))
    walk.finish()
    assert not walk.graph.is_unreviewed


names = st.sampled_from(["Start", "a", "b", "c", "End", "d", "e: f"])
steps = st.lists(
    st.tuples(st.sampled_from(["accept", "edit", "drop", "add"]), names, names, st.lists(names, max_size=3)),
    max_size=12,
)


@settings(max_examples=150)
@given(steps)
def test_any_walk_leaves_a_file_that_reads_and_a_review_that_is_true(walk_steps):
    walk = review()
    for what, name, other, several in walk_steps:
        milestone = Milestone(other, "NFC", dependencies=tuple(dict.fromkeys(several)))
        try:
            if what == "add":
                walk.add(milestone, after=name, dependents=[each for each in several if each in walk.graph])
            elif name in walk.graph:
                {
                    "accept": walk.accept,
                    "drop": walk.drop,
                    "edit": lambda old, new=milestone: walk.edit(old, new),
                }[what](name)
        except InputError:
            continue
        read = parse_yaml(walk.graph.to_yaml())
        assert (read.milestones, read.review) == (walk.graph.milestones, walk.graph.review)
        assert {"Start", "End"} <= set(read)
        decided_now = {each.milestone for each in read.review.entries if each.what != "dropped"}
        assert set(walk.open) == set(read) - decided_now
        assert decided_now <= set(read)
        assert read.is_unreviewed
