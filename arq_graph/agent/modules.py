"""Functions named in a file as "module:function", and the modules that they are imported from.

A module is looked for beside the file first, then on `sys.path`. Where an ordinary import would not find it, a
module beside the file is one of a package that stands for the folder: the `tools.py` of two agents are two modules.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from arq_graph.errors import ArqGraphError, SpecError, suggestion

_IMPORTING = threading.RLock()
_OF_LIBRARIES = ("<", *(sysconfig.get_path(each) for each in ("stdlib", "purelib", "platlib")))
_FOLDERS: set[Path] = set()  # those that modules were imported from
_LOADED: dict[int, tuple[object, str, Path | None]] = {}  # what was named, by its identity


def load(reference: str, folder: Path | None = None) -> object:
    """Import what "module:function" names.

    What a module prints while it is imported goes to standard error.
    """
    name, _, attribute = reference.partition(":")
    if not name or not attribute:
        raise SpecError(f'must be "module:function", but is {reference!r}')
    folder = folder.resolve() if folder else None
    module = _module(name, folder)
    try:
        found: object = attrgetter(attribute)(module)
    except AttributeError:
        near = suggestion(attribute, (known for known in dir(module) if not known.startswith("_")))
        raise SpecError(f"names {reference!r}, but there is no {attribute!r}{near}") from None
    _LOADED[id(found)] = found, reference, folder
    return found


def name_of(thing: object) -> tuple[str, Path | None] | None:
    """What `load` was given for a thing that it loaded, so that another process can load it, too."""
    found = _LOADED.get(id(thing))
    return found[1:] if found else None


def file_of(thing: object) -> Path | None:
    """The file of the module that a thing was loaded from, where that stands in a folder of its own."""
    reference, folder = name_of(thing) or ("", None)
    return _file(folder, reference.partition(":")[0]) if folder else None


def folders() -> tuple[Path, ...]:
    """The folders that modules were imported from because a file in them names one."""
    return tuple(_FOLDERS)


@contextlib.contextmanager
def importable(folders: Iterable[Path]) -> Iterator[None]:
    """Inside the block, an import finds what `load` imported from these folders in another process."""
    with _IMPORTING, contextlib.ExitStack() as stack:
        for folder in filter(Path.is_dir, folders):
            _package(folder)
            stack.enter_context(_neighbours(folder))
        yield


def _module(name: str, folder: Path | None) -> ModuleType:
    with _IMPORTING, contextlib.redirect_stdout(sys.stderr):
        try:
            if not folder or not _file(folder, name):
                return importlib.import_module(name)
            full_name = name if _is_importable_from(folder, name) else f"{_package(folder)}.{name}"
            with _neighbours(folder):
                return importlib.import_module(full_name)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
                places = f"neither in {folder} nor" if folder else "not"
                said = f"names the module {name!r}, which is {places} on Python's search path"
                raise SpecError(said) from None
            said = f"names the module {name!r}, which fails to import with {told(error)}"
            raise SpecError(said) from error


def told(error: BaseException, *, placed: bool = True) -> str:
    """What was raised, and by which line of the user's own code; our own errors are whole sentences already."""
    if isinstance(error, ArqGraphError) and str(error):
        return str(error)
    said = f"{type(error).__name__}{f': {error}' if str(error) else ''}"
    own = [
        f" (line {line} of {frame.f_code.co_filename})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_OF_LIBRARIES)
        and not frame.f_globals.get("__name__", "").startswith("arq_graph.")
    ]
    return said + "".join(own[-1:] if placed else ())


def place_of(function: object) -> str:
    """Where a function of the user's own stands, in brackets; empty if it is not written in Python."""
    code = getattr(function, "__code__", None)
    return f" (line {code.co_firstlineno} of {code.co_filename})" if code else ""


def _file(folder: Path, name: str) -> Path | None:
    path = folder.joinpath(*name.split("."))
    places = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next(filter(Path.is_file, places), None)


def _is_importable_from(folder: Path, name: str) -> bool:
    """Whether an ordinary import finds the very module of this folder; then a second copy would be wrong."""
    top = name.partition(".")[0]
    spec = importlib.util.find_spec(top)
    return spec is not None and Path(spec.origin or "").resolve() == _file(folder, top)


def _package(folder: Path) -> str:
    name = f"arq_graph_agent_{sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        sys.modules[name] = package = ModuleType(name)
        package.__path__ = [str(folder)]
    return name


@contextlib.contextmanager
def _neighbours(folder: Path) -> Iterator[None]:
    """Let modules import what stands beside them, but never the namesake that stands beside another file."""
    others = _FOLDERS - {folder}
    _FOLDERS.add(folder)
    imported = sys.modules.copy()  # at once: other threads import, too
    loaded = imported.keys() & {each.stem for each in folder.iterdir()}
    for name, module in imported.items() if loaded else ():  # mostly there is no namesake
        if name.partition(".")[0] not in loaded:
            continue
        file = Path(getattr(module, "__file__", None) or "")
        if any(file.is_relative_to(other) for other in others) and _file(folder, name) not in (None, file):
            sys.modules.pop(name, None)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a module may have taken it out itself
            sys.path.remove(str(folder))
