"""Write the conversations of a report as a JUnit file, which CI systems show."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.milestones.reports.records import ReportedConversation
from arq_graph.milestones.reports.report import Report

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: Path, report: Report, name: str) -> None:
    """Write a report as a JUnit file with one test case for each conversation.

    One whose goal was missed is a failure, one that ended in an error or could not be run is an error, and one that
    nothing decides is skipped.

    Raises:
        InputError: It cannot be written there.
    """
    suite = ElementTree.Element("testsuite", name=_clean(name))
    records: list[ReportedConversation] = list(report.conversations)
    records.extend(report.failed)
    for record in records:
        title = getattr(record, "id", f"{record.scenario or record.source} {record.run or record.record}")
        case = ElementTree.SubElement(
            suite, "testcase", classname=_clean(record.arm or name), name=_clean(title)
        )
        for outcome, message in _find_outcome(record).items():
            ElementTree.SubElement(case, outcome, message=_clean(message))
    suite.set("tests", str(len(records)))
    for outcome, attribute in {"failure": "failures", "error": "errors", "skipped": "skipped"}.items():
        suite.set(attribute, str(len(suite.findall(f"*/{outcome}"))))
    content = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    write_atomically(path, content.decode() + "\n")


def _find_outcome(record: ReportedConversation) -> dict[str, str]:
    """Return the message by the kind of outcome; nothing if the goal was completed."""
    if record.error is not None:
        return {"error": record.error}
    if record.goal_completed is None:
        return {"skipped": "nothing decides whether the goal was completed"}
    if record.goal_completed:
        return {}
    problems = [f"forbidden at event {event.step}: {event.rule}" for event in record.forbidden]
    problems.append(f"stopped at {record.stopped_at}; next would be {', '.join(record.frontier)}")
    return {"failure": "; ".join(problems)}


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
