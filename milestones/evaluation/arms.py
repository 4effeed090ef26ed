"""Arms, which an evaluation compares: apps, and functions that make an app for a scenario."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.modules import find_module_file
from arq_graph.errors import InputError, describe_error, describe_location, suggestion
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite
from arq_graph.models.resolve import ChatModelLike, make_chat_model

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent
    from arq_graph.milestones.evaluation.scenario import Scenario


class SyncApp(Protocol):
    """An app that is invoked; it runs in a thread."""

    def invoke(self, input: Any, config: Any, /) -> Any:
        """Return messages for `{"messages": […]}`, or for the `Command` that answers an interrupt."""


class AsyncApp(Protocol):
    """An app that is awaited."""

    async def ainvoke(self, input: Any, config: Any, /) -> Any:
        """Return messages; see `SyncApp.invoke`."""


App = SyncApp | AsyncApp

AppFactory = Callable[..., App]
"""A function `(scenario, agent, model)` that makes an app. A `RetryingAppFactory` is one, too.

Args:
    scenario: The scenario of the conversation.
    agent: The scenario's agent, with the tools of a fresh world; None if the scenario has no agent.
    model: The model that was passed to `evaluate`; a model string is a chat model already.
    world: That fresh world. It is passed only to a function that has this argument, or `**options`.
    matcher_only: True for a scenario that tests only the matcher. The app of such a scenario replies `active: A, B`,
        sorted, or `active: none`. A function that doesn't name this argument isn't called for such scenarios.
"""


class RetryingAppFactory(Protocol):
    """An `AppFactory` that decides after each trial whether its conversation is tried again."""

    def __call__(self, scenario: Scenario, agent: Agent | None, model: Any, **options: Any) -> App:
        """Make the app of one trial; see `AppFactory`."""

    async def again(
        self, model: Any, messages: Sequence[BaseMessage], read_outcome: Callable[[], Mapping[str, Any]]
    ) -> AppFactory | None:
        """Return the function that makes the app of the next trial, in a new world; None if there is to be none.

        Args:
            model: The model that was passed to `evaluate`.
            messages: The messages of the trial that has ended.
            read_outcome: Returns the `outcome()` of that trial's world; empty if the world has no such method.
        """


Arm = App | AppFactory
_OUTCOME = TypeAdapter(dict[str, bool | int | float])
_SUCCESS = TypeAdapter(bool)
_MAX_NAMES = 3
_MAX_SHARED_APPS = 16  # a compiled agent takes up to a megabyte, and 30 ms to make


@dataclass(frozen=True)
class PreparedApp:
    """An app that is ready for one conversation.

    Args:
        app: The app.
        factory: The function that made it; None if the arm is an app.
        agent: The agent that it was made from.
        world: Its world. An arm that is an app can't get one: the scenario's world is left out.
    """

    app: App
    factory: AppFactory | None = None
    agent: Agent | None = None
    world: Any = None

    async def delete_thread(self, thread_id: str) -> None:
        """Delete a thread that is only in memory, so that memory does not grow with every conversation."""
        checkpointer = getattr(self.app, "checkpointer", None)
        # Only apps that a function made are shared between conversations, with a saver that may be cleared. If the
        # arm itself is an app, its saver is the developer's, or was made for this conversation.
        if self.factory is not None and isinstance(checkpointer, InMemorySaver):
            await checkpointer.adelete_thread(thread_id)


def read_world_outcome(world: Any) -> Mapping[str, bool | int | float]:
    """Return what the `outcome()` of a world returns; empty if the world has no such method.

    Raises:
        InputError: It fails, or returns anything but a dict of numbers and booleans, with `success` as a boolean if it
            is there.
    """
    function = getattr(world, "outcome", None)
    if not callable(function):
        return {}
    name = f"{type(world).__qualname__}.outcome()"
    try:
        returned = function()
    except (Exception, SystemExit) as error:
        raise InputError(f"{name} fails with {describe_error(error)}") from error
    place = describe_location(function)
    try:
        outcome = _OUTCOME.validate_python(returned)
        _SUCCESS.validate_python(outcome.get("success", True), strict=True)
    except ValidationError:
        advice = 'return a dict of numbers and booleans; `success` must be a boolean: {"success": True}'
        raise InputError(f"{name} gave {returned!r:.80}{place}: {advice}") from None
    if "success" not in outcome:
        _refuse_misspelt_success(outcome, name, place)
    return outcome


class Arms:
    """The arms of a run: apps, which all conversations share, and functions that make apps.

    The conversations of a scenario without a world share the app that a function makes, as long as it is one of the
    last that were made; with a world, each has its own. A model string becomes a chat model at once, so that a missing
    key is reported before any conversation.
    """

    def __init__(self, arms: Mapping[str, Arm], model: ChatModelLike | None = None) -> None:
        if not isinstance(arms, Mapping) or not arms:
            raise InputError(
                f"the arms are {arms!r}; pass a mapping of names to apps, such as load_arms(['guided'])"
            )
        self.names = tuple(arms)
        self._arms = dict(arms)
        for name, arm in arms.items():
            # `PlannedConversation.id` is unique because the last two of its parts have no separator.
            if " / " in f" {name} ":
                raise InputError(
                    f"the arm {name!r} has `/` as a word of its name; leave it or the spaces out"
                )
            if not _is_app(arm):
                _require_makes_apps(name, arm)
        self._model_or_name = model
        self._model = self._make_model()
        self._shared_apps: dict[tuple[str, str], PreparedApp] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to a worker, which makes the model and the apps itself."""
        return vars(self) | {"_model": None, "_shared_apps": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the arms in a worker, with a model of its own."""
        vars(self).update(state)
        self._model = self._make_model()

    def compute_fingerprints(self) -> dict[str, dict[str, str]]:
        """Return a fingerprint of the code of each arm that is a function or was loaded as "module:app"."""
        fingerprints = {}
        for name, arm in self._arms.items():
            source = find_module_file(arm) or self._get_factory(name)
            if source:
                fingerprints[name] = {"the code": fingerprint(source)}
        return fingerprints

    def select_comparable(self, suite: Suite) -> Suite:
        """Return the suite with the scenarios that all arms can run; a warning says what is left out.

        Raises:
            InputError: All scenarios test only the matcher, and an arm hasn't any.
        """
        whole_turn_scenarios = [scenario for scenario in suite.scenarios if not scenario.matcher_only]
        arms_without_matcher = [name for name in self.names if not self._has_matcher(name)]
        skipped_count = len(suite.scenarios) - len(whole_turn_scenarios)
        if not skipped_count or not arms_without_matcher:
            return suite
        names = ", ".join(arms_without_matcher[:_MAX_NAMES])
        if len(arms_without_matcher) > _MAX_NAMES:
            names += f" and {len(arms_without_matcher) - _MAX_NAMES} more"
        if not whole_turn_scenarios:
            raise InputError(
                f"all scenarios of {suite.name} ask a matcher which guidelines are active, and {names} cannot say "
                "that: compare arms with a matcher"
            )
        plural = "" if skipped_count == 1 else "s"
        warnings.warn(
            f"skipped {skipped_count} matcher-only scenario{plural} of {suite.name} for all arms, which are compared "
            f"on the same scenarios: a matcher says which guidelines are active, and {names} cannot say that. To run "
            "the skipped ones, evaluate only arms with a matcher.",
            stacklevel=2,
        )
        return suite.replace(scenarios=whole_turn_scenarios)

    def prepare_app(
        self, planned: PlannedConversation, next_trial_factory: AppFactory | None = None
    ) -> PreparedApp:
        """Return the app of a conversation; raises what the function or the world raises.

        Args:
            planned: The conversation.
            next_trial_factory: Makes the app of another trial; None: this is the first trial.
        """
        scenario = planned.scenario
        factory = next_trial_factory or self._get_factory(planned.arm)
        if factory is None:
            # An app is ready, so it can't get the tools of a world.
            app = _add_checkpointer(cast(App, self._arms[planned.arm]))
            return PreparedApp(app, agent=scenario.agent)
        if next_trial_factory is not None or scenario.world is not None:
            return self._make_app(planned, factory)
        key = (planned.arm, scenario.name)
        prepared = self._shared_apps.get(key)
        if prepared is None:
            prepared = self._make_app(planned, factory)
            if len(self._shared_apps) >= _MAX_SHARED_APPS:
                del self._shared_apps[next(iter(self._shared_apps))]  # the oldest
            self._shared_apps[key] = prepared
        return prepared

    async def ask_for_next_trial(
        self, prepared: PreparedApp, messages: Sequence[BaseMessage]
    ) -> AppFactory | None:
        """Return the function that makes the app of another trial, or None if there is to be none."""
        factory = prepared.factory
        if not hasattr(factory, "again"):
            return None
        read_outcome = partial(read_world_outcome, prepared.world)
        return await cast(RetryingAppFactory, factory).again(self._model, messages, read_outcome)

    def _make_app(self, planned: PlannedConversation, factory: AppFactory) -> PreparedApp:
        scenario = planned.scenario
        world = scenario.make_world(planned.seed)
        agent = scenario.equip_agent(world)
        optional = select_accepted_arguments(factory, world=world, matcher_only=scenario.matcher_only)
        app = factory(scenario, agent, self._model, **optional)
        if not _is_app(app):
            raise InputError(
                f"the arm {planned.arm!r} made a {type(app).__name__}, which has neither `invoke` nor `ainvoke`"
            )
        return PreparedApp(_add_checkpointer(app), factory, agent, world)

    def _make_model(self) -> Any:
        has_factories = any(self._get_factory(name) for name in self.names)
        if has_factories and isinstance(self._model_or_name, str):
            return make_chat_model(self._model_or_name)
        return self._model_or_name

    def _get_factory(self, name: str) -> AppFactory | None:
        """Return the arm if it is a function that makes apps; None if it is an app."""
        arm = self._arms[name]
        return None if _is_app(arm) else cast(AppFactory, arm)

    def _has_matcher(self, name: str) -> bool:
        factory = self._get_factory(name)
        return factory is not None and "matcher_only" in inspect.signature(factory).parameters


def select_accepted_arguments(function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    """Return those arguments that a function accepts by name: all of them if it has `**options`."""
    parameters = inspect.signature(function).parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return arguments
    return {name: value for name, value in arguments.items() if name in parameters}


def _require_makes_apps(name: str, function: Any) -> None:
    try:
        optional = select_accepted_arguments(function, world=None, matcher_only=False)
        inspect.signature(function).bind(None, None, None, **optional)
    except TypeError as error:
        raise InputError(
            f"the arm {name!r} is neither an app, which has `invoke` or `ainvoke`, nor a function of "
            f"(scenario, agent, model) that makes one: {error}"
        ) from None


def _refuse_misspelt_success(outcome: Mapping[str, Any], name: str, place: str) -> None:
    for key, value in outcome.items():
        hint = suggestion(key, ["success"], cutoff=85)
        if hint and isinstance(value, bool):
            raise InputError(f"{name} gave {key!r}{place}, which decides nothing{hint}")


def _add_checkpointer(app: App) -> App:
    """Give a graph without a checkpointer one in memory, so that it remembers its state between turns."""
    if not isinstance(app, Pregel) or app.checkpointer is not None:
        return app
    # Without a reducer for `messages`, each turn's input would replace the history.
    if not hasattr(app.channels.get("messages"), "operator"):
        return app
    return app.copy({"checkpointer": InMemorySaver()})


def _is_app(value: object) -> bool:
    """Return whether a value can be invoked; a class can't, because it only makes such an app."""
    if isinstance(value, type):
        return False
    return callable(getattr(value, "invoke", None)) or callable(getattr(value, "ainvoke", None))
