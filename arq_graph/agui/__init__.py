"""Front ends that speak AG-UI: a run of an app as AG-UI's events.

Nothing internal goes out unless it is asked for, because each event is made of one of the typed events that a user may
see. AG-UI's text can't be taken back, so a partial reply that is not accepted is removed by a snapshot of the messages
without it.
"""

try:
    import ag_ui  # noqa: F401
except ImportError as error:
    raise ImportError(
        'arq_graph.agui needs AG-UI\'s Python package, which is not installed: pip install "arq_graph[agui]"'
    ) from error

from arq_graph.agui.run import agui_events

__all__ = ["agui_events"]
