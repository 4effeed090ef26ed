"""Filling in the reviser's blueprint around a reply (ARQ paper, 5.1.3 and Appendix C)."""

from __future__ import annotations

from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.guessing import need_in_words
from arq_graph.models.offline.replies import Followed, Reply
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.wording import joined
from arq_graph.models.offline.words import in_words


def revise(scene: Scene) -> dict[str, Any]:
    """The answers to the reviser's queries."""
    reply = Reply(scene)
    draft = scene.prompt.sections.get("draft")
    final = _revision(reply, 1)
    revisions = [final]
    if isinstance(draft, str) and draft.strip() and draft.strip() != reply.text:
        revisions = [{**final, "content": draft}, {**final, "revision_number": 2}]
    return {
        "last_message_of_customer": scene.last.text or None,
        "context_evaluation": _context(reply),
        "insights": [
            {"insight": f"The customer has to {_needed(insight)}.", "source": scene.last.id or None}
            for insight in scene.prompt.entries("insights")[:3]
        ],
        "evaluation_for_each_instruction": [_evaluated(entry, reply) for entry in reply.followed],
        "revisions": revisions,
        "reasoning": f"{need_in_words(scene)} {_what_is_known(reply)}",
    }


def _needed(insight: dict[str, Any]) -> str:
    if insight.get("kind") == "confirm":
        return "confirm this first"
    wanted = in_words(str(insight.get("argument") or "something"))
    return f"give the {wanted}" if insight.get("kind") == "missing" else f"give another {wanted}"


def _context(reply: Reply) -> dict[str, Any]:
    asked = [said.text for said in reply.asked]
    unknown = not any(said.kind != "other" for said in reply.sentences)
    sources = list(dict.fromkeys(said.source for said in reply.sentences if said.source))
    return {
        "most_recent_customer_inquiries_or_needs": need_in_words(reply.scene),
        "parts_of_the_context_with_information_on_these_needs": joined(sources) or "None.",
        "topics_with_sufficient_information_to_help": _what_is_known(reply),
        "what_i_do_not_have_enough_information_to_help_with": " ".join(asked)
        or ("What is asked." if unknown else "Nothing."),
        "was_i_given_specific_information_on_how_to_address_these_needs": bool(reply.guidelines),
        "should_i_tell_the_customer_i_cannot_help_with_some_needs": unknown
        and dialogue.requests(reply.scene.last.text),
    }


def _what_is_known(reply: Reply) -> str:
    return (
        " ".join(said.text for said in reply.sentences if said.kind == "fact")[:400]
        or "Nothing is known about it."
    )


def _evaluated(entry: Followed, reply: Reply) -> dict[str, str]:
    said = [s for s in reply.sentences if s.guideline == entry.id]
    if entry.is_followed:
        how = (
            f"By saying: {' '.join(s.text for s in said)}"
            if said
            else "Nothing in the reply goes against it."
        )
    else:
        how = "Not yet: what it needs is not known."
    sources = list(dict.fromkeys(s.source for s in (*said, *reply.told) if s.source))
    return {
        "instruction": entry.id,
        "evaluation": how,
        "data_available": joined(sources) or ("Not needed." if entry.is_followed else "No."),
    }


def _revision(reply: Reply, number: int) -> dict[str, Any]:
    sentences = [said for said in reply.sentences if said.text in reply.text or said.kind != "other"]
    return {
        "revision_number": number,
        "content": reply.text,
        "followed": [entry.id for entry in reply.followed if entry.is_followed],
        "factual_information_provided": [
            {"fact": s.text, "source": s.source} for s in sentences if s.kind == "fact" and s.source
        ],
        "offered_services": [
            {"service": s.text, "source": s.source} for s in sentences if s.kind == "service" and s.source
        ],
        "instructions_broken": [_broken(entry, reply) for entry in reply.followed if not entry.is_followed],
        "is_repeat_message": False,
    }


def _broken(entry: Followed, reply: Reply) -> dict[str, str]:
    missing = joined([f'"{part.text}"' for part, outcome in entry.parts if outcome == "missing"])
    why = "The customer is asked for what it needs" if reply.asked else "The data for it is not here"
    return {"instruction": entry.id, "reason": "missing_data", "rationale": f"{why}: {missing}."}
