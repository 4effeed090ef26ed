"""Suites as YAML files, and the messages for mistakes in them."""

import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from arq_graph.errors import SpecError
from arq_graph.milestones import Limits, Suite, evaluate
from tests.milestones.evaluated import Answers, buyer

FILES = {
    "agent.yaml": "name: Shop\nprofile: A shop.\ntools: [shop:find, shop:buy]\n",
    "bare.yaml": "name: Shop\nprofile: A shop.\ntools: [shop:find]\n",
    "milestones.yaml": """
milestones:
- {name: Start, type: NFC}
- {name: find, type: FC, dependencies: [Start]}
- {name: buy, type: FC, dependencies: [find]}
- {name: End, type: NFC, dependencies: [buy]}
""",
    "shop.py": '''
def find() -> str:
    """Find a lamp."""
    return "one lamp"

def buy(colour: str = "any") -> str:
    """Buy it."""
    return "bought"

class Shop:
    def __init__(self, seed):
        self.lamps = [f"lamp {seed}"]

    def buy(self, colour: str) -> str:
        """Buy one of a colour."""
        return f"{colour} {self.lamps.pop()}"

number = 3
''',
    "suite.yaml": """
seed: 7
defaults:
  agent: agent.yaml
  milestones: milestones.yaml
  limits: {turns: 5}
  user: {patience: 2}
scenarios:
- name: lamp
  goal: buy
  use_case: shopping
  world: shop:Shop
  limits: {calls: 9}
  user:
    intents: [A lamp please]
- name: kinds
  kinds: [helpful, perturbed, unhelpful]
  user: {intents: [{request: A lamp please, slots: {colour: blue, shop window: left}}]}
""",
}
SUITE = FILES["suite.yaml"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_suite_is_read_with_files_modules_and_worlds_beside_it(folder: Path):
    suite = Suite.from_yaml(folder / "suite.yaml")
    lamp, *kinds = suite.scenarios
    names = ["lamp", "kinds (helpful)", "kinds (perturbed)", "kinds (unhelpful)"]
    assert [one.name for one in suite.scenarios] == names
    assert (suite.seed, suite.name, lamp.limits) == (7, "suite", Limits(turns=5, calls=9))
    assert (lamp.use_case, lamp.goal, lamp.user.patience) == ("shopping", "buy", 2)
    assert [one.user.kind for one in kinds] == ["helpful", "perturbed", "unhelpful"]
    sales: list[str] = []

    def arm(scenario: Any, agent: Any, model: Any) -> Any:
        sales.append(agent.toolbox["buy"].invoke({"colour": "red"} if scenario.world else {}))
        return Answers(buyer)

    report = evaluate(suite, {"app": arm}, runs=2)
    assert [one.user for one in report.conversations].count("perturbed") == 2
    seeds = {one.seed for one in report.conversations if one.scenario == "lamp"}
    assert len(seeds) == 2
    # Each conversation has a world of its own with its seed, and those without one share an app.
    assert sorted(sales) == sorted([*(f"red lamp {seed}" for seed in seeds), *["bought"] * 3])


def test_a_twin_is_the_scenario_with_the_same_kind_of_user(folder: Path):
    file = folder / "suite.yaml"
    other = "- name: other\n  kinds: [helpful, perturbed, unhelpful]\n  user: {intents: [A lamp please]}\n"
    file.write_text(
        SUITE.replace("- name: kinds\n", "- name: kinds\n  twin: other\n") + other + "  twin: lamp\n"
    )
    twins = {scenario.name: scenario.twin for scenario in Suite.from_yaml(file).scenarios}
    assert twins["kinds (helpful)"] == "other (helpful)"
    assert twins["other (helpful)"] == twins["other (perturbed)"] == "lamp"
    file.write_text(file.read_text().replace("twin: lamp", "twin: other (helpful)"))
    with pytest.raises(
        SpecError, match=r"the twin 'other \(helpful\)' of 'other \(helpful\)' names no other"
    ):
        Suite.from_yaml(file)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("seed: 7", "sead: 7", 2, "did you mean `seed`?"),
        ("goal: buy", "goal: bay", 10, "scenarios[0].goal`: the goal 'bay' isn't a milestone"),
        ("agent: agent.yaml", "agent: agnet.yaml", 4, "No such file or directory; did you mean `agent.yaml`"),
        ("  milestones: milestones.yaml\n", "", 8, "give `milestones`, a `journey`, or what to `expect`"),
        ("world: shop:Shop", "world: shop:Shap", 12, "did you mean `Shop`?"),
        (
            "world: shop:Shop",
            "world: shop:number",
            12,
            "but a world is a class or function that takes the given arguments: 3 is",
        ),
        (
            "colour: blue",
            "coluor: blue",
            18,
            "slots.coluor`: the slot 'coluor' isn't an argument of any tool; did you mean `colour`?",
        ),
        ("user:\n    intents: [A lamp please]", "task: one", 9, "must have either a `user`"),
        ("agent: agent.yaml", "agent: bare.yaml", None, "milestones.yaml:5: the agent has no tool 'buy'"),
        (SUITE[SUITE.index("scenarios:") :], "scenarios: []\n", None, "has no scenario"),
        ("name: kinds", "name: lamp", 16, "[1].name` is 'lamp', and another scenario has the same name"),
        ("name: lamp", "name: kinds (helpful)", None, "two scenarios called 'kinds (helpful)'"),
        (
            "  goal: buy",
            "  says: Hi\n  expect: {says: ready}",
            11,
            "of mappings (their keys: pattern, criterion)",
        ),
        ("intents: [A lamp please]", "patience: 3", 14, "scenarios[0].user.intents` is missing"),
        (
            "  goal: buy",
            "  twin: kidns",
            10,
            "'kidns' of 'lamp' names no other scenario in the suite; did you mean `kinds",
        ),
        (
            "  goal: buy",
            "  says: Hi\n  expect: {never: [$colour]}",
            11,
            "has `$colour`, but only milestone files can",
        ),
        ("  goal: buy", "  says: Hi", 14, "scenarios[0].user` cannot be combined with `says`"),
    ],
)
def test_a_mistake_is_reported_with_its_line(
    folder: Path, old: str, new: str, line: int | None, message: str
):
    file = folder / "suite.yaml"
    assert old in SUITE
    file.write_text(SUITE.replace(old, new, 1))
    with pytest.raises(SpecError) as error:
        Suite.from_yaml(file)
    assert message in str(error.value)
    assert str(error.value).count("milestones.yaml:5: ") <= 1, "once, however many scenarios name it"
    assert line is None or f"{file}:{line}" in str(error.value) or f"line {line}" in str(error.value)


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        ("colour: $color", "did you mean `colour`?"),
        ("size: $colour", "has no argument 'size'; it takes colour"),
        ("colour: $colour", ""),
    ],
)
def test_a_milestone_file_names_arguments_of_the_world_and_of_its_tools(
    folder: Path, argument: str, message: str
):
    (folder / "world.py").write_text(FILES["shop.py"].replace("self, seed", "self, colour, seed"))
    goals = FILES["milestones.yaml"].replace(
        "name: buy, type: FC", f"name: buy, type: FC, arguments: {{{argument}}}"
    )
    (folder / "milestones.yaml").write_text(goals)
    world = "world: {of: world:Shop, colour: red}"
    text = SUITE[: SUITE.index("- name: kinds")].replace("world: shop:Shop", world)
    (folder / "suite.yaml").write_text(text)
    with pytest.raises(SpecError, match=re.escape(message)) if message else nullcontext():
        Suite.from_yaml(folder / "suite.yaml")


@pytest.mark.parametrize(
    ("method", "near"),
    [
        ("outcom", "outcome"),
        ("fnd", "find"),
        ("buys", None),
    ],
)
def test_a_method_of_a_world_with_a_misspelt_name_is_reported(folder: Path, method: str, near: str | None):
    methods = f"    def {method}(self):\n        return {{}}\n    def func(self):\n        return {{}}\n"
    world = FILES["shop.py"].replace("\nnumber", f"{methods}\nnumber")
    (folder / "worlds.py").write_text(world)
    (folder / "suite.yaml").write_text(SUITE.replace("world: shop:Shop", "world: worlds:Shop"))
    message = (
        rf"suite.yaml:12: .* the world has a method '{method}', which nothing calls; did you mean `{near}`\?"
    )
    with pytest.raises(SpecError, match=message) if near else nullcontext():
        Suite.from_yaml(folder / "suite.yaml")


def test_all_mistakes_are_reported_at_once(folder: Path):
    file = folder / "suite.yaml"
    (folder / "bad.yaml").write_text("name: Bad\nprofile: Bad.\ntools: [no_such_module:tool]\n")
    wrong = SUITE.replace("  world: shop:Shop\n", "  agent: bad.yaml\n  milestones: none.yaml\n").replace(
        "  kinds:", "  goal: x\n  kinds:"
    )
    file.write_text(wrong)
    with pytest.raises(SpecError) as error:
        Suite.from_yaml(file)
    first, second, third = str(error.value).splitlines()
    assert first.startswith(f"{file}:12: `scenarios[0].agent` cannot be used: {folder / 'bad.yaml'}:3:")
    assert second.startswith(f"{file}:13: `scenarios[0].milestones` cannot be used: {folder / 'none.yaml'}: ")
    assert third.startswith(f"{file}:18: `scenarios[1].goal`: the goal 'x' isn't a milestone")


def test_suites_that_include_each_other_are_refused_with_the_line(folder: Path):
    (folder / "more.yaml").write_text("include: [suite.yaml]\n")
    file = folder / "suite.yaml"
    file.write_text(f"{SUITE}include: [more.yaml]\n")
    with pytest.raises(
        SpecError, match=r"more.yaml:1: .*names 'suite.yaml', which is this file or includes it"
    ):
        Suite.from_yaml(file)
