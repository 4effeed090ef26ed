"""Choose the model that a command asks, from its options and the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic_core import from_json
from typer import BadParameter

from arq_graph.cli.screen import note
from arq_graph.models.resolve import make_chat_model

OFFLINE = "offline"
_DEFAULT_WITH_KEY = "openai:gpt-4o"
_KEY = "OPENAI_API_KEY"
_NO_KEY = (
    "No model and no key is set: the offline model answers, which compares words and understands nothing. Set "
    "OPENAI_API_KEY for a real one, or give --model, with --base-url for a server of your own."
)


@dataclass(frozen=True)
class ModelChoice:
    """The model that a command asks."""

    spec: str
    base_url: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The model as it is shown."""
        if self.spec == OFFLINE:
            return "offline model"
        name = self.spec
        if self.arguments:
            arguments = [f"{name}={json.dumps(value)}" for name, value in self.arguments.items()]
            name += f" ({', '.join(arguments)})"
        if self.base_url:
            name += f" at {self.base_url}"
        return name

    def chat_model(self) -> BaseChatModel:
        """Make the model."""
        return make_chat_model(self.spec, base_url=self.base_url, arguments=self.arguments)


def choose_model(
    model: str | None, base_url: str | None, arguments: Sequence[str] | None = None
) -> ModelChoice:
    """Choose the model by the options, else by `ARQ_GRAPH_MODEL`, else by the keys that are set, with a note."""
    spec = (model or os.environ.get("ARQ_GRAPH_MODEL") or "").strip()
    endpoint = (base_url or os.environ.get("ARQ_GRAPH_BASE_URL") or "").strip() or None
    if endpoint and not spec:
        raise BadParameter(
            f"the endpoint {endpoint} is set, but no model: name one of its models with --model or ARQ_GRAPH_MODEL"
        )
    if not spec and os.environ.get(_KEY):
        spec = _DEFAULT_WITH_KEY
        note(f"{_KEY} is set: asking {spec}; --model names another.")
    elif not spec:
        spec = OFFLINE
        note(_NO_KEY)
    if spec == OFFLINE:
        endpoint = None  # the address is for other models: of users, or of a judge
    return ModelChoice(spec, endpoint, dict(map(_parse_argument, arguments or ())))


def _parse_argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadParameter(f"--model-arg {text}: it must be written NAME=VALUE")
    try:
        return name.strip(), from_json(value)
    except ValueError:
        return name.strip(), value
