"""The blueprints of judgements: the queries about each guideline (ARQ paper, 5.1.1 and Appendix A).

The query keys are the paper's, except the two response keys and `new_or_subtly_different_context`, whose original is
longer than the 64 characters that some providers allow for a property. Two things aren't in the paper: the third answer
to a condition, "not known yet", and the response key that says whether a tool's result could change the answer, which
decides in every mode what a re-match judges. Most guidelines of a large agent don't hold, so the queries about an
action are in one part, which is then null.

The docstring of a blueprint is sent to the model as its description. Docstrings and queries are short, since the schema
is sent with each call. The prompt explains them at length, and says once that a query that begins with "If" is answered
with null where that is not so.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, Literal, Self

from pydantic import ModelWrapValidatorHandler, create_model, model_validator

from arq_graph.agent.guideline import Guideline
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond

VERBATIM_WORDS = 30
"""The most words of a condition or an action that is repeated word for word."""

_VERBATIM = f"Verbatim; in short if over {VERBATIM_WORDS} words."

_OPTIONAL_KEYS = ("should_apply", "could_a_tool_change_that")


class Continuity(ARQ, ABC, defer_build=True):
    """The query about the continuity of an action, asked before anything else about it."""

    action: str = reinstate(_VERBATIM)
    guideline_is_continuous: bool = query("Is any part continuous?")


class ActionApplication(ARQ, ABC, defer_build=True):
    """The queries about an action that may have been done before."""

    action: str = reinstate(_VERBATIM)
    guideline_previously_applied_rationale: list[str] = query(
        "Each part IN CAPITALS: was it done? [] if continuous.", max_length=12
    )
    new_or_subtly_different_context: str | None = query("If done, and something is new since then: what?")
    guideline_previously_applied: Literal["no", "partially", "fully"] | None = query(
        "If not continuous: was it done?", when=lambda answer: not answer.is_continuous
    )
    is_missing_part_cosmetic_or_functional: Literal["cosmetic", "functional"] | None = query(
        "If partially.", when=lambda answer: answer.guideline_previously_applied == "partially"
    )
    guideline_should_reapply: bool | None = respond(
        "If fully or partially: is it, or its missing part, due again?",
        when=lambda answer: answer.guideline_previously_applied in ("partially", "fully"),
    )

    @property
    def is_continuous(self) -> bool:
        """True if any part of the action is continuous.

        False if that wasn't asked, because the designer says that it isn't.
        """
        return getattr(self, "guideline_is_continuous", False)

    @property
    def is_owed(self) -> bool:
        """True if the action was done in part, and the missing part is functional."""
        is_functional = self.is_missing_part_cosmetic_or_functional == "functional"
        return self.guideline_previously_applied == "partially" and is_functional

    @property
    def is_due(self) -> bool:
        """True if the action is continuous, wasn't done, lacks a functional part, or is due again (Appendix A)."""
        is_new = self.guideline_previously_applied == "no"
        return self.is_continuous or is_new or self.is_owed or bool(self.guideline_should_reapply)


class OneTimeApplication(ActionApplication):
    """Its action."""


class Application(ActionApplication, Continuity):
    """Its action."""


class Judgement(ARQ, defer_build=True):
    """A guideline.

    Subclass it to ask more about every guideline, or `ConditionJudgement` for those whose condition the model judges.
    """

    score: int = respond("1 to 10.", ge=1, le=10)

    @model_validator(mode="wrap")
    @classmethod
    def _accept_other_keys(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Drop the answers to queries that weren't asked, and let an endpoint leave out the one about tools."""
        if isinstance(value, dict):
            fields = cls.__pydantic_fields__
            value = dict(value)
            for key in _OPTIONAL_KEYS:
                if key not in fields:
                    value.pop(key, None)
            if "could_a_tool_change_that" in fields:
                # Unanswered: it is judged again after a tool's result.
                value.setdefault("could_a_tool_change_that", True)
        return handler(value)


class DueJudgement(Judgement, defer_build=True):
    """A guideline with an action."""

    should_apply: bool = respond("Is the action due?")


class ConditionJudgement(Judgement, defer_build=True):
    """A guideline."""

    condition: str = reinstate(_VERBATIM)
    condition_application_rationale: str = query("Briefly why it holds, or not, or what decides it.")
    condition_applies: Literal["no", "yes", "not_known_yet"] = query("Does it hold?")


class ToolSensitivity(ConditionJudgement):
    """The question about the tools of an agent that has some."""

    could_a_tool_change_that: bool = respond(
        "Could a tool's result later in this turn make the condition true, or true anew?"
    )


class ObservationJudgement(ConditionJudgement):
    """An observation."""


class ConditionAndDueJudgement(ConditionJudgement, DueJudgement, ABC):
    """The queries about a condition, and whether the action is due."""


class ContinuousJudgement(ConditionAndDueJudgement):
    """A guideline."""


class OneTimeJudgement(ConditionAndDueJudgement):
    """A guideline."""

    application: OneTimeApplication | None = query("If it holds.")


class GuidelineJudgement(ConditionAndDueJudgement):
    """A guideline."""

    application: Application | None = query("If it holds.")


class OneTimeActionJudgement(DueJudgement):
    """A guideline whose condition holds."""

    application: OneTimeApplication = query("The action.")
    score: int = respond("10: the condition holds.", ge=1, le=10)


class ActionJudgement(DueJudgement):
    """A guideline whose condition holds."""

    application: Application = query("The action.")
    score: int = respond("10: the condition holds.", ge=1, le=10)


# The blueprint by what is known about a guideline; an observation, which has no action, gets ObservationJudgement:
#
# condition is judged by | continuity is asked | action isn't continuous | action is continuous
# -----------------------|---------------------|-------------------------|---------------------
# the model              | GuidelineJudgement  | OneTimeJudgement        | ContinuousJudgement
# code                   | ActionJudgement     | OneTimeActionJudgement  | (isn't asked about)
def choose_judgement(
    guideline: Guideline, custom: type[Judgement] = Judgement, *, has_tools: bool = True
) -> type[Judgement]:
    """Return the blueprint that asks only what isn't known about a guideline, and the queries of a custom one.

    Code knows a condition that is a function or always true, and the designer may say whether the action is
    continuous. An observation has no action, so only its condition is judged. Whether a tool could change the answer is
    asked only if the agent has tools and the designer hasn't said it (`sensitive_to_tools`).
    """
    is_continuity_known = guideline.continuous is not None
    asks_about_tools = has_tools and guideline.sensitive_to_tools is None
    shipped: type[Judgement]
    if not isinstance(guideline.condition, str):
        shipped = OneTimeActionJudgement if is_continuity_known else ActionJudgement
    elif guideline.action is None:
        shipped = ObservationJudgement
    elif guideline.continuous:
        shipped = ContinuousJudgement
    else:
        shipped = OneTimeJudgement if is_continuity_known else GuidelineJudgement
    return _add_queries(custom, shipped, asks_about_tools)


@cache
def _add_queries(
    custom: type[Judgement], shipped: type[Judgement], asks_about_tools: bool
) -> type[Judgement]:
    """Add the query about tools and those of a custom judgement to a shipped one.

    The query about tools, and a custom subclass of `ConditionJudgement`, are added only if the model judges the
    condition.
    """
    is_about_condition = issubclass(shipped, ConditionJudgement)
    name = shipped.__name__
    bases: list[type[Judgement]] = [shipped]
    if asks_about_tools and is_about_condition:
        name += "WithTools"  # unique within a schema, where Pydantic would write out the module otherwise
        bases.append(ToolSensitivity)
    is_custom = custom not in (Judgement, ConditionJudgement)
    if is_custom and (is_about_condition or not issubclass(custom, ConditionJudgement)):
        bases.insert(0, custom)
    if len(bases) == 1:
        return shipped
    return create_model(name, __base__=tuple(bases), __doc__=shipped.__doc__)


def make_batch_blueprint(
    guidelines: Sequence[Guideline], custom: type[Judgement] = Judgement, *, has_tools: bool = True
) -> type[ARQ]:
    """Return one blueprint for several guidelines: a property for each id, null if that guideline isn't judged."""
    judgements: list[tuple[str, type[Judgement]]] = []
    for guideline in guidelines:
        judgements.append((guideline.id, choose_judgement(guideline, custom, has_tools=has_tools)))
    return _make_batch_blueprint(tuple(judgements))


@lru_cache(maxsize=256)  # making a class takes long, and the next agent may have the same ids
def _make_batch_blueprint(judgements: Sequence[tuple[str, type[Judgement]]]) -> type[ARQ]:
    fields: dict[str, Any] = {}
    for id, judgement in judgements:
        fields[id] = (judgement | None, respond(""))
    return create_model("GuidelineBatch", __base__=ARQ, __doc__="Judge each guideline.", **fields)
