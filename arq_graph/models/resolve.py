"""Which chat model is meant: one named by a string, or one inside what LangChain makes of chat models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableBinding, RunnableConfig, RunnableWithFallbacks
from langchain_core.runnables.config import merge_configs
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry
from pydantic import SecretStr, ValidationError

from arq_graph.errors import InputError, suggestion

Called: TypeAlias = Runnable[LanguageModelInput, AIMessage]
"""What is called like a chat model."""
ChatModelLike: TypeAlias = Called | str
"""A chat model, a model string, or what LangChain makes of a chat model; `Reasoner` says what that may be."""

# How an answer is asked for; bound by the user it would undo what the reasoner binds.
_OURS = ("response_format", "format", "tools", "tool_choice", "functions", "function_call")

# Local servers check no key, but OpenAI's client insists on having one.
_NO_KEY = "no-key-needed"


def chat_model(
    spec: str, *, base_url: str | None = None, arguments: Mapping[str, Any] = MappingProxyType({})
) -> BaseChatModel:
    """The chat model that a string names: "offline", "openai:NAME", a bare NAME, or "provider:NAME".

    With an OpenAI-compatible `base_url` every name is one of that endpoint's models, colons included ("llama3:8b").
    The model's class is made with the `arguments`, such as `{"reasoning_effort": "low"}`.
    """
    spec = spec.strip()
    provider, colon, name = spec.partition(":")
    if spec == "offline" and base_url is None:
        from arq_graph.models.offline.model import OfflineChatModel

        make: Callable[..., BaseChatModel] = OfflineChatModel
    elif colon and provider != "openai" and base_url is None:
        make = partial(_of_provider, spec)
    else:
        make = partial(_openai, name if colon and provider == "openai" else spec, base_url)
    try:
        model = make(**arguments)
    except InputError:
        raise
    except Exception as error:
        given = f" with {', '.join(arguments)}" if arguments else ""
        raise InputError(f'The model "{spec}" cannot be made{given}: {_why(error)}') from error
    _require_known(model, arguments)
    for field, variable in model.lc_secrets.items():
        if getattr(model, field, None) == SecretStr(""):
            raise InputError(f'The model "{spec}" needs an API key: set {variable}.')
    return model


def _require_known(model: BaseChatModel, arguments: Mapping[str, Any]) -> None:
    """Refuse what the model's class has not taken, and secrets, which would be shown with the model's name."""
    kinds = getattr(type(model), "model_fields", {})
    fields = {key: name for name, field in kinds.items() for key in (name, field.alias) if key}
    for name in arguments:
        if name not in fields:
            raise InputError(f"{type(model).__name__} knows no argument {name!r}{suggestion(name, fields)}")
        if isinstance(getattr(model, fields[name]), SecretStr):
            raise InputError(f"{name!r} is a secret: set it in the environment, or in the file .env")


def _why(error: Exception) -> str:
    if isinstance(error, ValidationError):  # not what the model was made with, which may be a secret
        return "; ".join(": ".join(map(str, (*each["loc"], each["msg"]))) for each in error.errors())
    is_unknown = "model_provider" in str(error) or f"{getattr(error, 'name', '')}.".startswith("langchain.")
    if not is_unknown and not isinstance(error, ImportError):
        return str(error)
    return (
        f'{"its provider is not known here" if is_unknown else error}. Known are "openai:NAME", and "anthropic:NAME"'
        " and the others of LangChain's init_chat_model, with pip install \"arq_graph[providers]\" and the provider's"
        " own package. For a model of a server of your own give its endpoint (base_url=, --base-url)."
    )


def model_name(model: object) -> str:
    """What a model, or who asks one, is called: the string itself, the model's name, or else that of its class."""
    inside = [] if isinstance(model, str) else models_in(model)
    if inside and inside != [model]:
        return " or ".join(map(model_name, inside))
    fields = ("model_name", "model", "reasoner", "__qualname__")
    named = next(filter(None, (getattr(model, field, None) for field in fields)), type(model).__name__)
    return model if isinstance(model, str) else model_name(named)


def models_in(model: object) -> list[BaseChatModel]:
    """The chat models known inside a model, a `Reasoner`, or what asks one: not those that a run's config makes."""
    with suppress(InputError):
        given = getattr(getattr(model, "reasoner", model), "models", (model,))
        return [bare.model for each in given for bare in unwrapped(each, None) if bare]
    return []


def _openai(name: str, base_url: str | None, **arguments: Any) -> BaseChatModel:
    if not name:
        raise InputError('The model string names no model: write it like "openai:gpt-4o" or "offline".')
    endpoint = base_url or os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not endpoint:
        raise InputError(
            f"OpenAI's model \"{name}\" needs an API key: set OPENAI_API_KEY. Write another provider's"
            ' like "anthropic:NAME"; for a server of your own give base_url= (--base-url); "offline" needs neither'
            f"{suggestion(name, ('offline',), cutoff=80) or '.'}"
        )
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise InputError(f"the base URL {endpoint!r} must begin with http:// or https://")
    from langchain_openai import ChatOpenAI

    # The reasoner retries, and knows how long the caller waits.
    given = {"max_retries": 0, "api_key": SecretStr(key or _NO_KEY), **arguments}
    return ChatOpenAI(model=name, base_url=base_url, **given)


def _of_provider(spec: str, **arguments: Any) -> BaseChatModel:
    from langchain.chat_models import init_chat_model

    return cast(BaseChatModel, init_chat_model(spec, **arguments))


@dataclass(frozen=True)
class Bare:
    """A chat model by itself, and what was bound around it, the outermost first: arguments and config of its calls."""

    model: BaseChatModel
    bindings: tuple[RunnableBinding[Any, Any] | BaseChatModel, ...] = ()

    def bound_again(self, called: Called) -> Called:
        """The same bindings around a copy of the model, or around what else was bound to it."""
        for binding in reversed(self.bindings):
            called = binding.model_copy(update={"bound": called})
        return called


def unwrapped(model: object, config: RunnableConfig | None) -> Iterator[Bare | None]:
    """The chat models inside what LangChain made of them: one, or more where there are fallbacks.

    Configurable ones are made with the run's config; without a run, None is yielded in the place of each. Retries are
    left out: whoever calls the model knows how long it may take.
    """
    if isinstance(model, BaseChatModel):
        wrapped = getattr(model, "bound", None)  # of a `RecordingChatModel`
        if wrapped is None:
            yield Bare(model)
            return
        for bare in unwrapped(wrapped, config):
            yield bare and Bare(bare.model, (model, *bare.bindings))
    elif isinstance(model, RunnableWithFallbacks):
        for each in model.runnables:
            yield from unwrapped(each, config)
    elif isinstance(model, RunnableRetry):
        yield from unwrapped(model.bound, config)
    elif isinstance(model, RunnableBinding):
        if taken := [name for name in _OURS if name in model.kwargs]:
            raise InputError(
                f"model is bound to {' and '.join(taken)}, with which the reasoner asks for its answer: give the model"
                " without, and tools to the agent"
            )
        inner = None if config is None else merge_configs(model.config, config)
        for bare in unwrapped(model.bound, inner):
            yield bare and Bare(bare.model, (model, *bare.bindings))
    elif isinstance(model, DynamicRunnable) or hasattr(type(model), "_model"):
        yield from [None] if config is None else unwrapped(_configured(model, config), config)
    else:
        raise InputError(
            f"model is a {type(model).__name__}: it must be a chat model, a model string such as openai:gpt-4o, or what"
            " with_fallbacks(), with_retry(), bind(), with_config(), configurable_fields(), configurable_alternatives()"
            " or init_chat_model() makes of a chat model. Of a chain, give the chat model inside it."
        )


def _configured(model: Any, config: RunnableConfig) -> Called:
    """What a configurable model is in a run: of `configurable_fields` or -`alternatives`, or of `init_chat_model`."""
    try:
        if not isinstance(model, DynamicRunnable):
            return cast(Called, model._model(config))
        made, _ = model.prepare(config)
        return RunnableBinding(bound=made, config=model.config) if model.config else made
    except Exception as error:
        raise InputError(
            f"the config of this run makes no chat model of the configurable one: {error}. Look at `configurable` in"
            " the config, or give the model a default."
        ) from error
