"""Of a free text, the offline model passes on what is to be said, not the order that it comes in."""

from __future__ import annotations

import pytest

from tests.models.desks import ask


def send_message(recipient: str, text: str) -> str:
    """Send a message to somebody.

    Args:
        recipient: Who gets it.
        text: What it says.
    """
    return "sent"


def add_note(plot_id: str, note: str) -> str:
    """Add a note to a plot.

    Args:
        plot_id: The plot, like PLOT-1.
        note: The note.
    """
    return "noted"


def report_problem(plot_id: str, problem: str) -> str:
    """Report a problem with a plot.

    Args:
        plot_id: The plot, like PLOT-1.
        problem: What the problem is.
    """
    return "noted"


@pytest.mark.parametrize(
    ("called", "said", "text"),
    [
        (send_message, "Send a message to Mara saying the gate is open", "the gate is open"),
        (send_message, "Please send Mara the message that the gate is open.", "the gate is open"),
        (send_message, "Send a message to Mara: the gate is open", "the gate is open"),
        (add_note, "Add a note to PLOT-5 that the hose leaks", "the hose leaks"),
        (report_problem, "Please report that the pump of PLOT-5 is broken", "the pump of PLOT-5 is broken"),
        (
            report_problem,
            "The pump of PLOT-5 is dry. Please report the problem.",
            "The pump of PLOT-5 is dry.",
        ),
    ],
)
def test_the_order_is_left_out_of_the_text(called, said, text):
    calls, _ = ask([called], said)
    assert [list(arguments.values())[-1] for arguments in calls] == [text]


@pytest.mark.parametrize(
    ("called", "said", "asked"),
    [
        (send_message, "Send a message to Mara", "the text"),
        (add_note, "Please add a note to PLOT-5", "the note"),
        (report_problem, "I want to report a problem with plot PLOT-5", "the problem"),
    ],
)
def test_an_order_without_a_text_is_asked_for_one(called, said, asked):
    calls, reply = ask([called], said)
    assert (calls, asked in reply) == ([], True), reply
