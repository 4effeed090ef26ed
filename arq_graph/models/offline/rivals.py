"""Words that two conditions share: which of them a message is about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from arq_graph.models.offline import dialogue, house
from arq_graph.models.offline.conditions import Clause, parse
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.speaking import WISHES, share
from arq_graph.models.offline.words import Word, likeness, stem

_MET_FROM = 0.9
_ASKS = re.compile(
    r"\basks? (?:about )?(?P<form>whether|if|when|where|why|how|which|what|who)\b", re.IGNORECASE
)
_QUESTION = re.compile(
    r"(?:^|[.!?,;:]\s*)(?:(?P<form>when|where|why|how|which|what|who)|(?:is|are|was|were|do|does|did|can|could|may"
    r"|might|will|would|should|shall|has|have|am))\b",
    re.IGNORECASE,
)
_ORDERED = re.compile(
    r"\b(?P<verb>[a-z]+)\s+(?:the|my|a|an|our|your|his|her|their|this|that)\s+(?P<object>[a-z]+(?: [a-z]+)?)",
    re.IGNORECASE,
)


def objects_of(deeds: Collection[str], texts: Iterable[str]) -> frozenset[str]:
    """The nouns that texts name as what is to be done something to: "reservation" in "cancel my reservation".

    Args:
        deeds: Stems of the verbs of what is to be done.
        texts: What was said.
    """
    return frozenset(
        noun
        for text in texts
        for match in _ORDERED.finditer(text)
        if any(likeness(stem(match["verb"].lower()), deed) >= _MET_FROM for deed in deeds)
        for noun in match["object"].lower().split()
    )


def is_anothers(clause: Clause, sought: tuple[Word, ...], scene: Scene) -> bool:
    """Whether a message has words of a condition, but is about another.

    Args:
        clause: The condition's clause.
        sought: Its words.
        scene: The conversation.
    """
    return (
        _is_of_no_house(clause, sought, scene)
        or _is_without_deed(clause, sought, scene)
        or _is_a_wish(clause, sought, scene)
        or _is_asked_otherwise(clause, sought, scene)
        or _is_done_to(clause, sought, scene)
    )


def _is_of_no_house(clause: Clause, sought: tuple[Word, ...], scene: Scene) -> bool:
    """Whether the agent's own place is asked for, and the condition is about another."""
    if not house.is_asked_for(scene.last.text):
        return False
    is_theirs = re.search(r"\b(?:their|his|her)\b", clause.text) is not None
    return is_theirs or not house.is_meant(sought, scene)


def _is_without_deed(clause: Clause, sought: tuple[Word, ...], scene: Scene) -> bool:
    """Whether a question has only the things of this condition, not its deed, and all that another one asks for."""
    said = [line.text for line in scene.inquiry]
    asks = dialogue.asks(said[-1]) and not any(map(WISHES.search, said))
    deed = tuple(word for word in sought if word.stem in clause.decisive)
    if not deed or not asks or share(deed, scene.need_words) > 0:
        return False
    return any(share(variant, sought) > 0 for _, variant in _met_elsewhere(clause, scene))


def _is_a_wish(clause: Clause, sought: tuple[Word, ...], scene: Scene) -> bool:
    """Whether a deed of another condition is wished for, where this one wants a question."""
    if _ASKS.search(clause.text) is None or any(dialogue.asks(line.text) for line in scene.inquiry):
        return False
    return any(
        share(variant, sought) > 0 and share(deed, scene.need_words) >= _MET_FROM
        for other, variant in _met_elsewhere(clause, scene)
        if (deed := tuple(word for word in variant if word.stem in other.decisive))
    )


def _is_asked_otherwise(clause: Clause, sought: tuple[Word, ...], scene: Scene) -> bool:
    """Whether it is asked whether, where this condition wants "when", and another one "whether"."""
    wanted, asked = _ASKS.search(clause.text), None
    for line in scene.inquiry:
        if "?" in line.text and (asked := _QUESTION.search(line.text)):
            break
    if wanted is None or asked is None:
        return False
    form = (asked["form"] or "whether").lower()
    if _form(wanted) == form:
        return False
    return any(
        (other_form := _ASKS.search(other.text)) is not None
        and _form(other_form) == form
        and share(variant, sought) > 0
        for other, variant in _met_elsewhere(clause, scene)
    )


def _is_done_to(clause: Clause, sought: tuple[Word, ...], scene: Scene) -> bool:
    """Whether its deed is named only as what another one is done to: "cancel my reservation" reserves nothing."""
    deeds = [word.stem for word in sought if word.stem in clause.decisive]
    said = {
        word.surface
        for word in scene.need_words
        if any(likeness(word.stem, deed) >= _MET_FROM for deed in deeds)
    }
    if not said:
        return False
    theirs = frozenset[str]().union(*(other.decisive for other, _ in _met_elsewhere(clause, scene)))
    return said <= objects_of(theirs - frozenset(deeds), [line.text for line in scene.inquiry])


def _form(match: re.Match[str]) -> str:
    return "whether" if match["form"].lower() == "if" else match["form"].lower()


def _met_elsewhere(clause: Clause, scene: Scene) -> Iterator[tuple[Clause, tuple[Word, ...]]]:
    """What other guidelines are about and the need speaks of wholly."""
    for entry in scene.prompt.guidelines():
        for clauses in parse(str(entry.get("condition") or "")):
            for other in clauses:
                if other.kind == "wish" and not other.negated and other != clause:
                    for variant in other.variants:
                        if share(variant, scene.need_words) >= _MET_FROM:
                            yield other, variant
