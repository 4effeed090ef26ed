"""What a message does in a conversation: greet, thank, ask, agree, refuse, take leave, answer a question."""

from __future__ import annotations

import re
from functools import lru_cache

from arq_graph.models.offline import agreeing
from arq_graph.models.offline.lexicon import listed

_GREETING = re.compile(
    r"\s*(?:hi|hello|hey|greetings|good (?:morning|afternoon|evening|day)|howdy|hiya)\b", re.IGNORECASE
)
_FAREWELL = re.compile(
    r"\b(?:good ?bye|bye|see you|take care|that(?:'s| is| will be| would be|'ll be) (?:all|it"
    r"|everything)|nothing else"
    r"|no more questions|i'?m (?:all )?(?:done|set|good)(?: now)?\b|have a (?:nice|good|great|lovely))",
    re.IGNORECASE,
)
_THANKS = re.compile(r"\b(?:thanks?|thank you|thx|cheers|appreciate)\b", re.IGNORECASE)
_ANGER = re.compile(
    r"\b(?:angry|furious|frustrat\w+|annoy\w+|upset|mad at|unacceptable|ridiculous|terrible|awful"
    r"|horrible|worst"
    r"|disgust\w+|outrag\w+|fed up|sick of|disappoint\w+|useless|incompetent|rude|unhappy|dissatisf\w+"
    r"|complain\w*"
    r"|idiots?|stupid|morons?|shut up|crap|bullshit|f+u+c+k\w*|shit\w*|pathetic|scam|rip[- ]?off|hate"
    r"|damn|wtf|not happy|had enough|waste of)\b|!{2,}",
    re.IGNORECASE,
)
_YES = re.compile(
    r"\s*(?:(?:ok(?:ay)?|well|great|perfect|hi|thanks|thank you)[,.! ]+)*"
    r"(?P<yes>yes|yeah|yep|yup|sure|certainly|of course|absolutely|definitely|indeed|correct|right|exactly"
    r"|agreed|affirmative"
    r"|go ahead|go for it|please do|do it|do that|sounds good|that(?:'s| is) (?:right|correct|fine|ok"
    r"|okay|good)|fine"
    r"|ok(?:ay)?|proceed|confirm(?:ed)?|i (?:do |hereby )?(?:confirm|agree|accept)|i'd (?:love|like) "
    r"(?:to|that)(?! \w)|perfect|great|y)\b",
    re.IGNORECASE,
)
# They begin other sentences just as well.
_FAINT = frozenset(("ok", "okay", "sure", "right", "correct", "exactly", "fine", "perfect", "great"))
_WISH_TO_THINK = re.compile(
    r"\blet me (?:think|see|check|sleep)|\b(?:need|want|have|like) to think\b|\bthink (?:about it|it over)"
    r"|\bsleep on it|\bnot (?:quite )?(?:sure|certain)\b",
    re.IGNORECASE,
)
_AGREES_LATER = re.compile(
    r"\b(?:go ahead|please (?:do|proceed)|i (?:confirm|agree|accept)|yes,? please|confirmed)\b", re.IGNORECASE
)
_NO = re.compile(
    r"\s*(?:(?:ok(?:ay)?|oh|um|hmm|well|sorry|actually)[,.! ]+)*"
    r"(?:no(?! (?:idea|clue)\b)|nope|nah|not (?:now|yet|really|today|sure)|don'?t|do not|stop|wait|hold on|hang on"
    r"|never ?mind|cancel that"
    r"|forget it|i(?:'d| would) rather not|negative)\b",
    re.IGNORECASE,
)
_KEEPS_IT = re.compile(
    r"\s*(?:(?:ok(?:ay)?|oh|um|hm+|well|sorry|actually|right|sure|yes|yeah|alright)[,.! ]+)*"
    r"i(?:['’]d| would) (?:prefer (?:not )?to|rather) (?:keep|leave|not|wait)\b",
    re.IGNORECASE,
)
_RESERVATION = re.compile(
    r"\b(?:but|wait|hold on|hang on|don'?t|do not|not yet|instead|rather|actually|unless|except|change"
    r"|first|no)\b"
    r"|n't\b|\?",
    re.IGNORECASE,
)
_QUESTION_START = re.compile(
    r"(?:^|[.!?,;]\s*|\b(?:hi|hello|hey|and|so|but)\b[, ]+)(?:what|where|when|who|whose|which|why|how"
    r"|is|are|was|were|do"
    r"|does|did|can|could|will|would|should|may|have|has|am)\b[^.!?]*",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    r"\b(?:i(?:'d| would) (?:like|love|prefer)|i(?:'m| am) (?:looking|trying|interested|calling"
    r"|writing)|(?:i )?(?:want|need|wish"
    r"|have to|lost|forgot|can't|cannot)|please (?!do\b)\w+|(?:can|could|would|will) (?:you|i|we)|help "
    r"me|let me|tell me"
    r"|show me|give me|find me|my (?!name|number|e?-?mail|phone|id|card|address|account|birthday)\w+ "
    r"(?:is|isn't|was|has|won't|doesn't|keeps)|there(?:'s| is| are))\b",
    re.IGNORECASE,
)
_WISHED_DEED = re.compile(
    r"\b(?:(?:want|like|need|wish|love|prefer|hope|plan|try|trying|going|have) to"
    r"|(?:can|could|would|will|may) (?:you|i|we)|please|let me|let us|let's|help me(?: to)?)"
    r"(?: please| also| just)? [a-z]+(?:\s+(?:and|or) [a-z]+(?= (?:a|an|the|my)\b))?",
    re.IGNORECASE,
)
_CHOICE = re.compile(
    r"\bI (?:found|can offer|would (?:suggest|recommend))\b|\b(?:following|these) (?:options|times"
    r"|slots|dates)\b"
)
_OFFER = re.compile(r"\bI (?:can offer|would (?:suggest|recommend))\b(?! you my help)")
_GENERIC_OFFER = re.compile(
    r"\b(?:(?:anything|something|what) else|how (?:can|may|could) (?:i|we) (?:help|assist|be of)|what "
    r"can (?:i|we) do for you"
    r"|(?:help|assist) you (?:with|today)|can i (?:help|assist))\b",
    re.IGNORECASE,
)
_CORRECTION = re.compile(
    r"\b(?:make (?:it|that)|instead|i mean|i meant|change (?:it|that) to|rather|should be|it's actually"
    r"|not \w+,? but)\b",
    re.IGNORECASE,
)
_OF_ITS_OWN = re.compile(
    r"\bi(?:'d| would)? (?:like|want|need|wish)(?:ed)? to \w+|\bi(?:'d| would|'m| am| have|'ve)? also\b"
    r"|\bby the way\b|\banother (?:thing|question)\b",
    re.IGNORECASE,
)
_ELLIPSIS = re.compile(
    r"\s*(?:(?:ok(?:ay)?|thanks|thank you|great|and|so|hm+|alright)[,.! ]+)*(?:what about|how about"
    r"|and (?:for|on|at|in|with|the|my|if|a|an|what|how|[\w-]*\d)"
    r"|same (?:for|with)|also (?:for|the|my)|instead\b)|\s*and\b.{1,30}\?\s*$",
    re.IGNORECASE,
)
# "What about a single?" goes on with a search, "what about breakfast?" brings up breakfast.
_OTHER_TOPIC = re.compile(
    r"\b(?:what|how) about (?!a\b|an\b|one\b|two\b|three\b|for\b|on\b|at\b|in\b|with\b|to\w+\b|next\b"
    r"|this\b|that\b|it\b|them\b|\w+day\b)"
    r"(?:the |your |my )?[a-z]+(?: [a-z]+)?\W*$"
)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|$|[\"')\]])|[.!?](?=\S)[^.!?\n]*)*[.!?]*")
_SHOUTED = re.compile(r"\b[A-Z]{3,}\b")


@lru_cache(maxsize=2_048)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _SENTENCE.findall(text) if part.strip(" .!?\n\t"))


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text; a full stop inside a number, an address or a name ends none."""
    return _sentences(text) if len(text) < 2_000 else _sentences.__wrapped__(text[:20_000])


def greets(text: str) -> bool:
    """Whether it begins with a greeting."""
    return bool(_GREETING.match(text))


def takes_leave(text: str) -> bool:
    """Whether it ends the conversation."""
    return bool(_FAREWELL.search(text))


def thanks(text: str) -> bool:
    """Whether it thanks."""
    return bool(_THANKS.search(text))


def is_angry(text: str) -> bool:
    """Whether it complains, curses or shouts."""
    shouted = _SHOUTED.findall(text)
    return bool(_ANGER.search(text)) or (len(shouted) > 3 and len(shouted) * 2 > len(text.split()))


def says_no(text: str) -> bool:
    """Whether it begins with a refusal, or a request to wait."""
    return bool(_NO.match(text)) or keeps_it(text)


def keeps_it(text: str) -> bool:
    """Whether it would rather have things stay as they are."""
    return _KEEPS_IT.match(text) is not None


def says_yes(text: str, put: str = "") -> bool:
    """Whether it agrees without reservation, condition or doubt.

    What begins with "ok" or "right" is a yes only where nothing follows but more of the kind, or what was put.

    Args:
        text: The text.
        put: The question that it answers.
    """
    plain = agreeing.without_politeness(text)
    if says_no(plain):
        return False
    match = _YES.match(plain)
    if match is None:
        agrees = _AGREES_LATER.search(plain)
        return agrees is not None and not (_RESERVATION.search(plain) or agreeing.is_hedged(plain, put))
    rest = plain[match.end() :]
    if match["yes"].lower() in _FAINT and not agreeing.only_affirms(rest, put):
        return False
    return not (_RESERVATION.search(rest) or agreeing.is_hedged(rest, put))


def hesitates(text: str) -> bool:
    """Whether it begins like a yes and is none, or wishes to think: neither a yes nor a no."""
    plain = agreeing.without_politeness(text)
    if says_no(plain) or says_yes(text):
        return False
    return _WISH_TO_THINK.search(plain) is not None or (
        _YES.match(plain) is not None and agreeing.is_hedged(plain)
    )


def asks(text: str) -> bool:
    """Whether it holds a question."""
    return "?" in text or bool(_QUESTION_START.match(text.strip()))


def requests(text: str) -> bool:
    """Whether it asks for something, as a question or as a wish."""
    return asks(text) or bool(_REQUEST.search(text))


def without_wishes(text: str) -> str:
    """The text without the deeds that it wishes for ("I want to book"): what is wished for has not come about."""
    return _WISHED_DEED.sub(" ", text)


def corrects(text: str) -> bool:
    """Whether it puts another value in the place of an earlier one ("no, make it two")."""
    return _CORRECTION.search(text) is not None


def brings_up(text: str) -> bool:
    """Whether it brings up something of its own ("I also have …", "I want to book …")."""
    return _OF_ITS_OWN.search(text) is not None


def is_elliptical(text: str) -> bool:
    """Whether it leaves out what the message before it was about: "and tomorrow?", "what about a single?"."""
    return len(text.split()) <= 10 and _ELLIPSIS.match(text) is not None and not _OTHER_TOPIC.search(text)


def question_in(text: str) -> str:
    """The last question in an agent's message that wants an answer; empty if it has none.

    "Anything else?" and "How can I help you?" want none in particular.
    """
    for sentence in reversed(sentences(text)):
        wants_answer = sentence.rstrip().endswith("?") or re.match(
            r"please (?:tell|give|provide|share|send|let)", sentence, re.IGNORECASE
        )
        if wants_answer and not _GENERIC_OFFER.search(sentence):
            return sentence
    return ""


def choice_in(text: str) -> str:
    """The sentence of an agent's message that leaves a choice to the customer without asking; empty if none does."""
    return next((sentence for sentence in reversed(sentences(text)) if _CHOICE.search(sentence)), "")


def offer_in(text: str) -> str:
    """The sentence of an agent's message that offers something without asking; empty if none does."""
    return next((sentence for sentence in reversed(sentences(text)) if _OFFER.search(sentence)), "")


def is_small_talk(text: str) -> bool:
    """Whether it says nothing but a greeting, thanks, or a farewell."""
    rest = text
    for pattern in (_GREETING, _FAREWELL, _THANKS, _YES):
        rest = pattern.sub(" ", rest)
    left = [word for word in re.findall(r"\w+", rest.lower()) if word not in _EMPTY]
    return bool(text.strip()) and not left


_EMPTY = listed(
    "there you so much very a lot for your the help everything all today again too and now day one "
    "have nice good great"
    " lovely evening weekend everyone team ok okay well no nope that it is was s"
)
