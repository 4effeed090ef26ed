"""`arq-graph explain`: why the agent said what it said."""

import json
from pathlib import Path

from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import Agent, Guideline, Matching, create_guided_agent
from tests.cli.shop import clerk, options
from tests.reasoning.endpoint import Endpoint, status


def test_it_shows_every_guideline_tool_decision_and_revision_as_it_was(served, cli, shop):
    served("run", shop, "-c", "-", stdin="Hello\nWhere is B-1?")
    shop.unlink()
    result = cli("explain")
    assert result.code == 0
    assert "Bike shop" in result.out
    assert "turn 2" in result.out
    assert "● look-up  score 9" in result.out
    assert "when the customer asks about an order: look the order up" in result.words
    assert "○ cancel  score 2" in result.out
    assert "● polite  score 10  decided by code" in result.out
    assert '✓ get_order(order_id="B-1") →' in result.out
    assert "Followed: look-up, polite" in result.out


def test_what_is_wrong_with_a_reply_is_told_without_the_names_of_classes(cli, folder):
    file = folder / "hello.yaml"
    file.write_text(
        "name: Desk\nprofile: p\nguidelines: [{condition: they say hello, action: 'say \"Hello there.\"'}]\n"
    )
    cli("run", file, "-c", "-", "--model", "offline", stdin="Hello\nHello\nHello")
    words = cli("explain").words
    assert "but content: an earlier message says exactly this" in words
    assert "1 Hello there. content: an earlier message" in words


def test_programs_get_one_json_object(served, cli, shop):
    served("run", shop, "-c", "-", "--thread", "t1", stdin="Where is B-1?")
    (record,) = cli("explain", "--json").lines
    assert (record["thread"], record["turn"], record["agent"]) == ("t1", 1, "Bike shop")
    assert record["reply"].startswith("You said")
    assert record["active"] == record["followed"] == ["look-up", "polite"]
    assert record["revisions"][-1]["sent"]


def test_an_unfinished_turn_shows_how_to_resume_and_nothing_of_the_turn_before(served, cli, shop):
    served("run", shop, "-c", "-", "--thread", "t1", stdin="Hello")
    with Endpoint(lambda _: status(401, "revoked")) as endpoint:
        cli("run", shop, "-c", "-", "--thread", "t1", *options(endpoint), stdin="Where is B-1?")
    result = cli("explain")
    assert result.code == 0
    assert "There is no reply yet" in result.out
    assert "Guidelines: 0 active, 0 not" in result.out
    assert f"arq-graph chat {shop} --thread t1" in result.words


def test_a_thread_of_another_program_is_explained_too(cli, shop):
    with SqliteSaver.from_conn_string("own.sqlite") as saver:
        spec = Agent.from_yaml(shop)
        agent = spec.replace(guidelines=[*spec.guidelines, Guideline("they sing", "sing along")])
        matching = Matching(keep_matches="active")
        app = create_guided_agent(clerk(), agent, matching=matching, checkpointer=saver)
        app.invoke({"messages": [("user", "Where is B-1?")]}, {"configurable": {"thread_id": "mine"}})
    result = cli("explain", "--db", "own.sqlite")
    assert "thread mine, turn 1" in result.out
    assert "Guidelines: 2 active, 2 not" in result.out
    assert "● look-up  score 9" in result.out


def test_without_a_conversation_it_says_how_to_run_one(cli, shop):
    without_file = cli("explain")
    assert (without_file.code, Path(".arq_graph").exists()) == (1, False)
    assert "arq-graph demo" in without_file.err
    without_message = cli("chat", shop, stdin="/quit\n")
    assert "--thread" not in without_message.err
    result = cli("explain")
    assert result.code == 1
    assert "no conversation is saved yet: run one first" in result.words


def test_the_thread_used_last_is_the_default(cli, shop):
    for number, thread in enumerate(("monday", "tuesday", "monday")):
        cli("run", shop, "-c", "-", "--thread", thread, stdin=f"Hello {number}")
    assert "thread monday, turn 2" in cli("explain").out
    assert "thread tuesday, turn 1" in cli("explain", "--thread", "tuesday").out
    result = cli("explain", "--thread", "friday")
    assert result.code == 1
    assert "'friday'" in result.err
    assert "'monday'" in result.err
    with SqliteSaver.from_conn_string(".arq_graph/threads.sqlite") as saver:
        metadata = [str(checkpoint.metadata) for checkpoint in saver.list(None)]
    # The texts of all guidelines are stored once a thread, however many checkpoints it has.
    assert ["look the order up" in text for text in metadata].count(True) == 2


def test_text_that_drives_terminals_is_shown_harmless(cli, shop):
    Path("talk.json").write_text(json.dumps(["\x1b]0;owned\x07 and \u202egnp.exe"]))
    cli("run", shop, "-c", "talk.json")
    result = cli("explain")
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out
    assert "owned" in result.out


def test_it_shows_what_was_found_and_what_the_reply_cites(served, cli, shop):
    manual = "def search(query):\n    return ['Oil the chain.', 'Ring the bell.']\n"
    shop.with_name("manual.py").write_text(manual)
    shop.write_text(shop.read_text() + "knowledge: [manual:search]\n")
    facts = [{"fact": "The chain needs oil.", "source": "S1"}]
    reply = {"content": "Oil it.", "factual_information_provided": facts}
    served("run", shop, "-c", "-", stdin="How do I look after it?", reply=reply)
    result = cli("explain")
    assert "Knowledge: 2 passages found" in result.out
    assert "S1 cited: Oil the chain." in result.out
    assert "S2: Ring the bell." in result.out


def test_prepared_replies_are_named_with_the_sources_of_their_values(served, cli, shop):
    replies = """
replies:
- {id: status, text: "It is {status}.", fields: {status: {result: get_order.status}}}
- {id: other, text: We will call you., otherwise: true}
composition: strict
"""
    shop.write_text(shop.read_text() + replies)
    value = {"field": "status", "value": "in the workshop", "source": "T1"}
    chosen = {"replies": [{"reply": "status", "values": [value]}], "is_every_reply_right": True}
    served("run", shop, "-c", "-", stdin="Where is B-1?", reply=chosen)
    result = cli("explain")
    assert "It is in the workshop." in result.out
    assert "reply status · status from T1" in result.out
    checked = cli("check", shop)
    assert "Replies, strict (2)" in checked.out
    assert "status: text from get_order.status" in checked.out


def test_any_turn_of_an_evaluation_can_be_explained_from_its_results(cli, shop):
    evaluated = cli(
        "evaluate", "suite.yaml", "--model", "offline", "--arms", "guided", "--only", "helpful,unhelpful"
    )
    assert "arq-graph explain suite.results.jsonl --conversation ID" in evaluated.words
    first = cli(
        "explain", "suite.results.jsonl", "--conversation", "order (helpful) / guided / 1", "--turn", "1"
    )
    assert first.code == 0
    assert "order (helpful) / guided / 1 · turn 1 of" in first.words
    assert "Customer Where is my order?" in first.words
    assert "● look-up score 9 followed" in first.words
    assert "Tools that could be called: get_order" in first.words
    [turn] = cli("explain", "suite.results.jsonl", "--turn", "1", "--json").lines
    assert (turn["turn"], turn["notes"][0]["unlocked"]) == (1, ["get_order"])


def test_a_conversation_or_a_turn_that_results_lack_is_named(cli, shop):
    cli("evaluate", "suite.yaml", "--model", "offline", "--arms", "desk:echo")
    assert "Nothing is noted of an agent's guidelines" in cli("explain", "suite.results.jsonl").words
    result = cli("explain", "suite.results.jsonl", "--conversation", "order (helpful) / desk:echo / 2")
    assert result.code == 1
    assert "has no conversation 'order (helpful) / desk:echo / 2'" in result.words
    assert "did you mean `order (helpful) / desk:echo / 1`?" in result.words
    assert "has no turn 99: name one of its" in cli("explain", "suite.results.jsonl", "--turn", "99").words
    assert "name their file first" in cli("explain", "--turn", "1").words
