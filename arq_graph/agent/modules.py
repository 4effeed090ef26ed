"""Functions named in a file as "module:function", and the modules that they are imported from.

A module is looked for beside the file first, then on `sys.path`. One that is found only beside the file is a
module of a package that stands for the folder, so that the `tools.py` of two agents are two modules.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import re
import sys
import threading
import traceback
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from arq_graph.agent.spelling import suggestion
from arq_graph.errors import SpecError

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_IMPORTING = threading.RLock()

# What modules beside one file imported from beside it: two folders may both hold a `db.py`.
_neighbours: dict[Path, dict[str, ModuleType]] = {}


def check_reference(reference: str) -> None:
    """Check that a text has the form "module:function"."""
    if not _REFERENCE.fullmatch(reference) or ".py:" in reference:
        said = 'must be "module:function", without spaces, slashes and brackets'
        raise SpecError(f"{said}, but is {reference!r}")


def load(reference: str, folder: Path | None = None) -> object:
    """Import what "module:function" names.

    What a module prints while it is imported goes to standard error.
    """
    check_reference(reference)
    name, _, attribute = reference.partition(":")
    found: object = _module(name, folder.resolve() if folder else None)
    for step in attribute.split("."):
        try:
            found = getattr(found, step)
        except AttributeError:
            near = suggestion(step, (known for known in dir(found) if not known.startswith("_")))
            raise SpecError(f"names {reference!r}, but there is no {step!r}{near}") from None
        except Exception as error:  # a module's or an object's own __getattr__
            raise SpecError(f"names {reference!r}, and looking up {step!r} fails{_said(error)}") from error
    return found


def _module(name: str, folder: Path | None) -> ModuleType:
    with _IMPORTING, contextlib.redirect_stdout(sys.stderr):
        try:
            if folder and _stands_in(folder, name) and not _is_importable_from(folder, name):
                with _importable(folder):
                    return importlib.import_module(f"{_package(folder)}.{name}")
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(f"{error.name}.")):
                places = f"neither in {folder} nor" if folder else "not"
                raise SpecError(
                    f"names the module {name!r}, which is {places} on Python's search path"
                ) from None
            raise SpecError(f"names the module {name!r}, which fails to import{_said(error)}") from error
        except (Exception, SystemExit) as error:
            raise SpecError(f"names the module {name!r}, which fails to import{_said(error)}") from error


def _said(error: BaseException) -> str:
    """What was raised, and by which line of the user's own code."""
    said = f" with {type(error).__name__}{f': {error}' if str(error) else ''}"
    frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename[:1] != "<"]
    if isinstance(error, SyntaxError) or frames[-1].filename == importlib.__file__:
        return said  # a syntax error's own text names file and line
    return f"{said} (line {frames[-1].lineno} of {frames[-1].filename})"


def _stands_in(folder: Path, name: str) -> bool:
    path = folder.joinpath(*name.split("."))
    return path.with_name(f"{path.name}.py").is_file() or (path / "__init__.py").is_file()


def _is_importable_from(folder: Path, name: str) -> bool:
    """Whether an ordinary import finds the very module of this folder; then a second copy would be wrong."""
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    return bool(spec and spec.origin and Path(spec.origin).resolve().parent in (folder, folder / top))


def _package(folder: Path) -> str:
    """The name of a package that stands for a folder."""
    name = f"arq_graph_agent_{sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        sys.modules[name] = package = ModuleType(name)
        package.__path__ = [str(folder)]
    return name


@contextlib.contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules import what stands beside them, but never the namesake that stands beside another file."""
    own = _neighbours.setdefault(folder, {})
    for other, modules in _neighbours.items():
        for name, module in modules.items():
            if other != folder and sys.modules.get(name) is module and _stands_in(folder, name):
                del sys.modules[name]
    sys.modules.update(own)
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a module may have taken it out itself
            sys.path.remove(str(folder))
        for name in sys.modules.keys() - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and Path(file).is_relative_to(folder) and _stands_in(folder, name):
                own[name] = sys.modules[name]
