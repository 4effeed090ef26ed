"""What code finds wrong with a reply: it decides whether another revision is needed, not the model (Appendix C)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import regex  # type: ignore[import-untyped]

from arq_graph.nodes.yes import normalize_text
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json

_ID = re.compile(r"(?<![A-Za-z0-9])[GTKVMIC]\d+(?![A-Za-z0-9])")
_ONE_WORD = regex.compile(r"\p{Lu}?\p{Ll}+|\p{Lu}+")
_PLAIN_WORDS = regex.compile(r"(?:\p{Lu}?\p{Ll}+|\p{Lu}+)(?:[ -](?:\p{Lu}?\p{Ll}+|\p{Lu}+))*")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class PromptFacts:
    """What the reviser's prompt held, to hold a reply against.

    `sources`: ids in the prompt that are no lines of the conversation, and names of tools that are described;
    `internal_names`: names besides those of tools that must not show, such as guidelines' ids (those that are not in
    the prompt too) and variables; `public_text`: a word of it may be quoted even if it looks like an id.
    """

    conversation: Conversation
    sources: Collection[str]
    tools: Collection[str]
    internal_names: Collection[str]
    public_text: str = ""


def find_violations(answer: Any, content: str, facts: PromptFacts) -> list[Complaint]:
    """What is wrong with the last revision of an answer."""
    number = len(answer.revisions) - 1
    revision, name = answer.revisions[number], type(answer).__name__
    said = [split_words(line.message.text) for line in facts.conversation.lines if line.speaker == "agent"]
    found = [("content", why) for why in find_blockers(content, facts)]
    if (words := split_words(content)) and words in said:
        again = "an earlier message says exactly this: refer to it, take another way, or say that you are going round"
        found.append(("content", f"{again} in circles"))
    if "insights" in answer.model_fields_set:  # not asked in the modes without queries
        found += _unverified(revision, facts)
    complaints = [Complaint(name, f"revisions[{number}].{query}", why) for query, why in found]
    for index, insight in enumerate(getattr(answer, "insights", ())):
        if insight.source and (reason := check_source(insight.source, facts)):
            complaints.append(Complaint(name, f"insights[{index}]", f"{as_json(insight.insight)}: {reason}"))
    return complaints


def find_blockers(content: str, facts: PromptFacts) -> list[str]:
    """Why a reply may not be sent at all, whatever else is wrong with it: it is empty, or gives internals away."""
    return find_leaks(content, facts) if normalize_text(content).strip() else ["the reply is empty"]


def find_leaks(content: str, facts: PromptFacts) -> list[str]:
    """Ids and internal names that a reply gives away (secrecy, Appendix C)."""
    content = normalize_text(content).replace("\\", "")  # `get\_order` is escaped, as Markdown may have it
    internal = {*facts.sources, *facts.internal_names, *(line.id for line in facts.conversation.lines)}
    ids = [each for each in _ID.findall(content) if each in internal and not _is_quoted(each, facts)]
    names = dict.fromkeys(map(normalize_text, facts.internal_names), _PLAIN_WORDS)
    names |= dict.fromkeys(map(normalize_text, facts.tools), _ONE_WORD)
    lower = content.casefold()  # few names stand in it at all: these are looked at closely
    there = [name for name in names if name.casefold() in lower and not _ID.fullmatch(name)]
    named = [name for name in there if _shows(name, names[name], content)]
    return [f"{name!r} is internal and must not show in a reply" for name in dict.fromkeys([*ids, *named])]


def _shows(name: str, word: regex.Pattern[str], content: str) -> bool:
    """Whether a reply shows an internal name as such.

    `search`, `VIP` or `loyalty tier` are also words; they give something away only as code: in backticks or as
    a call. A name in ASCII also ends where a letter of another script follows, as some scripts have no spaces.
    """
    escaped, letter = re.escape(name), r"\p{Latin}\d" if name.isascii() else r"\p{L}\p{M}\d"
    if word.fullmatch(name):
        return regex.search(rf"`{escaped}`|(?<![{letter}_]){escaped}\(", content) is not None
    # In any case, and in italics, as `_get_order_` is.
    return regex.search(rf"(?<![{letter}]){escaped}(?![{letter}])", content, regex.IGNORECASE) is not None


def _is_quoted(token: str, facts: PromptFacts) -> bool:
    """Whether a word that looks like an id is one of the customer's or the business's: a product called `M2`."""
    spoken = {"tool"} if token.startswith("G") else {"tool", "customer"}
    said = (line.message.text for line in facts.conversation.lines if line.speaker in spoken)
    return any(token in _ID.findall(normalize_text(text)) for text in (facts.public_text, *said))


def split_words(text: str) -> list[str]:
    """The words of a text, to hold against those of another one: case, punctuation and Markdown aside."""
    return _WORD.findall(text.casefold())


def _unverified(revision: Any, facts: PromptFacts) -> Iterator[tuple[str, str]]:
    for number, stated in enumerate(revision.factual_information_provided):
        if reason := check_source(stated.source, facts):
            yield f"factual_information_provided[{number}]", f"{as_json(stated.fact)}: {reason}"
    for number, offered in enumerate(revision.offered_services):
        reason = check_source(offered.source, facts)
        lines = [facts.conversation.lines_by_id.get(id) for id in _cited(offered.source)]
        if reason is None and all(line is not None and line.speaker == "customer" for line in lines):
            reason = f"{offered.source} is the customer's message: it cannot be what offers a service"
        if reason:
            yield f"offered_services[{number}]", f"{as_json(offered.service)}: {reason}"
    for number, broken in enumerate(revision.instructions_broken):
        instruction, place = as_json(broken.instruction), f"instructions_broken[{number}]"
        if broken.reason == "none":
            yield place, f"{instruction} is not followed, without a reason"
        elif broken.reason == "customer_request" and broken.forbids:
            yield place, f"{instruction} forbids it, whoever asks"
    if revision.is_repeat_message:
        yield "is_repeat_message", "it repeats an earlier message of the agent"


def _cited(source: str | None) -> list[str]:
    """The ids of a source; an answer may cite several."""
    return [part for part in re.split(r"[\s,;]+", source or "") if part]


def check_source(source: str | None, facts: PromptFacts) -> str | None:
    """Why a source is none: it is empty, or names an id that the prompt does not have; None if it is one."""
    cited = _cited(source)
    if not cited:
        return "it has no source in this prompt; leave it out or say that it is not known"
    unknown = [id for id in cited if id not in facts.sources and id not in facts.conversation.lines_by_id]
    return f"there is no {as_json(' '.join(unknown))} in this prompt" if unknown else None
