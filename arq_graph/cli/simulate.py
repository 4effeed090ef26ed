"""`arq-graph simulate`: one conversation in the terminal, turn by turn, with the milestones as they are reached."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import typer
from rich.console import Console

from arq_graph.apps.arms import arm
from arq_graph.cli.evaluate import of_name, quiet_callbacks, tell_choice
from arq_graph.cli.failures import NO_ANSWER, leaving_on_ctrl_c, note, show_error
from arq_graph.cli.figures import number_between
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import LABEL_WIDTH, labelled, output, printable, sentence, spoken, words
from arq_graph.cli.settings import ModelChoice
from arq_graph.errors import ArqGraphError, InputError
from arq_graph.milestones.evaluation.arms import Arms, Made
from arq_graph.milestones.evaluation.conversation import Conversation, is_out_of_reach, told
from arq_graph.milestones.evaluation.dialogue import converse
from arq_graph.milestones.evaluation.holding import transcript_of
from arq_graph.milestones.evaluation.results import written
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Planned, Suite, seed_of
from arq_graph.milestones.judging.llm_judge import LLMJudge
from arq_graph.milestones.scoring import Score, score
from arq_graph.milestones.tracking import ProgressTracker
from arq_graph.milestones.transcript import Call, Event, Message
from arq_graph.milestones.users.simulated import make_user
from arq_graph.milestones.users.spec import Kind
from arq_graph.reasoning.usage import track_usage

_ENDS = {
    "user": "the user left",
    "turns": "the limit of turns is reached",
    "calls": "the limit of model calls is reached",
    "seconds": "the limit of time is reached",
    "error": "something went wrong",
}
_RESULT_SHOWN = 300


@dataclass(frozen=True)
class WantedConversation:
    """The one conversation that is watched."""

    suite: Path
    arm: str
    model: ModelChoice
    scenario: str | None = None
    kind: str | None = None
    seed: int | None = None
    user_model: ModelChoice | None = None
    judge: ModelChoice | None = None


def watch_conversation(wanted: WantedConversation) -> None:
    """Hold one conversation and print it as it goes, and in the end how far it got."""
    suite = Suite.from_yaml(wanted.suite, strict=False)
    scenario = _scenario(suite, wanted)
    seed = wanted.seed if wanted.seed is not None else seed_of(suite.seed, scenario.name, 1)
    one = Planned(wanted.arm, scenario, 1, seed)
    tell_choice(wanted.model, [wanted.arm])
    folder = wanted.suite.absolute().parent
    arms = Arms({wanted.arm: arm(wanted.arm, folder=folder)}, wanted.model.chat_model())
    made = _made(arms, one)
    user = make_user(
        scenario.user, seed=seed, model=wanted.user_model.chat_model() if wanted.user_model else None
    )
    console = output()
    console.print(words(f"{scenario.name} · {wanted.arm} · {wanted.model.name} · seed {seed}", "dim"))
    progress = Progress()
    seen = _Seen(console, ProgressTracker(scenario.milestones, tools=scenario.tools), progress)
    with (
        quiet_callbacks(),
        leaving_on_ctrl_c(lambda: note("Interrupted.")),
        progress.shown("conversing"),
        track_usage() as used,
    ):
        held = converse(made.app, user, limits=scenario.limits, watch=lambda held: seen.show(held))
    seen.show(held)
    _tell_end(console, held)
    if held.messages:
        judge = LLMJudge(wanted.judge.chat_model()) if wanted.judge else None
        transcript = transcript_of(one, written(held.messages), made.agent)
        measured = score(scenario.milestones, transcript, tools=transcript.tools or None, judge=judge)
        _tell_score(console, measured)
    if held.failure is not None:
        show_error(held.failure, told(held.failure))
        raise typer.Exit(NO_ANSWER if is_out_of_reach(held.failure, used.failures) else 1)


def _made(arms: Arms, one: Planned) -> Made:
    try:
        return arms.make(one)
    except ArqGraphError:
        raise
    except Exception as error:
        raise InputError(f"{one.id}: the arm could not be made: {told(error)}") from error


def _scenario(suite: Suite, wanted: WantedConversation) -> Scenario:
    if wanted.scenario is None and not suite.scenarios:
        raise suite.broken[0].error
    found = list(suite.scenarios) if wanted.scenario is None else of_name(suite, wanted.scenario)
    if wanted.kind is None:
        return found[0]
    for one in found:
        if one.user.kind == wanted.kind:
            return one
    if not found:
        raise InputError("there is no such scenario")
    return found[0].replace(user=found[0].user.replace(kind=cast(Kind, wanted.kind)))


class _Seen:
    """What of a conversation was printed."""

    def __init__(self, console: Console, tracker: ProgressTracker, progress: Progress) -> None:
        self._console = console
        self._tracker = tracker
        self._progress = progress
        self._count = 0

    def show(self, held: Conversation) -> None:
        """Print what is new."""
        events = held.events
        with self._progress.paused():
            for event in events[self._count :]:
                self._print(event)
        self._count = max(self._count, len(events))

    def _print(self, event: Event) -> None:
        self._console.print(labelled([(*_label(event), [words(_text(event))])]))
        for name in self._tracker.feed(event):
            self._console.print(sentence(" " * (LABEL_WIDTH + 2), words(f"✓ {name}", "green")))


def _label(event: Event) -> tuple[str, str]:
    if isinstance(event, Message):
        return event.speaker, "bold cyan" if event.speaker == "user" else "bold"
    return ("calls", "magenta") if isinstance(event, Call) else ("result", "dim")


def _text(event: Event) -> str:
    if isinstance(event, Message):
        return spoken(event.text)
    if isinstance(event, Call):
        given = event.malformed or json.dumps(dict(event.arguments), ensure_ascii=False, default=str)
        return printable(f"{event.tool} {given}", _RESULT_SHOWN)
    return printable(event.text, _RESULT_SHOWN)


def _tell_end(console: Console, held: Conversation) -> None:
    seconds = sum(held.turn_seconds) / len(held.turn_seconds) if held.turn_seconds else 0.0
    console.print()
    console.print(
        words(
            f"{_ENDS.get(held.ended or '', 'it is over')}: {held.turns} messages of the user, {held.usage.calls} model "
            f"calls, {seconds:.2f} s a turn",
            "dim",
        )
    )


def _tell_score(console: Console, measured: Score) -> None:
    goal = {True: "yes", False: "no", None: "not decided"}[measured.goal_completed]
    rows = [("goal", "dim", [words(f"completed: {goal}")])]
    if measured.progress_range is not None:
        low, high = measured.progress_range
        shown = number_between(low, None, None) if low == high else f"{low:.2f} to {high:.2f}"
        rows.append(("progress", "dim", [words(shown)]))
    rows.append(("reached", "dim", [words(", ".join(measured.reached))]))
    if measured.frontier:
        rows.append(("next", "dim", [words(", ".join(measured.frontier))]))
    if measured.undecided:
        rows.append(("unknown", "dim", [words(", ".join(measured.undecided))]))
    rows += [("forbid", "red", [words(f"{each.rule} (event {each.event})")]) for each in measured.forbidden]
    console.print(labelled(rows))
