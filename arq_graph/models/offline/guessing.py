"""Guesses for a schema that no rule knows: by the words of its question, its names, and what was wrong before."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from arq_graph.models.offline import dialogue
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.words import content, in_words, overlap

MAX_STRING = 240
NOTHING: Any = object()
"""Stands for "no suggestion", since None is one."""
_UNKNOWN = "Nothing here tells."
_ABOUT_THE_ANSWER = re.compile(
    r"\b(?:answer|reply|response|correct|valid|consistent|above|every|all|respects?|fits?|follow(?:s"
    r"|ed)?|grounded|accurate|complete|supported)\b",
    re.IGNORECASE,
)
_SCORES = re.compile(
    r"score|rating|rate|confidence|probability|likelihood|relevance|priority|severity|certainty"
    r"|strength|degree",
    re.IGNORECASE,
)
_PLACES = re.compile(r"number|step|index|position|order|rank|id|round|attempt|turn", re.IGNORECASE)
_COMPLAINT = re.compile(r"^- (?P<path>[\w$-]+(?:\.[\w$-]+|\[\d+\])*): (?P<message>.*)$", re.MULTILINE)
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_LEAST = re.compile(rf"greater than (or equal to )?{_NUMBER}")
_MOST = re.compile(rf"less than (or equal to )?{_NUMBER}")
_MULTIPLE = re.compile(rf"multiple of {_NUMBER}")
_MUST_BE = re.compile(r"which must be (.+)$")
_LITERALS = re.compile(r"Input should be (.+)$")


@dataclass(frozen=True)
class Guesses:
    """What to put where nothing is suggested.

    Args:
        scene: The conversation and the prompt it stands in.
    """

    scene: Scene

    @cached_property
    def _complaints(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """What was wrong with earlier answers, by path; the newest first."""
        found = [
            (tuple(part for part in re.split(r"[.\[\]]", match["path"]) if part)[1:], match["message"])
            for text in self.scene.prompt.complaints
            for match in _COMPLAINT.finditer(text[:20_000])
        ]
        return tuple(reversed(found))

    def _complaint(self, path: Sequence[str]) -> str:
        wanted = tuple(path)
        return next((message for at, message in self._complaints if at == wanted), "")

    @cached_property
    def corrected(self) -> Any:
        """The answer that was refused, without the values that were found wrong; nothing if there was none."""
        try:
            refused = json.loads(self.scene.prompt.refused)
        except (ValueError, RecursionError):
            return {}
        return self._kept(refused, ()) if isinstance(refused, dict) else {}

    def _kept(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, dict):
            parts = {key: self._kept(item, (*path, key)) for key, item in value.items()}
            return {key: part for key, part in parts.items() if part is not NOTHING}
        if isinstance(value, list):
            return [self._kept(item, (*path, str(index))) for index, item in enumerate(value)]
        # A number is moved into its bounds; anything else that was wrong is thought of anew.
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return NOTHING if self._complaint(path) and not is_number else value

    @cached_property
    def _sentences(self) -> tuple[str, ...]:
        """What strings are made of: what was said and found, the newest first, and what is known."""
        prompt = self.scene.prompt
        texts = [line.text[:2_000] for line in reversed(self.scene.lines)]
        texts += [str(prompt.profile.get("text") or "")]
        texts += [f"{entry.get('name')}: {entry.get('description')}" for entry in prompt.entries("glossary")]
        return tuple(sentence for text in texts for sentence in dialogue.sentences(text))[:300]

    def strings(self, path: Sequence[str], question: str) -> list[str]:
        """Up to two strings for a list."""
        asked = f"{in_words(_name(path))} {question}"
        ranked = sorted(((overlap(asked, s), -i, s) for i, s in enumerate(self._sentences)), reverse=True)
        best = [sentence[:MAX_STRING] for share, _, sentence in ranked[:2] if share > 0]
        return best or [self._fallback()]

    def string(self, path: Sequence[str], question: str, schema: Mapping[str, Any]) -> str:
        """One string: the sentence of the prompt that shares most words with the question."""
        complaint = self._complaint(path)
        made = self._moment(path, f"{complaint} {schema.get('format') or ''}")
        if made is None and (pattern := schema.get("pattern") or _pattern_in(complaint)):
            made = (
                next((word for word in _words_of(self._sentences) if re.fullmatch(pattern, word)), None)
                if _is_safe(pattern)
                else None
            )
            made = made or _plain_match(str(pattern))
        if made is None and (literal := self._literal(complaint, str)) is not None:
            made = literal
        if made is None:
            name = _name(path)
            if re.search(r"last.*(?:message|customer)|customer.*message", name):
                made = self.scene.last.text[:MAX_STRING]
            elif name in ("id", "source") or name.endswith("_id"):
                made = self.scene.last.id or "M1"
            else:
                made = self.strings(path, question)[0]
        least, most = _lengths(complaint, schema)
        if len(made) < least:
            made += " " + "." * (least - len(made) - 1) if least > len(made) + 1 else "."
        return made[:most] if most is not None else made

    def _fallback(self) -> str:
        said = dialogue.sentences(self.scene.last.text)
        return said[0][:MAX_STRING] if said else _UNKNOWN

    def _moment(self, path: Sequence[str], hint: str) -> str | None:
        # A date is only made up where an answer without one was refused, or the schema's format asks for one.
        if not re.search(r"\b(?:date|datetime|date-time|time)\b", hint):
            return None
        found = re.search(r"\b\d{4}-\d{2}-\d{2}\b", " ".join(self._sentences))
        day = found[0] if found else "2000-01-01"
        if re.search(r"datetime|date-time", hint):
            return f"{day}T00:00:00Z"
        return "00:00:00" if re.search(r"\btime\b", hint) and not re.search(r"\bdate\b", hint) else day

    def number(self, path: Sequence[str], question: str, schema: Mapping[str, Any]) -> int | float:
        """One number: 5 for a score, its place for a number in a list, else 1."""
        name = _name(path)
        if _SCORES.search(name):
            guess: int | float = 5
        elif _PLACES.search(name):
            places = [int(part) for part in path if part.isdigit()]
            guess = places[-1] + 1 if places else 1
        else:
            guess = 1
        return self.bounded(path, guess, schema)

    def bounded(self, path: Sequence[str], number: int | float, schema: Mapping[str, Any]) -> int | float:
        """A number within the bounds that the schema, or what was wrong before, sets."""
        complaint = self._complaint(path)
        step = 1 if schema.get("type") == "integer" else 0.1
        literal = self._literal(complaint, int | float)
        if literal is not None and not isinstance(literal, bool):
            return literal if step != 1 else int(literal)
        least, most = schema.get("minimum"), schema.get("maximum")
        if "exclusiveMinimum" in schema:
            least = schema["exclusiveMinimum"] + step
        if "exclusiveMaximum" in schema:
            most = schema["exclusiveMaximum"] - step
        if match := _LEAST.search(complaint):
            least = float(match[2]) + (0 if match[1] else step)
        if match := _MOST.search(complaint):
            most = float(match[2]) - (0 if match[1] else step)
        if least is not None and number < least:
            number = least
        if most is not None and number > most:
            number = most
        if (match := _MULTIPLE.search(complaint)) and (unit := float(match[1])):
            number = round(number / unit) * unit or unit
        return int(number) if step == 1 else number

    def boolean(self, path: Sequence[str], question: str) -> bool:
        """Yes or no: yes to a question about the answer itself, else as far as the conversation speaks of it."""
        complaint = self._complaint(path)
        asked = f"{in_words(_name(path))} {question}"
        guess = bool(_ABOUT_THE_ANSWER.search(asked)) or self._is_spoken_of(asked)
        literal = self._literal(complaint, bool)
        if literal is not None:
            return bool(literal)
        return not guess if "is not acceptable" in complaint else guess

    def _is_spoken_of(self, asked: str) -> bool:
        return (
            overlap(
                asked, f"{self.scene.need} {' '.join(line.text[:500] for line in self.scene.fresh_results)}"
            )
            >= 0.5
        )

    def choice(self, path: Sequence[str], question: str, options: Sequence[Any]) -> Any:
        """The option whose words the conversation has most of; the first where none is mentioned."""
        complaint = self._complaint(path)
        allowed = [option for option in options if option == self._literal(complaint, object)]
        if allowed:
            return allowed[0]
        tried = re.search(r"was answered (.+?), which", complaint)
        options = [option for option in options if not tried or repr(option) != tried[1]] or list(options)
        said = f"{self.scene.need} {' '.join(line.text[:1_000] for line in self.scene.fresh_results)}"
        scores = [overlap(in_words(option), said) if isinstance(option, str) else 0.0 for option in options]
        return options[scores.index(max(scores))]

    def fills_optional(self, path: Sequence[str], question: str) -> bool:
        """Whether a value that may be null is given one: yes, since null may be no answer where it applies."""
        return True

    def least_items(self, path: Sequence[str]) -> int:
        """How many entries a list was found to need."""
        match = re.search(r"at least (\d+) items?", self._complaint(path))
        return min(int(match[1]), 50) if match else 0

    def _literal(self, complaint: str, kind: Any) -> Any:
        """The value that a complaint asks for: "which must be True", "Input should be 'a' or 'b'"."""
        match = _MUST_BE.search(complaint) or (_LITERALS.search(complaint) if "'" in complaint else None)
        if match is None:
            return None
        for part in (match[1], *re.split(r", | or ", match[1])):
            try:
                value = ast.literal_eval(part.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(value, kind):
                return value
        return None


def _name(path: Sequence[str]) -> str:
    return next((part for part in reversed(path) if not part.isdigit()), "")


def _words_of(sentences: Sequence[str]) -> list[str]:
    return [word.strip(".,;:!?\"'()") for sentence in sentences for word in sentence.split()][:2_000]


def _pattern_in(complaint: str) -> str | None:
    match = re.search(r"should match pattern '(.+)'$", complaint)
    return match[1] if match else None


def _lengths(complaint: str, schema: Mapping[str, Any]) -> tuple[int, int | None]:
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    if match := re.search(r"at least (\d+) characters?", complaint):
        least = min(int(match[1]), 10_000)
    if match := re.search(r"at most (\d+) characters?", complaint):
        most = int(match[1])
    return least, most


_TOKEN = re.compile(
    r"(?P<digit>\\d|\[0-9\])|(?P<upper>\[A-Z(?:0-9)?\])|(?P<lower>\\w|\[(?:a-z|A-Za-z|a-zA-Z|a-z0-9"
    r"|A-Za-z0-9|a-zA-Z0-9_)\])"
    r"|(?P<plain>[A-Za-z0-9 _@#:,-])|\\(?P<escaped>\W)"
)
_COUNT = re.compile(r"\{(\d+)(?:,\d*)?\}|[+*?]")


def _is_safe(pattern: str) -> bool:
    """Whether it is a plain pattern: others are not run, since they might never end."""
    return _plain_match(pattern) is not None


def _plain_match(pattern: str) -> str | None:
    """A string that a plain pattern of letters, digits, classes and counts matches; None for any other."""
    body, position, made = pattern.removeprefix("^").removesuffix("$"), 0, ""
    while position < len(body):
        token = _TOKEN.match(body, position)
        if token is None:
            return None
        one = (
            "1"
            if token["digit"]
            else "A"
            if token["upper"]
            else "a"
            if token["lower"]
            else token["plain"] or token["escaped"]
        )
        position = token.end()
        if count := _COUNT.match(body, position):
            one *= min(int(count[1]), 1_000) if count[1] else 1
            position = count.end()
        made += one
    return made


def need_in_words(scene: Scene) -> str:
    """The open need in one line, for queries that ask for it."""
    need = scene.need
    if not content(need) and dialogue.greets(need):
        return "A greeting; nothing is asked for yet."
    return need[:MAX_STRING] or "Nothing is asked for yet."
