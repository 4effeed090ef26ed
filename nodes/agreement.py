"""Whether a customer's message is a yes or a no, as far as words tell: English in detail, others by their plain words.

A plain no is one whatever a model says. A plain yes begins the message, and nothing is said beside it but what affirms
it or was put: "Yes, I changed my mind" is none, nor is anything else that holds other words. What is neither is not
guessed at.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from arq_graph.nodes.word_forms import are_forms_of_one

# Taken out before anything is looked for: they sound like a no, or like a condition, and are none.
_NO_REFUSAL = re.compile(
    r"\b(?:(?:no|not an?|without) (?:problem|worries|doubt|rush|issue)s?|(?:do not|don['’]?t) (?:mind|worry))\b"
    r"|\bwhy not\b(?:\s*\?)?|\bno longer\b|没问题|沒問題"
    r"|\bif (?:you|i) (?:would|could|can|may|please|wouldn['’]?t mind|insist)(?: be so \w+)?"
    r"|\bif (?:possible|(?:that|it)['’]?s (?:ok(?:ay)?|possible|fine|all right|no trouble))",
    re.IGNORECASE,
)
_HELP = (
    r"(?:(?:all|of|your|the|this|that|kind|great) )+(?:help|assistance|support|patience|time|information|service)"
    r"(?: today| so far| with (?:this|that|it))?"
)
_THANKS = re.compile(
    rf"\b(?:thanks|thank you) (?:(?:so|very) much )?(?:again )?for {_HELP}\b"
    rf"|\bi (?:really |do )?appreciate (?:it|that|this|{_HELP})\b",
    re.IGNORECASE,
)
_NO = re.compile(
    r"\W*(?:(?:oh|um|hm+|well|sorry|actually|wait|hell)\W+)*"
    r"(?:no|nope|nah|never|not|stop|wait|abort|negative|scrap (?:it|that)"
    r"|forget (?:it|about it|that)|leave (?:it|that)|hold on|don['’]?t|do not"
    r"|please (?:wait|stop|abort|don['’]?t|do not)"
    r"|absolutely not|better not|under no circumstances"
    r"|(?:i|we)(?:['’]d| would)? (?:do(?: not|n['’]t)|disagree|rather not"
    r"|changed my mind))\b",
    re.IGNORECASE,
)
# A no to everything but "Shall I cancel it?".
_CANCELS = re.compile(r"\W*cancel(?: (?:that|it))?\b(?=\W*$)|\W*cancel that\b", re.IGNORECASE)
_YES = re.compile(
    r"\W*(?:(?:oh|um|hm+|well|ok(?:ay)?|great|perfect|thanks|thank you|please)\W+)*"
    r"(?:yes+|yep|yeah|yup|y(?!['’])|aye|affirmative|sure|ok(?:ay)?|alright|all right|please do|go ahead|go for it"
    r"|do (?:it|that|so)|let['’]?s (?:do (?:it|that|this)|go ahead|proceed)|proceed|correct|right|exactly|of course"
    r"|confirmed?|absolutely|certainly|definitely|by all means|fine|agreed|you (?:may|can)(?: go ahead)?"
    r"|that['’]?s (?:right|correct|fine|ok(?:ay)?)"
    r"|that would be (?:good|great|nice|lovely|perfect|fine|wonderful|helpful)"
    r"|(?:that )?sounds (?:good|great|fine)|(?:that )?works for me|i(?:['’]m| am) sure"
    r"|i(?:['’]d| would)(?: like (?:that|this|it|you to)\b|, yes)|i (?:agree|confirm|do(?! ?n[o'’]t)))\b",
    re.IGNORECASE,
)
_MEANS_NO = re.compile(r"\W*yeah,? right\W*$", re.IGNORECASE)
_AGAINST = re.compile(
    r"\b(?:no|not|don['’]?t|do not|but|wait|stop|never|hold on|instead|rather)\b", re.IGNORECASE
)
_AFFIRMING_WORDS = """
yes yess yep yeah yup y aye affirmative sure ok okay right correct exactly fine please do it that so this go
ahead for proceed course of confirm confirmed absolutely certainly definitely agreed agree is that's thats
what sounds good works me i i'm am i'd would like want let's lets may can be you very much the my then now
just kindly thing all by means with a lot again too as really immediately away at once one such nice kind
great perfect wonderful excellent lovely super cool thanks thank thx pls plz cheers alright well oh um hm hmm
and to everything looks it's those make finalize finalise helpful
"""
_AFFIRMING = frozenset(_AFFIRMING_WORDS.split())

# German; French; Spanish; Italian; Portuguese; Dutch; Scandinavian, Finnish; Polish, Czech, Slovak, Hungarian,
# Romanian; Russian, Ukrainian; Greek, Turkish; Arabic, Persian, Hebrew, Hindi, Bengali; Vietnamese, Indonesian,
# Filipino, Swahili.
_YES_WORDS = """
ja jawohl jap klar gerne gern genau einverstanden natürlich selbstverständlich
oui ouais d'accord volontiers
sí si claro vale adelante dale
sì certo volentieri
sim
graag akkoord prima passt
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
_NO_SIGNS = "👎❌🚫"
_POLITE_WORDS = """
bitte danke mach machen das gut in ordnung s'il vous plaît plait te merci bien sûr allez-y vas-y por favor
gracias supuesto que sí hazlo per favore grazie obrigado obrigada faça alstublieft alsjeblieft dank je u tack
takk tak proszę dziękuję prosím děkuji kérem köszönöm пожалуйста спасибо будь ласка дякую παρακαλώ ευχαριστώ
lütfen teşekkürler شكرا من فضلك بفضلك תודה בבקשה कृपया धन्यवाद cảm ơn tolong silakan terima kasih tafadhali
"""
_POLITE_ELSEWHERE = frozenset(_POLITE_WORDS.split())
_YES_PHRASES = ("bien sûr", "allez-y", "vas-y", "por supuesto", "mach das", "in ordnung")
_POLITE_UNSPACED_WORDS = """
お願いします お願い そうして してください ください どうぞ します 请 吧 的 谢谢 謝謝 주세요 그렇게 해주세요 요
부탁드립니다 ครับ ค่ะ เลย จ้ะ
"""
_POLITE_UNSPACED = tuple(_POLITE_UNSPACED_WORDS.split())

_TOKEN = re.compile(r"\w+(?:[-'’]\w+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_SENTENCE = re.compile(r"[^.!?。？؟\n]++[.!?。？؟]*+")
_QUESTION_MARKS = "?？؟"
_STEM = 4


def asks_something(text: str) -> bool:
    """Whether a text holds a question mark, of any script."""
    return any(mark in text for mark in _QUESTION_MARKS)


def sentences_in(text: str) -> list[str]:
    """The sentences of a text, each line for itself."""
    return _SENTENCE.findall(text)


def questions_in(text: str) -> list[str]:
    """The sentences of a text that ask something; all of it, where none does."""
    return [each for each in sentences_in(text) if asks_something(each)] or [text]


def words_in(text: str) -> list[str]:
    """The words of a text in small letters, without its numbers."""
    return [word.replace("’", "'") for word in _WORD.findall(text.casefold())]


def says_yes(text: str, put: str = "") -> bool:
    """Whether a message begins with a yes, and holds nothing but what affirms it or was put.

    A question that the customer asks besides is not looked at; one in the same sentence makes it no yes yet.

    Args:
        text: The message.
        put: What the customer was asked; a yes may say its words again.
    """
    told = _told(_read(text))
    if not told or _MEANS_NO.match(told):
        return False
    if _YES.match(told):
        return _holds_only(told, put, _AFFIRMING)
    if told[0] in _SIGNS:
        return not any(sign in told for sign in _NO_SIGNS) and _holds_only(told, put, _AFFIRMING)
    if told.startswith(_YES_UNSPACED):
        return _is_only_yes_unspaced(told, put)
    words = words_in(told)
    begins = bool(words and words[0] in _YES_ELSEWHERE) or told.casefold().startswith(_YES_PHRASES)
    return begins and _holds_only(told, put, _YES_ELSEWHERE | _POLITE_ELSEWHERE, _begin_alike)


def says_no(text: str, put: str = "") -> bool:
    """Whether a message is a no, or a yes with a but.

    Args:
        text: The message.
        put: What the customer was asked: "Cancel it" is no no to "Shall I cancel it?".
    """
    plain = _read(text)
    if _YES.match(plain):
        return _AGAINST.search(plain) is not None
    cancels = _CANCELS.match(plain)
    asked = words_in(put)
    if cancels and ("cancel" not in asked or "or" in asked or words_in(plain) == ["cancel"]):
        return True
    return _NO.match(plain) is not None or _has_no(plain)


def repeats_what_was_put(text: str, put: str) -> bool:
    """Whether a message says again what it was asked about: "Cancel A-1, please" to "Shall I cancel A-1?"."""
    if says_no(text, put) or asks_something(text):
        return False
    return _TOKEN.search(text) is not None and _holds_only(_read(text), put, _AFFIRMING)


def _read(text: str) -> str:
    return _THANKS.sub("", _NO_REFUSAL.sub("", unicodedata.normalize("NFKC", text))).strip()


def _told(plain: str) -> str:
    """What a message says besides its questions; nothing, where it begins with one."""
    sentences = [each.strip() for each in sentences_in(plain)]
    if not sentences or asks_something(sentences[0]):
        return ""
    return " ".join(each for each in sentences if not asks_something(each))


def _holds_only(
    text: str, put: str, words: frozenset[str], alike: Callable[[str, str], bool] = are_forms_of_one
) -> bool:
    """Whether each word of a text is one of these, or was put, if with another ending."""
    known = _tokens(put)
    return all(
        word in words or word in known or (word.isalpha() and any(alike(word, each) for each in known))
        for word in _tokens(text)
    )


def _begin_alike(word: str, other: str) -> bool:
    """What tells forms of one word in a language whose endings are not known."""
    return len(word) >= _STEM and word[:_STEM] == other[:_STEM] and other.isalpha()


def _is_only_yes_unspaced(told: str, put: str) -> bool:
    for known in sorted((*_YES_UNSPACED, *_POLITE_UNSPACED), key=len, reverse=True):
        told = told.replace(known, " ")
    return not any(character.isalnum() and character not in put for character in told)


def _has_no(text: str) -> bool:
    """Whether a word that is a no in another language stands first, or behind a yes anywhere."""
    if any(sign in text for sign in _NO_UNSPACED):
        return True
    words = words_in(text)
    is_yes = bool(words) and words[0] in _YES_ELSEWHERE
    return any(word in _NO_ELSEWHERE for word in (words if is_yes else words[:1]))


def _tokens(text: str) -> set[str]:
    return {word.replace("’", "'") for word in _TOKEN.findall(text.casefold())}
