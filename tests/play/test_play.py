"""What the page of `arq-graph play` is told of a conversation, and what it can ask for."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from arq_graph.agent.modules import load_object
from arq_graph.milestones import Suite
from tests.play.conftest import AGENT, TOOLS

JOURNEY = """
journeys:
- id: complaint
  condition: they complain
  steps: [{id: find, action: find the parcel, tools: [desk:find_parcel]}, {id: sorry, action: apologise, after: find}]
"""

MILESTONES = """
milestones:
- {name: Start, type: NFC, description: They write.}
- {name: find_parcel, type: FC, description: It is found., dependencies: [Start]}
- {name: End, type: NFC, description: All is said., dependencies: [find_parcel]}
"""
TOOL_WITH_A_MODEL = '''\
from threading import Event
from langchain_core.language_models import FakeListChatModel

def find_parcel(number: str) -> str:
    """Find a parcel."""
    find_parcel.has_begun.set()
    find_parcel.may_end.wait(10)
    FakeListChatModel(responses=["On its way"]).invoke(number)
    find_parcel.has_ended.set()
    return number

find_parcel.has_begun, find_parcel.may_end, find_parcel.has_ended = Event(), Event(), Event()
'''


def test_a_turn_shows_what_led_to_the_reply(playground: Any) -> None:
    assert playground.say("Where is P-1?")["type"] == "RUN_FINISHED"
    assert playground.reply == "It is on its way."
    agent = playground.get_value("agent_loaded")
    assert agent["guidelines"]["look-up"] == {"condition": "they ask about a parcel", "action": "look it up"}
    matches = {match["guideline"]: match for match in playground.get_value("guidelines_matched")["matches"]}
    assert (matches["look-up"]["active"], matches["look-up"]["score"]) == (True, 9)
    assert matches["person"]["active"] is False
    assert playground.get_value("tool_called")["result"] == "P-1 is on its way"


def test_the_prompt_and_the_answer_of_each_step_can_be_read(playground: Any) -> None:
    playground.say("Where is P-1?")
    calls = {
        entry["value"]["step"]: entry["value"]
        for entry in playground.entries
        if entry.get("name") == "model_call"
    }
    assert {"matcher", "tools", "message"} <= calls.keys()
    call = playground.client.get(f"/calls/{calls['message']['id']}").json()
    assert "It is on its way." in call["answer"]
    assert any("Where is P-1?" in text for _, text in call["prompt"])
    assert "prompt" not in calls["message"]
    assert playground.client.get("/calls/other").status_code == 400


def test_a_call_with_half_a_character_can_be_read(start: Any) -> None:
    playground = start(reply="On its \ud83d way.")
    playground.say("Where is P-1?")
    for entry in playground.entries:
        if entry.get("name") == "model_call":
            assert playground.client.get(f"/calls/{entry['value']['id']}").status_code == 200


def test_a_question_is_answered_by_its_button(start: Any) -> None:
    playground = start("customer")
    playground.say("Where is P-1?")
    question = playground.get_value("confirmation_asked")
    assert question["calls"][0]["arguments"] == {"number": "P-1"}
    playground.say("Yes", agrees_to=question["id"])
    assert playground.get_value("tool_called")["status"] == "success"


def test_an_operator_decides_on_the_page(start: Any) -> None:
    playground = start("operator")
    [waiting] = playground.say("Where is P-1?")["outcome"]["interrupts"]
    assert playground.say("Hello?")["type"] == "RUN_ERROR"
    decision = {"decisions": [{"type": "approve"}]}
    playground.run(resume=[{"interruptId": waiting["id"], "status": "resolved", "payload": decision}])
    assert playground.get_value("tool_called")["result"] == "P-1 is on its way"


def test_a_person_takes_over_and_gives_back(start: Any) -> None:
    playground = start(judge={"person": 9}, call={"hand_over": {"reason": "they insist"}})
    for path in ("/colleague", "/give-back"):
        assert "only a person who has it" in playground.post(path, {"text": "Hi"}).json()["error"]
    playground.say("A person, please!")
    assert playground.get_value("handed_over")["takeover"]["reason"] == "they insist"
    playground.post("/colleague", {"text": "This is Ann."})
    playground.read_until("colleague")
    spoken = playground.reply
    playground.say("Hello Ann!")
    assert playground.reply == spoken  # the agent says nothing
    playground.post("/give-back")
    playground.say("Where is P-1?")
    assert playground.reply != spoken


def test_the_page_can_be_loaded_again_and_a_restart_begins_anew(playground: Any) -> None:
    playground.say("Where is P-1?")
    before = playground.entries
    playground.conversation, playground.entries = "", []
    playground.read()
    assert playground.entries == before
    playground.post("/restart")
    playground.read()
    assert [entry["name"] for entry in playground.entries] == ["agent_loaded"]
    assert (
        "write a message first"
        in playground.post("/scenarios", {"file": "a.yaml", "name": "a"}).json()["error"]
    )


def test_a_failed_turn_says_why_and_can_be_tried_again(start: Any) -> None:
    failures = [ValueError("no such port")]
    playground = start(reply=lambda _: failures.pop() if failures else "It is on its way.")
    message = {"id": "m1", "role": "user", "content": "Where is P-1?"}
    failed = playground.run(messages=[message])
    assert "no such port" in failed["message"]
    assert playground.run(messages=[message])["type"] == "RUN_FINISHED"
    assert playground.reply == "It is on its way."


def test_a_mistake_in_the_file_is_shown_and_the_agent_from_before_goes_on(playground: Any) -> None:
    file = playground.folder / "agent.yaml"
    right = file.read_text()
    file.write_text(right.replace("desk:find_parcel", "desk:find_parcle"))
    problem = playground.read_until("agent_broken")["value"]["problem"]
    assert "agent.yaml:4: " in problem
    assert "did you mean `find_parcel`?" in problem
    playground.say("Where is P-1?")
    assert playground.reply == "It is on its way."
    file.write_text(right.replace("look it up", "look it up at once"))
    assert (
        playground.read_until("agent_loaded")["value"]["guidelines"]["look-up"]["action"]
        == "look it up at once"
    )


def test_a_module_beside_the_file_is_read_again(playground: Any) -> None:
    playground.say("Where is P-1?")
    (playground.folder / "desk.py").write_text(TOOLS.replace("is on its way", "has just been delivered"))
    playground.read_until("agent_loaded")
    playground.say("And now?")
    assert playground.get_value("tool_called")["result"] == "P-1 has just been delivered"


def test_a_tool_that_goes_on_after_a_restart_writes_nothing_to_the_new_conversation(start: Any) -> None:
    playground = start(tools=TOOL_WITH_A_MODEL)
    message = {"id": "m1", "role": "user", "content": "Where is P-1?"}
    playground.begin(messages=[message])
    tool: Any = load_object("desk:find_parcel", playground.folder)
    assert tool.has_begun.wait(10)
    playground.post("/restart")
    tool.may_end.set()
    assert tool.has_ended.wait(10)
    playground.read()
    assert [entry["name"] for entry in playground.entries] == ["agent_loaded"]


def test_milestones_in_another_folder_are_read_again(start: Any, tmp_path_factory: Any) -> None:
    file = tmp_path_factory.mktemp("elsewhere") / "milestones.yaml"
    file.write_text(MILESTONES)
    playground = start(milestones=file)
    file.write_text(MILESTONES.replace("They write", "They complain"))
    [graph] = playground.read_until("agent_loaded")["value"]["graphs"]
    assert graph["nodes"][0]["description"] == "They complain."


# Saving


def save(playground: Any, file: str, name: str = "parcel") -> Any:
    return playground.post("/scenarios", {"file": file, "name": name})


def test_a_conversation_becomes_a_scenario_and_comments_stay(playground: Any) -> None:
    suite = playground.folder / "suite.yaml"
    playground.say("Where is P-1?")
    assert save(playground, "suite.yaml").json()["command"] == f"arq-graph evaluate {suite}"
    [scenario] = Suite.from_yaml(suite).scenarios
    assert scenario.says == ("Where is P-1?",)
    assert [str(call.tool) for call in scenario.expect.calls] == ["find_parcel"]
    text = f"# Mine.\n{suite.read_text()}  # A remark.\nseed: 3  # lucky\n"
    suite.write_text(text)
    assert save(playground, "suite.yaml", "again").status_code == 200
    assert [scenario.name for scenario in Suite.from_yaml(suite).scenarios] == ["parcel", "again"]
    lines = suite.read_text().splitlines()
    assert [line for line in text.splitlines() if line not in lines] == []
    twice = save(playground, "suite.yaml", "again")
    assert "another scenario has the same name" in twice.json()["error"]
    assert suite.read_text().splitlines() == lines


def test_a_journey_is_what_a_saved_conversation_is_measured_on(start: Any) -> None:
    playground = start(agent=AGENT + JOURNEY, judge={"complaint": 9})
    playground.say("P-1 is late!")
    assert save(playground, "suites.yaml").status_code == 200
    [scenario] = Suite.from_yaml(playground.folder / "suites.yaml").scenarios
    assert scenario.journey == "complaint"


def test_conversations_that_are_saved_at_once_are_all_saved(playground: Any) -> None:
    playground.say("Where is P-1?")
    names = [f"parcel {number}" for number in range(4)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(partial(save, playground, "suite.yaml"), names))
    suite = Suite.from_yaml(playground.folder / "suite.yaml")
    assert sorted(scenario.name for scenario in suite.scenarios) == names


def test_line_breaks_that_only_yaml_knows_stay_as_they_were_written(playground: Any) -> None:
    text = "Where\x85is\u2028P-1,\u2029please?"
    playground.say(text)
    for name in ("first", "second"):
        assert save(playground, "suite.yaml", name).status_code == 200
    scenarios = Suite.from_yaml(playground.folder / "suite.yaml").scenarios
    assert [scenario.says for scenario in scenarios] == [(text,), (text,)]


@pytest.mark.parametrize("scenarios", ["", " null", " hello", " {a: 1}", " []"])
def test_what_is_no_list_of_scenarios_is_left_as_it_is(playground: Any, scenarios: str) -> None:
    suite = playground.folder / "suite.yaml"
    suite.write_text(f"scenarios:{scenarios}\n")
    playground.say("Where is P-1?")
    assert "write each as `- name: …`" in save(playground, "suite.yaml").json()["error"]
    assert suite.read_text() == f"scenarios:{scenarios}\n"


def test_nothing_is_written_outside_the_project_or_to_other_files(start: Any, tmp_path_factory: Any) -> None:
    playground, outside = start(), tmp_path_factory.mktemp("outside")
    (playground.folder / "link.yaml").symlink_to(outside / "suite.yaml")
    (playground.folder / "linked").symlink_to(outside)
    playground.say("Where is P-1?")

    def read_files() -> dict[str, str]:
        return {file.name: file.read_text() for file in playground.folder.iterdir() if file.is_file()}

    before = read_files()
    elsewhere = (
        "../suite.yaml",
        "/tmp/suite.yaml",
        "link.yaml",
        "linked/suite.yaml",
        "none/a.yaml",
        "a\0.yaml",
    )
    for file in (*elsewhere, "agent.yaml", "desk.py", "suite.txt"):
        assert save(playground, file).status_code == 400
    assert list(outside.iterdir()) == []
    assert read_files() == before


def test_a_request_that_is_not_one_is_explained(playground: Any) -> None:
    answer = playground.post("/turns", {"messages": 3})
    assert answer.status_code == 400
    assert "The request isn't valid" in answer.json()["error"]
    query = {"conversation": playground.conversation, "after": "9" * 5000}
    assert playground.client.get("/events", params=query).json()["entries"] == playground.entries
