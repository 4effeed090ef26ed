"""Modules named in an agent's file: where they are found, and what happens when they misbehave."""

from __future__ import annotations

import gc
import importlib
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from arq_graph import Agent
from arq_graph.errors import SpecError


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def agent_file(folder: Path, tool: str) -> Path:
    return write(
        folder / "agent.yaml", f"name: n\nprofile: p\nguidelines:\n- action: answer\n  tools: [{tool}]\n"
    )


def module(body: str) -> str:
    return f"{body}\ndef get_order(order_id: str):\n    'Look an order up.'\n    return f'{{SHOP}} {{order_id}}'\n"


def answer(file: Path) -> str:
    return str(Agent.from_yaml(file).toolbox["get_order"].invoke({"order_id": "17"}))


def failure(folder: Path, tool: str) -> str:
    with pytest.raises(SpecError) as caught:
        Agent.from_yaml(agent_file(folder, tool))
    assert caught.value.line == 5
    return str(caught.value)


@pytest.mark.parametrize("on_path", [False, True])
def test_two_agents_may_each_have_a_module_of_one_name(tmp_path, monkeypatch, on_path):
    files = []
    for shop in ("books", "bikes"):
        write(tmp_path / shop / "neighbour_db.py", f"SHOP = {shop!r}")
        write(tmp_path / shop / f"shop_{on_path}.py", module("from neighbour_db import SHOP"))
        files.append(agent_file(tmp_path / shop, f"shop_{on_path}:get_order"))
        if on_path:
            monkeypatch.syspath_prepend(str(tmp_path / shop))
    made = [Agent.from_yaml(file).toolbox["get_order"] for file in files]
    assert [tool.invoke({"order_id": "1"}) for tool in made] == ["books 1", "bikes 1"]


def test_modules_beside_one_file_share_what_they_import_from_there(tmp_path):
    write(tmp_path / "shared_db.py", "SHOP = 'books'\nCALLS = []")
    write(tmp_path / "shop.py", module("from shared_db import SHOP, CALLS"))
    write(tmp_path / "rules" / "__init__.py", "")
    write(tmp_path / "rules" / "calls.py", "from shared_db import CALLS")
    write(tmp_path / "rules" / "vip.py", "from .calls import CALLS\ndef is_vip(state): return CALLS")
    file = agent_file(tmp_path, "shop:get_order")
    file.write_text(file.read_text().replace("action:", "condition: {function: rules.vip:is_vip}\n  action:"))
    agent = Agent.from_yaml(file)
    condition, function = agent.guidelines[0].condition, agent.toolbox["get_order"].func  # type: ignore[attr-defined]
    assert callable(condition)
    assert condition({}) is function.__globals__["CALLS"]


def test_other_imports_at_the_same_time_do_no_harm(tmp_path):
    write(tmp_path / "json.py", "")  # has a namesake, so all that is imported already is looked through
    write(tmp_path / "busy_shop.py", module("SHOP = 'books'"))

    def imports_something(*_: object) -> None:
        name = f"imported_meanwhile_{len(sys.modules)}"
        sys.modules[name] = ModuleType(name)

    before, threshold = set(sys.modules), gc.get_threshold()
    gc.callbacks.append(imports_something)  # a collection may run anybody's code, in the middle of anything
    gc.set_threshold(5)
    try:
        file = agent_file(tmp_path, "busy_shop:get_order")
        for _ in range(3):
            Agent.from_yaml(file)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(imports_something)
        for name in set(sys.modules) - before:
            sys.modules.pop(name)


def test_a_module_that_is_importable_anyway_is_not_loaded_twice(tmp_path, monkeypatch):
    write(tmp_path / "importable_shop.py", module("SHOP = 'books'"))
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Agent.from_yaml(agent_file(tmp_path, "importable_shop:get_order"))
    import importable_shop  # type: ignore[import-not-found]

    assert made.toolbox["get_order"].func is importable_shop.get_order  # type: ignore[attr-defined]


def test_what_stands_beside_the_file_comes_before_the_search_path(tmp_path, monkeypatch):
    write(tmp_path / "lib" / "twofold_shop.py", module("SHOP = 'bikes'"))
    write(tmp_path / "agents" / "twofold_shop.py", module("SHOP = 'books'"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    importlib.import_module("twofold_shop")
    path = list(sys.path)
    assert answer(agent_file(tmp_path / "agents", "twofold_shop:get_order")) == "books 17"
    assert sys.path == path


def test_what_a_module_prints_does_not_reach_standard_output(tmp_path, capsys):
    write(tmp_path / "shop.py", module("SHOP = 'books'\nprint('hello')"))
    Agent.from_yaml(agent_file(tmp_path, "shop:get_order"))
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "hello\n")


def test_a_module_that_failed_is_loaded_afresh_when_it_is_mended(tmp_path):
    write(tmp_path / "shop.py", "raise ValueError('not yet')")
    assert "ValueError: not yet" in failure(tmp_path, "shop:get_order")
    write(tmp_path / "shop.py", module("SHOP = 'the mended one'"))
    assert answer(agent_file(tmp_path, "shop:get_order")) == "the mended one 17"


@pytest.mark.parametrize(
    ("body", "tool", "message"),
    [
        ("x = 1\nopen('/nowhere')", "shop:f", "to import with FileNotFoundError: .*line 2 of .*shop.py"),
        ("import sys\nsys.exit(3)", "shop:f", "fails to import with SystemExit: 3 .*line 2 of .*shop.py"),
        ("def f(:", "shop:f", r"SyntaxError: invalid syntax \(shop.py, line 1\)"),
        ("import not_there_at_all", "shop:f", "'shop', which fails to import with ModuleNotFoundError"),
        ("", "sub.shop:f", "'sub.shop', which is neither in .* nor on Python's search path"),
        ("get_order = 1", "shop:get_ordr", "there is no 'get_ordr'; did you mean `get_order`"),
    ],
)
def test_what_cannot_be_imported_is_told_with_the_line_that_failed(tmp_path, body, tool, message):
    write(tmp_path / "shop.py", body)
    assert re.search(message, failure(tmp_path, tool))
