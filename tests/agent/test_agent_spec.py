"""An agent as a designer builds it in Python."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import Any

import pytest

from arq_graph.agent.spec import Agent, Guideline, Term, Variable
from arq_graph.errors import SpecError


def get_order(order_id: str) -> str:
    """Look an order up."""
    return f"order {order_id}"


def is_vip(state: dict[str, Any]) -> bool:
    return bool(state.get("vip"))


def agent(*guidelines: Guideline, **fields: Any) -> Agent:
    return Agent("Order desk", "A friendly clerk.", guidelines, **fields)


def test_guidelines_without_an_id_are_numbered_by_their_place() -> None:
    made = agent(Guideline("a", "b"), Guideline("c", "d", id="vip"), Guideline("e", "f"))
    assert [guideline.id for guideline in made.guidelines] == ["G1", "vip", "G3"]


def test_a_number_that_a_designer_gave_away_is_skipped() -> None:
    made = agent(Guideline("a", "b", id="G2"), Guideline("c", "d"), Guideline("e", "f"))
    assert [guideline.id for guideline in made.guidelines] == ["G2", "G3", "G4"]


def test_a_guideline_is_found_by_its_id() -> None:
    made = agent(Guideline("a", "b"), Guideline("c", "d", id="vip"))
    assert made.guideline("vip").action == "d"
    with pytest.raises(SpecError, match=r"no guideline of id 'vop'; did you mean `vip`\?"):
        made.guideline("vop")


def test_lists_are_accepted_and_kept_as_tuples() -> None:
    made = Agent(
        "n",
        "p",
        [Guideline("a", "b", tools=[get_order], entails=["G2"]), Guideline("c", "d")],
        glossary=[Term("ARC", "advance copy", ["proof"])],
        variables=[Variable("tier", "the customer's tier", "gold")],
    )
    assert made.guidelines[0].entails == ("G2",)
    assert made.glossary[0].synonyms == ("proof",)
    assert isinstance(made.guidelines, tuple)
    assert made.variables[0].value == "gold"


def test_an_agent_does_not_change_once_it_is_made() -> None:
    made = agent(Guideline("a", "b", tools=[get_order]))
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.name = "x"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.guidelines[0].action = "x"  # type: ignore[misc]
    with pytest.raises(TypeError):
        made.toolbox["x"] = made.toolbox["get_order"]  # type: ignore[index]


def test_changing_the_list_that_was_passed_in_does_not_change_the_agent() -> None:
    guidelines = [Guideline("a", "b")]
    confirm: dict[str, Any] = {"get_order": "operator"}
    made = Agent("n", "p", guidelines, tools=[get_order], confirm=confirm)
    guidelines.append(Guideline("c", "d"))
    confirm.clear()
    assert len(made.guidelines) == 1
    assert made.confirm == {"get_order": "operator"}


def test_a_condition_may_be_a_function_or_absent() -> None:
    made = agent(Guideline(None, "greet"), Guideline(is_vip, "be quick"), Guideline(lambda state: True, "x"))
    assert made.guidelines[0].condition is None
    condition = made.guidelines[1].condition
    assert callable(condition)
    assert condition({"vip": 1})


async def async_condition(state: object) -> bool:
    return True


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Guideline("a", ""), "guideline: `action` is empty"),
        (lambda: Guideline("  ", "b"), "guideline 'b': `condition` is empty"),
        (lambda: Guideline("a", None), "`action` must be text, but is nothing"),  # type: ignore[arg-type]
        (lambda: Guideline(True, "b"), "`condition` must be text, a function"),  # type: ignore[arg-type]
        (lambda: Guideline("None", "b"), "always applies, leave it out"),
        (lambda: Guideline(async_condition, "b"), "async_condition, which is async"),  # type: ignore[arg-type]
        (lambda: Guideline(lambda: True, "b"), "must take one argument: the state"),  # type: ignore[arg-type, misc]
        (lambda: Guideline("a", "b", id="T3"), "how prompts name tool results"),
        (lambda: Guideline("a", "b", id="P"), "how prompts name the profile"),
        (lambda: Guideline("a", "b", id="M12"), "how prompts name messages"),
        (lambda: Guideline("a", "b", id="a b"), "an id is 1 to 64 of the characters"),
        (lambda: Guideline("a", "b", id="x" * 65), "an id is 1 to 64 of the characters"),
        (lambda: Guideline("a", "b", id="_x"), "does not begin with _"),
        (lambda: Guideline("a", "b", id="model_dump"), "choose another id"),
        (lambda: Guideline("a", "b", id=7), "`id` must be text, but is the number 7"),  # type: ignore[arg-type]
        (lambda: Guideline("a", "b", entails="G2"), r"`entails` must be a list of ids.*write \['G2'\]"),
        (lambda: Guideline("a", "b", depends_on=["G2", 3]), r"`depends_on\[1\]` must be text"),  # type: ignore[list-item]
        (lambda: Guideline("a", "b", priority="high"), "`priority` must be a whole number"),  # type: ignore[arg-type]
        (lambda: Guideline("a", "b", priority=True), "but is the truth value true"),
        (lambda: Guideline("a", "b", continuous="yes"), "true or false.*write true"),  # type: ignore[arg-type]
        (lambda: Guideline("a", "b", on_failure="skipp"), "did you mean `skip`"),  # type: ignore[arg-type]
        (lambda: Term("", "x"), "glossary term: `name` is empty"),
        (lambda: Term("x", "y", "z"), r"`synonyms` must be a list of texts.*write \['z'\]"),
        (lambda: Variable("a", "b", float("nan")), "must be a value that JSON can say"),
        (lambda: Variable("a", "b", {(1, 2): 3}), "must be a value that JSON can say"),
        (lambda: agent(tools=get_order), "`tools` must be a list of tools, but is the function get_order"),
        (lambda: agent("x"), r"`guidelines\[0\]` must be a Guideline, but is the text 'x'"),  # type: ignore[arg-type]
        (lambda: Agent("n", "p", Guideline("a", "b")), "`guidelines` must be a list"),  # type: ignore[arg-type]
        (lambda: Agent("n", " "), "the agent: `profile` is empty"),
        (lambda: agent(fallback=""), "`fallback` is empty"),
        (lambda: agent(confirm="x"), "`confirm` must be a mapping of names to values"),
        (lambda: agent(confirm={"get_ordr": "operator"}, tools=[get_order]), "did you mean `get_order`"),
        (lambda: agent(confirm={"get_order": "boss"}, tools=[get_order]), "'operator' or 'customer'"),
        (lambda: agent(glossary=[Term("Arc", "x"), Term("ARC", "y")]), "`glossary` holds 'ARC' twice"),
        (
            lambda: agent(Guideline("a", "b", id="x"), Guideline("c", "d", id="x")),
            "1 and 2 have the same id 'x'",
        ),
    ],
)
def test_a_mistake_is_told_with_what_was_expected(make: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        make()
    assert (caught.value.file, caught.value.line) == (None, None)


def test_no_guideline_is_needed() -> None:
    made = agent(tools=[get_order])
    assert made.guidelines == ()
    assert made.always_available == {"get_order"}


def test_other_guidelines_make_another_agent() -> None:
    made = agent(Guideline("a", "b", tools=[get_order]), confirm={"get_order": "customer"}, fallback="Sorry.")
    other = made.with_guidelines([dataclasses.replace(made.guidelines[0], continuous=True)])
    assert other.guideline("G1").continuous is True
    assert made.guideline("G1").continuous is None
    assert other.toolbox["get_order"] is made.toolbox["get_order"]
    assert (other.confirm, other.fallback) == (made.confirm, "Sorry.")


def test_importing_the_specification_stays_light() -> None:
    heavy = ("langgraph", "networkx", "yaml", "openai", "langchain_openai", "jinja2", "typer", "rich")
    code = (
        f"import sys, arq_graph.agent.spec\nprint([name for name in {heavy} if name in sys.modules], end='')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]"


def test_a_condition_that_looks_like_a_function_is_not_read_as_words() -> None:
    with pytest.raises(SpecError, match=r'looks like a function.*\{function: "rules:is_vip"\}'):
        Guideline("rules:is_vip", "be quick")
