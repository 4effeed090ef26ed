"""The journal of a conversation: everything that the page shows of it, in order."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any
from uuid import uuid4

from ag_ui.core import BaseEvent

_WAIT_SECONDS = 1.5  # the server waits for it when it ends


class Journal:
    """The events of a conversation, as JSON; the page reads them anew when it is loaded again.

    Attributes:
        id: The id of the conversation, which is that of its thread.
        entries: The events of AG-UI, each with its `timestamp` in milliseconds.
    """

    def __init__(self) -> None:
        self.id = str(uuid4())
        self.entries: list[dict[str, Any]] = []
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    def write(self, event: BaseEvent) -> None:
        """Append an event; from any thread."""
        entry = event.model_dump(mode="json", by_alias=True, exclude_none=True)
        self.entries.append(entry | {"timestamp": round(time.time() * 1000)})
        with suppress(RuntimeError):  # the loop may have ended
            self._loop.call_soon_threadsafe(self._changed.set)

    async def read(self, after: int) -> list[dict[str, Any]]:
        """Return what follows the first entries; if nothing does, wait for it, and return nothing if it takes long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                while len(self.entries) <= after:
                    self._changed.clear()
                    await self._changed.wait()
        return self.entries[after:]
