"""`arq-graph chat`: talking to an agent in the terminal, or through a pipe."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.shop import clerk, journal, options, serving
from tests.interrupting import hears_ctrl_c
from tests.reasoning.endpoint import Endpoint, Reply, Request, hang, status


def test_a_piped_conversation_is_answered_line_by_line(cli: Cli, shop: Path) -> None:
    with Endpoint(serving(clerk())) as endpoint:
        done = cli("chat", shop, *options(endpoint), stdin="Where is B-1?\nThanks\n")
    assert done.code == 0
    assert "> Where is B-1?" in done.out
    assert 'get_order(order_id="B-1") →' in done.out
    assert "You said: Where is B-1?" in done.out
    assert "You said: Thanks" in done.out
    assert "arq-graph chat" in done.err  # how to go on


def test_quiet_shows_the_replies_alone(cli: Cli, shop: Path) -> None:
    with Endpoint(serving(clerk())) as endpoint:
        done = cli("chat", shop, "--quiet", *options(endpoint), stdin="Where is B-1?\n")
    assert "You said" in done.out
    assert "get_order" not in done.out


def test_why_explains_the_last_reply(cli: Cli, shop: Path) -> None:
    with Endpoint(serving(clerk())) as endpoint:
        done = cli("chat", shop, *options(endpoint), stdin="/why\nWhere is B-1?\n/why\n/quit\nnot read\n")
    assert "There is no reply yet" in done.err
    assert "Guidelines: 2 active, 1 not" in done.out
    assert "Followed: look-up, polite" in done.out
    assert "not read" not in done.out


@pytest.mark.parametrize(
    ("answer", "ran", "shown"),
    [
        ("a", ["cancel B-1"], '"cancelled": true'),
        ("approve", ["cancel B-1"], '"cancelled": true'),
        ('e\n{"order_id": "B-9"}', ["cancel B-9"], 'order_id="B-9"'),
        ("r\ntoo late", [], "did not allow this call: too late"),
        ("r\n", [], "did not allow this call"),
        ("s\nit was cancelled by phone", [], "it was cancelled by phone"),
        ("what?\na", ["cancel B-1"], "Answer with a, e, r or s."),
        ("e\nnonsense\n[]\n{}\na", ["cancel B-1"], "That is not JSON"),
    ],
    ids=["a", "approve", "edit", "reject", "reject silently", "respond", "unclear", "no JSON"],
)
def test_the_operator_is_asked_in_the_terminal(
    cli: Cli, shop: Path, answer: str, ran: list[str], shown: str
) -> None:
    with Endpoint(serving(clerk())) as endpoint:
        done = cli("chat", shop, *options(endpoint), stdin=f"Cancel B-1\n{answer}\n")
    assert done.code == 0, done.err
    assert "may cancel_order run?" in done.out
    assert journal(shop) == ran
    assert shown in done.words


def test_an_unfinished_turn_is_finished_first(cli: Cli, shop: Path) -> None:
    with Endpoint(lambda _: status(401, "revoked")) as endpoint:
        broken = cli("chat", shop, "--thread", "t1", *options(endpoint), stdin="Where is B-1?\n")
    assert broken.code == 3
    with Endpoint(serving(clerk())) as endpoint:
        done = cli("chat", shop, "--thread", "t1", *options(endpoint), stdin="Thanks\n")
    assert done.out.index("You said: Where is B-1?") < done.out.index("You said: Thanks")


def test_a_thread_shows_its_last_reply_when_it_is_taken_up_again(cli: Cli, shop: Path) -> None:
    with Endpoint(serving(clerk())) as endpoint:
        cli("chat", shop, "--thread", "t1", *options(endpoint), stdin="Where is B-1?\n")
        done = cli("chat", shop, "--thread", "t1", *options(endpoint))
    assert "Where is B-1?" in done.out
    assert "You said: Where is B-1?" in done.out


def test_another_agent_on_a_thread_is_warned_of(cli: Cli, shop: Path) -> None:
    cli("chat", shop, "--thread", "t1", stdin="Hello\n")
    shop.write_text(shop.read_text().replace("Bike shop", "Boat shop"))
    done = cli("chat", shop, "--thread", "t1")
    assert "was begun with the agent 'Bike shop'" in done.words


def test_ctrl_c_while_the_model_is_asked_leaves_a_thread_that_goes_on(cli: Cli, shop: Path) -> None:
    asked = threading.Event()

    def never_answer(_: Request) -> Reply:
        asked.set()
        return hang()

    with Endpoint(never_answer) as endpoint:
        chat = [sys.executable, "-m", "arq_graph.cli", "chat", str(shop), "--thread", "t1"]
        with subprocess.Popen(
            [*chat, *options(endpoint)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hears_ctrl_c,
        ) as process:
            assert process.stdin is not None
            process.stdin.write("Where is B-1?\n")
            process.stdin.flush()
            assert asked.wait(60)
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Interrupted." in err
    assert "arq-graph chat" in err
    assert "Traceback" not in err
    with Endpoint(serving(clerk())) as endpoint:
        done = cli("chat", shop, "--thread", "t1", *options(endpoint))
    assert "You said: Where is B-1?" in done.out


class Terminal:
    """A command in a terminal of its own, and what it said."""

    def __init__(self, *arguments: str) -> None:
        self._outer, inner = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "arq_graph.cli", *arguments],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
            preexec_fn=hears_ctrl_c,
            env={**os.environ, "TERM": "xterm-256color"},
        )
        os.close(inner)
        self.said = ""
        self._heard = 0

    def until(self, words: str) -> None:
        """Read until the command has said something that it had not said before."""
        while (found := self.said.find(words, self._heard)) < 0:
            assert self._read(), f"{words!r} was not said: {self.said}"
        self._heard = found + len(words)

    def type(self, text: str) -> None:
        os.write(self._outer, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C until it is heard: Python's line editing misses one that comes while it starts."""
        for _ in range(12):
            os.kill(self.process.pid, signal.SIGINT)
            if select.select([self._outer], [], [], 5)[0]:
                return
        raise AssertionError(f"it does not hear Ctrl-C: {self.said}")

    def ended(self) -> int:
        """Read to the end; the exit code."""
        while self._read():
            pass
        os.close(self._outer)
        return self.process.wait(60)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._outer], [], [], 60)
        if not ready:
            self.process.kill()
            raise AssertionError(f"it says nothing more: {self.said}")
        try:
            piece = os.read(self._outer, 4096)
        except OSError:  # Linux's way to say that the other side is closed
            return False
        self.said += piece.decode("utf-8", "replace")
        return bool(piece)


def test_in_a_terminal_ctrl_c_at_the_prompt_says_how_to_go_on(shop: Path) -> None:
    terminal = Terminal("chat", str(shop), "--thread", "t1")
    terminal.until("> ")
    terminal.interrupt()
    assert terminal.ended() == 130
    assert "--thread t1" in terminal.said
    assert "Traceback" not in terminal.said
