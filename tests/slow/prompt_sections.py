"""Reading a prompt back into its sections: what no customer, tool or model may open or close."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.reasoning.endpoint import Request

_BEFORE = ("variables",)
_AFTER = ("active_guidelines", "plan", "world", "thoughts", "insights", "draft")
_TAIL = re.compile(
    "".join(rf"(?:<{name}>(?P<{name}>[^<>]*)</{name}>\n)?" for name in _BEFORE)
    + r"<conversation>\n(?P<conversation>[^<>]*)\n</conversation>\n"
    + "".join(rf"(?:<{name}>(?P<{name}>[^<>]*)</{name}>\n)?" for name in _AFTER)
    + r"<now>(?P<now>[^<>]*)</now>\n(?:[^<>]|<draft>)*"
)
_SECTION_OF_HEAD = re.compile(
    r"<(example|profile|glossary|guidelines|tools|policies|dialogue_acts)>[^<>]*</\1>"
)
# The instructions mention these sections.
_PROSE = re.compile(
    r"(?:[^<>]|<(?:now|insights|active_guidelines|plan|world|policies|dialogue_acts|draft)>)*"
)


def sections_of(request: Request) -> dict[str, Any]:
    """The sections of a prompt's first human message, each read as the JSON it holds; the conversation as lines.

    Raises:
        AssertionError: An angle bracket stands anywhere but in the tags of these sections, in their order, or
            what a section holds is not JSON.
    """
    human = next(m["content"] for m in request.messages if m["role"] == "user")
    match = _TAIL.fullmatch(human)
    assert match, f"the prompt's sections are broken:\n{human}"
    found: dict[str, Any] = {
        name: json.loads(text) for name, text in match.groupdict().items() if text and name != "conversation"
    }
    # One line is one JSON object; other line ends than \n stand inside of strings.
    found["conversation"] = [json.loads(line) for line in match["conversation"].split("\n") if line]
    return found


def assert_sections_hold(request: Request) -> None:
    """Nothing but the templates opens or closes a section, in any message that is not the model's own."""
    system, *others = request.messages
    assert system["role"] == "system"
    for line in system["content"].split("\n"):
        pattern = _SECTION_OF_HEAD if line.startswith("<") else _PROSE
        assert pattern.fullmatch(line), f"a section of the head is broken: {line}"
    sections_of(request)
    for message in others[1:]:
        if message["role"] == "user":
            assert not re.search("[<>]", message["content"]), message["content"]
    # Python's JSON lets lone surrogates through; nobody else's does.
    json.dumps(request.body, ensure_ascii=False).encode("utf-8")
