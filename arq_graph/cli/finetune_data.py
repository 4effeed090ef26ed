"""`arq-graph finetune-data`: turn recorded conversations into examples to fine-tune a planner's model on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TextIO, cast
from zlib import crc32

from pydantic import ValidationError
from typer import Option

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.regular_file import MAX_DATA_BYTES, read_regular_file
from arq_graph.agent.spec import Agent
from arq_graph.cli import options
from arq_graph.cli.input_files import check_output_files, find_readable_files, read_conversations, read_tools
from arq_graph.cli.progress_display import progress_bar
from arq_graph.cli.report_view import format_count
from arq_graph.cli.screen import show, warn
from arq_graph.errors import InputError, describe_first_error
from arq_graph.experiments.finetuning import TurnExamples, make_finetuning_examples
from arq_graph.experiments.planner_answers import UNFILLED
from arq_graph.milestones.evaluation.results import parse_stored_conversation
from arq_graph.milestones.store import convert_file_errors
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord

_VALIDATION_SHARE = 10  # one in so many conversations
_MAX_LISTED = 5
_CHARACTERS_PER_TOKEN = 4
_TRAINING_LIMIT = 4_096  # tokens; the recipe leaves out longer examples


def finetune_data(
    transcripts: options.Transcripts,
    stage: Annotated[
        int,
        Option("--stage", min=1, max=2, metavar="N", help="1: ReAct, with thoughts. 2: Pre-Act, with plans."),
    ],
    out: Annotated[Path, Option("--out", "-o", metavar="FILE.jsonl", help="Where the examples go.")],
    validation: Annotated[
        Path | None,
        Option("--validation", metavar="FILE.jsonl", help="Where one in ten conversations goes instead."),
    ] = None,
    goal_completed: Annotated[
        bool, Option("--goal-completed", help="Use only conversations that are recorded as successful.")
    ] = False,
    agent: options.AgentOption = None,
    tools: options.Tools = None,
) -> None:
    """Turn recorded conversations into training examples: what a planner is asked, and the right answer.

    No record contains the reasons for the plans of stage 2. The command asks for them in FILE.reasons.jsonl, beside the
    examples: fill them in there, and run the same command again.
    """
    known_tools = read_tools(agent, tools)
    spec = Agent.from_yaml(agent) if agent else None
    reasons_file = out.with_name(f"{out.stem}.reasons.jsonl") if stage == 2 else None
    files = find_readable_files(transcripts)
    check_output_files([out, validation, reasons_file], transcripts)
    counts = _Counts()
    with ExitStack() as stack:
        reasons = _Reasons(reasons_file, stack)
        examples = _Examples(out, validation, stack)
        advance = stack.enter_context(progress_bar("turns", None, "left out"))
        for turn in make_finetuning_examples(
            _select_conversations(files, goal_completed, counts),
            cast(Any, stage),
            agent=spec,
            tools=known_tools,
            reasons=reasons.by_turn,
        ):
            advance(bool(turn.left_out))
            counts.add_turn(turn)
            reasons.add_turn(turn)
            examples.add_turn(turn)
    examples.commit()
    _report_left_out(counts)
    if not examples.token_counts:
        raise InputError("there is nothing to learn from: every turn was left out, or there is none")
    _report_examples(examples, counts)
    if reasons.unasked:
        first_question = min(question for _, question in reasons.unasked)
        count = format_count(len(reasons.unasked), "question")
        warn(f"{reasons.file} answers {count} that these conversations do not ask, such as: {first_question}")
    unfilled_count = examples.counts["unfilled"]
    if unfilled_count:
        warn(
            f"{format_count(unfilled_count, 'example')} cannot be trained on yet: they hold {UNFILLED} and stand under "
            f"`unfilled` instead of `completion`. Fill in {reasons.file}, and run the same command again."
        )


@dataclass
class _Counts:
    """Counts of the conversations that were read, used and left out."""

    conversations: int = 0
    used: set[int] = field(default_factory=set)
    """The numbers of those that gave an example."""
    left_out: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How many conversations, turns or calls were left out, by reason and noun."""

    def add_turn(self, turn: TurnExamples) -> None:
        """Count a turn of the conversation that was read last."""
        if turn.left_out:
            noun = "turn" if turn.turn else "conversation"
            self.left_out[turn.left_out, noun] += 1
        if turn.rows:
            self.used.add(self.conversations)


class _Reasons:
    """The file of reasons: one line per turn, with blanks that a person or a model fills in.

    Attributes:
        file: The file; None for stage 1, which needs no reasons.
        by_turn: The reasons by turn and question.
        unasked: The turns and questions of the file that the conversations have not asked so far.
    """

    def __init__(self, file: Path | None, stack: ExitStack) -> None:
        self.file = file
        self.by_turn = _read_reasons(file) if file else {}
        self.unasked: set[tuple[str, str]] = set()
        for turn, answers in self.by_turn.items():
            self.unasked.update((turn, question) for question in answers)
        self._stream = stack.enter_context(file.open("a", encoding="utf-8")) if file else None

    def add_turn(self, turn: TurnExamples) -> None:
        """Append a turn that is not in the file yet."""
        self.unasked.difference_update((turn.turn, question) for question in turn.reasons)
        if self._stream and turn.rows and turn.turn not in self.by_turn:
            self.by_turn[turn.turn] = turn.reasons
            line = turn.model_dump_json(exclude={"rows", "left_out"}, exclude_defaults=True)
            self._stream.write(f"{line}\n")


def _read_reasons(file: Path) -> dict[str, dict[str, str]]:
    """Return the reasons that are filled in, by turn and question; of several lines for a turn the last counts."""
    by_turn: dict[str, dict[str, str]] = {}
    text = b""
    if file.exists():
        with convert_file_errors(f"{file} cannot be read"):
            text = read_regular_file(file, MAX_DATA_BYTES)
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            turn = TurnExamples.model_validate_json(line)
        except ValidationError as error:
            reason = f"is not a turn with its reasons: {describe_first_error(error)}"
            raise InputError(f"{file}, line {number}, {reason}") from None
        answers = by_turn.setdefault(turn.turn, {})
        for question, answer in turn.reasons.items():
            if answer.strip():
                answers[question] = answer.strip()
    if text and not text.endswith(b"\n"):  # which an editor may have left out
        file.write_bytes(text + b"\n")
    return by_turn


class _Examples:
    """The files of examples, in which each example stands once; they are replaced when all examples are there.

    Attributes:
        validation: The file for one in ten conversations, if there is one.
        token_counts: About how many tokens each example has, by its fingerprint.
        counts: How many examples were `repeated`, or are for `validation`, `unfilled` or from the `offline` model.
    """

    def __init__(self, out: Path, validation: Path | None, stack: ExitStack) -> None:
        self.validation = validation
        self.token_counts: dict[str, int] = {}
        self.counts: Counter[str] = Counter()
        self._files = [file.resolve() for file in (out, validation) if file]  # links stay
        self._drafts = [file.with_name(f".{file.name}.partial") for file in self._files]
        self._streams: list[TextIO] = []
        for draft in self._drafts:
            self._streams.append(stack.enter_context(draft.open("w", encoding="utf-8")))

    def add_turn(self, turn: TurnExamples) -> None:
        """Write the examples of a turn that are new."""
        is_validation = self.validation is not None and _is_for_validation(turn.conversation)
        for row in turn.rows:
            line = json.dumps(row, ensure_ascii=False)
            key = fingerprint(line)
            if key in self.token_counts:
                self.counts["repeated"] += 1
                continue
            self.token_counts[key] = len(line) // _CHARACTERS_PER_TOKEN
            self.counts["validation"] += is_validation
            self.counts["unfilled"] += "unfilled" in row
            self.counts["offline"] += bool(turn.stand_ins)
            self._streams[int(is_validation)].write(f"{line}\n")

    def commit(self) -> None:
        """Put the drafts in the place of the files, or remove them if there is no example."""
        for file, draft in zip(self._files, self._drafts, strict=True):
            if self.token_counts:
                draft.replace(file)
            else:
                draft.unlink()


def _is_for_validation(conversation: str) -> bool:
    return crc32(conversation.encode()) % _VALIDATION_SHARE == 0


def _select_conversations(
    files: Sequence[Path], goal_completed: bool, counts: _Counts
) -> Iterator[Transcript | BrokenRecord]:
    """Yield the conversations, and count them; with `goal_completed` only those that are recorded as successful."""
    for conversation in read_conversations(files):
        counts.conversations += 1
        if isinstance(conversation, Transcript):
            if goal_completed and not _has_completed_goal(conversation):
                counts.left_out["nothing says that they reached their goal", "conversation"] += 1
                continue
            for _, call in conversation.enumerate_calls():
                if call.malformed is not None:
                    counts.left_out["the arguments are no JSON object", "call"] += 1
        yield conversation


def _has_completed_goal(transcript: Transcript) -> bool:
    stored = parse_stored_conversation(transcript.extra)
    if stored and stored.record:
        return bool(stored.record.goal_completed)
    return bool(transcript.extra.get("reward") == 1)


def _report_left_out(counts: _Counts) -> None:
    parts = []
    without_example = counts.conversations - len(counts.used)
    named_count = sum(count for (_, noun), count in counts.left_out.items() if noun == "conversation")
    if without_example > named_count:
        parts.append(f"{format_count(without_example, 'conversation')} gave no example")
    remaining = counts.left_out.total()
    for (reason, noun), count in counts.left_out.most_common(_MAX_LISTED):
        parts.append(f"{format_count(count, noun)} left out, because {reason}")
        remaining -= count
    if remaining:
        parts.append(f"{remaining:,} more for other reasons")
    if parts:
        warn("; ".join(parts))


def _report_examples(examples: _Examples, counts: _Counts) -> None:
    conversations = format_count(counts.conversations, "conversation")
    summary = format_count(len(examples.token_counts), "example")
    summary += f" from {len(counts.used):,} of {conversations}"
    if examples.validation:
        summary += f", {examples.counts['validation']:,} of them in {examples.validation}"
    if examples.counts["repeated"]:
        summary += f"; {examples.counts['repeated']:,} more were the same as others"
    longest = max(examples.token_counts.values())
    show(f"{summary}. The longest has about {longest:,} tokens.")
    if examples.counts["offline"]:
        warn(
            f"{format_count(examples.counts['offline'], 'example')} came from the offline model: it shows that the "
            "recipe works, but do not train on what it says"
        )
    long_count = sum(tokens > _TRAINING_LIMIT for tokens in examples.token_counts.values())
    if long_count:
        count = format_count(long_count, "example")
        warn(f"about {count} with more than {_TRAINING_LIMIT:,} tokens: training leaves them out")
