"""What an utterance does: the six categories of reports, and the acts that speech can be limited to (ReSpAct).

The categories are those of the paper's Table 5. They limit nothing: an utterance is written first and labelled after.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from arq_graph.agent.state import SpeechCategory
from arq_graph.errors import InputError

HOUSEHOLD_ACTS: Mapping[str, str] = MappingProxyType(
    {
        "ReqForInstruction": "ask what is to be done next",
        "RequestOtherInfo": "ask for a detail of the task that is no place and no state of a thing",
        "InfoObjectLocAndOD": "tell where a thing is, or how it looks or stands",
        "ReqForObjLocAndOD": "ask where a thing is, or how it looks or stands",
        "InformationOther": "tell anything else that helps",
        "AlternateQuestions": "ask which of several things or ways is meant, and name them",
        "Affirm": "say yes",
        "Deny": "say no",
        "OtherInterfaceComment": "remark on how things can be handled here, or on where one stands",
        "NotifyFailure": "say that something did not work",
    }
)
"""The acts of a household helper: names of Gella et al. (2022), as in ReSpAct's Appendix E.3."""

PRESETS: Mapping[str, Mapping[str, str]] = MappingProxyType({"household": HOUSEHOLD_ACTS})

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def categorise(
    *,
    asks: bool,
    mentions_failure: bool = False,
    closes: bool = False,
    states_belief: bool = False,
    offers_choice: bool = False,
) -> SpeechCategory:
    """The category of an utterance; where several fit, the first of this order (ReSpAct, Table 5).

    Args:
        asks: It asks something.
        mentions_failure: It says that something failed or is not to be had.
        closes: It follows on a task that is done: it offers more help, or takes leave.
        states_belief: It says what it takes to be so, or likely.
        offers_choice: It asks to choose between things that are at hand in the current state.
    """
    if mentions_failure:
        return "alternative_suggestion"
    if closes:
        return "follow_up"
    if not asks and not states_belief:
        return "status_update"
    if states_belief:
        return "assumption_verification"
    return "clarification_request" if offers_choice else "probing_question"


def dialogue_acts_of(given: str | Mapping[str, str] | None) -> Mapping[str, str]:
    """The acts that speech is limited to; none where it is free.

    Args:
        given: The name of a preset (`household`), descriptions by name, or None.

    Raises:
        InputError: There is no such preset, or a name cannot be a key of an answer.
    """
    if given is None:
        return {}
    if isinstance(given, str):
        if given not in PRESETS:
            raise InputError(
                f"dialogue_acts is {given!r}: the preset is 'household'; else give a mapping of names to descriptions"
            )
        return PRESETS[given]
    if not isinstance(given, Mapping) or not given:
        raise InputError("dialogue_acts must be 'household', or a mapping of names to descriptions")
    for name, description in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InputError(
                f"dialogue_acts: {name!r} must be 1 to 64 letters, digits, - or _, a letter first"
            )
        if not isinstance(description, str) or not description.strip():
            raise InputError(f"dialogue_acts: say in words what {name!r} does")
    return dict(given)
