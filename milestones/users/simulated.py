"""A user that a model plays, through a blueprint; code holds it to its kind and to its bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig

from arq_graph.milestones.transcript import Message
from arq_graph.milestones.users.blueprint import IgnorantUserSpeaking, UserSpeaking
from arq_graph.milestones.users.inventing import without_truth
from arq_graph.milestones.users.mishearing import misheard
from arq_graph.milestones.users.personas import persona_of
from arq_graph.milestones.users.spec import Deviation, Intent, UserSpec
from arq_graph.milestones.users.user import EXIT, UserTurn
from arq_graph.milestones.users.withholding import is_kept_back, leaked, without_identifiers
from arq_graph.reasoning.answer import Answer, Complaint
from arq_graph.reasoning.blueprint import ARQ
from arq_graph.reasoning.reasoner import Reasoner
from arq_graph.reasoning.templates import PromptTemplate

PROMPT = Path(__file__).parent.parent / "prompts" / "simulated_user.md"
TEMPERATURE = 0.7
LONGEST_MESSAGE = 4_000
SHOWN_CHARACTERS = 40_000
NOT_AT_HAND = "not at hand"
_EXIT = re.compile(r"""["'`*\s]*exit[."'`*!\s]*""", re.IGNORECASE)
_SPEAKER = re.compile(r"^\s*[\[(]?(?:user|customer|me|you)[\])]?\s*:\s*", re.IGNORECASE)
_AGENT = re.compile(
    r"^[\s\[(*_#>\"'“]*(?:the )?(?:(?:ai|support|service|customer service) )?"
    r"(?:agent|assistant|bot|chatbot|ai|system|representative)[\s\])*_]*[:：][ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_ORDER: tuple[Deviation, ...] = ("off_topic", "incorrect", "partial", "asr")
_HOW: dict[Deviation, str] = {
    "off_topic": "say something off the topic first, or only that; come back to it in your next message",
    "incorrect": "give one of the values asked for wrongly, by mistake; if none is asked for, ignore this",
    "partial": "leave out a part of what is asked for; if nothing is asked for, ignore this",
}


class SimulatedUser:
    """A simulated user that a model plays (Pre-Act, 4.3; ReSpAct, 3.4, B.1 and E.4).

    The prompt's head is the same for all turns. Of an unhelpful user the model is not told what it would know, and
    code takes out what it says of it all the same; of a perturbed one it is told no number and no identifier: where
    the agent's words lead it to say one, it is asked again, and code takes out what is still there. Which turns
    deviate is drawn by code from the seed; errors of speech recognition are made by code. One turn costs one ask
    of at most `max_attempts` + 2 answers, and there are at most `max_turns` turns.

    An object is one conversation: make another for the next.

    Args:
        spec: Who it is.
        model: A chat model, a model string such as `openai:gpt-4o`, or a `Reasoner` set up by you.
        seed: What chance depends on; the model's own is not its matter.
        template: A replacement for the shipped prompt.
        config: LangChain's configuration of the model's runs.

    Raises:
        InputError: The model is none.
        PromptError: The template cannot be read or lacks a block.
    """

    def __init__(
        self,
        spec: UserSpec,
        model: BaseChatModel | str | Reasoner,
        *,
        seed: int,
        template: str | Path | None = None,
        config: RunnableConfig | None = None,
    ) -> None:
        self.spec = spec
        self.reasoner = (
            model if isinstance(model, Reasoner) else Reasoner(model, module="user", temperature=TEMPERATURE)
        )
        self._template = PromptTemplate(template or PROMPT, PROMPT.parent, needs=("head", "tail"))
        self._seed = seed
        self._config = config
        self._facts = [
            (name, value)
            for group in (spec.knowledge, *(intent.slots for intent in spec.intents))
            for name, value in group.items()
        ]
        self._blueprint: type[ARQ] = IgnorantUserSpeaking if spec.kind == "unhelpful" else UserSpeaking
        self._head = self._template.render("head", self._values())
        self._turn = 0
        self._over = False

    def speak(self, said: Sequence[Message]) -> UserTurn:
        """What the user says next.

        Args:
            said: The messages of user and agent so far, oldest first; none of them asks for the opening.

        Raises:
            ReasoningError: The model gave no answer.
        """
        if (over := self._begin()) is not None:
            return over
        deviation = self._drawn()
        answer = self.reasoner.ask(
            self._blueprint, self._prompt(said, deviation), check=self._complaints, config=self._config
        )
        return self._turn_of(answer, deviation)

    async def aspeak(self, said: Sequence[Message]) -> UserTurn:
        """What the user says next; all is as in `speak`."""
        if (over := self._begin()) is not None:
            return over
        deviation = self._drawn()
        answer = await self.reasoner.aask(
            self._blueprint, self._prompt(said, deviation), check=self._complaints, config=self._config
        )
        return self._turn_of(answer, deviation)

    def _begin(self) -> UserTurn | None:
        self._turn += 1
        return self._exit() if self._over or self._turn > self.spec.max_turns else None

    def _exit(self) -> UserTurn:
        self._over = True
        return UserTurn(EXIT, ends=True)

    def _drawn(self) -> Deviation | None:
        """How this turn is to depart from the happy path; the opening only through the recogniser."""
        for kind in _ORDER if self._turn > 1 else ("asr",):
            chance = Random(f"{self._seed}/deviation/{kind}/{self._turn}")
            if chance.random() < self.spec.deviations.get(kind, 0.0):
                return kind
        return None

    def _values(self) -> dict[str, Any]:
        persona = persona_of(self.spec.persona)
        return {
            "role": self.spec.role,
            "kind": self.spec.kind,
            "patience": self.spec.patience,
            "persona": {"description": persona.description, "is_after": list(persona.challenges)},
            "challenging": bool(persona.challenges),
            "style": self.spec.style,
            "wishes": [self._wish(intent) for intent in self.spec.intents],
            "known": self._known(self.spec.knowledge),
            "closing": self._allowed(self.spec.closing),
        }

    def _wish(self, intent: Intent) -> dict[str, Any]:
        """An intent as the model is shown it: as much of the oracle as the kind of user has."""
        if self.spec.kind == "unhelpful":
            wish = {"request": intent.request, "fallback": intent.fallback}
            return {key: self._allowed(text) for key, text in wish.items() if text}
        shown = {"request": intent.request, **intent.model_dump(exclude={"done_when"}, exclude_defaults=True)}
        if self.spec.kind == "perturbed":
            shown = {key: self._allowed_in(value) for key, value in shown.items()}
            shown["slots"] = self._known(intent.slots)
        return shown

    def _known(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        perturbed = self.spec.kind == "perturbed"
        return {
            name: NOT_AT_HAND if perturbed and is_kept_back(name, value) else value
            for name, value in facts.items()
        }

    def _allowed_in(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {self._allowed(str(key)): self._allowed(str(text)) for key, text in value.items()}
        return self._allowed(value) if isinstance(value, str) else [self._allowed(text) for text in value]

    def _allowed(self, text: str) -> str:
        if self.spec.kind == "perturbed":
            return without_identifiers(text, self._facts)
        return without_truth(text, self.spec.values) if self.spec.kind == "unhelpful" else text

    def _prompt(self, said: Sequence[Message], deviation: Deviation | None) -> list[BaseMessage]:
        now: dict[str, Any] = {"message_number": self._turn, "of_at_most": self.spec.max_turns}
        if deviation in _HOW:
            now["this_time"] = _HOW[deviation]
        shown = _shown(said)
        tail = self._template.render("tail", {"talk": shown, "now": now, "opening": not shown})
        return [SystemMessage(self._head), HumanMessage(tail)]

    def _complaints(self, answer: ARQ) -> list[Complaint]:
        message, finished = _said(answer), bool(getattr(answer, "finished", False))
        if _AGENT.search(message):
            wrong = "there is a line of the agent in it: say what you, the user, say, without the name of a speaker"
            return [Complaint("UserSpeaking", "message", wrong)]
        if not message and not finished:
            return [Complaint("UserSpeaking", "message", "it is empty: say something, or set `finished`")]
        if self.spec.kind == "perturbed" and leaked(message, self._facts):
            wrong = "it says a number or an identifier, which you do not have at hand: say it without"
            return [Complaint("UserSpeaking", "message", wrong)]
        if self.spec.kind == "unhelpful" and leaked(message, self._facts):
            wrong = "it says a true number or identifier, which you do not know: say another, or none"
            return [Complaint("UserSpeaking", "message", wrong)]
        return []

    def _turn_of(self, answer: Answer[ARQ], deviation: Deviation | None) -> UserTurn:
        message = _said(answer.value)
        if bool(getattr(answer.value, "finished", False)) or not message or _EXIT.fullmatch(message):
            return self._exit()
        message = _of_the_user(message)
        if self.spec.kind == "unhelpful":
            message = self._allowed(message)
        if self.spec.kind != "helpful" and leaked(message, self._facts):
            message = without_identifiers(message, self._facts)
        if deviation == "asr":
            message = misheard(message, Random(f"{self._seed}/asr/{self._turn}"))
        return UserTurn(message, deviation=deviation) if message.strip() else self._exit()


def _said(answer: ARQ) -> str:
    """The message without the name of a speaker before it."""
    return _SPEAKER.sub("", str(getattr(answer, "message", ""))).strip()[:LONGEST_MESSAGE]


def _of_the_user(message: str) -> str:
    """The message as far as no line of the agent begins in it; where it begins with one, without its name."""
    begins = [match.start() for match in _AGENT.finditer(message) if message[: match.start()].strip()]
    return _AGENT.sub("", message[: min(begins, default=len(message))]).strip()


def _shown(said: Sequence[Message]) -> list[dict[str, str]]:
    """The conversation as the model reads it: the latest messages that fit, a long one without its middle."""
    shown: list[dict[str, str]] = []
    room = SHOWN_CHARACTERS
    for message in reversed([each for each in said if each.speaker != "system"]):
        text = message.text
        if len(text) > LONGEST_MESSAGE:
            text = f"{text[: LONGEST_MESSAGE // 2]} … {text[-LONGEST_MESSAGE // 2 :]}"
        room -= len(text)
        if room < 0:
            break
        shown.append({"from": "you" if message.speaker == "user" else "agent", "text": text})
    return shown[::-1]
