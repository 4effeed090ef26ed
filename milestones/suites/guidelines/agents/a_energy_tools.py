"""The tools of the energy supplier."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

Account = Annotated[str, Field(pattern=r"^\d{8}$")]
Month = Literal[
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
]  # fmt: skip
BALANCES: dict[str, dict[str, object]] = {
    "20418837": {"open": "42.40 pounds", "due": "1 April", "overdue": False},
    "20590012": {"open": "318.60 pounds", "due": "12 January", "overdue": True},
    "20733105": {"open": "0.00 pounds", "credit": "25.00 pounds", "overdue": False},
}


def get_balance(account: Account) -> dict[str, object]:
    """Look up what is open on an account now, when it is due, and whether it is overdue.

    Args:
        account: The number of the account: eight digits, without spaces.
    """
    if account not in BALANCES:
        raise LookupError(f"there is no account {account}")
    return BALANCES[account]


def get_last_reading(account: Account) -> dict[str, object]:
    """Look up the last meter reading of an account.

    Args:
        account: The number of the account: eight digits, without spaces.
    """
    return {"account": account, "reading": 5120, "date": "2 January"}


def submit_reading(account: Account, reading: int) -> dict[str, object]:
    """Record a new meter reading, on which the next bill will be based. It cannot be taken back.

    Args:
        account: The number of the account: eight digits, without spaces.
        reading: What the meter shows, in kilowatt hours.
    """
    return {"account": account, "recorded": reading}


def get_bill(account: Account, month: Month) -> dict[str, object]:
    """Look up a bill that was sent in the last twelve months.

    Args:
        account: The number of the account: eight digits, without spaces.
        month: The month that the bill is for.
    """
    return {"account": account, "month": month, "amount": "96.15 pounds", "paid": True}


def estimate_next_bill(account: Account) -> dict[str, object]:
    """Estimate the next bill, which has not been sent yet, from the latest readings.

    Args:
        account: The number of the account: eight digits, without spaces.
    """
    return {"account": account, "estimate": "88.70 pounds", "sent": "on 2 April"}
