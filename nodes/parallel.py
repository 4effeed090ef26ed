"""Steps of a turn in one wave of model calls: each is asked ahead, while those before it wait for their answers."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import coroutine
from typing import Any, TypeAlias

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import InputError, ReasoningError, require_type
from arq_graph.nodes.blueprint_node import (
    BlueprintNode,
    Questions,
    UserFunction,
    arun_node_steps,
    run_node_steps,
)
from arq_graph.nodes.channels import Node, StateView, Update
from arq_graph.nodes.messages import unanswered_calls
from arq_graph.reasoning.answer import Answer, Complaint, Question
from arq_graph.reasoning.blueprint import dump_in_mode
from arq_graph.reasoning.reasoner import aask_together, ask_together
from arq_graph.reasoning.steps import aperform_steps


class Parallel(Node):
    """Several steps of a turn as one node, asked at the same time: `Parallel(matcher, caller)`.

    Each step works on what the steps before it wrote, as it would in a node of its own. But its model is asked ahead,
    while the earlier steps wait for their answers. An answer counts if the step would still ask the same question, word
    for word. A tool caller is asked about every tool that could be granted, and an answer about a tool counts if just
    the guidelines that it was asked with grant that tool. If an answer does not count, the question is asked again
    where it is needed. When a step calls tools, the steps behind it are left out.

    Args:
        *nodes: The steps, in order, such as a `GuidelineMatcher`, a `ToolCaller` and a `MessageReviser`, each with its
            own model and settings, and all with one `messages_key`.

    Raises:
        ReasoningError: When run: a model gave no answer to something that counts. Else as its steps do.
    """

    def __init__(self, *nodes: BlueprintNode[Any]) -> None:
        if not nodes:
            raise InputError("Parallel takes the steps that it is to run: Parallel(matcher, caller)")
        for node in nodes:
            require_type("nodes", node, BlueprintNode, "a step is a node that asks a model")
        self.nodes = nodes
        self.name = "+".join(node.module for node in nodes)
        self.messages_key = nodes[0].messages_key
        self._channels = {name: kind for node in nodes for name, kind in node.channels.items()}
        self.declare_channels({**self._channels, self.messages_key: list[AnyMessage]})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the steps on a state: a dict, a dataclass or a Pydantic model."""
        return run_node_steps(self.steps(input), partial(ask_together, config=config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the steps on a state, without blocking."""
        return await arun_node_steps(self.steps(input), partial(aask_together, config=config))

    def steps(self, state: Any) -> Generator[Any, Any, Update]:
        """Take the steps in order; where one has to wait for a model, those behind it are asked ahead."""
        update: Update = {}
        ahead: _Ahead = {}
        for node in self.nodes:
            answered = partial(self._answered, node, state, ahead)
            # A coroutine is driven by yielding from it, so that what it waits for is yielded here.
            written = yield from aperform_steps(node.steps(node.view_state(state)), answered).__await__()
            state = self._after(state, written)
            said = [*update.get(self.messages_key, ()), *written.get(self.messages_key, ())]
            update |= {**written, **({self.messages_key: said} if said else {})}
            if self._calls(state):
                break
        return update

    @coroutine
    def _answered(
        self,
        node: BlueprintNode[Any],
        state: Any,
        ahead: _Ahead,
        wanted: Sequence[Question[Any]] | UserFunction,
    ) -> Generator[Any, Any, Any]:
        """What a step gets for what it yields: an answer that was given ahead, or one that is asked for now."""
        if callable(wanted):
            return (yield wanted)
        answers = [_told(node, question, ahead) for question in wanted]
        missing = [question for question, found in zip(wanted, answers, strict=True) if found is None]
        if missing:
            own = [(node.reasoner, question) for question in missing]
            begun = yield from self._begun(node, state, ahead, wanted)
            given = iter((yield [*own, *((each.reasoner, each.question) for each in begun)]))
            answers = [next(given) if found is None else found for found in answers]
            for each in begun:
                each.answer = next(given)
        return answers

    def _begun(
        self, node: BlueprintNode[Any], state: Any, ahead: _Ahead, wanted: Sequence[Question[Any]]
    ) -> Generator[UserFunction, Any, list[_Asked]]:
        """What the steps behind ask, each once, as far as things are known before the answers that are waited for."""
        widest = self._after(state, wanted.widest()) if isinstance(wanted, Questions) else state
        begun: list[_Asked] = []
        for step in self.nodes[self.nodes.index(node) + 1 :]:
            if step in ahead:
                continue
            seen = widest if step.assumes_all_match else state
            steps = step.steps(step.view_state(seen, is_ahead=True))
            ahead[step] = []
            try:
                asked = next(steps)
                while callable(asked):
                    asked = steps.send((yield asked))
            except StopIteration as finished:
                if self._calls(self._after(seen, finished.value)):
                    break
            else:
                ahead[step] = [_Asked(question, step) for question in asked]
                begun += ahead[step]
        return begun

    def _calls(self, state: Any) -> bool:
        return bool(unanswered_calls(StateView(state, self.messages_key).messages))

    def _after(self, state: Any, update: Update) -> Any:
        if not update:
            return state
        before = StateView(state, self.messages_key)
        held = (
            dict(state) if isinstance(state, Mapping) else {each: before.get(each) for each in self._channels}
        )
        # New messages, or all of them anew. None gets an id here: records name a turn by that of its message.
        said = update.get(self.messages_key, ())
        anew = bool(said) and isinstance(said[0], RemoveMessage)
        return {**held, **update, self.messages_key: [*(() if anew else before.messages), *said[anew:]]}


class _Asked:
    """A question that a step is asked ahead, what its check is given meanwhile, and its answer."""

    answer: Answer[Any] | ReasoningError | None = None

    def __init__(self, question: Question[Any], node: BlueprintNode[Any]) -> None:
        self._check = question.check
        self._checked: list[Any] = []
        self.reasoner = node.reasoner
        self.question = replace(question, check=self._noted, on_partial=None)

    def _noted(self, value: Any) -> Sequence[Complaint]:
        self._checked.append(value)
        return self._check(value) if self._check else ()

    def repeat(self, question: Question[Any]) -> None:
        """Let a question's own functions see, and tell, what they would have seen had it been asked."""
        for value in self._checked:
            if question.on_partial:
                question.on_partial({})
                question.on_partial(dump_in_mode(value, "direct"))
            if question.check:
                question.check(value)


_Ahead: TypeAlias = dict[BlueprintNode[Any], list[_Asked]]


def _told(
    node: BlueprintNode[Any], question: Question[Any], ahead: _Ahead
) -> Answer[Any] | ReasoningError | None:
    """The answer to a question that was given ahead, if it counts."""
    for each in ahead.get(node, ()):
        then = each.question
        is_same = then.messages == question.messages
        if node.assumes_all_match:
            is_same = then.guidelines == question.guidelines
        if is_same and then.blueprint is question.blueprint:
            each.repeat(question)
            return each.answer
    return None
