"""What a model's message says beside its text: that it was cut off, that it refuses, what it cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata, add_usage

_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "prohibited_content", "guardrail_intervened"})
_REASON_KEYS = ("finish_reason", "stop_reason", "stopReason", "done_reason")


def is_cut_off(message: BaseMessage) -> bool:
    """Whether the answer ended at the token limit."""
    return bool(_reasons(message) & _CUT_OFF)


def refusal_of(message: BaseMessage) -> str | None:
    """The words of a refusal, or None where the model did not refuse."""
    refusal = message.additional_kwargs.get("refusal")
    if not refusal and isinstance(message.content, list):
        refusal = "".join(
            str(block.get("refusal") or "")
            for block in map(_block, message.content)
            if block.get("type") == "refusal"
        )
    if refusal:
        return str(refusal)
    reasons = _reasons(message)
    text = str(message.text)
    if "refusal" in reasons:
        return text or "The model stopped with the reason: refusal."
    if reasons & _FILTERED and not text.strip():
        return "The provider's content filter kept the answer back."
    return None


def usage_of(message: BaseMessage) -> UsageMetadata | None:
    """The tokens that the model reports for this message."""
    return message.usage_metadata if isinstance(message, AIMessage) else None


def sum_of(usages: Iterable[UsageMetadata | None]) -> UsageMetadata | None:
    """The tokens of several calls together; None if none reports any."""
    total: UsageMetadata | None = None
    for usage in usages:
        total = add_usage(total, usage) if total and usage else total or usage
    return total


def message_from(error: Exception) -> AIMessage | None:
    """The answer that some clients hide inside an exception; None if `error` is no such exception.

    OpenAI's client raises when an answer to `response_format` was cut off or filtered, and LangChain's
    when it was refused; text and usage are worth having all the same.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    if "OpenAIRefusalError" in names:
        return AIMessage(content="", additional_kwargs={"refusal": str(error) or "The model refused."})
    if "LengthFinishReasonError" in names:
        return _completion(error, "length")
    if "ContentFilterFinishReasonError" in names:
        filtered = _completion(error, "content_filter")
        filtered.additional_kwargs["refusal"] = str(filtered.text) or str(error)
        return filtered
    return None


def _completion(error: Exception, reason: str) -> AIMessage:
    completion = getattr(error, "completion", None)
    choices = getattr(completion, "choices", None) or [None]
    text = getattr(getattr(choices[0], "message", None), "content", None) or ""
    tokens = getattr(completion, "usage", None)
    usage = None
    if tokens is not None:
        usage = UsageMetadata(
            input_tokens=tokens.prompt_tokens or 0,
            output_tokens=tokens.completion_tokens or 0,
            total_tokens=tokens.total_tokens or 0,
        )
    return AIMessage(content=text, usage_metadata=usage, response_metadata={"finish_reason": reason})


def _reasons(message: BaseMessage) -> set[str]:
    metadata = message.response_metadata
    reasons: list[Any] = [metadata.get(key) for key in _REASON_KEYS]
    incomplete = metadata.get("incomplete_details")  # OpenAI's Responses API
    if isinstance(incomplete, dict):
        reasons.append(incomplete.get("reason"))
    return {str(reason).lower() for reason in reasons if reason}


def _block(block: Any) -> dict[str, Any]:
    """A content block; LangChain's v1 blocks keep what it does not know under "non_standard"."""
    if not isinstance(block, dict):
        return {}
    value = block.get("value")
    return value if block.get("type") == "non_standard" and isinstance(value, dict) else block
