"""Model strings: the classes that they become, and the errors for unusable ones."""

import sys

import pytest
from langchain_openai import ChatOpenAI

from arq_graph import Reasoner, errors

LOCAL = "http://127.0.0.1:1/v1"


def make_model(spec, **settings):
    return Reasoner(spec, **settings).models[0]


@pytest.fixture(autouse=True)
def remove_settings_of_this_machine(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "AZURE_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("spec", ["openai:gpt-4o", " gpt-4o "])
def test_openai_is_the_default_provider(monkeypatch, spec):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    model = make_model(spec)
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.max_retries) == ("gpt-4o", 0)
    assert model.openai_api_key.get_secret_value() == "sk-test"


@pytest.mark.parametrize(("spec", "name"), [("llama3:8b", "llama3:8b"), ("openai:llama3:8b", "llama3:8b")])
def test_an_own_server_needs_no_key_and_accepts_any_name(monkeypatch, spec, name):
    model = make_model(spec, base_url=LOCAL)
    assert isinstance(model, ChatOpenAI)
    assert (model.model_name, model.openai_api_base) == (name, LOCAL)
    assert model.openai_api_key.get_secret_value()
    monkeypatch.setenv("OPENAI_BASE_URL", LOCAL)  # as LangChain's client reads it
    assert isinstance(make_model("llama3"), ChatOpenAI)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gpt-4o", r'"gpt-4o".*OPENAI_API_KEY.*base_url.*"offline"'),
        ("  ", "names no model"),
        ("openai:", "names no model"),
        ("nobody:model-x", r'"nobody:model-x".*not known\. .*"anthropic:NAME".*--base-url'),
        ("antropic:claude", r"'antropic' is not known; did you mean `anthropic`\?"),
        ("opnai:gpt-4o", r"'opnai' is not known; did you mean `openai`\?"),
        ("Bedrock-Converse:nova", "did you mean `bedrock_converse`"),
        ("azure_openai:gpt-4o", 'made: Missing credentials.*AZURE_OPENAI_API_KEY[^"]*$'),
    ],
)
def test_an_unusable_string_is_reported_with_what_to_do(spec, message):
    with pytest.raises(errors.InputError, match=message) as caught:
        make_model(spec)
    assert "model_provider" not in str(caught.value)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("langchain.chat_models", r"langchain is not installed.*arq_graph\[providers\]"),
        ("langchain_mistralai", "pip install langchain-mistralai`$"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, missing, message):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(errors.InputError, match=message):
        make_model("mistralai:small")


def test_a_package_that_the_providers_package_needs_is_named(monkeypatch, tmp_path):
    (tmp_path / "langchain_mistralai.py").write_text("import tokenizers_of_mistral")
    monkeypatch.delitem(sys.modules, "langchain_mistralai", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(errors.InputError, match="No module named 'tokenizers_of_mistral'"):
        make_model("mistralai:small")
