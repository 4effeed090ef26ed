"""Find what doesn't fit together in an agent's specification: names used twice, unknown tools, relations to nothing.

A file with invalid values is searched, too, so that one error names everything that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.braces import find_wrong_fields
from arq_graph.agent.guideline import Guideline, ToolField, assign_ids
from arq_graph.agent.journey import Journey, JourneyStep, find_journey_problems
from arq_graph.agent.offer import make_offer_id
from arq_graph.agent.relations import Relations
from arq_graph.agent.spec_errors import Place, Problem
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


def find_rule_problems(
    guidelines: Sequence[Guideline], offer_ids: Sequence[str], journeys: Sequence[Journey]
) -> Iterator[Problem]:
    """Yield what doesn't fit together in guidelines, offers and journeys: their ids, relations and steps."""
    ids = [guideline.id for guideline in guidelines]
    yield from find_repeated_names("guidelines", "id", ids)
    yield from find_journey_problems(journeys)
    rules = list(guidelines)
    taken_ids = {id.casefold() for id in ids}
    generated: list[tuple[Place, Iterable[str]]] = []
    for position, id in enumerate(offer_ids):
        generated.append((("offers", position, "id"), [id]))
    for position, journey in enumerate(journeys):
        for place, problem in find_repeated_names("steps", "id", [step.id for step in journey.steps]):
            yield ("journeys", position, *place), problem
        generated.append((("journeys", position, "id"), journey.rule_ids))
    for place, rule_ids in generated:
        for id in dict.fromkeys(rule_ids):
            if id.casefold() in taken_ids:
                problem = (
                    f"leads to the id {id!r}, which a guideline, an offer or a journey has; choose another"
                )
                yield place, problem
            taken_ids.add(id.casefold())
            rules.append(Guideline.model_construct(id=id))
    yield from Relations(rules).find_problems()


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
    journeys = _get_list(document.values, "journeys")
    draft_journeys = [_make_draft_journey(entry, position) for position, entry in enumerate(journeys)]
    offer_ids: list[str] = []
    for number, entry in enumerate(_get_list(document.values, "offers"), start=1):
        offer_ids.append(_get_text(entry, "id") or make_offer_id(number))
    draft_guidelines = assign_ids(tuple(map(_make_draft_guideline, guidelines)))
    yield from find_rule_problems(draft_guidelines, offer_ids, draft_journeys)
    for field, key in NAMED_PARTS.items():
        names = [_get_value(entry, key) for entry in _get_list(document.values, field)]
        yield from find_repeated_names(field, key, names)
    confirm = _get_value(document.values, "confirm")
    # A misspelt key may be the one that lists the tool.
    if isinstance(confirm, dict) and not document.has_unknown_keys:
        references = list(_get_list(document.values, "tools"))
        steps = [step for journey in journeys for step in _get_list(journey, "steps")]
        for entry in guidelines + steps:
            references += _get_list(entry, "tools")
        try:
            tools = TypeAdapter(tuple[ToolField, ...]).validate_python(references, context=document)
        except ValidationError:
            return  # a tool that can't be loaded may be the one that is confirmed
        toolbox = {tool.name: tool for tool in tools}
        yield from find_wrong_confirmations(dict.fromkeys(confirm), toolbox)


def _make_draft_guideline(entry: Any) -> Guideline:
    """Return a guideline with the id and the relations of a file's entry, as far as they are texts."""
    relations: dict[str, Any] = {
        kind: _get_texts(entry, kind) for kind in ("entails", "depends_on", "overrides")
    }
    return Guideline.model_construct(id=_get_text(entry, "id") or "", **relations)


def _make_draft_journey(entry: Any, position: int) -> Journey:
    """Return a journey with the ids that a file's entry and its steps name, as far as they are texts."""
    steps: list[JourneyStep] = []
    for number, step in enumerate(_get_list(entry, "steps")):
        draft = JourneyStep.model_construct(
            id=_get_text(step, "id") or f"steps[{number}]",
            after=tuple(filter(None, [_get_text(step, "after"), *_get_texts(step, "after")])),
            journey=_get_text(step, "journey"),
        )
        steps.append(draft)
    id = _get_text(entry, "id") or f"journeys[{position}]"
    return Journey.model_construct(id=id, steps=tuple(steps))


def _get_value(values: Any, key: str) -> Any:
    """Return the value under a key of what may not be a mapping; None if there is none."""
    return values.get(key) if isinstance(values, dict) else None


def _get_text(values: Any, key: str) -> str | None:
    value = _get_value(values, key)
    return value if isinstance(value, str) else None


def _get_texts(values: Any, key: str) -> list[str]:
    return [item for item in _get_list(values, key) if isinstance(item, str)]


def _get_list(values: Any, key: str) -> list[Any]:
    value = _get_value(values, key)
    return value if isinstance(value, list) else []
