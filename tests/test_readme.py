"""Every piece of code in the README runs, in the order in which it stands there."""

import re
from pathlib import Path
from typing import Any

import pytest

from arq_graph import Agent, Guideline, create_guided_agent

README = Path(__file__).parent.parent / "README.md"

ORDERS = '''
def get_order(order_id: str) -> dict:
    """Look up an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return {"order_id": order_id, "status": "delayed"}


def cancel_order(order_id: str) -> str:
    """Cancel an order.

    Args:
        order_id: The number of the order, like ORD-1001.
    """
    return f"{order_id} is cancelled"
'''


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_all_code_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "orders.py").write_text(ORDERS)
    for name, text in zip(("desk.yaml", "goals.yaml", "suite.yaml"), blocks("yaml"), strict=True):
        (tmp_path / name).write_text(text)
    shared: dict[str, Any] = {"__name__": "readme"}
    pieces = blocks("python")
    for piece in pieces:
        exec(compile(piece.replace("openai:gpt-4o", "offline"), str(README), "exec"), shared)
    said = capsys.readouterr().out
    assert len(pieces) >= 5
    assert "delayed" in said
    assert "cancel_order" in said
    assert "reply_sent" in said


def test_every_file_the_readme_names_is_there() -> None:
    named = re.findall(r"`(examples/[\w./]+)`", README.read_text(encoding="utf-8"))
    assert named
    assert [path for path in named if not (README.parent / path).exists()] == []


def test_every_make_target_the_readme_names_exists() -> None:
    targets = set(re.findall(r"(?:\$ |`)make ([a-z-]+)", README.read_text(encoding="utf-8")))
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_the_picture_shows_the_graph_that_is_compiled() -> None:
    def refund(order_id: str) -> str:
        """Refund an order."""
        return order_id

    agent = Agent(
        "Desk", "You help.", [Guideline("they ask", "refund", tools=[refund])], confirm={"refund": "operator"}
    )
    compiled = create_guided_agent("offline", agent).get_graph()
    ends = {"__start__": "START", "__end__": "END"}
    edges = {
        (ends.get(edge.source, edge.source), ends.get(edge.target, edge.target)) for edge in compiled.edges
    }
    drawn = re.findall(r"^ +(\w+)(?:\(\[\w+\]\))? -.*?> (\w+)", blocks("mermaid")[0], re.MULTILINE)
    assert set(drawn) == edges
