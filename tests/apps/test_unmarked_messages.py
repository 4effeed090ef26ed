"""What a person writes without the mark of a colleague, while they have the conversation."""

import pytest
from langchain_core.messages import AIMessage

from tests.apps.test_takeover import Conversation


def test_a_persons_message_without_the_mark_is_warned_of() -> None:
    conversation = Conversation()
    conversation.say("I want a person.")
    conversation.update(messages=[AIMessage("I refunded A-1.")])
    with pytest.warns(UserWarning, match=r"takes 'I refunded A-1.' for its own words.*colleague_message"):
        conversation.say("Thanks.")
