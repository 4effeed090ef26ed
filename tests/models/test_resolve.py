"""A model named by a string: which class it becomes, and what is said where it cannot be one."""

from __future__ import annotations

import sys

import pytest
from langchain_openai import ChatOpenAI

from arq_graph import Reasoner, errors

LOCAL = "http://127.0.0.1:1/v1"


def chat_model(spec, **settings):
    """The model that a reasoner makes of a string."""
    return Reasoner(spec, **settings).models[0]


@pytest.fixture(autouse=True)
def no_settings_of_this_machine(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("spec", ["openai:gpt-4o", " gpt-4o "])
def test_openai_models_are_named_with_or_without_their_provider(monkeypatch, spec):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    model = chat_model(spec)
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.max_retries) == ("gpt-4o", 0)
    assert model.openai_api_key.get_secret_value() == "sk-test"


@pytest.mark.parametrize(("spec", "name"), [("llama3:8b", "llama3:8b"), ("openai:llama3:8b", "llama3:8b")])
def test_a_server_of_ones_own_needs_no_key_and_any_name_will_do(monkeypatch, spec, name):
    model = chat_model(spec, base_url=LOCAL)
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.openai_api_base) == (name, LOCAL)
    assert model.openai_api_key.get_secret_value()
    monkeypatch.setenv("OPENAI_BASE_URL", LOCAL)  # as LangChain's client reads it
    assert isinstance(chat_model("llama3"), ChatOpenAI)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("gpt-4o", r'"gpt-4o".*OPENAI_API_KEY.*base_url.*"offline"'),
        ("offlin", "did you mean `offline`"),
        ("  ", "names no model"),
        ("openai:", "names no model"),
        ("nobody:model-x", r'"nobody:model-x".*not known.*"anthropic:NAME".*--base-url'),
        ("azure_openai:gpt-4o", 'made: Missing credentials.*AZURE_OPENAI_API_KEY[^"]*$'),
    ],
)
def test_a_string_that_cannot_be_used_is_told_with_what_to_do(spec, problem):
    with pytest.raises(errors.InputError, match=problem) as caught:
        chat_model(spec)
    assert "model_provider" not in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        ("langchain.chat_models", r"provider is not known.*arq_graph\[providers\]"),
        ("langchain_mistralai", "langchain-mistralai"),
    ],
)
def test_a_package_that_is_missing_is_named(monkeypatch, missing, named):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(errors.InputError, match=named):
        chat_model("mistralai:small")
