"""The HTTP APIs of the providers, as far as their LangChain classes use them."""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from tests.reasoning.strict_subset import assert_strict
from tests.slow.providers.stub import Asked, Refused, Said, events, halves, needed, nodes_of, only, parts_of

READ, CACHED, WRITTEN = 100, 40, 20
"""Tokens of each answer: read in all, of these from the provider's cache, and written."""


def strict(schema: dict[str, Any]) -> None:
    try:
        assert_strict(schema)
    except AssertionError as error:
        raise Refused(f"Invalid schema for response_format: {error}") from error


@dataclass
class OpenAI:
    """Chat completions: `ways` are those of asking for JSON that the model takes; a `reasoning` one has rules."""

    ways: str = "json_schema function json_object"
    reasoning: bool = False

    def read(self, body: dict[str, Any]) -> Asked:
        only(
            body,
            "model messages temperature max_tokens max_completion_tokens response_format tools tool_choice"
            " parallel_tool_calls stream stream_options reasoning_effort top_p n seed stop",
        )
        asked = Asked(body, [], temperature=body.get("temperature"))
        asked.max_tokens = body.get("max_completion_tokens") or body.get("max_tokens")
        if self.reasoning:
            refuse_sampling(body, "Unsupported value: '{}' does not support {} with this model.")
        for number, message in enumerate(body["messages"]):
            only(message, "role content name tool_calls refusal", f"messages[{number}]")
            texts = []
            for place, part in enumerate(parts_of(message["content"])):
                at = f"messages[{number}].content[{place}]"
                only(part, "type text" if part["type"] == "text" else "type image_url", at)
                texts.append(part.get("text", ""))
                asked.images += "image_url" in part
            asked.messages.append((message["role"], "".join(texts)))
        self._way(asked, body)
        return asked

    def _way(self, asked: Asked, body: dict[str, Any]) -> None:
        if form := body.get("response_format"):
            asked.way = form["type"]
            asked.schema = (form.get("json_schema") or {}).get("schema")
        elif tools := body.get("tools"):
            asked.way, asked.tool = "function", body["tool_choice"]["function"]["name"]
            asked.schema = tools[0]["function"]["parameters"]
        read_way(asked, self.ways)

    def write(self, asked: Asked, said: Said) -> dict[str, Any]:
        if not self.ways:  # such servers know no refusals: their models say it in words
            said = Said(said.text or said.refusal, cut=said.cut)
        message: dict[str, Any] = {"role": "assistant", "content": said.text, "refusal": said.refusal or None}
        if asked.tool and not said.refusal:
            call = {"name": asked.tool, "arguments": said.text}
            message |= {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": call}]}
        reason = "length" if said.cut else "stop"
        usage: dict[str, Any] = {"prompt_tokens": READ, "completion_tokens": WRITTEN}
        usage |= {"total_tokens": READ + WRITTEN, "prompt_tokens_details": {"cached_tokens": CACHED}}
        choices = [{"index": 0, "message": message, "finish_reason": reason}]
        told = {"id": "1", "object": "chat.completion", "created": 1, "model": asked.body["model"]}
        return {**told, "choices": choices, "usage": usage}

    def stream(self, asked: Asked, written: dict[str, Any]) -> bytes:
        (choice,), told = written["choices"], {**written, "object": "chat.completion.chunk", "usage": None}
        field = "refusal" if choice["message"]["refusal"] else "content"
        deltas: list[dict[str, Any]] = [{field: half} for half in halves(choice["message"][field] or "")]
        for call in choice["message"].get("tool_calls", ()):
            pieces = halves(call["function"]["arguments"])
            first = {**call, "index": 0, "function": {**call["function"], "arguments": pieces[0]}}
            deltas = [
                {"tool_calls": [first]},
                {"tool_calls": [{"index": 0, "function": {"arguments": pieces[1]}}]},
            ]
        deltas[0] |= {"role": "assistant"}
        ended = [(delta, None) for delta in deltas] + [({}, choice["finish_reason"])]
        chunks = [{**told, "choices": [{"index": 0, "delta": d, "finish_reason": why}]} for d, why in ended]
        if (asked.body.get("stream_options") or {}).get("include_usage"):
            chunks.append({**told, "choices": [], "usage": written["usage"]})
        return events(chunks, ended="data: [DONE]\n\n")

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        told = {"message": refused.message, "type": "invalid_request_error", "param": refused.param}
        return {"error": {**told, "code": None}}, {}


class Responses(OpenAI):
    """OpenAI's Responses API."""

    def read(self, body: dict[str, Any]) -> Asked:
        only(
            body,
            "model input instructions text tools tool_choice parallel_tool_calls temperature max_output_tokens"
            " reasoning store stream include previous_response_id truncation metadata top_p",
        )
        asked = Asked(body, [], temperature=body.get("temperature"))
        asked.max_tokens = body.get("max_output_tokens")
        for number, item in enumerate(body["input"]):
            only(item, "type role content id status", f"input[{number}]")
            texts = []
            for place, part in enumerate(parts_of(item["content"])):
                kinds = {"input_image": "image_url detail", "output_text": "text annotations"}
                only(part, f"type {kinds.get(part['type'], 'text')}", f"input[{number}].content[{place}]")
                texts.append(part.get("text", ""))
                asked.images += part["type"] == "input_image"
            asked.messages.append((item["role"], "".join(texts)))
        if form := (body.get("text") or {}).get("format"):
            asked.way, asked.schema = form["type"], form.get("schema")
        elif tools := body.get("tools"):
            asked.way, asked.tool = "function", tools[0]["name"]
            asked.schema = tools[0]["parameters"]
        read_way(asked, self.ways)
        return asked

    def write(self, asked: Asked, said: Said) -> dict[str, Any]:
        part = {"type": "output_text", "text": said.text, "annotations": []}
        if said.refusal:
            part = {"type": "refusal", "refusal": said.refusal}
        ended = "incomplete" if said.cut else "completed"
        message = {"type": "message", "id": "m1", "role": "assistant", "status": ended, "content": [part]}
        why = {"reason": "max_output_tokens"} if said.cut else None
        usage = {"input_tokens": READ, "input_tokens_details": {"cached_tokens": CACHED}}
        usage |= {"output_tokens": WRITTEN, "output_tokens_details": {"reasoning_tokens": 0}}
        told = {
            "id": "r1",
            "object": "response",
            "created_at": 1,
            "model": asked.body["model"],
            "error": None,
        }
        told |= {
            "status": ended,
            "incomplete_details": why,
            "usage": {**usage, "total_tokens": READ + WRITTEN},
        }
        more = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "metadata": {}}
        return {**told, **more, "output": [message]}

    def stream(self, asked: Asked, written: dict[str, Any]) -> bytes:
        (item,) = written["output"]
        (part,), at = item["content"], {"item_id": item["id"], "output_index": 0, "content_index": 0}
        kind = part["type"].removeprefix("output_")
        field = "refusal" if kind == "refusal" else "text"
        name = "refusal" if field == "refusal" else "output_text"
        begun = {**written, "status": "in_progress", "output": [], "usage": None}
        told: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        told.append(
            {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}}
        )
        told.append({"type": "response.content_part.added", **at, "part": {**part, field: ""}})
        more = {} if field == "refusal" else {"logprobs": []}
        told += [
            {"type": f"response.{name}.delta", **at, **more, "delta": half} for half in halves(part[field])
        ]
        told.append({"type": f"response.{name}.done", **at, **more, field: part[field]})
        told.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        told.append({"type": f"response.{written['status']}", "response": written})
        return events({**each, "sequence_number": number} for number, each in enumerate(told))


@dataclass
class Anthropic:
    """The Messages API: an `old` model has no `output_config`; one that thinks takes no forced tool."""

    old: bool = False

    def read(self, body: dict[str, Any]) -> Asked:
        extra = "{}: Extra inputs are not permitted"
        known = (
            "model max_tokens messages system temperature thinking tools tool_choice stop_sequences stream"
        )
        only(body, known if self.old else f"{known} output_config", words=extra)
        needed(body, "model max_tokens messages")
        asked = Asked(body, [], temperature=body.get("temperature"), max_tokens=body["max_tokens"])
        spoken = [(message["role"], message["content"]) for message in body["messages"]]
        for role, content in [("system", body.get("system")), *spoken]:
            blocks = []
            for part in parts_of(content):
                keys = "text" if part["type"] == "text" else "source"
                only(part, f"type {keys} cache_control", f"messages.content.{part['type']}", extra)
                asked.images += part["type"] == "image"
                if part["type"] == "text" and not part["text"].strip():
                    raise Refused("messages: text content blocks must contain non-whitespace text")
                is_marked = part.get("cache_control") == {"type": "ephemeral"}
                blocks.append((part.get("text") or json.dumps(part["source"]), is_marked))
            asked.read(role, blocks)
        if len(asked.marked) > 4:
            found = len(asked.marked)
            raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {found}.")
        thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        if thinks and body.get("temperature", 1) != 1:
            raise Refused("`temperature` may only be set to 1 when thinking is enabled.")
        self._way(asked, body, thinks)
        return asked

    def _way(self, asked: Asked, body: dict[str, Any], thinks: bool) -> None:
        if form := (body.get("output_config") or {}).get("format"):
            asked.way, asked.schema = form["type"], form["schema"]
            for node in nodes_of(asked.schema):
                if bad := node.keys() & {"minimum", "maximum", "maxItems", "maxLength", "pattern"}:
                    raise Refused(f"output_config.format.schema: For this type, {min(bad)} is not supported")
        elif tools := body.get("tools"):
            forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
            if forced and thinks:
                raise Refused("Thinking may not be enabled when tool_choice forces tool use.")
            # A model that may answer in words does so here.
            asked.way, asked.tool = "function", tools[0]["name"] if forced else ""
            asked.schema = tools[0]["input_schema"] if forced else None
            list(nodes_of(tools[0]["input_schema"]))

    def write(self, asked: Asked, said: Said) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
        if asked.tool and not said.refusal:
            content = [{"type": "tool_use", "id": "t1", "name": asked.tool, "input": loaded(said.text)}]
        if asked.body.get("thinking"):
            content.insert(0, {"type": "thinking", "thinking": "Let me see: {", "signature": "s"})
        if said.refusal:
            content = [{"type": "text", "text": said.refusal}]
        reason = "refusal" if said.refusal else "max_tokens" if said.cut else "end_turn"
        usage = {"input_tokens": READ - CACHED, "cache_read_input_tokens": CACHED, "output_tokens": WRITTEN}
        told = {"id": "m1", "type": "message", "role": "assistant", "model": asked.body["model"]}
        return {**told, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}

    def stream(self, asked: Asked, written: dict[str, Any]) -> bytes:
        told: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**written, "content": [], "stop_reason": None}}
        ]
        for index, block in enumerate(written["content"]):
            field = "input" if block["type"] == "tool_use" else block["type"]
            text = json.dumps(block[field]) if field == "input" else block[field]
            empty = {**block, field: {} if field == "input" else ""}
            kind, key = (
                ("input_json_delta", "partial_json") if field == "input" else (f"{field}_delta", field)
            )
            told.append({"type": "content_block_start", "index": index, "content_block": empty})
            deltas = [{"type": kind, key: half} for half in halves(text)]
            told += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            told.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": written["stop_reason"], "stop_sequence": None}
        told.append({"type": "message_delta", "delta": delta, "usage": written["usage"]})
        return events([*told, {"type": "message_stop"}])

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        told = {"type": "invalid_request_error", "message": refused.message}
        return {"type": "error", "error": told}, {}


@dataclass
class Converse:
    """Bedrock's Converse API; a model that is not `able` has no schemas and no cache."""

    able: bool = True

    def read(self, body: dict[str, Any]) -> Asked:
        only(body, "messages system inferenceConfig toolConfig outputConfig additionalModelRequestFields")
        config = body.get("inferenceConfig") or {}
        only(config, "maxTokens temperature topP stopSequences", "inferenceConfig")
        asked = Asked(body, [], temperature=config.get("temperature"), max_tokens=config.get("maxTokens"))
        spoken = [(message["role"], message["content"]) for message in body["messages"]]
        for role, parts in [("system", body.get("system") or ()), *spoken]:
            blocks: list[tuple[str, bool]] = []
            for part in parts:
                (kind,) = part
                if kind == "cachePoint":
                    blocks[-1] = (blocks[-1][0], True)
                elif kind not in ("text", "image"):
                    raise Refused(f"The content field contains an unknown block: {kind}")
                else:
                    asked.images += kind == "image"
                    blocks.append((part.get("text") or json.dumps(part["image"]), False))
            asked.read(role, blocks)
        if asked.marked and not self.able:
            words = "You invoked an unsupported model or your request did not allow prompt caching."
            raise Refused(words, status=403)
        if len(asked.marked) > 4:
            raise Refused("The model supports a maximum of 4 cache points.")
        if form := (body.get("outputConfig") or {}).get("textFormat"):
            if not self.able:
                raise Refused("This model doesn't support the outputConfig.textFormat field.")
            asked.way, told = "json_schema", form["structure"]["jsonSchema"]
            asked.schema = json.loads(told["schema"])
            list(nodes_of(asked.schema))
        elif tools := (body.get("toolConfig") or {}).get("tools"):
            if not self.able:
                raise Refused("This model doesn't support tool use.")
            spec = tools[0]["toolSpec"]
            asked.way, asked.tool, asked.schema = "function", spec["name"], spec["inputSchema"]["json"]
            list(nodes_of(asked.schema))
        return asked

    def write(self, asked: Asked, said: Said) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"text": said.refusal or said.text}]
        if asked.tool and not said.refusal:
            content = [{"toolUse": {"toolUseId": "t1", "name": asked.tool, "input": loaded(said.text)}}]
        reason = "guardrail_intervened" if said.refusal else "max_tokens" if said.cut else "end_turn"
        cached = CACHED if asked.marked else 0
        usage = {"inputTokens": READ - cached, "cacheReadInputTokens": cached, "outputTokens": WRITTEN}
        message = {"role": "assistant", "content": content}
        told = {"stopReason": reason, "usage": {**usage, "totalTokens": READ + WRITTEN}}
        return {"output": {"message": message}, **told, "metrics": {"latencyMs": 1}}

    def stream(self, asked: Asked, written: dict[str, Any]) -> bytes:
        (block,) = written["output"]["message"]["content"]
        deltas = [{"text": half} for half in halves(block.get("text", ""))]
        told: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
        if use := block.get("toolUse"):
            start = {"toolUse": {"toolUseId": "t1", "name": use["name"]}}
            told.append(("contentBlockStart", {"start": start, "contentBlockIndex": 0}))
            deltas = [{"toolUse": {"input": half}} for half in halves(json.dumps(use["input"]))]
        told += [("contentBlockDelta", {"delta": delta, "contentBlockIndex": 0}) for delta in deltas]
        told += [
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": written["stopReason"]}),
        ]
        told.append(("metadata", {"usage": written["usage"], "metrics": {"latencyMs": 1}}))
        return b"".join(framed(kind, json.dumps(each).encode()) for kind, each in told)

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        kind = "AccessDeniedException" if refused.status == 403 else "ValidationException"
        return {"message": refused.message}, {"x-amzn-ErrorType": kind}


class Gemini:
    """Google's generateContent."""

    def read(self, body: dict[str, Any]) -> Asked:
        words = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'
        only(body, "contents systemInstruction generationConfig tools toolConfig safetySettings", words=words)
        config = body.get("generationConfig") or {}
        keys = "temperature maxOutputTokens responseMimeType responseJsonSchema candidateCount thinkingConfig"
        only(config, f"{keys} topK topP stopSequences seed", words=words)
        asked = Asked(
            body, [], temperature=config.get("temperature"), max_tokens=config.get("maxOutputTokens")
        )
        for content in [body.get("systemInstruction") or {}, *body["contents"]]:
            texts = []
            for part in content.get("parts", ()):
                only(part, "text inlineData fileData", words=words)
                texts.append(part.get("text", ""))
                asked.images += "inlineData" in part or "fileData" in part
            asked.messages.append((content.get("role", "system"), "".join(texts)))
        if config.get("responseMimeType") == "application/json":
            asked.schema = config.get("responseJsonSchema")
            asked.way = "json_schema" if asked.schema else "json_object"
            list(nodes_of(asked.schema or {}))
        elif body.get("tools"):
            raise Refused("The stub's model calls no tools.")
        return asked

    def write(self, asked: Asked, said: Said) -> dict[str, Any]:
        usage = {"promptTokenCount": READ, "candidatesTokenCount": WRITTEN, "totalTokenCount": READ + WRITTEN}
        told = {"usageMetadata": {**usage, "cachedContentTokenCount": CACHED}, "modelVersion": "gemini-2.5"}
        if said.refusal == "blocked prompt":
            return {**told, "promptFeedback": {"blockReason": "SAFETY"}}
        candidate: dict[str, Any] = {"index": 0, "finishReason": "MAX_TOKENS" if said.cut else "STOP"}
        candidate["content"] = {"role": "model", "parts": [{"text": said.text}]}
        if said.refusal:
            candidate = {"index": 0, "finishReason": "SAFETY"}
        return {**told, "candidates": [candidate]}

    def stream(self, asked: Asked, written: dict[str, Any]) -> bytes:
        told = [written]
        if "parts" in written.get("candidates", [{}])[0].get("content", {}):
            (candidate,) = written["candidates"]
            pieces = halves(candidate["content"]["parts"][0]["text"])
            contents = [{"content": {"role": "model", "parts": [{"text": piece}]}} for piece in pieces]
            told = [{**written, "candidates": [{"index": 0, **contents[0]}]}]
            told.append({**written, "candidates": [{**candidate, **contents[1]}]})
        return events(told)

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        told = {"code": refused.status, "message": refused.message, "status": "INVALID_ARGUMENT"}
        return {"error": told}, {}


class Ollama:
    """Ollama's /api/chat, which its class always streams from."""

    def read(self, body: dict[str, Any]) -> Asked:
        only(body, "model messages stream think format options keep_alive tools logprobs top_logprobs")
        options = body.get("options") or {}
        asked = Asked(body, [], temperature=options.get("temperature"), max_tokens=options.get("num_predict"))
        for message in body["messages"]:
            only(message, "role content images tool_calls thinking")
            asked.messages.append((message["role"], message["content"]))
            asked.images += len(message.get("images") or ())
        if form := body.get("format"):
            asked.way = "json_object" if form == "json" else "json_schema"
            asked.schema = form if isinstance(form, dict) else None
            list(nodes_of(asked.schema or {}))
        return asked

    def write(self, asked: Asked, said: Said) -> dict[str, Any]:
        counted = {"prompt_eval_count": READ, "eval_count": WRITTEN, "total_duration": 1, "load_duration": 1}
        told = {"model": asked.body["model"], "created_at": "2026-01-01T00:00:00Z", **counted, "done": True}
        message = {"role": "assistant", "content": said.text or said.refusal}
        return {**told, "message": message, "done_reason": "length" if said.cut else "stop"}

    def stream(self, asked: Asked, written: dict[str, Any]) -> bytes:
        told = {"model": written["model"], "created_at": written["created_at"], "done": False}
        said = [
            {**written["message"], "content": half} for half in (*halves(written["message"]["content"]), "")
        ]
        lines = [*({**told, "message": message} for message in said[:2]), {**written, "message": said[2]}]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        return {"error": refused.message}, {}


def framed(kind: str, payload: bytes) -> bytes:
    """One event in the binary form of AWS."""
    headers = b""
    told = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    for name, value in told.items():
        headers += (
            bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


def refuse_sampling(body: dict[str, Any], words: str) -> None:
    """What OpenAI's reasoning models say to a temperature, and to a limit by its old name."""
    if body.get("temperature", 1) != 1:
        raise Refused(words.format("temperature", body["temperature"]), param="temperature")
    if "max_tokens" in body:
        raise Refused("Unsupported parameter: 'max_tokens' is not supported with this model.")


def read_way(asked: Asked, ways: str) -> None:
    """Refuse a way of asking for JSON that OpenAI's model does not take, or that is not asked as it must be."""
    if asked.way != "text" and asked.way not in ways.split():
        raise Refused(f"{asked.way} is not supported with this model.")
    if asked.way == "json_object" and "json" not in asked.prompt.lower():
        raise Refused(
            "'messages' must contain the word 'json' to use 'response_format' of type 'json_object'."
        )
    if asked.schema:
        strict(asked.schema)


def loaded(text: str) -> Any:
    """Arguments of a call; a text that was cut off has none that could be read."""
    try:
        return json.loads(text)
    except ValueError:
        return {}
