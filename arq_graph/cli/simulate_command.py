"""`arq-graph simulate`: its options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from arq_graph.cli.failures import reported
from arq_graph.cli.options import BaseUrl, Debug, Judge, Model, SuiteFile, UserModel, choices_of, loading

UserKind = Literal["helpful", "perturbed", "unhelpful"]


def simulate(
    suite: SuiteFile,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Which one. Else the first.")
    ] = None,
    arm: Annotated[
        str, typer.Option(metavar="NAME", help="guided, react, pre-act, …, as for `evaluate`.")
    ] = "guided",
    kind: Annotated[
        UserKind | None, typer.Option("--kind", help="What the user knows. Else as the scenario says.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Else that of the suite's first run.")] = None,
    model: Model = None,
    user_model: UserModel = None,
    judge: Judge = None,
    base_url: BaseUrl = None,
    debug: Debug = False,
) -> None:
    """Watch one conversation of a simulated user with an agent, and the milestones as they are reached."""
    with reported(debug):
        choice, users, judges = choices_of(model, user_model, judge, base_url)
        with loading():
            from arq_graph.cli.simulate import WantedConversation, watch_conversation
        watch_conversation(WantedConversation(suite, arm, choice, scenario, kind, seed, users, judges))
