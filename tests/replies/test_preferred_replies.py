"""Replies that are preferred or not used: what the prompt shows, and what is recorded."""

import pytest

from arq_graph.nodes import MessageReviser
from tests.brain import brain, get_prompts
from tests.replies.bank import make_bank, make_state

pytestmark = pytest.mark.filterwarnings("ignore:guidelines were not matched")


def revise(reply, composition):
    model = brain(reply=reply)
    update = MessageReviser(model, make_bank(composition=composition)).invoke(make_state())
    return update["revisions"][-1], get_prompts(model, "message")[0]


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("Guten Tag! Sie haben 59.90 Euro.", ["hello", "balance"]),
        ("Good day! There is plenty.", ["hello"]),
        ("59.90 euros. You have.", []),
    ],
)
def test_preferred_replies_are_shown_and_those_in_the_text_are_recorded(text, used):
    revision, prompt = revise(text, "prefer")
    assert revision["content"] == text
    assert [reply["reply"] for reply in revision.get("replies", ())] == used
    assert "balance" in [reply["id"] for reply in prompt.section("replies")]
    assert "word for word" in prompt.head


def test_with_free_composition_they_are_not_used():
    revision, prompt = revise("Good day!", "free")
    assert "replies" not in revision
    assert prompt.section("replies") is None
    assert "word for word" not in prompt.head
