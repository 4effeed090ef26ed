"""A user that a model plays, through a blueprint; code makes sure that it says what its kind of user may say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from langchain_core.messages import HumanMessage, SystemMessage

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.agenda import AgendaUser
from arq_graph.milestones.users.disclosure import (
    is_disclosing,
    redact,
    select_withheld_facts,
    simulate_speech_recognition,
    strip_numbers,
)
from arq_graph.milestones.users.user_spec import Deviation, Intent, User, UserSpec, find_persona
from arq_graph.models.resolve import is_offline
from arq_graph.reasoning.answer import Complaint
from arq_graph.reasoning.blueprint import ARQ, query, reinstate, respond, verify
from arq_graph.reasoning.reasoner import ModelLike, make_reasoner
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "simulated_user.md"
TEMPERATURE = 0.7
MAX_MESSAGE_CHARACTERS = 2_000
MAX_MESSAGES = 20
_EXIT = re.compile(r"""["'`*\s]*exit[."'`*!\s]*""", re.IGNORECASE)
_SPEAKER_LABEL = re.compile(r"^\s*[\[(]?(?:user|customer|me|you)[\])]?\s*:\s*", re.IGNORECASE)
_INSTRUCTIONS: dict[Deviation, str] = {
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

    An object is one conversation: make another for the next. `model` is a chat model, a model string such as
    `openai:gpt-4o`, or a `Reasoner` set up by you (else an InputError is raised); `seed` is that of all random choices
    but the model's own.
    """

    def __init__(self, spec: UserSpec, model: ModelLike, *, seed: int) -> None:
        self.spec = spec
        self.reasoner = make_reasoner(model, "user", TEMPERATURE)
        self._template = PromptTemplate(PROMPT, PROMPT.parent)
        self._seed = seed
        self._withheld_facts = {(fact.name, fact.value) for fact in select_withheld_facts(spec)}
        self._head = self._template.render("head", self._describe_user())
        self._turn = 0

    async def aspeak(self, messages: Sequence[Message]) -> str | None:
        """Return what the user says next; see `User`. If the model gave no answer, a ReasoningError is raised."""
        self._turn += 1
        deviation = self.spec.draw_deviation(self._seed, self._turn)
        prompt = self._build_prompt(messages, deviation)
        answer = await self.reasoner.aask(UserSpeaking, prompt, check=self._check)
        text = _clean_message(answer.value)
        if answer.value.finished or _EXIT.fullmatch(text):
            return None
        if is_disclosing(text, self.spec):
            text = self._redact(text)
        if text and deviation == "asr":
            text = simulate_speech_recognition(text, Random(f"{self._seed}/asr/{self._turn}"))
        return text or None

    def _build_prompt(
        self, messages: Sequence[Message], deviation: Deviation | None
    ) -> list[SystemMessage | HumanMessage]:
        now: dict[str, Any] = {"message_number": self._turn}
        if deviation in _INSTRUCTIONS:
            now["this_time"] = _INSTRUCTIONS[deviation]
        speakers = {"user": "you", "agent": "agent"}
        talk = []
        for message in messages[-MAX_MESSAGES:]:
            if message.speaker in speakers:
                # The end of a long message says what it asks for.
                text = message.text[-MAX_MESSAGE_CHARACTERS:]
                talk.append({"from": speakers[message.speaker], "text": text})
        tail = self._template.render("tail", {"talk": talk, "now": now, "opening": not talk})
        return [SystemMessage(self._head), HumanMessage(tail)]

    def _describe_user(self) -> dict[str, Any]:
        """Return the values of the prompt's head, without what this kind of user may not say."""
        spec, persona = self.spec, find_persona(self.spec.persona)
        intent_fields = {"request"}
        if spec.kind != "unhelpful":
            intent_fields = set(Intent.model_fields) - {"done_when"}
        wishes = []
        for intent in spec.intents:
            wishes.append(self._redact_tree(intent.model_dump(include=intent_fields, exclude_defaults=True)))
        return {
            "role": spec.role,
            "kind": spec.kind,
            "patience": spec.patience,
            "persona": {"description": persona.description, "is_after": list(persona.challenges)},
            "challenging": bool(persona.challenges),
            "wishes": wishes,
            "known": self._redact_tree(spec.knowledge),
            "closing": self._redact(spec.closing),
        }

    def _redact_tree(self, value: Any, name: str = "") -> Any:
        if isinstance(value, Mapping):
            return {key: self._redact_tree(inner, key) for key, inner in value.items()}
        if isinstance(value, tuple):
            return [self._redact_tree(inner) for inner in value]
        if self.spec.kind == "perturbed" and (name, value) in self._withheld_facts:
            hint = strip_numbers(value) if self.spec.role == "guide" else ""
            return hint or "not at hand"
        return self._redact(value) if isinstance(value, str) else value

    def _redact(self, text: str) -> str:
        return redact(text, self.spec, self._seed)

    def _check(self, answer: UserSpeaking) -> list[Complaint]:
        message = _clean_message(answer)
        if not message and not answer.finished:
            problem = "it is empty: say something, or set `finished`"
        elif not is_disclosing(message, self.spec):
            return []
        elif self.spec.kind == "perturbed":
            problem = "it says a number or an identifier, which you do not have at hand: say it without"
        else:
            problem = "it says a true value, which you do not know: say another, or none"
        return [Complaint("UserSpeaking", "message", problem)]


def make_user(spec: UserSpec, *, seed: int, model: ModelLike | None = None) -> User:
    """Return a user for one conversation: a `SimulatedUser` if there is a model to play it, else an `AgendaUser`.

    The offline model plays nobody: the agenda takes its place.
    """
    if model is None or is_offline(model):
        return AgendaUser(spec, seed=seed)
    return SimulatedUser(spec, model, seed=seed)


def _clean_message(answer: UserSpeaking) -> str:
    return _SPEAKER_LABEL.sub("", answer.message).strip()[:MAX_MESSAGE_CHARACTERS]
