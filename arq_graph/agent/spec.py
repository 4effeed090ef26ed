"""The agent that a designer specifies: its guidelines, tools, glossary and variables, checked as a whole."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Self

from langchain_core.tools import BaseTool
from pydantic import AfterValidator, PrivateAttr, ValidationInfo, model_validator

from arq_graph.agent.mcp import McpServer
from arq_graph.agent.parts import By, Part, Text, ToolField
from arq_graph.agent.parts import Confirmation as Confirmation
from arq_graph.agent.parts import Guideline as Guideline
from arq_graph.agent.parts import Term as Term
from arq_graph.agent.parts import Variable as Variable
from arq_graph.agent.relations import Relations
from arq_graph.agent.spec_errors import Place, Problem, misfits
from arq_graph.agent.tools import ToolLike, argument_schema, function_of
from arq_graph.errors import SpecError, suggestion

if TYPE_CHECKING:
    from arq_graph.models.resolve import ChatModelLike

FALLBACK = "I'm sorry, I cannot help with that right now. Please try again in a moment."


def prepared_path(file: Path) -> Path:
    """Where the answers for an agent's file are kept: `orders.prepared.json` beside `orders.yaml`."""
    return file.with_suffix(".prepared.json")


def _with_ids(guidelines: tuple[Guideline, ...]) -> tuple[Guideline, ...]:
    taken = {guideline.id for guideline in guidelines}
    named = []
    for number, guideline in enumerate(guidelines, start=1):
        if not guideline.id:
            id = next(id for n in itertools.count(number) if (id := f"G{n}") not in taken)
            guideline = guideline.model_copy(update={"id": id})
            taken.add(id)
        named.append(guideline)
    return tuple(named)


def _says(template: str, arguments: Sequence[str]) -> bool:
    """Whether a template holds all of these in braces, plainly, and nothing else."""
    with suppress(ValueError):
        parts = {part[1:] for part in Formatter().parse(template) if part[1] is not None}
        return parts == {(name, "", None) for name in arguments}
    return False


class Agent(Part):
    """A whole specification, checked; it does not change once it is made.

    `model_json_schema()` describes an agent's file to editors.

    Args:
        name: The agent's name.
        profile: Who it is and how it speaks, in words.
        guidelines: What it does when.
        tools: Tools that it may always call, whatever guideline is active.
        glossary: Words of the business.
        variables: What may be known about a customer or a conversation.
        confirm: By tool name, for tools that need it: who has to agree to a call before it runs.
        fallback: What the agent says when no reply could be made.
        mcp: In a file: the MCP servers, by name, whose tools are named as "mcp:server/tool".

    Raises:
        SpecError: Two guidelines of one id, a relation that names none or goes in a circle, a tool that cannot be
            used, two tools of one name, a confirmation for an unknown tool or one whose question does not use
            every argument, a value that does not fit.
    """

    name: Text
    profile: Text
    guidelines: Annotated[tuple[Guideline, ...], AfterValidator(_with_ids)] = ()
    tools: tuple[ToolField, ...] = ()
    glossary: tuple[Term, ...] = ()
    variables: tuple[Variable, ...] = ()
    confirm: Mapping[Text, Confirmation] = {}
    fallback: Text = FALLBACK
    mcp: Mapping[Text, McpServer] = {}

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
        ) -> None: ...

    @model_validator(mode="after")
    def _fits_together(self, info: ValidationInfo) -> Self:
        self._file = info.context.path if info.context else None
        if problems := [*self._used_twice(), *self.relations.problems(), *self._wrong_confirmations()]:
            raise misfits(*problems)
        return self

    def _used_twice(self) -> Iterator[Problem]:
        for field, key in (("guidelines", "id"), ("glossary", "name"), ("variables", "name")):
            seen: set[str] = set()
            for at, each in enumerate(getattr(self, field)):
                word = getattr(each, key).casefold()
                if word in seen:
                    yield (field, at, key), f"is used twice: {word!r}; give each its own"
                seen.add(word)
        for place, tool in self._placed_tools():
            if function_of(tool) != function_of(self.toolbox[tool.name]):
                yield place, f'holds a second tool called {tool.name!r}; rename one of the two: @tool("…")'

    def _placed_tools(self) -> Iterator[tuple[Place, BaseTool]]:
        for index, each in enumerate(self.guidelines):
            yield from ((("guidelines", index, "tools", at), tool) for at, tool in enumerate(each.tools))
        yield from ((("tools", at), tool) for at, tool in enumerate(self.tools))

    def _wrong_confirmations(self) -> Iterator[Problem]:
        for name, confirmation in self.confirm.items():
            if name not in self.toolbox:
                yield ("confirm", name), f"names no tool of this agent{suggestion(name, self.toolbox)}"
            elif confirmation.ask:
                arguments = list(argument_schema(self.toolbox[name]).get("properties", ()))
                if not _says(confirmation.ask, arguments):
                    takes = " and ".join(f"{{{each}}}" for each in arguments) or "no argument"
                    yield ("confirm", name, "ask"), f"must hold {takes}, and nothing else in braces"

    # Two agents are the same only if they are one: their tools are functions, which do not compare.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Agent({self.name!r}, {len(self.guidelines)} guidelines, {len(self.toolbox)} tools)"

    @cached_property
    def toolbox(self) -> Mapping[str, BaseTool]:
        """Every tool by its name; a function that stands several times is one tool."""
        box: dict[str, BaseTool] = {}
        for _, tool in self._placed_tools():
            box.setdefault(tool.name, tool)
        return MappingProxyType(box)

    @cached_property
    def grants(self) -> Mapping[str, tuple[str, ...]]:
        """For each tool's name, the ids of the guidelines that it is attached to."""
        granting: dict[str, dict[str, None]] = {name: {} for name in self.toolbox}
        for each in self.guidelines:
            for tool in each.tools:
                granting[tool.name][each.id] = None
        return {name: tuple(ids) for name, ids in granting.items()}

    @cached_property
    def always_available(self) -> frozenset[str]:
        """Names of the tools that may always be called."""
        return frozenset(tool.name for tool in self.tools)

    @cached_property
    def relations(self) -> Relations:
        """What the guidelines say about one another."""
        return Relations(self.guidelines)

    @property
    def file(self) -> Path | None:
        """The file that it was read from, absolute, if any."""
        return self._file

    def confirmed_by(self, *who: By) -> frozenset[str]:
        """Return the names of the tools whose calls one of these has to agree to."""
        return frozenset(name for name, confirmation in self.confirm.items() if confirmation.by in who)

    def guideline(self, id: str) -> Guideline:
        """Return the guideline of that id.

        Raises:
            SpecError: There is none.
        """
        by_id = self.relations.by_id
        if id not in by_id:
            raise SpecError(f"agent {self.name!r} has no guideline of id {id!r}{suggestion(id, by_id)}")
        return by_id[id]

    def replace(self, **changes: object) -> Self:
        """Return the same agent, of the same file, with some fields changed, checked again."""
        made = super().replace(**changes)
        made._file = self._file
        return made

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
        from arq_graph.agent.yaml_file import read_model

        agent = read_model(path, cls, what="agent file")
        if not (kept := prepared_path(Path(path))).exists():
            return agent
        from arq_graph.agent.preparation import filled, read_answers

        return filled(agent, read_answers(kept))

    def prepare(self, model: ChatModelLike, *, path: str | os.PathLike[str] | None = None) -> Self:
        """Ask a model once, ahead of all conversations, what the matcher would ask in every turn.

        Is the action continuous, and could a tool's result make the condition true? What the designer decided
        or an earlier run answered is not asked.

        Args:
            model: A chat model, or what else `Reasoner` takes for one.
            path: Where answers are kept (JSON). None: beside the agent's file (`orders.prepared.json` beside
                `orders.yaml`), where `from_yaml` finds them; without a file they are not kept.

        Returns:
            The agent with both properties filled in.

        Raises:
            SpecError: The file of answers is not one, or cannot be written.
            InputError: It is the offline model, which cannot tell.
            ReasoningError: The model gave no valid answer for some guidelines; the others' answers are kept.
        """
        from arq_graph.agent.preparation import prepare

        return prepare(self, model, path)
