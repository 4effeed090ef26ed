"""Arms: the apps that are compared, each with a name, and how an app is made for a scenario."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.pregel import Pregel
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.modules import describe_error, describe_location, find_module_file
from arq_graph.errors import InputError, suggestion
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite
from arq_graph.milestones.evaluation.tested_app import App
from arq_graph.models.resolve import make_chat_model

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

AppFactory = Callable[..., App]
"""Makes the app of a scenario from the scenario, its agent with the tools of a fresh world, and the model.

It gets the world, too, if it has an argument `world`. If it has an argument `matcher_only`, which is true for cases of
the matcher alone, it also runs these: the app then replies `active: A, B`, sorted, or `active: none`. If it has an
attribute `again(model, messages, outcome)`, this is awaited after each trial and returns what makes the app of another
trial, in a new world, or None.
"""

Arm = App | AppFactory
_OUTCOME = TypeAdapter(dict[str, bool | int | float])
_SUCCESS = TypeAdapter(bool)
_MAX_NAMES = 3


@dataclass(frozen=True)
class PreparedApp:
    """An app that is ready for one conversation.

    Args:
        app: The app.
        make_app: The function that made it; None if the arm is an app.
        agent: The agent that it was made from.
        world: Its world.
    """

    app: App
    make_app: AppFactory | None = None
    agent: Agent | None = None
    world: Any = None

    async def delete_thread(self, thread_id: str) -> None:
        """Delete a thread that is only in memory, so that memory does not grow with every conversation."""
        checkpointer = getattr(self.app, "checkpointer", None)
        if self.make_app is not None and isinstance(checkpointer, InMemorySaver):
            await checkpointer.adelete_thread(thread_id)


def read_world_outcome(world: Any) -> Mapping[str, bool | int | float]:
    """Return what the `outcome()` of a world returns; empty if the world has no such method.

    Raises:
        InputError: It fails, or returns something other than numbers and truth values by name, or a `success`
            that is a number.
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
        advice = 'it must return numbers or truth values by name, and `success` as a truth value: {"success": True}'
        raise InputError(f"{name} gave {returned!r:.80}{place}: {advice}") from None
    if "success" not in outcome:
        _refuse_misspelt_success(outcome, name, place)
    return outcome


class Arms:
    """The arms of a run: apps, which all conversations share, and functions that make one.

    The conversations of a scenario without a world share the app that a function makes; with a world, each has its
    own. A model string becomes a chat model at once, so that a missing key is reported before any conversation.
    """

    def __init__(self, arms: Mapping[str, Arm], model: Any = None) -> None:
        if not isinstance(arms, Mapping) or not arms:
            raise InputError(
                f"the arms are {arms!r}; give a mapping of names to apps, such as load_arms(['guided'])"
            )
        self.names = tuple(arms)
        self._arms = dict(arms)
        self._factories = {name: arm for name, arm in arms.items() if not _is_app(arm)}
        for name, function in self._factories.items():
            _require_makes_apps(name, function)
        self._model_or_name = model
        self._shared_apps: dict[tuple[str, str], PreparedApp] = {}
        self._model = self._load_model()

    def __getstate__(self) -> dict[str, Any]:
        """Return what is sent to a worker, which makes the model and the apps itself."""
        state = vars(self).copy()
        del state["_model"]
        state["_shared_apps"] = {}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the arms in a worker, with a model of its own."""
        vars(self).update(state)
        self._model = self._load_model()

    def compute_fingerprints(self) -> dict[str, str]:
        """Return a fingerprint of the code of each arm, by its name in messages.

        Only functions have one, and apps that were named as "module:app", which have that of the module.
        """
        fingerprints = {}
        for name, arm in self._arms.items():
            source = find_module_file(arm) or self._factories.get(name)
            if source:
                fingerprints[f"the code of the arm {name!r}"] = fingerprint(source)
        return fingerprints

    def select_comparable(self, suite: Suite) -> Suite:
        """Return the suite with the scenarios that all arms can run; a warning says what is left out.

        Raises:
            InputError: All of them are for the matcher alone, and an arm has none.
        """
        turns = [scenario for scenario in suite.scenarios if not scenario.matcher_only]
        unable = [name for name in self.names if not self._runs_matcher(name)]
        left_out = len(suite.scenarios) - len(turns)
        if not left_out or not unable:
            return suite
        names = ", ".join(unable[:_MAX_NAMES])
        if len(unable) > _MAX_NAMES:
            names += f" and {len(unable) - _MAX_NAMES} more"
        reason = f"ask a matcher which guidelines are active, and {names} cannot say that"
        if not turns:
            raise InputError(f"all scenarios of {suite.name} {reason}: compare arms with a matcher")
        warnings.warn(
            f"skipped {left_out} matcher-only scenario{'s' if left_out > 1 else ''} of {suite.name} for all arms, "
            f"which are compared on the same scenarios: these {reason}. Compared alone, arms with a matcher run them.",
            stacklevel=2,
        )
        return suite.replace(scenarios=turns)

    def prepare_app(self, planned: PlannedConversation, make_app: AppFactory | None = None) -> PreparedApp:
        """Return the app of a conversation; raises what the function or the world raises.

        Args:
            planned: The conversation.
            make_app: Makes the app of another trial; None: the arm makes it.
        """
        scenario = planned.scenario
        if make_app is not None:
            return self._make_app(planned, make_app)
        make_app = self._factories.get(planned.arm)
        if make_app is None:
            return PreparedApp(_add_checkpointer(self._arms[planned.arm]), agent=scenario.agent)
        if scenario.world is not None:
            return self._make_app(planned, make_app)
        key = (planned.arm, scenario.name)
        if key not in self._shared_apps:
            self._shared_apps[key] = self._make_app(planned, make_app)
        return self._shared_apps[key]

    def _make_app(self, planned: PlannedConversation, make_app: AppFactory) -> PreparedApp:
        scenario = planned.scenario
        world = scenario.make_world(planned.seed)
        agent = scenario.equip_agent(world)
        optional = select_accepted_arguments(make_app, world=world, matcher_only=scenario.matcher_only)
        app = make_app(scenario, agent, self._model, **optional)
        if not _is_app(app):
            raise InputError(
                f"the arm {planned.arm!r} made a {type(app).__name__}, which has no `invoke` and no `ainvoke`"
            )
        return PreparedApp(_add_checkpointer(app), make_app, agent, world)

    async def ask_for_retry(
        self, prepared: PreparedApp, messages: Sequence[BaseMessage]
    ) -> AppFactory | None:
        """Return what makes the app of another trial; None if the arm makes no other."""
        again = getattr(prepared.make_app, "again", None)
        if again is None:
            return None
        next_factory: AppFactory | None = await again(
            self._model, messages, partial(read_world_outcome, prepared.world)
        )
        return next_factory

    def _load_model(self) -> Any:
        if self._factories and isinstance(self._model_or_name, str):
            return make_chat_model(self._model_or_name)
        return self._model_or_name

    def _runs_matcher(self, name: str) -> bool:
        function = self._factories.get(name)
        return function is not None and "matcher_only" in inspect.signature(function).parameters


def select_accepted_arguments(function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
    """Return those arguments that a function accepts by name."""
    parameters = inspect.signature(function).parameters
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
    # If messages are not added up, a graph with a checkpointer would see only the last one.
    if not hasattr(app.channels.get("messages"), "operator"):
        return app
    return app.copy({"checkpointer": InMemorySaver()})


def _is_app(value: object) -> bool:
    """Return whether a value can be invoked; a class can't, because it only makes such an app."""
    if isinstance(value, type):
        return False
    return callable(getattr(value, "invoke", None)) or callable(getattr(value, "ainvoke", None))
