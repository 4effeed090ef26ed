"""Asking the customer for what a tool call still needs: a value, a better value, a yes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.toolnames import ToolName
from arq_graph.models.offline.wanted import Wanted
from arq_graph.models.offline.wording import in_sentence, joined, sentence
from arq_graph.models.offline.words import in_words, stems

_OWN = re.compile(
    r"(?:(?:order|booking|reservation|account|customer|member(?:ship)?|card|ticket|case|policy|invoice"
    r"|contract|user|student"
    r"|patient|passport|loan|subscription|phone|tracking|confirmation|library card) )?(?:id|number|no"
    r"|code|reference|card)"
    r"|(?:(?:first|last|full|user) ?)?name|e?mail(?: address)?|phone|address",
)
PLEASE_CONFIRM = "Please confirm."
_SHALL_I = "Shall I"


def questions_of(scene: Scene) -> list[str]:
    """One question for all that is missing, one for what is wrong, one for each call to confirm."""
    insights = scene.prompt.entries("insights")
    questions = []
    missing = _named(insights, "missing")
    if missing:
        questions.append(sentence(f"could you please tell me {joined(missing)}", "?"))
    invalid = _named(insights, "invalid")
    if invalid:
        questions.append(
            f"There seems to be something wrong with {joined(invalid)}. Could you please check it and tell "
            "me again?"
        )
    described = {
        each.get("name"): str(each.get("description") or "") for each in scene.prompt.entries("tools")
    }
    questions += [
        _confirmation(insight, described.get(insight.get("tool"), ""))
        for insight in insights
        if insight.get("kind") == "confirm"
    ]
    return list(dict.fromkeys(questions))


def is_confirmation(question: str) -> bool:
    """Whether a question puts a call to the customer."""
    return question.startswith(_SHALL_I) and question.endswith("?")


def _named(insights: list[dict[str, Any]], kind: str) -> list[str]:
    named = [
        _in_plain_words(insight)
        for insight in insights
        if insight.get("kind") == kind and insight.get("argument")
    ]
    return list(dict.fromkeys(named))


def _in_plain_words(insight: Mapping[str, Any]) -> str:
    name, described = str(insight.get("argument")), str(insight.get("description") or "")
    wanted = Wanted(name, "string", described)
    label = wanted.label
    label = f"your {label}" if _OWN.fullmatch(label) else f"the {label}"
    if wanted.choices and len(wanted.choices) <= 6:
        return f"{label} ({joined([str(choice) for choice in wanted.choices], 'or')})"
    if wanted.examples:
        return f"{label} (for example {wanted.examples[0]})"
    said = in_sentence(re.sub(r"\s*\([^)]*\)", "", described))
    if said and len(said.split()) <= 7 and not stems(said) <= stems(label) and "_" not in said:
        return f"{label} ({said})"
    return label


def _confirmation(insight: Mapping[str, Any], description: str) -> str:
    name = ToolName(str(insight.get("tool") or ""), description)
    arguments = insight.get("arguments")
    given = [
        f"{in_words(str(name))}: {_plain(value)}"
        for name, value in (arguments.items() if isinstance(arguments, Mapping) else ())
        if value is not None
    ]
    is_told = bool(given or name.object)  # "log out" alone does not say of what
    what = name.as_put if is_told else name.as_described or name.as_put
    return f"{_SHALL_I} {what or 'go ahead'}{f' ({joined(given)})' if given else ''}? {PLEASE_CONFIRM}"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return joined(
            [f"{in_words(str(key))} {_plain(item)}" for key, item in value.items() if item is not None]
        )
    if isinstance(value, list):
        return joined([_plain(item) for item in value])
    return str(value)
