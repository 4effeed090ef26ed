"""MultiWOZ (Budzianowski et al. 2018) as a suite: its database, and the goals of its dialogues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from arq_graph.milestones import MilestoneGraph, dump_milestones
from examples.public_data.suite_writer import (
    SHIPPED_SUITES,
    NonEmptyText,
    SkippedTask,
    read_smallest,
    write_suite,
)

DATA_SET = "MultiWOZ 2.0, 2.1 or 2.4 (2.3 needs the databases of 2.1 beside it; 2.2 has another format)"
WISHES = {
    "hotel": "I am looking for a place to stay.",
    "restaurant": "I am looking for a place to eat.",
    "attraction": "I am looking for a place to visit.",
    "train": "I am looking for a train.",
    "taxi": "I need a taxi.",
}
SLOT_NAMES = {
    "pricerange": "price_range",
    "leaveat": "leave_at",
    "arriveby": "arrive_by",
    "trainid": "name",
    "stay": "nights",
    "entrance fee": "entrance_fee",
    "openhours": "opening_hours",
    "car type": "car",
}
IGNORED_SLOTS = ("id", "introduction")
ANY_VALUE = ("", "dontcare", "dont care", "don't care", "do n't care", "not mentioned")

Goal = Mapping[str, Any]
Wish = dict[str, Any]


class _Entity(TypedDict):
    name: NonEmptyText


class _Train(TypedDict):
    trainID: NonEmptyText


class _DomainGoal(TypedDict, total=False):
    info: dict[str, Any]
    book: dict[str, Any]
    fail_info: dict[str, Any]
    fail_book: dict[str, Any]
    reqt: list[str]


class _Goal(TypedDict, total=False):
    hotel: _DomainGoal
    restaurant: _DomainGoal
    attraction: _DomainGoal
    train: _DomainGoal
    taxi: _DomainGoal


class _Dialogue(TypedDict):
    goal: _Goal


def write_multiwoz_suite(folder: Path, out: Path, limit: int = 100) -> Path:
    """Write the goals of MultiWOZ's dialogues as a suite of the shipped booking desk, with MultiWOZ's database.

    A dialogue's customer may first try what can't be had (`fail_info`, `fail_book`): the simulated customer asks for
    that, and falls back to what can be had; the desk refuses a booking that is to fail. Taxis are those of the shipped
    suite. Dialogues that need the police or a hospital are skipped.

    Args:
        folder: The unpacked data.
        out: A new folder for the suite.
        limit: The number of tasks, at most.

    Raises:
        InputError: A file is missing or isn't as published, no task is left, or `out` exists.
    """
    database = {}
    for domain in ("hotel", "restaurant", "attraction", "train"):
        shape = list[_Train] if domain == "train" else list[_Entity]
        entities = read_smallest(folder, f"{domain}_db.json", shape, DATA_SET)
        database[domain] = [_rename_slots(entity) for entity in entities]
    shipped_database = (SHIPPED_SUITES / "booking" / "database.json").read_text(encoding="utf-8")
    database["taxi"] = json.loads(shipped_database)["taxi"]
    dialogues = read_smallest(folder, "data.json", dict[str, _Dialogue], DATA_SET)
    files: dict[str, Any] = {"database.json": database}
    return write_suite(out, "booking", _make_scenarios(dialogues, files), limit, files)


def _make_scenarios(
    dialogues: Mapping[str, _Dialogue], files: dict[str, Any]
) -> Iterator[dict[str, Any] | SkippedTask]:
    """Yield a scenario for each dialogue, and add the milestone file that it names to `files`."""
    for file_name, dialogue in dialogues.items():
        goal: Goal = dialogue["goal"]
        if goal.get("police") or goal.get("hospital"):
            yield SkippedTask("the police or a hospital is needed")
            continue
        domain_goals = {domain: goal[domain] for domain in WISHES if goal.get(domain)}
        if not domain_goals:
            yield SkippedTask("the goal is empty")
            continue
        wishes = {domain: _make_wish(domain, domain_goals[domain]) for domain in domain_goals}
        intents = [_make_intent(domain, domain_goals[domain], wishes[domain]) for domain in wishes]
        tools = list(_list_tools(wishes))
        milestone_file = f"milestones/{'-'.join(tools)}.yaml"
        actions = [{"tool": tool} for tool in tools]
        graph = MilestoneGraph.from_actions(actions, ordered=False)
        files[milestone_file] = dump_milestones(graph)
        yield {
            "name": file_name.removesuffix(".json"),
            "milestones": milestone_file,
            "world": {"of": "world:BookingDesk", "goal": wishes},
            "user": {"intents": intents},
        }


def _make_wish(domain: str, goal: Goal) -> Wish:
    """Return what the customer wants in a domain, as the booking desk judges it."""
    requested = [SLOT_NAMES.get(slot.lower(), slot.lower()) for slot in goal.get("reqt", ())]
    constraints = _rename_slots(goal.get("info"))
    if domain == "taxi":  # a taxi isn't searched for: all constraints are those of the booking
        return {"book": constraints, "request": requested}
    wish: Wish = {}
    if constraints:
        wish["find"] = constraints
    if booking := _rename_slots(goal.get("book")):
        wish["book"] = booking
    if requested:
        wish["request"] = requested
    if refused_booking := _rename_slots(goal.get("fail_book")):
        wish["full"] = [refused_booking]
    return wish


def _list_tools(wishes: Mapping[str, Wish]) -> Iterator[str]:
    for domain, wish in wishes.items():
        if domain == "taxi":
            yield "order_taxi"
            continue
        yield f"find_{domain}s"
        if "book" in wish:
            yield f"book_{domain}"


def _make_intent(domain: str, goal: Goal, wish: Wish) -> dict[str, Any]:
    """Return what the simulated customer says: first what can't be had, if there is something, then the fallback."""
    attainable = wish.get("find", {}) | wish.get("book", {})
    first_try = attainable | _rename_slots(goal.get("fail_info")) | _rename_slots(goal.get("fail_book"))
    sentences = [WISHES[domain]]
    if "book" in wish:
        sentences.append("Please book it.")
    if wish.get("request"):
        sentences.append(f"Please tell me: {', '.join(wish['request'])}.")
    intent = {"request": " ".join(sentences), "slots": first_try}
    changes = [f"{slot} {value}" for slot, value in attainable.items() if first_try[slot] != value]
    if changes:
        intent["fallback"] = f"Then rather with {', '.join(changes)}."
    return intent


def _rename_slots(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the texts by our slot names, without slots that are ignored and values that don't matter."""
    renamed = {}
    for name, value in (values or {}).items():
        slot = SLOT_NAMES.get(name.lower(), name.lower())
        is_constraint = isinstance(value, str) and value.lower() not in ANY_VALUE
        if is_constraint and slot not in IGNORED_SLOTS:
            renamed[slot] = value
    return renamed
