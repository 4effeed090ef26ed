"""Ablations: arms that leave out queries of one step, to see what these are worth (ARQ paper, section 8).

`arq -condition_applies` is the arm `arq` without that query. What it is held against reads answers by their response
alone, as every ablation does.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, NamedTuple

from arq_graph.apps.settings import STRATEGIES, StrategyName
from arq_graph.errors import InputError, suggestion
from arq_graph.nodes.blueprint_node import AgentNode
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.message_reviser import MessageReviser
from arq_graph.reasoning.derived import ResponseOnly, find_fields

REFERENCES: Mapping[str, StrategyName] = {"arq": "tools", "arq-pre-act": "pre-act", "arq-respact": "respact"}
"""The arms that ablations are held against, and their strategies."""
_WITHOUT = " -"


class Ablation(NamedTuple):
    """The arm that another one otherwise is, and the queries that it lacks, by the module of the step."""

    reference: str
    without: Mapping[str, ResponseOnly]


def ablation_of(name: str) -> Ablation | None:
    """What the name of an arm leaves out; None where it is no ablation's.

    Raises:
        InputError: No step of the arm asks such a query, or it cannot be left out.
    """
    reference, *queries = name.split(_WITHOUT)
    if reference not in REFERENCES or not queries:
        return None
    steps = _steps(reference)
    blueprints = [blueprint for node in steps.values() for blueprint in node.asks()]
    ResponseOnly(without=queries).require_queries(*blueprints)
    without = {}
    for module, node in steps.items():
        if own_queries := set(_queries(node)).intersection(queries):
            without[module] = ResponseOnly(without=own_queries)
    return Ablation(reference, without)


def ablations(ablated: str) -> list[str]:
    """The names of arms: a step as it is, and without each of its queries.

    Args:
        ablated: A step, such as `matcher`; or with some of its queries, or parts of their names:
            `matcher:rationale,condition_applies`.

    Raises:
        InputError: There is no such step, or it has no such query.
    """
    step, _, named = ablated.partition(":")
    reference = next((each for each in REFERENCES if step in _steps(each)), None)
    if reference is None:
        known = dict.fromkeys(module for each in REFERENCES for module in _steps(each))
        raise InputError(f"there is no step {step!r}{suggestion(step, known)}; there are {', '.join(known)}")
    node = _steps(reference)[step]
    queries, found = _queries(node), []
    for part in filter(None, named.split(",")):
        chosen = [part] if part in queries else [query for query in queries if part in query]
        if not chosen:
            is_known = part in find_fields(*node.asks())
            why = "part of its response. Its queries are" if is_known else "not one of its queries"
            raise InputError(
                f"the step {step} cannot be asked without {part!r}, which is {why}: {', '.join(queries)}"
                f"{suggestion(part, queries)}"
            )
        found += chosen
    return [reference, *(f"{reference}{_WITHOUT}{query}" for query in dict.fromkeys(found or queries))]


def _steps(reference: str) -> dict[str, type[AgentNode[Any]]]:
    acting = resolve_name(STRATEGIES[REFERENCES[reference]].node_class)
    return {node.module: node for node in (GuidelineMatcher, acting, MessageReviser)}


def _queries(node: type[AgentNode[Any]]) -> list[str]:
    return [name for name, is_query in find_fields(*node.asks()).items() if is_query]
