"""The public data sets as suites: tiny files in their formats, with sentences of our own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from arq_graph import errors
from arq_graph.milestones import Suite
from examples.public_data.alfworld import write_alfworld_suite
from examples.public_data.multiwoz import write_multiwoz_suite
from examples.public_data.webshop import write_webshop_suite
from tests.suites.episodes import held
from tests.suites.household import way as errand

PRODUCTS = [
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
    return written(tmp_path / "webshop", files)


@pytest.fixture
def dialogues(tmp_path):
    files = {f"db/{domain}_db": entities for domain, entities in DATABASE.items()}
    return written(tmp_path / "multiwoz", {"data": DIALOGUES, **files})


def written(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


def test_webshops_tasks_are_bought_in_webshops_catalogue(shop_data, tmp_path):
    suite = Suite.from_yaml(write_webshop_suite(shop_data, tmp_path / "out"))
    first, second = suite.scenarios
    request = (
        "i would like a lamp that is easy to fold, in black and white, and price lower than 40.00 dollars"
    )
    assert first.user.intents[0].request == request
    assert (first.user.role, first.user.knowledge) == ("guide", {"color": "black | white"})
    assert second.user.intents[0].request.endswith("lower than 120.00 dollars")  # there is no price: 100

    def way(world):
        is_first = "easy to fold" in world.goal.attributes
        number, picks = ("1", ["click: color: black | white"]) if is_first else ("2", [])
        for action in ["search: lamp", f"click: B00LAMP00{number}", *picks, "click: buy"]:
            yield "act", {"action": action}

    for record in held(suite, way).conversations:
        assert (record.outcome["score"], record.progress_rate) == (1.0, 1.0), record.scenario
    record, _ = held(
        suite, lambda world: [deed for deed in way(world) if "color" not in str(deed)]
    ).conversations
    assert record.outcome == {"score": 0.75, "success": False, "bought": True}


def test_multiwoz_goals_are_met_at_a_desk_with_its_database(dialogues, tmp_path):
    suite = Suite.from_yaml(write_multiwoz_suite(dialogues, tmp_path / "out"))
    assert [each.name for each in suite.scenarios] == ["MUL1", "SNG3"]
    hotel, train, taxi = suite.scenarios[0].user.intents
    assert hotel.slots["price_range"] == "expensive" and hotel.slots["nights"] == "4"
    assert hotel.fallback == "Then rather with price_range moderate, nights 3."
    assert hotel.request.endswith("Please book it. Please tell me: postcode.")
    assert "parking" not in hotel.slots and train.slots["arrive_by"] == "07:00" and taxi.fallback is None

    def way(world):
        if "hotel" not in world.wishes:
            yield "find_attractions", {"type": "architecture"}
            yield "look_up", {"domain": "attraction", "name": "clock tower", "attributes": ["entrance_fee"]}
            return
        booking = {"name": "new mill", "people": 2, "day": "friday"}
        yield "find_hotels", {"price_range": "moderate"}
        yield "look_up", {"domain": "hotel", "name": "new mill", "attributes": ["postcode"]}
        yield "book_hotel", {**booking, "nights": 4}  # refused
        yield "book_hotel", {**booking, "nights": 3}
        yield "find_trains", {"destination": "there", "arrive_by": "07:00"}
        yield "order_taxi", {"departure": "new mill", "destination": "clock tower", "leave_at": "17:15"}

    for record in held(suite, way).conversations:
        assert record.outcome == {"inform": True, "success": True}, record.scenario
        assert record.progress_rate == 1.0
    for record in held(suite, lambda world: list(way(world))[:-1]).conversations:
        assert record.outcome["success"] is False


def test_the_limit_bounds_the_number_of_tasks(shop_data, dialogues, tmp_path):
    assert len(Suite.from_yaml(write_webshop_suite(shop_data, tmp_path / "1", limit=1)).scenarios) == 1
    assert len(Suite.from_yaml(write_multiwoz_suite(dialogues, tmp_path / "2", limit=1)).scenarios) == 1
    with pytest.raises(errors.InputError, match="the number of tasks must be at least 1, not 0"):
        write_webshop_suite(shop_data, tmp_path / "3", limit=0)


def test_the_log_counts_tasks_written_and_gives_reasons_for_skipped_ones(
    shop_data, dialogues, tmp_path, caplog
):
    caplog.set_level("INFO", "examples.public_data")
    write_webshop_suite(shop_data, tmp_path / "1")
    written(dialogues, {"data": {"EMPTY": {"goal": {"hotel": {}, "message": []}}, **DIALOGUES}})
    assert len(Suite.from_yaml(write_multiwoz_suite(dialogues, tmp_path / "2")).scenarios) == 2
    shop, booking = (message.partition(": ")[2].splitlines() for message in caplog.messages)
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


def test_missing_files_broken_files_and_existing_folders_are_errors(shop_data, tmp_path):
    with pytest.raises(
        errors.InputError,
        match=r"has no hotel_db\.json: give the unpacked folder of MultiWOZ 2\.0.* 2\.2 has another",
    ):
        write_multiwoz_suite(shop_data, tmp_path / "out")
    with pytest.raises(errors.InputError, match="exists: give a folder that is new"):
        write_webshop_suite(shop_data, tmp_path)
    (shop_data / "items_human_ins.json").write_text("{")
    with pytest.raises(errors.InputError, match=r"items_human_ins\.json isn't valid JSON"):
        write_webshop_suite(shop_data, tmp_path / "out")


@pytest.mark.parametrize(
    ("file", "data", "message"),
    [
        (
            "items_shuffle_1000",
            ["a lamp"],
            r"\[0\]: Input should be a valid dictionary; that is not as in WebShop",
        ),
        (
            "items_shuffle_1000",
            [],
            "no task that the suite 'shop' can hold\n4 skipped, because the product is",
        ),
        (
            "items_human_ins",
            {"B1": [{"instruction": "x"}]},
            r"\['B1'\]\[0\]\['instruction_attributes'\]: Field req",
        ),
        ("data", [], "the whole file: Input should be a valid dictionary; that is not as in MultiWOZ"),
        ("db/restaurant_db", [{"area": "west"}], r"\[0\]\['name'\]: Field required"),
        ("data", {"A": {"goal": {"hotel": {"info": "cheap"}}}}, r"\['hotel'\]\['info'\]: Input should be"),
    ],
)
def test_the_error_about_damaged_data_names_file_and_place(
    shop_data, dialogues, tmp_path, file, data, message
):
    is_shop = file.startswith("items")
    written(shop_data if is_shop else dialogues, {file: data})
    write_suite = write_webshop_suite if is_shop else write_multiwoz_suite
    with pytest.raises(errors.InputError, match=message):
        write_suite(shop_data if is_shop else dialogues, tmp_path / "out")


@pytest.mark.slow
def test_the_command_writes_a_suite(shop_data, tmp_path):
    def run(*arguments):
        command = [sys.executable, "-m", "examples.public_data", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    said = f"{tmp_path / 'out' / 'suite.yaml'}: 1 task written\n"
    assert run("webshop", shop_data, tmp_path / "out", 1) == (0, said)
    assert run("webshop", tmp_path / "gone", tmp_path / "2")[0] == 1
    assert "invalid choice: 'shop' (choose from" in run("shop", shop_data, tmp_path / "3")[1]


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


def test_alfworlds_tasks_are_done_in_its_houses_by_the_households_actions(tmp_path):
    for name in GAMES:
        (tmp_path / "data" / name / "trial_1").mkdir(parents=True)
        game = tmp_path / "data" / name / "trial_1" / "game.tw-pddl"
        game.write_text(
            json.dumps({"pddl_problem": ROOM, "pddl_domain": "", "grammar": ""}), encoding="utf-8"
        )
    suite = Suite.from_yaml(write_alfworld_suite(tmp_path / "data", tmp_path / "out"))
    tasks = {}
    for each in suite.scenarios:
        world = each.make_world(1)
        tasks[each.name.removesuffix(" trial_1")] = f"{world.task} {world.thing} {world.target}"
    assert tasks == {name: task for name, task in GAMES.items() if task is not None}
    light = next(each for each in suite.scenarios if each.use_case == "examine in light")
    assert light.user.knowledge == {
        "mug": "in cabinet 1 or in cabinet 2 or in fridge 1",
        "lamp": "on coffeetable 1",
    }
    for record in held(
        suite, lambda world: [("act", {"action": each}) for each in errand(world)]
    ).conversations:
        assert (record.outcome["success"], record.progress_rate) == (True, 1.0), record.scenario


def test_a_folder_without_games_or_with_an_empty_one_is_an_error(tmp_path):
    with pytest.raises(errors.InputError, match=r"has no game\.tw-pddl"):
        write_alfworld_suite(tmp_path, tmp_path / "out")
    game = tmp_path / "pick_and_place_simple-Mug-None-CoffeeTable-1" / "trial_1" / "game.tw-pddl"
    game.parent.mkdir(parents=True)
    game.write_text('{"pddl_problem": ""}', encoding="utf-8")
    with pytest.raises(errors.InputError, match=r"game\.tw-pddl: \['pddl_problem'\]"):
        write_alfworld_suite(tmp_path, tmp_path / "out")
    game.write_text('{"pddl_problem": "(define)"}', encoding="utf-8")
    with pytest.raises(errors.InputError, match="1 skipped, because the house lacks what is needed"):
        write_alfworld_suite(tmp_path, tmp_path / "out")
