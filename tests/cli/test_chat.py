"""`arq-graph chat`: talking to an agent in the terminal, or through a pipe."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest

from tests.cli.shop import journal, options
from tests.reasoning.endpoint import Endpoint, Reply, Request, hang, status


def test_a_piped_conversation_is_answered_line_by_line_and_why_explains_the_last_reply(served, shop):
    result = served("chat", shop, stdin="/why\nWhere is B-1?\n/why\nThanks\n/quit\nnot read\n")
    assert result.code == 0
    assert "There is no reply yet" in result.err
    assert "> Where is B-1?" in result.out
    assert 'get_order(order_id="B-1") →' in result.out
    assert "You said: Where is B-1?" in result.out
    assert "Guidelines: 2 active, 1 not" in result.out
    assert "Followed: look-up, polite" in result.out
    assert "You said: Thanks" in result.out
    assert "not read" not in result.out
    assert "arq-graph chat" in result.err  # how to go on


@pytest.mark.parametrize(
    ("answer", "ran", "output"),
    [
        ("r\ntoo late", [], "did not allow this call: too late"),
        ("what?\napprove", ["cancel B-1"], '"cancelled": true'),
    ],
    ids=["reject", "unclear, then approve"],
)
def test_the_operator_is_asked_in_the_terminal(served, shop, answer, ran, output):
    result = served("chat", shop, stdin=f"Cancel B-1\n{answer}\n")
    assert result.code == 0, result.err
    assert "may cancel_order run?" in result.out
    assert journal(shop) == ran
    assert output in result.words


def test_an_unfinished_turn_is_finished_first_and_a_finished_one_is_shown(cli, served, shop):
    with Endpoint(lambda _: status(401, "revoked")) as endpoint:
        broken = cli("chat", shop, "--thread", "t1", *options(endpoint), stdin="Where is B-1?\n")
    assert broken.code == 3
    result = served("chat", shop, "--thread", "t1", stdin="Thanks\n")
    assert result.out.index("You said: Where is B-1?") < result.out.index("You said: Thanks")
    assert "You said: Thanks" in served("chat", shop, "--thread", "t1").out


def interrupt_chat(
    shop: Path, wait_until_ready: Callable[[IO[str]], object], *options: str, text: str = "", presses: int = 1
) -> str:
    """Chat in another process, press Ctrl-C once it is ready, and return what it prints to standard error."""
    with subprocess.Popen(
        [sys.executable, "-m", "arq_graph", "chat", str(shop), "--thread", "t1", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Heard even where this process does not hear it, as when it runs in the background.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(text)
        process.stdin.flush()
        wait_until_ready(process.stdout)
        err = ""
        for earlier_presses in range(presses):
            while earlier_presses and "arq-graph chat" not in err:
                err += process.stderr.readline()
            process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:  # one that comes just before a process begins to read is not heard
            process.send_signal(signal.SIGINT)
        err += process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "Traceback" not in err
    assert err.count("arq-graph chat") == 1
    return err


@pytest.mark.slow
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_once_or_twice_during_a_model_call_leaves_a_thread_that_can_be_resumed(served, shop, presses):
    model_called = threading.Event()

    def never_answer(_: Request) -> Reply:
        model_called.set()
        return hang()

    with Endpoint(never_answer) as endpoint:
        err = interrupt_chat(
            shop, lambda _: model_called.wait(60), *options(endpoint), text="Where is B-1?\n", presses=presses
        )
    assert err.count("Interrupted.") == 1
    assert "You said: Where is B-1?" in served("chat", shop, "--thread", "t1").out


@pytest.mark.slow
def test_ctrl_c_at_the_prompt_shows_how_to_resume(folder, shop):
    def wait_for_prompt(out: IO[str]) -> None:
        while out.read(1) != ">":
            pass

    assert "--thread t1" in interrupt_chat(shop, wait_for_prompt)
