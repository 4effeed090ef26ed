"""Arms: the apps that are tried, each by a name, and how one is made for a scenario."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.modules import file_of
from arq_graph.errors import InputError, SpecError
from arq_graph.milestones.evaluation.conversation import App
from arq_graph.milestones.evaluation.suite import Planned
from arq_graph.models.resolve import chat_model

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

MakeApp = Callable[..., App]
"""Makes the app of a scenario: of it, its agent with the tools of a fresh world, and the model.

The world itself is given where `world` is one of its arguments. One that has `trials` is asked again where the world's
`outcome()` says that there was no success: with `lessons`, what its `areflect(model, messages, lessons)` has told.
"""

Arm = App | MakeApp
_OUTCOME = TypeAdapter(dict[str, bool | int | float])
_IN_MEMORY = ("InMemorySaver", "MemorySaver")


@dataclass(frozen=True)
class Made:
    """An app for one conversation, whether it was made here, and the agent and the world that it was made of."""

    app: App
    is_ours: bool
    agent: Agent | None = None
    world: Any = None

    def outcome(self) -> Mapping[str, bool | int | float]:
        """What the world says of how it ended; nothing where there is none, or it says nothing.

        Raises:
            InputError: It says something else than numbers and truth values by name.
        """
        told = getattr(self.world, "outcome", None)
        said = told() if callable(told) else {}
        try:
            return _OUTCOME.validate_python(said)
        except ValidationError:
            raise InputError(
                f"the world's outcome() gave {said!r:.80}: it has to give a mapping of names to numbers or truth values"
            ) from None

    async def forget(self, thread_id: str) -> None:
        """Drop a thread that is kept in memory alone, so that memory does not grow with every conversation."""
        checkpointer: Any = getattr(self.app, "checkpointer", None)
        if self.is_ours and type(checkpointer).__name__ in _IN_MEMORY:
            await checkpointer.adelete_thread(thread_id)


class Arms:
    """The arms of a run, by name: an app, which all conversations share, or a function that makes one.

    What a function makes for a scenario without a world is shared by its conversations; with a world, each has its
    own. The model is handed to the functions; a string is made a chat model first, so that a missing key is told
    before anything is held.
    """

    def __init__(self, arms: Mapping[str, Arm], model: Any = None) -> None:
        if not isinstance(arms, Mapping) or not arms:
            raise InputError(
                f"the arms are {arms!r}; give a mapping of names to apps, such as arms(['guided'])"
            )
        self.names = tuple(arms)
        self._arms = dict(arms)
        self._functions = {name: arm for name, arm in arms.items() if not _is_app(arm)}
        for name, arm in self._functions.items():
            try:
                inspect.signature(arm).bind(None, None, None, **taken_by(arm, world=None))
            except TypeError as error:
                raise InputError(
                    f"the arm {name!r} is neither an app, which has `invoke` or `ainvoke`, nor a function of "
                    f"(scenario, agent, model) that makes one: {error}"
                ) from None
        self._given = model
        self._shared: dict[tuple[str, str], Made] = {}
        self._model  # noqa: B018  # told before anything is held: a missing key

    @cached_property
    def _model(self) -> Any:
        return chat_model(self._given) if self._functions and isinstance(self._given, str) else self._given

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to a worker: a model that is a string is made there, and so is every app of a function's."""
        return {name: value for name, value in vars(self).items() if name != "_model"} | {"_shared": {}}

    def fingerprints(self) -> dict[str, str]:
        """A digest of the source of each arm that has one, by a name that a message can show.

        An app has none, unless it was named as "module:app": then it is the module's.
        """
        sources = {name: file_of(arm) or self._functions.get(name) for name, arm in self._arms.items()}
        return {code_of(name): fingerprint(source) for name, source in sources.items() if source}

    def make(self, one: Planned, lessons: Sequence[str] = ()) -> Made:
        """The app for one conversation; raises whatever the function or the world raises.

        `lessons` are what an arm that tries again has noted of the trials before.
        """
        if one.arm not in self._functions:
            return Made(self._arms[one.arm], is_ours=False, agent=one.scenario.agent)
        key = (one.arm, one.scenario.name)
        if key in self._shared:
            return self._shared[key]
        world = one.scenario.fresh_world(one.seed)
        try:
            agent = one.scenario.agent_in(world)
        except SpecError as error:
            if error.__cause__ is None:  # of the scenario, which it names
                raise
            raise SpecError(f"a method of the world of scenario {one.scenario.name!r} {error}") from error
        make = self._functions[one.arm]
        app = make(one.scenario, agent, self._model, **taken_by(make, world=world, lessons=lessons))
        if not _is_app(app):
            raise InputError(
                f"the arm {one.arm!r} made a {type(app).__name__}, which has no `invoke` and no `ainvoke`"
            )
        made = Made(app, is_ours=True, agent=agent, world=world)
        if one.scenario.world is None:
            self._shared[key] = made
        return made

    def has_trials_left(self, arm: str, lessons: Sequence[str]) -> bool:
        """Whether an arm tries again after a failure, and has not done so too often."""
        return len(lessons) + 1 < getattr(self._functions.get(arm), "trials", 1)

    async def lesson(self, arm: str, said: Sequence[BaseMessage], lessons: Sequence[str]) -> str:
        """What an arm that tries again notes of a trial that failed."""
        made_by: Any = self._functions[arm]
        return str(await made_by.areflect(self._model, said, lessons))


def code_of(name: str) -> str:
    """What a message, and the head of a results file, calls the code of an arm."""
    return f"the code of the arm {name!r}"


def taken_by(make: MakeApp, **given: Any) -> dict[str, Any]:
    """Of what is given, that which a function takes by these names."""
    return {name: value for name, value in given.items() if name in inspect.signature(make).parameters}


def instructions_of(agent: Agent) -> str:
    """What an agent is told, in words."""
    rules = [
        f"- {f'when {each.condition_text}' if each.condition else 'always'}: {each.action}"
        for each in agent.guidelines
        if each.action is not None
    ]
    return "\n".join([agent.profile.strip(), "", *rules]).strip()


def _is_app(value: object) -> bool:
    """Whether it can be invoked or awaited; a class of such apps makes one, and is none."""
    return not isinstance(value, type) and any(
        callable(getattr(value, name, None)) for name in ("invoke", "ainvoke")
    )
