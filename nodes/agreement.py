"""Whether a customer's message is a yes or a no, as far as words tell: English in detail, others by their plain words.

A plain no is one whatever a model says. A plain yes begins the message and nothing in it takes it back. What is neither
is not guessed at.
"""

from __future__ import annotations

import re
import unicodedata

# Taken out before anything is looked for: they sound like a no and are none.
_NO_REFUSAL = re.compile(
    r"\b(?:(?:no|not an?|without) (?:problem|worries|doubt|rush|issue)s?|(?:do not|don['’]?t) (?:mind|worry))\b"
    r"|\bwhy not\b(?:\s*\?)?|没问题|沒問題",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\W*(?:(?:oh|um|hm+|well|sorry|actually|wait|hell)\W+)*"
    r"(?:no|nope|nah|never|not|stop|wait|abort|negative|scrap (?:it|that)|cancel(?: that| it)?(?=\W*$)|cancel that"
    r"|forget (?:it|about it|that)|leave (?:it|that)|hold on|don['’]?t|do not"
    r"|please (?:wait|stop|abort|don['’]?t|do not)"
    r"|absolutely not|better not|under no circumstances"
    r"|(?:i|we)(?:['’]d| would)? (?:do(?: not|n['’]t)|disagree|rather not"
    r"|changed my mind))\b",
    re.IGNORECASE,
)
_YES = re.compile(
    r"\W*(?:(?:oh|um|hm+|well|ok(?:ay)?|great|perfect|thanks|thank you|please)\W+)*"
    r"(?P<yes>yes|yep|yeah|yup|y(?!['’])|sure|ok(?:ay)?|please do|go ahead|go for it|do (?:it|that|so)|proceed"
    r"|correct|right|exactly|of course|confirmed?|absolutely|certainly|definitely|fine|agreed"
    r"|that['’]?s (?:right|correct|fine|ok(?:ay)?)|(?:that )?sounds (?:good|great|fine)|(?:that )?works for me"
    r"|i (?:agree|confirm|do(?! ?n[o'’]t)))\b",
    re.IGNORECASE,
)
_PLAIN_YES = re.compile(
    r"\W*(?:yes|yep|yeah|yup|please do|go ahead|do it|i confirm|confirmed?)\b", re.IGNORECASE
)
_AGAINST = re.compile(
    r"\b(?:no|not|don['’]?t|do not|but|wait|stop|never|hold on|instead|rather)\b", re.IGNORECASE
)

# What makes a yes one for later, or for some other case. It is no no either.
_HEDGED = re.compile(
    r"\b(?:if|unless|until|till|after|before|once|when|whenever|while|except|provid(?:ed|ing) (?:that|it|there|you)"
    r"|assuming|supposing|as long as|so long as|depend(?:s|ing)|maybe|perhaps|possibly|probably|might|think|guess"
    r"|suppose|wonder|unsure|let me|prefer|keep|leave (?:it|that)|first|cannot|cant|wont|dont|\w+n['’]t)\b",
    re.IGNORECASE,
)
_POLITE_IF = re.compile(
    r"\bif (?:you|i) (?:would|could|can|may|please|don['’]?t mind|wouldn['’]?t mind|like|want|insist)(?: be so \w+)?"
    r"|\bif (?:possible|that['’]?s (?:ok(?:ay)?|possible|fine|all right))|\bif it['’]?s (?:no trouble|possible)",
    re.IGNORECASE,
)
# Words that begin other sentences just as well: a yes only beside nothing but more of the kind.
_FAINT = frozenset(("ok", "okay", "sure", "right", "correct", "exactly", "fine"))
_AFFIRMING_WORDS = """
yes yep yeah yup y please do it that so this go ahead for proceed course of confirm confirmed absolutely certainly
definitely agreed agree is that's sounds good works me i you very much the my then now just kindly thing all by means
with a lot again too as why not alright well oh um hm hmm great perfect thanks thank wonderful excellent lovely super
cool
"""
_AFFIRMING = _FAINT.union(_AFFIRMING_WORDS.split())

# German; French; Spanish; Italian; Portuguese; Dutch; Scandinavian, Finnish; Polish, Czech, Slovak, Hungarian,
# Romanian; Russian, Ukrainian; Greek, Turkish; Arabic, Persian, Hebrew, Hindi, Bengali; Vietnamese, Indonesian,
# Filipino, Swahili.
_YES_WORDS = """
ja jawohl jap klar gerne gern genau einverstanden natürlich selbstverständlich
oui ouais d'accord volontiers
sí si claro vale adelante dale
sì certo volentieri
sim
graag akkoord prima
japp jo gärna visst kyllä joo
tak zgoda jasne ano áno jasně igen da desigur
да конечно хорошо согласен согласна так
ναι βεβαίως evet tamam
نعم أجل موافق بله כן בטח हाँ हां जी ঠিক হ্যাঁ
vâng đồng ya setuju oo ndiyo
"""
_NO_WORDS = """
nein nee nö nicht kein keine keinen nie niemals aber stopp halt warte
non pas jamais mais attends
no pero espera
ma aspetta
não nao mas espere
niet geen maar
ne nem nu inte nej ikke men ei en mutta ale však
нет не ни но стоп
όχι δεν αλλά hayır yok değil ama
لا ليس لكن نه לא אבל नहीं मत लेकिन না
không đừng nhưng tidak jangan bukan tapi hindi hapana
"""
_YES_ELSEWHERE = frozenset(_YES_WORDS.split())
_NO_ELSEWHERE = frozenset(_NO_WORDS.split())
# Written without spaces between words: found at the beginning (a yes), or anywhere (a no).
_YES_UNSPACED = (
    "はい",
    "うん",
    "ええ",
    "お願い",
    "네",
    "예",
    "응",
    "좋아",
    "是",
    "好",
    "可以",
    "同意",
    "确认",
    "確認",
    "對",
    "对",
    "ใช่",
    "ได้",
    "ตกลง",
)
_NO_UNSPACED = (
    "不",
    "没",
    "沒",
    "别",
    "別",
    "いいえ",
    "いや",
    "ない",
    "でも",
    "やめ",
    "待って",
    "아니",
    "안 ",
    "말",
    "하지만",
    "ไม่",
    "อย่า",
)
_SIGNS = "👍✅👌🆗"
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_TOKEN = re.compile(r"\w+(?:[-'’]\w+)*")
_POLITE = frozenset(
    ("please", "it", "that", "then", "now", "just", "thanks", "thank", "you", "so", "the", "my")
)
_QUESTION_MARKS = "?？؟"
_SENTENCE = re.compile(r"[^.!?。？؟\n]++[.!?。？؟]*+")
_DIGITS = re.compile(r"\d+")
_NAME = re.compile(r"(?<=\w[ ,])\s*([A-Z][a-z]\w*)")
_NUMBERS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TIMES = """
monday tuesday wednesday thursday friday saturday sunday today tonight tomorrow morning noon afternoon evening night
midnight january february april june july august september october november december
"""
_VALUES = {word: str(number) for number, word in enumerate(_NUMBERS, start=2)} | dict.fromkeys(
    _TIMES.split(), ""
)
"""Words that are values, with the number that one of them says."""


def asks_something(text: str) -> bool:
    """Whether a text holds a question mark, of any script."""
    return any(mark in text for mark in _QUESTION_MARKS)


def says_yes(text: str) -> bool:
    """Whether a message begins with a yes, takes nothing of it back, and makes it depend on nothing.

    What begins with "ok" or "right" is one where nothing but the like follows.
    """
    plain = _read(text)
    if found := _YES.match(plain):
        if found["yes"].casefold() in _FAINT and not _AFFIRMING.issuperset(_words(plain)):
            return False
        is_question = asks_something(plain) and _PLAIN_YES.match(plain) is None
        return not (is_question or _AGAINST.search(plain) or _HEDGED.search(_POLITE_IF.sub("", _told(plain))))
    if not plain or asks_something(plain) or _AGAINST.search(plain) or _has_no(plain):
        return False
    words = _words(plain)
    return plain[0] in _SIGNS or bool(words and words[0] in _YES_ELSEWHERE) or plain.startswith(_YES_UNSPACED)


def says_no(text: str) -> bool:
    """Whether a message is a no, or a yes with a but."""
    plain = _read(text)
    if _YES.match(plain):
        return _AGAINST.search(plain) is not None
    return _NO.match(plain) is not None or _has_no(plain)


def repeats_what_was_put(text: str, put: str) -> bool:
    """Whether a message says again what it was asked about: "Cancel A-1, please" to "Shall I cancel A-1?"."""
    if says_no(text) or asks_something(text) or _HEDGED.search(_POLITE_IF.sub("", text)):
        return False
    words = {word for word in _TOKEN.findall(text.casefold()) if word not in _POLITE | _AFFIRMING}
    return bool(words) and words.issubset(_TOKEN.findall(put.casefold()))


def names_another(text: str, put: str) -> bool:
    """Whether a message names a number, a day or a name that was not put: "Yes, A-2" to "Shall I cancel A-1?".

    A question that the customer asks besides is not looked at.

    Args:
        text: The message.
        put: What was said to the customer, with the values of the call.
    """
    told = _told(_read(text))
    asked = unicodedata.normalize("NFKC", put).casefold()
    known = set(_WORD.findall(asked)) | set(_DIGITS.findall(asked))
    values = {*_DIGITS.findall(told), *(word for word in _words(told) if word in _VALUES)}
    if _YES.match(told):  # In English alone a capital within a sentence begins a name.
        values |= {name.casefold() for name in _NAME.findall(told) if name.casefold() not in _AFFIRMING}
    return not values <= known | {word for word, number in _VALUES.items() if number in known}


def _told(plain: str) -> str:
    """What a message says besides its questions; one that begins with a yes says that."""
    return " ".join(each for each in _SENTENCE.findall(plain) if not asks_something(each) or _YES.match(each))


def _read(text: str) -> str:
    return _NO_REFUSAL.sub("", unicodedata.normalize("NFKC", text)).strip()


def _has_no(text: str) -> bool:
    """Whether a word that is a no in another language stands first, or behind a yes anywhere."""
    if any(sign in text for sign in _NO_UNSPACED):
        return True
    words = _words(text)
    is_yes = bool(words) and words[0] in _YES_ELSEWHERE
    return any(word in _NO_ELSEWHERE for word in (words if is_yes else words[:1]))


def _words(text: str) -> list[str]:
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]
