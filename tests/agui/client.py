"""A client of AG-UI, which keeps what a user sees as the official one does."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ag_ui.core import BaseEvent, RunAgentInput, UserMessage

from arq_graph.agui import agui_events


class Client:
    """Talks to an app on one thread; `messages`, `state` and `custom` are what it shows after a run."""

    def __init__(self, app: Any, thread_id: str = "1", **options: Any) -> None:
        self.app = app
        self.thread_id = thread_id
        self.options = options
        self.messages: list[dict[str, Any]] = []
        self.state: Any = {}
        self.custom: list[BaseEvent] = []
        self.events: list[BaseEvent] = []
        self.shown_texts: list[str] = []
        self._run_count = 0

    async def say(self, text: Any, **fields: Any) -> str:
        """Add a message of the user, and run."""
        message = UserMessage(id=f"u{len(self.messages)}", content=text)
        self.messages.append(message.model_dump(by_alias=True, exclude_none=True))
        return await self.run(**fields)

    async def run(self, **fields: Any) -> str:
        """Run, and return the type of the run's last event."""
        self._run_count += 1
        request = {
            "thread_id": self.thread_id,
            "run_id": f"r{self._run_count}",
            "messages": self.messages,
            "state": self.state,
            "tools": [],
            "context": [],
            "forwarded_props": {},
            **fields,
        }
        self.events = []
        async for event in self.open_stream(RunAgentInput.model_validate(request)):
            self.apply(event)
        return self.events[-1].type.value

    def open_stream(self, request: RunAgentInput) -> AsyncIterator[BaseEvent]:
        """Begin a run."""
        return agui_events(self.app, request, **self.options)

    def apply(self, event: Any) -> None:
        """Do with an event what the official client does."""
        self.events.append(event)
        match event.type.value:
            case "TEXT_MESSAGE_START":
                self.messages.append({"id": event.message_id, "role": "assistant", "content": ""})
            case "TEXT_MESSAGE_CONTENT":
                self._find(event.message_id)["content"] += event.delta
                self.shown_texts.append(self._find(event.message_id)["content"])
            case "TOOL_CALL_START":
                call = {
                    "id": event.tool_call_id,
                    "type": "function",
                    "function": {"name": event.tool_call_name},
                }
                call["function"]["arguments"] = ""
                self.messages.append(
                    {"id": event.parent_message_id, "role": "assistant", "toolCalls": [call]}
                )
            case "TOOL_CALL_ARGS":
                self._find_call(event.tool_call_id)["function"]["arguments"] += event.delta
            case "TOOL_CALL_RESULT":
                result = {"id": event.message_id, "role": "tool", "content": event.content}
                self.messages.append(result | {"toolCallId": event.tool_call_id})
            case "MESSAGES_SNAPSHOT":
                snapshot = event.model_dump(by_alias=True, exclude_none=True)["messages"]
                new = {message["id"]: message for message in snapshot}
                shown = {message["id"]: message for message in self.messages if message["id"] in new}
                self.messages = list((shown | new).values())
            case "STATE_SNAPSHOT":
                self.state = event.snapshot
            case "CUSTOM":
                self.custom.append(event)

    @property
    def transcript(self) -> list[tuple[str, str]]:
        """What the user sees, as roles and texts; of a call, its tool and arguments."""
        lines = []
        for message in self.messages:
            for call in message.get("toolCalls") or ():
                arguments: Mapping[str, Any] = json.loads(call["function"]["arguments"])
                lines.append(
                    ("call", f"{call['function']['name']} {', '.join(map(str, arguments.values()))}")
                )
            if message.get("content"):
                lines.append((message["role"], message["content"]))
        return lines

    @property
    def interrupts(self) -> list[Any]:
        """What the last run waits for."""
        return list(self.events[-1].outcome.interrupts)  # type: ignore[attr-defined]

    def _find(self, message_id: str) -> dict[str, Any]:
        return next(message for message in self.messages if message["id"] == message_id)

    def _find_call(self, call_id: str) -> dict[str, Any]:
        calls = [call for message in self.messages for call in message.get("toolCalls") or ()]
        return next(call for call in calls if call["id"] == call_id)
