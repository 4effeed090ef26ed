"""Ablations: arms that leave out queries of one step, to see what these are worth (ARQ paper, section 8).

`arq -condition_applies` is the arm `arq` without that query. Like every ablation, the arm that it is compared with
reads the response of an answer alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Any, NamedTuple

from arq_graph.apps.settings import STRATEGIES, StrategyName
from arq_graph.errors import InputError
from arq_graph.nodes.agent_node import AgentNode
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.message_reviser import MessageReviser
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.derived import ResponseOnly, find_fields

REFERENCE_ARMS: Mapping[str, StrategyName] = {
    "arq": "tools",
    "arq-pre-act": "pre-act",
    "arq-respact": "respact",
}
"""The arms that ablations are compared with, and their strategies."""

_SEPARATOR = " -"


class Ablation(NamedTuple):
    """An arm without some of its queries.

    Args:
        reference: The arm that it is otherwise.
        without: Names of the queries that are left out, by the step that asks them.
    """

    reference: str
    without: Mapping[str, tuple[str, ...]]


def parse_ablation(arm: str) -> Ablation | None:
    """Return the ablation that the name of an arm stands for, or None for another arm.

    Raises:
        InputError: No step of the arm asks such a query, or it cannot be left out.
    """
    reference, *left_out = arm.split(_SEPARATOR)
    if reference not in REFERENCE_ARMS or not left_out:
        return None
    blueprints: list[type[ARQ]] = []
    without = {}
    for step, node in _get_step_nodes(reference).items():
        blueprints.extend(node.list_blueprints())
        queries = tuple(query for query in _list_queries(node) if query in left_out)
        if queries:
            without[step] = queries
    ResponseOnly(without=left_out).require_queries(*blueprints)
    return Ablation(reference, without)


def list_ablations(selection: str) -> list[str]:
    """Return the names of arms: a step as it is, and without each of its queries.

    Args:
        selection: A step, such as `matcher`; or with some of its queries, or parts of their names:
            `matcher:rationale,condition_applies`.

    Raises:
        InputError: No step has this name, or the step has no such query.
    """
    step, _, query_list = selection.partition(":")
    steps: dict[str, tuple[str, type[AgentNode[Any]]]] = {}
    for reference in REFERENCE_ARMS:
        for name, node in _get_step_nodes(reference).items():
            steps.setdefault(name, (reference, node))
    if step not in steps:
        raise InputError(f"there is no step {step!r}; there are {', '.join(steps)}")
    reference, node = steps[step]
    selected: list[str] = []
    for part in filter(None, query_list.split(",")):
        selected.extend(_select_queries(part, step, node))
    arms = [reference]
    for query in dict.fromkeys(selected or _list_queries(node)):
        arms.append(f"{reference}{_SEPARATOR}{query}")
    return arms


def _select_queries(part: str, step: str, node: type[AgentNode[Any]]) -> list[str]:
    """Return the query with this name, or those whose names contain it."""
    queries = _list_queries(node)
    if part in queries:
        return [part]
    if matching := [query for query in queries if part in query]:
        return matching
    reason = "not one of its queries"
    if part in find_fields(*node.list_blueprints()):
        reason = "part of its response. Its queries are"
    raise InputError(
        f"the step {step} cannot be asked without {part!r}, which is {reason}: {', '.join(queries)}"
    )


def _get_step_nodes(reference: str) -> dict[str, type[AgentNode[Any]]]:
    strategy_node = resolve_name(STRATEGIES[REFERENCE_ARMS[reference]].node_class)
    return {node.module: node for node in (GuidelineMatcher, strategy_node, MessageReviser)}


def _list_queries(node: type[AgentNode[Any]]) -> list[str]:
    return [name for name, is_query in find_fields(*node.list_blueprints()).items() if is_query]
