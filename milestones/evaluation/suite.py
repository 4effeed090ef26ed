"""Scenarios that agents are tried on together, in Python or as a YAML file.

```yaml
name: Order desk
seed: 7
defaults:                                # for every scenario that does not say otherwise
  agent: agent.yaml                      # beside this file
  milestones: milestones.yaml
  world: tools:Shop                      # a class in tools.py beside this file, or in an installed module
  limits: {turns: 12, calls: 200, seconds: 300}
  use_case: orders
  kinds: [helpful, perturbed, unhelpful] # one scenario for each kind of user
  user: {persona: impatient}
scenarios:
- name: late boots
  goal: expedite_shipping                # the milestone that serves what the user came for
  user:
    intents:
    - request: Where is my order?
      slots: {order_id: ORD-1002}
      accepts: [expedited shipping]
include: [more.yaml]                     # further scenarios, of suites beside this one
```

A scenario that `says` one message and what to `expect` of the answer is shown in `docs/evaluation.md`.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from string import Template
from typing import Annotated, Any, Self, cast

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    InstanceOf,
    JsonValue,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from arq_graph.agent.modules import load
from arq_graph.agent.part import Part
from arq_graph.agent.spec import Agent
from arq_graph.agent.spec_errors import Place, Problem, make_validation_error
from arq_graph.agent.yaml_file import read_model, read_text
from arq_graph.errors import SpecError, suggestion
from arq_graph.milestones.evaluation.expectation import Before, Expectation
from arq_graph.milestones.evaluation.scenario import Limits, Scenario, World
from arq_graph.milestones.graph_file import parse_milestones
from arq_graph.milestones.users.user_spec import Intents, Kind, Text, UserSpec

# `$name`, as in `string.Template`; a regular expression has the sign itself as `\$` or `[$]`.
_ARGUMENT = re.compile(r"(?<![\\$])\$\{?([a-z_]\w*)", re.ASCII | re.IGNORECASE)

_INSTEAD = (("says", "user"), ("says", "kinds"), ("expect", "milestones"))


@dataclass(frozen=True)
class PlannedConversation:
    """One conversation to be held: the arm's name, the scenario, its run from 1, and what all chance depends on."""

    arm: str
    scenario: Scenario
    run: int
    seed: int

    @property
    def id(self) -> str:
        """What tells it from every other one of its suite."""
        return f"{self.scenario.name} / {self.arm} / {self.run}"


def _named_apart(scenarios: tuple[Any, ...]) -> tuple[Any, ...]:
    [(name, count)] = Counter(one.name for one in scenarios).most_common(1)
    if count > 1:
        raise ValueError(f"has two scenarios called {name!r}; give each its own name")
    return scenarios


class Suite(Part):
    """Scenarios, each with a name of its own.

    Args:
        scenarios: The scenarios, 1 or more.
        seed: What all chance depends on.
        name: What it is called.

    Raises:
        SpecError: Two scenarios have one name, or there is none at all.
    """

    scenarios: Annotated[tuple[InstanceOf[Scenario], ...], Field(min_length=1), AfterValidator(_named_apart)]
    seed: int = 0
    name: str = "suite"

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> Suite:
        """Read a suite from a YAML file; files and modules that it names are looked for beside it.

        Raises:
            SpecError: Something is wrong; all of it is told, with file and line.
        """
        file = read_model(path, SuiteFile, what="suite file")
        return cls(scenarios=file._made, seed=file.seed, name=file.name or Path(path).stem)

    def plan_conversations(self, arms: Sequence[str], runs: int) -> Iterator[PlannedConversation]:
        """Yield every conversation; the arms of a run stand together, so that a run that is stopped leaves pairs.

        Args:
            arms: The names of the arms.
            runs: The number of conversations of each scenario with each arm, 1 or more.
        """
        for run, scenario in product(range(1, runs + 1), self.scenarios):
            seed = derive_seed(self.seed, scenario.name, run)
            for arm in arms:
                yield PlannedConversation(arm, scenario, run, seed)


def derive_seed(suite: int, scenario: str, run: int) -> int:
    """The seed of a conversation: the same on every machine, and for every arm."""
    text = f"{suite}\0{scenario}\0{run}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big")


class PartialUser(UserSpec):
    """Some of what there is to say about a user; the rest stands in `defaults`, or the other way round."""

    intents: Intents = ()


class WorldEntry(Part):
    """How a world is made: of a class or function "module:name", with the other keys as its arguments."""

    model_config = ConfigDict(extra="allow")

    of: Text

    def made(self, folder: Path) -> Any:
        """The function that makes it.

        Raises:
            SpecError: There is no such function, or it does not take these arguments.
        """
        arguments = self.model_extra or {}
        world = cast(World, load(self.of, folder))
        try:
            signature = inspect.signature(world)
            signature.bind(**({"seed": 0} if "seed" in signature.parameters else {}) | arguments)
        except TypeError as error:
            said = f"names {self.of!r}, but a world is a class or function that takes the given arguments: {error}"
            raise SpecError(said) from None
        return partial(world, **arguments) if arguments else world


class Defaults(Part):
    """What holds for every scenario that does not say otherwise.

    Args:
        agent: The agent's YAML file.
        milestones: The milestone file; `$name` in it stands for an argument of the world's.
        world: The class or function that makes the world of one conversation: "module:name"; or a mapping with that
            under `of`, and its arguments.
        user: Who talks to the agent.
        kinds: Kinds of users: one scenario for each.
        limits: How far a conversation may go.
        use_case: What kind of conversation it is, as reports group them.
        task: What its runs are runs of.
        goal: The milestone that serves what the user came for.
    """

    agent: Text | None = None
    milestones: Text | None = None
    world: Text | WorldEntry | None = None
    user: PartialUser = PartialUser()
    kinds: tuple[Kind, ...] = ()
    limits: Limits = Limits()
    use_case: Text | None = None
    task: Text | None = None
    goal: Text | None = None


class ScenarioEntry(Defaults):
    """A scenario of a file; its name is unique in the suite.

    Args:
        says: What the user says, word for word; instead of `user`.
        history: What was said and done before.
        expect: What the answer must be; instead of `milestones`.
        variables: Values of the agent's variables, by name.
        probes: What it is for, in a sentence.
        twin: The scenario that differs in one thing, and in what is expected.
    """

    name: Text
    says: Text | None = None
    history: tuple[Before, ...] = ()
    expect: Expectation | None = None
    variables: Mapping[str, JsonValue] = {}
    probes: Text | None = None
    twin: Text | None = None


class SuiteFile(Part):
    """A suite as a YAML file.

    Args:
        name: What it is called; the file's name unless given.
        seed: What all chance depends on.
        defaults: What holds for every scenario that does not say otherwise.
        scenarios: The scenarios.
        include: Suite files, beside this one, whose scenarios come after its own.
    """

    name: Text | None = None
    seed: int = 0
    defaults: Defaults = Defaults()
    scenarios: tuple[ScenarioEntry, ...] = ()
    include: tuple[Text, ...] = ()

    _made: tuple[Scenario, ...] = PrivateAttr()  # of each entry one, or one for each kind of user

    @model_validator(mode="after")
    def _can_be_used(self, info: ValidationInfo) -> Self:
        document: Any = info.context
        folder: Path = document.folder
        graph = cache(lambda text, file: parse_milestones(text, file=str(file)))
        fields: dict[str, Any] = {}
        readers: dict[str, Callable[[Any], Any]] = {
            "agent": cache(lambda name: Agent.from_yaml(folder / name)),  # several scenarios name one file
            "milestones": lambda name: graph(_filled(folder / name, fields.get("world")), folder / name),
            "world": lambda world: (WorldEntry(of=world) if isinstance(world, str) else world).made(folder),
        }
        made: list[Scenario] = []
        included: list[Scenario] = []
        wrong: list[Any] = []
        for index, name in enumerate(self.include):
            try:
                included += Suite.from_yaml(folder / name).scenarios
            except SpecError as error:
                wrong += _told(("include", index), error)
        names = None if wrong else {*(one.name for one in self.scenarios), *(one.name for one in included)}
        count = Counter(one.name for one in self.scenarios)
        for index, entry in enumerate(self.scenarios):
            fields = self._fields(entry)
            place: Place = ("scenarios", index)
            wrong += _told(place, make_validation_error(*_doubtful(entry, names, count[entry.name])))
            unread = len(wrong)
            for key in [each for each in readers if fields.get(each)]:
                try:
                    fields[key] = readers[key](fields[key])
                except (SpecError, ValidationError) as error:
                    wrong += _told((*(place if key in entry.model_fields_set else ["defaults"]), key), error)
            try:
                made += _of_each_kind(fields) if len(wrong) == unread else ()
            except (SpecError, ValidationError) as error:
                wrong += _told(place, error)
        if wrong:
            raise ValidationError.from_exception_data("suite file", wrong)
        self._made = (*made, *included)
        if not self._made:
            raise make_validation_error(
                (("scenarios",), "has no scenario; give one, or `include` a file that has some")
            )
        _named_apart(self._made)
        return self

    def _fields(self, entry: ScenarioEntry) -> dict[str, Any]:
        """An entry, with the defaults for what it leaves out."""
        own = entry.model_fields_set
        whole = {key: getattr(part, key) for part in (self.defaults, entry) for key in part.model_fields_set}
        for key in ("user", "limits"):
            parts = [getattr(part, key).model_dump(exclude_unset=True) for part in (self.defaults, entry)]
            whole[key] = parts[0] | parts[1]
        for mine, other in _INSTEAD:
            if mine in own:
                whole.pop(other, None)
        if "user" not in own and not whole.get("user", {}).get("intents"):
            whole.pop("user", None)  # defaults alone make no user
        return whole


def _filled(file: Path, world: Any) -> str:
    """The text of a milestone file, with the values of the world's arguments in the places of their names."""
    text = read_text(file, what="milestone file")
    given = (world.model_extra or {}) if isinstance(world, WorldEntry) else {}
    for found in _ARGUMENT.finditer(text):
        if found[1] not in given:
            said = f"`{found[0]}` stands for an argument that the world is not given{suggestion(found[1], given)}"
            raise SpecError(said, file=str(file), line=text.count("\n", 0, found.start()) + 1)
    return Template(text).safe_substitute(given)


def _doubtful(entry: ScenarioEntry, names: set[str] | None, count: int) -> Iterator[Problem]:
    """Mistakes that would otherwise pass: a name of several scenarios, of none, or without a value."""
    if count > 1:
        yield ("name",), f"is {entry.name!r}, as is that of another scenario; give each its own"
    if names and entry.twin and entry.twin not in (others := names - {entry.name}):
        near = suggestion(entry.twin, others)
        yield ("twin",), f"the twin {entry.twin!r} is no other scenario of the suite{near}"
    for mine, other in _INSTEAD:
        if {mine, other} <= entry.model_fields_set:
            yield (other,), f"stands beside `{mine}`, which takes its place; leave one of them out"
    if entry.expect and (found := _ARGUMENT.search(entry.expect.model_dump_json())):
        said = f"has `{found[0]}`, which is replaced by a world's argument only in milestone files; write the value"
        yield ("expect",), said


def _told(place: Place, error: SpecError | ValidationError) -> list[Any]:
    """What is wrong at a place, as Pydantic's errors."""
    if isinstance(error, SpecError):
        error = make_validation_error(((), error))
    return [each | {"loc": (*place, *each["loc"])} for each in error.errors()]


def _of_each_kind(fields: dict[str, Any]) -> Iterator[Scenario]:
    kinds, task = fields.pop("kinds", ()), fields.pop("task", None)
    for kind in kinds or (None,):
        of_kind = f" ({kind})" if kind else ""
        named = {"name": f"{fields['name']}{of_kind}", "task": f"{task}{of_kind}" if task else None}
        user = {"user": fields["user"] | ({"kind": kind} if kind else {})} if "user" in fields else {}
        yield Scenario.model_validate(fields | named | user)
