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
from arq_graph.apps.finetuning import UNFILLED, TurnReasons, finetuning_examples
from arq_graph.cli import options
from arq_graph.cli.progress import progress_bar
from arq_graph.cli.score import read_files
from arq_graph.cli.screen import output, warn, words
from arq_graph.cli.tables import counted
from arq_graph.errors import InputError
from arq_graph.milestones.store import RunStore
from arq_graph.milestones.transcript import Transcript
from arq_graph.nodes.channels import first_problem

_ONE_IN = 10
_SHOWN = 5
_CHARACTERS_A_TOKEN = 4


def finetune_data(
    transcripts: options.Transcripts,
    stage: Annotated[
        int,
        Option(min=1, max=2, help="1: ReAct, thoughts and actions. 2: Pre-Act, plans with their reasons."),
    ],
    out: Annotated[Path, Option("--out", "-o", metavar="FILE.jsonl", help="Where the examples go.")],
    validation: Annotated[
        Path | None, Option(metavar="FILE.jsonl", help="Where one conversation in ten goes instead.")
    ] = None,
    agent: options.AgentOption = None,
    tools: options.ToolsFile = None,
) -> None:
    """Make examples to train on of recorded conversations: what a planner is asked, and the answer that was right.

    The reasons of the plans of stage 2 are in no record. They are kept beside the examples, in FILE.reasons.jsonl: fill
    them in there, and run the same command again.
    """
    known = options.read_tools(agent, tools)
    spec = Agent.from_yaml(agent) if agent else None
    reasons = out.with_name(f"{out.stem}.reasons.jsonl") if stage == 2 else None
    options.require_usable([out, validation, reasons], transcripts)
    outs = {file: file.with_name(f".{file.name}.partial") for file in (out, validation) if file}
    counts, left_out, seen, longest = Counter[str](), Counter[tuple[str, str]](), set[str](), 0
    with ExitStack() as files:
        store = files.enter_context(_store(reasons)) if reasons else None
        filled = _filled(store) if store else {}
        streams = [files.enter_context(draft.open("w", encoding="utf-8")) for draft in outs.values()]
        advance = files.enter_context(progress_bar("turns", None, "left out"))
        read = _read(transcripts, counts)
        for turn in finetuning_examples(read, cast(Any, stage), agent=spec, tools=known, reasons=filled):
            advance(bool(turn.left_out))
            if turn.left_out:
                left_out[turn.left_out, "turn" if turn.reasons else "conversation"] += 1
            if turn.rows and store and turn.reasons and turn.reasons.turn not in filled:
                filled[turn.reasons.turn] = turn.reasons
                store.append(turn.reasons.model_dump())
            # All runs of a task stay together.
            name = turn.transcript.task or turn.transcript.id
            at = int(validation is not None and crc32(name.encode()) % _ONE_IN == 0)
            for row in turn.rows:
                line = json.dumps(row, ensure_ascii=False)
                if (key := fingerprint(line)) in seen:
                    counts["again"] += 1
                    continue
                seen.add(key)
                streams[at].write(f"{line}\n")
                longest = max(longest, len(line) // _CHARACTERS_A_TOKEN)
                counts += Counter({"validation": at, "unfilled": "unfilled" in row})
    for file, draft in outs.items():
        draft.replace(file) if seen else draft.unlink()
    for (why, what), count in left_out.most_common(_SHOWN):
        warn(f"{counted(count, what)} left out: {why}")
    if len(left_out) > _SHOWN:
        warn(f"and {sum(left_out.values()):,} in all, for {len(left_out):,} reasons")
    if counts["malformed"]:
        warn(f"{counted(counts['malformed'], 'call')} left out: the arguments are no JSON object")
    if not seen:
        raise InputError("there is nothing to learn from: every turn was left out, or there is none")
    made = f"{counted(len(seen), 'example')} of {counted(counts['conversation'], 'conversation')}"
    also = f", {counts['validation']:,} of them in {validation}" if validation else ""
    again = f"; {counts['again']:,} more were the same as others" if counts["again"] else ""
    output().print(words(f"{made}{also}{again}. The longest has about {longest:,} tokens."))
    if counts["unfilled"]:
        warn(
            f"{counted(counts['unfilled'], 'example')} cannot be trained on yet: they hold {UNFILLED} and stand under "
            f"`unfilled` instead of `completion`. Fill in {reasons}, and run the same command again."
        )


def _read(files: Sequence[Path], counts: Counter[str]) -> Iterator[Transcript]:
    """The conversations that can be read; what is wrong with the others is told."""
    for one in read_files(files):
        if isinstance(one, Transcript):
            counts["conversation"] += 1
            counts["malformed"] += sum(call.malformed is not None for _, call in one.calls())
            yield one
        else:
            warn(str(one.error))


def _store(file: Path) -> RunStore:
    """The file of reasons. An editor may have left out its last line break, without which a line is a torn one."""
    if file.is_file() and (text := file.read_bytes()):
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                json.loads(line)
            except ValueError as error:
                raise InputError(f"{file}, line {number}, is no JSON: {error}") from None
        if not text.endswith(b"\n"):
            file.write_bytes(text + b"\n")
    return RunStore(file, "finetune-data", {})


def _filled(store: RunStore) -> dict[str, TurnReasons]:
    try:
        return {each.turn: each for each in map(TurnReasons.model_validate, store.entries())}
    except ValidationError as error:
        raise InputError(
            f"{store.file} has a line that is no turn with its reasons: {first_problem(error)}"
        ) from None
