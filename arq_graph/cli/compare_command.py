"""`arq-graph compare`: its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from arq_graph.cli.failures import reported
from arq_graph.cli.options import AsJson, Debug, loading


def compare(
    a: Annotated[Path, typer.Argument(metavar="A.json", help="A report that `score --json` wrote.")],
    b: Annotated[Path, typer.Argument(metavar="B.json", help="Another, over the same conversations.")],
    names: Annotated[
        tuple[str, str], typer.Option("--names", metavar="A B", help="What to call the two.")
    ] = ("A", "B"),
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """See whether one of two reports is better, and how sure that is."""
    with reported(debug):
        with loading():
            from arq_graph.cli.comparing import compare_reports
        compare_reports(a, b, names, as_json=as_json)
