"""The agent that a designer specifies: its guidelines, tools, glossary and variables, checked as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from arq_graph.agent import entries
from arq_graph.agent.entries import Misfit
from arq_graph.agent.origin import Origin
from arq_graph.agent.parts import Guideline as Guideline
from arq_graph.agent.parts import Term as Term
from arq_graph.agent.parts import Variable as Variable
from arq_graph.agent.relations import Relations
from arq_graph.agent.tools import Toolbox, ToolLike, as_tool, tool_like
from arq_graph.errors import SpecError

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.tools import BaseTool

Confirmation = Literal["operator", "customer"]

FALLBACK = "I'm sorry, I cannot help with that right now. Please try again in a moment."

AGENT = {
    "name": entries.text,
    "profile": entries.text,
    "guidelines": entries.listing(entries.instance(Guideline), "guidelines"),
    "tools": entries.listing(tool_like, "tools"),
    "glossary": entries.listing(entries.instance(Term), "terms"),
    "variables": entries.listing(entries.instance(Variable), "variables"),
    "confirm": entries.mapping_of(entries.one_of("operator", "customer")),
    "fallback": entries.text,
}


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Agent:
    """A whole specification, checked; it does not change once it is made.

    Args:
        name: The agent's name.
        profile: Who it is and how it speaks, in words.
        guidelines: What it does when.
        tools: Tools that it may always call, whatever guideline is active.
        glossary: Words of the business.
        variables: What may be known about a customer or a conversation.
        confirm: For tools that need it, who confirms a call by tool name: "operator" (the run stops for a
            person who approves, edits or rejects) or "customer" (asked in the chat).
        fallback: What the agent says when no reply could be made.
        origin: The file that it was read from, if any; `from_yaml` sets it.

    Attributes:
        toolbox: Every tool by its name.
        grants: For each tool's name, the ids of the guidelines that it is attached to.
        always_available: Names of the tools that may always be called.
        relations: What the guidelines say about one another.

    Raises:
        SpecError: Two guidelines of one id, a relation that names none or goes in a circle, a tool that
            cannot be used, two tools of one name, a confirmation for an unknown tool, a value that does not
            fit.
    """

    name: str
    profile: str
    guidelines: tuple[Guideline, ...]
    tools: tuple[BaseTool, ...]
    glossary: tuple[Term, ...]
    variables: tuple[Variable, ...]
    confirm: Mapping[str, Confirmation]
    fallback: str
    origin: Origin | None
    toolbox: Mapping[str, BaseTool]
    grants: Mapping[str, tuple[str, ...]]
    always_available: frozenset[str]
    relations: Relations
    _by_id: Mapping[str, Guideline]

    def __init__(
        self,
        name: str,
        profile: str,
        guidelines: Sequence[Guideline] = (),
        tools: Sequence[ToolLike] = (),
        glossary: Sequence[Term] = (),
        variables: Sequence[Variable] = (),
        confirm: Mapping[str, Confirmation] = MappingProxyType({}),
        fallback: str = FALLBACK,
        *,
        origin: Origin | None = None,
    ) -> None:
        values = {
            "name": name,
            "profile": profile,
            "guidelines": guidelines,
            "tools": tools,
            "glossary": glossary,
            "variables": variables,
            "confirm": confirm,
            "fallback": fallback,
        }
        try:
            settled = entries.settle("the agent", AGENT, values)
            named = _with_ids(settled["guidelines"])
            _check_names("glossary", settled["glossary"])
            _check_names("variables", settled["variables"])
            relations = Relations(named)
            box = Toolbox(named, settled["tools"], folder=origin.folder if origin else None)
            _check_confirmations(settled["confirm"], box)
        except Misfit as misfit:
            raise (origin.error(misfit) if origin else SpecError(misfit.message)) from misfit.__cause__
        by_id = {guideline.id: replace(guideline, tools=box.attached[guideline.id]) for guideline in named}
        settled |= {
            "guidelines": tuple(by_id.values()),
            "tools": box.always,
            "confirm": MappingProxyType(settled["confirm"]),
            "origin": origin,
            "toolbox": MappingProxyType(box.by_name),
            "grants": MappingProxyType(box.grants),
            "always_available": frozenset(tool.name for tool in box.always),
            "relations": relations,
            "_by_id": by_id,
        }
        for field, value in settled.items():
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {len(self.guidelines)} guidelines, {len(self.toolbox)} tools)"

    def guideline(self, id: str) -> Guideline:
        """Return the guideline of that id.

        Raises:
            SpecError: There is none.
        """
        if id not in self._by_id:
            near = entries.suggestion(id, self._by_id)
            raise SpecError(f"agent {self.name!r} has no guideline of id {id!r}{near}")
        return self._by_id[id]

    def with_guidelines(self, guidelines: Sequence[Guideline]) -> Self:
        """Return the same agent with other guidelines.

        Raises:
            SpecError: As when an agent is made.
        """
        return type(self)(
            self.name,
            self.profile,
            guidelines,
            self.tools,
            self.glossary,
            self.variables,
            self.confirm,
            self.fallback,
            origin=self.origin,
        )

    def with_tools(self, tools: Mapping[str, ToolLike]) -> Self:
        """Return the same agent with other functions in the place of some of its tools.

        Args:
            tools: For each name of a tool that is replaced, the function or tool that stands there now, with its
                own arguments and description.

        Raises:
            SpecError: A name is that of no tool of this agent, or a function cannot be used as a tool.
        """
        bound = {}
        for name, value in tools.items():
            if name not in self.toolbox:
                near = entries.suggestion(name, self.toolbox)
                raise SpecError(f"agent {self.name!r} has no tool called {name!r} to be replaced{near}")
            try:
                tool = as_tool(_given(tool_like(value)))
            except Misfit as misfit:
                raise SpecError(f"what stands in the place of the tool {name!r} {misfit.message}") from misfit
            bound[name] = tool if tool.name == name else tool.model_copy(update={"name": name})

        def replaced(given: Sequence[ToolLike]) -> tuple[ToolLike, ...]:
            return tuple(bound.get(getattr(tool, "name", ""), tool) for tool in given)

        return type(self)(
            self.name,
            self.profile,
            [replace(guideline, tools=replaced(guideline.tools)) for guideline in self.guidelines],
            replaced(self.tools),
            self.glossary,
            self.variables,
            self.confirm,
            self.fallback,
            origin=self.origin,
        )

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Self:
        """Read an agent from a YAML file, with the answers that were prepared beside it.

        Tools and conditions named as "module:function" are imported, which runs those modules.

        Args:
            path: The file.

        Raises:
            SpecError: The file cannot be read, or something in it is wrong; it names file, line and what was
                expected.
        """
        from arq_graph.agent.agent_file import read_agent
        from arq_graph.agent.prepared_file import with_prepared_answers

        return with_prepared_answers(read_agent(path, cls))

    def prepare(self, model: BaseChatModel | str, *, path: str | os.PathLike[str] | None = None) -> Self:
        """Ask a model once, ahead of all conversations, what the matcher would ask in every turn.

        Is the action continuous, and could a tool's result make the condition true? What the designer decided
        or an earlier run answered is not asked.

        Args:
            model: A chat model, or its name as `Reasoner` takes it.
            path: Where answers are kept (JSON). None: beside the agent's file (`orders.prepared.json` beside
                `orders.yaml`), where `from_yaml` finds them; without a file they are not kept.

        Returns:
            The agent with both properties filled in.

        Raises:
            SpecError: The file of answers is not one, or cannot be written.
            ReasoningError: The model gave no valid answer for some guidelines; the others' answers are kept.
        """
        from arq_graph.agent.preparation import prepare

        return prepare(self, model, path=path)

    async def aprepare(
        self, model: BaseChatModel | str, *, path: str | os.PathLike[str] | None = None
    ) -> Self:
        """Do what `prepare` does, asynchronously."""
        from arq_graph.agent.preparation import aprepare

        return await aprepare(self, model, path=path)


def _given(tool: ToolLike) -> BaseTool | Callable[..., Any]:
    if isinstance(tool, str):
        raise Misfit(f"is the name {tool!r}; give the function itself")
    return tool


def _with_ids(guidelines: Sequence[Guideline]) -> list[Guideline]:
    """Give `G` and its place to each guideline without an id, or the next number that is free."""
    taken: dict[str, int] = {}
    for index, guideline in enumerate(guidelines):
        if guideline.id in taken:
            first = taken[guideline.id] + 1
            raise Misfit(
                f"guidelines {first} and {index + 1} have the same id {guideline.id!r}; give each its own",
                *("guidelines", index, "id"),
            )
        if guideline.id:
            taken[guideline.id] = index
    named = []
    for index, guideline in enumerate(guidelines):
        number = index + 1
        while not guideline.id and f"G{number}" in taken:
            number += 1
        id = guideline.id or f"G{number}"
        taken[id] = index
        named.append(replace(guideline, id=id))
    return named


def _check_names(field: str, named: Sequence[Term | Variable]) -> None:
    taken: set[str] = set()
    for index, entry in enumerate(named):
        if entry.name.casefold() in taken:
            raise Misfit(f"`{field}` holds {entry.name!r} twice; keep one of them", field, index, "name")
        taken.add(entry.name.casefold())


def _check_confirmations(confirm: Mapping[str, str], box: Toolbox) -> None:
    for name in confirm:
        if name not in box.by_name:
            raise Misfit(
                f"`confirm` names {name!r}, which is the name of no tool of this agent"
                + entries.suggestion(name, box.by_name),
                *("confirm", name),
            )
