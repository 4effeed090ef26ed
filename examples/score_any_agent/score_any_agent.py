"""Score the recorded conversations of any agent: here a bicycle rental's, which this project knows nothing of.

    python examples/score_any_agent/score_any_agent.py

Two files are all it takes. `conversations.jsonl` holds one conversation a line, as the chat completions API takes and
gives its messages; `milestones.yaml` says what has to happen on the way to the goal. No model is asked, and no key is
needed. Put your own files in their place; LangChain messages, LangGraph threads and tau-bench results are read too.
The command `arq-graph score CONVERSATIONS --milestones FILE` reports on many at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from arq_graph.milestones import BrokenRecord, Score, read_milestones, read_transcripts, score

HERE = Path(__file__).parent


def main(
    conversations: Path = HERE / "conversations.jsonl", milestones: Path = HERE / "milestones.yaml"
) -> None:
    graph = read_milestones(milestones)
    for transcript in read_transcripts(conversations):
        if isinstance(transcript, BrokenRecord):
            print(transcript.error)
            continue
        measured = score(graph, transcript)
        print(f"{transcript.id:20} {_outcome(measured)}")
        for remark in worth_a_look(measured):
            print(f"{'':20} - {remark}")


def _outcome(measured: Score) -> str:
    goal = {True: "goal reached", False: "goal missed", None: "goal undecided"}[measured.goal_completed]
    low, high = measured.progress_range or (0, 0)
    progress = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
    return f"{goal:16} progress {progress}"


def worth_a_look(measured: Score) -> Iterator[str]:
    """What to look at in a conversation, and at which event; events are numbered from 1."""
    if "End" not in measured.possibly_reached:
        yield f"stopped after {measured.path_taken[-1]!r}; next could be {', '.join(measured.frontier)}"
    if measured.goal_completed is None:
        yield f"a judge or a person has to say: {', '.join(measured.undecided)}"
    for event in measured.forbidden:
        yield f"forbidden at event {event.event}: {event.rule}"
    for number, arguments in measured.invented_arguments.items():
        yield f"nobody gave this to the call at event {number}: {', '.join(arguments)}"
    if measured.repeated_calls:
        yield f"the same call again at events {', '.join(map(str, measured.repeated_calls))}"


if __name__ == "__main__":
    main()
