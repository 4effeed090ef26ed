"""A guess at a message's language from its commonest words."""

from __future__ import annotations

import re

_COMMON = {
    "English": "the is are my i you to and of what where how can please for have it do not want thanks hello",
    "Spanish": "el la los que es mi de y en por para un una dónde donde cómo como quiero hola gracias está esta "
    "mi pedido no con",
    "French": "le la les que est mon ma de et en pour un une où comment je vous bonjour merci s'il pas avec "
    "est-ce mes votre",
    "German": "der die das ist mein meine ich und zu für ein eine wo wie möchte bitte hallo danke nicht mit wann "
    "sie haben",
    "Italian": "il la che è mio mia di e in per un una dove come vorrei ciao grazie non con sono buongiorno quando",
    "Portuguese": "o a os que é meu minha de e em para um uma onde como quero olá obrigado não com está eu",
    "Dutch": "de het is mijn ik en te voor een waar hoe wil graag hallo dank niet met wanneer je u",
}
LANGUAGES = tuple(language.lower() for language in _COMMON)
_WORDS = {language: frozenset(listed.split()) for language, listed in _COMMON.items()}
_SCRIPTS = (
    ("Russian", re.compile(r"[\u0400-\u04ff]")),
    ("Greek", re.compile(r"[\u0370-\u03ff]")),
    ("Arabic", re.compile(r"[\u0600-\u06ff]")),
    ("Hebrew", re.compile(r"[\u0590-\u05ff]")),
    ("Japanese", re.compile(r"[\u3040-\u30ff]")),
    ("Chinese", re.compile(r"[\u4e00-\u9fff]")),
    ("Korean", re.compile(r"[\uac00-\ud7af]")),
    ("Hindi", re.compile(r"[\u0900-\u097f]")),
)


def language_of(text: str) -> str | None:
    """The language of a message, or None where too little speaks for any."""
    for language, letters in _SCRIPTS:
        if letters.search(text[:500]):
            return language
    said = re.findall(r"[^\W\d_]+(?:['-][^\W\d_]+)*", text[:2_000].lower())
    counts = {language: sum(word in common for word in said) for language, common in _WORDS.items()}
    best = max(counts, key=lambda language: counts[language])
    if counts[best] * 6 < len(said) or not counts[best]:
        return None
    return "English" if counts["English"] == counts[best] else best


def language_wanted(condition: str, spoken: str | None) -> bool:
    """Whether a message's language is one that a condition speaks of ("in Spanish", "other than English")."""
    named = [
        name for name in (*_COMMON, *(name for name, _ in _SCRIPTS)) if name.lower() in condition.lower()
    ]
    if re.search(r"\b(?:other than|not|isn't|different from|except)\b", condition, re.IGNORECASE):
        return spoken is not None and spoken not in named
    if not named:  # "in another language"
        return spoken not in (None, "English")
    return spoken in named
