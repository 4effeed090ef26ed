from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter

from arq_graph.reasoning.schema import NotStrict, admits_null, strict_schema
from tests.reasoning.strict_subset import assert_strict, describes

STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


# What is kept, and what is left out -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_", "strict"),
    [
        ({"type": "string", "minLength": 1, "pattern": "a", "format": "date", "title": "X"}, STRING),
        ({"type": "integer", "minimum": 1, "default": 3, "examples": [4], "x-anything": {}}, INTEGER),
        (
            {"type": "array", "items": STRING, "uniqueItems": True, "maxItems": 3},
            {"type": "array", "items": STRING},
        ),
        ({"type": "string", "description": "What?"}, {"description": "What?", "type": "string"}),
        ({"type": "string", "description": ""}, STRING),
        ({"type": ["string", "null"]}, {"anyOf": [STRING, NULL]}),
        (
            {"type": ["array", "null"], "items": INTEGER, "description": "Which?"},
            {"description": "Which?", "anyOf": [{"type": "array", "items": INTEGER}, NULL]},
        ),
        ({"oneOf": [STRING, INTEGER], "discriminator": {}}, {"anyOf": [STRING, INTEGER]}),
        ({"anyOf": [{"type": "string", "format": "date"}, {"type": "string"}]}, STRING),
        ({"anyOf": [{"anyOf": [STRING, INTEGER]}, NULL]}, {"anyOf": [STRING, INTEGER, NULL]}),
        ({"allOf": [INTEGER], "description": "How many?"}, {"description": "How many?", "type": "integer"}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"const": None}, NULL),
        ({"enum": ["a", "b"], "type": "string"}, {"type": "string", "enum": ["a", "b"]}),
        ({"enum": [1, True, 0.5]}, None),
        (
            {"enum": ["a", None, 1, "b"]},
            {"anyOf": [{"type": "string", "enum": ["a", "b"]}, NULL, {"type": "integer", "enum": [1]}]},
        ),
        ({"type": "object", "properties": {}}, closed()),
        ({"type": "object", "additionalProperties": False}, closed()),
        ({"properties": {"b": STRING, "a": INTEGER}, "required": ["a"]}, closed(b=STRING, a=INTEGER)),
        ({"items": STRING}, {"type": "array", "items": STRING}),
    ],
)
def test_a_schema_is_written_in_the_subset(given_: dict[str, Any], strict: dict[str, Any] | None) -> None:
    written = strict_schema(given_)
    assert_strict(written, root=None)
    assert strict is None or json.dumps(written) == json.dumps(strict)


def test_true_is_no_number_in_an_enumeration() -> None:
    choices = strict_schema({"enum": [1, True]})["anyOf"]
    assert [(choice["type"], choice["enum"]) for choice in choices] == [("integer", [1]), ("boolean", [True])]


def test_nothing_stands_beside_a_reference_and_its_description_is_kept() -> None:
    definitions = {"A": {"type": "object", "properties": {"x": STRING}, "description": "An A."}}
    written = strict_schema(
        {
            "type": "object",
            "properties": {
                "bare": {"$ref": "#/$defs/A"},
                "asked": {"$ref": "#/$defs/A", "description": "Which?", "default": None},
                "maybe": {"anyOf": [{"$ref": "#/$defs/A"}, NULL], "title": "Maybe"},
                "old": {"allOf": [{"$ref": "#/$defs/A"}], "description": "Which old one?"},
            },
            "$defs": definitions,
        }
    )
    assert_strict(written)
    reference = {"$ref": "#/$defs/A"}
    assert written["properties"] == {
        "bare": reference,
        "asked": {"description": "Which?", "anyOf": [reference]},
        "maybe": {"anyOf": [reference, NULL]},
        "old": {"description": "Which old one?", "anyOf": [reference]},
    }
    assert written["$defs"] == {"A": {"description": "An A.", **closed(x=STRING)}}


def test_the_outer_description_wins_over_that_of_the_only_choice() -> None:
    written = strict_schema({"anyOf": [{"type": "string", "description": "inner"}], "description": "outer"})
    assert written == {"description": "outer", "type": "string"}


def test_a_root_reference_is_resolved_and_recursion_kept() -> None:
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, NULL]}}}
    written = strict_schema(
        {"$ref": "#/$defs/Node", "$defs": {"Node": node, "Unused": {}}, "description": "A chain."}
    )
    assert_strict(written)
    assert written["description"] == "A chain."
    assert list(written["$defs"]) == ["Node"]


def test_definitions_may_stand_under_the_older_keyword() -> None:
    written = strict_schema(
        {"type": "object", "properties": {"x": {"$ref": "#/definitions/A"}}, "definitions": {"A": STRING}}
    )
    assert_strict(written)
    assert written["$defs"] == {"A": STRING}


def test_the_given_schema_is_not_changed() -> None:
    class Inner(BaseModel):
        x: int = 3

    schema = TypeAdapter(list[Inner | None]).json_schema()
    before = json.dumps(schema)
    strict_schema(schema)["items"]["anyOf"].clear()
    assert json.dumps(schema) == before


@pytest.mark.parametrize("annotation", [int, list[str], str | None, list[list[int] | None], Decimal])
def test_the_schema_of_any_type_can_be_written(annotation: Any) -> None:
    assert_strict(strict_schema(TypeAdapter(annotation).json_schema()), root=None)


# What is refused --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "any type"),
        (True, "any type"),
        ({"description": "Anything."}, "any type"),
        ({"type": "array"}, "any type"),
        ({"type": "object"}, "open dictionary"),
        ({"type": "object", "additionalProperties": True}, "open dictionary"),
        ({"type": "object", "additionalProperties": STRING}, "open dictionary"),
        ({"type": "object", "properties": {"x": STRING}, "additionalProperties": {}}, "open dictionary"),
        ({"type": "object", "patternProperties": {"a": STRING}}, "open dictionary"),
        ({"type": "array", "prefixItems": [STRING, STRING]}, "tuple"),
        ({"type": "array", "items": [STRING, STRING]}, "any type"),
        ({"allOf": [closed(x=STRING), closed(y=STRING)]}, "several things"),
        ({"anyOf": [closed(x=STRING)], "properties": {}}, "several things"),
        ({"$ref": "#/$defs/A", "properties": {}}, "several things"),
        ({"not": STRING}, "must not be"),
        ({"type": "object", "properties": {}, "if": {}}, "conditional"),
        ({"type": "file"}, "'file' is not a type"),
        ({"type": {"a": 1}}, "is not a type"),
        ({"type": []}, "any type"),
        ({"anyOf": []}, "any type"),
        ({"enum": []}, "without values"),
        ({"enum": [{"a": 1}]}, "cannot be a value"),
        ({"const": [1]}, "cannot be a value"),
        ({"$ref": "#/$defs/Nowhere"}, "does not lead into"),
        ({"$ref": "https://example.com/schema"}, "does not lead into"),
        ({"$ref": "#"}, "does not lead into"),
        ({"$ref": 3}, "no JSON schema"),
        ({"anyOf": STRING}, "no JSON schema"),
        ({"properties": []}, "no JSON schema"),
        (closed(**{"a b": STRING}), "property name"),
        (closed(**{"": STRING}), "property name"),
        (closed(**{"x" * 65: STRING}), "property name"),
        (closed(**{"x\n": STRING}), "property name"),
    ],
)
def test_what_the_subset_cannot_say_is_refused_with_its_path(value: Any, reason: str) -> None:
    schema = {
        "type": "object",
        "properties": {"order": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Line"}, NULL]}}},
        "$defs": {"Line": {"type": "object", "properties": {"note": value}}, "A": STRING},
    }
    with pytest.raises(NotStrict, match=reason) as raised:
        strict_schema(schema)
    assert raised.value.path.startswith("order[].note")
    assert str(raised.value) == f"{raised.value.path}: {raised.value.reason}"


@pytest.mark.parametrize(
    "root", [{"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, {"$defs": []}, True]
)
def test_a_root_that_leads_nowhere_is_refused(root: Any) -> None:
    with pytest.raises(NotStrict):
        strict_schema(root)


# Any schema -------------------------------------------------------------------------------------------------


def _schemas() -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", "a b", "x.y"])
    leaf = st.sampled_from(
        [
            STRING,
            INTEGER,
            {"type": ["number", "null"]},
            {"enum": ["a", 1, None]},
            {"const": True},
            {"$ref": "#/$defs/A"},
            {"$ref": "#/$defs/B", "description": "B."},
            {},
            True,
            None,
        ]
    )

    def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return (
            st.fixed_dictionaries(
                {"type": st.just("object"), "properties": st.dictionaries(names, inner, max_size=3)},
                optional={"additionalProperties": st.booleans() | inner, "required": st.lists(names)},
            )
            | st.fixed_dictionaries(
                {"type": st.just("array"), "items": inner}, optional={"minItems": st.just(1)}
            )
            | st.fixed_dictionaries(
                {"anyOf": st.lists(inner, max_size=3)}, optional={"description": st.text()}
            )
            | st.fixed_dictionaries({"allOf": st.lists(inner, max_size=2)})
            | st.dictionaries(
                st.sampled_from(
                    ["type", "properties", "items", "enum", "anyOf", "$ref", "description", "not"]
                ),
                inner | st.text(max_size=3) | st.lists(inner, max_size=2),
                max_size=3,
            )
        )

    return st.recursive(leaf, grown, max_leaves=8)


@given(schema=_schemas(), a=_schemas(), b=_schemas())
def test_any_schema_is_written_in_the_subset_or_refused(schema: Any, a: Any, b: Any) -> None:
    whole = {"type": "object", "properties": {"it": schema}, "$defs": {"A": a, "B": b}}
    try:
        written = strict_schema(whole)
    except NotStrict as error:
        assert error.path == "it" or error.path.startswith(("it.", "it["))
        return
    assert_strict(written)
    assert strict_schema(written) == written


def test_an_answer_is_described_as_before() -> None:
    class Line(BaseModel):
        item: str
        count: int | None

    written = strict_schema(TypeAdapter(list[Line]).json_schema())
    assert describes(written, [{"item": "tea", "count": None}])
    assert not describes(written, [{"item": "tea"}])


# Null -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "admits"),
    [
        (NULL, True),
        (STRING, False),
        ({"anyOf": [STRING, NULL]}, True),
        ({"anyOf": [STRING, INTEGER]}, False),
        ({"$ref": "#/$defs/A"}, True),
        ({"anyOf": [{"$ref": "#/$defs/A"}]}, True),
        ({"type": "array", "items": NULL}, False),
    ],
)
def test_whether_null_is_an_answer(schema: dict[str, Any], admits: bool) -> None:
    assert admits_null(schema, {"A": {"anyOf": [INTEGER, NULL]}}) is admits
