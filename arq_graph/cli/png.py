"""Pictures drawn with what is installed; nothing is sent to a web service."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from arq_graph.errors import InputError

MERMAID_PROGRAM = "mmdc"


def mermaid_program() -> str | None:
    """Mermaid's own program, where it is installed."""
    return shutil.which(MERMAID_PROGRAM)


def check_folder(file: Path) -> None:
    """Check that there is a folder to write to.

    Raises:
        InputError: There is none.
    """
    if not file.parent.is_dir():
        raise InputError(f"there is no folder {file.parent} to write {file.name} to")


def draw_with_mermaid(program: str, text: str, file: Path) -> None:
    """Have Mermaid's own program draw a picture.

    Args:
        program: The program.
        text: The picture as Mermaid text.
        file: Where to write it.

    Raises:
        InputError: The program could not.
    """
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
