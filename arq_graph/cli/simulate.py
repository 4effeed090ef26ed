"""`arq-graph simulate`: watch one conversation turn by turn, with the milestones as they are reached."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from typer import Exit, Option

from arq_graph.cli import options
from arq_graph.cli.evaluation import note_limitations
from arq_graph.cli.exit_codes import NO_ANSWER, WRONG_INPUT
from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.progress_display import StepDisplay
from arq_graph.cli.screen import LABEL_WIDTH, Row, label_grid, message_text, safe_text, show, show_error
from arq_graph.cli.turn_view import progress_line
from arq_graph.errors import InputError, describe_error
from arq_graph.experiments.arms import load_arms
from arq_graph.milestones.evaluation.arms import Arms
from arq_graph.milestones.evaluation.conversation import SimulatedConversation, converse
from arq_graph.milestones.evaluation.scenario import Scenario
from arq_graph.milestones.evaluation.suite import PlannedConversation, Suite, derive_seed
from arq_graph.milestones.milestone import START
from arq_graph.milestones.reports.tables import ENDS
from arq_graph.milestones.scoring import Score, score
from arq_graph.milestones.transcript import Call, Event, Message, Transcript
from arq_graph.milestones.transcripts.formats import read_transcript
from arq_graph.milestones.users.user_spec import Kind
from arq_graph.nodes.progress_tracker import make_progress_record
from arq_graph.reasoning.failures import is_model_failure
from arq_graph.reasoning.usage import track_usage

_RESULT_LIMIT = 300
_LISTED_SCENARIOS = 8
_KIND_HELP = "What the user knows. Default: as the scenario says."


def simulate(
    suite: options.SuiteFile,
    scenario: Annotated[
        str | None, Option("--scenario", metavar="NAME", help="The scenario. Default: the first one.")
    ] = None,
    arm: Annotated[
        str,
        Option("--arm", metavar="NAME", help="The agent: guided, react, pre-act, … Default: guided."),
    ] = "guided",
    kind: Annotated[
        Kind | None, Option("--kind", metavar="helpful|perturbed|unhelpful", help=_KIND_HELP)
    ] = None,
    seed: Annotated[
        int | None,
        Option("--seed", metavar="N", help="The seed. Default: that of the suite's first run."),
    ] = None,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    user_model: options.UserModel = None,
    base_url: options.BaseUrl = None,
) -> None:
    """Watch one conversation of a simulated user with an agent, and the milestones as they are reached."""
    model_choice = choose_model(model, base_url, model_arg)
    user_chat_model = choose_model(user_model, base_url).chat_model() if user_model else None
    whole_suite = Suite.from_yaml(suite)
    chosen = _choose_scenario(whole_suite, scenario, kind)
    if seed is None:
        seed = derive_seed(whole_suite.seed, chosen.name, 1)
    agent_model = model_choice.chat_model()
    note_limitations(agent_model, [arm], [])
    arms = Arms(load_arms([arm], folder=suite.absolute().parent), agent_model)
    arms.select_comparable(whole_suite.replace(scenarios=[chosen]))  # refuses what the arm cannot answer
    prepared = arms.prepare_app(PlannedConversation(arm, chosen, 1, seed))
    user = chosen.make_user(seed, user_chat_model)
    show(f"{chosen.name} · {arm} · {model_choice.name} · seed {seed}", style="dim")
    display = StepDisplay()
    view = _ConversationView(chosen, display)
    with display.show("conversing"), track_usage() as usage:
        conversation = converse(
            prepared.app,
            user,
            limits=chosen.limits,
            on_change=view.show_new_events,
            history=chosen.history_messages,
            variables=chosen.variables,
        )
    view.show_new_events(conversation)
    view.show_result(conversation)
    failure = conversation.failure
    if failure is not None:
        show_error(failure, describe_error(failure))
        is_of_model = is_model_failure(failure, usage.failures)
        raise Exit(NO_ANSWER if is_of_model else WRONG_INPUT)


def _choose_scenario(suite: Suite, name: str | None, kind: Kind | None) -> Scenario:
    """Return the first scenario, or that of a name, which may leave out the kind; with a user of the kind."""
    candidates = []
    for scenario in suite.scenarios:
        if name in (None, scenario.name, scenario.name.rpartition(" (")[0]):
            candidates.append(scenario)
    if not candidates:
        names = ", ".join(repr(scenario.name) for scenario in suite.scenarios[:_LISTED_SCENARIOS])
        raise InputError(f"there is no scenario {name!r}; there are {names}")
    for scenario in candidates:
        if scenario.user_kind == kind:
            return scenario
    scenario = candidates[0]
    if kind is None or scenario.user is None:
        return scenario
    return scenario.replace(user=scenario.user.replace(kind=kind))


class _ConversationView:
    """Prints the events of a conversation as they come, and the milestones that each event reaches."""

    def __init__(self, scenario: Scenario, display: StepDisplay) -> None:
        self.scenario = scenario
        self.display = display
        history = scenario.history_messages
        self.history_events = len(read_transcript(history)) if history else 0
        self.shown_events = 0
        self.reached = {START: 0}

    def show_new_events(self, conversation: SimulatedConversation) -> None:
        with self.display.pause():
            events = conversation.parse_events()
            for event in events[self.shown_events :]:
                self.shown_events += 1
                show(label_grid([_event_row(event)]))
                reached = dict(self._score(events[: self.shown_events]).reached)
                for name in reached:
                    if name not in self.reached:
                        show(" " * (LABEL_WIDTH + 2) + f"✓ {name}", style="green")
                self.reached = reached

    def show_result(self, conversation: SimulatedConversation) -> None:
        seconds = sum(conversation.turn_seconds) / max(1, len(conversation.turn_seconds))
        end = f"{ENDS[conversation.ended or 'user']}: {conversation.user_message_count} messages of the user"
        show("", f"{end}, {conversation.app_usage.calls} model calls, {seconds:.2f} s a turn", style="dim")
        events = conversation.parse_events()
        if not events:
            return
        result = self._score(events)
        show(progress_line(make_progress_record(self.scenario.measured_graph, result)))
        goal = self.scenario.goal
        if goal is not None:
            outcome = "undecided" if goal in result.possibly_reached else "not reached"
            if goal in self.reached:
                outcome = "reached"
            show(f"customer's goal: {goal}: {outcome}")

    def _score(self, events: Sequence[Event]) -> Score:
        transcript = Transcript(tuple(events), history_length=min(self.history_events, len(events)))
        return score(self.scenario.measured_graph, transcript, tools=self.scenario.tools)


def _event_row(event: Event) -> Row:
    if isinstance(event, Message):
        style = "bold cyan" if event.speaker == "user" else "bold"
        return event.speaker, style, [message_text(event.text)]
    if isinstance(event, Call):
        arguments = event.malformed
        if not arguments:
            arguments = json.dumps(dict(event.arguments), ensure_ascii=False, default=str)
        return "calls", "magenta", [safe_text(f"{event.tool} {arguments}", limit=_RESULT_LIMIT)]
    return "result", "dim", [safe_text(event.text, limit=_RESULT_LIMIT)]
