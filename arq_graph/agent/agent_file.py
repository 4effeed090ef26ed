"""An agent written as a YAML file; a mistake in it is told with its line and what was expected.

```yaml
name: Order desk
profile: A friendly clerk of a small bookshop.
guidelines:
- condition: the customer asks where their order is   # leave out: always; or {function: "orders:is_vip"}
  action: look the order up and tell its status
  tools: [orders:get_order]                           # orders.py beside this file, or an installed module
- id: no-discount
  action: never offer a discount
  continuous: true
tools: [orders:search, orders:cancel_order]           # may always be called
confirm: {cancel_order: operator}
glossary:
- {name: ARC, description: an advance reader's copy, synonyms: [proof]}
variables:
- {name: tier, description: the customer's tier, value: standard}
```
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from arq_graph.agent import entries
from arq_graph.agent.entries import Misfit, Reader, described, settle, suggestion
from arq_graph.agent.modules import load
from arq_graph.agent.origin import Origin
from arq_graph.agent.parts import GUIDELINE, TERM, VARIABLE, Guideline, Term, Variable
from arq_graph.agent.spec import AGENT, Agent
from arq_graph.agent.yaml_values import read_yaml

A = TypeVar("A", bound=Agent)
E = TypeVar("E", Term, Variable)

_KINDS: dict[str, tuple[str, Mapping[str, Reader]]] = {
    "the agent": ("the agent", AGENT),
    "guidelines": ("a guideline", GUIDELINE),
    "glossary": ("a glossary term", TERM),
    "variables": ("a variable", VARIABLE),
}


def read_agent(path: str | os.PathLike[str], kind: type[A]) -> A:
    """Read an agent from a YAML file.

    Args:
        path: The file.
        kind: `Agent`, or a subclass of it.

    Raises:
        SpecError: Something in the file is wrong; it names file, line and what was expected.
    """
    values, origin = read_yaml(os.fspath(path))
    try:
        fields = _keyed(values, "the agent", "the agent", required=("name", "profile"))
        fields |= {
            key: _entries(fields[key], key, make)
            for key, make in (
                ("guidelines", partial(_guideline, origin)),
                ("glossary", partial(_entry, Term, "glossary")),
                ("variables", partial(_entry, Variable, "variables")),
            )
            if key in fields
        }
    except Misfit as misfit:
        raise origin.error(misfit) from misfit.__cause__
    return kind(**fields, origin=origin)


def _entries(value: object, key: str, make: Callable[[int, object], object]) -> list[object]:
    items = settle("the agent", {key: entries.listing(lambda item: item, key)}, {key: value})[key]
    return [make(index, item) for index, item in enumerate(items)]


def _guideline(origin: Origin, index: int, value: object) -> Guideline:
    owner, place = f"guideline {index + 1}", ("guidelines", index)
    fields = _keyed(value, "guidelines", owner, *place, required=("action",))
    if isinstance(fields.get("id"), str):
        owner = f"guideline {fields['id']}"
    if isinstance(fields.get("condition"), Mapping):
        fields["condition"] = _function(fields["condition"], origin, owner, *place)
    return Guideline(**{"condition": None, **settle(owner, GUIDELINE, fields, *place)})


def _function(value: Mapping[str, object], origin: Origin, owner: str, *place: str | int) -> object:
    reference = value.get("function")
    if list(value) != ["function"] or not isinstance(reference, str):
        raise Misfit(
            f"{owner}: `condition` must be text or {{function: module:function}}, but is a mapping of"
            f" {', '.join(map(repr, value)) or 'nothing'}; text with `: ` in it goes in quotes",
            *place,
            "condition",
        )
    try:
        found = load(reference, origin.folder)
    except Misfit as misfit:
        raise misfit.inside(owner, "condition", *place) from misfit.__cause__
    if not callable(found):
        wrong = Misfit(f"names {reference!r}, which is {described(found)}; name a function of the state")
        raise wrong.inside(owner, "condition", *place)
    return found


def _entry(kind: type[E], key: str, index: int, value: object) -> E:
    what, readers = _KINDS[key]
    owner = f"{what.partition(' ')[2]} {index + 1}"
    fields = _keyed(value, key, owner, key, index, required=("name", "description"))
    return kind(**settle(owner, readers, fields, key, index))


def _keyed(
    value: object, key: str, owner: str, *place: str | int, required: tuple[str, ...]
) -> dict[str, Any]:
    """Read a mapping that has all required keys and none that is unknown."""
    what, readers = _KINDS[key]
    if not isinstance(value, Mapping):
        example = ", ".join(f"{name}: …" for name in required)
        raise Misfit(f"{owner} must be a mapping ({example}), but is {described(value)}", *place)
    for name in value:
        if name not in readers:
            raise Misfit(
                f"{owner} has an unknown key `{name}`{_meant(name, key)} (the keys of {what}:"
                f" {', '.join(readers)})",
                *(*place, name),
            )
    for name in required:
        if name not in value:
            raise Misfit(f"{owner} has no `{name}`; add `{name}: …`", *place)
    return dict(value)


def _meant(name: str, key: str) -> str:
    if near := suggestion(name, _KINDS[key][1]):
        return near
    owners = [what for what, readers in _KINDS.values() if name in readers]
    return f"; that is a key of {' and of '.join(owners)}: is it indented as it should be?" if owners else ""
