"""The example: an agent that answers from the pages of a manual."""

from pathlib import Path
from runpy import run_path
from typing import Any

EXAMPLE = Path(__file__).parents[2] / "examples" / "knowledge" / "ask.py"


def test_each_reply_cites_the_page_that_is_about_it() -> None:
    example: dict[str, Any] = run_path(str(EXAMPLE))
    app = example["build"]()
    cited: list[str] = []
    for text in example["QUESTIONS"]:
        state = app.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "1"}})
        sources = {passage["id"]: passage["source"] for passage in state["passages"]}
        cited += [sources[id] for id in state["revisions"][-1]["cited"]]
    assert cited == ["rain-jackets.md", "tents.md", "returns.md"]
