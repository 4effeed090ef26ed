"""Finding chat models: by a model string, or inside the objects that LangChain makes of chat models."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

ModelRunnable: TypeAlias = Runnable[LanguageModelInput, AIMessage]
"""A runnable that is called like a chat model."""
ChatModelLike: TypeAlias = ModelRunnable | str
"""A chat model, a model string, or an object that LangChain made of a chat model; `Reasoner` says which."""

# Keyword arguments with which the reasoner asks for an answer; the user's would override them.
_RESERVED_KWARGS = ("response_format", "format", "tools", "tool_choice", "functions", "function_call")

# Local servers check no key, but OpenAI's client insists on having one.
_NO_KEY = "no-key-needed"

_OFFLINE_NAMES = ("offline", "offline model")  # in Python, and in the terminal


def make_chat_model(
    spec: str, *, base_url: str | None = None, arguments: Mapping[str, Any] = MappingProxyType({})
) -> BaseChatModel:
    """Make the chat model that a string names: "offline", "openai:NAME", a bare NAME, or "provider:NAME".

    With an OpenAI-compatible `base_url`, every name is one of that endpoint's models, colons included ("llama3:8b").
    The `arguments` are passed to the model's class, such as `{"reasoning_effort": "low"}`.

    Raises:
        InputError: The model can't be made; the message says what to change.
    """
    spec = spec.strip()
    try:
        model = _make(spec, base_url, arguments)
    except InputError:
        raise
    except Exception as error:
        details = f" with {', '.join(arguments)}" if arguments else ""
        problem = _describe_failure(error, spec.partition(":")[0])
        raise InputError(f'The model "{spec}" cannot be made{details}: {problem}') from error
    _require_known_arguments(model, arguments)
    for field, variable in model.lc_secrets.items():
        if getattr(model, field, None) == SecretStr(""):
            raise InputError(f'The model "{spec}" needs an API key: set {variable}.')
    return model


def _make(spec: str, base_url: str | None, arguments: Mapping[str, Any]) -> BaseChatModel:
    if base_url is not None:
        return _make_openai(spec.removeprefix("openai:"), base_url, arguments)
    if spec == "offline":
        from arq_graph.models.offline.model import OfflineChatModel

        return OfflineChatModel(**arguments)
    provider, colon, name = spec.partition(":")
    if not colon:
        return _make_openai(spec, None, arguments)
    if provider == "openai":
        return _make_openai(name, None, arguments)
    from langchain.chat_models import init_chat_model

    return cast(BaseChatModel, init_chat_model(spec, **arguments))


def _make_openai(name: str, base_url: str | None, arguments: Mapping[str, Any]) -> BaseChatModel:
    if not name:
        raise InputError('The model string names no model: write it like "openai:gpt-4o" or "offline".')
    endpoint = base_url or os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not endpoint:
        raise InputError(
            f"OpenAI's model \"{name}\" needs an API key: set OPENAI_API_KEY. Write another provider's"
            ' like "anthropic:NAME"; for a server of your own give base_url= (--base-url); "offline" needs neither.'
        )
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise InputError(f"the base URL {endpoint!r} must begin with http:// or https://")
    from langchain_openai import ChatOpenAI

    # No retries: the reasoner retries, and knows how long the caller waits.
    settings = {"max_retries": 0, "api_key": SecretStr(key or _NO_KEY), **arguments}
    return ChatOpenAI(model=name, base_url=base_url, **settings)


def _describe_failure(error: Exception, provider: str) -> str:
    if isinstance(error, ValidationError):  # without the input, which may be a secret
        problems = []
        for detail in error.errors():
            place = ": ".join(map(str, detail["loc"]))
            problems.append(f"{place}: {detail['msg']}" if place else detail["msg"])
        return "; ".join(problems)
    if isinstance(error, ImportError):
        return _describe_missing_package(error)
    if "model_provider" not in str(error):
        return str(error)
    from langchain.chat_models import base

    names = ["openai", "offline", *getattr(base, "_BUILTIN_PROVIDERS", ())]
    hint = suggestion(provider, names) or "."
    return (
        f"the provider {provider!r} is not known{hint} Known are"
        ' "openai:NAME", "anthropic:NAME" and the others of LangChain\'s init_chat_model. For a model of a server of'
        " your own give its endpoint (base_url=, --base-url)."
    )


def _describe_missing_package(error: ImportError) -> str:
    if f"{error.name}.".startswith("langchain."):
        return (
            "the package langchain is not installed, with which providers other than OpenAI are found: pip install"
            ' "arq_graph[providers]", and the provider\'s own package, such as langchain-anthropic'
        )
    message = str(error)
    module = getattr(error.__cause__, "name", None) or ""
    package = module.partition(".")[0].replace("_", "-")
    if package and package not in message:  # the provider's package is there, but not what it needs
        message += f" ({error.__cause__})"
    return message


def _require_known_arguments(model: BaseChatModel, arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the model's class ignored, and secrets, which reports would show with the model's name."""
    fields: dict[str, str] = {}
    for name, field in getattr(type(model), "model_fields", {}).items():
        fields[name] = name
        if field.alias:
            fields[field.alias] = name
    for name in arguments:
        if name not in fields:
            raise InputError(f"{type(model).__name__} knows no argument {name!r}{suggestion(name, fields)}")
        if isinstance(getattr(model, fields[name]), SecretStr):
            raise InputError(f"{name!r} is a secret: set it in the environment, or in the file .env")


def get_model_name(model: object) -> str:
    """Return the name of a model, or of an object that asks one: its string, the model's name, or its class's name."""
    if isinstance(model, str):
        return model
    models = find_chat_models(model)
    if models and models != [model]:
        return " or ".join(map(get_model_name, models))
    for field in ("model_name", "model", "reasoner", "__qualname__"):
        value = getattr(model, field, None)
        if value:
            return get_model_name(value)
    return type(model).__name__


def find_chat_models(model: object) -> list[BaseChatModel]:
    """Return the chat models inside a model, a `Reasoner`, or what asks one, except those that a run's config makes."""
    asking = getattr(model, "reasoner", model)
    models: list[BaseChatModel] = []
    try:
        for candidate in getattr(asking, "models", (model,)):
            models.extend(bound.model for bound in unwrap_model(candidate, None) if bound)
    except InputError:
        return []
    return models


def is_offline(model: object) -> bool:
    """Return True if a model, or one of several by module, is the offline model, whose answers aren't evidence."""
    if isinstance(model, Mapping):
        return any(map(is_offline, model.values()))
    if isinstance(model, str):
        return model in _OFFLINE_NAMES
    for chat_model in find_chat_models(model):
        # A replayed answer is worth what the recorded model's was, so that the name counts, too.
        if chat_model._llm_type == "arq-graph-offline" or get_model_name(chat_model) in _OFFLINE_NAMES:
            return True
    return False


@dataclass(frozen=True)
class BoundModel:
    """A chat model without what was bound around it, and the bindings, the outermost first.

    The bindings hold arguments and config of its calls.
    """

    model: BaseChatModel
    bindings: tuple[RunnableBinding[Any, Any] | BaseChatModel, ...] = ()

    def rebind(self, runnable: ModelRunnable) -> ModelRunnable:
        """Return the same bindings around a copy of the model, or around something else that was bound to it."""
        for binding in reversed(self.bindings):
            runnable = binding.model_copy(update={"bound": runnable})
        return runnable


def unwrap_model(model: object, config: RunnableConfig | None) -> Iterator[BoundModel | None]:
    """Yield the chat models inside an object that LangChain made of them: one, or more if there are fallbacks.

    Configurable models are made with the run's config; without a config, None is yielded for each of them. Retries are
    left out, because the caller of the model knows how long it may take.

    Raises:
        InputError: The object isn't a chat model, or what the reasoner needs to bind is bound already.
    """
    if isinstance(model, BaseChatModel):
        recorded = getattr(model, "bound", None)  # of a `RecordingChatModel`
        if recorded is None:
            yield BoundModel(model)
        else:
            yield from _add_binding(model, unwrap_model(recorded, config))
    elif isinstance(model, RunnableWithFallbacks):
        for runnable in model.runnables:
            yield from unwrap_model(runnable, config)
    elif isinstance(model, RunnableRetry):
        yield from unwrap_model(model.bound, config)
    elif isinstance(model, RunnableBinding):
        if reserved := [name for name in _RESERVED_KWARGS if name in model.kwargs]:
            raise InputError(
                f"model is bound to {' and '.join(reserved)}, with which the reasoner asks for its answer: give the"
                " model without, and tools to the agent"
            )
        merged = None if config is None else merge_configs(model.config, config)
        yield from _add_binding(model, unwrap_model(model.bound, merged))
    elif isinstance(model, DynamicRunnable) or hasattr(type(model), "_model"):
        if config is None:
            yield None
        else:
            yield from unwrap_model(_configure(model, config), config)
    else:
        raise InputError(
            f"model is a {type(model).__name__}: it must be a chat model, a model string such as openai:gpt-4o, or what"
            " with_fallbacks(), with_retry(), bind(), with_config(), configurable_fields(), configurable_alternatives()"
            " or init_chat_model() makes of a chat model. Of a chain, give the chat model inside it."
        )


def _add_binding(
    binding: RunnableBinding[Any, Any] | BaseChatModel, models: Iterator[BoundModel | None]
) -> Iterator[BoundModel | None]:
    for bound in models:
        yield bound and BoundModel(bound.model, (binding, *bound.bindings))


def _configure(model: Any, config: RunnableConfig) -> ModelRunnable:
    """Return what a configurable model is in a run.

    It was made by `configurable_fields`, `configurable_alternatives` or `init_chat_model`.
    """
    try:
        if not isinstance(model, DynamicRunnable):
            return cast(ModelRunnable, model._model(config))
        runnable, _ = model.prepare(config)
        return RunnableBinding(bound=runnable, config=model.config) if model.config else runnable
    except Exception as error:
        raise InputError(
            f"the config of this run makes no chat model of the configurable one: {error}. Look at `configurable` in"
            " the config, or give the model a default."
        ) from error
