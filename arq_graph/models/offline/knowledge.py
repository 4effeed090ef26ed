"""What the prompt knows without a tool: the glossary, the profile, the variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from arq_graph.models.offline import dialogue, house
from arq_graph.models.offline.rules import description_of
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.wording import is_plural, sentence
from arq_graph.models.offline.words import Word, best_match, content, in_words, words

_INSTRUCTION = re.compile(
    r"^(?:you(?:r| are|'re| must| should| can| help| answer| work)?\b|be\b|always\b|never\b|do not\b"
    r"|don't\b|answer\b|help\b|act\b|use\b|keep\b|please\b"
    r"|the agent\b|this agent\b|assist\b|speak\b|reply\b|respond\b|make\b|ensure\b|avoid\b|today is\b)",
    re.IGNORECASE,
)
_PLACED = re.compile(
    r"^(?:(?:the|our) (?:shop|store|office|branch|house|desk|\w+)|we|you find us|find us) (?:is |are )?"
    r"(?:(?:located|situated) )?(?:at|in|on|near|opposite|behind|beside) (?!\w+day)",
    re.IGNORECASE,
)
_MEANING = re.compile(r"\b(?:what(?:'s| is| are| does)|mean|explain|define|tell me about)\b", re.IGNORECASE)


def answers_from(scene: Scene, question: str) -> list[tuple[str, str]]:
    """Sentences that answer a question, each with the id of its source; the best first, and few."""
    found = (
        list(_from_glossary(scene, question))
        or list(_from_profile(scene, question))
        or list(_from_variables(scene, question))
    )
    return found[:2]


def _from_glossary(scene: Scene, question: str) -> Iterator[tuple[str, str]]:
    lowered = f" {_plain(question)} "
    asked = content(question)
    about_meaning = _MEANING.search(question) is not None
    for term in scene.prompt.entries("glossary"):
        synonyms = term.get("synonyms")
        names = [
            str(term.get("name") or ""),
            *(str(name) for name in (synonyms if isinstance(synonyms, list) else ())),
        ]
        named = any(name and _is_named(name, lowered) for name in names)
        described = str(term.get("description") or "").strip()
        covered = (
            sum(best_match(word, words(f"{' '.join(names)} {described}"))[0] >= 0.9 for word in asked)
            / len(asked)
            if asked
            else 0
        )
        if described and named and (about_meaning or covered >= 0.6):
            yield _defined(names[0], described), str(term.get("id"))


def _is_named(name: str, lowered: str) -> bool:
    return f" {_plain(name)} " in lowered or f" {_plain(name)}s " in lowered


def _plain(text: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", text.lower()))


def _defined(name: str, described: str) -> str:
    if re.match(r"(?:a|an|the|any|when|how)\b", described, re.IGNORECASE) or not re.search(
        r"\b(?:is|are|was|can|has|have|costs?|means|must|will)\b", described
    ):
        return sentence(f"{name}: {described}")
    return sentence(described) if name.lower() in described.lower() else sentence(f"{name}: {described}")


def _from_profile(scene: Scene, question: str) -> Iterator[tuple[str, str]]:
    asked = content(question)
    told = [
        text
        for text in (said.lstrip("-*• ") for said in dialogue.sentences(description_of(scene.prompt)))
        if not _INSTRUCTION.match(text)
    ]
    if house.is_asked_for(question):
        placed = [text for text in told if _PLACED.search(text)]
        yield from ((sentence(text), str(scene.prompt.profile.get("id") or "P")) for text in placed[:1])
        return
    ranked = sorted(((_covered(asked, text), -index, text) for index, text in enumerate(told)), reverse=True)
    for share, _, text in ranked[:1]:
        if share >= 0.5:
            yield sentence(text), str(scene.prompt.profile.get("id") or "P")


def _from_variables(scene: Scene, question: str) -> Iterator[tuple[str, str]]:
    asked = content(question)
    for variable in scene.variables:
        name, value = in_words(str(variable.get("name") or "")), variable.get("value")
        if not isinstance(value, str | int | float) or not name:
            continue
        sought = words(name)
        if sought and all(best_match(word, asked)[0] >= 0.9 for word in sought):
            yield (
                sentence(f"the {name} {'are' if is_plural(name) else 'is'} {value}"),
                str(variable.get("id")),
            )


def _covered(asked: tuple[Word, ...], text: str) -> float:
    among = words(text)
    return sum(best_match(word, among)[0] for word in asked) / len(asked) if asked else 0.0
