"""What code finds wrong with a reply: it decides whether another revision is needed, not the model (Appendix C)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from arq_graph.nodes.reply_bounds import ReplyBounds
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json

_ID = re.compile(r"(?<![A-Za-z0-9])[GTKVM]\d+(?![A-Za-z0-9])")
_ONE_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_PLAIN_WORDS = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)(?:[ -](?:[A-Z]?[a-z]+|[A-Z]+))*")
_WORD = re.compile(r"\w+")
_FORBIDS = re.compile(
    r"\b(?:never|do not|don['’]t|must not|mustn['’]t|may not|cannot|can['’]t|not allowed|refuse to|refrain from"
    r"|avoid)\b|^no\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PromptFacts:
    """What the reviser's prompt held, to hold a reply against.

    Args:
        conversation: The thread.
        sources: Ids in the prompt that are no lines of the conversation.
        tools: Names of the tools, which must not show in a reply.
        internal_names: Other names that must not: guidelines' ids (those that are not in the prompt too),
            variables.
        prohibitions: The guidelines that forbid something: their actions by id.
        public_text: Text from which a word may be quoted even if it looks like an id.
        bounds: What it has to ask, and what it must not.
    """

    conversation: Conversation
    sources: Collection[str]
    tools: Collection[str]
    internal_names: Collection[str]
    prohibitions: Mapping[str, str] = field(default_factory=dict)
    public_text: str = ""
    bounds: ReplyBounds = field(default_factory=ReplyBounds)


def forbids(action: str) -> bool:
    """Whether an action is a prohibition, as far as English words tell."""
    return _FORBIDS.search(action) is not None


def violations(answer: Any, facts: PromptFacts) -> list[Complaint]:
    """What is wrong with the last revision of an answer."""
    number = len(answer.revisions) - 1
    revision = answer.revisions[number]
    place = f"revisions[{number}]"
    name = type(answer).__name__
    found = [Complaint(name, f"{place}.content", message) for message in leaks(revision.content, facts)]
    if not revision.content.strip():
        found.append(Complaint(name, f"{place}.content", "the reply is empty"))
    elif repeats(revision.content, facts.conversation):
        found.append(
            Complaint(
                name,
                f"{place}.content",
                "an earlier message says exactly this: refer to it, take another way, or say that you are going "
                "round in circles",
            )
        )
    bounds = facts.bounds
    asked = [*bounds.unaskable(revision.content), *bounds.unput(revision.content).values()]
    found += [Complaint(name, f"{place}.content", message) for message in asked]
    if "insights" in answer.model_fields_set:
        found += [
            Complaint(name, f"{place}.{query}", message) for query, message in _unverified(revision, facts)
        ]
        found += [
            Complaint(name, f"insights[{index}]", f"{as_json(insight.insight)}: {reason}")
            for index, insight in enumerate(answer.insights)
            if insight.source and (reason := _no_source(insight.source, facts))
        ]
    return found


def leaks(content: str, facts: PromptFacts) -> list[str]:
    """Ids and internal names that a reply gives away (secrecy, Appendix C)."""
    internal = {
        *facts.sources,
        *facts.tools,
        *facts.internal_names,
        *(line.id for line in facts.conversation.lines),
    }
    given_away = [
        token
        for token in dict.fromkeys(_ID.findall(content))
        if token in internal and not _is_quoted(token, facts)
    ]
    names = [(tool, _ONE_WORD) for tool in facts.tools] + [
        (name, _PLAIN_WORDS) for name in facts.internal_names
    ]
    given_away += [name for name, word in names if not _ID.fullmatch(name) and _shows(name, word, content)]
    return [f"{name!r} is internal and must not show in a reply" for name in dict.fromkeys(given_away)]


def _shows(name: str, word: re.Pattern[str], content: str) -> bool:
    """Whether a reply shows an internal name as such.

    `search`, `VIP` or `loyalty tier` are also words; they give something away only as code: in backticks or as
    a call.
    """
    escaped = re.escape(name)
    if word.fullmatch(name):
        return re.search(rf"`{escaped}`|(?<!\w){escaped}\(", content) is not None
    # In any case, and however Markdown has it: `_get_order_` is in italics, `get\_order` is escaped.
    plain = content.replace("\\", "")
    return re.search(rf"(?<![^\W_]){escaped}(?![^\W_])", plain, re.IGNORECASE) is not None


def _is_quoted(token: str, facts: PromptFacts) -> bool:
    """Whether a word that looks like an id is one of the customer's or the business's: a product called `M2`."""
    pattern = re.compile(rf"(?<!\w){re.escape(token)}(?!\w)")
    spoken = {"tool"} if token.startswith("G") else {"tool", "customer"}
    return bool(pattern.search(facts.public_text)) or any(
        pattern.search(line.message.text) for line in facts.conversation.lines if line.speaker in spoken
    )


def repeats(content: str, conversation: Conversation) -> bool:
    """Whether the agent has said exactly this before, case and punctuation aside."""
    words = _WORD.findall(content.casefold())
    return any(
        line.speaker == "agent" and _WORD.findall(line.message.text.casefold()) == words
        for line in conversation.lines
    )


def _unverified(revision: Any, facts: PromptFacts) -> Iterator[tuple[str, str]]:
    for number, stated in enumerate(revision.factual_information_provided):
        if reason := _no_source(stated.source, facts):
            yield f"factual_information_provided[{number}]", f"{as_json(stated.fact)}: {reason}"
    for number, offered in enumerate(revision.offered_services):
        reason = _no_source(offered.source, facts)
        lines = [facts.conversation.by_id.get(id) for id in _cited(offered.source)]
        if reason is None and all(line is not None and line.speaker == "customer" for line in lines):
            reason = f"{offered.source} is the customer's message: it cannot be what offers a service"
        if reason:
            yield f"offered_services[{number}]", f"{as_json(offered.service)}: {reason}"
    for number, broken in enumerate(revision.instructions_broken):
        if broken.reason == "none":
            yield (
                f"instructions_broken[{number}]",
                f"{as_json(broken.instruction)} is not followed, without a reason",
            )
        elif broken.reason == "customer_request" and _is_prohibition(broken.instruction, facts):
            yield f"instructions_broken[{number}]", f"{as_json(broken.instruction)} forbids it, whoever asks"
    if revision.is_repeat_message:
        yield "is_repeat_message", "it repeats an earlier message of the agent"


def _cited(source: str | None) -> list[str]:
    """The ids of a source; an answer may cite several."""
    return [part for part in re.split(r"[\s,;]+", source or "") if part]


def _is_prohibition(instruction: str, facts: PromptFacts) -> bool:
    """Whether an instruction, cited by its id or in its own words, is one that forbids."""
    cited = set(re.split(r"[^\w-]+", instruction))
    words = _WORD.findall(instruction.casefold())
    return any(
        id in cited or _WORD.findall(action.casefold()) == words for id, action in facts.prohibitions.items()
    )


def _no_source(source: str | None, facts: PromptFacts) -> str | None:
    cited = _cited(source)
    if not cited:
        return "it has no source in this prompt; leave it out or say that it is not known"
    unknown = [id for id in cited if id not in facts.sources and id not in facts.conversation.by_id]
    return f"there is no {as_json(' '.join(unknown))} in this prompt" if unknown else None
