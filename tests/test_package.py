"""What is installed is whole: modules, templates, types, the demo."""

import os
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import arq_graph
import arq_graph.milestones
import arq_graph.nodes


def test_every_folder_of_the_repository_is_one_package() -> None:
    assert arq_graph.nodes.__name__ == "arq_graph.nodes"
    assert arq_graph.milestones.__name__ == "arq_graph.milestones"


def test_every_package_of_the_checkout_is_named_for_the_wheel() -> None:
    root = Path(__file__).parent.parent
    if not (root / "arq_graph").is_dir():
        pytest.skip("not in a checkout")
    named = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"][
        "packages"
    ]
    found = {"arq_graph.examples.order_desk"}
    for top, package in (("arq_graph", ""), ("nodes", "arq_graph."), ("milestones", "arq_graph.")):
        inner = [root / top, *(root / top).rglob("*")]
        folders = [path.relative_to(root).parts for path in inner if (path / "__init__.py").is_file()]
        found |= {package + ".".join(parts) for parts in folders}
    assert set(named) == found


def test_prompts_types_and_the_demo_are_installed() -> None:
    prompts = {entry.name for entry in resources.files("arq_graph.nodes").joinpath("prompts").iterdir()}
    assert {"guideline_matcher.md", "tool_caller.md", "message_reviser.md"} <= prompts
    assert resources.files("arq_graph.agent").joinpath("preparation.md").is_file()
    assert resources.files("arq_graph.examples.order_desk").joinpath("agent.yaml").is_file()
    for package in ("arq_graph", "arq_graph.nodes", "arq_graph.milestones"):
        assert resources.files(package).joinpath("py.typed").is_file()


def test_the_installed_package_is_the_one_under_test() -> None:
    installed = os.environ.get("ARQ_GRAPH_INSTALLED")
    if installed:
        assert Path(arq_graph.__file__).is_relative_to(installed)
        assert Path(arq_graph.nodes.__file__).is_relative_to(installed)
