"""How near a predicted final answer is to the true one: by embeddings, or by words where there are none."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import run_in_executor
from rapidfuzz.distance import LCSseq

from arq_graph.errors import InputError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MOST_WORDS = 20_000

TextSimilarity = Callable[[str, str], float]

# Scripts without spaces between words are taken character by character.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def lexical_similarity(truth: str, predicted: str) -> float:
    """The F1 score of the longest common subsequence of words (ROUGE-L; Lin, 2004): 2 · LCS / (m + n).

    Words are compared without case, punctuation and compatibility forms of characters. It measures wording, not
    meaning: an answer that says the same in other words scores low. The first 20,000 words of each text are
    compared; further ones count as different.

    Returns:
        0 to 1; 1 only where the words are the same in the same order. Texts without any word are compared as
        they are. Cost O(m + n), and O(m · n / 64) over the words that are compared.
    """
    a, b = _tokens(truth), _tokens(predicted)
    if not a and not b:
        return float(truth.strip() == predicted.strip())
    return 2 * LCSseq.similarity(a[:MOST_WORDS], b[:MOST_WORDS]) / (len(a) + len(b))


@dataclass(frozen=True)
class Scorer:
    """Scores two texts, the true and the predicted one, 0 to 1; its name tells one run from another."""

    name: str
    score: TextSimilarity
    ascore: Callable[[str, str], Awaitable[float]]


def scorer(similarity: Embeddings | TextSimilarity | None) -> Scorer:
    """What scores the answers.

    Args:
        similarity: LangChain embeddings, of which the cosine counts (a negative one as 0); a function of the true
            and the predicted text; or None for `lexical_similarity`.

    Raises:
        InputError: It is none of these.
    """
    if hasattr(similarity, "embed_documents"):
        return _by_embeddings(cast("Embeddings", similarity))
    function = lexical_similarity if similarity is None else similarity
    if not callable(function):
        raise InputError(
            f"similarity is {type(similarity).__name__}: give LangChain embeddings or a function of two texts"
        )

    def score(truth: str, predicted: str) -> float:
        return _unit(function(truth, predicted))

    async def ascore(truth: str, predicted: str) -> float:
        return await run_in_executor(None, score, truth, predicted)

    return Scorer(getattr(function, "__name__", type(function).__name__), score, ascore)


def _by_embeddings(embeddings: Embeddings) -> Scorer:
    # Texts that are equal score 1 and need no embedding.
    def score(truth: str, predicted: str) -> float:
        if truth.strip() == predicted.strip():
            return 1.0
        return _cosine(embeddings.embed_documents([truth, predicted]))

    async def ascore(truth: str, predicted: str) -> float:
        if truth.strip() == predicted.strip():
            return 1.0
        return _cosine(await embeddings.aembed_documents([truth, predicted]))

    named = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", None)
    kind = type(embeddings).__name__
    return Scorer(f"{kind}({named})" if isinstance(named, str) else kind, score, ascore)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _cosine(vectors: Sequence[Sequence[float]]) -> float:
    if len(vectors) != 2 or not all(len(vector) for vector in vectors):
        raise InputError(
            f"the embeddings gave {len(vectors)} vectors for 2 texts, or an empty one: each text needs one"
        )
    a, b = vectors
    lengths = math.hypot(*a) * math.hypot(*b)
    return _unit(math.fsum(x * y for x, y in zip(a, b, strict=True)) / lengths) if lengths else 0.0


def _unit(value: Any) -> float:
    number = float(value)
    if math.isnan(number):
        raise InputError("the similarity of two texts is not a number")
    return min(1.0, max(0.0, number))
