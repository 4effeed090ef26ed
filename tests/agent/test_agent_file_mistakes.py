"""What people do wrong in an agent's YAML file, and what they are told: the file, the line, what was expected."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from arq_graph import Agent
from arq_graph.errors import SpecError

TOOLS = '''
def search(title: str) -> str:
    """Search the shelves."""
    return title

def is_vip(state):
    return bool(state.get("vip"))

def untyped(order_id):
    """Look an order up."""
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "orders.py").write_text(TOOLS)
    return tmp_path


def mistake(folder: Path, content: str | bytes) -> SpecError:
    with pytest.raises(SpecError) as caught:
        file = folder / "agent.yaml"
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        Agent.from_yaml(file)
    assert caught.value.file == str(folder / "agent.yaml")
    return caught.value


def desk(text: str) -> str:
    return "name: n\nprofile: p\n" + textwrap.dedent(text)


def with_guideline(text: str) -> str:
    return desk("guidelines:\n") + textwrap.dedent(text)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("", 1, "is empty; the agent file needs at least `name:` and `profile:`"),
        ("# later\n\n", 1, "is empty"),
        ("just text", 1, "must be a mapping (name: …, profile: …), but is the text 'just text'"),
        ("- name: n", 1, "must be a mapping"),
        ("name: n\n", 1, "has no `profile`; add `profile: …`"),
        ("name: n\nprofile:\n", 2, "`profile` must be text, but is nothing (null)"),
        ("name: n\nprofile: >\n", 2, "`profile` is empty"),
        (desk("name: m\n"), 3, "the key `name` stands here a second time (first in line 1)"),
        (desk("guidlines: []\n"), 3, "unknown key `guidlines`; did you mean `guidelines`?"),
        (desk("guidelines:\n"), 3, "`guidelines` must be a list, but is nothing"),
        (desk("guidelines:\n  action: a\n"), 3, "begin each of its entries with `- `"),
        (with_guideline("- condition: c\naction: a\n"), 5, "`action` is a key of an entry of `guidelines`"),
        ("? [a]\n: b\n", 1, "a key must be a word"),
        (with_guideline("- the customer asks\n"), 4, "guideline 1 must be a mapping, but is the text"),
        (with_guideline("- priority: 3\n"), 4, "guideline 1: it has neither a condition nor an action"),
        (with_guideline("- action: a\n- action: {say: hi}\n"), 5, "guideline 2: `action` must be text"),
        (with_guideline("- action: a\n  id: T3\n"), 5, "how prompts name tool results"),
        (with_guideline("- action: a\n- action: b\n  id: x y\n"), 6, "an id is 1 to 64"),
        (
            with_guideline("- action: a\n  id: x\n- action: b\n  id: x\n"),
            7,
            "`id` is that of guideline 1 too",
        ),
        (with_guideline("- action: a\n  tool: [x:y]\n"), 5, "unknown key `tool`; did you mean `tools`?"),
        (with_guideline("- action: a\n  tools: orders:get_order\n"), 5, "write ['orders:get_order']"),
        (with_guideline("- action: a\n  tools:\n  - search\n  - orders: get\n"), 7, "leave out the space"),
        (with_guideline("- action: a\n  tools: [orders.get_order]\n"), 5, "write orders:get_order"),
        (with_guideline("- action: a\n  tools: ['orders:get_order()']\n"), 5, "write orders:get_order"),
        (with_guideline("- action: a\n  tools: [orders.py:get_order]\n"), 5, "write orders:get_order"),
        (
            with_guideline("- action: a\n  tools:\n  - orders:search\n  - orders:serch\n"),
            7,
            "did you mean `search`?",
        ),
        (with_guideline("- action: a\n  tools: [nothing_here:get]\n"), 5, "is there a file nothing_here.py?"),
        (with_guideline("- action: a\n  tools: [orders:untyped]\n"), 5, "lack a type hint: order_id"),
        (with_guideline("- action: a\n  depends_on: G2\n"), 5, "write ['G2']"),
        (
            with_guideline("- action: a\n  depends_on:\n  - G2\n  - G9\n- action: b\n"),
            7,
            "names 'G9', the id of no guideline",
        ),
        (
            with_guideline("- action: a\n  overrides: [G2]\n- action: b\n  overrides: [G1]\n"),
            5,
            "goes in a circle",
        ),
        (with_guideline("- action: a\n  continuous: maybe\n"), 5, "must be true or false, but is the text"),
        (
            with_guideline("- action: a\n  priority: 1.5\n"),
            5,
            "must be a whole number, but is the number 1.5",
        ),
        (with_guideline("- action: a\n  on_failure: ignore\n"), 5, "must be 'raise', 'activate' or 'skip'"),
        (with_guideline("- action: a\n  condition: None\n"), 5, "always applies, leave it out"),
        (with_guideline("- action: a\n  condition: orders:is_vip\n"), 5, '{function: "orders:is_vip"}'),
        (
            with_guideline("- action: a\n  condition: {functoin: a:b}\n"),
            5,
            "text or {function: module:function}",
        ),
        (with_guideline("- action: a\n  condition: {function: orders:is_vp}\n"), 5, "did you mean `is_vip`?"),
        (with_guideline("- action: a\n  condition: {function: orders:__doc__}\n"), 5, "name a function"),
        (desk("glossary:\n- name: x\n"), 4, "glossary term 'x' has no `description`; add `description: …`"),
        (desk("glossary:\n- {name: x, description: d, synonyms: y}\n"), 4, "write ['y']"),
        (desk("variables:\n- {name: x, description: d, valeu: y}\n"), 4, "did you mean `value`?"),
        (desk("confirm: [x]\n"), 3, "`confirm` must be a mapping of names to values"),
        (desk("confirm:\n  serch: operator\ntools: [orders:search]\n"), 4, "did you mean `search`?"),
        (
            desk("confirm:\n  search: custmer\ntools: [orders:search]\n"),
            4,
            "must be 'customer', 'operator' or 'interrupt', but is the text 'custmer'; did you mean `customer`?",
        ),
        (
            desk("confirm:\n  search:\n    by: customer\n    ask: Shall I?\ntools: [orders:search]\n"),
            6,
            "`ask` leaves out {title}",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line(folder: Path, content: str, line: int, message: str) -> None:
    error = mistake(folder, content)
    assert message in str(error)
    assert error.line == line
    assert str(error).startswith(f"{folder / 'agent.yaml'}:{line}: ")


def test_all_mistakes_of_a_file_are_told_together_in_the_order_of_their_lines(folder: Path) -> None:
    content = """\
        guidlines: []
        guidelines:
        - action: ''
        - {action: a, id: vip, priority: high}
        glossary: none
        """
    told = str(mistake(folder, desk(content))).split("\n")
    assert [line.removeprefix(f"{folder / 'agent.yaml'}:")[:2] for line in told] == ["3:", "5:", "6:", "7:"]
    assert "guideline 'vip': `priority` must be a whole number" in told[2]


def test_what_cannot_be_resolved_is_told_together_too(folder: Path) -> None:
    content = "- {action: a, tools: [orders:serch], depends_on: [G9]}\n- {action: b, entails: [G2]}\n"
    told = str(mistake(folder, with_guideline(content)))
    for said in ("did you mean `search`", "'G9', the id of no guideline", "names the guideline itself"):
        assert said in told


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("name: n\n\tprofile: p\n", 2, "a tab; YAML is indented with spaces only"),
        (with_guideline("- condition: c\n    action: a\n"), 5, "an indentation that does not fit"),
        (with_guideline("- action: tell them: it is late\n"), 4, "text with `: ` in it goes in quotes"),
        (with_guideline("- action: a\n - action: b\n"), 5, "does not line up"),
        (with_guideline('- action: "say "hi" now"\n'), 4, "text with quotes or brackets in it"),
        (with_guideline("- action: {name} is greeted\n"), 4, "text with quotes or brackets in it"),
        (with_guideline('- action: "never closed\n- action: b\n'), 4, "the quote that is opened here"),
        (with_guideline("- action: a\n  tools: [x, y\n"), 5, "is never closed"),
        (with_guideline("- action: *never* lie\n"), 4, "text that begins with * or & goes in quotes"),
        (with_guideline("- action: *never\n"), 4, "text that begins with * goes in quotes"),
        (with_guideline("- action: @manager is told\n"), 4, "goes in quotes"),
        (with_guideline("- action: !important be quick\n"), 4, "text that begins with ! goes in quotes"),
        (with_guideline("- action: a\nnonsense\nmore: x\n"), 5, "neither `key: value` nor indented"),
        ("name: n\nprofile: p\n---\nname: m\n", 3, "keep one in a file"),
        ("name: n\nprofile: !!binary aGk=\n", 2, "the tag `!!binary` is not known here"),
        (b"name: n\nprofile: a\0b\n", 2, "a control character"),
        (b"name: n\nprofile: caf\xe9\n", 2, "is not UTF-8: byte 0xe9"),
        (desk("variables:\n- &a [*a]\n"), 4, "does an alias stand inside its own anchor?"),
    ],
)
def test_what_is_not_yaml_is_told_with_its_line(folder: Path, content: Any, line: int, message: str) -> None:
    error = mistake(folder, content)
    assert message in str(error)
    assert error.line == line


@pytest.mark.parametrize("merging", [False, True])
def test_aliases_cannot_multiply_a_small_file_without_bound(folder: Path, merging: bool) -> None:
    laughs = "a0: &a0 {ha: ha}\n"
    for number in range(1, 12):
        many = ", ".join([f"*a{number - 1}"] * 10)
        laughs += f"a{number}: &a{number} " + ("{x: [" + many + "]}\n" if merging else f"[{many}]\n")
    assert "aliases (`*name`) multiply the file" in str(mistake(folder, desk(laughs)))


def test_long_texts_cannot_be_multiplied_either(folder: Path) -> None:
    many = ", ".join(["*long"] * 5_000)
    content = f"name: n\nprofile: &long {'x' * 100_000}\nvariables: [{{name: v, description: d, value: [{many}]}}]\n"
    assert "aliases (`*name`) multiply the file" in str(mistake(folder, content))


def test_a_huge_file_is_refused(folder: Path) -> None:
    assert "is larger than 1,000,000 bytes" in str(mistake(folder, "x" * 1_000_001))


@pytest.mark.parametrize("content", ["[" * 900_000, "{a: " * 20_000, "- " * 400_000])
def test_a_file_nested_without_end_is_refused(folder: Path, content: str) -> None:
    assert "nested" in str(mistake(folder, content))


def test_a_missing_file_is_told(folder: Path) -> None:
    with pytest.raises(SpecError, match="there is no such file"):
        Agent.from_yaml(folder / "nowhere.yaml")
    with pytest.raises(SpecError, match=r"nowhere\.yaml: there is no such file in "):
        Agent.from_yaml("nowhere.yaml")
    with pytest.raises(SpecError, match="is a folder; name the agent file in it"):
        Agent.from_yaml(folder)


def test_a_mistake_in_a_merged_mapping_is_told_where_it_stands(folder: Path) -> None:
    content = with_guideline("""\
        - &first
          action: a
          priority: 3
        - <<: *first
          priority: high
        - <<: *first
          id: _x
        """)
    told = str(mistake(folder, content))
    assert ":8: guideline 2: `priority` must be a whole number" in told
    assert ":10: guideline '_x': `id` is '_x'" in told
