"""`arq-graph finetune-data`: make recorded conversations data to fine-tune a planner's model on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, cast
from zlib import crc32

from pydantic import ValidationError
from typer import Option

from arq_graph.agent.fingerprint import fingerprint
from arq_graph.agent.spec import Agent
from arq_graph.cli import options
from arq_graph.cli.conversation_files import read_conversations
from arq_graph.cli.input_files import check_output_files, find_readable_files, read_tools
from arq_graph.cli.progress_display import progress_bar
from arq_graph.cli.report_view import format_count
from arq_graph.cli.screen import safe_text, stdout_console, warn
from arq_graph.errors import InputError
from arq_graph.experiments.finetuning import TurnExamples, make_finetuning_examples
from arq_graph.experiments.planner_answers import UNFILLED
from arq_graph.milestones.evaluation.results import read_stored_conversation
from arq_graph.milestones.transcript import Transcript
from arq_graph.milestones.transcripts.formats import BrokenRecord
from arq_graph.nodes.channels import describe_first_error

_ONE_IN = 10
_SHOWN = 5
_CHARACTERS_A_TOKEN = 4
_TRAINED_ON = 4_096  # tokens: the recipe leaves out what is longer


def finetune_data(
    transcripts: options.Transcripts,
    stage: Annotated[int, Option(min=1, max=2, help="1: ReAct, with thoughts. 2: Pre-Act, with plans.")],
    out: Annotated[Path, Option("--out", "-o", metavar="FILE.jsonl", help="Where the examples go.")],
    validation: Annotated[
        Path | None, Option(metavar="FILE.jsonl", help="Where one in ten conversations goes instead.")
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
    known = read_tools(agent, tools)
    spec = Agent.from_yaml(agent) if agent else None
    reasons = out.with_name(f"{out.stem}.reasons.jsonl") if stage == 2 else None
    read = find_readable_files(transcripts)
    check_output_files([out, validation, reasons], transcripts)
    if any(file and file.exists() and not file.is_file() for file in (out, validation, reasons)):
        raise InputError("examples and reasons are kept in files that can be read again: name regular files")
    written = _written(reasons) if reasons else {}
    outs = [file.resolve() for file in (out, validation) if file]  # links stay
    drafts = [file.with_name(f".{file.name}.partial") for file in outs]
    counts, left_out, tokens = Counter[str](), Counter[tuple[str, str]](), dict[str, int]()
    used = set[int]()
    unasked = {(turn, question) for turn, answers in written.items() for question in answers}
    talks = _conversations(read, goal_completed, counts, left_out)
    with ExitStack() as files:
        blank = files.enter_context(reasons.open("a", encoding="utf-8")) if reasons else None
        streams = [files.enter_context(draft.open("w", encoding="utf-8")) for draft in drafts]
        advance = files.enter_context(progress_bar("turns", None, "left out"))
        for turn in make_finetuning_examples(
            talks, cast(Any, stage), agent=spec, tools=known, reasons=written
        ):
            advance(bool(turn.left_out))
            if turn.left_out:
                left_out[turn.left_out, "turn" if turn.turn else "conversation"] += 1
            unasked -= {(turn.turn, question) for question in turn.reasons}
            if blank and turn.rows and turn.turn not in written:
                written[turn.turn] = turn.reasons
                blank.write(f"{turn.model_dump_json(exclude={'rows', 'left_out'}, exclude_defaults=True)}\n")
            at = int(validation is not None and crc32(turn.conversation.encode()) % _ONE_IN == 0)
            if turn.rows:
                used.add(counts["conversation"])  # they are read one at a time
            for row in turn.rows:
                line = json.dumps(row, ensure_ascii=False)
                counts["row"] += 1
                if (key := fingerprint(line)) not in tokens:
                    tokens[key] = len(line) // _CHARACTERS_A_TOKEN
                    streams[at].write(f"{line}\n")
                    counts.update(validation=at, unfilled="unfilled" in row, stand_in=bool(turn.stand_ins))
    for file, draft in zip(outs, drafts, strict=True):
        draft.replace(file) if tokens else draft.unlink()
    none = counts["conversation"] - len(used)
    named = sum(count for (_, what), count in left_out.items() if what == "conversation")
    told = [f"{format_count(none, 'conversation')} gave no example"] if none > named else []
    shown = left_out.most_common(_SHOWN)
    told += [f"{format_count(count, what)} left out, because {why}" for (why, what), count in shown]
    if others := left_out.total() - sum(count for _, count in shown):
        told.append(f"{others:,} more for other reasons")
    if told:
        warn("; ".join(told))
    if not tokens:
        raise InputError("there is nothing to learn from: every turn was left out, or there is none")
    of = format_count(counts["conversation"], "conversation")
    made = f"{format_count(len(tokens), 'example')} from {len(used):,} of {of}"
    also = f", {counts['validation']:,} of them in {validation}" if validation else ""
    also += f"; {again:,} more were the same as others" if (again := counts["row"] - len(tokens)) else ""
    stdout_console().print(safe_text(f"{made}{also}. The longest has about {max(tokens.values()):,} tokens."))
    if counts["stand_in"]:
        came = f"{format_count(counts['stand_in'], 'example')} came from the offline stand-in"
        warn(f"{came}: it shows that the recipe works, but do not train on what it says")
    if long := sum(each > _TRAINED_ON for each in tokens.values()):
        warn(
            f"about {format_count(long, 'example')} with more than {_TRAINED_ON:,} tokens: training leaves them out"
        )
    if unasked:
        first = min(question for _, question in unasked)
        questions = format_count(len(unasked), "question")
        warn(f"{reasons} answers {questions} that these conversations do not ask, such as: {first}")
    if counts["unfilled"]:
        warn(
            f"{format_count(counts['unfilled'], 'example')} cannot be trained on yet: they hold {UNFILLED} and stand "
            f"under `unfilled` instead of `completion`. Fill in {reasons}, and run the same command again."
        )


def _conversations(
    files: Sequence[Path], completed: bool, counts: Counter[str], left_out: Counter[tuple[str, str]]
) -> Iterator[Transcript | BrokenRecord]:
    for one in read_conversations(files):
        counts["conversation"] += 1
        if isinstance(one, Transcript):
            kept = read_stored_conversation(one.extra) if completed else None
            reached = kept.record.goal_completed if kept and kept.record else one.extra.get("reward") == 1
            if completed and not reached:
                left_out["nothing says that they reached their goal", "conversation"] += 1
                continue
            if malformed := sum(call.malformed is not None for _, call in one.enumerate_calls()):
                left_out["the arguments are no JSON object", "call"] += malformed
        yield one


def _written(file: Path) -> dict[str, dict[str, str]]:
    """What the file of reasons says of each turn: of several lines the last, where it is filled in."""
    written: dict[str, dict[str, str]] = {}
    text = file.read_bytes() if file.exists() else b""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            entry = TurnExamples.model_validate_json(line)
        except ValidationError as error:
            wrong = f"is not a turn with its reasons: {describe_first_error(error)}"
            raise InputError(f"{file}, line {number}, {wrong}") from None
        filled = {question: said.strip() for question, said in entry.reasons.items() if said.strip()}
        written[entry.turn] = written.get(entry.turn, {}) | filled
    if text and not text.endswith(b"\n"):  # which an editor may have left out
        file.write_bytes(text + b"\n")
    return written
