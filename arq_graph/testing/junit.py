"""Write the conversations of a report as a JUnit file, which CI systems show."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

from arq_graph.agent.atomic_write import write_atomically
from arq_graph.milestones.reports.records import ConversationRecord
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
    for record in report.conversations:
        case = _add_case(suite, record.arm or record.use_case or name, record.id)
        case.set("time", f"{sum(record.turn_seconds):.3f}")
        properties = ElementTree.SubElement(case, "properties")
        low, high = record.progress_range or (0.0, 0.0)
        for end, value in {"progress_at_least": low, "progress_at_most": high}.items():
            ElementTree.SubElement(properties, "property", name=end, value=f"{value:.4f}")
        if record.error is not None:
            ElementTree.SubElement(case, "error", message=_clean(record.error))
        elif record.goal_completed is None:
            ElementTree.SubElement(case, "skipped", message="nothing decides whether the goal was completed")
        elif not record.goal_completed:
            ElementTree.SubElement(case, "failure", message=_clean(_describe_miss(record)))
    for broken in report.failed:
        title = f"{broken.scenario or broken.source}, {broken.run or broken.record}"
        case = _add_case(suite, broken.arm or name, title)
        ElementTree.SubElement(case, "error", message=_clean(broken.error))
    suite.set("tests", str(len(suite)))
    for attribute, tag in {"failures": "failure", "errors": "error", "skipped": "skipped"}.items():
        suite.set(attribute, str(len(suite.findall(f"*/{tag}"))))
    ElementTree.indent(suite)
    content = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    write_atomically(path, content.decode() + "\n")


def _add_case(suite: ElementTree.Element, classname: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_clean(classname), name=_clean(name))


def _describe_miss(record: ConversationRecord) -> str:
    reasons = [f"forbidden at event {event.step}: {event.rule}" for event in record.forbidden]
    if record.stopped_at:
        reasons.append(f"stopped at {record.stopped_at}; next would be {', '.join(record.frontier)}")
    return "; ".join(reasons) or "the goal was not completed"


def _clean(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
