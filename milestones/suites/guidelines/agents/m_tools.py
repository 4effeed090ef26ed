"""Tools of the agents of the matcher cases: they show what could be called, and are never called there."""


def book_slot(doctor: str, time: str) -> dict[str, bool]:
    """Book an appointment with a doctor.

    Args:
        doctor: The doctor's name.
        time: Day and time, such as "Tuesday 10:00".
    """
    return {"booked": bool(doctor and time)}


def get_repair(number: str) -> dict[str, str]:
    """Look up how far a repair is, by its number."""
    return {"number": number, "status": "in progress"}


def get_account(number: str) -> dict[str, str]:
    """Look up a customer's account, by the number of the card or account."""
    return {"number": number, "status": "open"}


def pay_fines(number: str) -> dict[str, bool]:
    """Take the payment of all fines of an account."""
    return {"paid": bool(number)}


def get_order(number: str) -> dict[str, str]:
    """Look up what an order consists of and what it weighs."""
    return {"number": number, "status": "packed"}


def charge_card(order: str) -> dict[str, bool]:
    """Charge the customer's card for an order."""
    return {"paid": bool(order)}


def check_line(line: str) -> dict[str, bool]:
    """Test a customer's line from here; the result says whether it has a fault."""
    return {"fault": not line}
