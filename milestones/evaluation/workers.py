"""Run an async function in workers: processes here or on other machines, behind `concurrent.futures.Executor`s."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from pickle import dumps, loads
from pkgutil import resolve_name
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langgraph.pregel import Pregel

from arq_graph.agent import modules
from arq_graph.errors import ArqGraphError, InputError, describe_error
from arq_graph.milestones.event_loop import is_cancelled_from_outside, run_in_background

Job = tuple[bytes, tuple[Path, ...]]
"""A pickled async function with all that it refers to, and the folders from which it imports modules."""

_MAX_DEATHS = 3
"""The run ends after so many workers have died in a row."""


class WorkerDiedError(Exception):
    """A worker ended before it returned a result."""


class JobFailedError(Exception):
    """The function raised an error in a worker, or returned something that can't be pickled."""


class WorkerPool:
    """Workers that call the same function, each one call at a time.

    A worker that dies is replaced; those of a shared executor are replaced by it, or it is broken for good.

    Args:
        make_executor: Returns the executor of one worker, from `prepare_executors`.
        size: The number of workers.
        job: The function, from `pickle_job`.
    """

    def __init__(self, make_executor: Callable[[], Executor], size: int, job: Job) -> None:
        self.size = size
        self.stop_reason: str | None = None
        self._make_executor = make_executor
        self._job = job
        # One entry for each idle worker; a shared executor is entered once for each of its workers.
        self._idle_slots = [make_executor() for _ in range(size)]
        self._deaths_in_a_row = 0

    async def call(self, argument: Any) -> Any:
        """Call the function in an idle worker, and return its result. At most `size` calls may run at the same time.

        Raises:
            WorkerDiedError: The worker died. If the shared executor is broken, or after `_MAX_DEATHS` in a row,
                `stop_reason` says so.
            ArqGraphError: No worker could run the function.
            JobFailedError: The function failed.
        """
        executor = self._idle_slots.pop()
        call_id = uuid4().hex  # else Dask would run equal calls only once
        try:
            pickled = await asyncio.wrap_future(executor.submit(call_job, self._job, argument, call_id))
        except (ArqGraphError, JobFailedError):
            raise  # this ends the run, as a cancellation does, so the slot isn't returned
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled_from_outside(error):
                raise
            self._replace_worker(executor, error)
            raise WorkerDiedError(describe_error(error)) from error
        self._idle_slots.append(executor)
        self._deaths_in_a_row = 0
        return loads(pickled)

    def _replace_worker(self, executor: Executor, error: BaseException) -> None:
        reason = describe_error(error)
        new_executor = self._make_executor()
        self._idle_slots.append(new_executor)
        if new_executor is executor and isinstance(error, BrokenExecutor):
            self.stop_reason = f"the executor is broken, so pass another one, and resume: {reason}"
            return
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _MAX_DEATHS:
            self.stop_reason = f"workers died {self._deaths_in_a_row} times in a row, the last with {reason}"


@contextmanager
def prepare_executors(shared_executor: Executor | None) -> Iterator[Callable[[], Executor]]:
    """Yield a function that returns the executor of one worker: the shared one, which was passed to `evaluate`.

    Without a shared executor, the function makes one with a single process each time it is called: if that process
    dies, no other work is lost. These processes end with the block, and with the process that started them.
    """
    if shared_executor is not None:
        yield lambda: shared_executor
        return
    context = get_context("spawn")  # a fork would have the threads and connections of this process
    worker_pipe, parent_pipe = context.Pipe(duplex=False)
    # Closing `parent_pipe`, or the death of this process, wakes `exit_with_parent` in each worker.
    with parent_pipe:
        yield lambda: ProcessPoolExecutor(1, context, _prepare_process, (worker_pipe,))


def pickle_job(function: Callable[..., Coroutine[Any, Any, Any]], parts: Mapping[str, object]) -> Job:
    """Pickle an async function for workers.

    An object that was loaded as "module:name" is sent by its name, and imported in the worker. For a chat model that
    can't be pickled, because it has connections, its settings are sent, and the worker makes it anew.

    Args:
        function: The function.
        parts: The objects that it refers to, by the names that errors show.

    Raises:
        InputError: cloudpickle isn't installed, or one of the parts can't be pickled.
    """
    try:
        return _pickle(function), modules.get_import_folders()
    except InputError:
        raise  # cloudpickle isn't installed
    except Exception as error:
        for name, part in parts.items():
            _require_picklable(name, part, error)
        raise


def call_job(job: Job, argument: Any, _call_id: str) -> bytes:
    """Call a job in this process and return its pickled result; a process unpickles a job once.

    No other errors than these come out of it, so that any other one of its future is that of the executor.

    Raises:
        ArqGraphError: The job can't be unpickled, or raised such an error.
        JobFailedError: It raised another error, or its result can't be pickled.
    """
    try:
        function = _unpickle(job)
    except Exception as error:
        raise InputError(
            f"a worker cannot unpickle what it was sent ({type(error).__name__}: {error}): it needs the same version "
            "of Python, the same packages, and modules beside a file at the same paths"
        ) from error
    try:
        return dumps(run_in_background(function(argument)))
    except ArqGraphError:
        raise
    except Exception as error:
        raise JobFailedError(f"a worker failed with {describe_error(error)}") from error


def _prepare_process(worker_pipe: Connection) -> None:
    """Let a worker process ignore Ctrl-C, which its parent handles, and end with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # LangChain would log that a conversation's limit of calls was reached; the report says so.
    logging.getLogger("langchain_core.callbacks.manager").setLevel(logging.ERROR)

    def exit_with_parent() -> None:
        worker_pipe.poll(None)  # blocks until the pipe is closed, because nothing is ever sent
        os._exit(0)

    threading.Thread(target=exit_with_parent, daemon=True).start()


def _require_picklable(name: str, part: object, cause: Exception) -> None:
    try:
        _pickle(part)
    except Exception as error:
        raise InputError(
            f"{name} cannot be sent to other processes ({type(error).__name__}: {error}): name it as a string, or "
            "pass a function that makes it, in a module that they can import"
        ) from cause


def _pickle(value: object) -> bytes:
    try:
        import cloudpickle
    except ImportError as error:
        raise InputError(
            'evaluating in other processes needs cloudpickle: pip install "arq_graph[cluster]"'
        ) from error

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            reference = modules.find_reference(value)
            if reference is not None:
                return modules.load_object, reference
            if isinstance(value, Pregel):
                return resolve_name, (_find_import_name(value),)
            if isinstance(value, BaseChatModel):
                make_model = _make_factory_if_unpicklable(value, cloudpickle.dumps)
                if make_model is not None:
                    return make_model, ()
            return super().reducer_override(value)

    stream = io.BytesIO()
    Pickler(stream).dump(value)
    return stream.getvalue()


def _make_factory_if_unpicklable(
    model: BaseChatModel, dump: Callable[[object], bytes]
) -> Callable[[], BaseChatModel] | None:
    """Return a function that makes a model anew from its settings, if `dump` can't pickle it.

    None if it can be pickled, or if it can't be made anew, either: then the caller's pickling raises the error.
    """
    try:
        dump(model)
    except Exception:  # because of a client's lock, a socket, …
        make_model = _make_model_factory(model)
    else:
        return None
    try:
        make_model()
    except Exception:
        return None
    return make_model


def _make_model_factory(model: BaseChatModel) -> Callable[[], BaseChatModel]:
    settings = {}
    for name, field in type(model).model_fields.items():
        if name in model.model_fields_set and not field.exclude:
            settings[name] = getattr(model, name)
    return partial(type(model), **settings)


def _find_import_name(graph: object) -> str:
    """Return the "module:name" from which a compiled LangGraph graph is imported.

    A copy would not run: LangGraph compares some values in a graph by identity.
    """
    for module_name, module in sys.modules.copy().items():  # copies, because other threads import, too
        for name, value in getattr(module, "__dict__", {}).copy().items():
            if value is graph and module_name != "__main__":
                return f"{module_name}:{name}"
    raise TypeError("a compiled graph that isn't a variable of a module has no name to import it by")


@lru_cache(maxsize=2)
def _unpickle(job: Job) -> Callable[..., Coroutine[Any, Any, Any]]:
    pickled, folders = job
    with modules.allow_imports_from(folders):
        function: Callable[..., Coroutine[Any, Any, Any]] = loads(pickled)
    return function
