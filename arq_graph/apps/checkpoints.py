"""What a checkpointer may load of a thread: the types of our channels, and nothing else."""

from __future__ import annotations

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from arq_graph.agent.state import RECORDS


def record_serializer() -> JsonPlusSerializer:
    """A serializer for a checkpointer's `serde`, whatever LANGGRAPH_STRICT_MSGPACK says.

    Beside LangChain's messages and plain values it loads the records that a thread of ours holds.
    """
    return JsonPlusSerializer(allowed_msgpack_modules=RECORDS)
