"""WebShop (Yao et al. 2022) as a suite: its products, and the tasks that people wrote for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from examples.public_data.suite_writer import SkippedTask, read_smallest, write_suite

DEFAULT_PRICE = 100.0


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


def write_webshop_suite(folder: Path, out: Path, limit: int = 100) -> Path:
    """Write WebShop's tasks as a suite of the shipped shop, from the smallest of the files of each name.

    Nothing is drawn by chance: a product without a price costs 100 dollars, the first of a range of prices holds, and
    a task's limit is the second multiple of ten above the price. Instead of WebShop's factor for the kind of product,
    the query by which a product was collected is one more wanted attribute.

    Args:
        folder: The unpacked data.
        out: A new folder for the suite.
        limit: The number of tasks, at most.

    Raises:
        InputError: A file is missing or isn't as published, no task is left, or `out` exists.
    """
    attributes = read_smallest(folder, "items_ins_v2*.json", dict[str, dict[str, Any]], "WebShop")
    tasks = read_smallest(folder, "items_human_ins.json", dict[str, list[_Task]], "WebShop")
    items = read_smallest(folder, "items_shuffle*.json", list[_Item], "WebShop")
    products: dict[str, dict[str, Any]] = {}
    for item in items:
        product_id = item["asin"]
        is_listed = item.get("name") and item.get("query") and product_id != "nan"
        if is_listed and product_id not in products:
            features = attributes.get(product_id, {}).get("attributes") or ()
            products[product_id] = _make_product(item, features)
    scenarios = _make_scenarios(products, tasks)
    return write_suite(out, "shop", scenarios, limit, {"catalogue.json": list(products.values())})


def _make_product(item: Mapping[str, Any], features: Iterable[str]) -> dict[str, Any]:
    price = re.search(r"\d[\d,]*(?:\.\d+)?", item.get("pricing") or "")
    details = item.get("small_description") or []
    if isinstance(details, str):
        details = [details]
    options = {}
    for name, choices in (item.get("customization_options") or {}).items():
        values = _normalize_options(choice["value"] for choice in choices or ())
        if values:
            options[name.lower()] = values
    return {
        "id": item["asin"],
        "name": item["name"],
        "kind": item["query"],
        "price": float(price[0].replace(",", "")) if price else DEFAULT_PRICE,
        "features": [feature for feature in features if feature.strip()],
        "description": "\n".join([item.get("full_description") or "", *details]),
        "options": options,
    }


def _make_scenarios(
    products: Mapping[str, Mapping[str, Any]], tasks: Mapping[str, list[_Task]]
) -> Iterator[dict[str, Any] | SkippedTask]:
    for product_id in dict.fromkeys([*products, *tasks]):
        for number, task in enumerate(tasks.get(product_id, ()), start=1):
            product = products.get(product_id)
            if product is None:
                yield SkippedTask("the product is not listed with a name and a query")
            elif not task["instruction_attributes"]:
                yield SkippedTask("no attribute is wanted")
            else:
                yield _make_scenario(product, task, f"{product_id} {number}")


def _make_scenario(product: Mapping[str, Any], task: Mapping[str, Any], name: str) -> dict[str, Any]:
    price_limit = 10.0 * (product["price"] // 10 + 2)
    options = task.get("instruction_options") or ()
    if isinstance(options, Mapping):
        options = options.values()
    options = _normalize_options(options)
    goal = {
        "attributes": [product["kind"], *task["instruction_attributes"]],
        "options": options,
        "price": price_limit,
    }
    knowledge = {}
    for listed in task.get("options") or ():
        option, _, value = listed.partition(":")
        if value.strip():
            knowledge[option.strip()] = value.strip()
    request = f"{task['instruction'].rstrip(' .')}, and price lower than {price_limit:.2f} dollars"
    return {
        "name": name,
        "milestones": "with-options.yaml" if options else "without-options.yaml",
        "world": {"of": "world:Shop", "goal": goal},
        "user": {"role": "guide", "intents": [{"request": request}], "knowledge": knowledge},
    }


def _normalize_options(values: Iterable[str]) -> list[str]:
    """Return the values as WebShop writes them on its buttons, each once."""
    labels = {}
    for value in values:
        label = value.strip().replace("/", " | ").lower()
        if label:
            labels[label] = True
    return list(labels)
