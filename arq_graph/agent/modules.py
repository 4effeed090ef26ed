"""Functions that a file names as "module:function", and the modules that they are imported from.

A module is searched for beside the file first, then on `sys.path`. If an ordinary import wouldn't find the module
beside the file, it is imported into a package that stands for the folder: the `tools.py` of two agents are two modules.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterable, Iterator
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from types import ModuleType

from arq_graph.errors import SpecError, describe_error, suggestion

_IMPORT_LOCK = threading.RLock()
_import_folders: set[Path] = set()
_loaded: dict[int, tuple[object, str, Path | None]] = {}  # by identity: the object, its reference, its folder


def load_object(reference: str, folder: Path | None = None) -> object:
    """Import the object that "module:function" names.

    Output that a module prints while it is imported goes to standard error.
    """
    name, _, attribute = reference.partition(":")
    if not name or not attribute:
        raise SpecError(f'must be "module:function", but is {reference!r}')
    folder = folder.resolve() if folder else None
    module = _import_module(name, folder)
    try:
        value: object = attrgetter(attribute)(module)
    except AttributeError:
        public_names = [name for name in dir(module) if not name.startswith("_")]
        hint = suggestion(attribute, public_names)
        raise SpecError(f"names {reference!r}, but there is no {attribute!r}{hint}") from None
    _loaded[id(value)] = value, reference, folder
    return value


def find_reference(value: object) -> tuple[str, Path | None] | None:
    """Return the arguments with which `load_object` loaded an object, so that another process can load it too."""
    entry = _loaded.get(id(value))
    return entry[1:] if entry else None


def find_module_file(value: object) -> Path | None:
    """Return the file of the module that an object was loaded from, if the module was found in a file's folder."""
    reference, folder = find_reference(value) or ("", None)
    return _find_file(folder, reference.partition(":")[0]) if folder else None


def get_import_folders() -> tuple[Path, ...]:
    """Return the folders of files that named modules in them."""
    return tuple(_import_folders)


@contextlib.contextmanager
def allow_imports_from(folders: Iterable[Path]) -> Iterator[None]:
    """Let the block import the modules that `load_object` imported from these folders in another process."""
    with _IMPORT_LOCK, contextlib.ExitStack() as stack:
        for folder in filter(Path.is_dir, folders):
            _make_package(folder)
            stack.enter_context(_allow_neighbours(folder))
        yield


def _import_module(name: str, folder: Path | None) -> ModuleType:
    with _IMPORT_LOCK, contextlib.redirect_stdout(sys.stderr):
        try:
            if not folder or not _find_file(folder, name):
                return importlib.import_module(name)
            full_name = name
            _forget_namesakes(folder)
            if not _is_importable_from(folder, name):
                full_name = f"{_make_package(folder)}.{name}"
            with _allow_neighbours(folder):
                return importlib.import_module(full_name)
        except (Exception, SystemExit) as error:
            if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
                places = f"neither in {folder} nor" if folder else "not"
                message = f"names the module {name!r}, which is {places} on Python's search path"
                raise SpecError(message) from None
            message = f"names the module {name!r}, which fails to import with {describe_error(error)}"
            raise SpecError(message) from error


def _find_file(folder: Path, name: str) -> Path | None:
    path = folder / name.replace(".", "/")
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next(filter(Path.is_file, candidates), None)


def _is_importable_from(folder: Path, name: str) -> bool:
    """Return True if an ordinary import finds this folder's module; a second copy of it would then be wrong."""
    top = name.partition(".")[0]
    spec = importlib.util.find_spec(top)
    return spec is not None and Path(spec.origin or "").resolve() == _find_file(folder, top)


def _make_package(folder: Path) -> str:
    name = f"arq_graph_agent_{sha256(str(folder).encode()).hexdigest()[:12]}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


@contextlib.contextmanager
def _allow_neighbours(folder: Path) -> Iterator[None]:
    """Let modules import what is in their folder, but never a module of the same name from another file's folder."""
    _import_folders.add(folder)
    _forget_namesakes(folder)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a module may have removed it
            sys.path.remove(str(folder))


def _forget_namesakes(folder: Path) -> None:
    """Remove modules from `sys.modules` that came from another file's folder and that this folder has, too."""
    other_folders = _import_folders - {folder}
    names = {file.stem for file in folder.iterdir()} & sys.modules.keys()
    if not names:
        return
    for name, module in sys.modules.copy().items():  # a copy, because other threads import at the same time
        if name.partition(".")[0] not in names:
            continue
        file = Path(getattr(module, "__file__", None) or "")
        is_from_elsewhere = not other_folders.isdisjoint(file.parents)
        if is_from_elsewhere and _find_file(folder, name) not in (None, file):
            sys.modules.pop(name, None)
