"""The violations that code finds in a reply; these, and not the model, decide if it is revised (Appendix C)."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import regex  # type: ignore[import-untyped]

from arq_graph.agent.spec import Agent
from arq_graph.nodes.agent_node import describe_agent, describe_variables
from arq_graph.nodes.messages import list_ids
from arq_graph.nodes.state_view import StateView
from arq_graph.nodes.turn_records import read_passages
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.sections import ID_PREFIXES, as_json, normalize_text, split_words

_ID = re.compile(rf"(?<![A-Za-z0-9])[{''.join(ID_PREFIXES)}]\d+(?![A-Za-z0-9])")
_ONE_WORD = regex.compile(r"\p{Lu}?\p{Ll}+|\p{Lu}+")
_PLAIN_WORDS = regex.compile(r"(?:\p{Lu}?\p{Ll}+|\p{Lu}+)(?:[ -](?:\p{Lu}?\p{Ll}+|\p{Lu}+))*")
_REPEATED = (
    "an earlier message says exactly this: refer to it, take another way, "
    "or say that you are going round in circles"
)


@dataclass(frozen=True)
class PromptReferences:
    """The ids and names in a prompt, which decide what a reply may cite and what it must not show.

    Args:
        conversation: The conversation, whose lines have ids.
        citable_ids: The other ids in the prompt, and the names of the tools described there.
        passage_ids: Those of them that are ids of passages.
        tool_names: The names of all tools, which must not show.
        secret_names: Other names that must not show, such as variables and guidelines' ids (also those that aren't in
            the prompt).
        public_text: A text of which a word may be quoted even if it looks like an id.
    """

    conversation: Conversation
    citable_ids: Collection[str]
    passage_ids: Collection[str]
    tool_names: Collection[str]
    secret_names: Collection[str]
    public_text: str = ""


def collect_references(agent: Agent, state: StateView, citable_ids: Iterable[str] = ()) -> PromptReferences:
    """Collect the references in an agent's prompt.

    `citable_ids` are ids besides those of its profile, terms, variables and passages.
    """
    description = describe_agent(agent)
    all_ids = {description["profile"]["id"]}.union(citable_ids)
    for entry in description["glossary"]:
        all_ids.add(entry["id"])
    public_texts = [agent.profile]
    for term in agent.glossary:
        public_texts += [term.name, term.description]
        public_texts += term.synonyms
    secret_names: list[str] = []
    for guideline in agent.rules:
        secret_names.append(guideline.id)
        public_texts.append(guideline.action or "")
    passages = read_passages(agent, state)
    for passage in passages:
        public_texts += [passage.title, passage.text]
    for variable in describe_variables(agent, state):
        all_ids.add(variable["id"])
        secret_names.append(variable["name"])
    tool_names = dict.fromkeys(agent.toolbox)  # in order, each once
    for line in state.conversation.lines:
        if line.call:
            tool_names[line.call["name"]] = None
    passage_ids = {passage.id for passage in passages}
    all_ids |= passage_ids
    public_text = " ".join(public_texts)
    return PromptReferences(state.conversation, all_ids, passage_ids, tool_names, secret_names, public_text)


def find_violations(answer: Any, content: str, references: PromptReferences) -> list[Complaint]:
    """Return what is wrong with an answer's last revision, whose text is `content`."""
    number = len(answer.revisions) - 1
    blueprint = type(answer).__name__
    problems: list[tuple[str, str]] = []
    for violation in find_grave_violations(content, references):
        problems.append(("content", violation))
    if _is_repeated(content, references.conversation):
        problems.append(("content", _REPEATED))
    if "insights" in answer.model_fields_set:  # not asked in the modes without queries
        problems.extend(_find_failed_checks(answer.revisions[number], references))
    complaints = [Complaint(blueprint, f"revisions[{number}].{query}", reason) for query, reason in problems]
    for index, insight in enumerate(getattr(answer, "insights", ())):
        if insight.source and (problem := find_source_problem(insight.source, references)):
            reason = f"{as_json(insight.insight)}: {problem}"
            complaints.append(Complaint(blueprint, f"insights[{index}]", reason))
    return complaints


def _is_repeated(content: str, conversation: Conversation) -> bool:
    words = split_words(content)
    if not words:
        return False
    first, last, longest = words[0], words[-1], max(words, key=len)
    for line in conversation.lines:
        if line.speaker != "agent":
            continue
        text = line.text.casefold()
        # First cheap tests, since few messages repeat another.
        if last in text and longest in text and first in text and split_words(text) == words:
            return True
    return False


def find_grave_violations(content: str, references: PromptReferences) -> list[str]:
    """Return why a reply must not be sent, whatever the settings: it is empty, or reveals internals."""
    if not normalize_text(content).strip():
        return ["the reply is empty"]
    return find_leaks(content, references)


def find_leaks(content: str, references: PromptReferences) -> list[str]:
    """Return the complaints about ids and internal names that a reply reveals (secrecy, Appendix C)."""
    content = normalize_text(content).replace("\\", "")  # Markdown may have `get\_order`
    leaks: dict[str, None] = {}  # in order, each once
    if shown_ids := _ID.findall(content):
        internal_ids = set(references.citable_ids).union(references.secret_names)
        internal_ids.update(list_ids(references.conversation.lines))
        for id in shown_ids:
            if id in internal_ids and not _is_quoted(id, references):
                leaks[id] = None
    # A name that is made of ordinary words may occur in a reply, except as code; `get_order` may not. A tool's name is
    # ordinary only if it is a single word. If a tool and something else share a name, the tool's rule counts.
    ordinary_words = dict.fromkeys(map(normalize_text, references.secret_names), _PLAIN_WORDS)
    ordinary_words.update(dict.fromkeys(map(normalize_text, references.tool_names), _ONE_WORD))
    lowered = content.casefold()
    for name, words in ordinary_words.items():
        # First a cheap test, since few names occur at all.
        if name.casefold() not in lowered or _ID.fullmatch(name):
            continue
        is_ordinary = words.fullmatch(name) is not None
        if _shows_name(name, content, only_as_code=is_ordinary):
            leaks[name] = None
    return [f"{leak!r} is internal and must not show in a reply" for leak in leaks]


def _shows_name(name: str, content: str, *, only_as_code: bool) -> bool:
    """Return True if a reply shows an internal name.

    Names such as `search`, `VIP` or `loyalty tier` reveal something only as code: in backticks or as a call.
    A name in ASCII also ends where a letter of another script follows, as some scripts have no spaces.
    """
    escaped = re.escape(name)
    letter = r"\p{Latin}\d" if name.isascii() else r"\p{L}\p{M}\d"
    if only_as_code:
        return regex.search(rf"`{escaped}`|(?<![{letter}_]){escaped}\(", content) is not None
    # In any case, and in italics, such as `_get_order_`.
    return regex.search(rf"(?<![{letter}]){escaped}(?![{letter}])", content, regex.IGNORECASE) is not None


def _is_quoted(token: str, references: PromptReferences) -> bool:
    """Return True if a word that looks like an id was used by the customer, a colleague, a tool or the specification.

    It may be a product called `M2`.
    """
    speakers = {"tool"} if token.startswith("G") else {"tool", "customer", "colleague"}
    texts = [references.public_text]
    for line in references.conversation.lines:
        if line.speaker in speakers:
            texts.append(line.text)
    return any(token in _ID.findall(normalize_text(text)) for text in texts)


def _find_failed_checks(revision: Any, references: PromptReferences) -> Iterator[tuple[str, str]]:
    """Yield the verification queries that the reply fails, each with the reason."""
    for number, stated in enumerate(revision.factual_information_provided):
        if problem := find_source_problem(stated.source, references):
            yield f"factual_information_provided[{number}]", f"{as_json(stated.fact)}: {problem}"
    for number, offered in enumerate(revision.offered_services):
        if problem := _find_service_source_problem(offered.source, references):
            yield f"offered_services[{number}]", f"{as_json(offered.service)}: {problem}"
    for number, broken in enumerate(revision.instructions_broken):
        if problem := _find_excuse_problem(broken):
            yield f"instructions_broken[{number}]", f"{as_json(broken.instruction)} {problem}"
    if revision.is_repeat_message:
        yield "is_repeat_message", "it repeats an earlier message of the agent"


def _find_excuse_problem(broken: Any) -> str | None:
    """Return why the reason for which a reply does not follow an instruction doesn't count; None if it does."""
    if broken.reason == "none":
        return "is not followed, without a reason"
    if broken.reason == "customer_request" and broken.forbids:
        return "forbids it, whoever asks"
    return None


def find_broken_guidelines(answer: Any, active_ids: Container[str]) -> dict[str, str] | None:
    """Return the active guidelines that an answer's last revision breaks, and why; None if it wasn't asked."""
    if "insights" not in answer.model_fields_set:  # the modes without queries
        return None
    guidelines: dict[str, str] = {}
    for broken in answer.revisions[-1].instructions_broken:
        if broken.instruction in active_ids and _find_excuse_problem(broken):
            guidelines[broken.instruction] = broken.rationale
    return guidelines


def find_source_problem(source: str | None, references: PromptReferences) -> str | None:
    """Return the problem with a source, if it is empty or cites an id that isn't in the prompt; otherwise None."""
    ids = _split_ids(source)
    if not ids:
        return "it has no source in this prompt; leave it out or say that it is not known"
    unknown_ids: list[str] = []
    for id in ids:
        if id not in references.citable_ids and id not in references.conversation.lines_by_id:
            unknown_ids.append(id)
    return f"there is no {as_json(' '.join(unknown_ids))} in this prompt" if unknown_ids else None


def find_cited_passages(answer: Any, references: PromptReferences) -> tuple[str, ...]:
    """Return the ids of the passages that an answer's last revision gives as sources, in order."""
    if "insights" not in answer.model_fields_set:  # the modes without queries don't ask for sources
        return ()
    revision = answer.revisions[-1]
    cited: dict[str, None] = {}  # in order, each once
    for stated in revision.factual_information_provided + revision.offered_services:
        cited.update(dict.fromkeys(_split_ids(stated.source)))
    return tuple(id for id in cited if id in references.passage_ids)


def _find_service_source_problem(source: str | None, references: PromptReferences) -> str | None:
    if problem := find_source_problem(source, references):
        return problem
    for id in _split_ids(source):
        line = references.conversation.lines_by_id.get(id)
        if line is None or line.speaker != "customer":
            return None
    return f"{source}: a customer's message can't offer a service"


def _split_ids(source: str | None) -> list[str]:
    return re.findall(r"[^\s,;]+", source or "")
