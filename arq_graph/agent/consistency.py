"""Find what doesn't fit together in an agent's specification: names used twice, unknown tools, relations to nothing.

A file with invalid values is searched, too, so that one error names everything that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.braces import find_wrong_fields
from arq_graph.agent.guideline import Guideline, ToolField, assign_ids
from arq_graph.agent.relations import Relations
from arq_graph.agent.spec_errors import Problem
from arq_graph.agent.tools import get_argument_schema
from arq_graph.agent.yaml_file import Document
from arq_graph.errors import MAX_PROBLEMS, suggestion

NAMED_PARTS = {"glossary": "name", "variables": "name", "replies": "id"}
"""Fields of an agent whose parts have a name each, and the key of the name."""


def find_repeated_names(field: str, key: str, names: Sequence[Any]) -> Iterator[Problem]:
    """Yield the names of a field's parts that an earlier part has; what isn't text is left out."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not isinstance(name, str):
            continue
        if name.casefold() in seen:
            yield (field, index, key), f"is used twice: {name!r:.100}; give each its own"
        seen.add(name.casefold())


def find_wrong_confirmations(
    questions: Mapping[str, str | None], toolbox: Mapping[str, BaseTool]
) -> Iterator[Problem]:
    """Yield confirmations of unknown tools, and questions that don't use every argument.

    `questions` are the designer's questions by the name of the tool; None: code writes it.
    """
    unknown_count = 0
    for name, question in questions.items():
        if name not in toolbox:
            unknown_count += 1
            hint = suggestion(name, toolbox) if unknown_count <= MAX_PROBLEMS else ""
            yield ("confirm", name), f"is not a tool of this agent{hint}"
        elif question:
            arguments = list(get_argument_schema(toolbox[name]).get("properties", ()))
            if problem := find_wrong_fields(question, arguments):
                yield ("confirm", name, "ask"), problem


def find_draft_problems(document: Document) -> Iterator[Problem]:
    """Yield what doesn't fit together in an agent's file of which some values aren't valid."""
    guidelines = _get_list(document.values, "guidelines")
    draft = assign_ids(tuple(map(_make_draft_guideline, guidelines)))
    yield from find_repeated_names("guidelines", "id", [guideline.id for guideline in draft])
    for field, key in NAMED_PARTS.items():
        names = [_get_value(entry, key) for entry in _get_list(document.values, field)]
        yield from find_repeated_names(field, key, names)
    yield from Relations(draft).find_problems()
    confirm = _get_value(document.values, "confirm")
    if isinstance(confirm, dict):
        references = list(_get_list(document.values, "tools"))
        for entry in guidelines:
            references += _get_list(entry, "tools")
        try:
            tools = TypeAdapter(tuple[ToolField, ...]).validate_python(references, context=document)
        except ValidationError:
            return  # a tool that can't be loaded may be the one that is confirmed
        toolbox = {tool.name: tool for tool in tools}
        yield from find_wrong_confirmations(dict.fromkeys(confirm), toolbox)


def _make_draft_guideline(entry: Any) -> Guideline:
    """Return a guideline with the id and the relations of a file's entry, as far as they are texts."""
    relations: dict[str, Any] = {}
    for kind in ("entails", "depends_on", "overrides"):
        relations[kind] = [target for target in _get_list(entry, kind) if isinstance(target, str)]
    id = _get_value(entry, "id")
    return Guideline.model_construct(id=id if isinstance(id, str) else "", **relations)


def _get_value(values: Any, key: str) -> Any:
    """Return the value under a key of what may not be a mapping; None if there is none."""
    return values.get(key) if isinstance(values, dict) else None


def _get_list(values: Any, key: str) -> list[Any]:
    value = _get_value(values, key)
    return value if isinstance(value, list) else []
