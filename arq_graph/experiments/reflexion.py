"""Trying again after a failure, with what was learnt from it: Reflexion, for any arm (ReSpAct, B.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError, require_count
from arq_graph.milestones.evaluation.arms import MakeApp, select_accepted_arguments
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.nodes.blueprint_node import PROMPTS, BlueprintNode
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify

_HEADING = "You have tried this task before, and failed. Each time you noted for yourself:"


class Reflection(ARQ):
    """Reflect on a task that failed, for the next try."""

    task: str = reinstate("The task, word for word.")
    deeds: list[str] = query("Each thing that was done towards it, in order, with the id of what it showed.")
    went_wrong: str = query(
        "After which of these could the task not be done any more, or was it lost sight of? Why?"
    )
    found_out: list[str] = query(
        "What was found out that will be so again: where things are, what can be done how?"
    )
    reflection: str = respond(
        "What to do otherwise, and what of it is known already: three sentences to yourself."
    )
    says_what_to_do: bool = verify(
        "Does it name things, places or steps, and not only intentions?", must_be=True
    )
    makes_things_up: bool = verify(
        "Does it state something that the conversation does not show?", must_be=False
    )


@dataclass(frozen=True)
class Reflexion:
    """An arm whose failed trials are followed by others, in a world made anew, with the reflections on those before.

    Args:
        arm: The function that makes the app.
        trials: How often a task is tried at most, 1 or more.
        lessons: The reflections on the trials before this one.

    Raises:
        InputError: The arm is an app already, or there is no trial.
    """

    arm: MakeApp
    trials: int = 3
    lessons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require_count("trials", self.trials)
        if not callable(self.arm) or hasattr(self.arm, "invoke"):
            raise InputError(
                f"{self.arm!r} is an app, which cannot begin anew: give a function that makes one"
            )

    def __call__(self, scenario: Scenario, agent: Agent | None, model: Any, world: Any = None) -> Any:
        """The app of this trial."""
        if not callable(getattr(world, "outcome", None)):
            raise InputError(
                f"scenario {scenario.name!r} does not tell whether a trial has failed: reflexion needs a world whose "
                "outcome() says `success`"
            )
        if agent is not None and self.lessons:
            noted = [f"{number}. {lesson}" for number, lesson in enumerate(self.lessons, start=1)]
            agent = agent.replace(profile="\n".join([agent.profile, "", _HEADING, *noted]))
        return self.arm(
            scenario, agent, model, **select_accepted_arguments(self.arm, world=world, matches_only=False)
        )

    async def again(
        self, model: Any, messages: Sequence[BaseMessage], outcome: Callable[[], Mapping[str, Any]]
    ) -> Reflexion | None:
        """The arm of the next trial; None where this one did not fail, or was the last.

        Raises:
            InputError: The world's outcome is none.
            ReasoningError: The model gave no answer.
        """
        if len(self.lessons) + 1 >= self.trials or outcome().get("success") is not False:
            return None
        node = BlueprintNode(
            model,
            Reflection,
            PROMPTS / "reflexion.md",
            write={"reflection": lambda answer: answer.value.reflection},
            reads=("lessons",),
            module="reflexion",
        )
        update = await node.ainvoke({"messages": list(messages), "lessons": list(self.lessons)})
        return replace(self, lessons=(*self.lessons, str(update["reflection"])))
