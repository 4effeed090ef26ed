"""Ctrl-C for a process of a test."""

from __future__ import annotations

import signal


def hears_ctrl_c() -> None:
    """For `preexec_fn`: a process hears Ctrl-C even where this one does not, as when it runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
