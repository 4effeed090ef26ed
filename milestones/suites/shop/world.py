"""A shop's website made of text, in the manner of WebShop (Yao et al. 2022): search, look, pick options, buy."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from arq_graph.agent.environment import Observation
from arq_graph.agent.part import Part, Text
from arq_graph.milestones.users.agent_message import split_into_words

CATALOGUE: list[Mapping[str, object]] = json.loads(Path(__file__).with_name("catalogue.json").read_bytes())
PER_PAGE = 8
_ACTION = re.compile(r"\s*(search|click)\s*:\s*(\S.*?)\s*", re.DOTALL)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_ENDING = re.compile(r"(?:ies|es|s|y|e)$")
_IGNORED_WORDS = frozenset(
    ("a", "an", "and", "are", "for", "in", "is", "it", "of", "on", "or", "that", "the", "to", "with")
)


class Product(Part):
    """Something that can be bought; of its options one value each can be picked."""

    id: Text
    name: Text
    kind: str = ""
    price: float
    features: tuple[Text, ...] = ()
    description: str = ""
    options: Mapping[str, tuple[Text, ...]] = {}

    def has(self, attribute: str) -> bool:
        """Return True if its name, a feature or a sentence of its description has all words of an attribute."""
        texts = [f"{self.kind} {self.name}", *self.features, *_SENTENCE_END.split(self.description)]
        terms = extract_terms(attribute)
        return any(terms <= extract_terms(text) for text in texts)


class Wanted(Part):
    """The goal of a customer; a purchase is judged by all of it (ReSpAct, 4.3).

    Args:
        attributes: The attributes that the product must have, its kind among them.
        options: The values that must be picked.
        price: The highest acceptable price; None: any.
    """

    attributes: tuple[Text, ...] = ()
    options: tuple[Text, ...] = ()
    price: float | None = None

    def check_purchase(self, product: Product, picked: Mapping[str, str]) -> list[bool]:
        """Return, for each thing that is wanted, if a purchase covers it."""
        picked_values = [value.casefold() for value in picked.values()]
        checks = list(map(product.has, self.attributes))
        for option in self.options:
            checks.append(option.casefold() in picked_values)
        if self.price is not None:
            checks.append(product.price <= self.price)
        return checks


class Shop:
    """The website, an `Environment`: the same actions always show the same.

    Actions are `search: words` and `click: button`, with the buttons that the page shows. Nothing has to be picked
    before something is bought; buying ends the visit.

    Args:
        goal: The customer's goal; see `Wanted`.

    Attributes:
        done: True once something was bought.
        score: The share of what is wanted that the purchase covers; 0 before it.
    """

    def __init__(self, goal: Mapping[str, object]) -> None:
        self.goal = Wanted.model_validate(goal)
        self.reset()

    def reset(self) -> str:
        """Begin a new visit."""
        self.done, self.score = False, 0.0
        self._results: list[Product] = []
        self._picked: dict[str, str] = {}
        self._open_page(0)
        return "Welcome to the shop. You can search for something."

    def actions(self) -> None:
        """Return None, as any words can be searched for."""

    def outcome(self) -> dict[str, bool | float]:
        """Return `score`, the share of wanted attributes, options and price that was covered, and `success`."""
        return {"score": self.score, "success": self.score == 1.0, "bought": self.done}

    def step(self, action: str) -> Observation:
        """Take an action; one that the page does not have changes nothing."""
        verb, argument = "", ""
        if match := _ACTION.fullmatch(action.casefold()):
            verb, argument = match.groups()
        buttons = {label.casefold(): press for label, press in self._list_buttons().items()}
        if verb == "search" and not self.done:
            self._results = search(argument)
            self._open_page(0)
        elif verb == "click" and argument in buttons:
            buttons[argument]()
        else:
            message = f"Nothing happened: there is no {action!r} here.\n{self._render_page()}"
            return Observation(message, valid=False)
        return Observation(self._render_page())

    def _list_products_on_page(self) -> list[Product]:
        start = self._page * PER_PAGE
        return self._results[start : start + PER_PAGE]

    def _list_buttons(self) -> Mapping[str, Callable[[], None]]:
        """Return what each button of the page does, by its label."""
        if self.done:
            return {}
        buttons: dict[str, Callable[[], None]] = {}
        if self._product is None:
            for product in self._list_products_on_page():
                buttons[product.id] = partial(self._open_page, self._page, product)
            if self._page > 0:
                buttons["previous"] = partial(self._open_page, self._page - 1)
            if (self._page + 1) * PER_PAGE < len(self._results):
                buttons["next"] = partial(self._open_page, self._page + 1)
            return buttons
        for name, values in self._product.options.items():
            for value in values:
                buttons[f"{name}: {value}"] = partial(self._picked.update, {name: value})
        buttons["back"] = partial(self._open_page, self._page)
        buttons["buy"] = partial(self._buy, self._product)
        return buttons

    def _open_page(self, page: int, product: Product | None = None) -> None:
        self._page, self._product, self._picked = page, product, {}

    def _buy(self, product: Product) -> None:
        checks = self.goal.check_purchase(product, self._picked)
        self.done = True
        self.score = sum(checks) / (len(checks) or 1)

    def _render_page(self) -> str:
        picked = ", ".join(f"{option}: {value}" for option, value in self._picked.items()) or "nothing"
        product = self._product
        if product is None:
            lines = [f"Found: {len(self._results)}. Page {self._page + 1}:"]
            for result in self._list_products_on_page():
                lines.append(f"{result.id}: {result.name}, ${result.price:.2f}")
        elif self.done:
            return f"Bought: {product.name}, ${product.price:.2f}; picked: {picked}. The visit is over."
        else:
            lines = [
                f"{product.name}, ${product.price:.2f}",
                f"{'; '.join(product.features)}. {product.description}",
                f"Picked: {picked}.",
            ]
        buttons = "][".join(self._list_buttons())
        if buttons:
            lines.append(f"[{buttons}]")
        return "\n".join(lines)


def search(words: str) -> list[Product]:
    """Return the products with any of the words, best first; equally good ones in the catalogue's order.

    A word counts the more the fewer products have it.
    """
    products, index = _read_catalogue()
    scores: Counter[int] = Counter()
    for term in extract_terms(words) & index.keys():
        matches = index[term]
        weight = round(1000 * math.log(1 + len(products) / len(matches)))
        scores.update(dict.fromkeys(matches, weight))
    ranking = sorted(scores, key=lambda number: (-scores[number], number))
    return [products[number] for number in ranking]


@cache
def _read_catalogue() -> tuple[list[Product], dict[str, set[int]]]:
    """Return the products, and for each term the numbers of those that have it."""
    products = list(map(Product.model_validate, CATALOGUE))
    index: dict[str, set[int]] = defaultdict(set)
    for number, product in enumerate(products):
        texts = [product.name, product.kind, product.description]
        for words in (product.features, *product.options.values()):
            texts.extend(words)
        for term in extract_terms(" ".join(texts)):
            index[term].add(number)
    return products, index


def extract_terms(text: str) -> frozenset[str]:
    """Return the words of a text without their ending, so that `lamps` and `lamp` are the same."""
    words = set(split_into_words(text)) - _IGNORED_WORDS
    return frozenset(_ENDING.sub("", word) for word in words)
