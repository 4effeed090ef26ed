"""Functions named in a file as "module:function", and the modules that they are imported from.

A module is looked for beside the file first, then on `sys.path`. One that is found only beside the file is
loaded under a name of its own, so that the `tools.py` of two agents are two modules.
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
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from arq_graph.agent.spelling import suggestion
from arq_graph.errors import SpecError

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_IMPORTING = threading.RLock()

# What modules beside one file imported from beside it: two folders may both hold a `db.py`.
_neighbours: dict[Path, dict[str, ModuleType]] = {}


def check_reference(reference: str) -> None:
    """Check that a text has the form "module:function".

    Raises:
        SpecError: It has not; the message says how it was probably meant, and continues a sentence that begins
            with where the text stands.
    """
    if _REFERENCE.fullmatch(reference) and ".py:" not in reference:
        return
    meant = reference.strip().removesuffix("()").replace(".py:", ":").replace("/", ".").replace("\\", ".")
    meant = meant.replace(": ", ":").lstrip(".")
    if ":" not in meant and "." in meant:
        meant = ":".join(meant.rsplit(".", 1))
    hint = f"; write {meant}" if _REFERENCE.fullmatch(meant) else ""
    raise SpecError(f'must be "module:function", but is the text {reference!r}{hint}')


def load(reference: str, folder: Path | None = None) -> object:
    """Import what "module:function" names.

    What a module prints while it is imported goes to standard error.

    Args:
        reference: Module and function, or another attribute of the module.
        folder: Where the module is looked for before `sys.path`.

    Raises:
        SpecError: There is no such module or attribute, or importing it fails.
    """
    check_reference(reference)
    name, _, attribute = reference.partition(":")
    found: object = _module(name, folder)
    for step in attribute.split("."):
        try:
            found = getattr(found, step)
        except AttributeError:
            place = f"module {name}" if isinstance(found, ModuleType) else f"{name}:{attribute}"
            raise SpecError(
                f"names {reference!r}, but {place} has no {step!r}"
                + suggestion(step, (known for known in dir(found) if not known.startswith("_")))
            ) from None
        except Exception as error:  # a module's or an object's own __getattr__
            raise SpecError(f"names {reference!r}, and looking up {step!r} fails{_said(error)}") from error
    return found


def _module(name: str, folder: Path | None) -> ModuleType:
    with _IMPORTING, contextlib.redirect_stdout(sys.stderr):
        try:
            if folder and _stands_in(folder, name) and not _is_importable_from(folder, name):
                with _importable(folder):
                    return _load_beside(folder, name)
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(f"{error.name}.")):
                places = f"in {folder} nor on" if folder else "on"
                raise SpecError(
                    f"names the module {name!r}, which is {'neither ' if folder else 'not '}{places} Python's"
                    f" search path; is there a file {name.replace('.', '/')}.py?"
                ) from None
            raise _failed(name, error) from error
        except SystemExit as error:
            raise SpecError(
                f"names the module {name!r}, which ends the program when it is imported (SystemExit"
                f" {error.code!r}{_place(error)}); put what runs it as a program under"
                ' `if __name__ == "__main__":`'
            ) from error
        except Exception as error:
            raise _failed(name, error) from error


def _failed(name: str, error: Exception) -> SpecError:
    return SpecError(f"names the module {name!r}, which fails to import{_said(error)}")


def _said(error: Exception) -> str:
    return f" with {type(error).__name__}{f': {error}' if str(error) else ''}{_place(error)}"


def _place(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return ""  # its own text names file and line
    machinery = (__file__, importlib.__file__)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in machinery and not frame.filename.startswith("<frozen ")
    ]
    return f" (line {frames[-1].lineno} of {frames[-1].filename})" if frames else ""


def _files(folder: Path, name: str) -> tuple[Path, Path]:
    """Where a module of that name would stand in `folder`, as a file or as a package."""
    *parents, last = name.split(".")
    inner = folder.joinpath(*parents)
    return inner / f"{last}.py", inner / last / "__init__.py"


def _stands_in(folder: Path, name: str) -> bool:
    return any(file.is_file() for file in _files(folder, name))


def _is_importable_from(folder: Path, name: str) -> bool:
    """Whether an ordinary import finds the very module of this folder; then a second copy would be wrong."""
    top = name.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    if spec is None or spec.origin is None:
        return False
    return Path(spec.origin).resolve() in [file.resolve() for file in _files(folder, top)]


def _load_beside(folder: Path, name: str) -> ModuleType:
    top, _, rest = name.partition(".")
    own_name = f"arq_graph_agent_{sha256(str(folder).encode()).hexdigest()[:12]}_{top}"
    if own_name not in sys.modules:
        spec = _spec(own_name, folder, top)
        module = importlib.util.module_from_spec(spec)
        sys.modules[own_name] = module
        try:
            if spec.loader:
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[own_name]
            raise
    return importlib.import_module(f"{own_name}.{rest}" if rest else own_name)


def _spec(own_name: str, folder: Path, top: str) -> ModuleSpec:
    """How to load a module, a package, or a folder without `__init__.py`."""
    module, package = _files(folder, top)
    inside = [str(package.parent)]
    if package.is_file():
        spec = importlib.util.spec_from_file_location(own_name, package, submodule_search_locations=inside)
    elif module.is_file():
        spec = importlib.util.spec_from_file_location(own_name, module)
    else:
        spec = ModuleSpec(own_name, None, is_package=True)
        spec.submodule_search_locations = inside
    if spec is None:
        raise ImportError(f"cannot load {folder / top}")
    return spec


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
            if file and Path(file) in _files(folder, name):
                own[name] = sys.modules[name]
