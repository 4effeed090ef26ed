"""Whether two calls ask the same: a typed comparison of their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from arq_graph.milestones.transcript import Call
from arq_graph.milestones.values import same_value


def same_calls(truth: Sequence[Call], predicted: Sequence[Call]) -> bool | None:
    """Whether calls pair up one to one, by tool and arguments (`values.same_value`), in any order.

    It is the full parameter match of Pre-Act, 4.2. A schema's default is not filled in: leaving an argument out is
    not the same as giving its default.

    Returns:
        None where a true call is malformed: there is nothing to compare with. A malformed call that is
        predicted matches nothing.
    """
    if any(call.malformed is not None for call in truth):
        return None
    left = [call for call in predicted if call.malformed is None]
    if len(left) != len(truth) or len(left) != len(predicted):
        return False
    for call in truth:
        # Sameness is an equivalence, so the first that fits is as good as any.
        fitting = next(
            (
                index
                for index, other in enumerate(left)
                if other.tool == call.tool and same_value(call.arguments, other.arguments)
            ),
            None,
        )
        if fitting is None:
            return False
        del left[fitting]
    return True
