"""`assert_reached`: how it fails, and the figures of the pytest plugin."""

import pytest

from arq_graph.errors import InputError
from arq_graph.milestones import parse_milestones
from arq_graph.testing import Chat, Script, assert_reached, assert_thresholds, scripted_app
from tests.milestones.reported import make_talk, report_on
from tests.testing.desk import DESK, MILESTONES

GOALS = parse_milestones(MILESTONES)
UNDECIDED = """
milestones:
- {name: Start, type: NFC}
- {name: Thanked, type: NFC}
- {name: End, type: NFC, dependencies: [Thanked]}
"""
TEST_FILE = f"""
from arq_graph.milestones import parse_milestones
from arq_graph.testing import assert_reached

GOALS = parse_milestones({MILESTONES!r})


def make_talk(*tools):
    talk = [{{"role": "user", "content": "Cancel A-1."}}]
    for tool in tools:
        call = {{"id": tool, "function": {{"name": tool, "arguments": "{{}}"}}}}
        talk.append({{"role": "assistant", "tool_calls": [call]}})
        talk.append({{"role": "tool", "tool_call_id": tool, "content": "done"}})
    return talk


def test_all():
    assert_reached(GOALS, make_talk("get_order", "cancel_order"))


def test_half():
    assert_reached(GOALS, make_talk("get_order"), "get_order")


def test_failing():
    assert_reached(GOALS, make_talk())


def test_undecided():
    assert_reached(parse_milestones({UNDECIDED!r}), make_talk(), "Start")


def test_other():
    assert True
"""


@pytest.fixture
def chat() -> Chat:
    call = ("get_order", {"order_id": "A-1"})
    script = Script(active=["the customer asks where an order is"], calls=[call], reply="It is late.")
    chat = Chat(scripted_app(DESK, [script]))
    chat.say("Where is A-1?")
    return chat


def test_what_was_reached_is_returned_as_a_score(chat: Chat) -> None:
    assert assert_reached(GOALS, chat, "get_order").progress_rate == pytest.approx(1 / 3)
    assert assert_reached(GOALS, chat.state, "get_order") == assert_reached(GOALS, chat.messages, "get_order")


def test_a_failure_says_where_the_conversation_stopped(chat: Chat) -> None:
    with pytest.raises(AssertionError) as failure:
        assert_reached(GOALS, chat)
    assert str(failure.value).splitlines() == [
        "not reached: End (progress 0.33)",
        "  path taken: Start (0) → get_order (2)",
        "  missing there: cancel_order",
    ]


def test_a_failure_names_calls_that_came_too_early_or_are_forbidden() -> None:
    script = Script(active=["cancel"], calls=[("cancel_order", {"order_id": "A-1"})], reply="Done.")
    chat = Chat(scripted_app(DESK.replace(confirm={}), [script]))
    chat.say("Cancel A-1.")
    with pytest.raises(AssertionError) as failure:
        assert_reached(GOALS, chat, "Thanked")
    assert str(failure.value).splitlines()[2:] == [
        "  missing there: get_order",
        "  forbidden: event 2, cancel_order() before 'get_order' is reached",
        '  wasted: event 2, cancel_order({"order_id": "A-1"}) (too early, before get_order)',
    ]


def test_what_nothing_decides_is_not_reached() -> None:
    graph = parse_milestones(UNDECIDED)
    with pytest.raises(AssertionError, match=r"missing there: Thanked \(undecided: give judge="):
        assert_reached(graph, [{"role": "user", "content": "Thanks!"}], "Thanked")


def test_a_misspelt_milestone_is_no_failure_of_the_agent(chat: Chat) -> None:
    with pytest.raises(InputError, match="there is no milestone 'get_ordr'; did you mean `get_order`"):
        assert_reached(GOALS, chat, "get_ordr")


def test_the_figures_of_a_run_are_in_its_summary_and_in_junit(pytester: pytest.Pytester, monkeypatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(TEST_FILE)
    result = pytester.runpytest("-p", "arq_graph.testing.plugin", "--junitxml=junit.xml")
    result.assert_outcomes(passed=4, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*= milestones =*",
            "1 of 4 conversations completed their goal; progress rate 0.44",
            "0.00 *::test_failing",
            "0.33 *::test_half",
            "undecided *::test_undecided",
        ]
    )
    junit = (pytester.path / "junit.xml").read_text()
    assert '<property name="arq_graph.progress_rate" value="0.3333" />' in junit
    quiet = pytester.runpytest("-p", "arq_graph.testing.plugin", "-k", "other")
    assert "milestones" not in quiet.stdout.str()


def test_the_thresholds_of_an_evaluation_can_be_asserted() -> None:
    report = report_on(make_talk("1", True), make_talk("2", False))
    assert_thresholds(report, min_success=0.5)
    with pytest.raises(
        AssertionError, match=r"the goal completion is 50\.0% \(1 of 2\), 10\.0 points below 60"
    ):
        assert_thresholds(report, min_success=0.6)
