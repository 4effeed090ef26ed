"""Hand-made prompts in the format of the shipped templates, for the offline model."""

import json
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from arq_graph.models import OfflineChatModel


def section(name: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")
    return f"<{name}>{text}</{name}>"


def line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False).replace("<", "\\u003c").replace(">", "\\u003e")


def conversation(*entries: Any) -> list[dict[str, Any]]:
    """Lines from short forms.

    "text" or "customer: text" is the customer's, "agent: text" the agent's, and ("tool", {arguments}, result)
    a tool's result.
    """
    lines: list[dict[str, Any]] = []
    said = results = 0
    for entry in entries:
        if isinstance(entry, tuple):
            results += 1
            tool, arguments, result = entry[:3]
            text = result if isinstance(result, str) else json.dumps(result)
            record = {
                "id": f"T{results}",
                "from": "tool",
                "tool": tool,
                "arguments": arguments,
                "result": text,
            }
            lines.append({**record, "error": True} if entry[3:] else record)
            continue
        said += 1
        speaker, _, text = entry.partition(": ")
        if speaker not in ("agent", "customer", "system"):
            speaker, text = "customer", entry
        lines.append({"id": f"M{said}", "from": speaker, "text": text})
    return lines


def prompt(
    *entries: Any,
    now: dict[str, Any] | None = None,
    head: dict[str, Any] | None = None,
    tail: dict[str, Any] | None = None,
    variables: list[dict[str, Any]] | None = None,
    profile: str = "You are the help desk of a shop.",
    glossary: list[dict[str, Any]] | None = None,
) -> list[BaseMessage]:
    lines = conversation(*entries)
    turn = next((entry["id"] for entry in reversed(lines) if entry["from"] == "customer"), None)
    sections = {"profile": {"id": "P", "name": "Agent", "text": profile}}
    if glossary:
        sections["glossary"] = glossary
    system = ["Do the task.", section("example", {"situation": "an example"})]
    system += [section(name, value) for name, value in {**sections, **(head or {})}.items()]
    human = [section("variables", variables)] if variables else []
    human += ["<conversation>", *map(line, lines), "</conversation>"]
    human += [section(name, value) for name, value in (tail or {}).items()]
    human += [section("now", {"turn": turn, **(now or {})}), "Answer."]
    return [SystemMessage("\n".join(system)), HumanMessage("\n".join(human))]


def ask(messages: list[BaseMessage], schema: dict[str, Any], name: str = "Answer") -> Any:
    """What the offline model answers to a prompt, as data."""
    wanted = {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
    return json.loads(str(OfflineChatModel().bind(response_format=wanted).invoke(messages).text))


def closed(**properties: Any) -> dict[str, Any]:
    """An object of the strict subset."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nullable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


TEXT: dict[str, Any] = {"type": "string"}
FLAG: dict[str, Any] = {"type": "boolean"}
WHOLE: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}


def one_of(*options: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(options)}


def list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


SEGMENT = closed(action_segment=TEXT, explanation=TEXT)
JUDGEMENT = closed(
    condition=TEXT,
    condition_application_rationale=TEXT,
    condition_applies=FLAG,
    action=TEXT,
    guideline_is_continuous=FLAG,
    guideline_previously_applied_rationale=list_of(SEGMENT),
    new_or_subtly_different_context=nullable(TEXT),
    guideline_previously_applied=one_of("no", "partially", "fully"),
    is_missing_part_cosmetic_or_functional=nullable(one_of("cosmetic", "functional")),
    guideline_should_reapply=nullable(FLAG),
    score=WHOLE,
    should_apply=FLAG,
)


def judge(
    condition: str | None,
    *entries: Any,
    action: str = "tell them about it",
    applied: str | None = None,
    schema: dict[str, Any] = JUDGEMENT,
    now: dict[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """The offline model's judgement of one guideline G1."""
    tail: dict[str, Any] = {"judge": ["G1"], **(now or {})}
    if applied:
        tail["applied"] = [{"guideline": "G1", "reply": applied}]
    head = {"guidelines": [{"id": "G1", "condition": condition, "action": action}]}
    judged: dict[str, Any] = ask(prompt(*entries, head=head, now=tail, **kwargs), closed(G1=schema))["G1"]
    return judged


def argument(schema: dict[str, Any]) -> dict[str, Any]:
    return closed(
        value_in_context=nullable(TEXT),
        customer_should_provide_it=FLAG,
        already_provided_and_needed_again=nullable(TEXT),
        problematic_to_guess=FLAG,
        given=FLAG,
        value=nullable(schema),
    )


def tool(
    name: str,
    description: str = "",
    granted_by: str | None = "the customer needs it: use the tool",
    /,
    **arguments: tuple[dict[str, Any], str] | tuple[dict[str, Any], str, bool],
) -> dict[str, Any]:
    """A tool as the prompt describes it, and the schema of its arguments beside it.

    Args:
        name: Its name.
        description: What it does.
        granted_by: Condition and action of the guideline G1 that grants it; None for an always available tool.
        arguments: For each its schema, its description, and whether it is required (it is, unless False).
    """
    shown = []
    for key, (schema, said, *required) in arguments.items():
        kind = f"one of {', '.join(map(json.dumps, schema['enum']))}" if "enum" in schema else schema["type"]
        shown.append(
            {"name": key, "type": kind, "required": not required or required[0], "description": said}
        )
    granting = []
    if granted_by is not None:
        condition, _, action = granted_by.partition(": ")
        granting = [{"id": "G1", "condition": condition, "action": action}]
    return {
        "shown": {"name": name, "description": description, "arguments": shown, "granted_by": granting},
        "schemas": {key: schema for key, (schema, *_) in arguments.items()},
    }


def call_schema(described: dict[str, Any], *, confirmed: bool = False) -> dict[str, Any]:
    arguments = {key: argument(schema) for key, schema in described["schemas"].items()}
    call = {
        "applicability_rationale": TEXT,
        "score": WHOLE,
        **({"arguments": closed(**arguments)} if arguments else {}),
        "same_call_is_already_staged": FLAG,
        "potentially_better_tool_name": nullable(TEXT),
        "better_tool_should_run_in_tandem": FLAG,
        "repeat_is_justified": FLAG,
        "should_run": FLAG,
        **({"affirmed_in": nullable(TEXT)} if confirmed else {}),
    }
    return closed(subtleties_to_be_aware_of=TEXT, tool_calls_for_candidate_tool=list_of(closed(**call)))


def propose(
    described: dict[str, Any],
    *entries: Any,
    now: dict[str, Any] | None = None,
    confirmed: bool = False,
    **kwargs: Any,
) -> list[dict[str, Any]]:
    """The calls of one tool that the offline model proposes."""
    name = described["shown"]["name"]
    schema = closed(
        last_customer_message=TEXT,
        most_recent_customer_inquiry_or_need=TEXT,
        most_recent_customer_inquiry_or_need_was_already_resolved=FLAG,
        **{name: call_schema(described, confirmed=confirmed)},
    )
    tail = {"candidates": [name], "active": ["G1"], **(now or {})}
    answer = ask(prompt(*entries, head={"tools": [described["shown"]]}, now=tail, **kwargs), schema)
    calls: list[dict[str, Any]] = answer[name]["tool_calls_for_candidate_tool"]
    return calls


def arguments_of(described: dict[str, Any], *entries: Any, **kwargs: Any) -> dict[str, Any]:
    """The arguments that are given in the one call that is proposed."""
    (call,) = propose(described, *entries, **kwargs)
    return {key: decision["value"] for key, decision in call["arguments"].items() if decision["given"]}


SOURCED = closed(fact=TEXT, source=nullable(TEXT))
REVISION = closed(
    revision_number=WHOLE,
    content=TEXT,
    followed=list_of(TEXT),
    factual_information_provided=list_of(SOURCED),
    offered_services=list_of(closed(service=TEXT, source=nullable(TEXT))),
    instructions_broken=list_of(
        closed(
            instruction=TEXT,
            reason=one_of("prioritization", "missing_data", "customer_request", "none"),
            rationale=TEXT,
        )
    ),
    is_repeat_message=FLAG,
)
MESSAGE = closed(
    last_message_of_customer=nullable(TEXT),
    insights=list_of(closed(insight=TEXT, source=nullable(TEXT))),
    evaluation_for_each_instruction=list_of(closed(instruction=TEXT, evaluation=TEXT, data_available=TEXT)),
    revisions=list_of(REVISION),
)


def revise(
    *entries: Any,
    guidelines: dict[str, str] | None = None,
    insights: list[dict[str, Any]] | None = None,
    draft: str | None = None,
    **kwargs: Any,
) -> list[dict[str, Any]]:
    """The revisions of the reply, given the active guidelines' actions by id."""
    tail: dict[str, Any] = {
        "active_guidelines": [
            {"id": id, "condition": "now", "action": action, "priority": 0, "score": 8}
            for id, action in (guidelines or {}).items()
        ]
    }
    if insights:
        tail["insights"] = insights
    if draft is not None:
        tail["draft"] = draft
    revisions: list[dict[str, Any]] = ask(prompt(*entries, tail=tail, **kwargs), MESSAGE)["revisions"]
    return revisions


def reply(*entries: Any, **kwargs: Any) -> str:
    """The text of the reply."""
    return str(revise(*entries, **kwargs)[-1]["content"])
