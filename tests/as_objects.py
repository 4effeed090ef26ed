"""For the speaker's tests, which read records as objects: channels then hold these, and plain JSON otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from arq_graph.agent.state import Record
from arq_graph.nodes.channels import Reader

SPEAKERS = ("test_speaker", "test_policies", "test_acting", "test_respact", "test_environment")
_is_own = Reader._is_own


@pytest.fixture(autouse=True)
def records_as_objects(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.path.name.startswith(SPEAKERS):
        return

    def is_own(self: Reader, channel: str, raw: Any) -> bool:
        return isinstance(raw, Record) or _is_own(self, channel, raw)

    def unchanged(_: Reader, record: Any) -> Any:
        return record

    monkeypatch.setattr(Reader, "_is_own", is_own)
    monkeypatch.setattr(Reader, "as_json", unchanged)
