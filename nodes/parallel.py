"""Several steps of a turn asked side by side: each is asked ahead while those before it wait for their answers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import Complaint, InputError, ReasoningError, require_type
from arq_graph.nodes.blueprint_node import (
    BlueprintNode,
    NodeRequests,
    Questions,
    UserFunction,
    arun_node_steps,
    run_node_steps,
)
from arq_graph.nodes.channels import Node, StateView, Update
from arq_graph.nodes.messages import find_unanswered_calls
from arq_graph.reasoning.answer import Answer, Question
from arq_graph.reasoning.blueprint import dump_in_mode
from arq_graph.reasoning.reasoner import Reasoner, aask_together, ask_together

Request: TypeAlias = "Sequence[Question[Any]] | UserFunction"
AssignedQuestions: TypeAlias = "list[tuple[Reasoner, Question[Any]]]"


class Parallel(Node):
    """Several steps of a turn as one node, asked at the same time: `Parallel(matcher, caller)`.

    Each step works on what the steps before it wrote, as it would in a node of its own. But its model is asked ahead,
    while the earlier steps wait for their answers. An answer counts if the step would still ask the same question,
    word for word. A tool caller is asked about every tool that could be granted, and an answer about a tool counts if
    exactly the guidelines that it was asked with grant that tool. If an answer doesn't count, the question is asked
    again when the step is reached. If a step calls tools, the steps after it are left out.

    Args:
        *nodes: The steps, in order, such as a `GuidelineMatcher`, a `ToolCaller` and a `MessageReviser`, each with its
            own model and settings, and all with one `messages_key`.

    Raises:
        ReasoningError: When run: a model gave no answer to something that counts. Otherwise as the steps do.
    """

    def __init__(self, *nodes: BlueprintNode[Any]) -> None:
        if not nodes:
            raise InputError("Parallel takes the steps that it is to run: Parallel(matcher, caller)")
        for node in nodes:
            require_type("nodes", node, BlueprintNode, "a step is a node that asks a model")
        self.nodes = nodes
        self.name = "+".join(node.module for node in nodes)
        self.messages_key = nodes[0].messages_key
        self._channels: dict[str, Any] = {}
        for node in nodes:
            self._channels.update(node.channels)
        self.declare_channels({**self._channels, self.messages_key: list[AnyMessage]})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the steps on a state: a dict, a dataclass or a Pydantic model."""
        return run_node_steps(self.reason(input), partial(ask_together, config=config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the steps on a state, without blocking."""
        return await arun_node_steps(self.reason(input), partial(aask_together, config=config))

    def reason(self, state: Any) -> Generator[AssignedQuestions | UserFunction, Any, Update]:
        """Run the steps in order, and return their updates as one."""
        update: Update = {}
        messages: list[Any] = []
        turn_steps = [_Step(node) for node in self.nodes]
        for number, step in enumerate(turn_steps, start=1):
            handle = partial(self._handle_request, step, turn_steps[number:], state)
            node_steps = step.node.reason(step.node.view_state(state))
            node_update = yield from _run_steps(node_steps, handle)
            state = self._apply(state, node_update)
            messages.extend(node_update.get(self.messages_key, ()))
            update.update(node_update)
            if self._calls_tools(state):
                break
        if messages:
            update[self.messages_key] = messages
        return update

    def _handle_request(
        self, step: _Step, following: Sequence[_Step], state: Any, request: Request
    ) -> Generator[Any, Any, Any]:
        """Return the answers to a step's questions: those that came ahead, and for the others, new ones."""
        if callable(request):
            return (yield request)
        answers = [step.find_answer(question) for question in request]
        unanswered = [question for question, answer in zip(request, answers, strict=True) if answer is None]
        if not unanswered:
            return answers
        early_questions = yield from self._ask_ahead(following, state, request)
        assigned = [(step.node.reasoner, question) for question in unanswered]
        assigned += [(early.reasoner, early.question) for early in early_questions]
        new_answers = iter((yield assigned))
        for position, answer in enumerate(answers):
            if answer is None:
                answers[position] = next(new_answers)
        for early in early_questions:
            early.answer = next(new_answers)
        return answers

    def _ask_ahead(
        self, following: Sequence[_Step], state: Any, request: Sequence[Question[Any]]
    ) -> Generator[UserFunction, Any, list[_EarlyQuestion]]:
        """Return the questions of the following steps that weren't asked ahead yet."""
        state_if_all_match = state
        if isinstance(request, Questions):
            state_if_all_match = self._apply(state, request.make_update_if_all_match())
        early_questions: list[_EarlyQuestion] = []
        for step in following:
            if step.was_asked_speculatively:
                continue
            step.was_asked_speculatively = True
            node = step.node
            expected_state = state_if_all_match if node.assumes_all_match else state
            node_steps = node.reason(node.view_state(expected_state, is_speculative=True))
            questions, update = yield from _run_until_questions(node_steps)
            step.early_questions = [_EarlyQuestion(node.reasoner, question) for question in questions]
            early_questions += step.early_questions
            if not questions and self._calls_tools(self._apply(expected_state, update)):
                break  # the steps after it would be left out
        return early_questions

    def _calls_tools(self, state: Any) -> bool:
        return bool(find_unanswered_calls(StateView(state, self.messages_key).messages))

    def _apply(self, state: Any, update: Update) -> Any:
        """Return the state after an update."""
        if not update:
            return state
        view = StateView(state, self.messages_key)
        if isinstance(state, Mapping):
            values = dict(state)
        else:
            values = {channel: view.get(channel) for channel in self._channels}
        # No message gets an id here, since records name a turn by the id of its message.
        messages = list(update.get(self.messages_key, ()))
        if messages and isinstance(messages[0], RemoveMessage):
            del messages[0]  # it stands for the removal of all earlier messages
        else:
            messages = [*view.messages, *messages]
        return {**values, **update, self.messages_key: messages}


class _Step:
    """A step in one run, which goes through these states:

    1. An earlier step waits for answers. This one is asked ahead, once, with the state as it is then.
    2. Its answers have come, and are stored until the step is reached.
    3. The earlier steps are done, and this one runs. A stored answer counts if it's for a question that the step asks
       now. The other questions are asked, together with those of the following steps that are still in state 1.
    """

    def __init__(self, node: BlueprintNode[Any]) -> None:
        self.node = node
        self.was_asked_speculatively = False
        self.early_questions: list[_EarlyQuestion] = []

    def find_answer(self, question: Question[Any]) -> Answer[Any] | ReasoningError | None:
        """Return the answer that came ahead to the same question, or None."""
        for early in self.early_questions:
            is_same = early.question.messages == question.messages
            if self.node.assumes_all_match:
                is_same = early.question.guidelines == question.guidelines
            if is_same and early.question.blueprint is question.blueprint:
                early.replay(question)
                return early.answer
        return None


class _EarlyQuestion:
    """A question that a step was asked ahead, with its answer and the valid candidates on the way."""

    def __init__(self, reasoner: Reasoner, question: Question[Any]) -> None:
        self.reasoner = reasoner
        self.question = replace(question, on_candidate=self._add_candidate, on_partial=None)
        self.answer: Answer[Any] | ReasoningError | None = None
        self._on_candidate = question.on_candidate
        self._candidates: list[tuple[Any, Sequence[Complaint]]] = []

    def _add_candidate(self, value: Any, complaints: Sequence[Complaint]) -> None:
        self._candidates.append((value, complaints))
        if self._on_candidate:
            self._on_candidate(value, complaints)

    def replay(self, question: Question[Any]) -> None:
        """Report the candidates as if the question had been asked now, and not ahead."""
        for value, complaints in self._candidates:
            if question.on_partial:
                question.on_partial({})
                question.on_partial(dump_in_mode(value, "direct"))
            if question.on_candidate:
                question.on_candidate(value, complaints)


def _run_steps(
    steps: NodeRequests, handle: Callable[[Request], Generator[Any, Any, Any]]
) -> Generator[Any, Any, Update]:
    """Run a node's steps, with what `handle` returns as the result of each request."""
    try:
        request = next(steps)
        while True:
            try:
                result = yield from handle(request)
            except Exception as error:
                request = steps.throw(error)
            else:
                request = steps.send(result)
    except StopIteration as finished:
        update: Update = finished.value
        return update
    finally:
        steps.close()


def _run_until_questions(
    steps: NodeRequests,
) -> Generator[UserFunction, Any, tuple[Sequence[Question[Any]], Update]]:
    """Run a node's steps until they ask something; return the questions, or the update if there are none."""
    try:
        request = next(steps)
        while callable(request):
            request = steps.send((yield request))
    except StopIteration as finished:
        return (), finished.value
    return request, {}
