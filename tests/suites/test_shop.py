"""The shop: what its pages show and refuse, and what a purchase is worth."""

from __future__ import annotations

import json

import pytest

from arq_graph import Environment
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import AgendaUser, Message, evaluate
from arq_graph.milestones.suites.shop.world import CATALOGUE, Product, Shop, Wanted, extract_terms, search
from tests.brain import ask, brain, do, say
from tests.suites.episodes import held, shipped

PRODUCTS = [Product.model_validate(each) for each in json.loads(CATALOGUE.read_text(encoding="utf-8"))]
JACKET = {"attributes": ["rain jacket", "waterproof", "breathable"], "options": ["green", "M"], "price": 85}
SUITE = shipped("shop")


def shop(*actions, goal=JACKET):
    world = Shop(goal)
    seen = [world.step(action) for action in actions]
    assert all(each.valid for each in seen), seen[-1]
    return world, [each.text for each in seen]


def fitting(goal):
    """The products that cover all that is wanted, with what has to be picked."""
    wanted = Wanted.model_validate(goal)
    for product in PRODUCTS:
        at = {
            name: value
            for name, values in product.options.items()
            for value in values
            if value in wanted.options
        }
        if all(wanted.check_purchase(product, at)):
            yield product, at


def way(world):
    """The actions of one who knows the catalogue by heart."""
    product, picked = next(fitting(world.goal.model_dump()))
    picks = [f"click: {option}: {value}" for option, value in picked.items()]
    for action in [f"search: {product.name}", f"click: {product.id}", *picks, "click: buy"]:
        yield "act", {"action": action}


@pytest.mark.slow
def test_one_who_knows_the_catalogue_buys_what_is_wanted_in_every_scenario():
    records = held(SUITE, way).conversations
    assert len(records) >= 15
    for record in records:
        assert record.outcome == {"score": 1.0, "success": True, "bought": True}, record.scenario
        assert (record.goal_completed, record.progress_rate) == (True, 1.0), record.scenario


async def answered(spec, question):
    """What a guide says to the first question about the task."""
    guide = AgendaUser(spec, seed=1)
    task = Message("user", await guide.aspeak([]))
    return await guide.aspeak([task, Message("agent", question)])


@pytest.mark.parametrize(
    "scenario", [one for one in SUITE.scenarios if one.user.kind == "helpful"], ids=lambda one: one.name
)
async def test_goals_fit_few_products_and_customers_tell_what_the_task_does_not_say(scenario):
    goal, user = scenario.world.keywords["goal"], scenario.user
    found = list(fitting(goal))
    assert 1 <= len(found) <= 2
    task, (_, picked) = user.intents[0].request, found[0]
    unsaid = {option: value for option, value in picked.items() if value.casefold() not in task.casefold()}
    for option, value in unsaid.items():
        assert value in await answered(user, f"Which {option} would you like?")
    assert bool(unsaid) == (scenario.use_case != "stated" and bool(goal.get("options")))
    if scenario.use_case == "features to ask for":
        said = await answered(user, "Which features matter to you?")
        assert all(extract_terms(each) <= extract_terms(f"{task} {said}") for each in goal["attributes"])


def test_asking_helps_in_the_shipped_arm():
    jacket = SUITE.replace(
        scenarios=[one for one in SUITE.scenarios if one.name == "jacket of unknown colour (helpful)"]
    )
    look = [do("search: waterproof jacket"), do("click: J1")]
    buy = [do("click: colour: navy"), do("click: buy"), say("I bought it.", ends_task=True)]
    asked = [*look, ask("Which colour and size, please?"), do("click: size: L"), *buy]
    for moves, score in ((asked, 1.0), ([*look, *buy], 5 / 6)):
        (record,) = evaluate(jacket, load_arms(["respact"]), model=brain(moves=moves)).conversations
        assert (record.error, record.outcome["score"]) == (None, pytest.approx(score))
        assert record.goal_completed is (score == 1.0)


@pytest.mark.parametrize(
    ("actions", "score"),
    [
        (["click: J1", "click: size: M", "click: colour: green"], 1.0),
        (["click: J1", "click: size: M"], 5 / 6),  # no colour was picked
        (["click: J1", "click: size: M", "click: colour: navy"], 5 / 6),
        (["click: J4", "click: size: M", "click: colour: green"], 5 / 6),  # too dear
        (["click: J2", "click: size: S", "click: colour: green"], 4 / 6),  # repels water for a while
        (["search: camp mug", "click: M3"], 1 / 6),  # nothing but cheap
    ],
)
def test_a_purchase_is_worth_the_share_of_what_was_wanted(actions, score):
    world, _ = shop("search: rain jacket", *actions, "click: buy")
    assert world.outcome() == {"score": pytest.approx(score), "success": score == 1.0, "bought": True}


def test_who_buys_nothing_gets_nothing():
    world, _ = shop("search: rain jacket", "click: J1", "click: size: M", "click: colour: green")
    assert (world.outcome(), world.done) == ({"score": 0.0, "success": False, "bought": False}, False)


def test_words_find_what_has_most_of_them_and_pages_turn_both_ways():
    assert [each.id for each in search("quiet mechanical keyboards")][:2] == ["K4", "K3"]
    _, (first, second, again) = shop("search: waterproof green", "click: next", "click: previous")
    assert first == again != second
    assert "Page 2" in second and "[previous]" in second
    assert search("zeppelin") == []


def test_what_is_picked_last_counts_and_is_forgotten_on_the_way_back():
    _, (*_, product) = shop("search: heron", "click: j1", "click: Size: s", "click: size: M")
    assert "Picked: size: M." in product
    _, (*_, product) = shop("search: heron", "click: J1", "click: size: M", "click: back", "click: J1")
    assert "Picked: nothing." in product


@pytest.mark.parametrize(
    "action", ["", "buy", "click: buy", "click: J1", "search:", "think: green", "click: size: M"]
)
def test_what_the_page_does_not_have_changes_nothing(action):
    world = Shop(JACKET)
    assert isinstance(world, Environment)
    assert not world.step(action).valid
    world.step("search: heron jacket")
    world.step("click: J1")
    assert not world.step("click: size: XXXL").valid and not world.step("click: J2").valid
    world.step("click: buy")
    assert world.done and not world.step("search: heron").valid


def test_the_same_actions_show_the_same_after_a_reset():
    actions = [
        "search: lamp",
        "click: next",
        "click: previous",
        "click: D1",
        "click: colour: brass",
        "click: buy",
    ]
    world, seen = shop(*actions)
    world.reset()
    assert [world.step(action).text for action in actions] == seen
