"""Options that are given to a whole agent and belong to one of its parts: refused, with the place for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature

from arq_graph.errors import InputError, suggestion
from arq_graph.nodes.guideline_matcher import GuidelineMatcher
from arq_graph.nodes.message_reviser import MessageReviser
from arq_graph.reasoning.reasoner import Reasoner

Makes = Callable[..., object]
_PARTS: dict[str, Makes] = {
    "matcher=GuidelineMatcher(model, agent, …)": GuidelineMatcher,
    "reviser=MessageReviser(model, agent, …)": MessageReviser,
    "model=Reasoner(model, …)": Reasoner,
}


def refuse_options(
    given: Iterable[str], create: Makes, further: Iterable[str] = (), strategy: type | None = None
) -> None:
    """Refuse options that there are not.

    Args:
        given: Names of options.
        create: What they were given to.
        further: Options that it takes besides its parameters.
        strategy: The settings of its strategy.

    Raises:
        InputError: There is no option of a name: how to give it, or what it may be a slip of.
    """
    own = signature(create).parameters
    known = [*(name for name, each in own.items() if each.default is not each.empty), *further]
    parts = dict(_PARTS)
    if strategy is not None:
        parts[f"strategy={strategy.__name__}(…)"] = strategy
    for option in given:
        if option in known:
            continue
        for place, part in parts.items():
            if option in signature(part).parameters:
                way = place.replace("…", f"{option}=…")
                whom = "" if place.partition("=")[0] in own else " to create_guided_agent"
                raise InputError(f"there is no option {option!r} here: give {way}{whom}")
        near, others = suggestion(option, known), ", ".join(known)
        raise InputError(f"there is no option {option!r} here{near}; there are {others}")
