"""What is said where neither a guideline nor a result gives anything to say: an answer, thanks, a farewell."""

from __future__ import annotations

from collections.abc import Sequence

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.deeds import Said
from arq_graph.models.offline.knowledge import answers_from
from arq_graph.models.offline.scene import Scene

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
    if dialogue.requests(text):
        return [Said(_unused(_UNKNOWN, scene))]
    if dialogue.says_yes(text) and scene.answers(scene.last):
        return [Said(_unused(_NOTED, scene))]
    return [Said(_unused(_ANYTHING_ELSE if dialogue.says_no(text) else _WHAT_NEXT, scene))]


def _small_talk(scene: Scene, has_said: bool) -> list[Said]:
    text = scene.last.text
    leaves, thanks = dialogue.takes_leave(text), dialogue.thanks(text)
    if dialogue.greets(text) and not leaves and not thanks:
        return [Said("How can I help you?", "question")]
    if has_said:
        return []
    if leaves and not dialogue.says_no(text):
        return [Said("Goodbye, and all the best!", "closing")]
    if thanks and not dialogue.says_no(text):
        return [Said("You are welcome!")]
    return [Said(_unused(_ANYTHING_ELSE, scene))]


def _unused(ways: Sequence[str], scene: Scene) -> str:
    """The first of several ways to say a thing that was not used before."""
    sent = " ".join(line.text for line in scene.agent)
    return next((way for way in ways if way not in sent), ways[0])
