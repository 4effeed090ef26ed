"""What is printed stays readable, whatever it is and wherever it is printed."""

from __future__ import annotations

import io
import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from arq_graph.cli.screen import labelled, printable, spoken, words


@given(st.text())
def test_nothing_that_is_printed_drives_the_terminal(text: str) -> None:
    shown = printable(text)
    assert all(c == "\n" or c == "\t" or c.isprintable() or not c.isascii() for c in shown)
    shown.encode()


@given(st.text(), st.integers(10, 100))
def test_a_short_form_is_one_short_line(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert "\n" not in shown
    assert len(words(shown)) <= 6 * limit  # an escape takes up to six characters


def test_what_drives_terminals_is_shown_as_an_escape() -> None:
    assert printable("\x1b[2J \u202e \ud800 \r\n") == "\\x1b[2J \\u202e \ufffd \n"


def test_a_long_message_says_how_much_more_there_is() -> None:
    assert spoken("x" * 100_000).endswith("… (96,000 more characters)")
    assert spoken("short") == "short"


def test_a_narrow_terminal_breaks_words_and_loses_none() -> None:
    console = Console(width=20, record=True, file=io.StringIO())
    console.print(labelled([("Customer", "", [words("a" * 50)])]))
    text = console.export_text()
    assert text.count("a") == 50
    assert max(map(len, text.splitlines())) <= 20


def test_an_old_terminal_gets_plain_characters() -> None:
    code = (
        "from arq_graph.cli.screen import tolerate_any_text\ntolerate_any_text()\n"
        "print('a → b … ✓ é \\ud800 \\U0001f6b2')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        check=True,
    )
    assert done.stdout.decode("ascii").strip() == "a -> b ... + \\xe9 \\ud800 \\U0001f6b2"
