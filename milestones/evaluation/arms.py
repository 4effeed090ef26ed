"""Arms: the apps that are tried, each by a name, and how one is made for a scenario."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_core.messages import BaseMessage
from pydantic import TypeAdapter, ValidationError

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.modules import describe_error, describe_location, find_module_file
from arq_graph.errors import InputError, suggestion
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite
from arq_graph.milestones.evaluation.tested_app import App, is_graph
from arq_graph.models.resolve import make_chat_model

if TYPE_CHECKING:
    from arq_graph.agent.spec import Agent

MakeApp = Callable[..., App]
"""Makes the app of a scenario: of it, its agent with the tools of a fresh world, and the model.

The world itself is given where `world` is one of its arguments. With an argument `matches_only`, which is true for the
cases of a matcher alone, it is tried on these, too: the app replies `active: A, B`, sorted, or `active: none`. One that
has `again(model, messages, outcome)` is asked after each trial, async, for what makes the app of another one, in a
world made anew; None ends it.
"""

Arm = App | MakeApp
_OUTCOME = TypeAdapter(dict[str, bool | int | float])
_SUCCESS = TypeAdapter(bool)
_IN_MEMORY = ("InMemorySaver", "MemorySaver")


@dataclass(frozen=True)
class PreparedApp:
    """An app for one conversation, the function that made it here, and the agent and the world that it was made of."""

    app: App
    made_by: MakeApp | None = None
    agent: Agent | None = None
    world: Any = None

    def read_outcome(self) -> Mapping[str, bool | int | float]:
        """What the world says of how it ended; nothing where there is none, or it says nothing.

        Raises:
            InputError: It fails, or gives no numbers and truth values by name, or a `success` that is a number.
        """
        outcome = getattr(self.world, "outcome", None)
        name = f"{type(self.world).__qualname__}.outcome()"
        try:
            said = outcome() if callable(outcome) else {}
        except (Exception, SystemExit) as error:
            raise InputError(f"{name} fails with {describe_error(error)}") from error
        try:
            found = _OUTCOME.validate_python(said)
            _SUCCESS.validate_python(found.get("success", True), strict=True)
        except ValidationError:
            way = 'it must return numbers or truth values by name, and `success` as a truth value: {"success": True}'
            raise InputError(f"{name} gave {said!r:.80}{describe_location(outcome)}: {way}") from None
        for key, value in found.items() if "success" not in found else ():
            if isinstance(value, bool) and (near := suggestion(key, ["success"], cutoff=85)):
                raise InputError(
                    f"{name} gave {key!r}{describe_location(outcome)}, which decides nothing{near}"
                )
        return found

    async def delete_thread(self, thread_id: str) -> None:
        """Drop a thread that is kept in memory alone, so that memory does not grow with every conversation."""
        checkpointer: Any = getattr(self.app, "checkpointer", None)
        if self.made_by is not None and type(checkpointer).__name__ in _IN_MEMORY:
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
                f"the arms are {arms!r}; give a mapping of names to apps, such as load_arms(['guided'])"
            )
        self.names = tuple(arms)
        self._arms = dict(arms)
        self._functions = {name: arm for name, arm in arms.items() if not _is_app(arm)}
        for name, arm in self._functions.items():
            try:
                inspect.signature(arm).bind(
                    None, None, None, **select_accepted_arguments(arm, world=None, matches_only=False)
                )
            except TypeError as error:
                raise InputError(
                    f"the arm {name!r} is neither an app, which has `invoke` or `ainvoke`, nor a function of "
                    f"(scenario, agent, model) that makes one: {error}"
                ) from None
        self._given = model
        self._shared: dict[tuple[str, str], PreparedApp] = {}
        self._model  # noqa: B018  # told before anything is held: a missing key

    @cached_property
    def _model(self) -> Any:
        return (
            make_chat_model(self._given) if self._functions and isinstance(self._given, str) else self._given
        )

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to a worker: a model that is a string is made there, and so is every app of a function's."""
        return {name: value for name, value in vars(self).items() if name != "_model"} | {"_shared": {}}

    def compute_fingerprints(self) -> dict[str, str]:
        """A digest of the source of each arm that has one, by a name that a message can show.

        An app has none, unless it was named as "module:app": then it is the module's.
        """
        sources = {
            name: find_module_file(arm) or self._functions.get(name) for name, arm in self._arms.items()
        }
        return {code_of(name): fingerprint(source) for name, source in sources.items() if source}

    def select_comparable(self, suite: Suite) -> Suite:
        """The suite with the scenarios that all arms can answer; a warning says what was left out.

        Raises:
            InputError: All of them are for the matcher alone, and an arm has none.
        """
        turns = [one for one in suite.scenarios if not one.matches_only]
        able = [
            name
            for name, make in self._functions.items()
            if select_accepted_arguments(make, matches_only=True)
        ]
        unable = [name for name in self.names if name not in able]
        left_out = len(suite.scenarios) - len(turns)
        if not left_out or not unable:
            return suite
        named = ", ".join(unable[:3]) + (f" and {len(unable) - 3} more" if len(unable) > 3 else "")
        why = f"ask a matcher which guidelines are active, and {named} cannot say that"
        if not turns:
            raise InputError(f"all scenarios of {suite.name} {why}: compare arms with a matcher")
        warnings.warn(
            f"{left_out} scenario{'s' if left_out > 1 else ''} of {suite.name} left out for all arms, because all are "
            f"compared on the same scenarios: these {why}. Arms with a matcher run them if they are compared alone.",
            stacklevel=2,
        )
        return suite.replace(scenarios=turns)

    def prepare_app(self, one: PlannedConversation, make: MakeApp | None = None) -> PreparedApp:
        """The app for one conversation, or for another trial; raises whatever the function or the world raises."""
        make = make or self._functions.get(one.arm)
        if make is None:
            return PreparedApp(_remembering(self._arms[one.arm]), agent=one.scenario.agent)
        key = (one.arm, one.scenario.name)
        if key in self._shared:
            return self._shared[key]
        world = one.scenario.make_world(one.seed)
        agent, matches = one.scenario.equip_agent(world), one.scenario.matches_only
        app = make(
            one.scenario,
            agent,
            self._model,
            **select_accepted_arguments(make, world=world, matches_only=matches),
        )
        if not _is_app(app):
            raise InputError(
                f"the arm {one.arm!r} made a {type(app).__name__}, which has no `invoke` and no `ainvoke`"
            )
        made = PreparedApp(_remembering(app), made_by=make, agent=agent, world=world)
        if one.scenario.world is None:
            self._shared[key] = made
        return made

    async def find_next_trial(self, made: PreparedApp, said: Sequence[BaseMessage]) -> MakeApp | None:
        """What makes the app of another trial; None where its arm tries no more."""
        again = getattr(made.made_by, "again", None)
        return await again(self._model, said, made.read_outcome) if again else None


def code_of(name: str) -> str:
    """What a message, and the head of a results file, calls the code of an arm."""
    return f"the code of the arm {name!r}"


def select_accepted_arguments(make: MakeApp, **given: Any) -> dict[str, Any]:
    """Of what is given, that which a function takes by these names."""
    return {name: value for name, value in given.items() if name in inspect.signature(make).parameters}


def describe_instructions(agent: Agent) -> str:
    """What an agent is told, in words."""
    rules = [
        f"- {f'when {each.condition_text}' if each.condition else 'always'}: {each.action}"
        for each in agent.guidelines
        if each.action is not None
    ]
    return "\n".join([agent.profile.strip(), "", *rules]).strip()


def _remembering(app: App) -> App:
    """Give a graph without a checkpointer one in memory, so that it remembers its state between turns."""
    # If messages do not add up, a graph with a checkpointer would see only the last one.
    if (
        not is_graph(app)
        or app.checkpointer is not None
        or not hasattr(app.channels.get("messages"), "operator")
    ):
        return app
    # By name: evaluation needs LangGraph only where an app is made of it.
    return app.copy({"checkpointer": import_module("langgraph.checkpoint.memory").InMemorySaver()})


def _is_app(value: object) -> bool:
    """Whether it can be invoked or awaited; a class cannot, because it only makes such an app."""
    return not isinstance(value, type) and any(
        callable(getattr(value, name, None)) for name in ("invoke", "ainvoke")
    )
