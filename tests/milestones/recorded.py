"""Where recorded conversations of real agents stand, if they are at hand beside the checkout."""

from __future__ import annotations

from pathlib import Path

_FILE = Path("shared/data/tau_airline/gpt-4o-airline.json")

AIRLINE = next(
    (folder / _FILE for folder in Path(__file__).parents if (folder / _FILE).exists()),
    Path(__file__).parents[3] / _FILE,
)
"""200 conversations of tau-bench's airline."""
