"""A call that a plan may make: its arguments, what they rest on, and what of it is still to be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arq_graph.models.offline.calls import Candidate
from arq_graph.models.offline.scene import Scene
from arq_graph.models.offline.toolnames import ToolName

_LASTING = ("email", "phone", "person")
"""What says who the customer is, which stays true from one request to the next."""

_NOT_AGREED = "not agreed"
"""Part of what is said of a call that is taken for agreed to and is not."""


@dataclass(frozen=True)
class PossibleCall:
    """A call that may be made.

    Args:
        key: The property of the action that makes it.
        candidate: Its tool.
        call: The call as the tool caller would propose it.
    """

    key: str
    candidate: Candidate
    call: Mapping[str, Any]

    @property
    def tool(self) -> str:
        """The tool's name."""
        return self.candidate.relevance.name

    @property
    def name(self) -> ToolName:
        """The tool's name, taken apart."""
        return self.candidate.relevance.tool_name

    @property
    def missing(self) -> list[str]:
        """The required arguments that nobody gave."""
        given = self.call["arguments"]
        wanted = self.candidate.wanted.items()
        return [argument.name for key, argument in wanted if argument.required and not given[key]["given"]]

    @property
    def values(self) -> dict[str, Any]:
        """The arguments that are known."""
        given = self.call["arguments"].items()
        return {self.candidate.wanted[key].name: each["value"] for key, each in given if each["given"]}

    @property
    def needs_agreement(self) -> bool:
        """Whether the customer has to agree to the call, and has not done so yet."""
        is_refused = any(_NOT_AGREED in each for each in self.candidate.scene.prompt.complaints)
        return self.candidate.tool.get("needs_agreement") is True and (
            is_refused or not self.call["affirmed_in"]
        )

    def bases(self, scene: Scene) -> dict[str, str]:
        """What each argument rests on."""
        return {
            key: _basis(each, self.candidate.wanted[key].kind, scene)
            for key, each in self.call["arguments"].items()
        }

    def action(self, scene: Scene) -> dict[str, Any]:
        """The call as an answer."""
        bases = self.bases(scene)
        return {
            self.key: {
                "arguments": {k: {**each, "basis": bases[k]} for k, each in self.call["arguments"].items()},
                "expected": f"Whether and how I could {self.name.as_order}.",
                "affirmed_in": self.call["affirmed_in"],
            }
        }

    def insights(self) -> Iterator[dict[str, Any]]:
        """What the customer has to be asked for, before it can be made."""
        if not self.missing:
            yield {"tool": self.tool, "kind": "confirm", "arguments": self.values}
        described = {
            argument.get("name"): argument for argument in self.candidate.tool.get("arguments") or ()
        }
        for name in self.missing:
            about = described.get(name, {})
            yield {
                "tool": self.tool,
                "kind": "missing",
                "argument": name,
                "description": about.get("description"),
            }


def _basis(given: Mapping[str, Any], kind: str, scene: Scene) -> str:
    source = str(given["value_in_context"] or "").partition(":")[0]
    if not source:
        return "nobody"
    if not source.startswith("M"):
        return "known"
    stated = kind in _LASTING or any(line.id == source for line in scene.inquiry)
    return "this_request" if stated or str(given["value"]) in scene.accepted else "another_request"
