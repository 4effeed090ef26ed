"""A report as one HTML file that needs no network: the graph, who stopped where, and every conversation to read."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from arq_graph.errors import InputError
from arq_graph.milestones.reports.html_data import page_data, status
from arq_graph.milestones.reports.html_words import Words, embedded, shown
from arq_graph.milestones.reports.report import Report, write_whole
from arq_graph.milestones.transcript import Transcript

MAX_TRANSCRIPTS = 500
MAX_CHARACTERS = 4_000

_SCRIPTS = ("dom.js", "figures.js", "graph.js", "list.js", "reader.js", "page.js")
# What somebody who opens the page most likely wants to read comes first, where not all can be there.
_FIRST_TO_READ = ("missed", "undecided", "nothing", "completed")


def write_html(
    path: str | Path,
    report: Report,
    transcripts: Mapping[int, Transcript] | Iterable[Transcript | None] = (),
    *,
    title: str = "Milestone report",
    max_transcripts: int = MAX_TRANSCRIPTS,
    max_characters: int = MAX_CHARACTERS,
) -> None:
    """Write a report as a page that holds its style, its scripts and its data, and asks nobody for anything.

    The file is there whole or as it was before. What the page leaves out, it says. Cost O(events), and O(E log E) for
    each graph.

    Args:
        path: The file.
        report: What was measured.
        transcripts: What was said: by the position of the conversation in `report.conversations`, from 0; or one
            after the other in that order, None where a conversation is not at hand. Ids need not be unique. Those
            that the page does not show are not looked at.
        title: What stands on top.
        max_transcripts: How many conversations can be read at most; all are counted and listed. 0 or more.
        max_characters: How much of each text is shown, from 1.

    Raises:
        InputError: A transcript is not the one that was measured, the report names a graph or a milestone that it
            does not hold, a limit is out of its range, or the file cannot be written.
        SpecError: A graph of the report is none that anything can be measured on.
    """
    if max_characters < 1:
        raise InputError(f"max_characters is {max_characters}; it must be 1 or more")
    words = Words(max_characters)
    data = page_data(report, words)
    wanted = set(transcripts_shown(report, max_transcripts))
    conversations = [
        (index, Markup(embedded(words.of(transcript))))
        for index, transcript in _given(transcripts, report, wanted)
    ]
    data |= {
        "title": title,
        "instructions": [words.text(text) for text in words.instructions],
        "readable": len(conversations),
        "texts_cut": words.cut,
        "max_characters": max_characters,
    }
    style = _file("style.css")
    script = "\n".join(['"use strict";\n(function () {', *map(_file, _SCRIPTS), "})();"])
    page = Environment(undefined=StrictUndefined, autoescape=True).from_string(_file("page.html"))
    text = page.render(
        title=shown(title),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(embedded(data)),
        conversations=conversations,
        count=len(report.conversations),
    )
    write_whole(path, text)


def transcripts_shown(report: Report, max_transcripts: int = MAX_TRANSCRIPTS) -> tuple[int, ...]:
    """The positions in `report.conversations` of those whose words a page shows, in increasing order.

    All where there are not too many; otherwise those in which something forbidden happened, then those that
    did not complete the goal, then the others, each in the report's order.

    Raises:
        InputError: `max_transcripts` is below 0.
    """
    if max_transcripts < 0:
        raise InputError(f"max_transcripts is {max_transcripts}; it must be 0 or more")
    records = report.conversations
    order = sorted(
        range(len(records)),
        key=lambda index: (not records[index].forbidden, _FIRST_TO_READ.index(status(records[index]))),
    )
    return tuple(sorted(order[:max_transcripts]))


def _given(
    transcripts: Mapping[int, Transcript] | Iterable[Transcript | None], report: Report, wanted: set[int]
) -> Iterator[tuple[int, Transcript]]:
    """The transcripts that the page shows, each the one that was measured."""
    records = report.conversations
    given = sorted(transcripts.items()) if isinstance(transcripts, Mapping) else enumerate(transcripts)
    for index, transcript in given:
        if index >= len(records):
            raise InputError(
                f"there are more transcripts than the report has conversations ({len(records)}); give one for each, "
                "in the report's order and without the broken ones"
            )
        if transcript is None or index not in wanted:
            continue
        record = records[index]
        if (transcript.id, len(transcript)) != (record.id, record.events):
            raise InputError(
                f"conversation {index} of the report is {record.id!r} with {record.events} events, but its "
                f"transcript is {transcript.id!r} with {len(transcript)}; give the transcripts that were measured, "
                "by position"
            )
        yield index, transcript


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")
