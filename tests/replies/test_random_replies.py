"""Whatever a model answers, a strict agent sends only filled templates, with whole values of allowed sources."""

import pytest

from tests.replies.adversary import TEMPLATES, run_hostile_turns


@pytest.mark.filterwarnings("ignore:guidelines were not matched")
def test_hostile_answers_send_no_other_words():
    outcomes = run_hostile_turns(60, "60 turns")
    assert len(outcomes) > 3, outcomes  # not only the reply for all other cases
    assert outcomes.keys() <= TEMPLATES.keys()
