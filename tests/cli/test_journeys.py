"""Journeys on the command line: drawn by `graph`, and told by `chat`, `run` and `explain` while they go on."""

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from arq_graph import create_guided_agent
from tests.brain import brain
from tests.cli.shop import write_shop
from tests.journeys.returns import make_shop

JOURNEY = """
journeys:
- id: repair
  condition: the customer wants a repair
  steps:
  - {id: order, action: ask which order it is and look it up, tools: [desk:get_order]}
  - {id: fault, action: ask what is broken, after: order}
  - {id: workshop, action: book the workshop, condition: a wheel is bent, after: fault}
  - {id: kit, action: send a repair kit, condition: a tyre is flat, after: fault}
  - {id: close, action: say goodbye, after: [workshop, kit]}
- id: survey
  condition: the customer wants to take part in the survey
  steps:
  - {id: who, journey: repair}
"""
ASKS = {"asks_for_something": True}
NOT_KNOWN = {"condition_holds": "not_known_yet", "condition_rationale": "it was not said what is broken"}
SKIPPED = {"condition_holds": "no", "condition_rationale": "nothing is bent"}


@pytest.fixture
def shop(folder):
    file = write_shop(folder)
    file.write_text(file.read_text() + JOURNEY)
    return file


@pytest.fixture
def repair(served, shop):
    """Run a conversation about a repair; the last message says what is broken."""

    def run(command="run", messages="I need a repair, where is B-1?\nA tyre.", **steps):
        def answer_fault(prompt):
            return ASKS | ({"answered_by": "M3"} if "tyre" in str(prompt.lines) else {})

        judge = {"repair": 9, "look-up": 2}
        known = {"repair-fault": answer_fault, "repair-workshop": SKIPPED, **steps}
        options = ["--thread", "t1"] if command == "chat" else ["-c", "-", "--thread", "t1"]
        return served(command, shop, *options, stdin=messages, judge=judge, steps=known)

    return run


def find_lines(text: str, *words: str) -> list[str]:
    return [line for line in text.splitlines() if all(word in line for word in words)]


def test_chat_shows_what_is_settled_and_what_the_open_step_does(repair):
    out = repair("chat").out
    assert find_lines(out, "journeys", "repair", "✓ order")
    assert find_lines(out, "✓ order", "✓ fault", "– workshop")
    assert find_lines(out, "● kit: send a repair kit")
    assert not find_lines(out, "active", "repair")


def test_chat_shows_what_a_step_is_held_back_for(repair):
    out = repair("chat", **{"repair-kit": NOT_KNOWN}).out
    assert find_lines(out, "○ kit: not known yet whether a tyre is flat")


def test_chat_goes_on_after_the_journey_was_deleted(repair, shop):
    repair("chat", "I need a repair, where is B-1?")
    shop.write_text(shop.read_text().partition("journeys:")[0])
    result = repair("chat", "Well?")
    assert result.code == 0
    assert "Well?" in result.out


def test_run_prints_how_far_each_journey_is(repair):
    first, second = repair().lines
    assert [step["state"] for step in first["journeys"][0]["steps"]] == ["done", "open"]
    (journey,) = second["journeys"]
    assert (journey["journey"], journey["state"]) == ("repair", "active")
    assert {step["step"]: step["reason"] for step in journey["steps"]} == {
        "order": "called (T1)",
        "fault": "answered (M3)",
        "workshop": "its condition does not hold",
        "kit": "",
    }


def test_explain_says_why_each_step_is_as_it_is(repair, cli):
    repair()
    result = cli("explain")
    assert "● repair active" in result.words
    assert "✓ order the step is done: called (T1)" in result.words
    assert "✓ fault the step is done: answered (M3)" in result.words
    assert "– workshop the step is skipped: its condition does not hold; nothing is bent" in result.words
    assert "● kit the step is open" in result.words
    guidelines = result.out.partition("Guidelines")[2].partition("Journeys")[0]
    assert "repair" not in guidelines  # each is explained once
    assert "survey" in guidelines  # not begun: a condition that was judged


def test_explain_says_what_a_step_waits_for(repair, cli):
    repair(**{"repair-kit": NOT_KNOWN})
    words = cli("explain").words
    assert "○ kit waits until it is known if its condition holds: it was not said what is broken" in words


def test_explain_says_what_opened_a_step_again(served, shop, cli):
    changed = {"changed": [{"step": "repair-order", "answered_by": None}]}

    def change(prompt):
        return changed if "another" in str(prompt.lines) else {}

    steps = {"repair-fault": ASKS}
    talk = "I need a repair, where is B-1?\nIt is another one."
    served("run", shop, "-c", "-", stdin=talk, judge={"repair": 9}, steps=steps, journeys=change)
    words = cli("explain").words
    assert "● order the step is open: the customer changed repair-order" in words


def test_explain_says_that_a_journey_was_left(served, shop, cli):
    def judge(prompt):
        return 2 if "open" in str(prompt.lines) else 9

    talk = "I need a repair, where is B-1?\nWhen are you open?"
    served("run", shop, "-c", "-", stdin=talk, judge={"repair": judge}, steps={"repair-fault": ASKS})
    assert "○ repair left" in cli("explain").words


def test_explain_reads_journeys_in_threads_of_other_programs(cli, folder):
    model = brain({"return": 9}, {"get_order": {"order_id": "A-301"}}, steps={"return-reason": ASKS})
    with SqliteSaver.from_conn_string("own.sqlite") as saver:
        app = create_guided_agent(model, make_shop(), checkpointer=saver)
        message = {"messages": [("user", "I want to return order A-301.")]}
        app.invoke(message, {"configurable": {"thread_id": "mine"}})
    words = cli("explain", "--db", "own.sqlite").words
    assert "● return active" in words
    assert "✓ order the step is done: called (T1)" in words
    assert "● reason the step is open" in words


def test_graph_draws_a_journey(cli, shop):
    result = cli("graph", shop, "--journey", "repair")
    assert (result.code, result.err) == (0, "")
    lines = [line.strip() for line in result.out.splitlines() if not line.startswith("%%")]
    assert lines == [
        "flowchart TD",
        's0(["the customer wants a repair"])',
        's1["order<br/>ask which order it is and look it up<br/>calls get_order"]',
        's2("fault<br/>ask what is broken")',
        's3("workshop<br/>book the workshop")',
        's4("kit<br/>send a repair kit")',
        's5("close<br/>say goodbye")',
        "s0 --> s1",
        "s1 --> s2",
        's2 -->|"a wheel is bent"| s3',
        's2 -->|"a tyre is flat"| s4',
        "s3 -.-> s5",
        "s4 -.-> s5",
    ]
    assert 's1[["who<br/>the journey repair"]]' in cli("graph", shop, "--journey", "survey").out


def test_graph_marks_how_far_a_journey_is_in_a_thread(repair, cli, shop):
    repair()
    out = cli("graph", shop, "--journey", "repair", "--thread", "t1").out
    assert '(["the customer wants a repair<br/>active"])' in out
    assert 's1["✓ order<br/>' in out
    assert 's3("– workshop<br/>' in out
    assert 's4("● kit<br/>' in out
    assert 's5("close<br/>' in out
    assert "class s1,s2 done" in out
    assert "class s3 skipped" in out
    assert "class s4 open" in out


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--journey", "repaid"], 1, "'Bike shop' has no journey of id 'repaid'; did you mean `repair`?"),
        (["--journey", "repair", "--thread", "t2"], 1, "no thread 't2' is saved here; the latest is 't1'"),
        (["--thread", "t1"], 2, "--thread goes together with --journey"),
    ],
)
def test_graph_says_what_it_cannot_draw(repair, cli, shop, options, code, message):
    repair(messages="Hello")
    result = cli("graph", shop, *options)
    assert (result.code, result.out) == (code, "")
    assert message in result.words


def test_graph_says_that_a_journey_has_not_begun(repair, cli, shop):
    repair(messages="Hello")
    result = cli("graph", shop, "--journey", "survey", "--thread", "t1")
    assert "the journey 'survey' has not begun in thread 't1'" in result.words
    assert result.out == cli("graph", shop, "--journey", "survey").out
