"""Work in other processes, on this machine or on others, through any `concurrent.futures.Executor`."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from pickle import loads
from pkgutil import resolve_name
from typing import Any

from langchain_core.language_models import BaseChatModel

from arq_graph.agent import modules
from arq_graph.errors import InputError
from arq_graph.milestones.evaluation.conversation import is_graph
from arq_graph.milestones.event_loop import run_in_background

Job = tuple[bytes, tuple[Path, ...]]
"""An async function as it is sent, with all that it refers to, and the folders whose modules that needs."""


def packed(function: Callable[..., Coroutine[Any, Any, Any]], parts: Mapping[str, object]) -> Job:
    """Make an async function ready to be sent.

    What was named as "module:function" is sent by its name, and imported again there. A chat model that cannot be sent,
    because of its connections, is made again of its settings.

    Args:
        function: The function.
        parts: What it refers to, by names that a message can show.

    Raises:
        InputError: cloudpickle is not installed, or a part cannot be sent; the message says which.
    """
    try:
        return _pickled(function), modules.get_import_folders()
    except InputError:
        raise  # cloudpickle is not installed
    except Exception as error:
        for name, part in parts.items():
            try:
                _pickled(part)
            except Exception as wrong:
                raise InputError(
                    f"{name} cannot be sent to other processes ({type(wrong).__name__}: {wrong}): name it as a "
                    "string, or give a function that makes it, in a module that they can import"
                ) from error
        raise


def call(job: Job, *arguments: Any) -> Any:
    """Call the function in this process and give what it gives; a process reads a job once."""
    try:
        function = _unpacked(job)
    except Exception as error:
        raise InputError(
            f"a worker cannot read what it was sent ({type(error).__name__}: {error}): its Python must be of the same "
            "version and have the same packages, and modules beside a file must stand in the same place there"
        ) from error
    return run_in_background(function(*arguments))


@contextmanager
def processes() -> Iterator[Callable[[], Executor]]:
    """Inside the block, what begins a process: an executor with one worker, which costs its own work alone if it dies.

    All of them end at once with the block, and when the process that made them is gone.
    """
    context = get_context("spawn")  # a fork would have this one's threads and connections
    end, line = context.Pipe(duplex=False)
    with line:
        yield lambda: ProcessPoolExecutor(1, context, _begin, (end,))


def _begin(end: Connection) -> None:
    """Start a worker process: it ignores Ctrl-C, which its parent handles, and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def leave() -> None:
        end.poll(None)  # nothing is ever sent
        os._exit(0)

    threading.Thread(target=leave, daemon=True).start()


def _pickled(thing: object) -> bytes:
    try:
        import cloudpickle
    except ImportError as error:
        raise InputError(
            'evaluating in other processes needs cloudpickle: pip install "arq_graph[cluster]"'
        ) from error

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if (named := modules.find_reference(obj)) is not None:
                return modules.load, named
            if is_graph(obj):
                return resolve_name, (_place_of(obj),)
            if isinstance(obj, BaseChatModel):
                try:
                    cloudpickle.dumps(obj)
                except Exception:  # a client's lock, a socket, …
                    fields = type(obj).model_fields
                    given = [
                        name for name in obj.model_fields_set & fields.keys() if not fields[name].exclude
                    ]
                    made_again = partial(type(obj), **{name: getattr(obj, name) for name in given})
                    with suppress(Exception):  # what cannot be made of them is told as it is
                        made_again()
                        return made_again, ()
            return super().reducer_override(obj)

    stream = io.BytesIO()
    Pickler(stream).dump(thing)
    return stream.getvalue()


def _place_of(graph: object) -> str:
    """Where a compiled graph of LangGraph's is imported from, as "module:name".

    LangGraph compares some of what a graph holds by identity: a copy would not run.
    """
    for module, its in sys.modules.copy().items():  # copies: other threads import, too
        for name, value in getattr(its, "__dict__", {}).copy().items():
            if value is graph and module != "__main__":
                return f"{module}:{name}"
    raise TypeError("a compiled graph that is no variable of a module has no name to import it by")


@lru_cache(maxsize=2)
def _unpacked(job: Job) -> Callable[..., Coroutine[Any, Any, Any]]:
    function, folders = job
    with modules.allow_imports_from(folders):
        found: Callable[..., Coroutine[Any, Any, Any]] = loads(function)
    return found
