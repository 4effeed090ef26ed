"""The public data sets as suites: tiny files in their formats, with our own sentences."""

import json
import subprocess
import sys
from typing import Any

import pytest

from arq_graph import errors
from arq_graph.milestones import Suite
from examples.public_data.alfworld import write_alfworld_suite
from examples.public_data.multiwoz import write_multiwoz_suite
from examples.public_data.webshop import write_webshop_suite
from tests.suites.scripted_runs import run_scripted_agent
from tests.suites.winning_actions import winning_actions

PRODUCTS: list[Any] = [
    {
        "asin": "B00LAMP001",
        "name": "Foldable Reading Lamp",
        "query": "reading lamp",
        "category": "garden",
        "product_category": "Home › Lighting › Lamps",
        "pricing": "$21.50$28.00",
        "full_description": "A lamp for the night table.",
        "small_description": ["Runs on batteries.", "Has a warm light."],
        "customization_options": {"Color": [{"value": "Black/White", "image": None}, {"value": "Red ", "image": None}],
                                  "Size": None},
        "images": [""],
    },
    {
        "asin": "B00LAMP002",
        "name": "Heavy Lamp",
        "query": "reading lamp",
        "category": "garden",
        "product_category": "Home › Lighting › Lamps",
        "pricing": None,
        "full_description": None,
        "small_description": "Made of brass.",
        "customization_options": None,
        "images": [""],
    },
    {"asin": "B00LAMP001", "name": "A lamp that is listed twice", "query": "reading lamp", "pricing": "$1.00"},
    {"asin": "nan", "name": "No product", "query": "nothing"},
]  # fmt: skip
ATTRIBUTES = {"B00LAMP001": {"attributes": ["battery powered", "easy to fold"], "instruction": None}}
TASKS = {
    "B00LAMP001": [
        {
            "instruction": "i would like a lamp that is easy to fold, in black and white.",
            "instruction_attributes": ["easy to fold"],
            "instruction_options": ["black | white"],
            "options": ["color: black | white"],
        },
        {"instruction": "i would like a lamp.", "instruction_attributes": [], "instruction_options": []},
    ],
    "B00LAMP002": [
        {"instruction": "a brass lamp", "instruction_attributes": ["brass"], "instruction_options": {}}
    ],
    "B00GONE001": [
        {"instruction": "a lamp of old", "instruction_attributes": ["old"], "instruction_options": []}
    ],
}

HOTELS = [
    {"name": "old mill", "area": "east", "pricerange": "cheap", "type": "guesthouse", "stars": "3", "parking": "yes",
     "internet": "yes", "phone": "0100", "postcode": "ab1", "address": "1 mill lane", "id": "0",
     "location": [1.0, 2.0], "price": {"single": "30"}, "takesbookings": "yes"},
    {"name": "new mill", "area": "east", "pricerange": "moderate", "type": "hotel", "stars": "4", "parking": "no",
     "internet": "yes", "phone": "0101", "postcode": "ab2", "address": "2 mill lane", "id": "1"},
]  # fmt: skip
DATABASE = {
    "hotel": HOTELS,
    "restaurant": [{"name": "soup bowl", "area": "west", "food": "thai", "pricerange": "cheap", "phone": "0102"}],
    "attraction": [{"name": "clock tower", "area": "west", "type": "architecture", "entrance fee": "free"}],
    "train": [{"trainID": "TR1", "departure": "here", "destination": "there", "day": "monday", "leaveAt": "05:16",
               "arriveBy": "06:08", "duration": "52 minutes", "price": "4.40 pounds"}],
}  # fmt: skip
DIALOGUES = {
    "MUL1.json": {
        "goal": {
            "hotel": {
                "info": {"pricerange": "moderate", "area": "east", "parking": "dontcare"},
                "fail_info": {"pricerange": "expensive", "area": "east"},
                "book": {"people": "2", "day": "friday", "stay": "3", "invalid": False, "pre_invalid": True},
                "fail_book": {"stay": "4"},
                "reqt": ["postcode"],
            },
            "taxi": {
                "info": {"leaveAt": "17:15", "destination": "clock tower"},
                "reqt": ["car type", "phone"],
            },
            "train": {
                "info": {"destination": "there", "day": "monday", "arriveBy": "07:00"},
                "reqt": ["trainID"],
            },
            "attraction": {},
            "police": {},
            "message": ["Words that only people read."],
        },
        "log": [],
    },
    "SNG2.json": {"goal": {"police": {"info": {}}, "hotel": {}}, "log": []},
    "SNG3.json": {
        "goal": {"attraction": {"info": {"type": "architecture"}, "reqt": ["entrance fee"]}, "taxi": {}},
        "log": [],
    },
}


@pytest.fixture
def shop_data(tmp_path):
    files = {"items_shuffle_1000": PRODUCTS, "items_ins_v2_1000": ATTRIBUTES, "items_human_ins": TASKS}
    return write_files(tmp_path / "webshop", files)


@pytest.fixture
def dialogues(tmp_path):
    files = {f"db/{domain}_db": entities for domain, entities in DATABASE.items()}
    return write_files(tmp_path / "multiwoz", {"data": DIALOGUES, **files})


def write_files(folder, files):
    for name, data in files.items():
        file = folder / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(data), encoding="utf-8")
    return folder


def test_a_webshop_task_becomes_a_request_with_a_price(shop_data, tmp_path):
    suite = Suite.from_yaml(write_webshop_suite(shop_data, tmp_path / "out"))
    lamp, brass_lamp = [scenario.user for scenario in suite.scenarios]
    request = (
        "i would like a lamp that is easy to fold, in black and white, and price lower than 40.00 dollars"
    )
    assert lamp.intents[0].request == request
    assert (lamp.role, lamp.knowledge) == ("guide", {"color": "black | white"})
    assert brass_lamp.intents[0].request.endswith(
        "lower than 120.00 dollars"
    )  # without a price, 100 is taken


def test_a_webshop_purchase_is_scored_as_webshop_does(shop_data, tmp_path):
    suite = Suite.from_yaml(write_webshop_suite(shop_data, tmp_path / "out"))

    def buy(shop, picks):
        number = 1 if "easy to fold" in shop.goal.attributes else 2
        actions = ["search: lamp", f"click: B00LAMP00{number}"]
        if number == 1:
            actions += picks
        return [("act", {"action": action}) for action in [*actions, "click: buy"]]

    for record in run_scripted_agent(suite, lambda shop: buy(shop, ["click: color: black | white"])):
        assert (record.outcome["score"], record.progress_rate) == (1.0, 1.0), record.scenario
    without_colour, _ = run_scripted_agent(suite, lambda shop: buy(shop, []))
    assert without_colour.outcome == {"score": 0.75, "success": False, "bought": True}


def test_multiwoz_goals_become_wishes_with_fallbacks(dialogues, tmp_path):
    suite = Suite.from_yaml(write_multiwoz_suite(dialogues, tmp_path / "out"))
    assert [scenario.name for scenario in suite.scenarios] == ["MUL1", "SNG3"]
    hotel, train, taxi = suite.scenarios[0].user.intents
    assert hotel.slots["price_range"] == "expensive" and hotel.slots["nights"] == "4"
    assert hotel.fallback == "Then rather with price_range moderate, nights 3."
    assert hotel.request.endswith("Please book it. Please tell me: postcode.")
    assert "parking" not in hotel.slots and train.slots["arrive_by"] == "07:00" and taxi.fallback is None


def test_multiwoz_goals_are_met_at_a_desk_with_its_database(dialogues, tmp_path):
    suite = Suite.from_yaml(write_multiwoz_suite(dialogues, tmp_path / "out"))

    def fulfil_wishes(desk):
        if "hotel" not in desk.wishes:
            fee = {"domain": "attraction", "name": "clock tower", "attributes": ["entrance_fee"]}
            return [("find_attractions", {"type": "architecture"}), ("look_up", fee)]
        booking = {"name": "new mill", "people": 2, "day": "friday"}
        return [
            ("find_hotels", {"price_range": "moderate"}),
            ("look_up", {"domain": "hotel", "name": "new mill", "attributes": ["postcode"]}),
            ("book_hotel", {**booking, "nights": 4}),  # refused
            ("book_hotel", {**booking, "nights": 3}),
            ("find_trains", {"destination": "there", "arrive_by": "07:00"}),
            ("order_taxi", {"departure": "new mill", "destination": "clock tower", "leave_at": "17:15"}),
        ]

    for record in run_scripted_agent(suite, fulfil_wishes):
        assert record.outcome == {"inform": True, "success": True}, record.scenario
        assert record.progress_rate == 1.0
    for record in run_scripted_agent(suite, lambda desk: fulfil_wishes(desk)[:-1]):
        assert record.outcome["success"] is False


def test_the_limit_bounds_the_number_of_tasks(shop_data, dialogues, tmp_path):
    assert len(Suite.from_yaml(write_webshop_suite(shop_data, tmp_path / "1", limit=1)).scenarios) == 1
    assert len(Suite.from_yaml(write_multiwoz_suite(dialogues, tmp_path / "2", limit=1)).scenarios) == 1
    with pytest.raises(errors.InputError, match="the number of tasks must be at least 1, not 0"):
        write_webshop_suite(shop_data, tmp_path / "3", limit=0)


def test_the_log_gives_reasons_for_skipped_tasks(shop_data, dialogues, tmp_path, caplog):
    caplog.set_level("INFO", "examples.public_data")
    write_webshop_suite(shop_data, tmp_path / "1")
    write_files(dialogues, {"data": {"EMPTY": {"goal": {"hotel": {}, "message": []}}, **DIALOGUES}})
    write_multiwoz_suite(dialogues, tmp_path / "2")
    shop, booking = [message.partition(": ")[2].splitlines() for message in caplog.messages]
    assert shop == [
        "2 tasks written",
        "1 skipped, because no attribute is wanted",
        "1 skipped, because the product is not listed with a name and a query",
    ]
    assert booking == [
        "2 tasks written",
        "1 skipped, because the goal is empty",
        "1 skipped, because the police or a hospital is needed",
    ]


def test_missing_files_and_existing_folders_are_errors(shop_data, tmp_path):
    message = r"has no hotel_db\.json: give the unpacked folder of MultiWOZ 2\.0.* 2\.2 has another"
    with pytest.raises(errors.InputError, match=message):
        write_multiwoz_suite(shop_data, tmp_path / "out")
    with pytest.raises(errors.InputError, match="exists: give a folder that is new"):
        write_webshop_suite(shop_data, tmp_path)


def test_the_error_about_damaged_data_names_file_and_place(shop_data, dialogues, tmp_path):
    (shop_data / "items_human_ins.json").write_text("{")
    with pytest.raises(errors.InputError, match=r"items_human_ins\.json isn't valid JSON"):
        write_webshop_suite(shop_data, tmp_path / "out")
    write_files(shop_data, {"items_human_ins": {"B1": [{"instruction": "x"}]}})
    with pytest.raises(errors.InputError, match=r"\['B1'\]\[0\]\['instruction_attributes'\]: Field req"):
        write_webshop_suite(shop_data, tmp_path / "out")
    write_files(shop_data, {"items_human_ins": TASKS, "items_shuffle_1000": []})
    with pytest.raises(errors.InputError, match="no task that the suite 'shop' can hold\n4 skipped, because"):
        write_webshop_suite(shop_data, tmp_path / "out")
    write_files(dialogues, {"data": {"A": {"goal": {"hotel": {"info": "cheap"}}}}})
    with pytest.raises(errors.InputError, match=r"\['hotel'\]\['info'\]: Input should be"):
        write_multiwoz_suite(dialogues, tmp_path / "out")


@pytest.mark.slow
def test_the_command_writes_a_suite(shop_data, tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "examples.public_data", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run("webshop", shop_data, tmp_path / "out", 1)
    assert done.returncode == 0
    assert done.stdout == f"{tmp_path / 'out' / 'suite.yaml'}: 1 task written\n"
    assert run("webshop", tmp_path / "gone", tmp_path / "2").returncode == 1


ROOM = """
(define (problem a_trial) (:domain alfred)
 (:objects agent1 - agent Cabinet_bar_1 - receptacle)
 (:init
    (receptacleType Cabinet_bar_2 CabinetType) (receptacleType Cabinet_bar_1 CabinetType)
    (receptacleType Sink_bar_1_bar_SinkBasin SinkBasinType) (receptacleType CoffeeTable_bar_1 CoffeeTableType)
    (receptacleType Fridge_bar_1 FridgeType) (receptacleType Microwave_bar_1 MicrowaveType)
    (objectType Mug_bar_1 MugType) (objectType Mug_bar_2 MugType) (objectType Mug_bar_3 MugType)
    (objectType Sink_bar_1 SinkType) (objectType DeskLamp_bar_1 DeskLampType) (objectType FloorLamp_bar_1 FloorLampType)
    (canContain CabinetType MugType)
    (pickupable Mug_bar_1) (pickupable Mug_bar_2) (pickupable Mug_bar_3)
    (openable Cabinet_bar_1)
    (inReceptacle Mug_bar_1 Cabinet_bar_2) (inReceptacle Mug_bar_2 Fridge_bar_1) (inReceptacle Mug_bar_3 Cabinet_bar_1)
    (inReceptacle DeskLamp_bar_1 CoffeeTable_bar_1)
 )
 (:goal (exists (?o - object) (and (objectType ?o MugType) (isClean ?o)))))
"""
GAMES = {
    "pick_and_place_simple-Mug-None-CoffeeTable-1": "place mug coffeetable",
    "look_at_obj_in_light-Mug-None-DeskLamp-1": "light mug ",
    "pick_clean_then_place_in_recep-Mug-None-SinkBasin-1": "clean mug sink",
    "pick_heat_then_place_in_recep-Mug-None-CoffeeTable-1": "heat mug coffeetable",
    "pick_cool_then_place_in_recep-Mug-None-Cabinet-1": "cool mug cabinet",
    "pick_two_obj_and_place-Mug-None-CoffeeTable-1": "two mug coffeetable",
    "look_at_obj_in_light-Mug-None-FloorLamp-1": None,  # it stands on the floor
    "pick_and_place_with_movable_recep-Mug-Plate-CoffeeTable-1": None,
    "pick_and_place_simple-Spoon-None-CoffeeTable-1": None,
    "pick_and_place_simple-Mug-None-Desk-1": None,
}


def test_alfworld_tasks_are_done_in_its_houses(tmp_path):
    for name in GAMES:
        game = tmp_path / "data" / name / "trial_1" / "game.tw-pddl"
        game.parent.mkdir(parents=True)
        content = {"pddl_problem": ROOM, "pddl_domain": "", "grammar": ""}
        game.write_text(json.dumps(content), encoding="utf-8")
    suite = Suite.from_yaml(write_alfworld_suite(tmp_path / "data", tmp_path / "out"))
    tasks = {}
    for scenario in suite.scenarios:
        world = scenario.make_world(1)
        tasks[scenario.name.removesuffix(" trial_1")] = f"{world.task} {world.thing} {world.target}"
        if scenario.use_case == "examine in light":
            assert scenario.user.knowledge == {
                "mug": "in cabinet 1 or in cabinet 2 or in fridge 1",
                "lamp": "on coffeetable 1",
            }
    assert tasks == {name: task for name, task in GAMES.items() if task is not None}

    def choose_calls(world):
        return [("act", {"action": action}) for action in winning_actions(world)]

    for record in run_scripted_agent(suite, choose_calls):
        assert (record.outcome["success"], record.progress_rate) == (True, 1.0), record.scenario


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"has no game\.tw-pddl"),
        ({"pddl_problem": ""}, r"game\.tw-pddl: \['pddl_problem'\]"),
        ({"pddl_problem": "(define)"}, "1 skipped, because the house lacks what is needed"),
    ],
)
def test_a_missing_or_empty_alfworld_game_is_an_error(tmp_path, content, message):
    if content is not None:
        game = tmp_path / "pick_and_place_simple-Mug-None-CoffeeTable-1" / "trial_1" / "game.tw-pddl"
        game.parent.mkdir(parents=True)
        game.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(errors.InputError, match=message):
        write_alfworld_suite(tmp_path, tmp_path / "out")
