"""Count output tokens per guideline, per candidate tool with one call, and per reply with one revision, in each mode.

Each answer is counted twice by one tokenizer: as our blueprints write it, and with the same words under the full keys
of the ARQ paper's appendices A to C. The paper's own averages (its Fig. 5) were counted by the authors on their data.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from arq_graph.agent.guideline import Guideline
from arq_graph.nodes.judgement_schema import Application, choose_judgement
from arq_graph.nodes.message_schema import MessageBlueprint
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.nodes.tool_caller import make_tool_blueprint
from arq_graph.reasoning.blueprint import ARQ, Mode, dump_in_mode

MODES: tuple[Mode, ...] = ("direct", "cot", "arq")

CountTokens = Callable[[str], int]


@dataclass(frozen=True)
class TokenCounts:
    """The tokens of one node's answer.

    Args:
        unit: What the answer is about.
        ours: Tokens by mode.
        paper_keys: Tokens of the same words under the paper's full keys.
        paper: The paper's average.
    """

    unit: str
    ours: dict[Mode, int]
    paper_keys: int | None = None
    paper: int | None = None


def get_tokenizer() -> tuple[str, CountTokens]:
    """Return a tokenizer's name and a function that counts tokens; an estimate if none is installed."""
    try:
        from bpe_openai import get_encoding
    except ImportError:
        name = "a quarter of the characters (pip install 'arq_graph[bench]' for o200k_base)"
        return name, lambda text: len(text) // 4
    encoding = get_encoding("o200k_base")
    return "o200k_base", lambda text: len(encoding.encode(text))


def count_output_tokens(count_tokens: CountTokens) -> list[TokenCounts]:
    """Count the answers of the matcher, the tool caller and the reviser."""
    return [
        TokenCounts(
            "guideline",
            ours=_count_by_mode({"G1": _make_judgement()}, count_tokens),
            paper_keys=count_tokens(_dump(_make_paper_judgement())),
            paper=289,
        ),
        TokenCounts(
            "guideline that does not hold",
            ours=_count_by_mode({"G1": _make_judgement().model_copy(update=_NEGATIVE)}, count_tokens),
        ),
        TokenCounts(
            "candidate tool, one call",
            ours=_count_by_mode(_make_tool_answer(), count_tokens),
            paper_keys=count_tokens(_dump(_make_paper_tool_answer())),
            paper=550,
        ),
        TokenCounts(
            "reply, one revision",
            ours=_count_by_mode(_make_reply(), count_tokens),
            paper_keys=count_tokens(_dump(_make_paper_reply())),
            paper=596,
        ),
    ]


def _count_by_mode(answer: ARQ | dict[str, ARQ], count_tokens: CountTokens) -> dict[Mode, int]:
    counts: dict[Mode, int] = {}
    for mode in MODES:
        fields: dict[str, Any] = {"reasoning": _REASONING} if mode == "cot" else {}
        fields |= dump_in_mode(answer, mode)
        counts[mode] = count_tokens(_dump(fields))
    return counts


def _dump(answer: Any) -> str:
    return json.dumps(answer, ensure_ascii=False)


_REASONING = (
    "The customer asks for a drink, so this has to do with drinks and whether they are there. The agent looked up "
    "the lemonade earlier and said that it is in stock, but nobody has looked up the coffee that is asked for now. "
    "That is another drink, so the earlier look does not settle it and the stock has to be checked again."
)

_SEGMENT = (
    "check if the drink is available in stock",
    "The agent did CHECK IF THE DRINK IS AVAILABLE IN STOCK, but for the lemonade.",
)


def _make_judgement() -> Any:
    judgement_type: Any = choose_judgement(Guideline("a condition", "an action"))
    return judgement_type(
        condition="a client asks for a drink",
        condition_application_rationale="The client asks for a coffee in the last message.",
        condition_applies="yes",
        application=Application(
            action="check if the drink is available in stock",
            guideline_is_continuous=False,
            guideline_previously_applied_rationale=[_SEGMENT[1]],
            new_or_subtly_different_context="The coffee is another drink than the lemonade.",
            guideline_previously_applied="fully",
            is_missing_part_cosmetic_or_functional=None,
            guideline_should_reapply=True,
        ),
        score=9,
        should_apply=True,
        could_a_tool_change_that=False,
    )


_NEGATIVE: dict[str, Any] = {
    "condition_application_rationale": "The client asks for the bill.",
    "condition_applies": "no",
    "application": None,
    "score": 1,
    "should_apply": False,
}


def _make_paper_judgement() -> Any:
    ours = _make_judgement()
    segment, explanation = _SEGMENT
    return {
        "guideline_id": "G1",
        "condition": ours.condition,
        "condition_application_rationale": ours.condition_application_rationale,
        "condition_applies": True,
        "action": ours.application.action,
        "guideline_is_continuous": False,
        "capitalize_exact_words_from_action_in_the_explanations_to_avoid_semantic_pitfalls": True,
        "guideline_previously_applied_rationale": {segment: explanation},
        "guideline_current_application_refers_to_a_new_or_subtly_different_context_or_information": (
            ours.application.new_or_subtly_different_context
        ),
        "guideline_previously_applied": "fully",
        "guideline_should_reapply": True,
        "applies_score": 9,
    }


def book_table(guests: int, time: str) -> str:
    """Book a table.

    Args:
        guests: For how many.
        time: When, like 19:30.
    """
    return f"{guests} {time}"


_CALL = {
    "rationale": "The client wants a table for four at eight.",
    "subtleties": "It books at once, without asking again.",
    "comparison": "No other tool books a table.",
    "guests": "M3: four of us",
    "time": "M3: at eight",
}


def _make_tool_answer() -> ARQ:
    from langchain_core.tools import tool

    def make_decision(source: str, value: Any) -> dict[str, Any]:
        return {
            "value_in_context": source,
            "customer_should_provide_it": True,
            "already_provided_and_needed_again": None,
            "problematic_to_guess": True,
            "given": True,
            "value": value,
        }

    return make_tool_blueprint(ToolSchema(tool(book_table))).model_validate(
        {
            "last_customer_message": "For four of us, at eight, please.",
            "most_recent_customer_inquiry_or_need": "a table for four at eight",
            "most_recent_customer_inquiry_or_need_was_already_resolved": False,
            "book_table": {
                "subtleties_to_be_aware_of": _CALL["subtleties"],
                "tool_calls_for_candidate_tool": [
                    {
                        "applicability_rationale": _CALL["rationale"],
                        "relevant_subtleties": None,
                        "score": 9,
                        "arguments": {
                            "guests": make_decision(_CALL["guests"], 4),
                            "time": make_decision(_CALL["time"], "20:00"),
                        },
                        "same_call_is_already_staged": False,
                        "repeat_is_justified": False,
                        "should_run": True,
                    }
                ],
            },
        }
    )


def _make_paper_tool_answer() -> Any:
    def make_evaluation(source: str, value: Any) -> dict[str, Any]:
        # The paper lists these four questions in words; its keys are not printed, so these are short ones.
        return {
            "is_provided_in_the_current_context": source,
            "should_principally_be_provided_by_the_customer": True,
            "was_already_provided_and_needs_to_be_provided_again": "no",
            "would_be_problematic_to_guess_if_not_provided": True,
            "value": value,
        }

    return {
        "last_customer_message": "For four of us, at eight, please.",
        "most_recent_customer_inquiry_or_need": "a table for four at eight",
        "most_recent_customer_inquiry_or_need_was_already_resolved": False,
        "name": "book_table",
        "subtleties_to_be_aware_of": _CALL["subtleties"],
        "tool_calls_for_candidate_tool": [
            {
                "applicability_rationale": _CALL["rationale"],
                "applicability_score": 9,
                "argument_evaluations": {
                    "guests": make_evaluation(_CALL["guests"], 4),
                    "time": make_evaluation(_CALL["time"], "20:00"),
                },
                "same_call_is_already_staged": False,
                "comparison_with_rejected_tools_including_references_to_subtleties": _CALL["comparison"],
                "relevant_subtleties": "",
                "a_rejected_tool_would_have_been_a_better_fit_if_it_werent_already_rejected": False,
                "potentially_better_rejected_tool_name": "",
                "potentially_better_rejected_tool_rationale": "",
                "the_better_rejected_tool_should_clearly_be_run_in_tandem_with_the_candidate_tool": False,
                "should_run": True,
            }
        ],
    }


_CONTEXT = ["a lemon cake, and its price", "T1: what is in stock", "which cakes there are", "prices"]
_EVALUATIONS = [
    ("G1", "name what is in stock", "yes, T1"),
    ("the customer wants a cake today", "offer only what is there today", "yes, T1"),
]
_CONTENT = "The lemon cake is sold out today, I am sorry. We do have carrot cake."


def _make_reply() -> ARQ:
    return MessageBlueprint.model_validate(
        {
            "last_message_of_customer": "A lemon cake, please! What is it?",
            "context_evaluation": {
                "most_recent_customer_inquiries_or_needs": _CONTEXT[0],
                "parts_of_the_context_with_information_on_these_needs": _CONTEXT[1],
                "topics_with_sufficient_information_to_help": _CONTEXT[2],
                "what_i_do_not_have_enough_information_to_help_with": _CONTEXT[3],
                "was_i_given_specific_information_on_how_to_address_these_needs": True,
                "should_i_tell_the_customer_i_cannot_help_with_some_needs": True,
            },
            "insights": [{"insight": "the customer wants a cake today", "source": "M1"}],
            "evaluation_for_each_instruction": [
                {"instruction": instruction, "evaluation": evaluation, "data_available": data}
                for instruction, evaluation, data in _EVALUATIONS
            ],
            "revisions": [
                {
                    "revision_number": 1,
                    "content": _CONTENT,
                    "followed": ["G1"],
                    "factual_information_provided": [{"fact": "the lemon cake is sold out", "source": "T1"}],
                    "offered_services": [{"service": "carrot cake", "source": "T1"}],
                    "instructions_broken": [],
                    "is_repeat_message": False,
                }
            ],
        }
    )


def _make_paper_reply() -> Any:
    evaluations: list[dict[str, Any]] = []
    for number, (instruction, evaluation, data) in enumerate(_EVALUATIONS, start=1):
        evaluations.append(
            {
                "number": number,
                "instruction": instruction,
                "evaluation": evaluation,
                "data_available": data,
            }
        )
    return {
        "last_message_of_customer": "A lemon cake, please! What is it?",
        "guidelines": ["name what is in stock"],
        "context_evaluation": {
            "most_recent_customer_inquiries_or_needs": _CONTEXT[0],
            "parts_of_the_context_i_have_here_if_any_with_specific_information_on_how_to_address_these_needs": (
                _CONTEXT[1]
            ),
            "topics_for_which_i_have_sufficient_information_and_can_therefore_help_with": _CONTEXT[2],
            "what_i_do_not_have_enough_information_to_help_with_based_on_the_provided_information_that_i_have": (
                _CONTEXT[3]
            ),
            "was_i_given_specific_information_here_on_how_to_address_some_of_these_specific_needs": True,
            "should_i_tell_the_customer_i_cannot_help_with_some_of_those_needs": True,
        },
        "insights": ["the customer wants a cake today"],
        "evaluation_for_each_instruction": evaluations,
        "revisions": [
            {
                "revision_number": 1,
                "content": _CONTENT,
                "factual_information_provided": [
                    {
                        "fact": "the lemon cake is sold out",
                        "source": "the result of looking up the stock",
                        "is_source_based_in_this_prompt": True,
                    }
                ],
                "offered_services": [
                    {
                        "service": "carrot cake",
                        "source": "the result of looking up the stock",
                        "is_source_based_in_this_prompt": True,
                    }
                ],
                "instructions_followed": ["#1; name what is in stock", "the customer wants a cake today"],
                "instructions_broken": [],
                "is_repeat_message": False,
                "followed_all_instructions": True,
                "instructions_broken_due_to_missing_data": False,
                "instructions_broken_only_due_to_prioritization": False,
                "all_facts_and_services_sourced_from_prompt": True,
                "further_revisions_required": False,
            }
        ],
    }
