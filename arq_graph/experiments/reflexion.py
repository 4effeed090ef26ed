"""Reflexion: try again after a failure, with what was learned from it, for any arm (ReSpAct, B.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage

from arq_graph.agent.spec import Agent
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.arms import AppFactory, select_accepted_arguments
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
    """An arm that tries a task again after a failure, in a new world, with its reflections on the trials before.

    Args:
        arm: The function that makes the app.
        trials: How often a task is tried at most, 1 or more.
        lessons: The reflections on the trials before this one.

    Raises:
        InputError: `arm` is an app already.
    """

    arm: AppFactory
    trials: int = 3
    lessons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.arm) or hasattr(self.arm, "invoke"):
            raise InputError(
                f"{self.arm!r} is an app, which cannot begin anew: give a function that makes one"
            )

    def __call__(self, scenario: Scenario, agent: Agent | None, model: Any, world: Any = None) -> Any:
        """Make the app of this trial; its profile lists the lessons."""
        if not callable(getattr(world, "outcome", None)):
            raise InputError(
                f"scenario {scenario.name!r} does not tell whether a trial has failed: reflexion needs a world whose "
                "outcome() says `success`"
            )
        if agent is not None and self.lessons:
            profile = f"{agent.profile}\n\n{_HEADING}"
            for number, lesson in enumerate(self.lessons, start=1):
                profile += f"\n{number}. {lesson}"
            agent = agent.replace(profile=profile)
        arguments = select_accepted_arguments(self.arm, world=world, matcher_only=False)
        return self.arm(scenario, agent, model, **arguments)

    async def again(
        self, model: Any, messages: Sequence[BaseMessage], read_outcome: Callable[[], Mapping[str, Any]]
    ) -> Reflexion | None:
        """Return the arm of the next trial, or None if this one didn't fail or was the last.

        Raises:
            InputError: The outcome of the world isn't a mapping of names to numbers and truth values.
            ReasoningError: The model gave no answer.
        """
        is_last = len(self.lessons) + 1 >= self.trials
        if is_last or read_outcome().get("success") is not False:
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
