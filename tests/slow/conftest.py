"""What the slower suites share: a browser, and a Postgres server of the distribution's, started and stopped here."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from arq_graph.milestones import write_html
from tests.milestones.sample_report import make_sample_report, refund_talks
from tests.slow.report_pages import DESK

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """A browser that is installed on the machine; where there is none, tests are skipped, or fail under CI."""
    try:
        from playwright.sync_api import sync_playwright

        executable = next(filter(None, map(shutil.which, BROWSERS)))
    except (ImportError, StopIteration):
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"needs playwright and one of {BROWSERS}")
    # Chromium refuses its sandbox to root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=executable, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def open_report(browser, tmp_path):
    """Opens the page of a report as a double click does; none may show an error or a dialog, or ask for a file."""
    file, windows, problems, requested = tmp_path / "report.html", [], [], []

    def open_page(report=None, talks=(), link="", title="Refunds", viewport=DESK, tables=None, **context):
        if report is not None:
            write_html(file, report, talks, title=title, tables=tables)
        windows.append(browser.new_context(viewport=viewport, **context))
        page = windows[-1].new_page()
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: (problems.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requested.append(request.url.partition("#")[0]))
        page.goto(file.as_uri() + link)
        return page

    yield open_page
    for window in windows:
        window.close()
    assert (problems, set(requested)) == ([], {file.as_uri()})


@pytest.fixture
def open_refunds(open_report):
    """Opens the page of the sample report."""
    talks = [replace(talk, extra={"reward": at % 2}) for at, talk in enumerate(refund_talks())]

    def open_page(link="", **context):
        return open_report(make_sample_report(talks), talks, link, **context)

    return open_page


@pytest.fixture(scope="session")
def _postgres_server() -> Iterator[str]:
    """The address of a server, without a database's name; it listens on a socket in a folder of its own."""
    pytest.importorskip(
        "langgraph.checkpoint.postgres", reason="langgraph-checkpoint-postgres is not installed"
    )
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not folders:
        pytest.skip("Postgres is not installed: `make postgres`")
    folder = Path(tempfile.mkdtemp(prefix="arq-graph-postgres-"))
    run: dict[str, Any] = {"check": True, "stdout": subprocess.DEVNULL, "cwd": folder}
    if os.geteuid() == 0:  # as which Postgres refuses to run
        shutil.chown(folder, "postgres")
        run["user"] = "postgres"
    data, control = folder / "data", folders[-1] / "pg_ctl"
    try:
        options = ["-U", "postgres", "-A", "trust", "--no-sync"]
        subprocess.run([folders[-1] / "initdb", "-D", data, *options], **run)
        settings = f"-k {folder} -c listen_addresses='' -c fsync=off"
        subprocess.run([control, "start", "-w", "-D", data, "-l", folder / "log", "-o", settings], **run)
        try:
            yield f"postgresql://postgres@/{{}}?host={folder}"
        finally:
            subprocess.run([control, "stop", "-D", data, "-m", "immediate"], **run)
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgres(_postgres_server: str) -> str:
    """The address of a new database."""
    import psycopg

    name = f"test_{uuid4().hex}"
    with psycopg.connect(_postgres_server.format("postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return _postgres_server.format(name)
