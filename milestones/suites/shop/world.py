"""A shop's website made of text, in the manner of WebShop (Yao et al. 2022): search, look, pick options, buy."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from arq_graph.agent.environment import Observation
from arq_graph.agent.part import Part, Text
from arq_graph.models.offline.stems import stems

CATALOGUE = Path(__file__).with_name("catalogue.json")
PER_PAGE = 8
_ACTION = re.compile(r"\s*(search|click)\s*:\s*(\S.*?)\s*", re.DOTALL)


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
        """Whether its name, one of its features or a sentence of its description has all words of an attribute."""
        told = (f"{self.kind} {self.name}", *self.features, *re.split(r"(?<=[.!?])\s", self.description))
        return any(stems(attribute) <= stems(each) for each in told)


class Wanted(Part):
    """What a customer wants to have bought; a purchase is judged by all of it (ReSpAct, 4.3).

    Args:
        attributes: What must be true of it, its kind among them.
        options: The values that must be picked.
        price: What it may cost at most; None: anything.
    """

    attributes: tuple[Text, ...] = ()
    options: tuple[Text, ...] = ()
    price: float | None = None

    def covered(self, product: Product, picked: Mapping[str, str]) -> list[bool]:
        """For each thing that is wanted, whether a purchase covers it."""
        values = {value.casefold() for value in picked.values()}
        attributes = [product.has(each) for each in self.attributes]
        limit = [] if self.price is None else [product.price <= self.price]
        return attributes + [each.casefold() in values for each in self.options] + limit


class Shop:
    """The website, an `Environment`: the same actions always show the same.

    Actions are `search: words` and `click: button`, with the buttons that the page shows. Nothing has to be picked
    before something is bought; buying ends the visit.

    Args:
        goal: What the customer wants; see `Wanted`.

    Attributes:
        done: Whether something was bought.
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
        self._go(0)
        return "Welcome to the shop. You can search for something."

    def actions(self) -> None:
        """None, as any words can be searched for."""

    def outcome(self) -> dict[str, bool | float]:
        """`score`: the share of wanted attributes, options and price that was covered; `success`: whether all were."""
        return {"score": self.score, "success": self.score == 1.0, "bought": self.done}

    def step(self, action: str) -> Observation:
        """Take an action; one that the page does not have changes nothing."""
        verb, said = found.groups() if (found := _ACTION.fullmatch(action.casefold())) else ("", "")
        buttons = {label.casefold(): press for label, press in self._buttons().items()}
        if verb == "search" and not self.done:
            self._results = search(said)
            self._go(0)
        elif verb == "click" and said in buttons:
            buttons[said]()
        else:
            return Observation(
                f"Nothing happened: there is no {action!r} here.\n{self._shown()}", valid=False
            )
        return Observation(self._shown())

    def _on_page(self) -> list[Product]:
        return self._results[self._page * PER_PAGE : (self._page + 1) * PER_PAGE]

    def _buttons(self) -> Mapping[str, Callable[[], None]]:
        """What can be clicked on the page, by what stands on the button."""
        if self.done:
            return {}
        if self._product is None:
            turns = {"previous": self._page - 1, "next": self._page + 1}
            pages = range(math.ceil(len(self._results) / PER_PAGE))
            buttons = {each.id: partial(self._go, self._page, each) for each in self._on_page()}
            return buttons | {label: partial(self._go, to) for label, to in turns.items() if to in pages}
        options = [(name, value) for name, values in self._product.options.items() for value in values]
        picks = {f"{name}: {value}": partial(self._picked.update, {name: value}) for name, value in options}
        return picks | {"back": partial(self._go, self._page), "buy": partial(self._buy, self._product)}

    def _go(self, page: int, product: Product | None = None) -> None:
        self._page, self._product, self._picked = page, product, {}

    def _buy(self, product: Product) -> None:
        covered = self.goal.covered(product, self._picked)
        self.done, self.score = True, sum(covered) / (len(covered) or 1)

    def _shown(self) -> str:
        """The page as text, with its buttons."""
        picked = ", ".join(f"{option}: {value}" for option, value in self._picked.items()) or "nothing"
        if (product := self._product) is None:
            lines = [f"{each.id}: {each.name}, ${each.price:.2f}" for each in self._on_page()]
            lines = [f"Found: {len(self._results)}. Page {self._page + 1}:", *lines]
        elif self.done:
            return f"Bought: {product.name}, ${product.price:.2f}; picked: {picked}. The visit is over."
        else:
            told = f"{'; '.join(product.features)}. {product.description}"
            lines = [f"{product.name}, ${product.price:.2f}", told, f"Picked: {picked}."]
        return "\n".join([*lines, "".join(f"[{label}]" for label in self._buttons())]).strip()


def search(words: str) -> list[Product]:
    """The products with any of the words; best first, and those that fit equally well in the catalogue's order.

    A word counts the more the fewer products have it.
    """
    products, having = _catalogue()
    scores: Counter[int] = Counter()
    for found in (having[stem] for stem in stems(words) & having.keys()):
        scores.update(dict.fromkeys(found, round(1000 * math.log(1 + len(products) / len(found)))))
    return [products[number] for number in sorted(scores, key=lambda each: (-scores[each], each))]


@cache
def _catalogue() -> tuple[list[Product], dict[str, set[int]]]:
    """The products, and for each stem the numbers of those that have it."""
    products = [Product.model_validate(each) for each in json.loads(CATALOGUE.read_text(encoding="utf-8"))]
    having: dict[str, set[int]] = {}
    for number, each in enumerate(products):
        values = (value for values in each.options.values() for value in values)
        for stem in stems(" ".join((each.name, each.kind, *each.features, each.description, *values))):
            having.setdefault(stem, set()).add(number)
    return products, having
