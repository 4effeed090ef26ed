"""A headless Chromium that is installed on the machine, and a page opened in it from a file."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@dataclass
class Opened:
    """Playwright's page, with the messages, errors and dialogs that it showed and the addresses that it asked for."""

    page: Any
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser; where there is none, the test is skipped, or fails under CI."""
    executable = next((path for name in NAMES if (path := shutil.which(name))), None)
    if not executable or not find_spec("playwright"):
        reason = (
            f"needs playwright (pip install playwright) and a browser: one of {', '.join(NAMES)} on the PATH"
        )
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    from playwright.sync_api import sync_playwright

    # Chromium refuses its sandbox to root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Any, file: Path, link: str = "", **context: Any) -> Iterator[Opened]:
    """A page opened from a file, as a double click does, in a window of its own.

    Args:
        browser: See `chromium`.
        file: The page.
        link: What follows the file's name in the address.
        context: What Playwright's `new_context` takes: `viewport`, `color_scheme`, …
    """
    window = browser.new_context(**context)
    try:
        page = window.new_page()
        found = Opened(page)
        page.on("console", lambda message: found.said.append(message.text))
        page.on("pageerror", lambda error: found.said.append(str(error)))
        page.on("dialog", lambda dialog: (found.said.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: found.asked.append(request.url))
        page.goto(file.as_uri() + link)
        yield found
    finally:
        window.close()
