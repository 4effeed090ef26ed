"""JSON on standard output, for programs: one object a line."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any


def print_json(record: Mapping[str, Any]) -> None:
    """Print one object on a line and hand it on at once."""
    line = json.dumps(record, ensure_ascii=False, default=str)
    try:
        line.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:  # lone surrogates, or a terminal of another encoding
        line = json.dumps(record, default=str)
    print(line, flush=True)
