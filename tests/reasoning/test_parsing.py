"""An answer is found in whatever text a model writes around it, and no text makes reading fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arq_graph import ARQ, errors, respond
from tests.reasoning.cases import PROMPT, make_reasoner, script_model


class Tree(ARQ):
    """A blueprint whose parts are valid by themselves, so that a part can be mistaken for the whole."""

    name: str = respond("Its name.")
    weight: float = respond("Its weight.", ge=0, le=10)
    branches: list[Tree] = respond("Its branches.")


GOOD = '{"name": "x", "weight": 1, "branches": []}'


def read(text: str) -> Any:
    """Return what is read from a text, or the errors if nothing is."""
    reasoner = make_reasoner(script_model([text]), max_attempts=1)
    try:
        return reasoner.ask(Tree, PROMPT, mode="direct").value
    except errors.BlueprintError as error:
        return error.attempts[0].error


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
weights = st.floats(0, 10)
trees = st.recursive(
    st.builds(Tree, name=names, weight=weights, branches=st.just([])),
    lambda inner: st.builds(Tree, name=names, weight=weights, branches=st.lists(inner, max_size=3)),
    max_leaves=8,
)
chatter = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=60)
thoughts = st.lists(
    st.sampled_from(["{", "{ why", "{}", '{"name": 3}', '{"a" 1}', "} {", '{"a": [1,,]}']), max_size=8
)


@settings(max_examples=8)
@given(trees, chatter, chatter, thoughts, st.booleans())
def test_chatter_fences_and_thinking_around_an_answer_do_not_matter(tree, before, after, thinking, indented):
    answer = tree.model_dump_json(indent=2 if indented else None)
    assert read(answer) == tree
    assert read(f"{before}```json\n{answer}\n```{after}") == tree
    assert read(f"<think>{' and '.join(thinking)}</think>{answer}") == tree


@settings(max_examples=8)
@given(st.lists(trees, min_size=1, max_size=5), st.integers(0, 3), st.data())
def test_the_last_object_that_validates_counts_and_never_a_part_of_one(answers, invalid_after, data):
    texts = [answer.model_dump_json() for answer in answers]
    assert read("\n".join([*texts, *['{"name": "x", "weight": 11}'] * invalid_after])) == answers[-1]
    assert isinstance(read(texts[0][: data.draw(st.integers(0, len(texts[0]) - 1))]), str)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        '{"name":' * 100_000,
        "{}" * 100_000,
        '{"name": "' + "\\" * 100_000,
        '{"weight": ' + "9" * 100_000 + "}",
        "{}[]:,\\ \nabn1e.-u",
        '{"name": "x", "weight": NaN, "branches": []}',
        '{"name": "\ud800", "weight": 1, "branches": []}',
    ],
    ids=lambda text: text[:20].encode("utf-8", "replace").decode(),
)
def test_a_text_without_an_answer_is_read_quickly(text):
    assert read(text).startswith("Tree")


def test_an_answer_is_found_after_many_broken_objects_and_with_line_breaks_inside_a_string():
    assert read("{" * 50_000 + '{"a" ' * 1_000 + "{}" * 900 + GOOD).name == "x"
    assert read("Here you are:\n" + GOOD.replace("x", "a\nb\tc") + "\nBye.").name == "a\nb\tc"


def test_the_errors_of_the_last_object_have_the_path_of_each_query():
    bad = {"name": "x", "weight": 1, "branches": [{"name": 3, "weight": 11, "branches": []}]}
    assert read(f"First {{}}, then {json.dumps(bad)}.").split("\n") == [
        "Tree.branches.0.name: Input should be a valid string",
        "Tree.branches.0.weight: Input should be less than or equal to 10",
    ]
    flood = {**bad, "branches": [{"name": 1, "weight": "much", "branches": None}] * 20}
    assert read(json.dumps(flood)).split("\n")[20:] == ["Tree: and 40 more errors"]
