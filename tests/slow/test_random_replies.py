"""A thousand hostile answers of a model, under strict replies."""

import pytest

from tests.replies.adversary import TEMPLATES, run_hostile_turns

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:guidelines were not matched")]


def test_a_thousand_hostile_answers_send_no_other_words():
    outcomes = run_hostile_turns(1_000, "1,000 turns")
    print(f"\n{outcomes}")
    assert outcomes.keys() == TEMPLATES.keys()
