"""`arq-graph simulate`: one conversation in the terminal, turn by turn, with the milestones as they are reached."""

from __future__ import annotations

import json
from typing import Annotated

from typer import Exit, Option

from arq_graph.agent.modules import told
from arq_graph.cli import NO_ANSWER, WRONG_INPUT, options
from arq_graph.cli.evaluation import say_doubts
from arq_graph.cli.progress import Progress, leaving_on_ctrl_c
from arq_graph.cli.screen import LABEL_WIDTH, Row, labelled, note, output, sentence, show_error, spoken, words
from arq_graph.cli.turn import progress_line
from arq_graph.errors import InputError
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones.evaluation.arms import Arms
from arq_graph.milestones.evaluation.conversation import Conversation, converse, is_out_of_reach
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import Planned, Suite, seed_of
from arq_graph.milestones.milestone import START
from arq_graph.milestones.reports.tables import ENDS
from arq_graph.milestones.scoring import Score, score
from arq_graph.milestones.transcript import Call, Event, Message, Transcript
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.milestones.users.spec import Kind
from arq_graph.nodes.progress_tracker import make_progress_record
from arq_graph.reasoning.usage import track_usage

_RESULT_SHOWN = 300


def simulate(
    suite: options.SuiteFile,
    scenario: Annotated[str | None, Option(metavar="NAME", help="Default: the first scenario.")] = None,
    arm: Annotated[
        str, Option(metavar="NAME", help="What plays the agent, as for `evaluate`: guided, react, pre-act, …")
    ] = "guided",
    kind: Annotated[
        Kind | None, Option("--kind", help="What the user knows. Default: as the scenario says.")
    ] = None,
    seed: Annotated[int | None, Option(help="The seed. Default: that of the suite's first run.")] = None,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    user_model: options.UserModel = None,
    base_url: options.BaseUrl = None,
) -> None:
    """Watch one conversation of a simulated user with an agent, and the milestones as they are reached."""
    choice = options.choose_model(model, base_url, model_arg)
    users = options.choose_model(user_model, base_url) if user_model else None
    read = Suite.from_yaml(suite)
    tried = _scenario(read, scenario, kind)
    one = Planned(arm, tried, 1, seed if seed is not None else seed_of(read.seed, tried.name, 1))
    asked = choice.chat_model()
    say_doubts(asked, [arm], [])
    arms = Arms(load_arms([arm], folder=suite.absolute().parent), asked)
    arms.comparable(read.replace(scenarios=[tried]))  # refuses what the arm cannot answer
    made = arms.make(one)
    user = tried.make_user(one.seed, users.chat_model() if users else None)
    history = tried.messages_before
    before = len(read_transcript(history)) if history else 0
    console = output()
    console.print(words(f"{tried.name} · {arm} · {choice.name} · seed {one.seed}", "dim"))
    progress = Progress()
    reached = {START: 0}
    shown = 0

    def measured(held: Conversation, events: int) -> Score:
        so_far = Transcript(tuple(held.events[:events]), history=min(before, events))
        return score(tried.measured_on, so_far, tools=tried.tools)

    def show(held: Conversation) -> None:
        nonlocal shown, reached
        with progress.paused():
            for number, event in enumerate(held.events[shown:], start=shown + 1):
                console.print(labelled([_row(event)]))
                before, reached = reached, dict(measured(held, number).reached)
                for name in [each for each in reached if each not in before]:
                    console.print(sentence(" " * (LABEL_WIDTH + 2), words(f"✓ {name}", "green")))
        shown = max(shown, len(held.events))

    with leaving_on_ctrl_c(lambda: note("Interrupted.")), progress.shown("conversing"), track_usage() as used:
        held = converse(
            made.app, user, limits=tried.limits, watch=show, history=history, variables=tried.variables
        )
    show(held)
    console.print()
    console.print(words(_end(held), "dim"))
    if held.events:
        end = measured(held, len(held.events))
        console.print(progress_line(make_progress_record(tried.measured_on, end)))
        if tried.goal is not None:
            missed = "undecided" if tried.goal in end.possibly_reached else "not reached"
            console.print(
                words(f"customer's goal: {tried.goal}: {'reached' if tried.goal in reached else missed}")
            )
    if held.failure is not None:
        show_error(held.failure, told(held.failure))
        raise Exit(NO_ANSWER if is_out_of_reach(held.failure, used.failures) else WRONG_INPUT)


def _scenario(suite: Suite, name: str | None, kind: Kind | None) -> Scenario:
    """The first scenario, or that of a name, which may leave out the kind; with a user of this kind."""
    wanted = [one for one in suite.scenarios if name in (None, one.name, one.name.rpartition(" (")[0])]
    if not wanted:
        known = ", ".join(repr(one.name) for one in suite.scenarios[:8])
        raise InputError(f"there is no scenario {name!r}; there are {known}")
    one = next((one for one in wanted if one.kind == kind), wanted[0])
    return one.replace(user=one.user.replace(kind=kind)) if kind and one.user else one


def _row(event: Event) -> Row:
    if isinstance(event, Message):
        style = "bold cyan" if event.speaker == "user" else "bold"
        return event.speaker, style, [spoken(event.text)]
    if isinstance(event, Call):
        given = event.malformed or json.dumps(dict(event.arguments), ensure_ascii=False, default=str)
        return "calls", "magenta", [words(f"{event.tool} {given}", limit=_RESULT_SHOWN)]
    return "result", "dim", [words(event.text, limit=_RESULT_SHOWN)]


def _end(held: Conversation) -> str:
    seconds = sum(held.turn_seconds) / max(1, len(held.turn_seconds))
    end = f"{ENDS[held.ended or 'user']}: {held.turns} messages of the user"
    return f"{end}, {held.usage.calls} model calls, {seconds:.2f} s a turn"
