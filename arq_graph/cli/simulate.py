"""`arq-graph simulate`: one conversation in the terminal, turn by turn, with the milestones as they are reached."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console

from arq_graph.apps.arms import arm as arm_named
from arq_graph.cli.evaluate import of_name, quiet_callbacks, tell_choice
from arq_graph.cli.failures import NO_ANSWER, leaving_on_ctrl_c, note, show_error
from arq_graph.cli.figures import number_between
from arq_graph.cli.options import BaseUrl, Judge, Model, SuiteFile, UserModel
from arq_graph.cli.progress import Progress
from arq_graph.cli.screen import LABEL_WIDTH, labelled, output, printable, sentence, spoken, words
from arq_graph.cli.settings import choose_models
from arq_graph.cli.tables import ENDS
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

_RESULT_SHOWN = 300


def simulate(
    suite: SuiteFile,
    scenario: Annotated[
        str | None, typer.Option("--scenario", metavar="NAME", help="Which one. Else the first.")
    ] = None,
    arm: Annotated[
        str, typer.Option(metavar="NAME", help="guided, react, pre-act, …, as for `evaluate`.")
    ] = "guided",
    kind: Annotated[
        Kind | None, typer.Option("--kind", help="What the user knows. Else as the scenario says.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Else that of the suite's first run.")] = None,
    model: Model = None,
    user_model: UserModel = None,
    judge: Judge = None,
    base_url: BaseUrl = None,
) -> None:
    """Watch one conversation of a simulated user with an agent, and the milestones as they are reached."""
    choice, users, decides = choose_models(model, user_model, judge, base_url)
    read = Suite.from_yaml(suite, strict=False)
    tried = _scenario(read, scenario, kind)
    if seed is None:
        seed = seed_of(read.seed, tried.name, 1)
    one = Planned(arm, tried, 1, seed)
    tell_choice(choice, [arm])
    arms = Arms({arm: arm_named(arm, folder=suite.absolute().parent)}, choice.chat_model())
    made = _made(arms, one)
    user = make_user(tried.user, seed=seed, model=users.chat_model() if users else None)
    console = output()
    console.print(words(f"{tried.name} · {arm} · {choice.name} · seed {seed}", "dim"))
    progress = Progress()
    seen = _Seen(console, ProgressTracker(tried.milestones, tools=tried.tools), progress)
    with (
        quiet_callbacks(),
        leaving_on_ctrl_c(lambda: note("Interrupted.")),
        progress.shown("conversing"),
        track_usage() as used,
    ):
        held = converse(made.app, user, limits=tried.limits, watch=seen.show)
    seen.show(held)
    _tell_end(console, held)
    if held.messages:
        transcript = transcript_of(one, written(held.messages), made.agent)
        judging = LLMJudge(decides.chat_model()) if decides else None
        _tell_score(
            console, score(tried.milestones, transcript, tools=transcript.tools or None, judge=judging)
        )
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


def _scenario(suite: Suite, name: str | None, kind: Kind | None) -> Scenario:
    if name is None and not suite.scenarios:
        raise suite.broken[0].error
    found = of_name(suite, name) if name is not None else list(suite.scenarios)
    if kind is None:
        return found[0]
    given = found[0].replace(user=found[0].user.replace(kind=kind))
    return next((one for one in found if one.user.kind == kind), given)


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
            f"{ENDS[held.ended or 'user']}: {held.turns} messages of the user, {held.usage.calls} model "
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
