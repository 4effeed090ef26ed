"""What the arms of one's own are made of, so that a run that goes on knows whether they changed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from arq_graph.apps.arms import known_arms
from arq_graph.cli.file_digests import digest_of_files


def digests_of_arms(names: Sequence[str], folder: Path) -> dict[str, str]:
    """A digest of the module's file, by the name of each arm that is given as `module:function`.

    Args:
        names: The arms, which were imported.
        folder: Where their modules are looked for before `sys.path`.

    Raises:
        InputError: A file cannot be read.
    """
    files = {name: _file_of(name.partition(":")[0], folder) for name in names if name not in known_arms()}
    return {name: digest_of_files([file]) for name, file in files.items() if file is not None}


def _file_of(module: str, folder: Path) -> Path | None:
    """The file of a module; None for one that has none, such as a folder or what is built in."""
    inner = folder.joinpath(*module.split("."))
    for file in (inner.with_name(f"{inner.name}.py"), inner / "__init__.py"):
        if file.is_file():
            return file
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or not spec.has_location or spec.origin is None:
        return None
    file = Path(spec.origin)
    return file if file.is_file() else None
