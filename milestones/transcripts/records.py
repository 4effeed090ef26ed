"""The records of a JSON or JSON Lines file: of JSON Lines, memory holds one record and not the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from arq_graph.errors import InputError


def read_records(path: Path) -> Iterator[Any]:
    """The records of a UTF-8 file: its lines, the elements of its JSON list, or its one JSON value.

    What cannot be read is given as an `InputError` in its place: a broken line does not stop the rest.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            lines = filter(str.strip, stream)
            begins = [line for line in (next(lines, None), next(lines, None)) if line is not None]
            if not begins:
                raise InputError(f"{path} is empty: it holds no conversation")
            is_json = len(begins) == 1 or isinstance(_load(begins[0]), InputError)
            if path.suffix.lower() not in (".jsonl", ".ndjson") and is_json:
                whole = _load("".join([*begins, stream.read()]))
                yield from whole if isinstance(whole, list) else [whole]
            else:
                yield from map(_load, chain(begins, lines))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 (byte {error.start} of a part): save it as UTF-8") from None


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        return InputError("nested too deeply to be a conversation")
    except ValueError as error:
        return InputError(f"no JSON: {error}")
