"""The model of an agent of `create_agent` as a strategy: its calls pass the gate like those of any other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage

from arq_graph.agent.spec import Agent
from arq_graph.agent.state import PendingCall, ToolVerdict
from arq_graph.apps.checked_message import CheckedMessage
from arq_graph.errors import InputError
from arq_graph.nodes.agent_node import (
    describe_agent,
    describe_guideline,
    describe_passages,
    describe_variables,
)
from arq_graph.nodes.agreement import AgreementOutcome, Agrees
from arq_graph.nodes.blueprint_node import NodeSteps
from arq_graph.nodes.confirmation import make_reply
from arq_graph.nodes.early_reply import check_reply
from arq_graph.nodes.events import ReplySent, ToolsDecided
from arq_graph.nodes.gate import CallCheck, Gate
from arq_graph.nodes.grants import get_active_scores
from arq_graph.nodes.journey_run import note_done_steps
from arq_graph.nodes.node import Update
from arq_graph.nodes.proposed_calls import merge_verdicts
from arq_graph.nodes.state_view import withhold_messages
from arq_graph.nodes.strategy import Strategy
from arq_graph.nodes.tool_arguments import ToolSchema
from arq_graph.reasoning.reasoner import ModelLike

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse

DRAFT_CHANNEL = "draft"
"""Where the reviser finds the model's text."""

RESPONSE_KEY = "structured_response"
"""Key of the update that holds the model's structured answer."""

MAX_MODEL_CALLS = 2
"""How often the model is called in one step if all calls that it proposes are refused."""


class ModelCall(Strategy):
    """A call of the agent's own model as a strategy: it proposes by tool calls, and its text is a draft."""

    module = "agent"
    prompt_name = "agent_model"
    sends_reply = True

    request: ModelRequest[Any]
    ask_model: Callable[[bool, ModelRequest[Any]], Any]
    revise: Callable[[Any], Any] | None

    def __init__(self, model: ModelLike, agent: Agent, *, agrees: Agrees | None = None) -> None:
        super().__init__(model, agent, agrees=agrees)
        self.head = self.template.render("head", describe_agent(agent))

    def for_request(
        self,
        request: ModelRequest[Any],
        ask_model: Callable[[bool, ModelRequest[Any]], Any],
        revise: Callable[[Any], Any] | None,
    ) -> Self:
        """Return a copy for one request, with the functions that call the model and the reviser, sync or async both.

        The first argument of `ask_model` says whether the call has to be hidden from users' streams.
        """
        model_call = copy(self)
        model_call.request = request
        model_call.ask_model = ask_model
        model_call.revise = revise
        return model_call

    def decide(self, gate: Gate, agreement_outcome: AgreementOutcome) -> NodeSteps:
        """Ask the model, make the calls that pass the gate, and if none is left, reply."""
        if self.agent.composition == "strict" and self.request.response_format is not None:
            raise InputError(
                f"agent {self.agent.name!r} sends prepared replies alone (composition='strict'), and an answer in "
                "`response_format` is the model's own: take out one of the two"
            )
        earlier = gate.state.read_turn_records("tool_insights", ToolVerdict, gate.state.turn_id)
        verdicts = list(agreement_outcome.verdicts) + earlier
        unconfirmed = [verdict for verdict in verdicts if verdict.kind == "confirm"]
        offered = set(gate.granted) | {call.tool for call in agreement_outcome.pending.values()}
        request = self._build_request(gate, agreement_outcome, verdicts, offered)
        has_question = any(verdict.kind == "confirm" for verdict in verdicts)
        # A draft streams only while none of our tools is offered: then no call can be refused, and no question follows.
        is_hidden = bool(self.revise or offered or has_question or self.agent.select_checks("output"))
        proposed: list[ToolVerdict] = []
        for _ in range(MAX_MODEL_CALLS):
            response = yield partial(self.ask_model, is_hidden, request)
            checked = self._check_message(gate, agreement_outcome, response)
            tools = {verdict.tool for verdict in checked.verdicts}  # the newest verdict on each tool counts
            proposed = [verdict for verdict in proposed if verdict.tool not in tools] + checked.verdicts
            if not checked.has_only_refused_calls:
                break
            request = request.override(messages=request.messages + checked.report_refusals())

        calls = checked.allowed_calls
        to_confirm = self._merge_verdicts_to_confirm(checked, unconfirmed, agreement_outcome)
        if to_confirm and response.structured_response is not None:
            # Code's question replaces the structured answer.
            calls = []
            response = replace(response, result=[checked.message], structured_response=None)
        runs = [verdict for verdict in checked.verdicts if verdict.kind == "run"]
        verdicts_to_record = merge_verdicts(agreement_outcome, proposed, runs, to_confirm, asks=not calls)
        gate.state.emit(ToolsDecided(decisions=tuple(verdicts_to_record)))
        update = self.make_update(gate, verdicts_to_record)

        has_answer = response.structured_response is not None
        if calls or has_answer or not (self.revise or to_confirm or checked.refusals):
            if not calls:
                checks, other_message = yield from check_reply(self.agent, gate.state, checked.message.text)
                update |= checks
                if other_message is not None:
                    return update | {self.messages_key: [other_message], RESPONSE_KEY: None}
            if not calls and not has_answer:
                gate.state.emit(ReplySent(content=checked.message.text))
            message = self._remove_refused_calls(checked, has_calls=bool(calls))
            notes = message.response_metadata | note_done_steps(self.agent, gate.state)
            messages: list[AnyMessage] = [message.model_copy(update={"response_metadata": notes})]
            messages += [message for message in response.result if message is not checked.message]
            return update | {self.messages_key: messages, RESPONSE_KEY: response.structured_response}
        return (yield from self._write_reply(gate, update, checked.message, to_confirm))

    def _build_request(
        self,
        gate: Gate,
        agreement_outcome: AgreementOutcome,
        verdicts: Sequence[ToolVerdict],
        offered: set[str],
    ) -> ModelRequest[Any]:
        """Offer the tools that may be called now, and append the rules to the caller's prompt."""
        rules = self._render_rules(gate, agreement_outcome, verdicts, offered)
        # Tools that the specification does not name stay, and so do those that a provider runs itself.
        hidden = self.tools.keys() - offered
        tools = [tool for tool in self.request.tools if getattr(tool, "name", None) not in hidden]
        prompt = _append_rules(self.request.system_message, rules)
        messages = withhold_messages(self.request.messages, gate.state.blocked_message_ids)
        return self.request.override(system_message=prompt, tools=tools, messages=messages)

    def _render_rules(
        self,
        gate: Gate,
        agreement_outcome: AgreementOutcome,
        verdicts: Sequence[ToolVerdict],
        offered: set[str],
    ) -> str:
        guidelines = []
        for id in get_active_scores(self.agent, gate.state):
            guideline = self.agent.get_guideline(id)
            guidelines.append(describe_guideline(guideline) | {"priority": guideline.priority})
        asked_below_reply = []
        refused = []
        for verdict in verdicts:
            if verdict.kind == "confirm":
                asked_below_reply.append(_describe_call(verdict))
            elif verdict.kind != "run":
                refused.append(_describe_call(verdict) | {"why": _explain_refusal([verdict])})
        pending = map(_describe_call, agreement_outcome.pending.values())
        sections = {
            "needs_agreement": sorted(offered & self.agent.get_confirmed_tools("customer")),
            "put_below_your_reply": asked_below_reply,
            "awaiting_agreement": [call for call in pending if call not in asked_below_reply],
            "refused": refused,
        }
        context = {
            "variables": describe_variables(self.agent, gate.state),
            "knowledge": describe_passages(self.agent, gate.state),
            "active_guidelines": guidelines,
            "now": {name: value for name, value in sections.items() if value},
        }
        return f"{self.head}\n{self.template.render('tail', context)}"

    def _check_message(
        self, gate: Gate, agreement_outcome: AgreementOutcome, response: ModelResponse[Any]
    ) -> CheckedMessage:
        """Have the gate check each call of the model's message; calls of tools that aren't ours pass."""
        message = next((part for part in response.result if isinstance(part, AIMessage)), AIMessage(""))
        checked = CheckedMessage(message, verdicts=[], refusals={}, arguments={})
        for invalid_call in message.invalid_tool_calls:
            checked.refusals[invalid_call["id"]] = f"no JSON: {invalid_call['args']}"
        checked_identities: set[str] = set()
        for call in message.tool_calls:
            tool = self.tools.get(call["name"])
            if tool is None:
                continue
            arguments = tool.rename(call["args"])
            identity = tool.make_call_identity(arguments)
            pending = _find_pending_call(tool, arguments, agreement_outcome)
            if identity in checked_identities:
                reason = "the same call was proposed twice"
                check = gate.make_check(tool, "declined", arguments, reason)
            elif pending:
                check = CallCheck(gate.recheck_pending_calls([pending]))
            else:
                check = gate.check(tool, arguments, tool.validate(arguments))
            checked_identities.add(identity)
            checked.verdicts.extend(check.verdicts)
            if check.is_accepted:
                checked.arguments[call["id"]] = check.arguments
            else:
                checked.refusals[call["id"]] = _explain_refusal(check.verdicts)
        return checked

    def _merge_verdicts_to_confirm(
        self,
        checked: CheckedMessage,
        unconfirmed: Sequence[ToolVerdict],
        agreement_outcome: AgreementOutcome,
    ) -> list[ToolVerdict]:
        """Return the calls that code asks about: those just proposed, and earlier ones that these do not replace."""
        proposed_tools = {verdict.tool for verdict in checked.verdicts}
        to_confirm = checked.verdicts_to_confirm
        for verdict in unconfirmed:
            if verdict in agreement_outcome.verdicts or verdict.tool not in proposed_tools:
                to_confirm.append(verdict)
        distinct = {
            self.tools[verdict.tool].make_call_identity(verdict.arguments): verdict for verdict in to_confirm
        }
        return list(distinct.values())

    def _remove_refused_calls(self, checked: CheckedMessage, *, has_calls: bool) -> AIMessage:
        """Return the message without refused calls; beside calls without its text, which nobody has revised."""
        message = checked.message
        drops_text = bool(self.revise) and has_calls
        has_same_calls = checked.allowed_calls == message.tool_calls
        if has_same_calls and not checked.refusals and not (drops_text and message.text):
            return message
        content: Any = "" if drops_text else message.content
        if isinstance(message.content, list):
            content = [block for block in message.content if not _is_dropped(block, checked, drops_text)]
        changes = {
            "content": content,
            "tool_calls": checked.allowed_calls,
            "additional_kwargs": _drop_keys(message.additional_kwargs, "tool_calls", "function_call"),
            "response_metadata": _drop_keys(message.response_metadata, "id"),
        }
        return message.model_copy(update=changes)

    def _write_reply(
        self, gate: Gate, decided: Update, message: AIMessage, to_confirm: Sequence[ToolVerdict]
    ) -> NodeSteps:
        """Revise the model's text, or only put code's question below it; `decided` is the update so far."""
        update = dict(decided)
        if self.revise:
            state = dict(gate.state.raw) | decided | {DRAFT_CHANNEL: message.text.strip()}
            update |= yield partial(self.revise, state)
            (reply,) = update[self.messages_key]
        else:
            fallback = "" if to_confirm else self.agent.fallback
            text = message.text or fallback
            new_reply = make_reply(self.agent, gate.state, text, to_confirm)
            checks, other_message = yield from check_reply(self.agent, gate.state, new_reply.message.text)
            if other_message is not None:
                return update | checks | {self.messages_key: [other_message]}
            gate.state.emit(ReplySent(content=new_reply.message.text))
            gate.state.emit(new_reply.event)
            reply = new_reply.message
            update |= new_reply.update | checks
        metadata = _drop_keys(message.response_metadata, "id")
        metadata |= reply.response_metadata
        changes = {
            "name": message.name,
            "usage_metadata": message.usage_metadata,
            "response_metadata": metadata,
        }
        update[self.messages_key] = [reply.model_copy(update=changes)]
        return update


def _find_pending_call(
    tool: ToolSchema, arguments: Mapping[str, Any], agreement_outcome: AgreementOutcome
) -> PendingCall | None:
    """Return the pending call that a proposed call repeats; None if it repeats none."""
    for call in agreement_outcome.pending.values():
        if call.tool == tool.name and tool.is_repetition(arguments, call.arguments):
            return call
    return None


def _append_rules(prompt: SystemMessage | None, rules: str) -> SystemMessage:
    if prompt is None:
        return SystemMessage(rules)
    if isinstance(prompt.content, str):
        return prompt.model_copy(update={"content": f"{prompt.content}\n\n{rules}"})
    blocks = list(prompt.content)
    blocks.append({"type": "text", "text": rules})
    return prompt.model_copy(update={"content": blocks})


def _describe_call(call: ToolVerdict | PendingCall) -> dict[str, Any]:
    return {"tool": call.tool, "arguments": call.arguments}


def _explain_refusal(verdicts: Sequence[ToolVerdict]) -> str:
    """Return why a call is not made, as the model is told."""
    reasons = []
    for verdict in verdicts:
        reason = f"{verdict.argument or 'the call'} is {verdict.kind}"
        if verdict.problem:
            reason += f": {verdict.problem}"
        reasons.append(reason)
    return "; ".join(reasons)


def _drop_keys(mapping: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Drop a provider's own form of the calls, or the id of the message on its server, which would bring them back."""
    return {name: value for name, value in mapping.items() if name not in names}


def _is_dropped(block: Any, checked: CheckedMessage, drops_text: bool) -> bool:
    """Return whether a content block is a refused call, or text that is dropped beside calls."""
    if isinstance(block, str) or block.get("type") == "text":
        return drops_text
    return (block.get("call_id") or block.get("id")) in checked.refusals
