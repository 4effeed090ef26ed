"""Modules named in an agent's file: where they are found, and what happens when they misbehave."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from arq_graph import Agent
from arq_graph.errors import SpecError


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(textwrap.dedent(text))
    return file


def agent_file(folder: Path, tool: str) -> Path:
    return write(
        folder / "agent.yaml",
        f"""\
        name: Order desk
        profile: A friendly clerk.
        guidelines:
        - condition: the customer asks
          action: answer
          tools:
          - {tool}
        """,
    )


def module(body: str) -> str:
    return textwrap.dedent(body) + textwrap.dedent('''
        def get_order(order_id: str) -> str:
            """Look an order up."""
            return f"{SHOP} {order_id}"
        ''')


def answer(file: Path) -> str:
    return str(Agent.from_yaml(file).toolbox["get_order"].invoke({"order_id": "17"}))


def failure(folder: Path, tool: str) -> str:
    with pytest.raises(SpecError) as caught:
        Agent.from_yaml(agent_file(folder, tool))
    assert caught.value.line == 7
    return str(caught.value)


def test_a_module_is_found_beside_the_file(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", module("SHOP = 'books'"))
    path = list(sys.path)
    assert answer(agent_file(tmp_path, "shop:get_order")) == "books 17"
    assert sys.path == path


def test_two_agents_may_each_have_a_module_of_one_name(tmp_path: Path) -> None:
    files = []
    for shop in ("books", "bikes"):
        write(tmp_path / shop / "neighbour_db.py", f"SHOP = {shop!r}")
        write(tmp_path / shop / "shop.py", module("from neighbour_db import SHOP"))
        files.append(agent_file(tmp_path / shop, "shop:get_order"))
    first, second = map(Agent.from_yaml, files)
    assert first.toolbox["get_order"].invoke({"order_id": "1"}) == "books 1"
    assert second.toolbox["get_order"].invoke({"order_id": "1"}) == "bikes 1"


def test_modules_beside_one_file_share_what_they_import_from_there(tmp_path: Path) -> None:
    write(tmp_path / "shared_db.py", "SHOP = 'books'\nCALLS = []")
    write(tmp_path / "shop.py", module("from shared_db import SHOP, CALLS"))
    write(tmp_path / "other" / "shared_db.py", "SHOP = 'bikes'\nCALLS = []")
    write(tmp_path / "other" / "shop.py", module("from shared_db import SHOP, CALLS"))
    write(
        tmp_path / "rules.py",
        """
        from shared_db import CALLS
        def is_vip(state: object) -> bool:
            return CALLS
        """,
    )
    file = agent_file(tmp_path, "shop:get_order")
    function = Agent.from_yaml(file).toolbox["get_order"].func  # type: ignore[attr-defined]
    Agent.from_yaml(agent_file(tmp_path / "other", "shop:get_order"))
    file.write_text(file.read_text().replace("the customer asks", "{function: rules:is_vip}"))
    condition = Agent.from_yaml(file).guidelines[0].condition
    assert callable(condition)
    assert condition({}) is function.__globals__["CALLS"]


def test_a_module_of_a_package_may_import_its_neighbours_relatively(tmp_path: Path) -> None:
    write(tmp_path / "shop" / "__init__.py", "")
    write(tmp_path / "shop" / "names.py", "SHOP = 'books'")
    write(tmp_path / "shop" / "tools.py", module("from .names import SHOP"))
    assert answer(agent_file(tmp_path, "shop.tools:get_order")) == "books 17"


def test_a_folder_without_init_is_a_package_too(tmp_path: Path) -> None:
    write(tmp_path / "shop" / "tools.py", module("SHOP = 'books'"))
    assert answer(agent_file(tmp_path, "shop.tools:get_order")) == "books 17"


def test_a_module_that_is_importable_anyway_is_not_loaded_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "importable_shop.py", module("SHOP = 'books'"))
    monkeypatch.syspath_prepend(str(tmp_path))
    made = Agent.from_yaml(agent_file(tmp_path, "importable_shop:get_order"))
    import importable_shop  # type: ignore[import-not-found]

    assert made.toolbox["get_order"].func is importable_shop.get_order  # type: ignore[attr-defined]


def test_a_module_elsewhere_on_the_search_path_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "lib" / "elsewhere_shop.py", module("SHOP = 'books'"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    assert answer(agent_file(tmp_path / "agents", "elsewhere_shop:get_order")) == "books 17"


def test_what_stands_beside_the_file_comes_before_the_search_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "lib" / "twofold_shop.py", module("SHOP = 'bikes'"))
    write(tmp_path / "agents" / "twofold_shop.py", module("SHOP = 'books'"))
    monkeypatch.syspath_prepend(str(tmp_path / "lib"))
    assert answer(agent_file(tmp_path / "agents", "twofold_shop:get_order")) == "books 17"


def test_what_a_module_prints_does_not_reach_standard_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "shop.py", module("SHOP = 'books'\nprint('hello')"))
    Agent.from_yaml(agent_file(tmp_path, "shop:get_order"))
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "hello\n")


def test_a_module_that_failed_is_loaded_afresh_when_it_is_mended(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", "raise ValueError('not yet')")
    assert "ValueError: not yet" in failure(tmp_path, "shop:get_order")
    write(tmp_path / "shop.py", module("SHOP = 'the mended one'"))
    assert answer(agent_file(tmp_path, "shop:get_order")) == "the mended one 17"


def test_a_module_that_raises_is_told_with_its_own_line(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.py", "x = 1\nopen('/nowhere/at/all')\n")
    said = failure(tmp_path, "shop:get_order")
    assert "the module 'shop', which fails to import with FileNotFoundError" in said
    assert f"(line 2 of {file})" in said


def test_the_errors_own_traceback_is_kept(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", "1 / 0")
    with pytest.raises(SpecError) as caught:
        Agent.from_yaml(agent_file(tmp_path, "shop:get_order"))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_module_that_exits_does_not_end_the_program(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", "import sys\nsys.exit(3)\n")
    said = failure(tmp_path, "shop:get_order")
    assert "fails to import with SystemExit: 3 (line 2 of" in said


def test_a_syntax_error_is_told(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", "def get_order(:\n")
    assert "SyntaxError: invalid syntax (shop.py, line 1)" in failure(tmp_path, "shop:get_order")


def test_a_module_that_misses_another_is_not_called_missing_itself(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", "import no_such_package_at_all\n")
    said = failure(tmp_path, "shop:get_order")
    assert "fails to import with ModuleNotFoundError: No module named 'no_such_package_at_all'" in said


def test_a_missing_module_is_told_with_where_it_was_looked_for(tmp_path: Path) -> None:
    said = failure(tmp_path, "sub.shop:get_order")
    assert f"the module 'sub.shop', which is neither in {tmp_path} nor on Python's search path" in said


def test_a_missing_function_gets_a_suggestion(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", module("SHOP = 'books'"))
    assert "there is no 'get_ordr'; did you mean `get_order`?" in failure(tmp_path, "shop:get_ordr")


def test_an_attribute_of_what_has_none_is_told(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", "TABLE = {}\ndef __getattr__(name):\n    raise RuntimeError('no ' + name)\n")
    assert "'shop:TABLE.rows', but there is no 'rows'" in failure(tmp_path, "shop:TABLE.rows")
    assert "looking up 'get_order' fails with RuntimeError: no get_order (line 3" in failure(
        tmp_path, "shop:get_order"
    )


def test_a_module_may_rearrange_the_search_path(tmp_path: Path) -> None:
    write(tmp_path / "shop.py", module(f"import sys\nsys.path.remove({str(tmp_path)!r})\nSHOP = 'books'"))
    assert answer(agent_file(tmp_path, "shop:get_order")) == "books 17"


def test_a_function_inside_an_object_is_found(tmp_path: Path) -> None:
    write(
        tmp_path / "shop.py",
        '''
        class Desk:
            def get_order(self, order_id: str) -> str:
                """Look an order up."""
                return f"desk {order_id}"
        desk = Desk()
        ''',
    )
    assert answer(agent_file(tmp_path, "shop:desk.get_order")) == "desk 17"
    assert "there is no 'nothing'" in failure(tmp_path, "shop:desk.nothing")
