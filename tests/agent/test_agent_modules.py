"""Modules that an agent's file names: where they are found, and how failing ones are reported."""

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


def write_agent(folder: Path, tool: str) -> Path:
    return write(
        folder / "agent.yaml", f"name: n\nprofile: p\nguidelines:\n- action: answer\n  tools: [{tool}]\n"
    )


def make_module(body: str) -> str:
    return f"{body}\ndef get_order(order_id: str):\n    'Look an order up.'\n    return f'{{SHOP}} {{order_id}}'\n"


def call_tool(file: Path) -> str:
    return str(Agent.from_yaml(file).toolbox["get_order"].invoke({"order_id": "17"}))


def read_error(folder: Path, tool: str) -> str:
    with pytest.raises(SpecError) as caught:
        Agent.from_yaml(write_agent(folder, tool))
    assert caught.value.line == 5
    return str(caught.value)


@pytest.mark.parametrize("on_path", [False, True])
def test_two_agents_can_have_modules_of_the_same_name(tmp_path, monkeypatch, on_path):
    files = []
    for shop in ("books", "bikes"):
        write(tmp_path / shop / "neighbour_db.py", f"SHOP = {shop!r}")
        write(tmp_path / shop / f"shop_{on_path}.py", make_module("from neighbour_db import SHOP"))
        files.append(write_agent(tmp_path / shop, f"shop_{on_path}:get_order"))
        if on_path:
            monkeypatch.syspath_prepend(str(tmp_path / shop))
    tools = [Agent.from_yaml(file).toolbox["get_order"] for file in files]
    assert [tool.invoke({"order_id": "1"}) for tool in tools] == ["books 1", "bikes 1"]


def test_modules_in_one_folder_share_their_imports(tmp_path):
    write(tmp_path / "shared_db.py", "SHOP = 'books'\nCALLS = []")
    write(tmp_path / "shop.py", make_module("from shared_db import SHOP, CALLS"))
    write(tmp_path / "rules" / "__init__.py", "")
    write(tmp_path / "rules" / "calls.py", "from shared_db import CALLS")
    write(tmp_path / "rules" / "vip.py", "from .calls import CALLS\ndef is_vip(state): return CALLS")
    file = write_agent(tmp_path, "shop:get_order")
    file.write_text(file.read_text().replace("action:", "condition: {function: rules.vip:is_vip}\n  action:"))
    agent = Agent.from_yaml(file)
    condition, function = agent.guidelines[0].condition, agent.toolbox["get_order"].func  # type: ignore[attr-defined]
    assert callable(condition)
    assert condition({}) is function.__globals__["CALLS"]


def test_simultaneous_imports_do_no_harm(tmp_path):
    write(tmp_path / "json.py", "")  # has a namesake, so all that is imported already is looked through
    write(tmp_path / "busy_shop.py", make_module("SHOP = 'books'"))

    def imports_something(*_: object) -> None:
        name = f"imported_meanwhile_{len(sys.modules)}"
        sys.modules[name] = ModuleType(name)

    before, threshold = set(sys.modules), gc.get_threshold()
    gc.callbacks.append(imports_something)  # a collection may run anybody's code, in the middle of anything
    gc.set_threshold(5)
    try:
        file = write_agent(tmp_path, "busy_shop:get_order")
        for _ in range(3):
            Agent.from_yaml(file)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(imports_something)
        for name in set(sys.modules) - before:
            sys.modules.pop(name)


def test_an_importable_module_is_not_imported_twice(tmp_path, monkeypatch):
    write(tmp_path / "importable_shop.py", make_module("SHOP = 'books'"))
    monkeypatch.syspath_prepend(str(tmp_path))
    agent = Agent.from_yaml(write_agent(tmp_path, "importable_shop:get_order"))
    import importable_shop  # type: ignore[import-not-found]

    assert agent.toolbox["get_order"].func is importable_shop.get_order  # type: ignore[attr-defined]


def test_a_module_in_the_files_folder_comes_before_the_search_path(tmp_path, monkeypatch):
    write(tmp_path / "lib" / "twofold_shop.py", make_module("SHOP = 'bikes'"))
    write(tmp_path / "agents" / "twofold_shop.py", make_module("SHOP = 'books'"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    importlib.import_module("twofold_shop")
    path = list(sys.path)
    assert call_tool(write_agent(tmp_path / "agents", "twofold_shop:get_order")) == "books 17"
    assert sys.path == path


def test_a_modules_output_goes_to_standard_error(tmp_path, capsys):
    write(tmp_path / "shop.py", make_module("SHOP = 'books'\nprint('hello')"))
    Agent.from_yaml(write_agent(tmp_path, "shop:get_order"))
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "hello\n")


def test_a_failed_module_is_imported_again_after_a_fix(tmp_path):
    write(tmp_path / "shop.py", "raise ValueError('not yet')")
    assert "ValueError: not yet" in read_error(tmp_path, "shop:get_order")
    write(tmp_path / "shop.py", make_module("SHOP = 'the fixed one'"))
    assert call_tool(write_agent(tmp_path, "shop:get_order")) == "the fixed one 17"


@pytest.mark.parametrize(
    ("body", "tool", "message"),
    [
        ("x = 1\nopen('/nowhere')", "shop:f", "to import with FileNotFoundError: .*line 2 of .*shop.py"),
        ("def f(:", "shop:f", r"SyntaxError: invalid syntax \(shop.py, line 1\)"),
        ("", "sub.shop:f", "'sub.shop', which is neither in .* nor on Python's search path"),
        ("get_order = 1", "shop:get_ordr", "there is no 'get_ordr'; did you mean `get_order`"),
    ],
)
def test_a_failed_import_is_reported_with_its_line(tmp_path, body, tool, message):
    write(tmp_path / "shop.py", body)
    assert re.search(message, read_error(tmp_path, tool))
