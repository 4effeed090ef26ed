"""Several nodes of a turn asked side by side: a node is asked speculatively while those before it wait for answers."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from langchain_core.messages import AnyMessage, RemoveMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.errors import Complaint, InputError, ReasoningError, require_type
from arq_graph.nodes.blueprint_node import (
    BlueprintNode,
    DeferredCall,
    NodeSteps,
    QuestionBatch,
    arun_steps,
    run_steps,
)
from arq_graph.nodes.messages import find_unanswered_calls
from arq_graph.nodes.node import Node, Update
from arq_graph.nodes.state_view import StateView
from arq_graph.reasoning.answer import NEW_ANSWER, Answer, Question
from arq_graph.reasoning.blueprint import dump_in_mode
from arq_graph.reasoning.reasoner import Reasoner, aask_together, ask_together

AssignedQuestions: TypeAlias = list[tuple[Reasoner, Question[Any]]]


class Parallel(Node):
    """Several nodes of a turn as one, asked at the same time: `Parallel(matcher, caller)`.

    Each node works on what the nodes before it wrote, as it would by itself. But its model is asked speculatively,
    while the earlier nodes wait for their answers:

    - An answer counts if the node would still ask the same question, word for word, once it is reached.
    - A tool caller is asked about every tool that could be granted. An answer about a tool counts if exactly the
      guidelines that it was asked with grant the tool.
    - A question whose answer doesn't count is asked again.

    If a node calls tools, the nodes after it are left out.

    Args:
        *nodes: The nodes, in order, such as a `GuidelineMatcher`, a `ToolCaller` and a `MessageReviser`, each with its
            own model and settings, and all with one `messages_key`.

    Raises:
        InputError: There are no nodes, or they differ in `messages_key`.
        ReasoningError: When run: a question whose answer counts got none. Other errors are those of the nodes.
    """

    def __init__(self, *nodes: BlueprintNode[Any]) -> None:
        if not nodes:
            raise InputError("Parallel takes the nodes that it is to run: Parallel(matcher, caller)")
        for number, node in enumerate(nodes):
            require_type(
                "nodes", node, BlueprintNode, "give nodes that ask a model, such as a GuidelineMatcher"
            )
            if node.messages_key != nodes[0].messages_key:
                raise InputError(
                    f"nodes[{number}]: messages_key is {node.messages_key!r}, but nodes[0] has "
                    f"{nodes[0].messages_key!r}. Give all nodes one messages_key."
                )
        self.nodes = nodes
        self.name = "+".join(node.module for node in nodes)
        self.messages_key = nodes[0].messages_key
        self._channels: dict[str, Any] = {}
        for node in nodes:
            self._channels.update(node.channels)
        self.declare_channels(self._channels | {self.messages_key: list[AnyMessage]})

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the nodes on a state: a dict, a dataclass or a Pydantic model."""
        return run_steps(self._run_nodes(input), partial(ask_together, config=config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the nodes on a state, without blocking."""
        return await arun_steps(self._run_nodes(input), partial(aask_together, config=config))

    def _run_nodes(self, state: Any) -> Generator[AssignedQuestions | DeferredCall, Any, Update]:
        """Run the nodes in order on a state of the graph, and return their updates as one."""
        update: Update = {}
        messages: list[Any] = []
        runs = [_NodeRun(node) for node in self.nodes]
        while runs:
            run = runs.pop(0)
            node_update = yield from self._run_node(run, runs, state)
            state = self._apply(state, node_update)
            messages.extend(node_update.get(self.messages_key, ()))
            update.update(node_update)
            if self._calls_tools(state):
                break
        if messages:
            update[self.messages_key] = messages
        return update

    def _run_node(
        self, run: _NodeRun, following: Sequence[_NodeRun], state: Any
    ) -> Generator[AssignedQuestions | DeferredCall, Any, Update]:
        with closing(run.node.steps(run.node.view_state(state))) as steps:
            request = yield from _run_until_questions(steps)
            while isinstance(request, QuestionBatch):
                answers = yield from self._answer(request, run, following, state)
                request = yield from _run_until_questions(steps, answers)
            return request

    def _answer(
        self, batch: QuestionBatch, run: _NodeRun, following: Sequence[_NodeRun], state: Any
    ) -> Generator[AssignedQuestions | DeferredCall, Any, list[Answer[Any] | ReasoningError | None]]:
        """Return the answers to a node's questions: those that were given speculatively, and new ones."""
        answers: list[Answer[Any] | ReasoningError | None] = []
        for question in batch.questions:
            speculative = run.find_same_question(question)
            if speculative:
                speculative.replay_candidates(question)
            answers.append(speculative.answer if speculative else None)
        unanswered = [index for index, answer in enumerate(answers) if answer is None]
        if not unanswered:
            return answers
        speculative_questions = yield from self._collect_speculative_questions(following, state, batch)
        assigned = [(run.node.reasoner, batch.questions[index]) for index in unanswered]
        for asked_early in speculative_questions:
            assigned.append((asked_early.reasoner, asked_early.question))
        new_answers = yield assigned
        own_answers, speculative_answers = new_answers[: len(unanswered)], new_answers[len(unanswered) :]
        for index, answer in zip(unanswered, own_answers, strict=True):
            answers[index] = answer
        for asked_early, answer in zip(speculative_questions, speculative_answers, strict=True):
            asked_early.answer = answer
        return answers

    def _collect_speculative_questions(
        self, following: Sequence[_NodeRun], state: Any, batch: QuestionBatch
    ) -> Generator[DeferredCall, Any, list[_SpeculativeQuestion]]:
        """Return the questions of the following nodes that weren't asked yet, while `batch` waits for answers."""
        optimistic_state = state
        if batch.make_optimistic_update:
            optimistic_state = self._apply(state, batch.make_optimistic_update())
        collected: list[_SpeculativeQuestion] = []
        for run in following:
            if run.speculative_questions is not None:
                continue
            node = run.node
            expected_state = optimistic_state if node.is_optimistic else state
            with closing(node.steps(node.view_state(expected_state, is_speculative=True))) as steps:
                request = yield from _run_until_questions(steps)
            run.speculative_questions = []
            if isinstance(request, QuestionBatch):
                for question in request.questions:
                    run.speculative_questions.append(_SpeculativeQuestion(node.reasoner, question))
            elif self._calls_tools(self._apply(expected_state, request)):
                break  # the nodes after it would be left out
            collected.extend(run.speculative_questions)
        return collected

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
        # Not by `add_messages`, which gives each message without an id a new one: records name a turn by such an id.
        messages = list(update.get(self.messages_key, ()))
        if messages and isinstance(messages[0], RemoveMessage):
            del messages[0]  # it says that the following messages replace all earlier ones
        else:
            messages = view.messages + messages
        return values | update | {self.messages_key: messages}


class _NodeRun:
    """A node in one run, which goes through these states:

    1. An earlier node waits for answers. This one is asked speculatively, once, with the state as it is then.
    2. Its answers have come, and are stored until the node is reached.
    3. The earlier nodes are done, and this one runs. A stored answer counts if it's for a question that the node asks
       now. The other questions are asked, together with those of the following nodes that are still in state 1.
    """

    def __init__(self, node: BlueprintNode[Any]) -> None:
        self.node = node
        self.speculative_questions: list[_SpeculativeQuestion] | None = None  # None in state 1

    def find_same_question(self, question: Question[Any]) -> _SpeculativeQuestion | None:
        """Return the question that was asked speculatively and is the same as this one, or None."""
        for speculative in self.speculative_questions or ():
            is_same_blueprint = speculative.question.blueprint is question.blueprint
            if is_same_blueprint and self.node.is_same_question(speculative.question, question):
                return speculative
        return None


class _SpeculativeQuestion:
    """A question that a node was asked speculatively, with its answer and the valid candidates on the way."""

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

    def replay_candidates(self, question: Question[Any]) -> None:
        """Report the candidates to the question's functions, as if it had been asked now."""
        for value, complaints in self._candidates:
            if question.on_partial:
                question.on_partial(NEW_ANSWER)
                question.on_partial(dump_in_mode(value, "direct"))
            if question.on_candidate:
                question.on_candidate(value, complaints)


def _run_until_questions(
    steps: NodeSteps, answers: Any = None
) -> Generator[DeferredCall, Any, QuestionBatch | Update]:
    """Pass a node the answers to its questions, and run it until it asks others or returns its update.

    An error of a function that it yields is thrown into it, as by `perform_steps`.
    """
    try:
        request = steps.send(answers)  # None starts it
        while not isinstance(request, QuestionBatch):
            try:
                result = yield request
            except Exception as error:
                request = steps.throw(error)
            else:
                request = steps.send(result)
    except StopIteration as finished:
        update: Update = finished.value
        return update
    return request
