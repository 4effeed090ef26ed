"""The public data of WebShop, MultiWOZ and ALFWorld as suites for `evaluate`.

Each function reads a data set as it was unpacked in `folder`, writes a suite of at most `most` scenarios into the new
folder `out`, logs how many it wrote and skipped, and returns the suite's file. It raises `InputError` where a file is
missing or not as published, where no task is left, or where `out` exists.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired

import yaml
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from arq_graph.agent.parts import Text
from arq_graph.errors import InputError, require_count
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.suites.household.world import CHANGES, LAMP, kind_of, preposition

SUITES = Path(__file__).parent
House = dict[str, list[str]]

_log = logging.getLogger(__name__)

_WISHES = {
    "hotel": "I am looking for a place to stay.",
    "restaurant": "I am looking for a place to eat.",
    "attraction": "I am looking for a place to visit.",
    "train": "I am looking for a train.",
    "taxi": "I need a taxi.",
}
_SLOTS = {
    "pricerange": "price_range",
    "leaveat": "leave_at",
    "arriveby": "arrive_by",
    "trainid": "name",
    "stay": "nights",
    "entrance fee": "entrance_fee",
    "openhours": "opening_hours",
    "car type": "car",
}
_ERRANDS = {
    "pick_and_place_simple": ("place", "pick and place", "Put a {} in or on a {}."),
    "look_at_obj_in_light": ("light", "examine in light", "Look at a {} in the light of the lamp."),
    "pick_clean_then_place_in_recep": ("clean", "clean and place", "Put a clean {} in or on a {}."),
    "pick_heat_then_place_in_recep": ("heat", "heat and place", "Put a hot {} in or on a {}."),
    "pick_cool_then_place_in_recep": ("cool", "cool and place", "Put a cold {} in or on a {}."),
    "pick_two_obj_and_place": ("two", "pick two and place", "Put two things of the kind {} in or on a {}."),
}
_OF_MULTIWOZ = "MultiWOZ 2.0, 2.1 or 2.4 (2.3 needs the databases of 2.1 beside it; 2.2 has another format)"
_LEFT_OUT = ("id", "introduction")
_ANY = ("", "dontcare", "dont care", "don't care", "do n't care", "not mentioned")


class _Option(TypedDict):
    value: str


class _Item(TypedDict):
    asin: str
    pricing: NotRequired[str | None]
    customization_options: NotRequired[dict[str, list[_Option] | None] | Literal[""] | None]


class _Task(TypedDict):
    instruction: str
    instruction_attributes: list[str]
    instruction_options: NotRequired[list[str] | dict[str, str] | None]


class _Entity(TypedDict):
    name: Text


class _Train(TypedDict):
    trainID: Text


class _Wished(TypedDict, total=False):
    info: dict[str, Any]
    book: dict[str, Any]
    fail_info: dict[str, Any]
    fail_book: dict[str, Any]
    reqt: list[str]


class _Goal(TypedDict, total=False):
    hotel: _Wished
    restaurant: _Wished
    attraction: _Wished
    train: _Wished
    taxi: _Wished


class _Dialogue(TypedDict):
    goal: _Goal


class _Game(TypedDict):
    pddl_problem: Text


def webshop(folder: Path, out: Path, most: int = 100) -> Path:
    """WebShop's products, and the tasks that people wrote for them, from the smallest of the files of each name.

    Nothing is drawn by chance: a product without a price costs 100 dollars, of a range of prices the first holds, and a
    task's limit is the second multiple of ten above the price. In place of WebShop's factor for the kind of product,
    the query by which a product was collected is one more wanted attribute.
    """
    told = _read(folder, "items_ins_v2*.json", dict[str, dict[str, Any]], "WebShop")
    tasks = _read(folder, "items_human_ins.json", dict[str, list[_Task]], "WebShop")
    products: dict[str, dict[str, Any]] = {}
    for item in _read(folder, "items_shuffle*.json", list[_Item], "WebShop"):
        id = item["asin"]
        if id != "nan" and item.get("name") and item.get("query") and id not in products:
            products[id] = _product(item, told.get(id, {}).get("attributes") or ())
    found = (
        _purchase(products.get(id), task, f"{id} {number}")
        for id in products | tasks
        for number, task in enumerate(tasks.get(id, ()), start=1)
    )
    return _write(out, "shop", found, most, {"catalogue.json": list(products.values())})


def multiwoz(folder: Path, out: Path, most: int = 100) -> Path:
    """MultiWOZ's database, and the goals of its dialogues.

    What a dialogue's customer tries first (`fail_info`, `fail_book`) the simulated one asks for, and falls back to what
    can be had; the desk refuses a booking that is to fail. Taxis are the shipped suite's. Dialogues that need the
    police or a hospital are left out.
    """
    database = {}
    for domain in ("hotel", "restaurant", "attraction", "train"):
        shape = list[_Train] if domain == "train" else list[_Entity]
        database[domain] = [*map(_renamed, _read(folder, f"{domain}_db.json", shape, _OF_MULTIWOZ))]
    database["taxi"] = json.loads((SUITES / "booking" / "database.json").read_text(encoding="utf-8"))["taxi"]
    dialogues = _read(folder, "data.json", dict[str, _Dialogue], _OF_MULTIWOZ)
    files = dict[str, Any]({"database.json": database})
    found = (_talk(name.removesuffix(".json"), each["goal"], files) for name, each in dialogues.items())
    return _write(out, "booking", found, most, files)


def alfworld(folder: Path, out: Path, most: int = 134) -> Path:
    """ALFWorld's houses and tasks, of `TASK-THING-None-PLACE-SCENE/TRIAL/game.tw-pddl`, as in `valid_unseen`.

    What is in a house, where it lies and what there is to do are ALFWorld's. The actions, and what they show, are the
    shipped household's: neither TextWorld nor a planner is needed, and figures are not those of ALFWorld's own engine.
    A basin is a sink, the lamp of a task `lamp 1`, and of the things for a pair two are kept. A house is left out where
    the lamp stands on the floor, or where the task cannot be done.
    """
    houses: dict[str, House] = {}
    found = (_errand(game, houses) for game in _files(folder, "game.tw-pddl", "ALFWorld"))
    return _write(out, "household", found, most, {"houses.json": houses})


def _files(folder: Path, pattern: str, of: str) -> list[Path]:
    if not (files := sorted(folder.rglob(pattern))):
        raise InputError(f"{folder} has no {pattern}: give the unpacked folder of {of}")
    return files


def _read(folder: Path, pattern: str, shape: Any, of: str) -> Any:
    """The smallest of the files of such a name, with all that it holds, once what is needed of it is there."""
    file = min(_files(folder, pattern, of), key=lambda file: file.stat().st_size)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        TypeAdapter(shape).validate_python(found)
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        place = "".join(f"[{key!r}]" for key in wrong["loc"]) or "all of it"
        raise InputError(
            f"{file}: {place}: {wrong['msg']}; that is not as in {of}: unpack the data again"
        ) from None
    except ValueError as error:
        raise InputError(f"{file} is no JSON: {error}") from None
    return found


def _write(out: Path, shipped: str, found: Iterable[Any], most: int, files: Mapping[str, Any]) -> Path:
    """Copy the shipped suite with these files, and as many of the scenarios found; a text is why a task is none."""
    require_count("most", most)
    if out.exists():
        raise InputError(f"{out} exists: give a folder that is new")
    scenarios, skipped = list[Any](), Counter[str]()
    for each in found:
        if isinstance(each, str):
            skipped[each] += 1
            continue
        scenarios.append(each)
        if len(scenarios) == most:
            break
    told = "".join(f"\n{count} skipped, because {why}" for why, count in skipped.items())
    if not scenarios:
        raise InputError(f"the data has no task that the suite {shipped!r} can hold{told}")
    shutil.copytree(SUITES / shipped, out, ignore=shutil.ignore_patterns("__pycache__"))
    for name, data in files.items():
        (out / name).write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    suite = {"defaults": {"agent": "agent.yaml"}, "scenarios": scenarios}
    (out / "suite.yaml").write_text(yaml.safe_dump(suite, sort_keys=False), encoding="utf-8")
    tasks = "1 task" if len(scenarios) == 1 else f"{len(scenarios)} tasks"
    _log.info("%s: %s written%s", out / "suite.yaml", tasks, told)
    return out / "suite.yaml"


def _product(item: Mapping[str, Any], attributes: Iterable[str]) -> dict[str, Any]:
    price = re.search(r"\d[\d,]*(?:\.\d+)?", item.get("pricing") or "")
    options = (item.get("customization_options") or {}).items()
    values = {name.lower(): _values(each["value"] for each in listed or ()) for name, listed in options}
    lines = item.get("small_description") or ()
    lines = [item.get("full_description") or "", *([lines] if isinstance(lines, str) else lines)]
    return {
        "id": item["asin"],
        "name": item["name"],
        "kind": item["query"],
        "price": float(price[0].replace(",", "")) if price else 100.0,
        "features": [each for each in attributes if each.strip()],
        "description": "\n".join(lines),
        "options": {name: listed for name, listed in values.items() if listed},
    }


def _purchase(product: Mapping[str, Any] | None, task: Mapping[str, Any], name: str) -> dict[str, Any] | str:
    if product is None:
        return "the product is not listed with a name and a query"
    if not task["instruction_attributes"]:
        return "no attribute is wanted"
    limit = 10.0 * (product["price"] // 10 + 2)
    wanted = task.get("instruction_options") or ()
    options = _values(wanted.values() if isinstance(wanted, Mapping) else wanted)
    attributes = [product["kind"], *task["instruction_attributes"]]
    request = f"{task['instruction'].rstrip(' .')}, and price lower than {limit:.2f} dollars"
    known = (each.partition(":") for each in task.get("options") or ())
    knowledge = {option.strip(): value.strip() for option, _, value in known if value.strip()}
    return {
        "name": name,
        "milestones": "with-options.yaml" if options else "without-options.yaml",
        "world": {"of": "world:Shop", "goal": {"attributes": attributes, "options": options, "price": limit}},
        "user": {"role": "guide", "intents": [{"request": request}], "knowledge": knowledge},
    }


def _values(given: Iterable[str]) -> list[str]:
    """Values of options as WebShop writes them on its buttons, each once."""
    return list(dict.fromkeys(filter(None, (each.strip().replace("/", " | ").lower() for each in given))))


def _renamed(values: Mapping[str, Any] | None) -> dict[str, Any]:
    """What is said in words, by our names for it; what does not matter is left out."""
    said = {slot.lower(): value for slot, value in (values or {}).items() if isinstance(value, str)}
    return {
        _SLOTS.get(slot, slot): value
        for slot, value in said.items()
        if slot not in _LEFT_OUT and value.lower() not in _ANY
    }


def _talk(name: str, goal: Mapping[str, Any], files: dict[str, Any]) -> dict[str, Any] | str:
    if goal.get("police") or goal.get("hospital"):
        return "the police or a hospital is needed"
    given = {domain: goal[domain] for domain in _WISHES if goal.get(domain)}
    if not given:
        return "the goal is empty"
    wishes = {domain: _wish(domain, each) for domain, each in given.items()}
    tools = list(_tools(wishes))
    graph = f"milestones/{'-'.join(tools)}.yaml"
    files[graph] = MilestoneGraph.from_actions(({"tool": each} for each in tools), ordered=False).to_yaml()
    intents = [_intent(domain, each, wishes[domain]) for domain, each in given.items()]
    world = {"of": "world:BookingDesk", "goal": wishes}
    return {"name": name, "milestones": graph, "world": world, "user": {"intents": intents}}


def _wish(domain: str, given: Mapping[str, Any]) -> dict[str, Any]:
    find, book, full = (_renamed(given.get(key)) for key in ("info", "book", "fail_book"))
    request = [_SLOTS.get(each.lower(), each.lower()) for each in given.get("reqt", ())]
    if domain == "taxi":  # it is not found: all that is said of it is said of the booking
        return {"book": find, "request": request}
    wish = {"find": find, "book": book, "request": request, "full": [full] if full else []}
    return {key: value for key, value in wish.items() if value}


def _tools(wishes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for domain, wish in wishes.items():
        yield "order_taxi" if domain == "taxi" else f"find_{domain}s"
        if domain != "taxi" and "book" in wish:
            yield f"book_{domain}"


def _intent(domain: str, given: Mapping[str, Any], wish: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {**wish.get("find", {}), **wish.get("book", {})}
    first = wanted | _renamed(given.get("fail_info")) | _renamed(given.get("fail_book"))
    changed = [f"{slot} {value}" for slot, value in wanted.items() if first[slot] != value]
    asks = [_WISHES[domain], *(["Please book it."] if "book" in wish else [])]
    asks += [f"Please tell me: {', '.join(wish['request'])}."] if wish.get("request") else []
    intent = {"request": " ".join(asks), "slots": first}
    return intent | ({"fallback": f"Then rather with {', '.join(changed)}."} if changed else {})


def _errand(game: Path, houses: dict[str, House]) -> dict[str, Any] | str:
    """One game of ALFWorld as a scenario, whose house is added; a text says why the household cannot have it."""
    named = game.parent.parent.name.split("-")
    if len(named) != 5 or named[0] not in _ERRANDS or named[2] != "None":
        return "the household has no task of that kind"
    (task, use_case, words), thing, target = _ERRANDS[named[0]], named[1].lower(), named[3].lower()
    renamed = {"sinkbasin": "sink"} | ({target: "lamp"} if task == "light" else {})
    ends = "" if task == "light" else renamed.get(target, target)
    house = _house(_read(game.parent, game.name, _Game, "ALFWorld")["pddl_problem"], renamed)
    lying = {each: place for place, held in house.items() for each in held}
    found = sorted(each for each in lying if kind_of(each) == thing)
    needed = {ends or "lamp", *CHANGES.get(task, ())[:1]}
    if not needed <= set(map(kind_of, [*house, *lying])) or len(found) < 1 + (task == "two"):
        return "the house lacks what is needed"
    for each in found[2:] if task == "two" else ():
        house[lying.pop(each)].remove(each)
    knowledge = {}
    for kind in (thing, "lamp") if task == "light" else (thing,):
        where = [f"{preposition(place)} {place}" for each, place in lying.items() if kind_of(each) == kind]
        knowledge[kind] = (" and " if task == "two" else " or ").join(where)
    name = f"{game.parent.parent.name} {game.parent.name}"
    houses[name] = house
    return {
        "name": name,
        "use_case": use_case,
        "milestones": f"{task}.yaml",
        "world": {"of": "world:Household", "task": task, "thing": thing, "target": ends, "house": name},
        "user": {"role": "guide", "intents": [words.format(thing, ends)], "knowledge": knowledge},
    }


def _house(problem: str, renamed: Mapping[str, str]) -> House:
    """The places of a planning problem, each with the things in it that can be moved, and the lamp if one is named."""
    facts = [fact.split() for fact in re.findall(r"\(([^()]+)\)", problem.partition("(:goal")[0])]
    movable = {fact[1] for fact in facts if fact[0] == "pickupable"}
    places, things = (_numbered(facts, what, renamed) for what in ("receptacleType", "objectType"))
    house: House = {place: [] for place in places.values()}
    for id, place in (fact[1:] for fact in facts if fact[0] == "inReceptacle" and len(fact) == 3):
        if place in places and id in things and (id in movable or things[id] == LAMP):
            house[places[place]].append(things[id])
    return house


def _numbered(facts: Iterable[list[str]], what: str, renamed: Mapping[str, str]) -> dict[str, str]:
    """Names such as `cabinet 2` for the ids of a problem, by the facts that tell their types."""
    names: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for _, id, type_name in sorted(fact for fact in facts if fact[0] == what and len(fact) == 3):
        kind = type_name.removesuffix("Type").lower()
        kind = renamed.get(kind, kind)
        counts[kind] += 1
        names[id] = f"{kind} {counts[kind]}"
    return names


if __name__ == "__main__":
    adapters = {each.__name__: each for each in (webshop, multiwoz, alfworld)}
    parser = argparse.ArgumentParser(prog="python -m arq_graph.milestones.suites.adapters")
    parser.add_argument("name", choices=adapters)
    parser.add_argument("folder", type=Path, help="the unpacked data set")
    parser.add_argument("out", type=Path, help="a new folder for the suite")
    parser.add_argument("most", type=int, nargs="?", help="how many tasks to write, at most")
    given = {key: value for key, value in vars(parser.parse_args()).items() if value is not None}
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        adapters[given.pop("name")](**given)
    except (InputError, OSError) as error:
        raise SystemExit(str(error)) from None
