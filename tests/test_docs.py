"""The code of the README and of docs/ runs, in its order, and everything that they name exists."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from arq_graph import Agent
from arq_graph.milestones import MilestoneGraph, read_milestones

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))

ORDERS = (ROOT / "examples" / "orders.py").read_text(encoding="utf-8")


SHOP = (
    ORDERS
    + '''

def refund(order_id: str) -> str:
    """Refund an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return f"{order_id} is refunded"


def exchange(order_id: str) -> str:
    """Exchange an item.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return f"{order_id} is exchanged"
'''
)


def find_blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def write_files(page: Path, folder: Path) -> None:
    """Write the YAML files that a page shows; each begins with its name in a comment."""
    for text in find_blocks(page, "yaml"):
        if name := re.match(r"# (\w+\.yaml)\n", text):
            (folder / name[1]).write_text(text)


def run_page(page: Path, names: dict[str, Any]) -> None:
    for piece in find_blocks(page, "python"):
        exec(compile(piece.replace("openai:gpt-4o", "offline"), str(page), "exec"), names)
    for name, value in list(names.items()):
        if name.startswith("test_"):
            value()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that all pages use."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "orders.py").write_text(ORDERS)
    (tmp_path / "shop.py").write_text(SHOP)
    for name in ("guidelines", "milestones", "simulated-users"):
        write_files(ROOT / "docs" / f"{name}.md", tmp_path)
    return tmp_path


def test_the_code_of_the_readme_prints_what_it_shows(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_page(README, {"__name__": "readme"})
    (expected,) = find_blocks(README, "text")
    assert capsys.readouterr().out.strip() == expected.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page: Path, folder: Path) -> None:
    write_files(page, folder)
    run_page(page, {"__name__": page.stem})


def test_the_journey_of_its_page_goes_as_the_page_says(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = ROOT / "docs" / "journeys.md"
    write_files(page, folder)
    run_page(page, {"__name__": page.stem})
    output = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    (expected,) = find_blocks(page, "text")
    assert output.endswith(f"Your return is settled.\n{expected}True 1.0")


@pytest.mark.parametrize("name", ["milestones", "journeys"])
def test_the_picture_of_a_page_shows_its_graph(folder: Path, name: str) -> None:
    """With ARQ_GRAPH_PICTURES set, draw the picture anew."""
    write_files(ROOT / "docs" / f"{name}.md", folder)
    if name == "journeys":
        graph = MilestoneGraph.from_journey(Agent.from_yaml("returns.yaml"), "return")
    else:
        graph = read_milestones("goals.yaml")
    picture = ROOT / "docs" / "images" / f"{name}.svg"
    drawn = graph._repr_html_()
    if "ARQ_GRAPH_PICTURES" in os.environ:
        picture.write_text(f"{drawn}\n", encoding="utf-8")
    titles = re.compile("<title>(.*?)</title>")
    assert titles.findall(picture.read_text(encoding="utf-8")) == titles.findall(drawn)


def test_a_report_reads_as_its_page_says(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = ROOT / "docs" / "reading-a-report.md"
    run_page(page, {"__name__": page.stem})
    assert [capsys.readouterr().out] == find_blocks(page, "text")


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_every_named_file_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = [ROOT / path for path in re.findall(r"`((?:examples|nodes|milestones)/[\w./]*)`", text)]
    assert [str(path) for path in named if not path.exists()] == []


def test_every_link_of_the_readme_leads_somewhere() -> None:
    """Those of the pages are checked when the site is built."""
    links = re.findall(r"\]\((?!https?:)([\w./-]+)#?([\w-]*)\)", README.read_text(encoding="utf-8"))
    for file, heading in links:
        assert (ROOT / file).exists(), file
        if heading:
            lines = (ROOT / file).read_text(encoding="utf-8").lower().replace(" ", "-").splitlines()
            assert f"##-{heading}" in lines, f"{file}#{heading}"


@pytest.mark.parametrize("package", ["arq_graph", "nodes", "milestones"])
def test_the_api_reference_has_every_public_name(package: str) -> None:
    stub = (ROOT / package / "__init__.pyi").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "api" / f"{package}.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^::: [\w.]+\.(\w+)$", page, re.MULTILINE))
    assert set(re.findall(r" as (\w+)$", stub, re.MULTILINE)) - documented == set()


def test_every_extra_is_explained_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    install = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split("## ")[1]
    explained = re.findall(r"^\| `(\w+)` \|", install, re.MULTILINE)
    assert sorted(explained) == sorted(project["optional-dependencies"])


def test_every_extra_is_named_with_a_command_that_installs_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    code = [
        path
        for folder in ("arq_graph", "nodes", "milestones", "examples", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
    ]
    texts = "".join(path.read_text(encoding="utf-8") for path in (README, *PAGES, *code))
    commands = re.findall(r"pip install \\?[\"'](\S*)\[(\w+)\]", texts)
    assert {extra for _, extra in commands} == set(project["optional-dependencies"])
    assert {name for name, _ in commands} == {project["name"], "."}  # "." is a checkout


def test_every_make_target_the_readme_names_exists() -> None:
    targets = set(re.findall(r"(?:\$ |`)make ([a-z-]+)", README.read_text(encoding="utf-8")))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
