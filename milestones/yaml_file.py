"""Milestone files: the paper's YAML (Pre-Act, Appendix F), with our optional keys, read with their lines."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NoReturn, TypeVar, cast

from arq_graph.agent.entries import suggestion
from arq_graph.errors import SpecError
from arq_graph.milestones.constraints import Constraint, read_constraint
from arq_graph.milestones.findings import require_sound
from arq_graph.milestones.graph import MilestoneGraph
from arq_graph.milestones.milestone import Called, Forbidden, Function, Milestone, MilestoneType, Said, Voice
from arq_graph.milestones.patterns import Pattern
from arq_graph.milestones.review import REVIEWED_AS, Review, ReviewedAs, ReviewEntry
from arq_graph.milestones.yaml_nodes import Node, parse

LARGEST_FILE = 64_000_000

# "Aggrigator" stands in a published file.
_TYPES: dict[str, MilestoneType] = {
    "fc": "FC",
    "nfc": "NFC",
    "aggregator": "Aggregator",
    "aggrigator": "Aggregator",
}
_FILE_KEYS = ("milestones", "failed_if", "grounded", "forbidden", "review")
_KEYS = (
    "name",
    "type",
    "description",
    "dependencies",
    "requires",
    "weight",
    "tool",
    "arguments",
    "check",
    "holds",
)
_ONLY_FOR: dict[str, MilestoneType] = {"tool": "FC", "arguments": "FC", "check": "NFC", "holds": "NFC"}
_VOICES = ("user", "agent", "tool")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_REFERENCE = re.compile(r"[^\W\d][\w.]*:[^\W\d][\w.]*")

Word = TypeVar("Word", bound=str)


def load_graph(path: Path) -> MilestoneGraph:
    """Read a milestone file that can be measured on; what is doubtful becomes a warning of Python's.

    Raises:
        SpecError: The file cannot be read, or the graph has an error; file and line are named.
    """
    graph = read_yaml(path)
    require_sound(graph)
    for finding in graph.check().warnings:
        warnings.warn(f"{path}: {finding}", stacklevel=3)
    return graph


def read_yaml(path: Path) -> MilestoneGraph:
    """Read a milestone file as it stands; `check()` on the graph says what is wrong with it.

    Raises:
        SpecError: The file is missing, too large, no UTF-8, no YAML, or no list of milestones; file and line
            are named.
    """
    try:
        content = path.read_bytes() if path.stat().st_size <= LARGEST_FILE else None
    except OSError as error:
        raise SpecError(f"the milestone file cannot be read: {error.strerror}", file=str(path)) from None
    if content is None:
        raise SpecError(f"larger than {LARGEST_FILE:,} bytes; that is no milestone file", file=str(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError("not UTF-8; save the file as UTF-8", file=str(path), line=line) from None
    return parse_yaml(text, file=str(path))


def parse_yaml(text: str, *, file: str | None = None) -> MilestoneGraph:
    """Read the text of a milestone file as it stands; see `read_yaml`.

    Args:
        text: The YAML.
        file: The file it came from, for messages and for functions that stand beside it.

    Raises:
        SpecError: It is no YAML, or no list of milestones; the line is named.
    """
    try:
        root = parse(text, file)
    except SpecError:
        # Published files have descriptions with colons and quotes in them, unquoted.
        quoted = _with_quoted_descriptions(text)
        if quoted == text:
            raise
        root = parse(quoted, file)
    return _File(file).graph(root)


class _File:
    """Reads the tree of one milestone file; every complaint names file and line."""

    def __init__(self, file: str | None) -> None:
        self.file = file

    def graph(self, root: Node | None) -> MilestoneGraph:
        if root is not None and root.is_list:
            root = Node(root.line, {"milestones": (root.line, root)})
        entries = self.entries(root or Node(1, None), "a milestone file", _FILE_KEYS)
        if "milestones" not in entries:
            self.wrong("there is no `milestones:` list; a milestone file is one", root.line if root else 1)
        failed_if = entries.get("failed_if")
        grounded = entries.get("grounded")
        strict: Literal["strict"] | None = None
        if grounded is not None and grounded.value is not None:
            strict = self.word(grounded, "grounded", {"strict": "strict"})  # type: ignore[assignment]
        return MilestoneGraph(
            [self.milestone(node) for node in self.items(entries["milestones"], "milestones")],
            failed_if=None
            if failed_if is None or failed_if.value is None
            else self.pattern(failed_if, "failed_if"),
            grounded=strict,
            forbidden=[
                self.forbidden(node)
                for node in (self.items(entries["forbidden"], "forbidden") if "forbidden" in entries else ())
            ],
            file=self.file,
            review=self.review(entries["review"]) if "review" in entries else None,
        )

    def review(self, node: Node) -> Review | None:
        if node.text is not None and node.value is None:
            return None
        entries = self.entries(node, "`review`", ("generated_by", "reviewed", "entries"))
        made = entries.get("generated_by")
        return Review(
            None if made is None or made.value is None else self.text(made, "generated_by"),
            self.flag(entries["reviewed"], "reviewed") if "reviewed" in entries else False,
            tuple(
                self.review_entry(each)
                for each in (self.items(entries["entries"], "entries") if "entries" in entries else ())
            ),
        )

    def review_entry(self, node: Node) -> ReviewEntry:
        keys = ("milestone", "what", "by", "date")
        entries = self.entries(node, "an entry of the review", keys)
        for key in keys:
            if key not in entries:
                self.wrong(f"an entry of the review has no `{key}`", node.line)
        day = self.text(entries["date"], "date")
        if not _DAY.fullmatch(day):
            self.wrong(f"`date` is {day!r}; it is a day like 2025-03-31", entries["date"].line)
        return ReviewEntry(
            self.text(entries["milestone"], "milestone"),
            cast(ReviewedAs, self.word(entries["what"], "what", _same(*REVIEWED_AS))),
            self.text(entries["by"], "by"),
            day,
        )

    def milestone(self, node: Node) -> Milestone:
        entries = self.entries(node, "a milestone", _KEYS)
        if "name" not in entries:
            self.wrong("a milestone without a `name`; give it one", node.line)
        name = self.text(entries["name"], "name")
        if "type" not in entries:
            self.wrong(f"{name!r} has no `type`; it is FC (a tool is called) or NFC (a state)", node.line)
        type_ = self.word(entries["type"], "type", _TYPES)
        for key, wanted in _ONLY_FOR.items():
            if key in entries and type_ != wanted:
                self.wrong(f"{name!r} is an {type_}; `{key}` is for an {wanted} only", entries[key].line)
        requires = (
            self.word(entries["requires"], "requires", _same("any", "all"))
            if "requires" in entries
            else "any"
        )
        if type_ == "Aggregator" and "requires" in entries:
            if requires == "any":
                self.wrong(f"{name!r} is a join, and a join requires all", entries["requires"].line)
            requires = "any"  # said by the type
        return Milestone(
            name,
            type_,
            description=self.text(entries["description"], "description", empty=True)
            if "description" in entries
            else "",
            dependencies=self.dependencies(entries.get("dependencies"), name),
            requires=cast(Literal["any", "all"], requires),
            weight=self.weight(entries["weight"]) if "weight" in entries else 1,
            tool=self.text(entries["tool"], "tool") if "tool" in entries else None,
            arguments=self.arguments(entries["arguments"]) if "arguments" in entries else {},
            check=self.check(entries["check"]) if "check" in entries else None,
            holds=self.flag(entries["holds"], "holds") if "holds" in entries else False,
            line=node.line,
        )

    def dependencies(self, node: Node | None, name: str) -> tuple[str, ...]:
        if node is None or node.value is None:
            return ()
        if node.text is not None:
            return (self.text(node, "dependencies"),)
        return tuple(
            self.text(item, f"a dependency of {name!r}") for item in self.items(node, "dependencies")
        )

    def check(self, node: Node) -> Said | Function:
        if node.text is not None:
            if not isinstance(node.value, str) or not _REFERENCE.fullmatch(node.value):
                self.wrong(
                    f"`check` is {node.text!r}; it is `module:function` or {{said_by: agent, pattern: …}}",
                    node.line,
                )
            return Function(node.value)
        return self.said(node, "a check")

    def forbidden(self, node: Node) -> Forbidden:
        entries = self.entries(node, "a forbidden event", ("tool", "arguments", "said_by", "pattern"))
        if "tool" not in entries:
            if "arguments" in entries:
                self.wrong("`arguments` without a `tool`; name the tool that must not be called", node.line)
            return Forbidden(self.said(node, "a forbidden event"), node.line)
        if "said_by" in entries or "pattern" in entries:
            self.wrong("a forbidden event is a call (`tool`) or words (`pattern`), not both", node.line)
        arguments = self.arguments(entries["arguments"]) if "arguments" in entries else {}
        return Forbidden(Called(self.text(entries["tool"], "tool"), arguments), node.line)

    def said(self, node: Node, what: str) -> Said:
        entries = self.entries(node, what, ("said_by", "pattern"))
        if "pattern" not in entries:
            self.wrong(f"{what} has no `pattern`: what is looked for?", node.line)
        voice = self.word(entries["said_by"], "said_by", _same(*_VOICES)) if "said_by" in entries else None
        return Said(self.pattern(entries["pattern"], "pattern"), cast(Voice | None, voice))

    def arguments(self, node: Node) -> dict[str, Constraint]:
        if node.value is None:
            return {}
        if not node.is_mapping:
            self.wrong("`arguments` is a mapping of argument names to what must hold of each", node.line)
        read: dict[str, Constraint] = {}
        for name, (line, value) in node.value.items():
            try:
                read[name] = read_constraint(value.plain())
            except ValueError as error:
                self.wrong(f"the argument {name!r}: {error}", line)
        return read

    def entries(self, node: Node, what: str, known: tuple[str, ...]) -> dict[str, Node]:
        if not node.is_mapping:
            self.wrong(f"{what} is a mapping with the keys {', '.join(known)}", node.line)
        for key, (line, _) in node.value.items():
            if key not in known:
                self.wrong(
                    f"{what} has no key {key!r}{suggestion(key, known)} (its keys are {', '.join(known)})",
                    line,
                )
        return {key: value for key, (_, value) in node.value.items()}

    def items(self, node: Node, what: str) -> list[Node]:
        if node.value is None:
            return []
        if not node.is_list:
            self.wrong(f"`{what}` is a list: one `- ` for each entry", node.line)
        return cast(list[Node], node.value)

    def text(self, node: Node, what: str, *, empty: bool = False) -> str:
        if node.text is None:
            self.wrong(f"{what} is text; put it in quotes if it has a colon or a bracket in it", node.line)
        if not node.text.strip() and not empty:
            self.wrong(f"{what} is empty", node.line)
        return node.text.strip()

    def word(self, node: Node, what: str, meanings: Mapping[str, Word]) -> Word:
        text = self.text(node, f"`{what}`")
        if text.lower() not in meanings:
            allowed = ", ".join(dict.fromkeys(meanings.values()))
            self.wrong(
                f"`{what}` is {text!r}; it is one of {allowed}{suggestion(text, meanings.values())}",
                node.line,
            )
        return meanings[text.lower()]

    def flag(self, node: Node, what: str) -> bool:
        if not isinstance(node.value, bool):
            self.wrong(f"`{what}` is true or false", node.line)
        return node.value

    def weight(self, node: Node) -> float:
        weight = node.value
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight <= 0:
            self.wrong(f"`weight` is {node.text!r}; it is a number above 0", node.line)
        return weight

    def pattern(self, node: Node, what: str) -> Pattern:
        text = node.text
        if text is None or not text:
            self.wrong(f"`{what}` is a regular expression in quotes", node.line)
        return self.orderly(lambda: Pattern(text), what, node.line)

    def orderly(self, make: Callable[[], Pattern], what: str, line: int) -> Pattern:
        try:
            return make()
        except ValueError as error:
            self.wrong(f"`{what}`: {error}", line)

    def wrong(self, message: str, line: int) -> NoReturn:
        raise SpecError(message, file=self.file, line=line)


def _same(*words: str) -> dict[str, str]:
    return {word: word for word in words}


_DESCRIPTION = re.compile(r"^(?P<indent> *(?:- +)?)description:[ \t]+(?P<text>\S.*)$")
_IS_QUOTED = re.compile(r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[|>][-+0-9]*)\s*(?:#.*)?""")


def _with_quoted_descriptions(text: str) -> str:
    """The same text, line for line, with every description in quotes that stood without."""
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        found = _DESCRIPTION.match(lines[at])
        if not found or _IS_QUOTED.fullmatch(found["text"]):
            at += 1
            continue
        indent = len(found["indent"])
        last = at
        while last + 1 < len(lines) and _goes_on(lines[last + 1], indent):
            last += 1
        head = found["indent"] + "description: "
        lines[at] = head + "'" + lines[at][found.start("text") :].rstrip().replace("'", "''")
        for inner in range(at + 1, last + 1):
            lines[inner] = lines[inner].rstrip().replace("'", "''")
        lines[last] += "'"
        at = last + 1
    return "\n".join(lines)


def _goes_on(line: str, indent: int) -> bool:
    # Words that stand deeper than the key belong to it; a blank line may stand between them only in quotes.
    return bool(line.strip()) and len(line) - len(line.lstrip(" ")) > indent
