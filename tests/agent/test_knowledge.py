"""What an agent's `knowledge` may be, in Python and in a file, and the errors about the rest."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore

from arq_graph import Agent, Guideline, Knowledge, ScriptedChatModel
from arq_graph.errors import SpecError
from arq_graph.nodes import KnowledgeRetriever

MANUAL = """
from langchain_core.documents import Document

def search(query):
    return [Document(f"about {query}")]

def make():
    return search

def broken():
    raise ValueError("no index")
"""
DESK = """
name: Desk
profile: You help.
knowledge:
- manual:search
- {retriever: manual:make, max_passages: 2, max_tokens: 800, timeout: 2.5}
"""


@tool
def look(query: str) -> str:
    """Look."""
    return query


def find(query: str, limit: int) -> list[str]:
    return [query]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "manual.py").write_text(MANUAL)
    (tmp_path / "desk.yaml").write_text(DESK)
    return tmp_path


def test_a_file_names_retrievers_or_functions_that_make_them(folder: Path) -> None:
    agent = Agent.from_yaml(folder / "desk.yaml")
    first, second = agent.knowledge
    assert (first.name, first.max_passages, first.max_tokens, first.timeout) == (
        "manual:search",
        4,
        1_500,
        10,
    )
    assert second.name == "manual:make"
    assert (second.max_passages, second.max_tokens, second.timeout) == (2, 800, 2.5)
    found = KnowledgeRetriever(agent).invoke({"messages": [("user", "hats")]})["passages"]
    assert [passage["text"] for passage in found] == ["about hats"]


def test_the_schema_of_the_file_takes_both_forms(folder: Path) -> None:
    schema = json.loads(json.dumps(Agent.model_json_schema()))
    jsonschema.validate(yaml.safe_load(DESK), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"name": "n", "profile": "p", "knowledge": [{"retriver": "a:b"}]}, schema)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            "manual:serch",
            r"desk.yaml:5: .*names 'manual:serch', but there is no 'serch'; did you mean .search",
        ),
        ("manuel:search", r"desk.yaml:5: .*names the module 'manuel', which is neither in"),
        ("manual", r"desk.yaml:5: .*must be \"module:function\""),
        ("manual:broken", r"desk.yaml:5: .*can't be made: broken raised ValueError: no index"),
        ("manual:Document", r"desk.yaml:5: .*is the class Document: give an object of it"),
        ("{retriever: manual:search, max_passages: 0}", r"desk.yaml:5: .*max_passages` must be greater"),
        (
            "{retriever: manual:search, k: 3}",
            r"desk.yaml:5: `knowledge\[0\]` has an unknown key `k` \(its keys: ",
        ),
    ],
)
def test_an_entry_that_cannot_be_used_is_reported_with_its_line(folder, entry, message):
    (folder / "desk.yaml").write_text(DESK.replace("- manual:search", f"- {entry}"))
    with pytest.raises(SpecError, match=message):
        Agent.from_yaml(folder / "desk.yaml")


@pytest.mark.parametrize(
    ("retriever", "message"),
    [
        (look, r"`knowledge\[0\].*` is the tool 'look': list it under `tools`"),
        (
            ScriptedChatModel([]),
            "is a ScriptedChatModel, which finds no passages: give a LangChain retriever",
        ),
        (
            InMemoryVectorStore(DeterministicFakeEmbedding(size=2)),
            r"is a vector store .InMemoryVectorStore.: give the result of its as_retriever\(\)",
        ),
        (find, r"is called with the query alone, but takes \(query: str, limit: int\)"),
        (3, "must be a LangChain retriever, or a function that takes the query .*, but is 3"),
        (lambda: 3, "must be a LangChain retriever, .* but is 3"),
        ({"retriever": find, "timeout": 0}, "`knowledge.0..timeout` must be greater than 0"),
    ],
)
def test_what_is_no_retriever_is_refused(retriever: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Agent("n", "p", knowledge=[retriever])


def test_a_guideline_cannot_have_the_id_of_a_passage() -> None:
    with pytest.raises(SpecError, match="prompts and answers do not use for something else"):
        Guideline("a", "b", id="S1")


def test_a_copy_of_an_agent_keeps_its_knowledge() -> None:
    agent = Agent("n", "p", knowledge=[Knowledge(lambda query: [query], max_tokens=60)])
    assert agent.replace(name="m").knowledge == agent.knowledge
