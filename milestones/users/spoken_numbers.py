"""Numbers and days said in English words, written in digits: `two hundred and four`, `the fourth of March`."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

_CARDINALS = {
    "zero": 0, "oh": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50,
    "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90, "hundred": 100, "thousand": 1000,
}  # fmt: skip
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fourteenth": 14, "fifteenth": 15, "sixteenth": 16,
    "seventeenth": 17, "eighteenth": 18, "nineteenth": 19, "twentieth": 20, "thirtieth": 30,
}  # fmt: skip
_VALUES = _CARDINALS | _ORDINALS
_CARDINAL, _ORDINAL = (rf"(?:{'|'.join(words)})\b" for words in (_CARDINALS, _ORDINALS))
_GAP = r"(?:(?:(?<=hundred)|(?<=thousand))\s+and\s+|[\s,-]+)"
_RUN = re.compile(
    rf"\b(?:a\s+(?=hundred\b|thousand\b))?(?:{_CARDINAL}(?:{_GAP}{_CARDINAL})*(?:{_GAP}{_ORDINAL})?|{_ORDINAL})",
    re.IGNORECASE,
)
_MONTH_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = (
    r"(jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_MONTH_AFTER = re.compile(rf"\s+(?:of\s+)?{_MONTH}", re.IGNORECASE)
_MONTH_BEFORE = re.compile(rf"\b{_MONTH}\s+(?:the\s+)?$", re.IGNORECASE)
_MONTH_THE = re.compile(rf"\b{_MONTH}\s+the\s+(?=\d)", re.IGNORECASE)
_LONGEST_MONTH = 20


def in_digits(text: str, numbers: Container[str] = (), days: Container[str] = ()) -> str:
    """A text with numbers and days in digits that were said in words.

    Two words in a row and more are always taken for a number, read as a whole (`two hundred and four`) or piece by
    piece (`two oh four`, `twenty four seventeen`). A word alone has other meanings: `four` is written in digits where
    it is one of the numbers looked for, `the fourth of March` where it is one of the days; `one` never is.

    Args:
        text: What was said.
        numbers: Numbers that are looked for, in digits.
        days: Days that are looked for, as `03-04`, the month first.
    """

    def written(match: re.Match[str]) -> str:
        words = [word for word in re.findall("[a-z]+", match[0].lower()) if word in _VALUES]
        digits = _digits(words)
        is_ordinal = words[-1] in _ORDINALS
        is_number = len(words) > (2 if words[0] == "oh" else 1) or (
            not is_ordinal and words not in (["one"], ["oh"]) and digits in numbers
        )
        if is_number or _day(text, match, digits) in days:
            return f"{digits}th" if is_ordinal else digits
        return match[0]

    return _MONTH_THE.sub(lambda match: f"{match[1]} ", _RUN.sub(written, text))


def _day(text: str, match: re.Match[str], digits: str) -> str | None:
    """The day that a number is with the month's name beside it."""
    before = text[max(0, match.start() - _LONGEST_MONTH) : match.start()]
    month = _MONTH_AFTER.match(text, match.end()) or _MONTH_BEFORE.search(before)
    if month is None:
        return None
    return f"{_MONTH_NAMES.index(month[1].lower()[:3]) + 1:02}-{digits:0>2}"


def _digits(words: Iterable[str]) -> str:
    """The digits of number words: a word that cannot belong to the number before it begins another."""
    said, thousands, rest, room = "", 0, None, 0
    for word in words:
        value = _VALUES[word]
        if value == 1000:
            thousands, rest, room = 1000 * (rest or 1), 0, 1000
        elif value == 100:
            rest, room = 100 * (rest or 1), 100
        elif rest is not None and 0 < value < room:
            rest, room = rest + value, 10 if value >= 20 else 0
        else:
            said += "" if rest is None else str(thousands + rest)
            thousands, rest, room = 0, value, 10 if value >= 20 else 0
    return said + str(thousands + (rest or 0))
