"""One conversation, as many providers, kits and benchmarks record it."""

import json

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

ARGUMENTS = {"order_id": "A-1"}
QUESTION = "Where is A-1?"
ANSWER = "It is late."


CONVERSATION = [
    f"user: {QUESTION}",
    "agent: Let me see.",
    ("get_order", ARGUMENTS),
    (0, "late", "done"),
    f"agent: {ANSWER}",
]

ANTHROPIC = [
    {"role": "user", "content": QUESTION},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "An order.", "signature": "s"},
            {"type": "text", "text": "Let me see.", "citations": None},
            {"type": "tool_use", "id": "toolu_1", "name": "get_order", "input": ARGUMENTS},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "late"}]}
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
]
BEDROCK = [
    {"role": "user", "content": [{"text": QUESTION}, {"cachePoint": {"type": "default"}}]},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "An order.", "signature": "s"}}},
            {"text": "Let me see."},
            {"toolUse": {"toolUseId": "t1", "name": "get_order", "input": ARGUMENTS}},
        ],
    },
    {
        "role": "user",
        "content": [{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "late"}]}}],
    },
    {"role": "assistant", "content": [{"text": ANSWER}]},
]
GEMINI = [
    {"role": "user", "parts": [{"text": QUESTION}]},
    {
        "role": "model",
        "parts": [
            {"text": "An order.", "thought": True},
            {"text": "Let me see."},
            {"functionCall": {"name": "get_order", "args": ARGUMENTS}, "thoughtSignature": "s"},
        ],
    },
    {"role": "user", "parts": [{"functionResponse": {"name": "get_order", "response": "late"}}]},
    {"role": "model", "parts": [{"text": ANSWER}]},
]
RESPONSES = [
    {"role": "user", "content": QUESTION},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "get_order",
        "arguments": json.dumps(ARGUMENTS),
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "late"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": ANSWER}]},
]
MODEL_MESSAGES = [
    {"role": "user", "content": QUESTION},
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "An order."},
            {"type": "text", "text": "Let me see."},
            {"type": "tool-call", "toolCallId": "c1", "toolName": "get_order", "input": ARGUMENTS},
        ],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "c1",
                "toolName": "get_order",
                "output": {"type": "text", "value": "late"},
            }
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
]
UI_MESSAGES = [
    {"id": "m1", "role": "user", "parts": [{"type": "text", "text": QUESTION}]},
    {
        "id": "m2",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {"type": "text", "text": "Let me see.", "state": "done"},
            {
                "type": "tool-get_order",
                "toolCallId": "c1",
                "state": "output-available",
                "input": ARGUMENTS,
                "output": "late",
            },
            {"type": "data-weather", "data": {"city": "Paris"}},
            {"type": "source-url", "sourceId": "s", "url": "https://example.com"},
            {"type": "text", "text": ANSWER},
        ],
    },
]
INVOCATION = {
    "toolCallId": "c1",
    "toolName": "get_order",
    "args": ARGUMENTS,
    "state": "result",
    "result": "late",
}
UI_MESSAGES_4 = [
    {"id": "m1", "role": "user", "content": QUESTION},
    {
        "id": "m2",
        "role": "assistant",
        "content": f"Let me see.{ANSWER}",
        "toolInvocations": [INVOCATION],
        "parts": [
            {"type": "text", "text": "Let me see."},
            {"type": "tool-invocation", "toolInvocation": INVOCATION},
            {"type": "text", "text": ANSWER},
        ],
    },
]
TELEMETRY_INPUT = [
    {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
    {
        "role": "assistant",
        "parts": [
            {"type": "reasoning", "content": "An order."},
            {"type": "text", "content": "Let me see."},
            {"type": "tool_call", "id": "c1", "name": "get_order", "arguments": ARGUMENTS},
        ],
    },
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "late"}]},
]
TELEMETRY_OUTPUT = [
    {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}], "finish_reason": "stop"}
]
SPAN = {
    "name": "chat gpt-4o",
    "attributes": {
        "gen_ai.conversation.id": "talk 7",
        "gen_ai.input.messages": json.dumps(TELEMETRY_INPUT),
        "gen_ai.output.messages": TELEMETRY_OUTPUT,
        "gen_ai.system_instructions": [{"type": "text", "content": "You are a clerk."}],
    },
}
TAU2 = {
    "id": "a-uuid",
    "task_id": "5",
    "trial": 1,
    "termination_reason": "user_stop",
    "reward_info": {"reward": 1.0},
    "messages": [
        {"role": "user", "content": QUESTION, "turn_idx": 0},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "c1", "name": "get_order", "arguments": ARGUMENTS, "requestor": "assistant"}
            ],
            "raw_data": {"message": {"tool_calls": [{"id": "c1", "function": {"name": "get_order"}}]}},
        },
        {"role": "tool", "id": "c1", "content": "late", "requestor": "assistant", "error": False},
        {"role": "assistant", "content": ANSWER, "tool_calls": None},
    ],
}
INSPECT = {
    "id": "lost parcel",
    "epoch": 2,
    "scores": {"match": {"value": "C"}},
    "messages": [
        {"id": "a", "role": "user", "content": "attachment://h1", "source": "input"},
        {
            "id": "b",
            "role": "assistant",
            "content": [
                {"type": "reasoning", "reasoning": "An order."},
                {"type": "text", "text": "Let me see."},
            ],
            "tool_calls": [{"id": "c1", "function": "get_order", "arguments": ARGUMENTS, "type": "function"}],
            "model": "m",
        },
        {"role": "tool", "content": "late", "tool_call_id": "c1", "function": "get_order", "error": None},
        {"role": "assistant", "content": ANSWER},
    ],
    "attachments": {"h1": QUESTION},
}
CALL_AS_TEXT = json.dumps({"name": "get_order", "arguments": ARGUMENTS})
SHAREGPT = {
    "conversations": [
        {"from": "human", "value": QUESTION},
        {"from": "gpt", "value": "Let me see."},
        {"from": "function_call", "value": CALL_AS_TEXT},
        {"from": "observation", "value": "late"},
        {"from": "gpt", "value": ANSWER},
    ],
    "system": "You are a clerk.",
    "tools": json.dumps([{"name": "get_order", "parameters": {"type": "object"}}]),
}
HERMES = [
    {"from": "human", "value": QUESTION},
    {"from": "gpt", "value": f"Let me see.\n<tool_call>\n{json.loads(CALL_AS_TEXT)}\n</tool_call>"},
    {"from": "tool", "value": "<tool_response>\nlate\n</tool_response>"},
    {"from": "gpt", "value": ANSWER},
]
VAPI_CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "get_order", "arguments": json.dumps(ARGUMENTS)},
}
VAPI = {
    "artifact": {
        "messages": [
            {"role": "user", "message": QUESTION, "time": 1.0, "secondsFromStart": 1.0},
            {"role": "bot", "message": "Let me see.", "time": 2.0},
            {"role": "tool_calls", "message": "", "toolCalls": [VAPI_CALL]},
            {"role": "tool_call_result", "toolCallId": "c1", "name": "get_order", "result": "late"},
            {"role": "bot", "message": ANSWER},
        ]
    }
}
RETELL = [
    {"role": "user", "content": QUESTION},
    {"role": "agent", "content": "Let me see."},
    {
        "role": "tool_call_invocation",
        "tool_call_id": "c1",
        "name": "get_order",
        "arguments": json.dumps(ARGUMENTS),
    },
    {"role": "tool_call_result", "tool_call_id": "c1", "content": "late", "successful": True},
    {"role": "agent", "content": ANSWER},
]
LANGCHAIN = [
    HumanMessage(QUESTION),
    AIMessage(
        ANTHROPIC[1]["content"], tool_calls=[{"name": "get_order", "args": ARGUMENTS, "id": "toolu_1"}]
    ),
    ToolMessage([{"type": "text", "text": "late"}], tool_call_id="toolu_1"),
    AIMessage([{"type": "text", "text": ANSWER}, {"type": "of_a_new_provider", "value": {}}]),
]
RECORDINGS = {
    "Anthropic": ANTHROPIC,
    "Bedrock Converse": BEDROCK,
    "Gemini": {"contents": GEMINI},
    "OpenAI responses": RESPONSES,
    "OpenAI responses, request and answer": {"input": RESPONSES[:-1], "output": RESPONSES[-1:]},
    "AI SDK model messages": MODEL_MESSAGES,
    "AI SDK UI messages": UI_MESSAGES,
    "AI SDK 4": UI_MESSAGES_4,
    "AI SDK 4, first versions": [
        UI_MESSAGES_4[0],
        {"role": "assistant", "content": "Let me see.", "toolInvocations": [INVOCATION]},
        {"role": "assistant", "content": ANSWER},
    ],
    "LangChain, first versions": [
        {"type": "human", "content": QUESTION},
        {"type": "ai", "content": "Let me see.", "additional_kwargs": {"tool_calls": [VAPI_CALL]}},
        {"type": "tool", "content": "late", "tool_call_id": "c1"},
        {"type": "ai", "content": ANSWER},
    ],
    "OpenTelemetry messages": TELEMETRY_INPUT + TELEMETRY_OUTPUT,
    "OpenTelemetry span": SPAN,
    "tau2-bench": TAU2,
    "inspect_ai": INSPECT,
    "ShareGPT": SHAREGPT,
    "Hermes": HERMES,
    "Vapi": VAPI,
    "Retell": RETELL,
    "LangChain with Anthropic's blocks": LANGCHAIN,
}
