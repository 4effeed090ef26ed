"""What people do wrong in an agent's YAML file, and what they are told: the file, the line, what was expected."""

from __future__ import annotations

import textwrap
from pathlib import Path

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
        ("# later\n\n", 1, "`profile` is missing"),
        ("just text", 1, "the agent file must be a mapping, but is 'just text'"),
        ("- name: n", 1, "must be a mapping"),
        ("name: n\nprofile:\n", 2, "`profile` must be text, but is nothing"),
        ("name: n\nprofile: >\n", 2, "`profile` must have at least 1 character"),
        (desk("name: m\n"), 3, "the key `name` stands here a second time"),
        (desk("guidlines: []\n"), 3, "unknown key `guidlines`; did you mean `guidelines`?"),
        (desk("guidelines:\n  action: a\n"), 3, "`guidelines` must be a list, but is {'action': 'a'}"),
        (with_guideline("- condition: c\naction: a\n"), 5, "unknown key `action` (its keys: name, profile,"),
        ("? [a]\n: b\n", 1, "a key must be a word"),
        (with_guideline("- the customer asks\n"), 4, "`guidelines[0]` must be a mapping, but is 'the cust"),
        (with_guideline("- priority: 3\n"), 4, "`guidelines[0]` has neither a condition nor an action"),
        (with_guideline("- action: a\n- action: {say: hi}\n"), 5, "[1].action` must be text"),
        (with_guideline("- action: a\n- action: b\n  id: x y\n"), 6, "an id is 1 to 64"),
        (with_guideline("- {action: a, id: x}\n- action: b\n  id: x\n"), 6, "[1].id` stands here twice: 'x'"),
        (with_guideline("- action: a\n  tool: [x:y]\n"), 5, "unknown key `tool`; did you mean `tools`?"),
        (with_guideline("- action: a\n  tools: orders:search\n"), 5, "a list, but is 'orders:search'"),
        (
            with_guideline("- action: a\n  tools:\n  - search\n  - orders: get\n"),
            7,
            "but is {'orders': 'get'}",
        ),
        (with_guideline("- action: a\n  tools: [orders.search]\n"), 5, "write module:function"),
        (with_guideline("- action: a\n  tools: [orders:search, orders:serch]\n"), 5, "mean `search`?"),
        (with_guideline("- action: a\n  tools: [nothing_here:get]\n"), 5, "the module 'nothing_here', which"),
        (with_guideline("- action: a\n  tools: [orders:untyped]\n"), 5, "order_id lacks a type hint"),
        (with_guideline("- action: a\n  depends_on:\n  - G9\n- action: b\n"), 6, "the id of no guideline"),
        (
            with_guideline("- action: a\n  overrides: [G2]\n- action: b\n  overrides: [G1]\n"),
            5,
            "goes in a circle: G1 → G2 → G1",
        ),
        (with_guideline("- action: a\n  continuous: maybe\n"), 5, "must be true or false, but is 'maybe'"),
        (with_guideline("- action: a\n  priority: 1.5\n"), 5, "must be a whole number, but is 1.5"),
        (with_guideline("- action: a\n  on_failure: skpi\n"), 5, "'activate' or 'skip', but is 'skpi'; did"),
        (with_guideline("- action: a\n  condition: None\n"), 5, "always applies, leave it out"),
        (with_guideline("- action: a\n  condition: orders:is_vip\n"), 5, '{function: "orders:is_vip"}'),
        (with_guideline("- action: a\n  condition: {functoin: a:b}\n"), 5, "text or {function: module:func"),
        (with_guideline("- action: a\n  condition: {function: orders:is_vp}\n"), 5, "did you mean `is_vip`?"),
        (desk("glossary:\n- name: x\n"), 4, "`glossary[0].description` is missing"),
        (desk("variables:\n- {name: x, description: d, valeu: y}\n"), 4, "did you mean `value`?"),
        (desk("confirm: [x]\n"), 3, "`confirm` must be a mapping"),
        (desk("confirm:\n  serch: operator\ntools: [orders:search]\n"), 4, "did you mean `search`?"),
        (desk("confirm:\n  search: custmer\ntools: [orders:search]\n"), 4, "did you mean `customer`?"),
        (
            desk("confirm:\n  search:\n    by: customer\n    ask: Shall I?\ntools: [orders:search]\n"),
            6,
            "`confirm.search.ask` leaves out {title}",
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


def test_what_cannot_be_resolved_is_told_together_too(folder: Path) -> None:
    content = "- {action: a, tools: [orders:serch], depends_on: [G9]}\n- {action: b, entails: [G2]}\n"
    told = str(mistake(folder, with_guideline(content)))
    for said in ("did you mean `search`", "'G9', the id of no guideline", "names the guideline itself"):
        assert said in told


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("name: n\n\tprofile: p\n", 2),
        (with_guideline("- condition: c\n    action: a\n"), 5),
        (with_guideline("- action: tell them: it is late\n"), 4),
        (with_guideline('- action: "say "hi" now"\n'), 4),
        (with_guideline("- action: a\n  tools: [x, y\n"), 6),
        (with_guideline("- action: *never* lie\n"), 4),
        (with_guideline("- action: @manager is told\n"), 4),
    ],
)
def test_what_is_not_yaml_is_told_with_its_line_and_the_usual_causes(
    folder: Path, content: str, line: int
) -> None:
    error = mistake(folder, content)
    assert "is not YAML: " in str(error)
    assert "Indent with spaces only, and put text in quotes" in str(error)
    assert error.line == line


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (with_guideline('- action: "never closed\n- action: b\n'), 6, "that begins in line 4"),
        (with_guideline("- action: !important be quick\n"), 4, "text that begins with ! goes in quotes"),
        ("name: n\nprofile: !!int p\n", 2, "the tag"),
        ("name: n\nprofile: p\n---\nname: m\n", 3, "found another document"),
        (b"name: n\nprofile: a\0b\n", 2, "control characters are not allowed"),
        (b"name: n\nprofile: caf\xe9\n", 2, "is not UTF-8"),
        (desk("variables:\n- &a [*a]\n"), 4, "is an alias inside its own anchor?"),
    ],
)
def test_what_no_file_of_ours_holds_is_refused(
    folder: Path, content: str | bytes, line: int, message: str
) -> None:
    error = mistake(folder, content)
    assert message in str(error)
    assert error.line == line


@pytest.mark.parametrize("each", ["[{}]", "{{x: [{}]}}"])
def test_aliases_cannot_multiply_a_small_file_without_bound(folder: Path, each: str) -> None:
    laughs = "a0: &a0 {ha: ha}\n"
    for number in range(1, 12):
        many = ", ".join([f"*a{number - 1}"] * 10)
        laughs += f"a{number}: &a{number} {each.format(many)}\n"
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
    with pytest.raises(SpecError, match=r"nowhere\.yaml: there is no such file in "):
        Agent.from_yaml("nowhere.yaml")
    with pytest.raises(SpecError, match="the agent file cannot be read"):
        Agent.from_yaml(folder)
