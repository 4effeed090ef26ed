"""A chat model that answers from recordings, so that a run is reproduced without asking anybody."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from arq_graph.errors import InputError, ModelUnavailableError
from arq_graph.milestones.evaluation.arms import code_of
from arq_graph.milestones.evaluation.recording import CallListener, Failed, ModelCall, request_of
from arq_graph.milestones.evaluation.results import VOTES, Kept, Outcome, kept_in
from arq_graph.milestones.reports.records import ConversationRecord
from arq_graph.milestones.store import ASKED, files_in, is_head, records_in
from arq_graph.models.in_process import InProcessChatModel
from arq_graph.models.resolve import Bare
from arq_graph.reasoning.methods import METHODS, get_endpoint
from arq_graph.reasoning.replies import is_cut_off
from arq_graph.reasoning.usage import CallLimitReached, UsageTracker

# A replay repeats no lost call, tries no methods, and does not wait.
_COSTS = ("model_calls", "input_tokens", "output_tokens", "turn_seconds", "steps")
_LIMITS = ("calls", "seconds")


class Recorded(NamedTuple):
    """What was held of a suite: its arms in their order, how many runs, which scenarios, and a judge's votes."""

    arms: list[str]
    runs: int
    scenarios: frozenset[str]
    votes: int


class ReplayChatModel(InProcessChatModel):
    """A chat model that gives the answers of a recorded run, each to the request that it once answered.

    It answers in the conversations that `evaluate` holds: the suite, the scenario, the arm, the run, what is asked,
    and, of requests that are equal within a conversation, the order decide. What was never asked is not answered: the
    run ends, and the error says what differs. Calls, tokens and times of the report are those of the recording.

    Args:
        results: What `evaluate(…, record=True)` wrote: a results file, several, or a folder of them; each may be
            compressed, as `.jsonl.gz`.
        role: Whose model it stands in for, as `evaluate` names it; the report says of it what it said of that one.

    Raises:
        InputError: There is no recording there, or it cannot be read.
    """

    results: tuple[Path, ...]
    role: Literal["model", "user_model", "judge"] = "model"
    model_name: str = ""
    max_tokens: int = (
        1  # so that an answer that was cut off is asked for again, as with a limit that can be raised
    )

    _recorded: dict[tuple[str, str], Kept] = PrivateAttr(default_factory=dict)
    _heads: dict[str, dict[str, str]] = PrivateAttr(default_factory=dict)

    def __init__(
        self, results: str | Path | Sequence[str | Path], role: str = "model", **fields: Any
    ) -> None:
        given = [results] if isinstance(results, str | Path) else results
        super().__init__(results=tuple(map(Path, given)), role=role, **fields)
        for file in files_in(self.results):
            self._read(file)
        if not any(kept.recorded for kept in self._recorded.values()):
            named = ", ".join(map(str, self.results))
            raise InputError(
                f"{named}: no recording is there; `evaluate(…, results=…, record=True)` makes one"
            )
        # Every request is known by whichever method it was asked; so the first is as good as the one that was found.
        get_endpoint(Bare(self)).methods = METHODS[:1]

    def recorded(self, suite: str) -> Recorded:
        """What was held of a suite.

        Raises:
            InputError: Nothing was.
        """
        held = [kept.record or kept.broken for (name, _), kept in self._recorded.items() if name == suite]
        found = [each for each in held if each]
        if not found:
            named, known = ", ".join(map(str, self.results)), ", ".join(map(repr, self._heads))
            raise InputError(f"{named}: nothing of the suite {suite!r} is recorded there, but of {known}")
        head = self._heads[suite]
        order = {code: place for place, code in enumerate(head)}
        arms = sorted({each.arm or "" for each in found}, key=lambda arm: order.get(code_of(arm), len(order)))
        runs = max(each.run or 1 for each in found)
        scenarios = frozenset(each.scenario or "" for each in found)
        return Recorded(arms, runs, scenarios, int(head.get(VOTES, 1)))

    def __reduce__(self) -> Any:
        """Workers read the files themselves."""
        return type(self), (self.results, self.role)

    @property
    def _llm_type(self) -> str:
        return "arq-graph-replay"

    def _read(self, file: Path) -> None:
        suite = ""
        for entry in records_in(file):
            if is_head(entry):
                suite = entry["of"].get("the suite", "")
                self._heads[suite] = self._heads.get(suite, {}) | entry["of"] | entry.get("parts", {})
                self.model_name = self.model_name or entry["of"].get(ASKED[self.role], "")
            elif kept := kept_in(entry):
                known_by = suite, str(entry.get("conversation", entry.get("id")))
                before = self._recorded.setdefault(known_by, kept)
                if before.record is None:  # one that was held again counts as it ended
                    self._recorded[known_by] = kept

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        handlers = run_manager.handlers if run_manager else ()
        trackers = chain.from_iterable(each.trackers for each in handlers if isinstance(each, UsageTracker))
        listener = next((each for each in trackers if isinstance(each, CallListener)), None)
        if listener is None:
            raise InputError("a replay answers only in conversations that `evaluate` holds")
        if listener.replaying is None:
            kept = self._recorded.get((listener.suite, listener.conversation))
            listener.replaying = Replaying(listener.conversation, kept)
        request = request_of(messages, kwargs, run_manager.metadata)
        return ChatResult(generations=[ChatGeneration(message=listener.replaying.answer(request))])

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, stop, run_manager, **kwargs)


class Replaying:
    """One conversation that is held again: what is left of its recording, and what was asked that is not in it."""

    def __init__(self, conversation: str, kept: Kept | None) -> None:
        self._conversation = conversation
        self._kept = kept or Kept()
        self._left: dict[tuple[str, ...], deque[ModelCall]] = {}
        self._failed: dict[tuple[str, ...], Failed | None] = {}
        self._cut_off: set[tuple[str, ...]] = set()
        self._missed = ""
        for call in self._kept.recorded:
            if call.answer is None:
                self._failed[call.asked] = call.error
                continue
            # Failed calls were repeated, and so were answers outside the schema, by another method.
            self._failed.pop(call.asked, None)
            left = self._left.setdefault(call.asked, deque())
            while left and left[-1].method != call.method:
                left.pop()
            left.append(call)

    def answer(self, request: ModelCall) -> AIMessage:
        """The answer to a request; raises what was raised, or an error where it is not recorded."""
        record = self._kept.record
        if record is None and self._kept.broken:
            raise ModelUnavailableError(self._kept.broken.error)
        if left := self._left.get(request.asked):
            message = AIMessage(**(left.popleft().answer or {}))
            if is_cut_off(message):
                self._cut_off.add(request.asked)
            return message
        if request.asked in self._failed:
            raise self._raised(self._failed[request.asked])
        if request.asked in self._cut_off:
            raise _error("NoLargerLimit", "the answer was not asked for again when it was recorded", 400)
        if record and record.ended in _LIMITS and not any(self._left.values()):
            raise CallLimitReached
        self._missed = self._missed or f"{self._conversation}: {self._difference(request)}"
        raise InputError(self._missed)

    def finished(self, outcome: Outcome) -> Outcome:
        """What became of the conversation, with the costs of the recording.

        Raises:
            InputError: Something was asked that is not recorded, or something that is was not asked.
        """
        if self._missed:
            raise InputError(self._missed)
        record = self._kept.record
        if record is None or not isinstance(outcome, ConversationRecord):
            return self._kept.broken or outcome
        if outcome.ended in ("user", "turns") and (left := [each[0] for each in self._left.values() if each]):
            raise InputError(
                f"{self._conversation}: {len(left)} of the recorded requests are not made any more, the first by the "
                f"module {left[0].module!r}: the prompts, the schemas or the order have changed; record the run anew"
            )
        told = {name: getattr(record, name) for name in (*_COSTS, *(["ended"] * (outcome.ended == "calls")))}
        return outcome.model_copy(update=told)

    def _raised(self, failed: Failed | None) -> Exception:
        if failed is not None and not failed.is_transient:
            return _error(failed.kind, failed.words, failed.status)
        if self._kept.record and self._kept.record.ended in _LIMITS:
            return CallLimitReached()
        return ModelUnavailableError(failed.words if failed else "no answer came when this was recorded")

    def _difference(self, request: ModelCall) -> str:
        if not self._kept.recorded:
            return "it is not in the recording, or was not finished; record it, or resume the run that recorded it"
        said = f"what the module {request.module!r} asks is not in the recording"
        left = [asked for asked, calls in self._left.items() if calls and calls[0].module == request.module]
        if not left:
            return f"{said}, which holds no further answer for it; the order has changed; record the run anew"
        _, *messages = request.asked
        if any(list(asked[1:]) == messages for asked in left):
            which = "the schema of the answer, or the tools, differ from what they were"
        else:
            same = max(_same(messages, asked[1:]) for asked in left)
            which = f"message {min(same + 1, len(messages))} of {len(messages)} differs from what it was"
        return f"{said}: {which}. The prompt, the schema or the order has changed; record the run anew"


def _same(one: Sequence[str], other: Sequence[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _error(kind: str, words: str, status: int | None) -> Exception:
    made: Exception = type(kind, (Exception,), {"status_code": status})(words)
    return made
