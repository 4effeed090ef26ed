"""The tools of a railway's travel desk."""

from typing import Annotated, Any, Literal

Ticket = Annotated[str, "the ticket's number, like MR-5120"]

DELAYS = {
    "MR-5120": (135, "a broken engine"),
    "MR-5121": (84, "a signal fault"),
    "MR-5122": (135, "a strike"),
    "MR-5124": (45, "snow"),
}
NOTES = {
    "C-771": [],
    "C-772": ["9 May, Ida (travel desk): promised a voucher of €40, to be sent by post by 1 June"],
}


def get_ticket(ticket: Ticket) -> dict[str, Any]:
    """Look up a ticket: its fare, how many minutes late its train was, and why."""
    minutes, cause = DELAYS[ticket]
    return {"ticket": ticket, "fare": "€80", "minutes_late": minutes, "cause": cause}


def get_notes(case: Annotated[str, "the case's number, like C-771"]) -> dict[str, Any]:
    """Read what colleagues have noted about a customer's case."""
    return {"case": case, "notes": NOTES[case]}


def send_form(ticket: Ticket, by: Annotated[Literal["post", "e-mail"], "how it is sent"]) -> str:
    """Send the claim form for a ticket to the address that the customer gave when they bought it."""
    return f"the form for {ticket} was sent by {by}"
