"""Answers of a model that is asked for a milestone graph."""

from typing import Any


def make_draft(name: str, type_: str = "NFC", *dependencies: str, **fields: Any) -> dict[str, Any]:
    return {
        "workflow_words": "…",
        "dependency_rationale": "…",
        "name": name,
        "type": type_,
        "tool": None,
        "description": f"{name}.",
        "dependencies": list(dependencies),
        "requires": "any" if len(dependencies) > 1 else None,
        **fields,
    }


def make_answer(*drafts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    questions = ("conditions", "checkpoints", "notes", "transitions", "alternatives", "joint_requirements")
    return {
        "goal": "…",
        "tool_names": [],
        **{question: [] for question in questions},
        "milestones": list(drafts),
        "every_tool_has_its_exact_name": True,
        "every_way_leads_to_the_end": True,
        "requires_follows_the_workflow": True,
        **fields,
    }


REFUNDS = make_answer(
    make_draft("Start"),
    make_draft("get_order", "FC", "Start", tool="get_order"),
    make_draft("Receipt given", "NFC", "get_order"),
    make_draft("Account given", "NFC", "get_order"),
    make_draft("refund", "FC", "Receipt given", "Account given", requires="all"),
    make_draft("Nothing to refund", "NFC", "get_order"),
    make_draft("End", "NFC", "refund", "Nothing to refund"),
)
WORKFLOW = "Look the order up with get_order. Ask for receipt and account before you call refund."
TOOLS = ["get_order", "refund", "cancel_order"]
