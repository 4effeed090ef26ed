"""OpenAI's two HTTP APIs, as far as their LangChain class uses them."""

from dataclasses import dataclass
from typing import Any

from tests.chat_completions import make_completion, make_events, make_tool_call
from tests.reasoning.strict_subset import assert_strict
from tests.slow.providers.stub import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    ModelAnswer,
    Refused,
    Request,
    format_events,
    get_parts,
    refuse_unknown_keys,
    split_in_two,
)


@dataclass
class OpenAI:
    """Chat completions: `json_modes` are those that the model takes; a `reasoning` one refuses a temperature.

    Its cache has marks if `takes_marks`.
    """

    json_modes: str = "json_schema function json_object"
    reasoning: bool = False
    takes_marks: bool = False

    def read(self, body: dict[str, Any]) -> Request:
        refuse_unknown_keys(
            body,
            "model messages temperature max_tokens max_completion_tokens response_format tools tool_choice"
            " parallel_tool_calls stream stream_options reasoning_effort top_p n seed stop"
            + " prompt_cache_options prompt_cache_key"
            * self.takes_marks,
        )
        request = Request(body, [], temperature=body.get("temperature"))
        request.max_tokens = body.get("max_completion_tokens") or body.get("max_tokens")
        if self.reasoning:
            refuse_sampling(body, "Unsupported value: '{}' does not support {} with this model.")
        for number, message in enumerate(body["messages"]):
            refuse_unknown_keys(message, "role content name tool_calls refusal", f"messages[{number}]")
            blocks = []
            for place, part in enumerate(get_parts(message["content"])):
                keys = "type text" if part["type"] == "text" else "type image_url"
                keys += " prompt_cache_breakpoint" * self.takes_marks
                refuse_unknown_keys(part, keys, f"messages[{number}].content[{place}]")
                is_marked = part.get("prompt_cache_breakpoint") == {"mode": "explicit"}
                blocks.append((part.get("text", ""), is_marked))
                request.images += "image_url" in part
            request.read(message["role"], blocks)
        self._read_json_mode(request, body)
        return request

    def _read_json_mode(self, request: Request, body: dict[str, Any]) -> None:
        if form := body.get("response_format"):
            request.json_mode = form["type"]
            request.schema = (form.get("json_schema") or {}).get("schema")
        elif tools := body.get("tools"):
            request.json_mode, request.tool = "function", body["tool_choice"]["function"]["name"]
            request.schema = tools[0]["function"]["parameters"]
        check_json_mode(request, self.json_modes)

    def write(self, request: Request, answer: ModelAnswer) -> dict[str, Any]:
        if not self.json_modes:  # such servers know no refusals: their models say it in words
            answer = ModelAnswer(answer.text or answer.refusal, cut=answer.cut)
        message: dict[str, Any] = {"content": answer.text, "refusal": answer.refusal or None}
        if request.tool and not answer.refusal:
            message = make_tool_call(request.tool, answer.text) | {"refusal": None}
        return make_completion(
            message,
            model=request.body["model"],
            finish_reason="length" if answer.cut else "stop",
            input_tokens=INPUT_TOKENS,
            cached_tokens=CACHED_TOKENS,
            output_tokens=OUTPUT_TOKENS,
        )

    def stream(self, request: Request, response: dict[str, Any]) -> bytes:
        options = request.body.get("stream_options") or {}
        return "".join(make_events(response, with_usage=bool(options.get("include_usage")))).encode()

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        fields = {"message": refused.message, "type": "invalid_request_error", "param": refused.param}
        return {"error": {**fields, "code": None}}, {}


class Responses(OpenAI):
    """OpenAI's Responses API."""

    def read(self, body: dict[str, Any]) -> Request:
        refuse_unknown_keys(
            body,
            "model input instructions text tools tool_choice parallel_tool_calls temperature max_output_tokens"
            " reasoning store stream include previous_response_id truncation metadata top_p",
        )
        request = Request(body, [], temperature=body.get("temperature"))
        request.max_tokens = body.get("max_output_tokens")
        for number, item in enumerate(body["input"]):
            refuse_unknown_keys(item, "type role content id status", f"input[{number}]")
            texts = []
            for place, part in enumerate(get_parts(item["content"])):
                kinds = {"input_image": "image_url detail", "output_text": "text annotations"}
                refuse_unknown_keys(
                    part, f"type {kinds.get(part['type'], 'text')}", f"input[{number}].content[{place}]"
                )
                texts.append(part.get("text", ""))
                request.images += part["type"] == "input_image"
            request.messages.append((item["role"], "".join(texts)))
        if form := (body.get("text") or {}).get("format"):
            request.json_mode, request.schema = form["type"], form.get("schema")
        elif tools := body.get("tools"):
            request.json_mode, request.tool = "function", tools[0]["name"]
            request.schema = tools[0]["parameters"]
        check_json_mode(request, self.json_modes)
        return request

    def write(self, request: Request, answer: ModelAnswer) -> dict[str, Any]:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        if answer.refusal:
            part = {"type": "refusal", "refusal": answer.refusal}
        ended = "incomplete" if answer.cut else "completed"
        message = {"type": "message", "id": "m1", "role": "assistant", "status": ended, "content": [part]}
        why = {"reason": "max_output_tokens"} if answer.cut else None
        usage = {"input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": CACHED_TOKENS}}
        usage |= {"output_tokens": OUTPUT_TOKENS, "output_tokens_details": {"reasoning_tokens": 0}}
        fields = {
            "id": "r1",
            "object": "response",
            "created_at": 1,
            "model": request.body["model"],
            "error": None,
        }
        fields |= {
            "status": ended,
            "incomplete_details": why,
            "usage": {**usage, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS},
        }
        more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}}
        return {**fields, **more, "output": [message]}

    def stream(self, request: Request, response: dict[str, Any]) -> bytes:
        (item,) = response["output"]
        (part,), at = item["content"], {"item_id": item["id"], "output_index": 0, "content_index": 0}
        kind = part["type"].removeprefix("output_")
        field = "refusal" if kind == "refusal" else "text"
        name = "refusal" if field == "refusal" else "output_text"
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        chunks: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        chunks.append(
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
        )
        chunks.append({"type": "response.content_part.added", **at, "part": {**part, field: ""}})
        more = {} if field == "refusal" else {"logprobs": []}
        chunks += [
            {"type": f"response.{name}.delta", **at, **more, "delta": half}
            for half in split_in_two(part[field])
        ]
        chunks.append({"type": f"response.{name}.done", **at, **more, field: part[field]})
        chunks.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        chunks.append({"type": f"response.{response['status']}", "response": response})
        return format_events({**chunk, "sequence_number": number} for number, chunk in enumerate(chunks))


def refuse_sampling(body: dict[str, Any], words: str) -> None:
    """What OpenAI's reasoning models say to a temperature, and to a limit by its old name."""
    if body.get("temperature", 1) != 1:
        raise Refused(words.format("temperature", body["temperature"]), param="temperature")
    if "max_tokens" in body:
        raise Refused("Unsupported parameter: 'max_tokens' is not supported with this model.")


def check_json_mode(request: Request, json_modes: str) -> None:
    """Refuse a json_mode of asking for JSON that OpenAI's model does not take, or that is not request as it must be."""
    if request.json_mode != "text" and request.json_mode not in json_modes.split():
        raise Refused(f"{request.json_mode} is not supported with this model.")
    if request.json_mode == "json_object" and "json" not in request.prompt.lower():
        raise Refused(
            "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
        )
    if request.schema:
        check_strict(request.schema)


def check_strict(schema: dict[str, Any]) -> None:
    try:
        assert_strict(schema)
    except AssertionError as error:
        raise Refused(f"Invalid schema for response_format: {error}") from error
