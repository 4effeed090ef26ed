"""LiveKit's own adapter for LangGraph speaks the accepted replies alone."""

from typing import Any

import pytest

from tests.apps.desk import make_thread
from tests.brain import brain
from tests.test_user_streams import APPS, make_app

pytest.importorskip("livekit.plugins.langchain")

from livekit.agents.llm import ChatContext
from livekit.plugins.langchain import LLMAdapter

pytestmark = pytest.mark.slow


class Caller:
    """A conversation by voice: what was said so far, which the adapter passes on in every turn."""

    def __init__(self, app: Any) -> None:
        self.adapter = LLMAdapter(app, config=make_thread(), stream_mode="custom")
        self.conversation = ChatContext.empty()

    async def say(self, text: str) -> list[str]:
        """Say something; return what is spoken."""
        self.conversation.add_message(role="user", content=text)
        spoken = []
        async with self.adapter.chat(chat_ctx=self.conversation) as stream:
            async for chunk in stream:
                if chunk.delta:
                    spoken.append(str(chunk.delta.content))
        self.conversation.add_message(role="assistant", content=" ".join(spoken))
        return spoken


@pytest.mark.parametrize("kind", APPS)
async def test_only_the_reply_is_spoken(kind):
    app = APPS[kind]()
    spoken = await Caller(app).say("Where is A-1?")
    assert spoken == [app.get_state(make_thread()).values["messages"][-1].text]


async def test_neither_a_rejected_draft_nor_the_result_of_a_tool_is_spoken():
    unsourced = {"fact": "it is in your hands", "source": None}
    rejected = {
        "content": "It is in your hands.",
        "followed": [],
        "factual_information_provided": [unsourced],
    }
    app = make_app(
        stream=True,
        model=brain(
            {"G1": 9}, {"get_order": {"order_id": "A-1"}}, [{"revisions": [rejected]}, "It is late."]
        ),
    )
    caller = Caller(app)
    assert await caller.say("Where is A-1?") == ["It is late."]
    assert await caller.say("Thanks!") == ["It is late."]
