"""Read a model's message: its answer, a refusal, how it ended and what it cost. Write the message that asks again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

from arq_graph.reasoning.sections import clean, escaped

_MAX_REPEATED_ANSWER = 6_000
_MAX_PROBLEM = 500

_CUT_OFF_REASONS = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTER_REASONS = frozenset({"content_filter", "safety", "prohibited_content", "guardrail_intervened"})
_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")


def get_answer_text(message: AIMessage) -> str:
    """Return what a model answered: the arguments of its tool calls (some models repeat them), or else its text."""
    arguments = get_arguments(message)
    if not arguments:
        arguments = [call["args"] or "" for call in message.invalid_tool_calls]
    return "\n".join(arguments) or str(message.text)


def get_arguments(message: AIMessage) -> list[str]:
    """Return the arguments of a message's tool calls as JSON, as far as they are written."""
    if isinstance(message, AIMessageChunk):
        # In a streamed message LangChain completes arguments that were cut off, so that they would look whole.
        return [call["args"] or "" for call in message.tool_call_chunks]
    return [json.dumps(call["args"], ensure_ascii=False) for call in message.tool_calls]


def is_cut_off(message: BaseMessage) -> bool:
    """Return whether the answer ended at the token limit."""
    return not _CUT_OFF_REASONS.isdisjoint(_get_finish_reasons(message))


def find_refusal(message: BaseMessage) -> str | None:
    """Return the words of a refusal; None if the model didn't refuse."""
    refusal = message.additional_kwargs.get("refusal")
    if not refusal:
        blocks = [block for block in message.content if isinstance(block, dict)]
        refusal = "".join(str(block["refusal"]) for block in blocks if block.get("refusal"))
    if refusal:
        return str(refusal)
    reasons, text = _get_finish_reasons(message), str(message.text)
    if "refusal" in reasons:
        return text or "The model stopped with the reason: refusal."
    is_filtered = not _FILTER_REASONS.isdisjoint(reasons)
    if is_filtered and "{" not in text:  # a guardrail may write something in the place of the answer
        return text.strip() or "The provider's content filter kept the answer back."
    if blocked := (message.response_metadata.get("prompt_feedback") or {}).get("block_reason"):
        return f"The provider blocked the prompt: {getattr(blocked, 'name', blocked)}."
    return None


def _get_finish_reasons(message: BaseMessage) -> set[str]:
    metadata = message.response_metadata
    reasons: list[Any] = [metadata.get(key) for key in _REASON_KEYS]
    reasons.append((metadata.get("incomplete_details") or {}).get("reason"))  # OpenAI's Responses API
    return {str(reason).lower() for reason in reasons if reason}


def extract_message(error: BaseException) -> AIMessage | None:
    """Return the answer that some clients hide inside an exception, or None.

    OpenAI's client raises if an answer to `response_format` was cut off or filtered, and LangChain's if it was refused;
    its text and usage are needed all the same.
    """
    if type(error).__name__ in ("OpenAIRefusalError", "ContentFilterFinishReasonError"):
        return AIMessage(content="", additional_kwargs={"refusal": str(error) or "The model refused."})
    completion: Any = getattr(error, "completion", None)
    if completion is None:
        return None
    choice, tokens = completion.choices[0], completion.usage
    usage = None
    if tokens:
        usage = UsageMetadata(
            input_tokens=tokens.prompt_tokens or 0,
            output_tokens=tokens.completion_tokens or 0,
            total_tokens=tokens.total_tokens or 0,
        )
    reason = {"finish_reason": choice.finish_reason}
    return AIMessage(choice.message.content or "", usage_metadata=usage, response_metadata=reason)


def sum_usage(usages: Iterable[UsageMetadata | None]) -> UsageMetadata | None:
    """Return the tokens of several calls together; None if none of them is known."""
    return reduce(add_usage, filter(None, usages), None)


def build_retry_messages(text: str, verdict: str, problems: Sequence[object]) -> list[BaseMessage]:
    """Return what follows the prompt when a model is asked again: its answer, and what is wrong with it."""
    problem_list = "\n".join(f"- {str(problem)[:_MAX_PROBLEM]}" for problem in problems)
    request = "Answer with the whole object, changed accordingly, and nothing else."
    correction = f"Your answer {verdict}:\n{escaped(problem_list)}\n{request}"
    answer = clean(text).strip() or "(an empty answer)"  # some providers refuse an empty message
    if len(answer) > _MAX_REPEATED_ANSWER:
        answer = f"{answer[:_MAX_REPEATED_ANSWER]} …"
    return [AIMessage(answer), HumanMessage(correction)]
