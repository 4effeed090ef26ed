"""An answer is found in whatever text a model writes around it, and no text is too odd to be read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from arq_graph.reasoning.parsing import parse_answer as parse


def parse_answer(model, text, *, name="Tree"):
    return parse(model.model_validate_json, text, name)


class Tree(BaseModel):
    """A model whose parts are valid by themselves, so that a part can be mistaken for the whole."""

    model_config = ConfigDict(extra="forbid")

    name: str
    weight: float = Field(ge=0, le=10)
    branches: list[Tree]


names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
weights = st.floats(0, 10)
trees = st.recursive(
    st.builds(Tree, name=names, weight=weights, branches=st.just([])),
    lambda inner: st.builds(Tree, name=names, weight=weights, branches=st.lists(inner, max_size=3)),
    max_leaves=8,
)
chatter = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]), max_size=60)
any_text = st.text(max_size=200) | st.text(alphabet='{}[]":,\\ \nabn1e.-u\ud800', max_size=200)


@given(trees, st.booleans())
def test_an_answer_survives_being_written_and_read(tree, indented):
    text = tree.model_dump_json(indent=2 if indented else None)
    assert parse_answer(Tree, text).value == tree


@given(trees, chatter, chatter)
def test_chatter_and_fences_around_an_answer_do_not_matter(tree, before, after):
    text = f"{before}```json\n{tree.model_dump_json(indent=2)}\n```{after}"
    assert parse_answer(Tree, text).value == tree


@given(
    trees,
    st.lists(
        st.sampled_from(["{", "{ why", "{}", '{"name": 3}', '{"a" 1}', "} {", '{"a": [1,,]}']), max_size=8
    ),
)
def test_braces_and_other_objects_in_the_thinking_do_not_matter(tree, thoughts):
    text = f"<think>{' and '.join(thoughts)}</think>{tree.model_dump_json()}"
    assert parse_answer(Tree, text).value == tree


@given(st.lists(trees, min_size=1, max_size=5), st.integers(0, 3))
def test_the_last_object_that_validates_counts(answers, invalid_after):
    text = "\n".join(
        [each.model_dump_json() for each in answers] + ['{"name": "x", "weight": 11}'] * invalid_after
    )
    assert parse_answer(Tree, text).value == answers[-1]


@given(trees, st.data())
def test_a_part_of_a_cut_off_answer_is_not_taken_for_the_answer(tree, data):
    text = tree.model_dump_json()
    cut = data.draw(st.integers(0, len(text) - 1))
    assert parse_answer(Tree, text[:cut]).value is None


@given(any_text)
@settings(max_examples=400)
def test_no_text_makes_the_parser_fail(text):
    parsed = parse_answer(Tree, text)
    assert (parsed.value is None) == bool(parsed.errors)
    assert all(isinstance(line, str) and line.startswith("Tree") for line in parsed.errors)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_is_read_or_told_what_is_wrong(value):
    text = json.dumps(value)
    parsed = parse_answer(Tree, text)
    assert parsed.value is None
    assert parsed.errors
    if isinstance(value, dict):
        assert parsed.has_object


@pytest.mark.parametrize(
    "text",
    [
        "{" * 100_000,
        '{"' * 100_000,
        '{"name":' * 100_000,
        '{"a":1,' * 100_000,
        "[" * 100_000,
        "{}" * 100_000,
        '{"name": "' + "\\" * 100_000,
        '{"weight": ' + "9" * 100_000 + "}",
        "{" + " " * 100_000 + "}",
    ],
    ids=["braces", "quotes", "deep", "nested", "lists", "empty", "escapes", "digits", "spaces"],
)
def test_a_hundred_thousand_braces_are_read_in_passing(text):
    assert parse_answer(Tree, text).value is None


def test_an_answer_after_many_broken_objects_is_still_found():
    good = '{"name": "x", "weight": 1, "branches": []}'
    assert parse_answer(Tree, "{" * 50_000 + '{"a" ' * 1_000 + "{}" * 3_000 + good).value is not None


def test_an_error_names_the_path_of_the_query():
    text = '{"name": "x", "weight": 1, "branches": [{"name": 3, "weight": 11, "branches": []}]}'
    assert parse_answer(Tree, text, name="Oak").errors == (
        "Oak.branches.0.name: Input should be a valid string",
        "Oak.branches.0.weight: Input should be less than or equal to 10",
    )


def test_the_last_objects_errors_are_told_if_none_validates():
    parsed = parse_answer(Tree, 'First {"name": 1}, then {"name": "x", "weight": 11, "branches": []}.')
    assert parsed.errors == ("Tree.weight: Input should be less than or equal to 10",)
    assert parsed.has_object


def test_a_flood_of_errors_is_cut():
    branches = [{"name": 1, "weight": "much", "branches": None}] * 200
    parsed = parse_answer(Tree, json.dumps({"name": "x", "weight": 1, "branches": branches}))
    assert len(parsed.errors) == 21
    assert parsed.errors[-1] == "Tree: and 580 more errors"


@pytest.mark.parametrize("text", ["", "   ", "Eight.", "null", "[]", '"{}"'[1:1], '{"name": "x'])
def test_a_text_without_a_complete_object_says_so(text):
    parsed = parse_answer(Tree, text)
    assert not parsed.has_object
    assert parsed.errors[0] == "Tree: the answer holds no complete JSON object"


def test_braces_inside_a_string_that_was_cut_off_are_no_object():
    assert not parse_answer(Tree, '{"name": "a {} b').has_object


def test_nan_is_refused_by_its_range_and_surrogates_by_their_kind():
    for text in (
        '{"name": "x", "weight": NaN, "branches": []}',
        '{"name": "\ud800", "weight": 1, "branches": []}',
    ):
        parsed = parse_answer(Tree, text)
        assert parsed.value is None
        assert parsed.errors


@pytest.mark.parametrize("around", ["{}", "Here you are:\n{}\nBye.", "```json\n{}\n```"])
def test_a_line_break_inside_a_string_is_read_as_the_model_meant_it(around):
    text = '{"name": "first line\nsecond line\t.", "weight": 1, "branches": []}'
    parsed = parse_answer(Tree, around.replace("{}", text))
    assert parsed.value == Tree(name="first line\nsecond line\t.", weight=1, branches=[])
