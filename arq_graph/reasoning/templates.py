"""Prompt templates: Markdown files with Jinja2 blocks, replaceable one by one.

A template has a block `head` (the system message, which stays the same for the life of a node) and a block `tail` (the
end of the human message, after the conversation). A replacement may be a whole template or extend the shipped one and
override a single block: `{% extends "guideline_matcher.md" %}{% block task %}…{% endblock %}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arq_graph.errors import PromptError
from arq_graph.reasoning.sections import as_json, section

if TYPE_CHECKING:  # Jinja2 is loaded when the first template is made
    from jinja2 import Environment, Template

_REQUIRED_BLOCKS = {"head": "the instructions", "tail": "what to answer now"}


class PromptTemplate:
    """A template whose blocks are rendered one at a time.

    Args:
        source: The path of the template, or its text.
        folder: Where the templates are that it may extend.

    Raises:
        PromptError: The template cannot be read, isn't valid, or lacks a block.
    """

    def __init__(self, source: str | Path, folder: Path) -> None:
        from jinja2 import TemplateError

        self.name = str(source) if isinstance(source, Path) else "the given template"
        try:
            text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
            self._template, self._blocks = _compile(text, folder)
        except (OSError, UnicodeDecodeError) as error:
            raise PromptError(f"cannot read the prompt template {source}: {error}") from error
        except TemplateError as error:
            raise PromptError(f"{self.name} is not a valid Jinja2 template: {error}") from error
        self._arguments = text, folder
        for block, purpose in _REQUIRED_BLOCKS.items():
            if block not in self._blocks:
                raise PromptError(
                    f"{self.name} has no block {block!r} ({purpose}); if it is the name of a file, give a Path"
                )

    def __reduce__(self) -> tuple[type[PromptTemplate], tuple[str, Path]]:
        return type(self), self._arguments  # a compiled template cannot be sent to another process

    def render(self, block: str, values: Mapping[str, Any]) -> str:
        """Render one block; raises PromptError if it names a value that is missing, or that cannot be shown."""
        context = self._template.new_context(dict(values))
        context.blocks.update({name: list(renderers) for name, renderers in self._blocks.items()})
        render_block = self._blocks[block][0]
        try:
            return "".join(render_block(context)).strip()
        except Exception as error:  # whatever an expression of the template raises
            raise PromptError(f"{self.name}, block {block!r}: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=128)
def _compile(text: str, folder: Path) -> tuple[Template, dict[str, list[Any]]]:
    """Return a template, and the renderers of each block along the chain of `extends`, the most derived first.

    They are compiled once for all nodes.
    """
    from jinja2 import nodes

    environment = _make_environment(folder)
    template = environment.from_string(text)
    blocks: dict[str, list[Any]] = {name: [renderer] for name, renderer in template.blocks.items()}
    for parent in environment.parse(text).find_all(nodes.Extends):
        if not isinstance(parent.template, nodes.Const):
            raise PromptError("a prompt template can only extend a template named by a plain string")
        parent_name = parent.template.value
        _, parent_blocks = _compile((folder / parent_name).read_text(encoding="utf-8"), folder)
        if unknown := blocks.keys() - parent_blocks:
            raise PromptError(
                f"{parent_name} has no block {min(unknown)!r} to replace: its blocks are {', '.join(parent_blocks)}"
            )
        own_blocks = blocks
        blocks = {name: own_blocks.get(name, []) + renderers for name, renderers in parent_blocks.items()}
    return template, blocks


@cache
def _make_environment(folder: Path) -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    # The files are read now: a template that is rendered on an event loop must not read from the disk.
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    environment = Environment(
        loader=DictLoader(texts),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters |= {"section": section, "json": as_json}
    return environment
