"""The shop: its pages and its search, and the score of a purchase."""

import pytest

from arq_graph.experiments.arms import load_arms
from arq_graph.milestones import AgendaUser, Message, evaluate
from arq_graph.milestones.suites.shop.world import CATALOGUE, Product, Shop, Wanted, extract_terms, search
from tests.brain import ask, brain, do, say
from tests.suites.scripted_runs import load_suite, run_scripted_agent

PRODUCTS = [Product.model_validate(entry) for entry in CATALOGUE]
JACKET = {"attributes": ["rain jacket", "waterproof", "breathable"], "options": ["green", "M"], "price": 85}
SUITE = load_suite("shop")
HELPFUL = [scenario for scenario in SUITE.scenarios if scenario.user.kind == "helpful"]


def visit(*actions):
    """Return the shop after these actions, and the pages that they showed."""
    shop = Shop(JACKET)
    pages = []
    for action in actions:
        observation = shop.step(action)
        assert observation.valid, observation
        pages.append(observation.text)
    return shop, pages


def find_fitting(wanted):
    """Return the products that have everything that is wanted, with the options to pick."""
    fitting = []
    for product in PRODUCTS:
        options = {}
        for name, values in product.options.items():
            for value in values:
                if value in wanted.options:
                    options[name] = value
        if all(wanted.check_purchase(product, options)):
            fitting.append((product, options))
    return fitting


def buy_best(shop):
    product, options = find_fitting(shop.goal)[0]
    picks = [f"click: {name}: {value}" for name, value in options.items()]
    for action in [f"search: {product.name}", f"click: {product.id}", *picks, "click: buy"]:
        yield "act", {"action": action}


@pytest.mark.slow
def test_an_agent_that_knows_the_catalogue_buys_the_wanted_product_in_every_scenario():
    records = run_scripted_agent(SUITE, buy_best)
    assert len(records) >= 15
    for record in records:
        assert record.outcome == {"score": 1.0, "success": True, "bought": True}, record.scenario
        assert (record.goal_completed, record.progress_rate) == (True, 1.0), record.scenario


async def ask_guide(spec, question):
    guide = AgendaUser(spec, seed=1)
    task = Message("user", await guide.aspeak([]))
    return await guide.aspeak([task, Message("agent", question)])


@pytest.mark.parametrize("scenario", HELPFUL, ids=lambda scenario: scenario.name)
async def test_a_goal_fits_few_products_and_the_customer_knows_what_the_task_leaves_open(scenario):
    goal, task = scenario.world.keywords["goal"], scenario.user.intents[0].request
    fitting = find_fitting(Wanted.model_validate(goal))
    assert 1 <= len(fitting) <= 2
    for option, value in fitting[0][1].items():
        if value.casefold() not in task.casefold():
            assert value in await ask_guide(scenario.user, f"Which {option} would you like?")
    if scenario.use_case == "features to ask for":
        features = await ask_guide(scenario.user, "Which features matter to you?")
        for attribute in goal["attributes"]:
            assert extract_terms(attribute) <= extract_terms(f"{task} {features}")


def test_asking_improves_the_purchase_of_a_shipped_arm():
    name = "jacket of unknown colour (helpful)"
    suite = SUITE.replace(scenarios=[scenario for scenario in SUITE.scenarios if scenario.name == name])
    look = [do("search: waterproof jacket"), do("click: J1")]
    buy = [do("click: colour: navy"), do("click: buy"), say("I bought it.", ends_task=True)]
    with_question = [*look, ask("Which colour and size, please?"), do("click: size: L"), *buy]
    for moves, score in ((with_question, 1.0), ([*look, *buy], 5 / 6)):
        (record,) = evaluate(suite, load_arms(["respact"]), model=brain(moves=moves)).conversations
        assert record.error is None
        assert record.outcome["score"] == pytest.approx(score)
        assert record.goal_completed is (score == 1.0)


@pytest.mark.parametrize(
    ("actions", "score"),
    [
        (["click: J1", "click: size: M", "click: colour: green"], 1.0),
        (["click: J1", "click: size: M"], 5 / 6),  # no colour was picked
        (["click: J4", "click: size: M", "click: colour: green"], 5 / 6),  # too expensive
        (["click: J2", "click: size: S", "click: colour: green"], 4 / 6),  # water-repellent only, size S
        (["search: camp mug", "click: M3"], 1 / 6),  # only the price fits
    ],
)
def test_a_purchase_scores_the_share_of_what_was_wanted(actions, score):
    shop, _ = visit("search: rain jacket", *actions, "click: buy")
    assert shop.outcome() == {"score": pytest.approx(score), "success": score == 1.0, "bought": True}


def test_an_agent_that_buys_nothing_scores_nothing():
    shop, _ = visit("search: rain jacket", "click: J1", "click: size: M", "click: colour: green")
    assert (shop.outcome(), shop.done) == ({"score": 0.0, "success": False, "bought": False}, False)


def test_search_ranks_by_matching_words_and_results_have_pages():
    assert [product.id for product in search("quiet mechanical keyboards")][:2] == ["K4", "K3"]
    assert search("zeppelin") == []
    _, (first, second, again) = visit("search: waterproof green", "click: next", "click: previous")
    assert first == again != second
    assert "Page 2" in second and "[previous]" in second


def test_the_last_picked_option_counts_until_the_page_is_left():
    _, pages = visit("search: heron", "click: j1", "click: Size: s", "click: size: M")
    assert "Picked: size: M." in pages[-1]
    _, pages = visit("search: heron", "click: J1", "click: size: M", "click: back", "click: J1")
    assert "Picked: nothing." in pages[-1]


def test_an_action_that_the_page_does_not_offer_is_refused():
    shop = Shop(JACKET)
    for action in ("", "buy", "click: buy", "click: J1", "search:", "think: green", "click: size: M"):
        assert not shop.step(action).valid
    shop.step("search: heron jacket")
    shop.step("click: J1")
    assert not shop.step("click: size: XXXL").valid and not shop.step("click: J2").valid
    shop.step("click: buy")
    assert shop.done and not shop.step("search: heron").valid


def test_the_same_actions_show_the_same_pages_after_a_reset():
    actions = ["search: lamp", "click: next", "click: previous", "click: D1", "click: buy"]
    shop, pages = visit(*actions)
    shop.reset()
    assert [shop.step(action).text for action in actions] == pages
