"""Questions for the agent's own place: "Where are you?" is not about a parcel, nor about a doctor."""

from __future__ import annotations

import re
from collections.abc import Iterable

from arq_graph.models.offline.lexicon import listed
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.words import Word, best_match, stem, words

_ASKED = re.compile(
    r"(?:(?:hi|hello|hey|and|so|please|tell me)\b[,.! ]*)*"
    r"(?:where(?: exactly)? (?:is|are|can (?:i|we) find|do (?:i|we) find)"
    r" (?:you|your (?:shop|store|office|branch|house|desk|place|location)(?:s|es)?)(?: (?:located|based|situated))?"
    r"|(?:what(?:'s| is)|(?:can|could|may) i have) your (?:address|location|phone number|e-?mail(?: address)?))"
    r"(?: (?:now|exactly|please))?[?.! ]*",
    re.IGNORECASE,
)
_PARTS = frozenset(
    map(
        stem,
        listed(
            "address location place contact where direction find phone email shop store office branch house desk venue"
            " company business"
        ),
    )
)


def is_asked_for(text: str) -> bool:
    """Whether a message asks for nothing but the agent's own place, address or number."""
    return _ASKED.fullmatch(text.strip()) is not None


def is_meant(things: Iterable[Word], scene: Scene) -> bool:
    """Whether things are the agent's own: its address, the house that its profile speaks of."""
    known = scene.profile_words + words(str(scene.prompt.profile.get("name") or ""))
    return all(word.stem in _PARTS or best_match(word, known)[0] >= 0.9 for word in things)
