"""The HTTP APIs of the other providers, as far as their LangChain classes use them."""

import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

from tests.slow.providers.stub import (
    CACHED_TOKENS,
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    ModelAnswer,
    Refused,
    Request,
    format_events,
    get_parts,
    list_schema_nodes,
    refuse_unknown_keys,
    require_keys,
    split_in_two,
)

MAX_UNIONS = 16


@dataclass
class Anthropic:
    """The Messages API: an `old` model has no `output_config`; one that thinks takes no forced tool."""

    old: bool = False

    def read(self, body: dict[str, Any]) -> Request:
        extra = "{}: Extra inputs are not permitted"
        known = (
            "model max_tokens messages system temperature thinking tools tool_choice stop_sequences stream"
        )
        refuse_unknown_keys(body, known if self.old else f"{known} output_config", words=extra)
        require_keys(body, "model max_tokens messages")
        request = Request(body, [], temperature=body.get("temperature"), max_tokens=body["max_tokens"])
        conversation = [(message["role"], message["content"]) for message in body["messages"]]
        for role, content in [("system", body.get("system")), *conversation]:
            blocks = []
            for part in get_parts(content):
                keys = "text" if part["type"] == "text" else "source"
                refuse_unknown_keys(
                    part, f"type {keys} cache_control", f"messages.content.{part['type']}", extra
                )
                request.images += part["type"] == "image"
                if part["type"] == "text" and not part["text"].strip():
                    raise Refused("messages: text content blocks must contain non-whitespace text")
                is_marked = part.get("cache_control") == {"type": "ephemeral"}
                blocks.append((part.get("text") or json.dumps(part["source"]), is_marked))
            request.read(role, blocks)
        if len(request.marked) > 4:
            count = len(request.marked)
            raise Refused(f"A maximum of 4 blocks with cache_control may be provided. Found {count}.")
        thinks = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
        if thinks and body.get("temperature", 1) != 1:
            raise Refused("`temperature` may only be set to 1 when thinking is enabled.")
        self._read_json_mode(request, body, thinks)
        return request

    def _read_json_mode(self, request: Request, body: dict[str, Any], thinks: bool) -> None:
        if form := (body.get("output_config") or {}).get("format"):
            request.json_mode, request.schema = form["type"], form["schema"]
            unions = 0
            for node in list_schema_nodes(request.schema):
                unions += "anyOf" in node
                if bad := node.keys() & {"minimum", "maximum", "maxItems", "maxLength", "pattern"}:
                    raise Refused(f"output_config.format.schema: For this type, {min(bad)} is not supported")
            if unions > MAX_UNIONS:
                count = f"{unions} parameters with type arrays or anyOf"
                raise Refused(
                    f"Schemas contains too many parameters with union types ({count}, limit: {MAX_UNIONS})"
                )
        elif tools := body.get("tools"):
            forced = body.get("tool_choice", {}).get("type") in ("any", "tool")
            if forced and thinks:
                raise Refused("Thinking may not be enabled when tool_choice forces tool use.")
            # A model that may answer in words does so here.
            request.json_mode, request.tool = "function", tools[0]["name"] if forced else ""
            request.schema = tools[0]["input_schema"] if forced else None
            list(list_schema_nodes(tools[0]["input_schema"]))

    def write(self, request: Request, answer: ModelAnswer) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
        if request.tool and not answer.refusal:
            content = [
                {"type": "tool_use", "id": "t1", "name": request.tool, "input": parse_arguments(answer.text)}
            ]
        if request.body.get("thinking"):
            content.insert(0, {"type": "thinking", "thinking": "Let me see: {", "signature": "s"})
        if answer.refusal:
            content = [{"type": "text", "text": answer.refusal}]
        reason = "refusal" if answer.refusal else "max_tokens" if answer.cut else "end_turn"
        usage = {
            "input_tokens": INPUT_TOKENS - CACHED_TOKENS,
            "cache_read_input_tokens": CACHED_TOKENS,
            "output_tokens": OUTPUT_TOKENS,
        }
        fields = {"id": "m1", "type": "message", "role": "assistant", "model": request.body["model"]}
        return {**fields, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}

    def stream(self, request: Request, response: dict[str, Any]) -> bytes:
        chunks: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**response, "content": [], "stop_reason": None}}
        ]
        for index, block in enumerate(response["content"]):
            field = "input" if block["type"] == "tool_use" else block["type"]
            text = json.dumps(block[field]) if field == "input" else block[field]
            empty = {**block, field: {} if field == "input" else ""}
            kind, key = (
                ("input_json_delta", "partial_json") if field == "input" else (f"{field}_delta", field)
            )
            chunks.append({"type": "content_block_start", "index": index, "content_block": empty})
            deltas = [{"type": kind, key: half} for half in split_in_two(text)]
            chunks += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            chunks.append({"type": "content_block_stop", "index": index})
        delta = {"stop_reason": response["stop_reason"], "stop_sequence": None}
        chunks.append({"type": "message_delta", "delta": delta, "usage": response["usage"]})
        return format_events([*chunks, {"type": "message_stop"}])

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        fields = {"type": "invalid_request_error", "message": refused.message}
        return {"type": "error", "error": fields}, {}


@dataclass
class Converse:
    """Bedrock's Converse API; a model that is not `able` has no schemas and no cache."""

    able: bool = True

    def read(self, body: dict[str, Any]) -> Request:
        refuse_unknown_keys(
            body, "messages system inferenceConfig toolConfig outputConfig additionalModelRequestFields"
        )
        config = body.get("inferenceConfig") or {}
        refuse_unknown_keys(config, "maxTokens temperature topP stopSequences", "inferenceConfig")
        request = Request(body, [], temperature=config.get("temperature"), max_tokens=config.get("maxTokens"))
        conversation = [(message["role"], message["content"]) for message in body["messages"]]
        for role, parts in [("system", body.get("system") or ()), *conversation]:
            blocks: list[tuple[str, bool]] = []
            for part in parts:
                (kind,) = part
                if kind == "cachePoint":
                    blocks[-1] = (blocks[-1][0], True)
                elif kind not in ("text", "image"):
                    raise Refused(f"The content field contains an unknown block: {kind}")
                else:
                    request.images += kind == "image"
                    blocks.append((part.get("text") or json.dumps(part["image"]), False))
            request.read(role, blocks)
        if request.marked and not self.able:
            words = "You invoked an unsupported model or your request did not allow prompt caching."
            raise Refused(words, status=403)
        if len(request.marked) > 4:
            raise Refused("The model supports a maximum of 4 cache points.")
        if form := (body.get("outputConfig") or {}).get("textFormat"):
            if not self.able:
                raise Refused("This model doesn't support the outputConfig.textFormat field.")
            request.json_mode, fields = "json_schema", form["structure"]["jsonSchema"]
            request.schema = json.loads(fields["schema"])
            list(list_schema_nodes(request.schema))
        elif tools := (body.get("toolConfig") or {}).get("tools"):
            if not self.able:
                raise Refused("This model doesn't support tool use.")
            spec = tools[0]["toolSpec"]
            request.json_mode, request.tool, request.schema = (
                "function",
                spec["name"],
                spec["inputSchema"]["json"],
            )
            list(list_schema_nodes(request.schema))
        return request

    def write(self, request: Request, answer: ModelAnswer) -> dict[str, Any]:
        content: list[dict[str, Any]] = [{"text": answer.refusal or answer.text}]
        if request.tool and not answer.refusal:
            content = [
                {"toolUse": {"toolUseId": "t1", "name": request.tool, "input": parse_arguments(answer.text)}}
            ]
        reason = "guardrail_intervened" if answer.refusal else "max_tokens" if answer.cut else "end_turn"
        cached = CACHED_TOKENS if request.marked else 0
        usage = {
            "inputTokens": INPUT_TOKENS - cached,
            "cacheReadInputTokens": cached,
            "outputTokens": OUTPUT_TOKENS,
        }
        message = {"role": "assistant", "content": content}
        fields = {"stopReason": reason, "usage": {**usage, "totalTokens": INPUT_TOKENS + OUTPUT_TOKENS}}
        return {"output": {"message": message}, **fields, "metrics": {"latencyMs": 1}}

    def stream(self, request: Request, response: dict[str, Any]) -> bytes:
        (block,) = response["output"]["message"]["content"]
        deltas = [{"text": half} for half in split_in_two(block.get("text", ""))]
        chunks: list[tuple[str, dict[str, Any]]] = [("messageStart", {"role": "assistant"})]
        if use := block.get("toolUse"):
            start = {"toolUse": {"toolUseId": "t1", "name": use["name"]}}
            chunks.append(("contentBlockStart", {"start": start, "contentBlockIndex": 0}))
            deltas = [{"toolUse": {"input": half}} for half in split_in_two(json.dumps(use["input"]))]
        chunks += [("contentBlockDelta", {"delta": delta, "contentBlockIndex": 0}) for delta in deltas]
        chunks += [
            ("contentBlockStop", {"contentBlockIndex": 0}),
            ("messageStop", {"stopReason": response["stopReason"]}),
        ]
        chunks.append(("metadata", {"usage": response["usage"], "metrics": {"latencyMs": 1}}))
        return b"".join(make_frame(kind, json.dumps(payload).encode()) for kind, payload in chunks)

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        kind = "AccessDeniedException" if refused.status == 403 else "ValidationException"
        return {"message": refused.message}, {"x-amzn-ErrorType": kind}


class Gemini:
    """Google's generateContent."""

    def read(self, body: dict[str, Any]) -> Request:
        words = 'Invalid JSON payload received. Unknown name "{}": Cannot find field.'
        refuse_unknown_keys(
            body, "contents systemInstruction generationConfig tools toolConfig safetySettings", words=words
        )
        config = body.get("generationConfig") or {}
        keys = "temperature maxOutputTokens responseMimeType responseJsonSchema candidateCount thinkingConfig"
        refuse_unknown_keys(config, f"{keys} topK topP stopSequences seed", words=words)
        request = Request(
            body, [], temperature=config.get("temperature"), max_tokens=config.get("maxOutputTokens")
        )
        for content in [body.get("systemInstruction") or {}, *body["contents"]]:
            texts = []
            for part in content.get("parts", ()):
                refuse_unknown_keys(part, "text inlineData fileData", words=words)
                texts.append(part.get("text", ""))
                request.images += "inlineData" in part or "fileData" in part
            request.messages.append((content.get("role", "system"), "".join(texts)))
        if config.get("responseMimeType") == "application/json":
            request.schema = config.get("responseJsonSchema")
            request.json_mode = "json_schema" if request.schema else "json_object"
            list(list_schema_nodes(request.schema or {}))
        elif body.get("tools"):
            raise Refused("The stub's model calls no tools.")
        return request

    def write(self, request: Request, answer: ModelAnswer) -> dict[str, Any]:
        usage = {
            "promptTokenCount": INPUT_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
        }
        fields = {
            "usageMetadata": {**usage, "cachedContentTokenCount": CACHED_TOKENS},
            "modelVersion": "gemini-2.5",
        }
        if answer.refusal == "blocked prompt":
            return {**fields, "promptFeedback": {"blockReason": "SAFETY"}}
        candidate: dict[str, Any] = {"index": 0, "finishReason": "MAX_TOKENS" if answer.cut else "STOP"}
        candidate["content"] = {"role": "model", "parts": [{"text": answer.text}]}
        if answer.refusal:
            candidate = {"index": 0, "finishReason": "SAFETY"}
        return {**fields, "candidates": [candidate]}

    def stream(self, request: Request, response: dict[str, Any]) -> bytes:
        chunks = [response]
        if "parts" in response.get("candidates", [{}])[0].get("content", {}):
            (candidate,) = response["candidates"]
            pieces = split_in_two(candidate["content"]["parts"][0]["text"])
            contents = [{"content": {"role": "model", "parts": [{"text": piece}]}} for piece in pieces]
            chunks = [{**response, "candidates": [{"index": 0, **contents[0]}]}]
            chunks.append({**response, "candidates": [{**candidate, **contents[1]}]})
        return format_events(chunks)

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        fields = {"code": refused.status, "message": refused.message, "status": "INVALID_ARGUMENT"}
        return {"error": fields}, {}


class Ollama:
    """Ollama's /api/chat, which its class always streams from."""

    def read(self, body: dict[str, Any]) -> Request:
        refuse_unknown_keys(
            body, "model messages stream think format options keep_alive tools logprobs top_logprobs"
        )
        options = body.get("options") or {}
        request = Request(
            body, [], temperature=options.get("temperature"), max_tokens=options.get("num_predict")
        )
        for message in body["messages"]:
            refuse_unknown_keys(message, "role content images tool_calls thinking")
            request.messages.append((message["role"], message["content"]))
            request.images += len(message.get("images") or ())
        if form := body.get("format"):
            request.json_mode = "json_object" if form == "json" else "json_schema"
            request.schema = form if isinstance(form, dict) else None
            list(list_schema_nodes(request.schema or {}))
        return request

    def write(self, request: Request, answer: ModelAnswer) -> dict[str, Any]:
        counted = {
            "prompt_eval_count": INPUT_TOKENS,
            "eval_count": OUTPUT_TOKENS,
            "total_duration": 1,
            "load_duration": 1,
        }
        fields = {
            "model": request.body["model"],
            "created_at": "2026-01-01T00:00:00Z",
            **counted,
            "done": True,
        }
        message = {"role": "assistant", "content": answer.text or answer.refusal}
        return {**fields, "message": message, "done_reason": "length" if answer.cut else "stop"}

    def stream(self, request: Request, response: dict[str, Any]) -> bytes:
        chunks = {"model": response["model"], "created_at": response["created_at"], "done": False}
        answer = [
            {**response["message"], "content": half}
            for half in (*split_in_two(response["message"]["content"]), "")
        ]
        lines = [
            *({**chunks, "message": message} for message in answer[:2]),
            {**response, "message": answer[2]},
        ]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    def error(self, refused: Refused) -> tuple[dict[str, Any], dict[str, str]]:
        return {"error": refused.message}, {}


def make_frame(kind: str, payload: bytes) -> bytes:
    """One event in the binary form of AWS."""
    headers = b""
    fields = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    for name, value in fields.items():
        headers += (
            bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        )
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return frame + struct.pack(">I", zlib.crc32(frame))


def parse_arguments(text: str) -> Any:
    """Arguments of a call; a text that was cut off has none that could be read."""
    try:
        return json.loads(text)
    except ValueError:
        return {}
