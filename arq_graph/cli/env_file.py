"""A `.env` file: settings such as a key, one `NAME=value` a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from pathlib import Path

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")
_QUOTED = re.compile(r"""(["'])(.*)\1\s*(?:#.*)?""")
_COMMENT = re.compile(r"(?:^|\s+)#.*")


def load_env_file(path: Path, environ: MutableMapping[str, str]) -> list[str]:
    """Take over what a `.env` file sets and the environment does not.

    Nothing in a value is expanded or run.

    Args:
        path: The file; it need not exist.
        environ: The environment; what it already holds stays.

    Returns:
        What could not be read, one sentence each.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return []
    except (OSError, UnicodeDecodeError) as error:
        return [f"{path} is not read: {error}"]
    unread = []
    for number, setting in _settings(text):
        if setting is None:
            unread.append(f"{path}:{number} is not read: it must be NAME=value")
        else:
            environ.setdefault(*setting)
    return unread


def _settings(text: str) -> Iterator[tuple[int, tuple[str, str] | None]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None or "\0" in line:
            yield number, None
        else:
            yield number, (found[1], _value(found[2]))


def _value(written: str) -> str:
    quoted = _QUOTED.fullmatch(written)
    return quoted[2] if quoted else _COMMENT.sub("", written)
