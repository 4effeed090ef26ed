"""Ctrl-C while a turn runs: leave soon, and lose nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

GRACE = 1.0


class Left(KeyboardInterrupt):
    """Ctrl-C that the user was already told about."""


@contextmanager
def leaving_on_ctrl_c(announce: Callable[[], None]) -> Iterator[None]:
    """Leave on Ctrl-C even while threads wait for a model, which could hold the program for a minute.

    Every finished step is on disk by then, so that nothing is lost. What runs gets a second to clean up; a second
    Ctrl-C takes that from it.

    Args:
        announce: Tells the user; called at once.

    Raises:
        Left: On Ctrl-C.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals reach the main thread alone
        return

    def leave(*_: object) -> None:
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        timer = threading.Timer(GRACE, os._exit, [130])
        timer.daemon = True
        timer.start()
        announce()
        raise Left

    before = signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
