"""A report as one HTML file that needs no network: the graph, who stopped where, and every conversation to read."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from arq_graph.errors import InputError
from arq_graph.milestones.reports.html_data import MAX_CHARACTERS, Words, embedded, page_data, shown, status
from arq_graph.milestones.reports.report import Report, write_whole
from arq_graph.milestones.transcript import Transcript

MAX_TRANSCRIPTS = 500

_SCRIPTS = ("dom.js", "figures.js", "graph.js", "list.js", "reader.js", "page.js")
# What somebody who opens the page most likely wants to read comes first, where not all can be there.
_FIRST_TO_READ = ("missed", "undecided", "nothing", "completed")


def write_html(
    path: str | Path,
    report: Report,
    transcripts: Iterable[Transcript | None] = (),
    *,
    title: str = "Milestone report",
) -> None:
    """Write a report as a page that holds its style, its scripts and its data, and asks nobody for anything.

    The file is there whole or as it was before. The words of at most 500 conversations can be read, and 4,000
    characters of each text; what the page leaves out, it says. Cost O(events), and O(E log E) for each graph.

    Args:
        path: The file.
        report: What was measured.
        transcripts: What was said: one for each of `report.conversations`, in their order; None where it is not at
            hand. Those that the page does not show are not looked at.
        title: What stands on top.

    Raises:
        InputError: A transcript is not the one that was measured, the report names a graph or a milestone that it
            does not hold, or the file cannot be written.
        SpecError: A graph of the report is none that anything can be measured on.
    """
    words = Words()
    data = page_data(report)
    conversations = [
        (index, Markup(embedded(words.of(transcript)))) for index, transcript in _given(transcripts, report)
    ]
    data |= {
        "title": title,
        "instructions": [words.text(text) for text in words.instructions],
        "readable": len(conversations),
        "texts_cut": words.cut,
        "max_characters": MAX_CHARACTERS,
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


def transcripts_shown(report: Report) -> tuple[int, ...]:
    """The positions in `report.conversations` of those whose words a page shows, in increasing order.

    All where there are not too many; otherwise those in which something forbidden happened, then those that
    did not complete the goal, then the others, each in the report's order.
    """
    records = report.conversations
    order = sorted(
        range(len(records)),
        key=lambda index: (not records[index].forbidden, _FIRST_TO_READ.index(status(records[index]))),
    )
    return tuple(sorted(order[:MAX_TRANSCRIPTS]))


def _given(transcripts: Iterable[Transcript | None], report: Report) -> Iterator[tuple[int, Transcript]]:
    """The transcripts that the page shows, each the one that was measured."""
    wanted = set(transcripts_shown(report))
    for index, (record, transcript) in enumerate(zip(report.conversations, transcripts, strict=False)):
        if transcript is None or index not in wanted:
            continue
        if (transcript.id, len(transcript)) != (record.id, record.events):
            raise InputError(
                f"conversation {index} of the report is {record.id!r} with {record.events} events, but its "
                f"transcript is {transcript.id!r} with {len(transcript)}; give the transcripts that were measured, "
                "in the report's order and without the broken ones"
            )
        yield index, transcript


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _file(name: str) -> str:
    return resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8")
