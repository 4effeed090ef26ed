"""An agent's whole specification: guidelines, tools, glossary, variables and confirmations, validated together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Self

from langchain_core.tools import BaseTool
from pydantic import (
    AfterValidator,
    PrivateAttr,
    ValidationInfo,
    model_validator,
)

from arq_graph.agent.check import Check, CheckedSide
from arq_graph.agent.confirmation_rule import Confirmation, ConfirmedBy
from arq_graph.agent.consistency import (
    NAMED_PARTS,
    find_draft_problems,
    find_repeated_names,
    find_rule_problems,
    find_wrong_confirmations,
)
from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.guideline import Guideline, ToolField, assign_ids
from arq_graph.agent.journey import Journey
from arq_graph.agent.knowledge import Knowledge, Retriever
from arq_graph.agent.mcp import McpServer
from arq_graph.agent.notebook import render_table
from arq_graph.agent.offer import Offer, assign_offer_ids
from arq_graph.agent.part import Part, Text
from arq_graph.agent.relations import Relations
from arq_graph.agent.reply import Composition, Reply, find_wrong_replies
from arq_graph.agent.spec_errors import Place, Problem, make_validation_error
from arq_graph.agent.takeover import HANDED_OVER
from arq_graph.agent.terms import Term, Variable
from arq_graph.agent.tools import ToolLike, get_function, replace_tools
from arq_graph.agent.yaml_file import read_model
from arq_graph.errors import SpecError, suggestion

if TYPE_CHECKING:
    from arq_graph.models.resolve import ChatModelLike

FALLBACK = "I'm sorry, I cannot help with that right now. Please try again in a moment."
UNREADABLE = "I'm sorry, I can't open what you sent. Please write what it says, or send it as a picture."


class Agent(Part):
    """An agent's whole specification. It is validated when it is made, and immutable.

    `model_json_schema()` describes an agent's file to editors.

    Args:
        name: The agent's name.
        profile: Who the agent is and how it speaks, in words.
        guidelines: What it does when.
        journeys: Flows of several steps.
        offers: What it can do and may mention unasked where it fits.
        replies: Texts that it may send as they are.
        composition: How it uses them. free: not at all. prefer: where one fits; otherwise it writes its own words.
            strict: it sends nothing else, with values that code found in the sources that each field allows.
        tools: Tools that it can always call, whichever guidelines are active.
        glossary: Words of the business.
        variables: Values that may be known about the customer.
        confirm: By tool name, for tools that need it: who has to agree to a call before it runs.
        fallback: What the agent says when no reply could be made.
        unreadable: What it says when a message comes with something that the model can't be shown, such as a PDF.
        knowledge: What it may look up: LangChain retrievers, whose passages the prompts hold; see `Knowledge`.
        mcp: In a file: the MCP servers, by name, whose tools are named as "mcp:server/tool".
        checks: What is checked in the customer's messages and in the replies.
        handed_over: What the agent says when it hands the conversation over to a person.

    Raises:
        SpecError: A value isn't valid for its field, ids or names of tools repeat, a relation is wrong, a tool can't be
            used, or a confirmation is for an unknown tool or its question doesn't use every argument.
    """

    name: Text
    profile: Text
    guidelines: Annotated[tuple[Guideline, ...], AfterValidator(assign_ids)] = ()
    tools: tuple[ToolField, ...] = ()
    glossary: tuple[Term, ...] = ()
    variables: tuple[Variable, ...] = ()
    confirm: Mapping[Text, Confirmation] = {}
    fallback: Text = FALLBACK
    unreadable: Text = UNREADABLE
    mcp: Mapping[Text, McpServer] = {}
    journeys: tuple[Journey, ...] = ()
    knowledge: tuple[Knowledge, ...] = ()
    offers: Annotated[tuple[Offer, ...], AfterValidator(assign_offer_ids)] = ()
    replies: tuple[Reply, ...] = ()
    composition: Composition = "free"
    checks: tuple[Check, ...] = ()
    handed_over: Text = HANDED_OVER

    _file: Path | None = PrivateAttr(None)

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            profile: str,
            guidelines: Sequence[Guideline] = (),
            tools: Sequence[ToolLike] = (),
            glossary: Sequence[Term] = (),
            variables: Sequence[Variable] = (),
            confirm: Mapping[str, Confirmation | Mapping[str, str] | str] = MappingProxyType({}),
            fallback: str = FALLBACK,
            unreadable: str = UNREADABLE,
            *,
            journeys: Sequence[Journey] = (),
            knowledge: Sequence[Knowledge | Retriever] = (),
            offers: Sequence[Offer | str] = (),
            replies: Sequence[Reply] = (),
            composition: Composition = "free",
            checks: Sequence[Check] = (),
            handed_over: str = HANDED_OVER,
        ) -> None: ...

    @model_validator(mode="after")
    def _is_consistent(self, info: ValidationInfo) -> Self:
        self._file = info.context.path if info.context else None
        offer_ids = [offer.id for offer in self.offers]
        problems = list(find_rule_problems(self.guidelines, offer_ids, self.journeys))
        problems.extend(self._find_duplicates())
        questions = {name: confirmation.ask for name, confirmation in self.confirm.items()}
        problems.extend(find_wrong_confirmations(questions, self.toolbox))
        variables = [variable.name for variable in self.variables]
        problems.extend(
            find_wrong_replies(
                self.replies,
                self.composition,
                self.toolbox,
                variables,
                has_knowledge=bool(self.knowledge),
            )
        )
        if problems:
            raise make_validation_error(*problems)
        return self

    def _find_duplicates(self) -> Iterator[Problem]:
        for field, key in NAMED_PARTS.items():
            names = [getattr(part, key) for part in getattr(self, field)]
            yield from find_repeated_names(field, key, names)
        for place, tool in self._list_tools():
            if get_function(tool) != get_function(self.toolbox[tool.name]):
                yield place, f'holds a second tool called {tool.name!r}; rename one of the two: @tool("…")'

    def _list_tools(self) -> Iterator[tuple[Place, BaseTool]]:
        for position, guideline in enumerate(self.guidelines):
            for index, tool in enumerate(guideline.tools):
                yield ("guidelines", position, "tools", index), tool
        for position, journey in enumerate(self.journeys):
            for number, step in enumerate(journey.steps):
                for index, tool in enumerate(step.tools):
                    yield ("journeys", position, "steps", number, "tools", index), tool
        for index, tool in enumerate(self.tools):
            yield ("tools", index), tool

    # Agents are compared by identity, because functions (their tools) can't be compared.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {len(self.guidelines)} guidelines, {len(self.toolbox)} tools)"

    def _repr_html_(self) -> str:
        """Return the guidelines as a notebook shows them."""
        rows = []
        for guideline in self.guidelines:
            tools = ", ".join(tool.name for tool in guideline.tools)
            condition = guideline.condition_text or "always"
            rows.append((guideline.id, condition, guideline.action or "", tools))
        return render_table(("id", "when", "do", "tools"), rows, [repr(self)])

    @cached_property
    def toolbox(self) -> Mapping[str, BaseTool]:
        """Every tool by its name; a function that is listed several times is one tool."""
        box: dict[str, BaseTool] = {}
        for _, tool in self._list_tools():
            box.setdefault(tool.name, tool)
        return MappingProxyType(box)

    @cached_property
    def judged_rules(self) -> tuple[Guideline, ...]:
        """The guidelines that are judged every turn: the designer's, those of offers, and conditions of journeys."""
        rules = [offer.rule for offer in self.offers]
        rules += [journey.condition_rule for journey in self.journeys if journey.condition is not None]
        return self.guidelines + tuple(rules)

    @cached_property
    def rules(self) -> tuple[Guideline, ...]:
        """All guidelines, among them those that stand for offers, and for journeys and their steps."""
        rules = list(self.guidelines)
        rules.extend(offer.rule for offer in self.offers)
        for journey in self.journeys:
            rules.append(journey.condition_rule)
            rules.extend(journey.step_rules.values())
        return tuple(rules)

    @cached_property
    def grants(self) -> Mapping[str, tuple[str, ...]]:
        """For each tool's name, the ids of the guidelines that list it."""
        grants: dict[str, tuple[str, ...]] = dict.fromkeys(self.toolbox, ())
        for guideline in self.rules:
            for name in {tool.name for tool in guideline.tools}:
                grants[name] += (guideline.id,)
        return grants

    @cached_property
    def always_available(self) -> frozenset[str]:
        """Names of the tools that can always be called."""
        return frozenset(tool.name for tool in self.tools)

    @cached_property
    def relations(self) -> Relations:
        """The relations between the guidelines."""
        return Relations(self.rules)

    @cached_property
    def fingerprint(self) -> str:
        """A short text by which records tell agents of one name apart; the same in every process."""
        guidelines = [[guideline.id, guideline.condition_text, guideline.action] for guideline in self.rules]
        return fingerprint(self.name, self.profile, guidelines, sorted(self.toolbox))[-12:]

    @property
    def file(self) -> Path | None:
        """The absolute path of the file that the agent was read from, if any."""
        return self._file

    def select_checks(self, on: CheckedSide) -> tuple[Check, ...]:
        """Return the checks of what comes in, or of what goes out."""
        return tuple(check for check in self.checks if check.on == on)

    def get_confirmed_tools(self, *by: ConfirmedBy) -> frozenset[str]:
        """Return the names of the tools whose calls need the agreement of one of these."""
        return frozenset(name for name, confirmation in self.confirm.items() if confirmation.by in by)

    def get_guideline(self, id: str) -> Guideline:
        """Return the guideline with that id.

        Raises:
            SpecError: No guideline has that id.
        """
        by_id = self.relations.by_id
        if id not in by_id:
            raise SpecError(f"agent {self.name!r} has no guideline of id {id!r}{suggestion(id, by_id)}")
        return by_id[id]

    def get_journey(self, id: str) -> Journey:
        """Return the journey with that id.

        Raises:
            SpecError: No journey has that id.
        """
        by_id = {journey.id: journey for journey in self.journeys}
        if id not in by_id:
            raise SpecError(f"agent {self.name!r} has no journey of id {id!r}{suggestion(id, by_id)}")
        return by_id[id]

    def replace_tools(self, tools: Mapping[str, BaseTool]) -> Self:
        """Return a copy in which tools, by their names, take the place of others wherever these are listed."""
        agent: Self = replace_tools(self, tools)
        return agent

    def describe_instructions(self) -> str:
        """Return the profile, the guidelines and the journeys as a text, for a prompt without a matcher."""
        lines = [self.profile, ""]
        for guideline in self.guidelines:
            if guideline.action is None:
                continue
            condition = f"when {guideline.condition_text}" if guideline.condition else "always"
            lines.append(f"- {condition}: {guideline.action}")
        lines.extend(journey.describe() for journey in self.journeys)
        return "\n".join(lines).strip()

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields changed, validated again; it keeps the file's path."""
        agent = super().replace(**changes)
        agent._file = self._file
        return agent

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Self:
        """Read an agent from a YAML file, together with the prepared answers beside it.

        Modules that the file names ("module:function") are imported.

        Args:
            path: The file.

        Raises:
            SpecError: The file can't be read or isn't valid; the message says file, line and what was expected.
        """
        agent = read_model(path, cls, file_kind="agent file", find_more=find_draft_problems)
        answers_path = get_answers_path(Path(path))
        if not answers_path.exists():
            return agent
        from arq_graph.agent.preparation import apply_answers, read_answers

        return agent._take_properties(apply_answers(agent.judged_rules, read_answers(answers_path)))

    def prepare(self, model: ChatModelLike) -> Self:
        """Ask a model once, before any conversation, what the matcher would otherwise ask every turn.

        The questions are: is the action continuous, and could a tool's result make the condition true? They aren't
        asked if the designer or an earlier run has answered them. The answers are stored beside the agent's file
        (`orders.prepared.json` beside `orders.yaml`), where `from_yaml` finds them; without a file they aren't stored.

        Args:
            model: A chat model, or anything else that `Reasoner` accepts.

        Returns:
            The agent with both properties filled in.

        Raises:
            SpecError: The file of answers isn't valid.
            InputError: The model is the offline model, which can't answer the questions, or the file can't be written.
            ReasoningError: The model gave no valid answer for some guidelines; the other answers are stored.
        """
        from arq_graph.agent.preparation import prepare_guidelines

        answers_path = get_answers_path(self.file) if self.file else None
        return self._take_properties(prepare_guidelines(self.judged_rules, model, answers_path))

    def _take_properties(self, rules: Sequence[Guideline]) -> Self:
        """Return a copy with the static properties of these guidelines, in which conditions of journeys count, too."""
        by_id = {rule.id: rule for rule in rules}
        journeys: list[Journey] = []
        for journey in self.journeys:
            if journey.id in by_id:
                journey = journey.replace(sensitive_to_tools=by_id[journey.id].sensitive_to_tools)
            journeys.append(journey)
        guidelines = [by_id[guideline.id] for guideline in self.guidelines]
        return self.replace(guidelines=guidelines, journeys=journeys)


def get_answers_path(file: Path) -> Path:
    """Return where the prepared answers for an agent's file are stored: `orders.prepared.json` for `orders.yaml`."""
    return file.with_suffix(".prepared.json")
