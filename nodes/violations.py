"""The violations that code finds in a reply; they decide if it is revised again, not the model (Appendix C)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import regex  # type: ignore[import-untyped]

from arq_graph.agent.spec import Agent
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import as_json, normalize_text, split_words

_ID = re.compile(r"(?<![A-Za-z0-9])[GTKVMIC]\d+(?![A-Za-z0-9])")
_ONE_WORD = regex.compile(r"\p{Lu}?\p{Ll}+|\p{Lu}+")
_PLAIN_WORDS = regex.compile(r"(?:\p{Lu}?\p{Ll}+|\p{Lu}+)(?:[ -](?:\p{Lu}?\p{Ll}+|\p{Lu}+))*")
_REPEATED = (
    "an earlier message says exactly this: refer to it, take another way, "
    "or say that you are going round in circles"
)


@dataclass(frozen=True)
class PromptReferences:
    """The facts in a prompt that a reply is checked against.

    `sources`: ids in the prompt that aren't lines of the conversation, and names of the tools described there;
    `internal_names`: names besides those of tools that must not show, such as variables and guidelines' ids (also
    those that aren't in the prompt); `public_text`: a word of it may be quoted even if it looks like an id.
    """

    conversation: Conversation
    sources: Collection[str]
    tools: Collection[str]
    internal_names: Collection[str]
    public_text: str = ""


def collect_references(
    agent: Agent,
    conversation: Conversation,
    variables: Iterable[Mapping[str, Any]],
    sources: Iterable[str] = (),
) -> PromptReferences:
    """Collect the facts in an agent's prompt; `sources` are ids besides those of its profile, terms and variables."""
    all_sources = {"P"}.union(sources)
    internal_names: list[str] = []
    public_texts = [agent.profile]
    for number, term in enumerate(agent.glossary, start=1):
        all_sources.add(f"K{number}")
        public_texts += [term.name, term.description]
        public_texts += term.synonyms
    for guideline in agent.guidelines:
        internal_names.append(guideline.id)
        public_texts.append(guideline.action or "")
    for variable in variables:
        all_sources.add(variable["id"])
        internal_names.append(variable["name"])
    tools = list(agent.toolbox)
    tools.extend(line.call["name"] for line in conversation.lines if line.call)
    return PromptReferences(conversation, all_sources, tools, internal_names, " ".join(public_texts))


def find_violations(answer: Any, content: str, facts: PromptReferences) -> list[Complaint]:
    """Find what is wrong with an answer's last revision, whose text is `content`."""
    number = len(answer.revisions) - 1
    blueprint = type(answer).__name__
    problems = [("content", reason) for reason in find_blockers(content, facts)]
    own_lines = [line for line in facts.conversation.lines if line.speaker == "agent"]
    earlier_messages = [split_words(line.message.text) for line in own_lines]
    words = split_words(content)
    if words and words in earlier_messages:
        problems.append(("content", _REPEATED))
    if "insights" in answer.model_fields_set:  # not asked in the modes without queries
        problems.extend(_find_unverified(answer.revisions[number], facts))
    complaints = [Complaint(blueprint, f"revisions[{number}].{query}", reason) for query, reason in problems]
    for index, insight in enumerate(getattr(answer, "insights", ())):
        if insight.source and (problem := check_source(insight.source, facts)):
            reason = f"{as_json(insight.insight)}: {problem}"
            complaints.append(Complaint(blueprint, f"insights[{index}]", reason))
    return complaints


def find_blockers(content: str, facts: PromptReferences) -> list[str]:
    """Find the reasons why a reply must not be sent at all: it is empty, or gives internals away."""
    if not normalize_text(content).strip():
        return ["the reply is empty"]
    return find_leaks(content, facts)


def find_leaks(content: str, facts: PromptReferences) -> list[str]:
    """Find the ids and internal names that a reply gives away (secrecy, Appendix C)."""
    content = normalize_text(content).replace("\\", "")  # Markdown may have `get\_order`
    leaks: list[str] = []
    internal_ids = set(facts.sources).union(facts.internal_names)
    internal_ids.update(line.id for line in facts.conversation.lines)
    for id in _ID.findall(content):
        if id in internal_ids and not _is_quoted(id, facts):
            leaks.append(id)
    word_patterns = dict.fromkeys(map(normalize_text, facts.internal_names), _PLAIN_WORDS)
    word_patterns |= dict.fromkeys(map(normalize_text, facts.tools), _ONE_WORD)
    lowered = content.casefold()
    for name, word_pattern in word_patterns.items():
        # First a cheap test, since few names occur at all.
        if name.casefold() not in lowered or _ID.fullmatch(name):
            continue
        if _shows_name(name, content, is_word=word_pattern.fullmatch(name) is not None):
            leaks.append(name)
    return [f"{leak!r} is internal and must not show in a reply" for leak in dict.fromkeys(leaks)]


def _shows_name(name: str, content: str, *, is_word: bool) -> bool:
    """Return True if a reply shows an internal name as such.

    `search`, `VIP` or `loyalty tier` are also words: they give something away only as code, in backticks or as a call.
    A name in ASCII also ends where a letter of another script follows, as some scripts have no spaces.
    """
    escaped = re.escape(name)
    letter = r"\p{Latin}\d" if name.isascii() else r"\p{L}\p{M}\d"
    if is_word:
        return regex.search(rf"`{escaped}`|(?<![{letter}_]){escaped}\(", content) is not None
    # In any case, and in italics, such as `_get_order_`.
    return regex.search(rf"(?<![{letter}]){escaped}(?![{letter}])", content, regex.IGNORECASE) is not None


def _is_quoted(token: str, facts: PromptReferences) -> bool:
    """Return True if a word that looks like an id is the customer's or the business's: a product called `M2`."""
    speakers = {"tool"} if token.startswith("G") else {"tool", "customer"}
    texts = [facts.public_text]
    texts += [line.message.text for line in facts.conversation.lines if line.speaker in speakers]
    return any(token in _ID.findall(normalize_text(text)) for text in texts)


def _find_unverified(revision: Any, facts: PromptReferences) -> Iterator[tuple[str, str]]:
    """Find the queries whose answers verify that the revision must be revised, each with the reason."""
    for number, stated in enumerate(revision.factual_information_provided):
        if problem := check_source(stated.source, facts):
            yield f"factual_information_provided[{number}]", f"{as_json(stated.fact)}: {problem}"
    for number, offered in enumerate(revision.offered_services):
        if problem := _check_service_source(offered.source, facts):
            yield f"offered_services[{number}]", f"{as_json(offered.service)}: {problem}"
    for number, broken in enumerate(revision.instructions_broken):
        instruction, query = as_json(broken.instruction), f"instructions_broken[{number}]"
        if broken.reason == "none":
            yield query, f"{instruction} is not followed, without a reason"
        elif broken.reason == "customer_request" and broken.forbids:
            yield query, f"{instruction} forbids it, whoever asks"
    if revision.is_repeat_message:
        yield "is_repeat_message", "it repeats an earlier message of the agent"


def check_source(source: str | None, facts: PromptReferences) -> str | None:
    """Return what is wrong with a source: it is empty, or cites an id that the prompt doesn't have; or None."""
    ids = _split_ids(source)
    if not ids:
        return "it has no source in this prompt; leave it out or say that it is not known"
    unknown = [id for id in ids if id not in facts.sources and id not in facts.conversation.lines_by_id]
    return f"there is no {as_json(' '.join(unknown))} in this prompt" if unknown else None


def _check_service_source(source: str | None, facts: PromptReferences) -> str | None:
    if problem := check_source(source, facts):
        return problem
    lines = [facts.conversation.lines_by_id.get(id) for id in _split_ids(source)]
    if all(line is not None and line.speaker == "customer" for line in lines):
        return f"{source} is the customer's message: it cannot be what offers a service"
    return None


def _split_ids(source: str | None) -> list[str]:
    return [part for part in re.split(r"[\s,;]+", source or "") if part]
