"""Whatever text goes into a section, the section ends where it should and gives the text back."""

from __future__ import annotations

import json
import re
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from arq_graph.reasoning.sections import as_json, clean, section

ANYTHING = st.text(st.characters(codec=None, categories=None))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | ANYTHING,
    lambda inner: st.lists(inner) | st.dictionaries(ANYTHING, inner),
    max_leaves=8,
)


@given(VALUES)
def test_a_section_holds_one_line_and_no_angle_bracket_of_its_content(value):
    text = section(value, "guidelines")
    inside = re.fullmatch(r"<guidelines>(.*)</guidelines>", text)
    assert inside, text
    assert not set("<>\n") & set(inside[1])


@given(VALUES)
def test_what_goes_in_can_be_read_again(value):
    def cleaned(value):
        if isinstance(value, str):
            return clean(value)
        if isinstance(value, list):
            return [cleaned(item) for item in value]
        if isinstance(value, dict):
            return {cleaned(key): cleaned(item) for key, item in value.items()}
        return value

    assert json.loads(as_json(value)) == cleaned(value)


@given(VALUES)
def test_a_section_can_be_sent_as_utf_8(value):
    section(value, "now").encode("utf-8")


@given(ANYTHING)
def test_cleaning_touches_nothing_but_lone_surrogates(text):
    assert len(clean(text)) == len(text)
    assert all(a == b or 0xD800 <= ord(a) <= 0xDFFF for a, b in zip(text, clean(text), strict=True))


def test_what_json_cannot_say_becomes_its_text():
    assert as_json({"on": date(2026, 3, 1), "open": {1}}) == '{"on": "2026-03-01", "open": "{1}"}'


def test_other_alphabets_stay_readable():
    assert section("Grüße, 你好", "profile") == '<profile>"Grüße, 你好"</profile>'
