"""The public names: they load when they are first used."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import pytest

PACKAGES = ["arq_graph", "arq_graph.nodes", "arq_graph.milestones"]
SLOW = ("langchain_openai", "openai", "networkx", "typer", "rich", "langchain")


def in_a_fresh_interpreter(code: str) -> set[str]:
    """Names of the slow packages that are loaded after some code ran."""
    shown = f"{code}\nimport json, sys\nprint(json.dumps([n for n in {SLOW!r} if n in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_can_be_imported_from_the_package(package):
    module = importlib.import_module(package)
    assert len(set(module.__all__)) == len(module.__all__)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_a_name_that_does_not_exist_is_an_ordinary_error(package):
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match="NoSuchName"):
        module.NoSuchName  # noqa: B018
    with pytest.raises(ImportError):
        exec(f"from {package} import NoSuchName")


@pytest.mark.parametrize("package", PACKAGES)
def test_a_star_import_gives_the_public_names(package):
    names: dict[str, object] = {}
    exec(f"from {package} import *", names)
    assert set(importlib.import_module(package).__all__) <= set(names)


def test_importing_the_package_loads_nothing_slow():
    assert in_a_fresh_interpreter("import arq_graph, arq_graph.nodes") == set()


def test_making_an_agent_and_a_graph_loads_no_client_of_a_provider():
    code = """
from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
create_guided_agent(ScriptedChatModel([]), Agent("Desk", "You help.", [Guideline("they greet", "greet back")]))
"""
    assert in_a_fresh_interpreter(code) <= {"langchain", "rich"}
