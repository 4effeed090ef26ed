"""JSON schemas of tools that come with one, as those of MCP servers: what they ask for, and what they refuse.

A schema is checked in its own dialect, as its tool would check it. What cannot be checked here is left to the tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from arq_graph.agent.patterns import SECONDS_PER_SEARCH, compile_pattern
from arq_graph.reasoning.schema import NotStrict

MAX_SHOWN_CHOICES = 12
"""How many values of an enum the prompt shows as an argument's type."""

MAX_INLINED = 1_000
"""How many references an argument's schema may stand for, however deep; beyond that, its value is asked for as JSON."""

_UNIONS = ("anyOf", "oneOf")


def flatten_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has every property which the schema names at its root.

    They may be named in `properties`, behind a reference, or in `allOf`, `anyOf` and `oneOf`. Required are those that
    every choice requires. A property that several choices name is one of theirs.
    """
    properties, required = _collect_properties(schema, schema, depth=0)
    flat = {key: value for key, value in schema.items() if key not in ("$ref", "allOf", *_UNIONS)}
    flat["properties"] = properties
    if required:
        flat["required"] = [name for name in properties if name in required]
    return flat


def _collect_properties(schema: Any, root: Mapping[str, Any], depth: int) -> tuple[dict[str, Any], set[str]]:
    properties: dict[str, Any] = {}
    required: set[str] = set()
    if not isinstance(schema, Mapping) or depth > 16:  # a reference may lead to itself
        return properties, required
    properties.update(schema.get("properties") or {})
    if isinstance(schema.get("required"), list):
        required.update(schema["required"])
    parts = list(schema.get("allOf") or ())
    if "$ref" in schema:
        parts.append(find_definition(root, schema["$ref"]))
    for part in parts:
        part_properties, part_required = _collect_properties(part, root, depth + 1)
        properties = part_properties | properties
        required |= part_required
    for keyword in _UNIONS:
        choices = [_collect_properties(choice, root, depth + 1) for choice in schema.get(keyword) or ()]
        if choices:
            properties = _merge_choices([choice[0] for choice in choices]) | properties
            required |= set.intersection(*[choice[1] for choice in choices])
    return properties, required


def _merge_choices(choices: list[dict[str, Any]]) -> dict[str, Any]:
    schemas_by_name: dict[str, list[Any]] = {}
    for properties in choices:
        for name, schema in properties.items():
            schemas = schemas_by_name.setdefault(name, [])
            if schema not in schemas:
                schemas.append(schema)
    merged: dict[str, Any] = {}
    for name, schemas in schemas_by_name.items():
        merged[name] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return merged


def find_definition(root: Mapping[str, Any], reference: Any) -> Any:
    """Return the part of a schema that a reference such as `#/$defs/Order` leads to; None if it leads nowhere."""
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        # With an empty registry, a reference to a web address is never fetched.
        return Registry().resolver_with_root(_make_resource(root)).lookup(reference).contents
    except (Unresolvable, AttributeError, TypeError, ValueError):  # it isn't text, or leads through a value
        return None


def _make_resource(schema: Mapping[str, Any]) -> Any:
    from referencing.jsonschema import DRAFT202012, specification_with

    dialect = specification_with(str(schema.get("$schema", "")), default=DRAFT202012)
    return dialect.create_resource(schema)


def inline_references(schema: Any, root: Mapping[str, Any]) -> Any:
    """Replace each `$ref` by the part of `root` that it leads to.

    Raises:
        NotStrict: A reference is recursive or leads nowhere, or there are more than `MAX_INLINED`, since a few
            definitions that refer to each other can stand for billions of values.
    """
    return _inline(schema, root, (), iter(range(MAX_INLINED)))


def _inline(schema: Any, root: Mapping[str, Any], parents: tuple[str, ...], budget: Iterator[int]) -> Any:
    if isinstance(schema, list):
        return [_inline(item, root, parents, budget) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return {key: _inline(value, root, parents, budget) for key, value in schema.items()}
    definition = find_definition(root, reference)
    if reference in parents or definition is None:
        raise NotStrict(f"{reference} refers to itself or to nothing")
    if next(budget, None) is None:
        raise NotStrict(f"it has more than {MAX_INLINED} references")
    return _inline(definition, root, (*parents, reference), budget)


def describe_type(schema: Any) -> str:
    """Return a type in words, such as "list of integer or null"."""
    if not isinstance(schema, Mapping):
        return "any"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(map(describe_type, choices)))
    if isinstance(schema.get("enum"), list):
        return "one of " + ", ".join(map(json.dumps, schema["enum"][:MAX_SHOWN_CHOICES]))
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    kind = schema.get("format") or schema.get("type", "any")
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return f"list of {describe_type(schema['items'])}"
    if isinstance(kind, list):
        return " or ".join(map(str, kind))
    return str(kind)


def find_schema_errors(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Validate arguments by a JSON Schema: yield each invalid argument's name ("" for all of them) and the problem."""
    from referencing import Registry

    validator_class, _ = _choose_dialect(json.dumps(schema, default=str))
    if validator_class is None:
        return
    own_schema = {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
    try:
        checker = validator_class.FORMAT_CHECKER
        validator = validator_class(own_schema, registry=Registry(), format_checker=checker)
        for error in validator.iter_errors(arguments):
            if error.validator == "required" and not error.absolute_path:
                yield from [
                    (name, "it is required") for name in error.validator_value if name not in arguments
                ]
            else:
                yield str(next(iter(error.absolute_path), "")), error.message
    except Exception:  # such as a reference that leads nowhere: `find_schema_flaw` reports it
        return


def find_schema_flaw(schema: Mapping[str, Any]) -> str | None:
    """Return why a schema, or a part of it, cannot be checked here; None if all of it can."""
    from referencing import Registry

    _, flaw = _choose_dialect(json.dumps(schema, default=str))
    if flaw:
        return flaw
    resource = _make_resource(schema)
    try:
        return _find_flaw(resource, Registry().resolver_with_root(resource))
    except (AttributeError, TypeError, ValueError) as error:
        return f"a part of it is not a schema: {error}"


def _find_flaw(resource: Any, resolver: Any) -> str | None:
    """Return what cannot be checked in a part of a schema, or in the parts inside it."""
    from referencing.exceptions import Unresolvable

    part = resource.contents
    if isinstance(part, Mapping):
        patterns = list(part.get("patternProperties", ()))
        if "pattern" in part:
            patterns.append(part["pattern"])
        for pattern in patterns:
            if _compile_pattern(pattern) is None:
                return f"{pattern!r} is not a pattern that is understood here"
        try:
            if "$ref" in part:
                resolver.lookup(part["$ref"])
        except Unresolvable:
            return f"the reference {part['$ref']!r} leads nowhere"
    for inner in resource.subresources():
        if flaw := _find_flaw(inner, resolver.in_subresource(inner)):
            return flaw
    return None


@lru_cache(maxsize=256)
def _choose_dialect(schema_json: str) -> tuple[Any, str | None]:
    """Return the validator class for a schema, or why there is none.

    It is the dialect that the schema names in `$schema`, or else the newest one in which it is valid.
    """
    from jsonschema import (
        Draft4Validator,
        Draft7Validator,
        Draft202012Validator,
        FormatChecker,
        SchemaError,
    )
    from jsonschema.validators import validator_for

    schema = json.loads(schema_json)
    own_dialect = validator_for(schema, default=Draft202012Validator)
    flaws: list[str] = []
    for dialect in (own_dialect, Draft202012Validator, Draft7Validator, Draft4Validator):
        try:
            dialect.check_schema(schema, format_checker=FormatChecker(()))  # type: ignore[call-arg]
        except SchemaError as error:
            flaws.append(error.message)
        except Exception as error:
            flaws.append(str(error))
        else:
            return _extend_validator_class(dialect), None
    return None, flaws[0]


def _extend_validator_class(validator_class: Any) -> Any:
    """Return a dialect's validator that understands patterns and multiples as tools do."""
    from jsonschema import FormatChecker, validators

    keywords: dict[str, Any] = {
        "pattern": _check_pattern,
        "patternProperties": _check_pattern_properties,
        "multipleOf": _check_multiple,
    }
    # The format `regex` means patterns of ECMAScript, and is checked by those of Python.
    formats = FormatChecker(validator_class.FORMAT_CHECKER.checkers.keys() - {"regex"})
    return validators.extend(validator_class, keywords, format_checker=formats)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=1024)
def _compile_pattern(pattern: Any) -> Any:
    """Return a compiled ECMAScript pattern, which knows `\\p{L}`; None if it isn't understood here, or is too large."""
    try:
        return compile_pattern(pattern)
    except (ValueError, TypeError):
        return None


def _matches(pattern: Any, text: str) -> bool:
    """Return whether a pattern occurs in a text; one that isn't understood, or takes too long, is left to the tool."""
    compiled = _compile_pattern(pattern)
    if compiled is None:
        return True
    try:
        return compiled.search(text, timeout=SECONDS_PER_SEARCH) is not None
    except TimeoutError:
        return True


def _check_pattern(validator: Any, pattern: Any, value: Any, _schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "string") and not _matches(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _check_pattern_properties(validator: Any, patterns: Any, value: Any, _schema: Any) -> Iterator[Any]:
    if not validator.is_type(value, "object"):
        return
    for pattern, part in patterns.items():
        if _compile_pattern(pattern) is None:
            continue
        for name, item in value.items():
            if _matches(pattern, name):
                yield from validator.descend(item, part, path=name, schema_path=pattern)


def _check_multiple(validator: Any, step: Any, value: Any, _schema: Any) -> Iterator[Any]:
    """Check a multiple in decimals: 19.99 is a multiple of 0.01, which binary fractions deny."""
    from jsonschema import ValidationError

    if not validator.is_type(value, "number"):
        return
    if (Fraction(str(value)) / Fraction(str(step))).denominator != 1:
        yield ValidationError(f"{value!r} is not a multiple of {step}")
