"""The ways that win in the household, as one who knows the house goes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from arq_graph.milestones.suites.household.world import CHANGES, CLOSED, LAMP, get_kind, get_preposition

SUITE = Path(__file__).parents[2] / "milestones" / "suites" / "household" / "suite.yaml"


def way(world: Any) -> list[str]:
    """Actions that do the task from the beginning."""
    world.reset()
    things = [thing for thing in world.where if get_kind(thing) == world.thing]
    things = things[: 2 if world.task == "two" else 1]
    actions: list[str] = []

    def to(place: str) -> None:
        actions.append(f"go to {place}")
        if get_kind(place) in CLOSED and f"open {place}" not in actions:
            actions.append(f"open {place}")

    # Both end in one place, or on it.
    target = next((place for place in world.house if get_kind(place) == world.target), "")
    for thing in things:
        to(world.where[thing])
        actions.append(f"take {thing} from {world.where[thing]}")
        if world.task in CHANGES:
            kind, _ = CHANGES[world.task]
            actions += [f"go to {kind} 1", f"{world.task} {thing} in {kind} 1"]
        if not target:
            actions += [f"go to {world.where[LAMP]}", f"use {LAMP}"]
            continue
        to(target)
        actions.append(f"put {thing} {get_preposition(target)} {target}")
    return actions
