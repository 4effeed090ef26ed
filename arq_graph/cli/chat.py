"""`arq-graph chat`: talk to an agent in the terminal, as its customer and as its operator."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from typer import Exit

from arq_graph.cli import options
from arq_graph.cli.dialogue import Dialogue, DialogueOptions, StrategyOption, open_dialogue
from arq_graph.cli.exit_codes import INTERRUPTED
from arq_graph.cli.explain import show_explanation
from arq_graph.cli.model_choice import choose_model
from arq_graph.cli.screen import (
    is_interactive,
    join_parts,
    label_grid,
    note,
    prompt,
    safe_text,
    show,
    show_error,
)
from arq_graph.cli.takeover_view import HOW_TO_WRITE, takeover_view
from arq_graph.cli.turn_view import customer_view, reply_view, show_outcome
from arq_graph.errors import ArqGraphError

_HINT = "/why explains the last reply. /quit or Ctrl-D leaves; the thread is saved."
_DESCRIPTION_LIMIT = 300


def chat(
    agent: options.AgentFile,
    model: options.Model = None,
    model_arg: options.ModelArgs = None,
    base_url: options.BaseUrl = None,
    mode: options.ModeOption = "arq",
    strategy: StrategyOption = "tools",
    milestones: options.MilestonesOption = None,
    thread: options.Thread = None,
    db: options.Database = None,
) -> None:
    """Talk to an agent in the terminal.

    You are asked to approve calls that wait for an operator. With /colleague TEXT you write as a person who has taken
    the conversation over, until /give-back. Ctrl-C and Ctrl-D leave. You can continue the thread later; a turn that is
    left unfinished is finished first.
    """
    model_choice = choose_model(model, base_url, model_arg)
    settings = DialogueOptions(agent, model_choice, mode, strategy, milestones, thread, db)
    with open_dialogue(settings, operator=ask_operator) as dialogue:
        _show_header(dialogue, model_choice.name)
        try:
            messages = _read_messages(dialogue)
            dialogue.run(
                messages, lambda outcome: show_outcome(outcome, dialogue.agent), show_failure=_show_failure
            )
        except EOFError:
            show("")
        if dialogue.customer_texts:
            dialogue.show_resume_command()


def _show_header(dialogue: Dialogue, model: str) -> None:
    name = safe_text(dialogue.agent.name, "bold")
    show(join_parts(name, f" · {model} · thread {dialogue.thread}"))
    if is_interactive():
        show(_HINT, style="dim")
    turn = dialogue.last_turn
    if turn is None:
        return
    show("", customer_view(turn.customer))
    if dialogue.is_turn_unfinished:
        note("This turn was left unfinished; it is finished now.")
    elif turn.reply is not None:
        show(reply_view(turn))
    if turn.takeover is not None:
        show(takeover_view(turn.takeover), HOW_TO_WRITE)


def _read_messages(dialogue: Dialogue) -> Iterator[str | None]:
    """Yield what is typed until /quit; None finishes an unfinished turn, at the beginning or after an empty line."""
    if dialogue.is_turn_unfinished:
        show("")
        yield None
    while (text := _read_line(dialogue)) not in ("/quit", "/exit"):
        if text == "/why":
            turn = dialogue.last_turn
            if turn is None:
                note("There is no reply yet.")
            else:
                show_explanation(turn, dialogue.thread_note)
        elif text.startswith("/colleague "):
            dialogue.write_as_colleague(text.removeprefix("/colleague "))
        elif text == "/give-back":
            dialogue.give_back()
            note("The agent answers again.")
        elif text or dialogue.is_turn_unfinished:
            show("")
            yield text or None


def _read_line(dialogue: Dialogue) -> str:
    show("")
    try:
        return prompt("> ").strip()
    except KeyboardInterrupt:
        show("")
        dialogue.show_resume_command()
        raise Exit(INTERRUPTED) from None


def _show_failure(error: ArqGraphError) -> None:
    if not is_interactive():
        raise error
    show_error(error, str(error))
    note("Press Enter to try again, or write something else to continue without a reply.")


def approve_all(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Approve every call as it is."""
    return [{"type": "approve"} for _ in calls]


def ask_operator(calls: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Ask the person at the terminal to approve or reject each call."""
    request = safe_text("Operator, please decide: ", "bold yellow")
    decisions = []
    for number, call in enumerate(calls, start=1):
        position = safe_text(f"({number} of {len(calls)})", "dim")
        show("", join_parts(request, f"may {call['name']} run? ", position))
        description = (call.get("description") or "").strip().split("\n\n")[0]
        if description:
            show(safe_text(description, "dim", _DESCRIPTION_LIMIT))
        rows = []
        for name, value in call["args"].items():
            rows.append((name, "dim", [json.dumps(value, ensure_ascii=False)]))
        show(label_grid(rows))
        decisions.append(_ask_decision())
    show("")
    return decisions


def _ask_decision() -> dict[str, Any]:
    while True:
        answer = prompt("[a]pprove or [r]eject? ").strip().lower()
        if answer in ("a", "approve"):
            return {"type": "approve"}
        if answer in ("r", "reject"):
            return {"type": "reject", "message": prompt("Why not? (may be empty) ").strip() or None}
        show("Answer with a or r.", style="yellow")
