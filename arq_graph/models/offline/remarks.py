"""What is said where neither a guideline nor a result gives anything to say: an answer, thanks, a farewell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.deeds import Said
from arq_graph.models.offline.knowledge import answers_from
from arq_graph.models.offline.lexicon import NEGATORS
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.speaking import WISHES
from arq_graph.models.offline.words import likeness, stem, words

_UNKNOWN = (
    "I am sorry, but I do not have that information.",
    "I am afraid I have no information on that.",
    "Unfortunately this is not something I have information on.",
)
_NOTED = (
    "Thank you for letting me know. Is there anything else I can help you with?",
    "Good to know. Is there anything else I can do for you?",
    "I am glad to hear it. Just tell me if there is anything else.",
)
_ANYTHING_ELSE = (
    "All right. Is there anything else I can help you with?",
    "All right, I will leave it at that. Can I do anything else for you?",
    "Of course. Just tell me if there is anything else.",
)
_WHAT_NEXT = (
    "Thank you for telling me. How can I help you with it?",
    "I see. What can I do for you?",
    "I understand. What would you like me to do?",
)
_FAREWELL = "Goodbye, and all the best!"
_SORRY = (
    "I am sorry to hear that. What would you like me to do about it?",
    "I am sorry about that. How can I help you with it?",
    "That should not have happened. What can I do for you?",
)
_WITHOUT_IT = (
    "Without it I cannot go on, I am afraid. Is there anything else I can help you with?",
    "Then I cannot do it, I am sorry to say. What else can I do for you?",
)
_CANNOT_TELL = re.compile(
    r"\b(?:do not|don't|cannot|can't|could not|couldn't)"
    r" (?:know|remember|recall|tell|say|find|have (?:it|that|one|the|my|any))\b",
    re.IGNORECASE,
)
_TROUBLE = tuple(map(stem, ("problem", "broken", "lost", "late", "fail", "wrong", "leak", "torn", "stuck")))
_OF_FACTS = re.compile(r"(?:\w+, )?(?:has|have|is|are|was|were|did|does)\b", re.IGNORECASE)


def remarks(scene: Scene, *, has_said: bool) -> list[Said]:
    """Sentences for the last message; none where what is said already will do.

    Args:
        scene: The conversation.
        has_said: Whether the reply has any sentence yet.
    """
    text = scene.last.text
    if dialogue.asks(text) and (known := answers_from(scene, text)):
        return [Said(answer, "body", "fact", source) for answer, source in known]
    if not text.strip():
        return [Said("How can I help you?", "question")]
    if dialogue.is_small_talk(text):
        return _small_talk(scene, has_said)
    if has_said:
        return []
    if scene.open_question and _CANNOT_TELL.search(text) and not dialogue.asks(text):
        return [Said(_unused(_WITHOUT_IT, scene))]
    if scene.open_question and dialogue.keeps_it(text) and not dialogue.asks(text):
        return [Said(_unused(_ANYTHING_ELSE, scene))]
    if _reports_trouble(text):
        return [Said(_unused(_SORRY, scene), "question")]
    if dialogue.requests(text):
        return [Said(_unused(_UNKNOWN, scene))]
    if dialogue.takes_leave(text):
        return [Said(_FAREWELL, "closing")]
    if dialogue.says_yes(text) and scene.answers(scene.last):
        return [Said(_unused(_NOTED, scene))]
    # "No, only one of them" to "Has everything arrived?" declines nothing.
    tells = len(text.split()) > 2 and _OF_FACTS.match(scene.open_question) is not None
    return [Said(_unused(_ANYTHING_ELSE if dialogue.says_no(text) and not tells else _WHAT_NEXT, scene))]


def _reports_trouble(text: str) -> bool:
    """Whether it says that something is wrong, and asks for nothing in particular."""
    if dialogue.asks(text) or WISHES.search(text) or dialogue.without_wishes(text) != text:
        return False
    return any(
        not word.negated and word.surface not in NEGATORS and likeness(word.stem, wrong) >= 0.9
        for word in words(text)
        for wrong in _TROUBLE
    )


def _small_talk(scene: Scene, has_said: bool) -> list[Said]:
    text = scene.last.text
    leaves, thanks = dialogue.takes_leave(text), dialogue.thanks(text)
    if dialogue.greets(text) and not leaves and not thanks:
        return [Said("How can I help you?", "question")]
    if has_said:
        return []
    if leaves and not dialogue.says_no(text):
        return [Said(_FAREWELL, "closing")]
    if thanks and not dialogue.says_no(text):
        return [Said("You are welcome!")]
    return [Said(_unused(_ANYTHING_ELSE, scene))]


def _unused(ways: Sequence[str], scene: Scene) -> str:
    """The first of several ways to say a thing that was not used before."""
    sent = " ".join(line.text for line in scene.agent)
    return next((way for way in ways if way not in sent), ways[0])
