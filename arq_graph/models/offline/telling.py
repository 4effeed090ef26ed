"""Telling what a tool found in plain sentences: no JSON, no ids of the prompt, no names from code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline.dates import kind_of_moment
from arq_graph.models.offline.findings import Finding
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.sections import Line
from arq_graph.models.offline.toolnames import ToolName, name_of
from arq_graph.models.offline.wording import is_plural, joined, plural, sentence
from arq_graph.models.offline.words import Word, best_match, in_words, likeness, words

MAX_FIELDS = 5
MAX_ITEMS = 5
MAX_TEXT = 400
_TITLES = ("name", "title", "label", "subject", "model")
_MESSAGES = ("message", "text", "summary", "detail", "details", "answer", "note")
_CODE = re.compile(r"[_{}<>\\]|\b\w*(?:Error|Exception)\b|Traceback|\bNone\b|\bnull\b")
_QUALITY = re.compile(r"(?:able|ible|ed|open|active|valid|eligible|free|full|ready|closed|online|empty|due)$")
_UNITS = (
    "euros",
    "dollars",
    "pounds",
    "francs",
    "cents",
    "percent",
    "minutes",
    "kilometers",
    "kilometres",
    "miles",
)
_SNAKE = re.compile(r"[a-z]+(?:_[a-z]+)+")
_COLLECTIVE = frozenset(
    (
        "menu",
        "list",
        "schedule",
        "timetable",
        "catalogue",
        "catalog",
        "calendar",
        "agenda",
        "programme",
        "program",
    )
)
_OBVIOUS = frozenset(("ok", "success", "successful", "error", "errors", "found", "count", "total_results"))


@dataclass(frozen=True)
class Telling:
    """A result, to be told.

    Args:
        line: The line of the conversation it stands in.
        scene: The conversation.
        focus: The words of what is wanted: of many values, those that match come first.
        hidden: The words of what must not be told.
    """

    line: Line
    scene: Scene
    focus: tuple[Word, ...] = ()
    hidden: tuple[Word, ...] = ()

    @cached_property
    def _name(self) -> ToolName:
        return name_of(self.line)

    @property
    def _object(self) -> str:
        plain = re.sub(
            r"^(?:by|for|of|the|my) |\b(?:by|for|in|from|with) .*$| (?:details|info|information|status)$",
            "",
            self._name.object,
        )
        return plain.strip() or self._name.verb

    @cached_property
    def sentences(self) -> list[str]:
        """What it says, in sentences."""
        finding, result = Finding(self.line), self.line.result
        if finding.failed:
            return [self._failure(), *self._despite_failure()]
        if isinstance(result, str) and finding.is_empty and len(result) < 40:
            return [self._nothing()]
        if isinstance(result, str):
            said = [self._plain(result)] if result.strip() else [self._nothing()]
            return said if self._name.only_reads else [*said, *self._when(said)]
        if self._name.only_reads:
            return [self._nothing()] if result in (None, [], {}) else self._found(result, self._object)
        told = [] if result in (None, [], {}) else self._found(result, self._object)
        told = [self._done(), *(text for text in told if text)]
        return [*told, *self._when(told)]

    def _failure(self) -> str:
        result = self.line.result
        reason = (
            result
            if isinstance(result, str)
            else next(
                (
                    leaf.value
                    for leaf in Finding(self.line).leaves
                    if leaf.key in ("error", "message", "reason", "detail") and isinstance(leaf.value, str)
                ),
                Finding(self.line).refusal,
            )
        )
        reason = re.sub(
            r"^(?:error|failed|failure)\s*[:.-]\s*", "", _unsnaked(reason.strip()), flags=re.IGNORECASE
        )
        if reason and len(reason) < 160 and not _CODE.search(reason):
            return sentence(
                "I am sorry, that did not work: "
                f"{reason[0].lower() + reason[1:] if not reason[:2].isupper() else reason}"
            )
        return "I am sorry, that did not work just now."

    def _despite_failure(self) -> list[str]:
        """What a result that says no tells besides: the place on the waiting list, another date."""
        result, refusal = self.line.result, Finding(self.line).refusal
        if not refusal or not isinstance(result, dict) or self.line.error:
            return []
        said = self._failure()
        rest = {
            key: value
            for name, field in result.items()
            for key, value in (_flat({name: field}) if isinstance(field, dict) else ((name, field),))
            if value not in (refusal, False)
            and not (isinstance(value, str) and value[1:].rstrip(".") in said)
        }
        return [text for text in self._found(rest, self._object) if text] if rest else []

    def _when(self, told: Sequence[str]) -> list[str]:
        """The dates and times that something was done for, where nothing told says them."""
        given = [
            (key, value)
            for key, value in self.line.arguments.items()
            if isinstance(value, str) and kind_of_moment(value) and not any(value in text for text in told)
        ]
        return [sentence(joined([_clause(key, value) for key, value in given]))] if given else []

    def _plain(self, text: str) -> str:
        text = re.sub(r"```\w*|[*#>|`]{1,3}", " ", text)
        text = without_tool_names(text, self.scene)
        text = " ".join(text.split())
        if len(text) > MAX_TEXT:
            text = text[:MAX_TEXT].rsplit(" ", 1)[0] + " …"
        return sentence(_unsnaked(text))

    def _nothing(self) -> str:
        return sentence(f"I found no matching {plural(self._object)}{self._for_what()}")

    def _for_what(self) -> str:
        given = [
            str(value)
            for value in self.line.arguments.values()
            if isinstance(value, str | int) and not isinstance(value, bool)
        ]
        return f" for {joined(given[:2])}" if given and len(given[0]) < 60 else ""

    def _done(self) -> str:
        of_it = [
            value
            for key, value in self.line.arguments.items()
            if self._identifies(key, value) and _share_of(key, words(self._name.object)) >= 0.9
        ]
        return sentence(f"I have {self._name.as_done}{f' {of_it[0]}' if of_it else ''}")

    def _identifies(self, key: str, value: Any) -> bool:
        last = in_words(key).split()[-1:] or [""]
        return last[0] in ("id", "number", "code", "reference", "no") and isinstance(value, str | int)

    def _found(self, result: Any, what: str) -> list[str]:
        if isinstance(result, list):
            return [self._items(result, what)]
        if isinstance(result, dict):
            return self._fields(result, what)
        if isinstance(result, bool):
            return [sentence(f"{what}: {'yes' if result else 'no'}")]
        return [sentence(f"the {what} is {_spoken(result)}")]

    def _items(self, items: Sequence[Any], what: str) -> str:
        if not items:
            return self._nothing()
        shown = [_item(item) for item in items[:MAX_ITEMS]]
        more = f", and {len(items) - MAX_ITEMS} more" if len(items) > MAX_ITEMS else ""
        if what.split()[-1:] and what.split()[-1] in _COLLECTIVE:
            return sentence(f"on the {what} {'are' if len(shown) > 1 else 'is'} {joined(shown)}{more}")
        count = f"{len(items)} {plural(what)}" if len(items) > 1 else f"one {_singular(what)}"
        listed = (
            "; ".join(shown)
            if any("," in text for text in shown)
            else joined(shown)
            if not more
            else ", ".join(shown)
        )
        return sentence(f"I found {count}: {listed}{more}")

    def _fields(self, record: Mapping[str, Any], what: str) -> list[str]:
        for key in _MESSAGES:
            if (
                isinstance(record.get(key), str)
                and record[key].strip()
                and not self._is_given(record[key])
                and not self._is_hidden(key, record[key])
            ):
                rest = {name: value for name, value in record.items() if name != key}
                others = self._fields(rest, what) if self._wants(rest) else []
                return [self._plain(record[key]), *others]
        lists = {
            key: value
            for key, value in record.items()
            if isinstance(value, list) and not self._is_hidden(key, "")
        }
        told = [
            self._items(value, in_words(key))
            for key, value in lists.items()
            if not value or isinstance(value[0], dict)
        ]
        flat = [
            (key, value)
            for key, value in _flat(record)
            if value not in (None, "", [], {}) and not self._is_hidden(key, value)
        ]
        flat = [
            (key, value)
            for key, value in flat
            if key.lower() not in _OBVIOUS
            and not (key.lower() == "code" and isinstance(value, int))
            and not self._is_given(value)
        ]
        if not self._name.only_reads:  # that it is renewed is said already
            flat = [
                (key, value) for key, value in flat if value is not True or not in_words(key).endswith("ed")
            ]
        chosen = self._chosen(flat)
        if chosen:
            told.insert(0, self._sentence_of(chosen))
        if (
            not told
            and any(key.lower() in ("ok", "success", "successful", "found") for key in record)
            and self._name.only_reads
        ):
            told = (
                ["Yes, that is right."]
                if all(value is not False for value in record.values())
                else [self._nothing()]
            )
        return told

    def _wants(self, record: Mapping[str, Any]) -> bool:
        return any(_share_of(key, self.focus) > 0 for key in record)

    def _is_given(self, value: Any) -> bool:
        return any(value == given and type(value) is type(given) for given in self.line.arguments.values())

    def _is_hidden(self, key: str, value: Any) -> bool:
        names = words(in_words(key))
        said = words(value[:300]) if isinstance(value, str) else ()
        return any(
            best_match(word._replace(negated=False), names)[0] >= 0.9 or best_match(word, said)[0] >= 0.9
            for word in self.hidden
        )

    def _chosen(self, flat: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
        if len(flat) <= MAX_FIELDS:
            return list(flat)
        ranked = sorted(
            range(len(flat)),
            key=lambda i: (-_share_of(flat[i][0], self.focus), flat[i][0].startswith("_"), i),
        )
        return [flat[index] for index in sorted(ranked[:MAX_FIELDS])]

    def _sentence_of(self, fields: Sequence[tuple[str, Any]]) -> str:
        about = self._about()
        clauses = [_clause(key, value) for key, value in fields]
        about = about if self._name.only_reads else ""
        return sentence(f"{f'for {about}, ' if about else ''}{joined(clauses)}")

    def _about(self) -> str:
        """Which one it is, by the arguments: "order ORD-1", "Dune"."""
        for key, value in self.line.arguments.items():
            if self._identifies(key, value):
                owner = " ".join(in_words(key).split()[:-1])
                return f"{owner} {value}".strip()
        for key, value in self.line.arguments.items():
            if (
                isinstance(value, str)
                and 0 < len(value) < 60
                and in_words(key).split()[-1] in ("title", "name", "city", "date", "product", "item")
            ):
                return value
        return ""


def _unsnaked(text: str) -> str:
    return _SNAKE.sub(lambda match: match[0].replace("_", " "), text)


def without_tool_names(text: str, scene: Scene) -> str:
    """A text in which "the system" stands for the tools' names; a name that is a plain word gives nothing away."""
    names = {line.tool for line in scene.lines if line.tool and not line.tool.isalpha()}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "the system", text)
    return text


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in record.items():
        name = f"{prefix} {key}".strip()
        if isinstance(value, dict):
            yield from list(_flat(value, name))[:10]
        elif isinstance(value, list):
            if value and not any(isinstance(item, dict | list) for item in value):
                yield name, value
        else:
            yield name, value


def _share_of(key: str, focus: Collection[Word]) -> float:
    names = words(in_words(key))
    return max((likeness(name.stem, word.stem) for name in names for word in focus), default=0.0)


def _clause(key: str, value: Any) -> str:
    label = in_words(key)
    if isinstance(value, bool):
        bare = re.sub(r"^(?:is|are|was) ", "", label)
        if label.startswith("has "):
            return f"it has {'' if value else 'no '}{label[4:]}"
        if bare != label or _QUALITY.search(bare):
            return f"it is {'' if value else 'not '}{bare}"
        return f"{label}: {'yes' if value else 'no'}"
    *owner, unit = label.split() or [""]
    if unit in _UNITS and isinstance(value, int | float):
        return f"{' '.join(['the', *owner]) if owner else 'it'} is {_spoken(value)} {unit}"
    if re.search(r"\b(?:in|of|by|per|until|from|to|with|at|on)\b", label):
        return f"{label}: {_spoken(value)}"
    verb = "are" if is_plural(label) or (isinstance(value, list) and len(value) > 1) else "is"
    return f"the {label} {verb} {_spoken(value)}"


def _spoken(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return joined([_spoken(item) for item in value[:MAX_ITEMS]])
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if abs(value) < 1e9 else str(value)
    text = " ".join(str(value).split())[:200].rstrip(".")
    return text.replace("_", " ") if _SNAKE.fullmatch(text) else text


def _item(item: Any) -> str:
    if not isinstance(item, dict):
        return _spoken(item)
    names = [key for key in _TITLES if isinstance(item.get(key), str | int)]
    names += [key for key, value in item.items() if isinstance(value, str)]
    title = next(iter(names), None)
    rest = [(key, value) for key, value in _flat(item) if key != title and value is not None][:3]
    details = ", ".join(_detail(key, value) for key, value in rest)
    if title is None:
        return details
    return f"{_spoken(item[title])}{f' ({details})' if details else ''}"


def _detail(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return in_words(key) if value else f"not {in_words(key)}"
    return f"{in_words(key)} {_spoken(value)}"


def _singular(noun: str) -> str:
    if noun.endswith("ies"):
        return noun[:-3] + "y"
    return noun[:-1] if noun.endswith("s") and not noun.endswith("ss") else noun
