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


def file_note(note: str) -> str:
    """Add a note to the customer's file.

    Args:
        note: What to note.
    """
    return "noted"


def leave_message(recipient: str, message: str) -> str:
    """Leave a message for somebody.

    Args:
        recipient: Who gets it.
        message: What it says.
    """
    return "left"


@pytest.mark.parametrize(
    "said",
    [
        "Note on my file that my dog bites, please",
        "Could you note on my file that my dog bites?",
        "Hi, I'm Ben. Please note on my file that my dog bites.",
        'Please add the note "my dog bites" to my file',
        "Please note that my dog bites. When do you open?",
        "Add a note to my file: my dog bites. Thanks!",
        "My dog bites. Please file a note.",
    ],
)
def test_a_note_is_what_is_to_be_noted_however_the_order_is_put(said):
    (arguments,) = ask([file_note], said)[0]
    assert arguments["note"].rstrip(".").lower() == "my dog bites"


def test_a_question_about_notes_is_no_note():
    assert ask([file_note], "Is it true that you note everything?")[0] == []


def test_a_message_for_somebody_goes_to_them_and_is_left():
    calls, reply = ask([leave_message], "Please leave a message for Mara that the gate is open")
    assert calls == [{"recipient": "Mara", "message": "the gate is open"}]
    assert "leaved" not in reply
