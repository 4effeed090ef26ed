"""The playground in a headless Chromium, with the command behind it and the offline model in the place of one."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.slow.report_pages import PHONE, WIDTHS, list_violations

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
DESK = {"width": 1280, "height": 800}
ARQ_GRAPH = [sys.executable, "-m", "arq_graph"]
Open = Callable[..., Any]


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    """The bank desk, in a folder that may be written to."""
    return Path(shutil.copytree(EXAMPLES / "bank_desk", tmp_path / "bank")) / "agent.yaml"


@pytest.fixture
def open_playground(browser: Any) -> Iterator[Open]:
    """Starts the command and opens its address; no page may show an error or ask another server for anything."""
    processes, windows, problems = [], [], []

    def open_page(agent: Path, **context: Any) -> Any:
        command = [*ARQ_GRAPH, "play", str(agent), "--model", "offline", "--no-open"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        address = next(filter(None, (re.search(r"http://\S+", line) for line in process.stdout)))[0]
        server = address.partition("?")[0]
        windows.append(browser.new_context(**{"viewport": DESK, "color_scheme": "light"} | context))
        page = windows[-1].new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: request.url.startswith(server) or problems.append(request.url))
        page.goto(address)
        assert page.url == server
        page.locator(".summary").wait_for(state="attached")
        return page

    yield open_page
    for window in windows:
        window.close()
    for process in processes:
        process.terminate()
        process.wait(20)
    assert problems == []


def say(page: Any, text: str) -> None:
    turns = page.locator(".exchange").count()
    page.get_by_label("Your message").fill(text)
    page.keyboard.press("Enter")
    page.locator(".exchange").nth(turns).wait_for()
    page.locator("#send:enabled").wait_for()


def lose_a_card(page: Any) -> None:
    say(page, "Hello, I lost my card!")
    say(page, "My customer number is C-2020.")
    page.get_by_role("button", name="Yes, go ahead").wait_for()


def test_a_developer_talks_looks_saves_and_edits(open_playground: Open, bank: Path) -> None:
    page = open_playground(bank)
    why = page.locator("#why")
    lose_a_card(page)
    assert "customer lost a card" in why.inner_text()
    assert "waits for a yes" in why.inner_text()
    assert "Done: Start, find. Open: block." in page.locator(".map svg").first.get_attribute("aria-label")
    page.get_by_role("button", name="Yes, go ahead").click()
    page.locator(".exchange").nth(2).wait_for()
    page.locator("#send:enabled").wait_for()
    assert "blocked" in why.inner_text()
    assert page.get_by_role("button", name="Yes, go ahead").is_disabled()

    # An earlier turn, and what its first step was asked.
    page.locator(".exchange").first.get_by_text("Please tell me").click()
    assert "Turn 1" in why.inner_text()
    page.locator(".call").first.click()
    call = page.get_by_role("dialog", name="Model call")
    assert "Prompt: system" in call.inner_text()
    assert "condition_applies" in call.inner_text()
    page.keyboard.press("Escape")

    # The page as it is loaded again.
    page.reload()
    page.locator(".exchange").nth(2).wait_for()
    assert page.locator(".exchange").count() == 3

    page.get_by_role("button", name="Save as scenario").click()
    page.get_by_label("Name of the scenario").fill("a lost card")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Evaluate the suite with").wait_for()
    page.get_by_role("button", name="Close").click()
    evaluated = subprocess.run(
        [*ARQ_GRAPH, "evaluate", str(bank.with_name("suite.yaml")), "--model", "offline"],
        cwd=bank.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert evaluated.returncode == 0, evaluated.stderr

    right = bank.read_text()
    bank.write_text(right.replace("after: find,", "after: fnd,"))
    page.get_by_role("alert").get_by_text("agent.yaml:").wait_for()
    bank.write_text(right.replace("Please tell me your customer number.", "Who are you?"))
    page.get_by_text("The agent was loaded again").wait_for()
    page.get_by_role("button", name="Restart").click()
    page.locator(".exchange").first.wait_for(state="detached")
    say(page, "Hello, I lost my card!")
    assert "Who are you?" in page.locator("#turns").inner_text()


def test_a_person_takes_over_and_gives_back(open_playground: Open, bank: Path) -> None:
    page = open_playground(bank)
    say(page, "I want to speak to a person.")
    page.get_by_text("A person has this conversation.").wait_for()
    page.get_by_label("Write as the colleague").fill("Ann here. <b>How</b> can I help?")
    page.keyboard.press("Enter")
    page.locator(".bubble.colleague").get_by_text("Ann here. <b>How</b> can I help?").wait_for()
    page.get_by_role("button", name="Give back to the agent").click()
    page.get_by_text("The conversation was given back").wait_for()
    assert page.get_by_text("A person has this conversation.").is_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_everybody_can_read_and_use_it(
    open_playground: Open, bank: Path, size: Any, scheme: str, tmp_path: Path
) -> None:
    page = open_playground(bank, viewport=size, color_scheme=scheme)
    lose_a_card(page)
    for side in ("Conversation", "Why"):
        if size is PHONE:
            page.get_by_role("button", name=side, exact=True).click()
        page.screenshot(path=tmp_path / f"{side}.png")
        assert list_violations(page) == []
        width, screen = page.evaluate(WIDTHS)
        assert width <= screen


def test_the_picture_of_the_documentation(open_playground: Open, tmp_path: Path) -> None:
    """`ARQ_GRAPH_PICTURES=docs/images` makes the picture anew."""
    page = open_playground(EXAMPLES / "bank_desk" / "agent.yaml", viewport={"width": 1280, "height": 720})
    lose_a_card(page)
    page.evaluate("document.activeElement.blur()")
    picture = Path(os.environ.get("ARQ_GRAPH_PICTURES", tmp_path)) / "playground.png"
    page.screenshot(path=picture)
    assert picture.stat().st_size < 200_000
