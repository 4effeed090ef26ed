"""The models of an evaluation: those of the arms, the users and the judge, and whose the base URL is."""

from __future__ import annotations

import os

from arq_graph.cli.options import choice_of
from arq_graph.cli.settings import OFFLINE, ModelChoice

Choices = tuple[ModelChoice, ModelChoice | None, ModelChoice | None]


def choices_of(model: str | None, user_model: str | None, judge: str | None, base_url: str | None) -> Choices:
    """The models of the arms, of the users and of the judge.

    The base URL is for those that take one. Where none does it is given to all, so that it is refused.

    Args:
        model: `--model`; None: what the environment names.
        user_model: `--user-model`; None: no model plays the users.
        judge: `--judge`; None: no judge.
        base_url: `--base-url`.

    Raises:
        InputError: An endpoint without a model, or one that is no URL.
    """
    arms = (model or os.environ.get("ARQ_GRAPH_MODEL") or "").strip()
    others = [each.strip() for each in (user_model, judge) if each]
    somebody_takes_it = any(spec != OFFLINE for spec in (arms, *others))

    def url_of(spec: str) -> str | None:
        return None if somebody_takes_it and spec.strip() == OFFLINE else base_url

    return (
        choice_of(model, url_of(arms)),
        choice_of(user_model, url_of(user_model)) if user_model else None,
        choice_of(judge, url_of(judge)) if judge else None,
    )
