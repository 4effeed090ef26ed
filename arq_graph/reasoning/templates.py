"""Prompt templates: Markdown files with Jinja2 blocks, replaceable one by one.

A template has a block `head` (the system message: constant for the life of a node) and a block `tail` (the
end of the human message, after the conversation). A replacement may be a whole template or extend the shipped
one and override a single block: `{% extends "guideline_matcher.md" %}{% block task %}…{% endblock %}`.
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

_NEEDED = {"head": "the instructions", "tail": "what to answer now"}


@cache
def _environment(folder: Path) -> Environment:
    from jinja2 import DictLoader, Environment, StrictUndefined

    environment = Environment(
        # Read at once: a head that is rendered on an event loop must not look into the folder.
        loader=DictLoader({each.name: each.read_text(encoding="utf-8") for each in folder.glob("*.md")}),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )
    environment.filters |= {"section": section, "json": as_json}
    return environment


class PromptTemplate:
    """A template, of a path or a text, whose blocks are rendered one at a time; `folder` has what it may extend."""

    def __init__(self, source: str | Path, folder: Path) -> None:
        from jinja2 import TemplateError

        self.name = str(source) if isinstance(source, Path) else "the given template"
        try:
            text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
            self._template, self._blocks = _compiled(text, folder)
            self._made_of = text, folder
        except (OSError, UnicodeDecodeError) as error:
            raise PromptError(f"cannot read the prompt template {source}: {error}") from error
        except TemplateError as error:
            raise PromptError(f"{self.name} is not a valid Jinja2 template: {error}") from error
        for block, purpose in _NEEDED.items():
            if block not in self._blocks:
                raise PromptError(
                    f"{self.name} has no block {block!r} ({purpose}); if it is the name of a file, give a Path"
                )

    def __reduce__(self) -> tuple[type[PromptTemplate], tuple[str, Path]]:
        return type(self), self._made_of  # what is compiled cannot be sent to another process

    def render(self, block: str, values: Mapping[str, Any]) -> str:
        """Render one block."""
        context = self._template.new_context(dict(values))
        context.blocks.update({name: list(renderers) for name, renderers in self._blocks.items()})
        try:
            return "".join(self._blocks[block][0](context)).strip()
        except Exception as error:  # an expression of the template, or a value that cannot be shown
            raise PromptError(f"{self.name}, block {block!r}: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=128)
def _compiled(text: str, folder: Path) -> tuple[Template, dict[str, list[Any]]]:
    """A template, and each block's renderers, the most derived first, along the chain of `extends`.

    It is compiled once, as every node made of a shipped prompt has the same.
    """
    from jinja2 import nodes

    environment = _environment(folder)
    template = environment.from_string(text)
    blocks: dict[str, list[Any]] = {name: [renderer] for name, renderer in template.blocks.items()}
    for parent in environment.parse(text).find_all(nodes.Extends):
        if not isinstance(parent.template, nodes.Const):
            raise PromptError("a prompt template can only extend a template named by a plain string")
        name = parent.template.value
        _, inherited = _compiled((folder / name).read_text(encoding="utf-8"), folder)
        if unknown := blocks.keys() - inherited:
            raise PromptError(
                f"{name} has no block {min(unknown)!r} to replace: its blocks are {', '.join(inherited)}"
            )
        blocks = {block: [*blocks.get(block, ()), *renderers] for block, renderers in inherited.items()}
    return template, blocks
