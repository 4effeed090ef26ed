"""What went wrong in a conversation: whose failure it is, and how it is said."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from arq_graph.errors import ArqGraphError, ModelRequestError, ModelUnavailableError
from arq_graph.reasoning.failures import read_failure


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that led to it, each once; the members of a group are among them."""
    seen: set[int] = set()
    still = [error]
    while still:
        one = still.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        still.append(one.__cause__ or one.__context__)
        if isinstance(one, BaseExceptionGroup):
            still += reversed(one.exceptions)


def is_out_of_reach(error: BaseException | None, of_models: Collection[BaseException] = ()) -> bool:
    """Whether a model or the way to it failed, which says nothing about the app: it is worth another try.

    A lost connection alone does not say so: it may be that of the app's own database.

    Args:
        error: What was raised.
        of_models: What calls of models raised, as a `UsageTracker` heard it.
    """
    heard = {id(each) for each in of_models}
    for one in causes(error):
        if isinstance(one, ModelRequestError | ModelUnavailableError):
            return True
        if isinstance(one, ArqGraphError):
            return False  # it says what it is
        if id(one) in heard and isinstance(one, Exception) and read_failure(one).from_provider:
            return True
    return False


def told(error: BaseException) -> str:
    """An error in words."""
    name, said = type(error).__name__, str(error)
    return said if isinstance(error, ArqGraphError) and said else f"{name}: {said}" if said else name
