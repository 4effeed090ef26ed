"""A user that a model plays, through a blueprint; code holds it to its kind and to its bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.agenda import AgendaUser
from arq_graph.milestones.users.kinds import is_kept_back, leaks, let_out, misheard, without_numbers
from arq_graph.milestones.users.spec import Deviation, Intent, User, UserSpec, persona_of
from arq_graph.models.offline.model import is_offline
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify
from arq_graph.reasoning.reasoner import ModelLike, make_reasoner
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "simulated_user.md"
TEMPERATURE = 0.7
LONGEST_MESSAGE = 2_000
MESSAGES_SHOWN = 20
_EXIT = re.compile(r"""["'`*\s]*exit[."'`*!\s]*""", re.IGNORECASE)
_NAME_OF_USER = re.compile(r"^\s*[\[(]?(?:user|customer|me|you)[\])]?\s*:\s*", re.IGNORECASE)
_HOW: dict[Deviation, str] = {
    "off_topic": "say something off the topic first, or only that; come back to it in your next message",
    "incorrect": "give one of the values asked for wrongly, by mistake; if none is asked for, ignore this",
    "partial": "leave out a part of what is asked for; if nothing is asked for, ignore this",
}


class UserSpeaking(ARQ):
    """Say what the user says next."""

    what_the_agent_asked: list[str] = reinstate(
        "Each thing that the agent's last message asks, offers or reports, in a few words.", max_length=8
    )
    what_the_agent_got_wrong: str | None = query(
        "What in it is not what you want or said before? null if nothing."
    )
    what_is_open: list[str] = query(
        "Which of your wishes have not been dealt with, those included that you have not spoken of yet?",
        max_length=20,
    )
    what_i_know_of_it: list[str] = query(
        "For each thing that was asked: what of `known` or `wishes` answers it, word for word? Or `unknown`.",
        max_length=8,
    )
    what_i_may_say: list[str] = query(
        "What is said of each now, as the rules and `now` have it?", max_length=8
    )
    message: str = respond("The one message that you send now; `Exit.` if `finished`.")
    finished: bool = respond(
        "Have all wishes been dealt with or given up and leave been taken, so that you say nothing more?"
    )
    one_message_of_the_user: bool = verify(
        "Is it a single message of the user, in the first person, without names of speakers, and not one that the "
        "agent would write?",
        must_be=True,
    )
    tells_what_is_not_known: bool = verify(
        "Does the message claim a fact about you or your wishes that stands nowhere in `wishes` or `known`, and that "
        "neither the rules nor `now` ask you to make up?",
        must_be=False,
    )


class SimulatedUser:
    """A simulated user that a model plays (Pre-Act, 4.3; ReSpAct, 3.4, B.1 and E.4).

    The prompt's head is the same for all turns. A perturbed user's model is told no number and no identifier, and an
    unhelpful one's nothing of what the user would know. A message that says such a thing all the same is asked for
    again, and code takes out what is still there. Which turns deviate is drawn by code from the seed; errors of
    speech recognition are made by code.

    An object is one conversation: make another for the next.

    Args:
        spec: Who it is.
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        seed: What chance depends on, apart from the model's own.

    Raises:
        InputError: The model is none.
    """

    def __init__(self, spec: UserSpec, model: ModelLike, *, seed: int) -> None:
        self.spec = spec
        self.reasoner = make_reasoner(model, "user", TEMPERATURE)
        self._template = PromptTemplate(PROMPT, PROMPT.parent)
        self._seed = seed
        kept_back = filter(is_kept_back, spec.facts if spec.kind == "perturbed" else ())
        self._not_at_hand = {(each.name, each.value) for each in kept_back}
        self._head = self._template.render("head", self._shown_to_model())
        self._turn = 0

    async def aspeak(self, said: Sequence[Message]) -> str | None:
        """What the user says next; see `User`.

        Raises:
            ReasoningError: The model gave no answer.
        """
        self._turn += 1
        deviation = self.spec.deviation(self._seed, self._turn)
        now: dict[str, Any] = {"message_number": self._turn}
        if deviation in _HOW:
            now["this_time"] = _HOW[deviation]
        # Keep the end of the conversation, and the end of long messages.
        shown = [
            {"from": "you" if each.speaker == "user" else "agent", "text": each.text[-LONGEST_MESSAGE:]}
            for each in said[-MESSAGES_SHOWN:]
            if each.speaker != "system"
        ]
        tail = self._template.render("tail", {"talk": shown, "now": now, "opening": not shown})
        prompt = [SystemMessage(self._head), HumanMessage(tail)]
        answer = await self.reasoner.aask(UserSpeaking, prompt, check=self._complaints)
        message = _said(answer.value)
        if answer.value.finished or _EXIT.fullmatch(message):
            return None
        if leaks(message, self.spec.kind, self.spec.facts):
            message = self._allowed(message)
        if message and deviation == "asr":
            message = misheard(message, Random(f"{self._seed}/asr/{self._turn}"))
        return message or None

    def _shown_to_model(self) -> dict[str, Any]:
        spec, persona = self.spec, persona_of(self.spec.persona)
        told = {"request"} if spec.kind == "unhelpful" else set(Intent.model_fields) - {"done_when"}
        return {
            "role": spec.role,
            "kind": spec.kind,
            "patience": spec.patience,
            "persona": {"description": persona.description, "is_after": list(persona.challenges)},
            "challenging": bool(persona.challenges),
            "wishes": [
                self._allowed(intent.model_dump(include=told, exclude_defaults=True))
                for intent in spec.intents
            ],
            "known": self._allowed(spec.knowledge),
            "closing": self._allowed(spec.closing),
        }

    def _allowed(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {key: self._allowed(each, key) for key, each in value.items()}
        if isinstance(value, tuple):
            return [self._allowed(each) for each in value]
        if (name, value) in self._not_at_hand:
            is_guide = self.spec.role == "guide"
            return (without_numbers(value) if is_guide else "") or "not at hand"
        return (
            let_out(value, self.spec.kind, self.spec.facts, self._seed) if isinstance(value, str) else value
        )

    def _complaints(self, answer: UserSpeaking) -> list[Complaint]:
        message, wrong = _said(answer), ""
        if not message and not answer.finished:
            wrong = "it is empty: say something, or set `finished`"
        elif leaks(message, self.spec.kind, self.spec.facts):
            wrong = (
                "it says a number or an identifier, which you do not have at hand: say it without"
                if self.spec.kind == "perturbed"
                else "it says a true value, which you do not know: say another, or none"
            )
        return [Complaint("UserSpeaking", "message", wrong)] if wrong else []


def make_user(spec: UserSpec, *, seed: int, model: ModelLike | None = None) -> User:
    """A user for one conversation: an `AgendaUser`, or a `SimulatedUser` where there is a model to play it.

    The offline model plays nobody: the agenda is the stand-in for a user.
    """
    if model is None or is_offline(model):
        return AgendaUser(spec, seed=seed)
    return SimulatedUser(spec, model, seed=seed)


def _said(answer: UserSpeaking) -> str:
    return _NAME_OF_USER.sub("", answer.message).strip()[:LONGEST_MESSAGE]
