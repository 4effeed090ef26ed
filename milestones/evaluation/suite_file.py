"""Suites as YAML files.

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
  goal: expedite_shipping                # the milestone that means that the user's goal is reached
  user:
    intents:
    - request: Where is my order?
      slots: {order_id: ORD-1002}
      accepts: [expedited shipping]
include: [more.yaml]                     # further scenarios, of suites beside this one
```

A scenario that `says` one message and what to `expect` of the answer is shown in `docs/simulated-users.md`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Self, cast

from pydantic import JsonValue, PrivateAttr, ValidationError, ValidationInfo, model_validator

from arq_graph.agent.part import Part
from arq_graph.agent.spec import Agent
from arq_graph.agent.spec_errors import Place, Problem, make_validation_error
from arq_graph.agent.yaml_file import Document, read_model, read_text
from arq_graph.errors import SpecError, suggestion
from arq_graph.milestones.evaluation.expectation import Expectation
from arq_graph.milestones.evaluation.history import HistoryEntry
from arq_graph.milestones.evaluation.scenario import Limits, Scenario
from arq_graph.milestones.evaluation.world_entry import WorldEntry
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.graph_file import parse_milestones
from arq_graph.milestones.users.user_spec import Intents, Kind, Says, Text, UserSpec

# `$name`, as in `string.Template`; a regular expression has the sign itself as `\$` or `[$]`.
_PLACEHOLDER = re.compile(r"(?<![\\$])\$\{?([a-z_]\w*)", re.ASCII | re.IGNORECASE)

_EXCLUSIVE_FIELDS = (
    ("says", "user"),
    ("says", "kinds"),
    ("expect", "milestones"),
    ("expect", "journey"),
    ("journey", "milestones"),
)


class PartialUser(UserSpec):
    """A part of a user's specification: `defaults` may have one part, and a scenario the other."""

    intents: Intents = ()


class SharedFields(Part):
    """The fields of a scenario that a suite file may also set for all its scenarios, under `defaults`.

    Args:
        agent: The agent's YAML file.
        milestones: The milestone file; `$name` in it stands for an argument of the world.
        journey: The id of the agent's journey whose steps are the milestones; instead of `milestones`.
        world: The class or function that makes the world of one conversation: "module:name"; or a mapping of its
            arguments, with "module:name" under `of`.
        user: The simulated user.
        kinds: Kinds of users: one scenario for each.
        limits: The limits of a conversation.
        use_case: The category by which reports group it.
        task: The task that its runs try; scenarios of one task share it.
        goal: The milestone that means that the user's goal is reached.
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
    journey: Text | None = None


class ScenarioEntry(SharedFields):
    """A scenario of a file; `kinds` makes several of it.

    Args:
        name: Its name, unique in a suite.
        says: The user's only message, word for word, or a list of all their messages; instead of `user`.
        history: The messages and calls before the conversation; they aren't measured.
        expect: The expected answer, from which the milestones are made; instead of `milestones`.
        variables: Values of the agent's variables, by name.
        probes: Its purpose, in a sentence.
        twin: The name of the scenario that differs in one detail, and so in the right answer.
    """

    name: Text
    says: Says | None = None
    history: tuple[HistoryEntry, ...] = ()
    expect: Expectation | None = None
    variables: Mapping[str, JsonValue] = {}
    probes: Text | None = None
    twin: Text | None = None


class SuiteFile(Part):
    """A suite as a YAML file.

    Args:
        name: The name of the suite; by default that of the file.
        seed: The seed of all that is random in its conversations.
        defaults: The fields of each scenario that doesn't set them itself.
        scenarios: The scenarios.
        include: Suite files, beside this one, whose scenarios come after its own.
    """

    name: Text | None = None
    seed: int = 0
    defaults: SharedFields = SharedFields()
    scenarios: tuple[ScenarioEntry, ...] = ()
    include: tuple[Text, ...] = ()

    _all_scenarios: tuple[Scenario, ...] = PrivateAttr()

    @property
    def all_scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios of this file, each once for each kind of user, and those of the included files."""
        return self._all_scenarios

    @model_validator(mode="after")
    def _load_scenarios(self, info: ValidationInfo) -> Self:
        """Read the files that the scenarios name; a validator, so that its errors get the lines of this file."""
        document = cast(Document, info.context)
        loader = _ScenarioLoader(self, document)
        loader.load()
        if loader.problems:
            raise ValidationError.from_exception_data("suite file", loader.problems)
        self._all_scenarios = tuple(loader.scenarios)
        if not self._all_scenarios:
            raise make_validation_error(
                (("scenarios",), "has no scenario; give one, or `include` a file that has some")
            )
        require_unique_names(self._all_scenarios)
        return self


def require_unique_names(scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """Return the scenarios, or raise a ValueError if two of them have the same name."""
    [(name, count)] = Counter(scenario.name for scenario in scenarios).most_common(1)
    if count > 1:
        raise ValueError(f"has two scenarios called {name!r}; give each its own name")
    return scenarios


_files_being_read: ContextVar[tuple[Path, ...]] = ContextVar("arq_graph_suite_files", default=())
"""The suite files that include the one that is read now, from the outermost, and that file itself."""


class _ScenarioLoader:
    """Makes the scenarios of a suite file, and collects the problems of all of them."""

    def __init__(self, file: SuiteFile, document: Document) -> None:
        self.file = file
        self.path = document.path.resolve()
        self.folder = document.folder
        self.scenarios: list[Scenario] = []
        self.problems: list[Any] = []  # as Pydantic's errors
        # Several scenarios name the same file.
        self._read_agent = cache(lambda name: Agent.from_yaml(self.folder / name))
        self._parse_milestones = cache(lambda text, file: parse_milestones(text, file=str(file)))

    def load(self) -> None:
        included = self._load_included()
        is_any_unreadable = bool(self.problems)  # such a file may hold the missing name of a twin
        name_counts = Counter(entry.name for entry in self.file.scenarios)
        merged_entries = [_merge_defaults(self.file.defaults, entry) for entry in self.file.scenarios]
        all_names = {scenario.name for scenario in included}
        for fields in merged_entries:
            all_names.update(_name_scenarios(fields).values())
        for index, (entry, fields) in enumerate(zip(self.file.scenarios, merged_entries, strict=True)):
            place: Place = ("scenarios", index)
            problems = list(_find_entry_problems(entry, name_counts[entry.name]))
            if not is_any_unreadable:
                problems.extend(_find_unknown_twins(fields, all_names))
            for problem in problems:
                self._add_errors(place, make_validation_error(problem))
            self._load_entry(entry, fields, all_names, place)
        self.scenarios += included

    def _load_included(self) -> list[Scenario]:
        scenarios: list[Scenario] = []
        token = _files_being_read.set((*_files_being_read.get(), self.path))
        try:
            for index, name in enumerate(self.file.include):
                try:
                    scenarios += self._read_included(self.folder / name)
                except SpecError as error:
                    self._add_errors(("include", index), error)
        finally:
            _files_being_read.reset(token)
        return scenarios

    def _read_included(self, file: Path) -> tuple[Scenario, ...]:
        if file.resolve() in _files_being_read.get():
            raise SpecError(f"names {file.name!r}, which is this file or includes it; leave it out")
        return read_model(file, SuiteFile, file_kind="suite file").all_scenarios

    def _load_entry(
        self, entry: ScenarioEntry, fields: dict[str, Any], all_names: set[str], place: Place
    ) -> None:
        problems_before = len(self.problems)
        world_entry: Any = fields.get("world")
        if isinstance(world_entry, str):
            world_entry = WorldEntry(of=world_entry)

        def load_field(key: str, load_value: Callable[[Any], object]) -> None:
            if not fields.get(key):
                return
            try:
                fields[key] = load_value(fields[key])
            except (SpecError, ValidationError) as error:
                owner = place if key in entry.model_fields_set else ("defaults",)
                self._add_errors((*owner, key), error)

        load_field("agent", self._read_agent)
        load_field("milestones", lambda name: self._load_milestones(name, world_entry))
        load_field("world", lambda _: world_entry.load(self.folder))
        if len(self.problems) > problems_before:
            return
        try:
            self.scenarios += _make_scenarios(fields, all_names)
        except (SpecError, ValidationError) as error:
            self._add_errors(place, error)

    def _load_milestones(self, name: str, world: WorldEntry | None) -> MilestoneGraph:
        file = self.folder / name
        arguments = world.arguments if world else {}
        return self._parse_milestones(_read_with_arguments(file, arguments), file)

    def _add_errors(self, place: Place, error: SpecError | ValidationError) -> None:
        if isinstance(error, SpecError):
            error = make_validation_error(((), error))
        for detail in error.errors():
            self.problems.append(dict(detail) | {"loc": place + detail["loc"]})


def _merge_defaults(defaults: SharedFields, entry: ScenarioEntry) -> dict[str, Any]:
    """Return the fields of an entry, with the defaults for those that it leaves out."""
    fields: dict[str, Any] = {}
    for source in (defaults, entry):
        for name in source.model_fields_set:
            fields[name] = getattr(source, name)
    for name in ("user", "limits"):
        merged: dict[str, Any] = {}
        for source in (defaults, entry):
            merged.update(getattr(source, name).model_dump(exclude_unset=True))
        fields[name] = merged
    own_fields = entry.model_fields_set
    for pair in _EXCLUSIVE_FIELDS:
        for name, replaced in (pair, pair[::-1]):
            if name in own_fields and replaced not in own_fields:
                fields.pop(replaced, None)
    # Without intents, the user's defaults aren't a user.
    if "user" not in own_fields and not fields.get("user", {}).get("intents"):
        fields.pop("user", None)
    return fields


def _make_scenarios(fields: Mapping[str, Any], all_names: set[str]) -> Iterator[Scenario]:
    """Yield the scenario of an entry, or one for each kind of user."""
    for kind, name in _name_scenarios(fields).items():
        scenario_fields = {key: value for key, value in fields.items() if key != "kinds"} | {"name": name}
        if kind is not None:
            if fields.get("task"):
                scenario_fields["task"] = f"{fields['task']} ({kind})"
            if "user" in fields:
                scenario_fields["user"] = fields["user"] | {"kind": kind}
        if fields.get("twin"):
            scenario_fields["twin"] = _find_twin_name(fields["twin"], kind, all_names)
        yield Scenario.model_validate(scenario_fields)


def _name_scenarios(fields: Mapping[str, Any]) -> dict[Kind | None, str]:
    """Return the name of an entry's scenario for each kind of user; under None if the entry has no `kinds`."""
    kinds = fields.get("kinds")
    if not kinds:
        return {None: fields["name"]}
    return {kind: f"{fields['name']} ({kind})" for kind in kinds}


def _find_twin_name(twin: str, kind: Kind | None, all_names: set[str]) -> str:
    """Return the name of a twin, which is that of its scenario with the same kind of user if it has several."""
    name_with_kind = f"{twin} ({kind})"
    return name_with_kind if name_with_kind in all_names else twin


def _find_unknown_twins(fields: Mapping[str, Any], all_names: set[str]) -> Iterator[Problem]:
    if not fields.get("twin"):
        return
    for kind, name in _name_scenarios(fields).items():
        twin = _find_twin_name(fields["twin"], kind, all_names)
        other_names = all_names - {name}
        if twin not in other_names:
            # A scenario of several kinds is named by its base name most often.
            hint = suggestion(twin, other_names) or suggestion(f"{twin} ({kind or 'helpful'})", other_names)
            yield ("twin",), f"the twin {twin!r} of {name!r} names no other scenario in the suite{hint}"


def _find_entry_problems(entry: ScenarioEntry, count: int) -> Iterator[Problem]:
    """Yield mistakes that would otherwise pass: a name that `count` entries have, and fields that aren't used."""
    if count > 1:
        yield ("name",), f"is {entry.name!r}, and another scenario has the same name; give each its own"
    for name, replaced in _EXCLUSIVE_FIELDS:
        if {name, replaced} <= entry.model_fields_set:
            yield (replaced,), f"cannot be combined with `{name}`; leave one of them out"
    if entry.expect and (match := _PLACEHOLDER.search(entry.expect.model_dump_json())):
        yield (
            ("expect",),
            f"has `{match[0]}`, but only milestone files can name arguments of the world; write the value",
        )


def _read_with_arguments(file: Path, arguments: Mapping[str, Any]) -> str:
    """Return the text of a milestone file, with the world's arguments in place of their names."""
    text = read_text(file, file_kind="milestone file")
    for match in _PLACEHOLDER.finditer(text):
        is_comment = text[text.rfind("\n", 0, match.start()) + 1 :].lstrip().startswith("#")
        if match[1] not in arguments and not is_comment:
            hint = suggestion(match[1], arguments)
            line = text.count("\n", 0, match.start()) + 1
            message = f"`{match[0]}` stands for an argument that the world isn't given{hint}"
            raise SpecError(message, file=str(file), line=line)
    return Template(text).safe_substitute(arguments)
