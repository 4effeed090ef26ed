"""Chat models named by a string."""

from __future__ import annotations

import os

from langchain_core.language_models import BaseChatModel

from arq_graph.errors import InputError

# Local servers check no key, but OpenAI's client insists on having one.
_NO_KEY = "no-key-needed"


def chat_model(spec: str, *, base_url: str | None = None) -> BaseChatModel:
    """The chat model that a string names.

    Args:
        spec: "offline"; "openai:NAME" or a bare NAME; or "provider:NAME" of any provider that LangChain's
            `init_chat_model` knows (extra `arq_graph[providers]`).
        base_url: An OpenAI-compatible endpoint. With it every name is one of that endpoint's models, colons
            included ("llama3:8b").

    Raises:
        InputError: The string names no model, a key is missing, the endpoint is no web address, or a provider's
            package is not installed.
    """
    spec = spec.strip()
    provider, colon, name = spec.partition(":")
    if spec == "offline" and base_url is None:
        from arq_graph.models.offline.model import OfflineChatModel

        return OfflineChatModel()
    if colon and provider != "openai" and base_url is None:
        return _of_provider(spec)
    return _openai(name if colon and provider == "openai" else spec, base_url)


def model_name(model: object) -> str:
    """What a model, or who asks one, is called: the string itself, the model's name, or else that of its class."""
    fields = ("model_name", "model", "reasoner", "__qualname__")
    named = next(filter(None, (getattr(model, field, None) for field in fields)), type(model).__name__)
    return model if isinstance(model, str) else model_name(named)


def _openai(name: str, base_url: str | None) -> BaseChatModel:
    if not name:
        raise InputError('The model string names no model: write it like "openai:gpt-4o" or "offline".')
    endpoint = base_url or os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not endpoint:
        raise InputError(
            f'The model "{name}" needs an API key: set OPENAI_API_KEY, name the endpoint of a server of your own'
            ' (base_url=, --base-url), or use the model "offline", which needs neither.'
        )
    if endpoint and not endpoint.startswith(("http://", "https://")):
        raise InputError(f"the base URL {endpoint!r} must begin with http:// or https://")
    from langchain_openai import ChatOpenAI
    from pydantic import SecretStr

    # The reasoner retries, and knows how long the caller waits.
    return ChatOpenAI(model=name, base_url=base_url, api_key=SecretStr(key or _NO_KEY), max_retries=0)


def _of_provider(spec: str) -> BaseChatModel:
    try:
        from langchain.chat_models import init_chat_model

        return init_chat_model(spec)
    except Exception as error:
        problem = "its provider is not known" if "model_provider" in str(error) else error
        raise InputError(
            f'The model string "{spec}" cannot be used: {problem}. Known are "openai:NAME", and "anthropic:NAME" and'
            " the others of LangChain's init_chat_model, with pip install \"arq_graph[providers]\" and the provider's"
            " own package. For a model of a server of your own give its endpoint (base_url=, --base-url)."
        ) from error
