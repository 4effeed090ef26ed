"""The rows of the table in docs/providers.md: each a chat model's class, as it is made for a stub of its API."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.slow.providers import apis, openai_apis
from tests.slow.providers.stub import Api, ModelAnswer, Request, Stub

SLOW = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:tool_choice is forced but thinking is enabled"),
    pytest.mark.filterwarnings("ignore:The model .* is deprecated:DeprecationWarning"),
]
PAGE = Path(__file__).parents[3] / "docs" / "providers.md"
LIMIT = 2_000
THINKING = {"type": "enabled", "budget_tokens": 1024}


def openai(url: str, **fields: Any) -> Any:
    module = pytest.importorskip("langchain_openai")
    return module.ChatOpenAI(
        **{"model": "gpt-4o", "base_url": url, "api_key": "key", "max_tokens": LIMIT, **fields}
    )


def anthropic(url: str, **fields: Any) -> Any:
    module = pytest.importorskip("langchain_anthropic")
    return module.ChatAnthropic(
        **{"model": "claude-sonnet-4-6", "base_url": url, "api_key": "key", "max_tokens": LIMIT, **fields}
    )


def bedrock(url: str, **fields: Any) -> Any:
    module = pytest.importorskip("langchain_aws")
    keys = {"region_name": "us-east-1", "aws_access_key_id": "key", "aws_secret_access_key": "key"}
    model = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    return module.ChatBedrockConverse(
        **{"model": model, "endpoint_url": url, **keys, "max_tokens": LIMIT, "max_retries": 0, **fields}
    )


def gemini(url: str, **fields: Any) -> Any:
    module = pytest.importorskip("langchain_google_genai")
    settings = {"model": "gemini-2.5-flash", "base_url": url, "api_key": "key", "max_output_tokens": LIMIT}
    return module.ChatGoogleGenerativeAI(**{**settings, **fields})


def ollama(url: str, **fields: Any) -> Any:
    module = pytest.importorskip("langchain_ollama")
    return module.ChatOllama(**{"model": "llama3.2", "base_url": url, "num_predict": LIMIT, **fields})


Row = tuple[Api, Callable[..., Any], dict[str, Any]]
ROWS: dict[str, Row] = {
    "ChatOpenAI": (openai_apis.OpenAI(), openai, {}),
    "ChatOpenAI (Responses API)": (openai_apis.Responses(), openai, {"use_responses_api": True}),
    "ChatOpenAI (reasoning model)": (openai_apis.OpenAI(reasoning=True), openai, {"model": "o4-mini"}),
    "ChatOpenAI (prompt_cache_options)": (
        openai_apis.OpenAI(reasoning=True, takes_marks=True),
        openai,
        {"model": "gpt-5.6", "prompt_cache_options": {"mode": "explicit"}},
    ),
    "ChatOpenAI (server of plain text)": (openai_apis.OpenAI(json_modes=""), openai, {"model": "tiny"}),
    "ChatAnthropic": (apis.Anthropic(), anthropic, {}),
    "ChatAnthropic (thinking, older model)": (
        apis.Anthropic(old=True),
        anthropic,
        {"model": "claude-3-7-sonnet-20250219", "thinking": THINKING},
    ),
    "ChatBedrockConverse (Claude)": (apis.Converse(), bedrock, {}),
    "ChatBedrockConverse (Llama)": (
        apis.Converse(able=False),
        bedrock,
        {"model": "meta.llama3-1-8b-instruct-v1:0"},
    ),
    "ChatGoogleGenerativeAI": (apis.Gemini(), gemini, {}),
    "ChatOllama": (apis.Ollama(), ollama, {}),
}


def make_stub(name: str, answer: Callable[[Request], ModelAnswer]) -> tuple[Stub, Callable[..., Any]]:
    """Return a stub of a row's API, and a function that makes its model once the stub serves."""
    api, make, fields = ROWS[name]
    stub = Stub(api, answer)
    base = "/v1" if make is openai else ""
    return stub, lambda **more: make(stub.url + base, **{**fields, **more})


def read_table() -> tuple[list[str], dict[str, dict[str, str]]]:
    """Return the columns of the documented table, and its cells by row and column."""
    lines = re.findall(r"^\| *(.+?) *\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    header, _, *rows = [[cell.strip() for cell in line.split("|")] for line in lines[: len(ROWS) + 2]]
    return header[1:], {row[0].replace("`", ""): dict(zip(header[1:], row[1:], strict=True)) for row in rows}
