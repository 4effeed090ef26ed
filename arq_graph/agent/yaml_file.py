"""The one reader of YAML files: text in, a Pydantic model out, or one `SpecError` that names every mistake.

```python
suite = read_model("suite.yaml", SuiteFile, what="suite file")
```

A validator of the model finds the `Document` in `info.context`: the file's folder, and lines. Where it raises
`ValueError`, the message continues a sentence that begins with the field ("must be …", "names …"). One that
finds something wrong further inside raises `misfits`, which say where.
"""

from __future__ import annotations

import os
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails

from arq_graph.agent.complaints import complaints, inner, steps
from arq_graph.agent.yaml_document import MAX_BYTES, Document, Entry, read_text
from arq_graph.errors import SpecError

__all__ = ["Document", "Entry", "misfits", "parse_model", "read_model", "read_text", "spec_error"]

M = TypeVar("M", bound=BaseModel)
Place = tuple[str | int, ...]
Problem = tuple[Place, str | SpecError]


def read_model(
    path: str | os.PathLike[str], model: type[M], *, what: str = "file", max_bytes: int = MAX_BYTES
) -> M:
    """Read a YAML file as a model.

    Args:
        path: The file.
        model: What it must hold; its JSON Schema describes the file to editors.
        what: What kind of file it is, for messages: "milestone file".
        max_bytes: How large it may be.

    Raises:
        SpecError: The file cannot be read, or something in it is wrong. It names file and line, what was
            expected, and what a misspelled key probably meant; several mistakes are told together.
    """
    text = read_text(path, what=what, max_bytes=max_bytes)
    return parse_model(text, model, what=what, source=os.fspath(path), max_bytes=max_bytes)


def parse_model(
    text: str,
    model: type[M],
    *,
    what: str = "file",
    source: str = "<text>",
    max_bytes: int = MAX_BYTES,
    list_as: str | None = None,
) -> M:
    """Read a YAML text as a model.

    A number or a truth value without quotes is text where the model wants text: `name: 12` is "12".

    Args:
        text: The text.
        model: What it must hold.
        what: What kind of file it is, for messages.
        source: The file that the text came from: named in messages, and its folder is where a validator looks
            for what it names.
        max_bytes: How large the file may be once aliases are followed, 1.5 times over.
        list_as: The field that a file which is a list alone stands for.

    Raises:
        SpecError: As `read_model`.
    """
    document = Document(text, source, max_bytes=max_bytes)
    if list_as and isinstance(document.values, list):
        document.values = {list_as: document.values}
    if document.values is None:
        raise SpecError(f"is empty; {_needs(model, what)}", file=source, line=1)
    while True:
        try:
            return model.model_validate(document.values, context=document)
        except ValidationError as error:
            if not _take_as_text(document, error):
                wrong = spec_error(error, model, document.values, document=document, what=what)
                raise wrong from wrong.__cause__


def spec_error(
    error: ValidationError,
    model: type[BaseModel],
    values: object,
    *,
    document: Document | None = None,
    what: str = "",
) -> SpecError:
    """Turn what Pydantic says into one `SpecError`, for files and for objects that are built in Python.

    Args:
        error: What was raised.
        model: The model that was to be made.
        values: What it was to be made of.
        document: The file that the values stand in, if any: it gives the lines.
        what: What kind of file it is, for messages.

    Returns:
        The error; its cause is that of what a validator raised, if any (a module that failed to import).
    """
    told = complaints(error, model, values, root=f"the {what}" if document else None)
    if document is None:
        made = SpecError.of_several([(None, message) for _, message in told])
    else:
        lined = sorted({(document.line(place), message) for place, message in told})
        made = SpecError.of_several(lined, file=document.source)
    raised = (each.get("ctx", {}).get("error") for each in error.errors(include_url=False))
    made.__cause__ = next((each.__cause__ for each in raised if each and each.__cause__), None)
    return made


def misfits(*found: Problem) -> ValidationError:
    """Return an error for a validator of a whole model to raise about what stands inside it.

    Args:
        found: For each problem its place, as keys and indices from the model inwards, and what is wrong, as
            the rest of a sentence that begins with the field there.
    """
    errors = [(place, each if isinstance(each, SpecError) else SpecError(each)) for place, each in found]
    return ValidationError.from_exception_data(
        "misfits",
        [
            InitErrorDetails(type="value_error", loc=place, input=None, ctx={"error": error})
            for place, error in errors
        ],
    )


def _needs(model: type[BaseModel], what: str) -> str:
    required = [f"`{name}:`" for name, field in model.model_fields.items() if field.is_required()]
    return f"the {what} needs at least {' and '.join(required) or 'one entry'}"


def _take_as_text(document: Document, error: ValidationError) -> bool:
    """Put the words that stand in the file where text was wanted and a number or truth value was read."""
    changed = False
    for each in error.errors(include_url=False):
        word = document.bare_word(each["loc"]) if each["type"] == "string_type" else None
        if word is None:
            continue
        *outer, last = steps(document.values, each["loc"])
        holder: Any = document.values
        for step in outer:
            holder = inner(holder, step)
        holder[last] = word
        changed = True
    return changed
