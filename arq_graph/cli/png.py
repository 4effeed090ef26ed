"""Pictures as Mermaid, or drawn with what is installed; nothing is sent to a web service."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from arq_graph.cli.failures import note
from arq_graph.errors import InputError

MERMAID_PROGRAM = "mmdc"


def draw(mermaid: str, png: Path | None, with_graphviz: Callable[[Path], None]) -> None:
    """Print a picture as Mermaid, or write it as PNG.

    Args:
        mermaid: The picture as Mermaid text.
        png: Where to write the PNG; None prints.
        with_graphviz: Writes the PNG where pygraphviz is installed.

    Raises:
        InputError: The picture cannot be drawn with what is installed, or not written there.
    """
    if png is None:
        print(mermaid, end="")
        return
    if not png.parent.is_dir():
        raise InputError(f"there is no folder {png.parent} to write {png.name} to")
    if importlib.util.find_spec("pygraphviz"):
        try:
            with_graphviz(png)
        except (OSError, ValueError) as error:
            raise InputError(f"{png} cannot be written: {error}") from error
    elif program := shutil.which(MERMAID_PROGRAM):
        _draw_with_mermaid(program, mermaid, png)
    else:
        raise InputError(
            "a PNG needs one of two programs: `pip install pygraphviz`, or Mermaid's own, `npm install -g "
            "@mermaid-js/mermaid-cli`. Without --png the graph is printed as Mermaid, which GitHub and "
            "https://mermaid.live show as a picture"
        )
    note(f"written to {png}")


def _draw_with_mermaid(program: str, text: str, file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "graph.mmd"
        source.write_text(text, encoding="utf-8")
        run = subprocess.run(
            [program, "--input", str(source), "--output", str(file)],
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode or not file.is_file():
        said = (run.stderr or run.stdout).strip()
        raise InputError(f"{program} could not draw {file}: {said or f'exit code {run.returncode}'}")
