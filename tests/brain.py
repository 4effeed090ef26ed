"""A scripted model that answers each of the shipped blueprints, in any mode, as a test tells it to.

    model = brain(judge={"G1": 9}, call={"get_order": {"order_id": "A-1"}}, reply="It is on its way.")
    model = brain(moves=[act("get_order", {"order_id": "A-1"}), say("It is late.")])  # the same in every strategy

Whatever a test doesn't mention gets the smallest answer that fits the schema: guidelines don't apply, no tool is
called, and each reply differs from the ones before.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arq_graph import ScriptedChatModel
from tests.prompts import Prompt, get_prompts
from tests.schemas import fill_schema, find_option, get_properties, override, without_null

__all__ = ["DONE", "Brain", "Move", "Prompt", "act", "ask", "brain", "do", "get_prompts", "say", "think"]

DONE = {
    "score": 8,
    "guideline_previously_applied": "fully",
    "guideline_should_reapply": False,
    "should_apply": False,
}
"""The judgement of a guideline that applies, and was followed already."""

TEXT_FIELDS = {"final_answer": "answer", "speak": "utterance", "think": "thought", "act": "action"}
"""By kind of a move that calls no tool: the field that holds its text."""


@dataclass(frozen=True)
class Move:
    """What is done next.

    Attributes:
        tool: The tool that is called, if any.
        args: Its arguments. One that is left out is not given; None is given as null.
        text: What is said, thought or done instead; None is the brain's reply.
        kind: "speak", "think", or "act" in a world.
        bases: By argument, what its value rests on; "this_request" unless it is named here.
        fields: Answers to further queries.
    """

    tool: str | None = None
    args: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None
    kind: str = "speak"
    bases: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)


def act(
    tool: str, args: Mapping[str, Any] | None = None, *, bases: Mapping[str, str] | None = None, **fields: Any
) -> Move:
    """Call a tool."""
    return Move(tool, args or {}, bases=bases or {}, fields=fields)


def say(text: str | None = None, **fields: Any) -> Move:
    """Say something to the customer."""
    return Move(text=text, fields=fields)


def ask(text: str, **fields: Any) -> Move:
    """Ask the customer something, as a speaker."""
    return say(text, asks=True, **fields)


def think(text: str) -> Move:
    """Think, as a speaker."""
    return Move(text=text, kind="think")


def do(action: str) -> Move:
    """Act in a world."""
    return Move(text=action, kind="act")


def brain(
    judge: Any = None,
    call: Any = None,
    reply: Any = None,
    moves: Any = None,
    wants: Callable[[], bool] = lambda: False,
    consent: Any = None,
    summary: Any = (),
    steps: Any = None,
    journeys: Any = None,
) -> ScriptedChatModel:
    """Make a model that answers as a `Brain` does."""
    return ScriptedChatModel(Brain(judge, call, reply, moves, wants, consent, summary, steps, journeys))


class Brain:
    """Answers the calls of a scripted model.

    Wherever a value is expected, a function of the `Prompt` can return it, and an exception is raised.

    Args:
        judge: By guideline id: a score, a dict of answers, or None if its judgement is left out.
        call: By tool, for the tool caller: arguments, a move, or a list of these. They are proposed once a turn,
            those that a function returns each time.
        reply: A text, a dict of answers, or a list of these, one for each reply. The last one is repeated.
        moves: A list of moves, one for each decision of any strategy, or a function of the `Prompt` that returns one.
            The last one is repeated.
        wants: Returns whether the customer still wants the calls that wait for a yes.
        summary: The points of a summary.
        steps: By id of a journey's step: what differs from a step that holds and asks for nothing.
        journeys: What else is answered about journeys: a dict of `changed`, `given_up` and `begun_anew`.
        consent: Whether it takes an answer in free words for a yes: True, or the fields that differ from a plain no.
    """

    def __init__(
        self,
        judge: Mapping[str, Any] | None = None,
        call: Mapping[str, Any] | None = None,
        reply: Any = None,
        moves: Sequence[Any] | Callable[[Prompt], Any] | None = None,
        wants: Callable[[], bool] = lambda: False,
        consent: Any = None,
        summary: Any = (),
        steps: Mapping[str, Any] | None = None,
        journeys: Any = None,
    ) -> None:
        self.judge = {} if judge is None else judge  # not a copy: a test may change it in between
        self.call = {} if call is None else call
        self.reply = reply
        self.moves = moves
        self.wants = wants
        self.consent = consent
        self.summary = summary
        self.steps = {} if steps is None else steps
        self.journeys = journeys
        self.reply_count = 0
        self.move_count = 0

    def __call__(self, call: Any) -> Any:
        prompt = Prompt(call)
        answer = fill_schema(prompt.schema)
        if "still_wanted" in answer and self.wants():
            pending_calls = prompt.now.get("awaiting_confirmation", ())
            answer["still_wanted"] = [call["id"] for call in pending_calls]
        if "agreeing_words" in answer:
            self._read_consent(prompt, answer)
        elif "begun_anew" in answer:
            self._judge_steps(prompt, answer)
        elif prompt.module == "matcher":
            self._judge_guidelines(prompt, answer)
        elif prompt.module == "tools":
            self._propose_calls(prompt, answer)
        elif prompt.module == "message":
            self._write_reply(prompt, answer)
        elif prompt.module == "summary":
            answer["points"] = list(evaluate(self.summary, prompt))
            if "says_only_what_its_sources_say" in answer:
                answer["says_only_what_its_sources_say"] = True
        else:
            self._make_move(prompt, answer)
        return answer

    def _judge_guidelines(self, prompt: Prompt, answer: dict[str, Any]) -> None:
        for guideline in prompt.section("guidelines"):
            id = guideline["id"]
            answer[id] = None
            if id not in prompt.now["judge"]:
                continue
            judgement = evaluate(self.judge.get(id, 2), prompt)
            if isinstance(judgement, int):
                applies = judgement >= 6
                condition_applies = "yes" if applies else "no"
                judgement = {
                    "score": judgement,
                    "condition_applies": condition_applies,
                    "should_apply": applies,
                }
            if judgement is not None:
                texts = {"condition": guideline["condition"] or "", "action": guideline["action"] or ""}
                schema = without_null(prompt.schema["properties"][id])
                answer[id] = make_judgement(schema, texts | judgement)

    def _judge_steps(self, prompt: Prompt, answer: dict[str, Any]) -> None:
        schema = prompt.schema["properties"]["steps"]["items"]
        for step in prompt.now["judge"]:
            entry = fill_schema(schema)
            entry["step"] = step["id"]
            override(entry["judgement"], {"action": step["action"] or "", "condition_holds": "yes"})
            override(entry["judgement"], evaluate(self.steps.get(step["id"], {}), prompt))
            answer["steps"].append(entry)
        override(answer, evaluate(self.journeys, prompt) or {})

    def _propose_calls(self, prompt: Prompt, answer: dict[str, Any]) -> None:
        for tool in prompt.section("tools"):
            name = tool["name"]
            if self.moves is None:
                calls = self._get_calls(name, prompt)
            elif self._is_next_move_of_another_tool(name):  # several tools are asked about at once
                calls = []
            else:
                move = self._next_move(prompt)
                calls = [move] if move.tool == name else []
            (key,) = [key for key, part in answer.items() if "tool_calls_for_candidate_tool" in str(part)]
            schema = get_properties(prompt.schema, key)["tool_calls_for_candidate_tool"]["items"]
            proposals = [make_proposal(call, tool, schema) for call in calls]
            answer[key]["tool_calls_for_candidate_tool"] = proposals

    def _get_calls(self, tool: str, prompt: Prompt) -> list[Move]:
        calls = self.call.get(tool, [])
        if prompt.results(tool) and not callable(calls):
            return []
        calls = evaluate(calls, prompt)
        if isinstance(calls, Mapping | Move):
            calls = [calls]
        return [call if isinstance(call, Move) else act(tool, call) for call in calls]

    def _write_reply(self, prompt: Prompt, answer: dict[str, Any]) -> None:
        reply = self._next_reply(prompt)
        if "replies" in answer:  # chosen among prepared ones
            followed = [guideline["id"] for guideline in prompt.section("active_guidelines")]
            override(answer, {"followed": followed} | (reply if isinstance(reply, dict) else {}))
            return
        fields = reply if isinstance(reply, dict) else {"content": reply}
        revision = fill_schema(prompt.schema["properties"]["revisions"]["items"])
        revision["followed"] = [guideline["id"] for guideline in prompt.section("active_guidelines")]
        override(revision, fields)
        answer["revisions"] = [revision]
        override(answer, fields)

    def _make_move(self, prompt: Prompt, answer: dict[str, Any]) -> None:
        """Answer as a strategy does that takes one action at a time."""
        move = self._next_move(prompt)
        text = move.text
        if text is None and not move.tool:
            text = str(self._next_reply(prompt))
        steps: list[dict[str, Any]] = []
        if move.tool:
            steps.append({"step": f"call {move.tool}", "reason": "It is needed.", "tool": move.tool})
        last_step = text or "answer the customer"
        steps.append({"step": last_step, "reason": "Then all is known.", "tool": None})
        results = prompt.now.get("results")
        plan = {
            "previous_steps": f"so far: {', '.join(results)}" if results else None,
            "observation": "as_expected" if results else None,
            "change": None,
            "next_steps": steps,
            "answer_rests_on_this_prompt": True,
        }
        override(answer, plan | dict(move.fields))
        query = "action" if "action" in answer else "move"
        schema = prompt.schema["properties"][query]
        if move.tool:
            tool = next(tool for tool in prompt.section("tools") if tool["name"] == move.tool)
            key = tool.get("key", move.tool)
            answer[query] = {key: make_call(move, tool, find_option(schema, key))}
        else:
            kind = "final_answer" if query == "action" else move.kind
            utterance = fill_schema(find_option(schema, kind))
            override(utterance, {**move.fields, TEXT_FIELDS[kind]: text})
            answer[query] = {kind: utterance}

    def _next_move(self, prompt: Prompt) -> Move:
        moves = self.moves or [say()]
        if not callable(moves):
            moves = moves[min(self.move_count, len(moves) - 1)]
        self.move_count += 1
        move: Move = evaluate(moves, prompt)
        return move

    def _read_consent(self, prompt: Prompt, answer: dict[str, Any]) -> None:
        consent = evaluate(self.consent, prompt)
        if consent is True:
            consent = {"agreeing_words": prompt.section("answer"), "agrees": True}
        answer.update(consent or {})

    def _is_next_move_of_another_tool(self, tool: str) -> bool:
        if not isinstance(self.moves, Sequence):
            return False
        move = self.moves[min(self.move_count, len(self.moves) - 1)]
        return isinstance(move, Move) and move.tool not in (None, tool)

    def _next_reply(self, prompt: Prompt) -> Any:
        reply = self.reply
        if isinstance(reply, list):
            reply = reply[min(self.reply_count, len(reply) - 1)]
        reply = evaluate(reply, prompt)
        self.reply_count += 1
        return f"This is answer {self.reply_count}." if reply is None else reply


def evaluate(value: Any, prompt: Prompt) -> Any:
    """Return a value, or what a function returns for the prompt; raise an exception."""
    if callable(value):
        value = value(prompt)
    if isinstance(value, BaseException):
        raise value
    return value


def make_judgement(schema: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Make the judgement of a guideline, with the part about its action if the condition holds."""
    judgement: dict[str, Any] = fill_schema(schema)
    override(judgement, {"could_a_tool_change_that": True, **fields})
    if "application" not in judgement or "application" in fields:
        return judgement
    if judgement["application"] is not None or judgement["score"] >= 6:
        application = fill_schema(without_null(schema["properties"]["application"]))
        override(application, {"guideline_previously_applied": "no", **fields})
        judgement["application"] = application
    return judgement


def make_proposal(call: Move, tool: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Make the tool caller's proposal of a call."""
    proposal: dict[str, Any] = fill_schema(schema)
    proposal |= {"score": 9, "should_run": True}
    give_arguments(proposal, call, tool, schema)
    unknown_fields = call.fields.keys() - proposal.keys()
    assert not unknown_fields, unknown_fields
    return proposal | dict(call.fields)


def make_call(move: Move, tool: Mapping[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Make a call of a planner or a speaker, which says what each argument rests on."""
    call: dict[str, Any] = fill_schema(schema)
    give_arguments(call, move, tool, schema)
    for argument in tool["arguments"]:
        name = argument["name"]
        default_basis = "this_request" if name in move.args else "nobody"
        call["arguments"][argument.get("key", name)]["basis"] = move.bases.get(name, default_basis)
    return call


def give_arguments(call: dict[str, Any], move: Move, tool: Mapping[str, Any], schema: dict[str, Any]) -> None:
    """Give arguments as the schema asks for them: each by its key, values of no strict type as JSON.

    Instead of such a value, a test can give the text itself.
    """
    keys = {argument["name"]: argument.get("key", argument["name"]) for argument in tool["arguments"]}
    for name, value in move.args.items():
        key = keys[name]
        description = get_properties(schema, "arguments", key)["value"].get("description", "")
        if "string that holds JSON" in description and not isinstance(value, str | None):
            value = json.dumps(value)
        call["arguments"][key] |= {"given": True, "value": value}
