"""A library's loans and reservations."""

from __future__ import annotations


class Library:
    def __init__(self) -> None:
        self.due = {"LN-7001": "12 May", "LN-7002": "14 May"}
        self.wanted_by_others = {"LN-7002"}
        self.reserved: list[str] = []

    def renew_loan(self, loan_number: str) -> dict[str, str]:
        """Renew a loan.

        Args:
            loan_number: The number of the loan, like LN-7001.
        """
        if loan_number not in self.due:
            raise ValueError(f"there is no loan {loan_number}")
        if loan_number in self.wanted_by_others:
            return {
                "loan_number": loan_number,
                "status": "cannot be renewed",
                "reason": "another reader waits",
            }
        self.due[loan_number] = "2 June"
        return {"loan_number": loan_number, "status": "renewed", "due_date": "2 June"}

    def reserve_book(self, title: str) -> dict[str, str]:
        """Reserve a book.

        Args:
            title: The title of the book.
        """
        self.reserved.append(title)
        return {"title": title, "status": "reserved", "collect_from": "Wednesday"}

    def opening_hours(self) -> dict[str, str]:
        """Tell when the library is open."""
        return {"weekdays": "from 9 to 19", "saturday": "from 10 to 14"}


_library = Library()
renew_loan, reserve_book, opening_hours = _library.renew_loan, _library.reserve_book, _library.opening_hours
