"""Batches of guidelines, each judged by one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import ceil

from langchain_core.embeddings import Embeddings

from arq_graph.agent.guideline import Guideline
from arq_graph.errors import require_count
from arq_graph.nodes.agent_node import describe_guideline
from arq_graph.nodes.judgement_schema import Judgement, make_batch_blueprint
from arq_graph.nodes.preselection import Preselection
from arq_graph.reasoning.blueprint import ARQ


class Batch:
    """Guidelines that one call judges; formed once, so that the prompt's head and the schema never change."""

    def __init__(
        self,
        name: str,
        guidelines: Sequence[Guideline],
        judgement: type[Judgement],
        render_head: Callable[..., str],
        *,
        has_tools: bool,
    ) -> None:
        self.name = name
        self.guidelines = guidelines
        self._judgement = judgement
        self._render_head = render_head
        self._has_tools = has_tools

    @cached_property
    def blueprint(self) -> type[ARQ]:
        """The blueprint that asks about each guideline."""
        return make_batch_blueprint(self.guidelines, self._judgement, has_tools=self._has_tools)

    @cached_property
    def head(self) -> str:
        """The beginning of each of its prompts."""
        return self._render_head(guidelines=[describe_guideline(guideline) for guideline in self.guidelines])

    def prepare(self) -> None:
        """Make the blueprint and the head now, and not when the batch is first asked."""
        _ = self.blueprint, self.head


def group_guidelines(
    guidelines: Sequence[Guideline],
    batch_size: int | None,
    max_judged: int | None,
    embeddings: Embeddings | None,
) -> tuple[list[Sequence[Guideline]], Preselection | None]:
    """Return the guidelines of each batch, and what chooses among the batches, if there are too many."""
    to_judge: list[Guideline] = []
    optional: list[Guideline] = []
    required: list[Guideline] = []
    for guideline in guidelines:
        if is_decided_by_code(guideline):
            continue
        to_judge.append(guideline)
        if isinstance(guideline.condition, str) and not guideline.always_judge:
            optional.append(guideline)
        else:
            required.append(guideline)
    size = _choose_batch_size(len(to_judge))
    if batch_size is not None:
        size = require_count("batch_size", batch_size)
    if max_judged is not None:
        require_count("max_judged", max_judged)
    if max_judged is None or len(optional) <= max_judged:
        # Guidelines that a tool's result may activate come first, so that a re-match asks as few batches as it can.
        to_judge.sort(key=lambda guideline: guideline.sensitive_to_tools is False)
        return _split(to_judge, size), None
    # In the order of the specification, in which neighbours are often about the same subject.
    optional_groups = _split(optional, size)
    preselection = Preselection(optional_groups, ceil(max_judged / size), embeddings)
    return optional_groups + _split(required, size), preselection


def is_decided_by_code(guideline: Guideline) -> bool:
    """Return True if code evaluates the condition, and the action is continuous or missing."""
    has_condition_in_code = not isinstance(guideline.condition, str)
    return has_condition_in_code and (guideline.continuous is True or guideline.action is None)


def _choose_batch_size(count: int) -> int:
    """Return about 5 for up to 100 guidelines and about 10 from 200 on, and never leave a much smaller last batch."""
    preferred_size = min(10, max(5, count / 20))
    batch_count = max(1, round(count / preferred_size))
    return max(1, ceil(count / batch_count))


def _split(guidelines: Sequence[Guideline], size: int) -> list[Sequence[Guideline]]:
    return [guidelines[start : start + size] for start in range(0, len(guidelines), size)]
