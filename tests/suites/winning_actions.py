"""Actions that do a task of the household, for one who knows where everything is."""

from typing import Any

from arq_graph.milestones.suites.household.world import CHANGES, CLOSED, LAMP, get_kind, get_preposition


def winning_actions(world: Any) -> list[str]:
    """Return actions that do the world's task from the beginning."""
    world.reset()
    things = [thing for thing in world.where if get_kind(thing) == world.thing]
    things = things[: 2 if world.task == "two" else 1]
    target = next((place for place in world.house if get_kind(place) == world.target), None)
    actions: list[str] = []

    def go_to(place: str) -> None:
        actions.append(f"go to {place}")
        if get_kind(place) in CLOSED and f"open {place}" not in actions:
            actions.append(f"open {place}")

    for thing in things:
        go_to(world.where[thing])
        actions.append(f"take {thing} from {world.where[thing]}")
        if world.task in CHANGES:
            kind, _ = CHANGES[world.task]
            actions += [f"go to {kind} 1", f"{world.task} {thing} in {kind} 1"]
        if target is None:
            actions += [f"go to {world.where[LAMP]}", f"use {LAMP}"]
            continue
        go_to(target)
        actions.append(f"put {thing} {get_preposition(target)} {target}")
    return actions
