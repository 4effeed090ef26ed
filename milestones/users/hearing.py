"""What an agent's message does: asks, offers, fails, waits, takes leave, hands over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from arq_graph.models.offline import dialogue

_LONGEST = 8_000
_MOST_SENTENCES = 60
_REQUEST = re.compile(
    r"\b(?:please|kindly)\s+(?:also\s+)?(?:provide|tell|give|share|send|enter|confirm|specify|state|let"
    r" me know|name"
    r"|supply|type|verify|describe|choose|select|pick|indicate|reply with)\b"
    r"|\b(?:i(?:'ll| will|'d| would)?|we(?:'ll| will)?)\s+(?:just |also |still |only )*(?:need|require"
    r"|ask)(?: to "
    r"(?:know|have|ask|confirm))?(?: for)?\s+(?:you to|your|the|a|an|some|which|what|to)\b"
    r"|\b(?:let me know|tell me|give me|send me)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"^\s*(?:[-*•–]|\d{1,2}[.)])\s*")
_ANYTHING_ELSE = re.compile(
    r"\b(?:anything|something|what|anybody) (?:else|more|further)\b|\bfurther (?:questions|help|assistance)\b"
    r"|\bany (?:other|more|further) (?:questions?|requests?|concerns?|help|assistance)\b|\bis that all\b"
    r"|\bhow else (?:can|may|could)\b|\bother (?:questions|requests|concerns)\b|\bassist you further\b"
    r"|\bhelp you further\b|\bwill that be all\b",
    re.IGNORECASE,
)
_HOW_TO_HELP = re.compile(
    r"\b(?:how|what) (?:can|may|could|shall) (?:i|we) (?:help|assist|do|be of)\b|\bwhat brings you\b"
    r"|\bwhat would you like(?: me)? to do\b|\bhow (?:else )?can we be of service\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:more details?|more information|elaborate|tell me more|what (?:exactly )?(?:happened|is wrong"
    r"|is the (?:problem"
    r"|issue|matter))|what do you (?:mean|need|want)|rephrase|clarify|did(?:n't| not) (?:quite"
    r" )?(?:understand|get"
    r"|catch)|describe (?:your|the) (?:problem|issue|request))\b",
    re.IGNORECASE,
)
_OFFERS_TO_TELL = re.compile(
    r"\W*(?:would you like|do you (?:want|need)|(?:shall|should|can|may) i)\b", re.IGNORECASE
)
_FAILS = re.compile(
    r"\b(?:could(?: not|n't)|can(?:not|'t| not)|(?:was|am|were|are) (?:not able|unable)|unable|not"
    r" possible|impossible)\b"
    r"|\bthere(?:'s| is| are| was| were) (?:currently |unfortunately )?(?:no|not any)\b|\bno (?:such"
    r"|results?|match\w*"
    r"|record|availab\w+)\b|\bnot (?:found|available|valid|exist|in (?:our|the|stock)|eligible|allowed"
    r"|permitted)\b"
    r"|\b(?:do|does|did)(?: not|n't) (?:find|exist|have|see|recogni[sz]e|match|offer|accept)\b"
    r"|\bis(?:n't| not) (?:valid"
    r"|available|possible|correct|in)\b|\binvalid\b|\bunavailable\b|\bfully booked\b|\bsold out\b|\bout"
    r" of stock\b"
    r"|\b(?:has|have) failed\b|\bfailed to\b|\ban error\b|\bunfortunately\b|\bdeclined\b|\brejected\b"
    r"|\bon loan\b"
    r"|\bwent wrong\b|\bi(?:'m| am) (?:very |so )?(?:afraid|sorry),? (?:but|that|we|i|there|this|it|no)\b",
    re.IGNORECASE,
)
_GOODBYE = re.compile(
    r"\b(?:good ?bye|bye(?: bye)?|farewell|(?:this|the|our) (?:conversation|chat|case|call) (?:is|has"
    r" been|was) "
    r"(?:now )?(?:closed|ended|over|finished))\b",
    re.IGNORECASE,
)
_WISHES_WELL = re.compile(
    r"\b(?:have an? (?:\w+ )?(?:day|evening|weekend|night|one)|take care|see you)\b", re.IGNORECASE
)
_HANDS_OVER = re.compile(
    r"\b(?:transferr?(?:ing|ed)?|connect(?:ing|ed)?|pass(?:ing|ed)?|hand(?:ing|ed)?|escalat(?:e|ing|ed)"
    r"|forward(?:ing"
    r"|ed)?|rout(?:ing|ed)|put(?:ting)?)\b[^.!?]{0,60}\b(?:human|agents?|representative|colleague"
    r"|specialist|supervisor"
    r"|manager|operator|person|someone|staff|support team|member of)\b"
    r"|\b(?:colleague|human agent|representative|specialist|member of our (?:team|staff)) (?:will|is"
    r" going to) (?:take "
    r"over|contact|be (?:with|in touch)|call|get back|reach|help|join)\b",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"\b(?:one|a|just a) (?:moment|second|minute|sec)\b|\bplease (?:wait|hold|bear with)\b|\blet me"
    r" (?:check|look|see|find"
    r"|verify|pull|get)\b|\bi(?:'ll| will) (?:check|look|be right back|get (?:right )?(?:on|back)|see what)\b"
    r"|\bi(?:'m| am) (?:checking|looking)\b|\b(?:can|will|would be (?:happy|glad) to|(?:am|'m) (?:happy"
    r"|glad|here) to) "
    r"(?:certainly |gladly |definitely )?(?:help|assist)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:done|completed?|confirmed|successful(?:ly)?|all set|booked|cancell?ed|reserved|scheduled"
    r"|rescheduled|renewed"
    r"|extended|refunded|updated|changed|registered|placed|sent|submitted|shipped|activated|removed"
    r"|added|ordered|sorted"
    r"|taken care of)\b",
    re.IGNORECASE,
)
_WH = re.compile(
    r"\b(?:what|which|when|where|who|whose|how (?:many|much|long|old|often)|why)\b", re.IGNORECASE
)
_VALUE_REQUEST = re.compile(
    r"\b(?:(?:can|could|may|might) (?:i|we) (?:please |also |just )*(?:have|get|know|ask|take|see)"
    r"|(?:can|could|will|would) "
    r"you (?:please |also |kindly |mind |just |be able to )*(?:tell|giv|provid|shar|send|specif|confirm"
    r"|let|nam|stat|enter"
    r"|remind|repeat|check|double|verif|spell|type|suppl)\w*|do you (?:have|know|remember|recall)|have"
    r" you got|would you "
    r"like to (?:share|provide|tell)|would you mind|where (?:do you suggest|should i))",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"(?:^|[,;:—–-]\s*|\b(?:so|and|then|okay|ok|alright|great|sure|thanks|thank you|perfect|instead"
    r"|case)[,.!]*\s+)"
    r"(?:would|shall|should|do|does|did|may|can|could|is|are|was|were|am|have|has|will)\b",
    re.IGNORECASE,
)
_DECLARATIVE = re.compile(
    r"\s*(?:(?:so|and|then|okay|ok)[, ]+)?(?:you|this|that|it|i|we|your [\w ]{1,40} (?:is|are))\b",
    re.IGNORECASE,
)
_CHECKS = re.compile(
    r"\b(?:is (?:that|this|it|everything) (?:correct|right|okay|ok|fine|all right|accurate)|(?:correct"
    r"|right|okay|ok)\?|do "
    r"you (?:confirm|agree|want (?:me )?to (?:proceed|continue|go ahead))|(?:shall|should|may|can) i"
    r" (?:proceed|continue"
    r"|go ahead|do (?:that|this|it|so))|are you sure|would you like (?:me )?to (?:proceed|continue|go"
    r" ahead|do (?:that"
    r"|so|this))|please confirm|can you confirm|could you (?:please )?confirm|to confirm)\b|\b(?:correct"
    r"|right)\?",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\bwhich (?:one|of|option|do you prefer|would you)\b|\bwhich \w+ (?:would|do|should|shall)\b|\bdo"
    r" you prefer\b"
    r"|\b(?:choose|select|pick) (?:one|from|between|an?)\b|\bwhat would you prefer\b"
    r"|\b(?:would you (?:like|prefer)|do you want|(?:should|shall|will) it be) (?:the|an?)"
    r" (?:[\w'’-]+ ){1,4}?or (?:the|an?) \w",
    re.IGNORECASE,
)
_CONDITIONAL = re.compile(
    r"\b(?:if|would you|can also|could|otherwise|in case|may want)\b|\?\s*$", re.IGNORECASE
)


_OFFER = re.compile(
    r"\b(?:i|we) (?:can|could|would like to|am able to|are able to) (?:also |gladly |happily )?(?:offer|give"
    r"|propose"
    r"|suggest|add|upgrade|switch)\b|\b(?:if you(?:'d| would)? (?:like|want|wish|prefer)|alternatively"
    r"|as an alternative)\b"
    r"|\byou (?:can|could|may) (?:also |instead )",
    re.IGNORECASE,
)
_ABBREVIATED = re.compile(r"\b(?:dr|mr|mrs|ms|prof|st|no|nr)\.$", re.IGNORECASE)
_WELCOMES = re.compile(
    r"\W*(?:(?:hello|hi|hey|good (?:morning|afternoon|evening|day))\b[\s,!.]*(?:and )?)?(?:a (?:very |warm )*)?"
    r"(?:welcome(?: back)?(?: to [^.,;:!?]{1,60})?"
    r"|(?:thanks|thank you)(?: very much| so much)? for (?:calling|contacting|reaching out|getting in touch|choosing"
    r"|visiting|writing)(?: (?:to |with )?[^.,;:!?]{1,60})?)(?:, (?!it\b|your\b)[\w'’]+(?: [\w'’]+)?)?[\s.!]*",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"[(\[](?:for (?:example|instance)|e\.?g\.?|like|such as|format)\b[^)\]]*[)\]]"
    r"|\b(?:for (?:example|instance),?|e\.g\.,?|like|such as)\s+[\w-]*\d[\w-]*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Asked:
    """A question in a message.

    Args:
        text: The question, with the list that it introduces.
        context: The sentence before it and the question itself.
    """

    text: str
    context: str

    @property
    def is_anything_else(self) -> bool:
        """Whether it asks for nothing in particular: whether there is more."""
        return bool(_ANYTHING_ELSE.search(self.text))

    @property
    def is_how_to_help(self) -> bool:
        """Whether it asks what the user wants."""
        return bool(_HOW_TO_HELP.search(self.text))

    @property
    def is_open(self) -> bool:
        """Whether it asks the user to say more, or to say it again."""
        return bool(_OPEN.search(self.text)) and not _OFFERS_TO_TELL.match(self.text)

    @property
    def checks(self) -> bool:
        """Whether it asks to confirm what was said."""
        return bool(_CHECKS.search(self.text))

    @property
    def leaves_a_choice(self) -> bool:
        """Whether it asks to choose among several."""
        return bool(_CHOICE.search(self.text))

    @property
    def wants_a_value(self) -> bool:
        """Whether it asks for something to be told rather than for yes or no."""
        if _VALUE_REQUEST.search(self.text) or (_REQUEST.search(self.text) and not self.checks):
            return True
        if _WH.search(self.text) and not _AUXILIARY.search(self.text):
            return True
        return not (_AUXILIARY.search(self.text) or _DECLARATIVE.match(self.text) or self.checks)

    @property
    def is_yes_no(self) -> bool:
        """Whether yes or no would answer it."""
        return not self.wants_a_value


@dataclass(frozen=True)
class Heard:
    """An agent's message.

    Args:
        text: The message.
    """

    text: str

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """Its sentences; of very many the first and the last."""
        found = dialogue.sentences(self.text)
        half = _MOST_SENTENCES // 2
        return found if len(found) <= _MOST_SENTENCES else (*found[:half], *found[-half:])

    @cached_property
    def questions(self) -> tuple[Asked, ...]:
        """What it asks, in order; a list after "Please provide:" belongs to the question."""
        found: list[Asked] = []
        index = 0
        while index < len(self.sentences):
            text = self.sentences[index]
            before = self.sentences[index - 1] if index else ""
            index += 1
            if not (text.rstrip("\"')* ").endswith("?") or _REQUEST.search(text)):
                continue
            while index < len(self.sentences) and _LISTED.match(self.sentences[index]):
                text = f"{text} {_LISTED.sub('', self.sentences[index])}"
                index += 1
            found.append(Asked(text, f"{before} {text}"))
        return tuple(found)

    @cached_property
    def offers(self) -> tuple[Asked, ...]:
        """What it offers without asking: "I can offer you a discount."."""
        return tuple(Asked(text, text) for text in self._statements if _OFFER.search(text))

    @cached_property
    def without_examples(self) -> str:
        """The message without the values that it gives as examples of what is asked for."""
        return _EXAMPLE.sub(" ", self.text)

    @cached_property
    def told(self) -> str:
        """What it states: everything that asks nothing."""
        asked = " ".join(question.text for question in self.questions)
        return " ".join(
            text for text in self.sentences if text not in asked and _LISTED.sub("", text) not in asked
        )

    @property
    def asks(self) -> bool:
        """Whether it asks for anything in particular."""
        return any(not (each.is_anything_else or each.is_how_to_help) for each in self.questions)

    @property
    def asks_for_more(self) -> bool:
        """Whether it asks if there is anything else."""
        return any(each.is_anything_else for each in self.questions)

    @property
    def asks_how_to_help(self) -> bool:
        """Whether it asks what the user wants."""
        return any(each.is_how_to_help and not each.is_anything_else for each in self.questions)

    @property
    def fails(self) -> bool:
        """Whether it says that something cannot be had or found."""
        return bool(_FAILS.search(self.text))

    @property
    def unfailing(self) -> str:
        """What it states beside what failed."""
        return " ".join(text for text in self._statements if not _FAILS.search(text))

    @property
    def says_goodbye(self) -> bool:
        """Whether it ends the conversation outright."""
        return bool(_GOODBYE.search(self.told)) and not self.asks

    @property
    def wishes_well(self) -> bool:
        """Whether it takes leave politely, which need not end the conversation."""
        return bool(_WISHES_WELL.search(self.told))

    @property
    def hands_over(self) -> bool:
        """Whether it says that a human takes over; an offer to do so is none."""
        return any(_HANDS_OVER.search(text) and not _CONDITIONAL.search(text) for text in self._statements)

    @property
    def _statements(self) -> list[str]:
        asked = {question.text for question in self.questions}
        return [text for text in self.sentences if text not in asked]

    @cached_property
    def claims(self) -> tuple[str, ...]:
        """What it states outright: nothing that failed, is offered, or depends on something else."""
        joined: list[str] = []
        for text in self._statements:
            if joined and _ABBREVIATED.search(joined[-1]):
                joined[-1] = f"{joined[-1]} {text}"
            else:
                joined.append(text)
        whole = (_EXAMPLE.sub(" ", text) for text in joined)
        return tuple(
            text
            for text in whole
            if not (_FAILS.search(text) or _OFFER.search(text) or _CONDITIONAL.search(text))
        )

    @property
    def reports_done(self) -> bool:
        """Whether it says that something has been done."""
        return bool(_DONE.search(self.told)) and not self.fails

    @property
    def only_waits(self) -> bool:
        """Whether each of its statements is a greeting, thanks, or asks for patience: nothing was answered yet."""
        statements = self._statements
        return bool(statements) and all(
            _WAITS.search(text)
            or _WELCOMES.fullmatch(text)
            or dialogue.is_small_talk(text)
            or (dialogue.greets(text) and len(text.split()) < 8)
            for text in statements
        )


def heard(text: str) -> Heard:
    """A message as it is heard; of a very long one the beginning and the end."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"
    return Heard(text)
