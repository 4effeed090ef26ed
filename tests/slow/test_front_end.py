"""The example's page in a headless Chromium: a reply grows, is replaced by its revision, and asks with a button."""

import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import MemorySaver

from arq_graph import Agent, Guideline, ScriptedChatModel, create_guided_agent
from tests.brain import Brain
from tests.slow.report_pages import DESK, PHONE, WIDTHS, list_violations
from tests.test_examples import load

pytestmark = pytest.mark.slow

FIRST = "It left on Monday. It will be there tomorrow, by noon at the latest. Thank you for your patience."
BEFORE, BEHIND = FIRST[:19], FIRST[19:]
SECOND = (
    "It left on Monday.\n\n- <b onclick=alert(1)>When</b> it arrives is not known.\n- You will get a mail."
)
UNSOURCED = {"factual_information_provided": [{"fact": "it comes tomorrow", "source": None}]}


GO = threading.Semaphore(0)


class Stepwise(ScriptedChatModel):
    """Waits in the middle of the first candidate, and behind it."""

    def stream(self, *args: Any, **kwargs: Any) -> Any:
        text, waits = "", False
        for token in super().stream(*args, **kwargs):
            text += token.text
            if not waits and "tomorrow" in text:
                waits = GO.acquire(timeout=30)
            yield token
        if waits:
            GO.acquire(timeout=30)


@pytest.fixture
def open_front_end(browser: Any) -> Any:
    """Opens the example's page with an app behind it; none may show an error or a dialog."""
    servers, windows, problems = [], [], []

    def open_page(app: Any, viewport: Any = DESK, **context: Any) -> Any:
        servers.append(load("front_end/serve").make_server(app))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        windows.append(browser.new_context(viewport=viewport, **context))
        page = windows[-1].new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.goto(f"http://127.0.0.1:{servers[-1].server_port}")
        return page

    yield open_page
    for window in windows:
        window.close()
    for server in servers:
        server.shutdown()
        server.server_close()
    assert problems == []


def say(page: Any, text: str) -> None:
    page.locator("input").fill(text)
    page.locator("form button").click()


def wait_for(page: Any, text: str, kind: str = "agent") -> None:
    """Wait until the last thing of a kind is this text."""
    last = "([text, kind]) => [...document.getElementsByClassName(kind)].at(-1)?.textContent === text"
    page.wait_for_function(last, arg=[text, kind])


def test_a_reply_grows_and_is_replaced_by_its_revision(open_front_end: Any, tmp_path: Any) -> None:
    agent = Agent("Desk", "You help.", [Guideline(None, "be brief")])
    model = Stepwise(Brain(reply=[{"content": FIRST, **UNSOURCED}, SECOND]))
    page = open_front_end(
        create_guided_agent(model, agent, stream=True, checkpointer=MemorySaver()), color_scheme="light"
    )
    say(page, "Where is my order?")
    wait_for(page, BEFORE, "writing")
    page.screenshot(path=tmp_path / "1-growing.png")
    GO.release()
    wait_for(page, FIRST, "writing")
    page.screenshot(path=tmp_path / "2-first-revision.png")
    GO.release()
    wait_for(page, SECOND)
    page.locator("form button:enabled").wait_for()
    page.screenshot(path=tmp_path / "3-accepted.png")
    assert page.locator(".writing, b").count() == 0
    assert page.locator("p").all_inner_texts() == ["Where is my order?", SECOND]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_order_desk_asks_with_a_button_that_is_a_yes(
    open_front_end: Any, scheme: str, tmp_path: Any
) -> None:
    desk = load("front_end/serve").make_desk()
    app = create_guided_agent("offline", desk, stream=True, checkpointer=MemorySaver())
    page = open_front_end(app, viewport=PHONE, color_scheme=scheme)
    for text in ("Hello, where is my order ORD-1002?", "Yes, please, expedited shipping!"):
        say(page, text)
        page.locator("form button:enabled").wait_for()
    question = page.locator(".question")
    assert "ORD-1002" in question.inner_text()
    assert list_violations(page) == []
    page.screenshot(path=tmp_path / "4-question.png")
    question.locator("button").click()
    wait_for(page, "Your order ORD-1002 now goes out with expedited shipping, at no cost.")
    assert question.locator("button").is_disabled()
    width, screen = page.evaluate(WIDTHS)
    assert width <= screen


def test_a_failed_turn_is_reported_and_the_next_one_works(open_front_end: Any) -> None:
    agent = Agent("Desk", "You help.", [Guideline(None, "be brief")])
    answers = iter([RuntimeError("down")])
    model = ScriptedChatModel(lambda call: next(answers, None) or Brain(reply="Hello!")(call))
    page = open_front_end(create_guided_agent(model, agent, stream=True, checkpointer=MemorySaver()))
    say(page, "Hi")
    wait_for(page, "That did not work. Please try again.")
    say(page, "Hi")
    wait_for(page, "Hello!")
