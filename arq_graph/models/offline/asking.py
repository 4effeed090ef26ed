"""Asking what a guideline tells the agent to ask, unless the customer has said it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.actions import TO_WHOM
from arq_graph.models.offline.choices import flag_in
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.values import any_given
from arq_graph.models.offline.wanted import Wanted, wanted_thing
from arq_graph.models.offline.wording import sentence, to_customer
from arq_graph.models.offline.words import overlap

QUESTION_WORD = re.compile(
    r"^(?:since when|what|which|when|where|who|whom|whose|why|how|whether|if)\b", re.IGNORECASE
)
_HOW_TO_HELP = re.compile(r"how (?:you|we|i) (?:can|may|could) (?:help|assist|be of)", re.IGNORECASE)
_PUT = re.compile(r"Could you (?:please )?(?:tell|give) me (?P<what>.+)\?$", re.DOTALL)
_WHETHER = re.compile(r"^(?:whether|if)\b ?", re.IGNORECASE)
_VALUE = re.compile(
    r"\b(?:id|number|name|date|time|address|e-?mail|phone|size|code|amount|reason|details?|colou?r"
    r"|destination|budget|age|birth|city)\b",
    re.IGNORECASE,
)
_OWN = re.compile(
    r"^(?:the|a|an) (?=.*\b(?:id|number|name|date of birth|address|e-?mail|phone|code|birthday|account"
    r"|reference)\b)",
    re.IGNORECASE,
)
_THING_LEAD = re.compile(
    r"^(?:for |what |which |how many |how much |when |where )?(?:is |are )?(?:(?:the|their|his|her|an?"
    r"|some)\b)? ?",
    re.IGNORECASE,
)


def question_for(action: str, wanted: str, scene: Scene) -> str:
    """The question that an action asks for; empty if the customer has answered it already.

    Args:
        action: The action: "ask the customer which size they want".
        wanted: Its words behind the verb and the person: "which size they want".
        scene: The conversation.
    """
    if asking := re.search(r"\bby asking\b(?: for)?(.*)$", action, re.IGNORECASE):
        action = "ask"
        wanted = f"for {TO_WHOM.sub('', asking[1].strip()).removeprefix('for ').strip()}"
    question = _worded(action, wanted) if wanted else ""
    return "" if not question or _is_answered(wanted, question, scene) else question


def in_other_words(question: str, asked: Sequence[str]) -> str:
    """A question in words that it was not asked in before, as long as there are any.

    Args:
        question: The question as it is put first.
        asked: What the agent has said so far.
    """
    match = _PUT.match(question)
    if match is None or not any(question in text for text in asked):
        return question
    what = match["what"]
    needed = f"to know {what}" if QUESTION_WORD.match(what) else what
    ways = (
        f"I still need {needed}: could you help me with that?",
        f"Could I have an answer on this: {what}?",
    )
    return next((way for way in ways if not any(way in text for text in asked)), question)


def _worded(action: str, wanted: str) -> str:
    said = to_customer(wanted)
    if _HOW_TO_HELP.match(wanted):
        return "How can I help you?"
    if _WHETHER.match(wanted):
        return sentence(f"could you tell me whether {_WHETHER.sub('', said)}", "?")
    if QUESTION_WORD.match(wanted):
        return sentence(f"could you tell me {said}", "?")
    if wanted.lower().startswith("to "):
        return sentence(f"could you please {said[3:]}", "?")
    if wanted.lower().startswith("about "):
        return sentence(f"could you tell me more about {_OWN.sub('your ', said[6:])}", "?")
    if " or " in wanted and not wanted.lower().startswith("for ") and not _VALUE.search(wanted):
        return sentence(said, "?")
    thing = _OWN.sub("your ", re.sub(r"^for ", "", said, flags=re.IGNORECASE))
    if re.match(r"(?:confirm|double-check|verify|check)", action, re.IGNORECASE):
        return sentence(f"could you please confirm {re.sub(r'^(?:that|whether|if) ', 'that ', thing)}", "?")
    return sentence(f"could you please {'tell' if _VALUE.search(thing) else 'give'} me {thing}", "?")


def _is_answered(wanted: str, question: str, scene: Scene) -> bool:
    """Whether the customer has said what is to be asked: at any time, or in answer to this very question."""
    if _HOW_TO_HELP.match(wanted):
        return dialogue.requests(scene.last.text)
    if scene.answers(scene.last) and overlap(question, scene.open_question) >= 0.7:
        return True
    if wanted.lower().startswith(("to ", "about ")):
        return False
    if _WHETHER.match(wanted):
        thing = re.sub(r"^(?:whether|if) (?:they|the \w+|he|she)(?: \w+)? ", "", wanted, flags=re.IGNORECASE)
        flag = Wanted(thing.replace(" ", "_"), "boolean")
        return any(flag_in(line.text, flag, answering=False) for line in scene.inquiry)
    if " or " in wanted and not _VALUE.search(wanted):
        return _is_chosen(wanted, scene)
    things = [
        part for part in re.split(r",\s*(?:and\s+)?|\s+and\s+", _THING_LEAD.sub("", wanted)) if part.strip()
    ]
    return bool(things) and all(
        any_given(wanted_thing(each), reversed(scene.customer), scene) for each in things
    )


def _is_chosen(wanted: str, scene: Scene) -> bool:
    options = [re.sub(r"^\W*(?:a|an|the) ", "", part).strip().lower() for part in re.split(r",| or ", wanted)]
    said = " ".join(line.text.lower() for line in scene.inquiry)
    return any(option and re.search(rf"\b{re.escape(option)}\b", said) for option in options)
