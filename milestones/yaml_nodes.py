"""YAML as a tree whose every part knows its line, bounded in depth and size.

Plain words follow YAML 1.2: `no` and `on` are words, `2024-05-20` and `12:30` are texts, `0123` keeps its
zero; only `true`, `false`, `null` and decimal numbers are more than text. Anchors, aliases and tags, which
milestone files have no use for, are refused: a few lines of aliases can stand for gigabytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from arq_graph.errors import SpecError

DEEPEST = 40

# Each reads as more than text in YAML 1.1 too, so that what PyYAML writes unquoted reads back as text.
_WORDS = {"": None, "~": None, "true": True, "false": False}
_WORDS |= dict.fromkeys(("null", "Null", "NULL"))
_WORDS |= {word: word[0] in "tT" for word in ("True", "TRUE", "False", "FALSE")}
_NUMERIC = frozenset("+-.0123456789")
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,300})")
_DECIMAL = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?")

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(slots=True)
class Node:
    """A part of a YAML file.

    Args:
        line: Its line, from 1.
        value: The value of a word or a number; the nodes of a list; the entries of a mapping.
        text: What stands there, for a word or a number; None otherwise.
    """

    line: int
    value: Any
    text: str | None = None

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping: its value is then a dict of key to (line of the key, node)."""
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether it is a list of nodes."""
        return isinstance(self.value, list)

    def plain(self) -> Any:
        """The value without lines: words, numbers, lists and dicts."""
        if self.is_mapping:
            return {key: node.plain() for key, (_, node) in self.value.items()}
        if self.is_list:
            return [node.plain() for node in self.value]
        return self.value


def parse(text: str, file: str | None) -> Node | None:
    """The tree of a YAML text; None if it is empty.

    Args:
        text: The text of one document.
        file: The file it came from, for messages.

    Raises:
        SpecError: It is no YAML, holds an alias, a tag, a key twice or a second document, or is too deep.
    """
    try:
        return _build(yaml.parse(text, Loader=_LOADER), file)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(f"not YAML: {error.reason}", file=file, line=line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise SpecError(
            f"not YAML: {said}; text with a colon, a quote or a bracket in it goes in quotes",
            file=file,
            line=mark.line + 1 if mark else None,
        ) from None


def _build(events: Iterator[Any], file: str | None) -> Node | None:
    root: Node | None = None
    # The open lists and mappings from the outermost in, and for each mapping the key that waits for its value.
    open_: list[Node] = []
    keys: list[tuple[str, int] | None] = []
    for event in events:
        kind = type(event)
        if kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
            open_.pop()
            keys.pop()
            continue
        line = event.start_mark.line + 1
        if kind is yaml.DocumentStartEvent and root is not None:
            raise SpecError("a second document begins here; keep one in a file", file=file, line=line)
        if not isinstance(event, yaml.NodeEvent):
            continue
        node = _node(event, line, file)
        if not open_:
            root = node
        elif type(inside := open_[-1].value) is list:
            inside.append(node)
        elif (key := keys[-1]) is not None:
            inside[key[0]] = (key[1], node)
            keys[-1] = None
        else:
            keys[-1] = (_new_key(node, inside, file), line)
            continue
        if node.text is None:
            if len(open_) == DEEPEST:
                raise SpecError(f"nested more than {DEEPEST} deep", file=file, line=line)
            open_.append(node)
            keys.append(None)
    return root


def _new_key(node: Node, mapping: dict[str, tuple[int, Node]], file: str | None) -> str:
    if node.text is None:
        raise SpecError("a key is a list or a mapping; a key is a word", file=file, line=node.line)
    if node.text in mapping:
        first = mapping[node.text][0]
        raise SpecError(
            f"the key {node.text!r} stands here again (first in line {first})", file=file, line=node.line
        )
    return node.text


def _node(event: Any, line: int, file: str | None) -> Node:
    if event.anchor or type(event) is yaml.AliasEvent:
        raise SpecError(
            "anchors (&) and aliases (*) are not supported: write the part out, or put text that begins "
            "with such a sign in quotes",
            file=file,
            line=line,
        )
    is_text = False
    if event.tag is not None:
        is_text = event.tag == "tag:yaml.org,2002:str"
        if not is_text:
            raise SpecError(f"the tag {event.tag!r} is not supported", file=file, line=line)
    if type(event) is yaml.ScalarEvent:
        word: str = event.value
        return Node(line, word if is_text or not event.implicit[0] else _meaning(word), word)
    return Node(line, {} if type(event) is yaml.MappingStartEvent else [])


def _meaning(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    if word[0] not in _NUMERIC:
        return word
    if _WHOLE.fullmatch(word):
        return int(word)
    return float(word) if _DECIMAL.fullmatch(word) else word
