"""Suites in files and in Python: what a mistake in one is told as, and what comes of one that is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arq_graph.errors import SpecError
from arq_graph.milestones import MilestoneGraph
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.evaluation.suite import Suite, seed_of
from arq_graph.milestones.evaluation.world import fresh_agent
from tests.milestones.evaluated import FIND_AND_BUY, buy, find, lamp, shop_agent, shopper

AGENT = """
name: Shop
profile: A shop.
tools: [shop:find, shop:buy]
"""
MILESTONES = """
milestones:
- {name: Start, type: NFC}
- {name: find, type: FC, dependencies: [Start]}
- {name: buy, type: FC, dependencies: [find]}
- {name: aside, type: FC, tool: find, dependencies: [Start]}
- {name: End, type: NFC, dependencies: [buy]}
"""
TOOLS = '''
def find() -> str:
    """Find a lamp."""
    return "one lamp"


def buy() -> str:
    """Buy it."""
    return "bought"


class Shop:
    made = 0

    def __init__(self):
        Shop.made += 1
        self.lamps = ["lamp"]

    def buy(self, colour: str) -> str:
        """Buy one of a colour.

        Args:
            colour: Which.
        """
        return f"{colour} {self.lamps.pop()}"


number = 3
'''
SUITE = """
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
  user: {intents: [{request: A lamp please, slots: {colour: blue}}]}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "agent.yaml": AGENT,
        "milestones.yaml": MILESTONES,
        "shop.py": TOOLS,
        "suite.yaml": SUITE,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_suite_is_read_with_files_and_modules_beside_it(folder):
    suite = Suite.from_yaml(folder / "suite.yaml")
    assert [one.name for one in suite.scenarios] == [
        *("lamp", "kinds (helpful)", "kinds (perturbed)", "kinds (unhelpful)"),
    ]
    lamp, *kinds = suite.scenarios
    assert (suite.seed, suite.name) == (7, "suite")
    assert lamp.limits == Limits(turns=5, calls=9)
    assert (lamp.use_case, lamp.goal, lamp.user.patience) == ("shopping", "buy", 2)
    assert [one.user.kind for one in kinds] == ["helpful", "perturbed", "unhelpful"]
    assert kinds[0].agent is lamp.agent
    assert (lamp.line, kinds[0].line) == (9, 16)


def test_every_conversation_gets_tools_of_a_world_of_its_own(folder):
    scenario = Suite.from_yaml(folder / "suite.yaml").scenarios[0]
    one, other = fresh_agent(scenario, 1), fresh_agent(scenario, 2)
    assert one is not None
    assert other is not None
    assert one.toolbox["buy"].invoke({"colour": "red"}) == "red lamp"
    assert other.toolbox["buy"].invoke({"colour": "blue"}) == "blue lamp"
    assert list(one.toolbox["buy"].args) == ["colour"]
    assert one.toolbox["find"].invoke({}) == "one lamp"
    assert scenario.agent is not None
    assert scenario.agent.toolbox["buy"].invoke({}) == "bought"


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("seed: 7", "sead: 7", 2, "unknown key `sead`; did you mean `seed`?"),
        ("seed: 7", "seed: x", 2, "whole number"),
        ("  goal: buy", "  gaol: buy", 10, "unknown key `gaol`; did you mean `goal`?"),
        ("goal: buy", "goal: fly", 9, "the goal 'fly', which no milestone of"),
        ("goal: buy", "goal: aside", 9, "from which no way leads to End"),
        ("agent: agent.yaml", "agent: nope.yaml", 4, "no such file"),
        ("milestones: milestones.yaml", "milestones: nope.yaml", 5, "no such file"),
        ("world: shop:Shop", "world: shop:Shap", 12, "no 'Shap'; did you mean `Shop`?"),
        ("world: shop:Shop", "world: nope:Shop", 12, "names the module 'nope'"),
        ("world: shop:Shop", "world: shop:number", 12, "the number 3"),
        ("limits: {calls: 9}", "limits: {calls: 0}", 13, "`calls` must be a whole number from 1"),
        ("limits: {calls: 9}", "limits: {cells: 9}", 13, "unknown key `cells`"),
        ("limits: {turns: 5}", "limits: 5", 6, "must be a mapping"),
        ("intents: [A lamp please]", "intentions: [A lamp please]", 14, "intentions"),
        ("user: {patience: 2}", "user: patient", 7, "`user` must be a mapping"),
        ("name: kinds", "name: lamp", 16, None),
        ("- name: kinds", "- task: kinds", 16, "scenario 2 has no `name`"),
        ("kinds: [helpful, perturbed", "kinds: [helpless, perturbed", 17, "'helpless'; did you mean"),
    ],
)
def test_a_mistake_is_told_with_its_line(folder, old, new, line, said):
    file = folder / "suite.yaml"
    text = SUITE.replace(old, new, 1)
    if said is None:
        text, said, line = (
            text.replace("  kinds: [helpful, perturbed, unhelpful]\n", ""),
            "a second scenario",
            16,
        )
    file.write_text(text)
    with pytest.raises(SpecError) as error:
        Suite.from_yaml(file)
    assert said in str(error.value)
    assert str(error.value).startswith(f"{file}:{line}: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1\n", "must be a mapping"),
        ("seed: 1\n", "no `scenarios`"),
        ("scenarios: []\n", "none"),
        ("scenarios: [x]\n", "must be a mapping"),
        ("scenarios: [{name: a, user: {intents: [x]}}]\n", "no `milestones`"),
        ("scenarios: {a: 1}\n", "must be a list"),
        ("a: [\n", "not YAML"),
    ],
)
def test_a_file_that_is_no_suite_is_told_so(tmp_path, text, said):
    (tmp_path / "suite.yaml").write_text(text)
    with pytest.raises(SpecError, match=said):
        Suite.from_yaml(tmp_path / "suite.yaml")


def test_a_scenario_that_cannot_be_used_is_left_out_and_the_others_are_there(folder):
    file = folder / "suite.yaml"
    (folder / "bad.yaml").write_text("name: Bad\nprofile: Bad.\ntools: [no_such_module:tool]\n")
    file.write_text(SUITE.replace("  world: shop:Shop\n", "  agent: bad.yaml\n"))
    suite = Suite.from_yaml(file, strict=False)
    assert [one.name for one in suite.broken] == ["lamp"]
    assert "bad.yaml:3" in str(suite.broken[0].error)
    assert "no_such_module" in str(suite.broken[0].error)
    assert len(suite.scenarios) == 3
    with pytest.raises(SpecError, match="no_such_module"):
        Suite.from_yaml(file)


def test_what_is_wrong_with_the_file_as_a_whole_is_an_error_always(folder):
    (folder / "suite.yaml").write_text(SUITE.replace("seed: 7", "sead: 7"))
    with pytest.raises(SpecError, match="sead"):
        Suite.from_yaml(folder / "suite.yaml", strict=False)


def test_milestones_that_name_a_tool_the_agent_lacks_are_an_error():
    graph = MilestoneGraph.from_actions([{"name": "fly", "kwargs": {}}])
    with pytest.raises(SpecError, match="'fly' is no tool of the agent"):
        lamp(milestones=graph, agent=shop_agent())


def test_a_world_needs_an_agent_whose_tools_it_replaces():
    with pytest.raises(SpecError, match="names no `agent`"):
        lamp(world=dict)


def test_a_world_may_be_a_mapping_and_is_given_the_seed():
    def world(seed: int) -> dict[str, object]:
        def told() -> str:
            """Tell the seed."""
            return str(seed)

        return {"buy": told}

    agent = fresh_agent(lamp(agent=shop_agent(), world=world), 9)
    assert agent is not None
    assert agent.toolbox["buy"].invoke({}) == "9"


def test_a_tool_of_a_world_that_the_agent_lacks_is_told():
    with pytest.raises(SpecError, match="no tool called 'bui' to be replaced; did you mean `buy`"):
        fresh_agent(lamp(agent=shop_agent(), world=lambda: {"bui": buy}), 1)
    with pytest.raises(SpecError, match="in the place of the tool 'buy'"):
        fresh_agent(lamp(agent=shop_agent(), world=lambda: {"buy": lambda: 1}), 1)


def test_an_agent_with_other_tools_is_otherwise_the_same():
    agent = shop_agent()
    other = agent.with_tools({"buy": find})
    assert list(other.toolbox) == ["find", "buy"] == list(agent.toolbox)
    assert other.toolbox["buy"].invoke({}) == "one lamp"
    assert agent.toolbox["buy"].invoke({}) == "bought"
    assert (other.name, other.guidelines, other.always_available) == (
        agent.name,
        agent.guidelines,
        agent.always_available,
    )


def test_scenarios_need_names_of_their_own():
    with pytest.raises(SpecError, match="two scenarios are called 'lamp'"):
        Suite([lamp(), lamp()])
    with pytest.raises(SpecError, match="without scenarios"):
        Suite([])


def test_graphs_that_differ_never_share_a_name():
    other = MilestoneGraph.from_actions([{"name": "find", "kwargs": {}}])
    suite = Suite([lamp("a"), lamp("b"), lamp("c", milestones=other)])
    names, records = suite.graphs()
    assert names["a"] != names["c"]
    assert len(records[names["c"]].milestones) == 3


def test_what_a_scenario_depends_on_changes_with_it_alone():
    same = lamp(agent=shop_agent()).depends_on()
    assert same == lamp(agent=shop_agent()).depends_on()
    for changed, what in (
        (lamp(agent=shop_agent(), limits=Limits(turns=1)), "the limits"),
        (Scenario("lamp", shopper(patience=1), FIND_AND_BUY, shop_agent()), "the user"),
        (lamp(), "the agent"),
        (
            lamp(agent=shop_agent(), milestones=MilestoneGraph.from_actions([{"name": "buy"}])),
            "the milestones",
        ),
    ):
        now = changed.depends_on()
        assert what in [name for name in same if same[name] != now[name]]


@given(st.integers(), st.text(), st.integers(1, 10_000), st.text(), st.integers(1, 10_000))
def test_seeds_are_the_same_every_time_and_differ_where_anything_does(suite, scenario, run, other, later):
    seed = seed_of(suite, scenario, run)
    assert seed == seed_of(suite, scenario, run)
    assert 0 <= seed < 2**48
    if (scenario, run) != (other, later):
        assert seed != seed_of(suite, other, later)


def test_the_seed_of_a_run_stays_what_it_was_in_every_version():
    assert [seed_of(0, "lamp", run) for run in (1, 2)] == SEEDS


SEEDS = [257349400964737, 53163170470452]


def test_the_kinds_of_a_scenario_are_runs_of_tasks_of_their_own(folder):
    file = folder / "suite.yaml"
    assert {one.task for one in Suite.from_yaml(file).scenarios} == {None}
    named = SUITE.replace("- name: kinds", "- name: kinds\n  task: buying")
    file.write_text(named.replace("- name: lamp", "- name: lamp\n  task: light"))
    assert [one.task for one in Suite.from_yaml(file).scenarios] == [
        *("light", "buying (helpful)", "buying (perturbed)", "buying (unhelpful)"),
    ]


def test_a_world_is_given_a_seed_only_by_that_name():
    made = []

    def world(colour: str = "red", *, seed: int = 0) -> dict[str, object]:
        made.append((colour, seed))
        return {"buy": buy}

    def unseeded(colour: str = "red", **further: object) -> dict[str, object]:
        made.append((colour, further))
        return {"buy": buy}

    fresh_agent(lamp(agent=shop_agent(), world=world), 5)
    fresh_agent(lamp(agent=shop_agent(), world=unseeded), 5)
    assert made == [("red", 5), ("red", {})]
