"""End states that milestone files in tests name."""

from arq_graph.milestones import Transcript


def was_paid(transcript: Transcript) -> bool:
    """Replay the calls: was something paid for?"""
    return any(call.tool == "pay" for _, call in transcript.enumerate_calls())


def has_even_length(transcript: Transcript) -> bool | None:
    """Tell of conversations of an even length whether they are short."""
    return None if len(transcript) % 2 else len(transcript) < 20


def is_world_tidy(transcript: Transcript) -> bool | None:
    return None if transcript.world is None else transcript.world.tidy


def fail(transcript: Transcript) -> bool:
    raise KeyError("orders")


def answer_in_words(transcript: Transcript) -> str:
    return "yes"
