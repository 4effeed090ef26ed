"""How near a predicted final answer is to the true one: by embeddings, or by words where there are none."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from langchain_core.runnables import Runnable, RunnableLambda
from rapidfuzz.distance import LCSseq

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

TextSimilarity = Callable[[str, str], float]

# Scripts without spaces between words are taken character by character.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def lexical_similarity(truth: str, predicted: str) -> float:
    """The F1 score of the longest common subsequence of words (ROUGE-L; Lin, 2004): 2 · LCS / (m + n).

    Words are compared without case, punctuation and compatibility forms of characters. It measures wording, not
    meaning: an answer that says the same in other words scores low.

    Returns:
        0 to 1; 1 only where the words are the same in the same order. Texts without any word are compared as
        they are. Cost O(m · n / 64).
    """
    a, b = _tokens(truth), _tokens(predicted)
    if not a and not b:
        return float(truth.strip() == predicted.strip())
    return 2 * LCSseq.similarity(a, b) / (len(a) + len(b))


def similarity_of_pairs(similarity: Embeddings | TextSimilarity) -> Runnable[tuple[str, str], float]:
    """What scores pairs of the true and the predicted text; by the cosine of embeddings, a negative one as 0."""
    if callable(similarity):
        return RunnableLambda(lambda pair: similarity(*pair))

    embed, aembed = similarity.embed_documents, similarity.aembed_documents

    async def acosine(pair: tuple[str, str]) -> float:
        return _cosine(await aembed([*pair]))

    return RunnableLambda(lambda pair: _cosine(embed([*pair])), acosine)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _cosine(vectors: Sequence[Sequence[float]]) -> float:
    a, b = vectors
    lengths = math.hypot(*a) * math.hypot(*b)
    cosine = math.fsum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0
    return min(1.0, max(0.0, cosine))
