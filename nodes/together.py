"""Steps of a turn in one wave of model calls: each is asked ahead, while those before it wait for their answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import coroutine
from typing import Any

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import ReasoningError, checked_type
from arq_graph.nodes.blueprint_node import BlueprintNode, Questions, Steps, Task
from arq_graph.nodes.channels import Node, Reader, Update
from arq_graph.nodes.turns import pending_calls
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.performing import aperform_steps


class Together(Node):
    """Several steps of a turn as one node, asked at the same time: `Together(matcher, caller)`.

    Each step works on what those before it wrote, as it would in a node of its own; but it is asked ahead, while they
    wait for their answers. What comes back counts if the step would still ask the same, word for word. A tool caller is
    asked about every tool that could be granted, and what it says of a tool counts once that is granted. What does not
    count is asked for anew where it is needed, and leaves nothing but its cost. A step that calls tools is the last.

    Args:
        *nodes: The steps, in order, such as a `GuidelineMatcher`, a `ToolCaller` and a `MessageReviser`, each with its
            own model and settings, and all with one `messages_key`.

    Raises:
        ReasoningError: When run: a model gave no answer to something that counts. Else as its steps do.
    """

    def __init__(self, *nodes: BlueprintNode[Any]) -> None:
        for node in nodes:
            checked_type("nodes", node, BlueprintNode, "a step is a node that asks a model")
        self.nodes = nodes
        self.name = "+".join(node.module for node in nodes)
        self.messages_key = nodes[0].messages_key
        self._channels = {name: kind for node in nodes for name, kind in node.channels().items()}
        self.name_channels({**self._channels, self.messages_key: list[AnyMessage]})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the steps on a state: a dict, a dataclass or a Pydantic model."""
        return self.nodes[0].perform(self.steps(input), config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the steps on a state, without blocking."""
        return await self.nodes[0].aperform(self.steps(input), config)

    def steps(self, state: Any) -> Steps:
        """Take the steps in order; where one has to wait for a model, those behind it are asked ahead."""
        update: Update = {}
        later = [_Step(node) for node in self.nodes]
        while later:
            step, *later = later
            answered = partial(self._answered, state, step, later)
            # A coroutine is driven by yielding from it, so that what it waits for is yielded here.
            written = yield from aperform_steps(step.steps(state), answered).__await__()
            state = self._after(state, written)
            said = [*update.get(self.messages_key, ()), *written.get(self.messages_key, ())]
            update |= {**written, **({self.messages_key: said} if said else {})}
            if self._calls(state):
                break
        return update

    @coroutine
    def _answered(
        self, state: Any, step: _Step, later: Sequence[_Step], wanted: Sequence[Question[Any]] | Task
    ) -> Generator[Any, Any, Any]:
        """What a step gets for what it yields: an answer that was given ahead, or one that is asked for now."""
        if callable(wanted):
            return (yield wanted)
        answers = [step.told(question) for question in wanted]
        missing = [question for question, found in zip(wanted, answers, strict=True) if found is None]
        if missing:
            ahead = yield from self._asked_ahead(state, later, wanted)
            given = iter((yield [*map(step.own, missing), *(each.question for each in ahead)]))
            answers = [next(given) if found is None else found for found in answers]
            for each in ahead:
                each.answer = next(given)
        return answers

    def _asked_ahead(
        self, state: Any, later: Sequence[_Step], wanted: Sequence[Question[Any]]
    ) -> Generator[Task, Any, list[_Asked]]:
        """What the steps behind ask, each once, as far as things are known before the answers that are waited for."""
        widest = self._after(state, wanted.widest()) if isinstance(wanted, Questions) else state
        asked: list[_Asked] = []
        for step in later:
            seen = widest if step.node.asked_widely else state
            written = yield from step.ask_ahead(seen)
            if self._calls(self._after(seen, written)):
                break
            asked += (each for each in step.ahead or () if each.answer is None)
        return asked

    def _calls(self, state: Any) -> bool:
        return bool(pending_calls(Reader(state, self.messages_key).messages()))

    def _after(self, state: Any, update: Update) -> Any:
        """A state with an update written to it."""
        if not update:
            return state
        before = Reader(state, self.messages_key)
        held = (
            dict(state) if isinstance(state, Mapping) else {each: before.get(each) for each in self._channels}
        )
        # New messages, or all of them anew. None gets an id here: records name a turn by that of its message.
        said = update.get(self.messages_key, ())
        anew = bool(said) and isinstance(said[0], RemoveMessage)
        return {**held, **update, self.messages_key: [*(() if anew else before.messages()), *said[anew:]]}


@dataclass
class _Asked:
    """A question that was asked ahead, what its check was given, and the answer."""

    question: Question[Any]
    checked: list[Any]
    answer: Answer[Any] | ReasoningError | None = None


class _Step:
    """One step, and what it was asked ahead."""

    def __init__(self, node: BlueprintNode[Any]) -> None:
        self.node = node
        self.ahead: list[_Asked] | None = None

    def steps(self, state: Any, *, ahead: bool = False) -> Steps:
        """The node's own steps on a state."""
        return self.node.steps(self.node.reader(state, ahead=ahead))

    def own(self, question: Question[Any]) -> Question[Any]:
        """A question that is asked by this node's reasoner."""
        return replace(question, reasoner=self.node.reasoner)

    def ask_ahead(self, state: Any) -> Generator[Task, Any, Update]:
        """Take up, once, what it would ask on a state that may still change; its update if it asks nothing."""
        if self.ahead is not None:
            return {}
        self.ahead = []
        steps = self.steps(state, ahead=True)
        try:
            wanted = next(steps)
            while callable(wanted):
                wanted = steps.send((yield wanted))
        except StopIteration as finished:
            written: Update = finished.value
            return written
        for question in wanted:
            checked: list[Any] = []
            self.ahead.append(
                _Asked(replace(self.own(question), check=_recorded(question, checked)), checked)
            )
        return {}

    def told(self, question: Question[Any]) -> Answer[Any] | ReasoningError | None:
        """The answer that was given ahead to a question, if it counts."""
        for each in self.ahead or ():
            if each.question.blueprint is question.blueprint and (
                self.node.asked_widely or each.question.messages == question.messages
            ):
                # The step keeps, and tells, what was found on the way to the answer.
                if question.check:
                    for value in each.checked:
                        question.check(value)
                return each.answer
        return None


def _recorded(question: Question[Any], checked: list[Any]) -> Callable[[Any], Sequence[Complaint]]:
    def check(value: Any) -> Sequence[Complaint]:
        checked.append(value)
        return question.check(value) if question.check else ()

    return check
