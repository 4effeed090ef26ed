"""The base classes of the records that nodes write to channels."""

from __future__ import annotations

from pydantic import BaseModel


class RecordPart(
    BaseModel, frozen=True, extra="forbid", defer_build=True
):  # deferring makes the import faster
    """A value inside a record."""


class Record(RecordPart):
    """The fields that all records share.

    `turn` is the id of the customer message that began the turn or, if the message has no id, its number in the
    conversation (`M1`). When the record is written, `specification`, the fingerprint of the agent's specification, and
    `message_hash`, a hash of that message's content, are added.
    """

    agent: str = ""
    specification: str = ""
    turn: str
    message_hash: str = ""
