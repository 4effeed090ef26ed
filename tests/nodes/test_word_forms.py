"""Forms of one word, by which a question names a deed."""

from __future__ import annotations

import pytest

from arq_graph.nodes.word_forms import are_forms_of_one

FORMS = [
    "cancel cancels cancelled cancelling cancellation cancellations",
    "move moves moving",
    "delete deletes deleting deletion",
    "reserve reserving reservation reservations",
    "transfer transfers transferring",
    "activate activating activation",
    "apply applies application",
    "pay pays paying payment payments",
    "ship ships shipping shipment",
    "remove removing removal",
    "replace replacing replacement",
    "notify notifies notification",
    "donate donating donation donations",
    "renew renewing renewal",
    "close closes closing",
    "process processes processing",
]
OTHERS = [
    ("restart", "restore"),
    ("refund", "refuse"),
    ("delete", "deliver"),
    ("delete", "delegate"),
    ("reserve", "resend"),
    ("move", "movie"),
    ("fire", "first"),
    ("firing", "firm"),
    ("reply", "replace"),
    ("transfer", "translate"),
    ("release", "relate"),
]


@pytest.mark.parametrize("forms", FORMS)
def test_forms_of_one_word(forms):
    first, *others = forms.split()
    assert [other for other in others if not are_forms_of_one(first, other)] == []


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_words_that_only_begin_alike_are_two(one, other):
    assert not are_forms_of_one(one, other)
    assert not are_forms_of_one(other, one)
