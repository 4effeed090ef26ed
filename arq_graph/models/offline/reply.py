"""Writing a reply: what actions say between quotes, what results tell, and one question for what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline.activation import is_opening
from arq_graph.models.offline.arguments import asked_for
from arq_graph.models.offline.prompt import Line, Prompt
from arq_graph.models.offline.stems import label, stems, words

NOT_UNDERSTOOD = "(offline model) I did not understand this. A real model would."

_QUOTE = re.compile(r"[\"“]([^\"“”]+)[\"”]")
_KIND_OF_ERROR = re.compile(r"^(?:Error: )?\w*(?:Error|Exception): ")
_MOST_LISTED = 5
_SHORT = 3  # words at most


@dataclass(frozen=True)
class Reply:
    """The reply of this turn; `wanted` has what the customer is asked for, each with the tool that waits for it."""

    prompt: Prompt
    wanted: Sequence[tuple[str, str]] = ()

    @cached_property
    def text(self) -> str:
        """The whole reply, never quite the same as one before."""
        text = "\n\n".join(part for part in self._parts() if part)
        times = sum(text in said for said in self.prompt.said)
        return f"{text} ({times + 1})" if times else text

    @cached_property
    def question(self) -> str:
        """The question for everything that is missing; empty where nothing is."""
        missing = list(dict.fromkeys(what for _, what in self.wanted))
        listed = " and ".join([", ".join(missing[:-1]), *missing[-1:]] if len(missing) > 1 else missing)
        return f"Could you please tell me {listed}?" if missing else ""

    def _parts(self) -> Iterable[str]:
        opening, quotes = [], []
        waiting = {stem for tool, _ in self.wanted for stem in stems(tool)}
        for entry in self.prompt.entries("active_guidelines"):
            action = str(entry.get("action") or "")
            if is_opening(entry.get("condition")):
                opening += _QUOTE.findall(action)
            elif stems(_QUOTE.sub("", action)).isdisjoint(waiting):
                quotes += _QUOTE.findall(action)
        told = [_told(line) for line in self.prompt.results] or [self._term()]
        body = [part for part in [*told, *quotes, self.question] if part]
        return [*opening, *(body or [self._otherwise(is_greeted=bool(opening))])]

    def _otherwise(self, *, is_greeted: bool) -> str:
        is_short = len(words(self.prompt.request)) <= _SHORT
        if self._asks_for_agreement:
            return "Let me make sure that I have this right."
        if is_short and self.prompt.says_no:
            return "All right."
        return "" if is_short and is_greeted else NOT_UNDERSTOOD

    @property
    def _asks_for_agreement(self) -> bool:
        """Whether code's own question stands below the reply, so that there is nothing more to say."""
        put = [tool for tool in self.prompt.entries("tools") if tool.get("needs_agreement")]
        refused = any(f".{tool.get('name')}" in place for tool in put for place in self.prompt.complaints)
        is_put = any(each.get("kind") == "confirm" for each in self.prompt.entries("insights"))
        return is_put or refused or (bool(self.prompt.waiting) and not self.prompt.says_no)

    def _term(self) -> str:
        said = f" {label(self.prompt.request)} "
        for entry in self.prompt.entries("glossary"):
            name = str(entry.get("name"))
            if any(f" {label(each)} " in said for each in (name, *entry.get("synonyms", ()))):
                return f"{name[:1].upper()}{name[1:]}: {entry.get('description')}."
        return ""


def _told(line: Line) -> str:
    if line.failed:
        return f"I am sorry, that did not work: {_KIND_OF_ERROR.sub('', line.text).strip().rstrip('.')}."
    told = line.result
    if isinstance(told, dict):
        return "\n".join(f"- {label(str(name))}: {_value(value)}" for name, value in told.items())
    if isinstance(told, list):
        shown = "\n".join(f"- {_value(each)}" for each in told[:_MOST_LISTED])
        return shown or "There is nothing of that kind."
    return line.text.strip() or "That is done."


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{label(str(name))} {_value(each)}" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value[:_MOST_LISTED])) or "none"
    return "none" if value is None else str(value)


def revise(prompt: Prompt) -> dict[str, Any]:
    """The answers to the reviser's queries: one revision, the draft where there is one."""
    wanted = [
        (str(each.get("tool")), asked_for(str(each["argument"]), str(each.get("description") or "")))
        for each in prompt.entries("insights")
        if each.get("kind") in ("missing", "invalid") and each.get("argument")
    ]
    draft = prompt.sections.get("draft")
    is_new = isinstance(draft, str) and draft not in prompt.said and not prompt.complaints
    content = draft if draft and is_new else Reply(prompt, wanted).text
    facts = [{"fact": _told(line), "source": line.id} for line in prompt.results]
    followed = [entry.get("id") for entry in prompt.entries("active_guidelines")]
    revision = {"content": content, "followed": followed, "factual_information_provided": facts}
    return {
        "last_message_of_customer": prompt.request,
        "context_evaluation": {"most_recent_customer_inquiries_or_needs": prompt.request},
        "revisions": [{"revision_number": 1, **revision}],
    }
