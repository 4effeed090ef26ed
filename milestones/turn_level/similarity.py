"""How near a predicted final answer is to the true one: by embeddings, or by words where there are none."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from langchain_core.runnables import run_in_executor

from arq_graph.errors import InputError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

MOST_WORDS = 20_000

Pair = tuple[str, str]
TextSimilarity = Callable[[str, str], float]

# Scripts without spaces between words are taken character by character.
_UNSPACED = r"\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def lexical_similarity(truth: str, predicted: str) -> float:
    """The F1 score of the longest common subsequence of words (ROUGE-L; Lin, 2004): 2 · LCS / (m + n).

    Words are compared without case, punctuation and compatibility forms of characters. It measures wording, not
    meaning: an answer that says the same in other words scores low.

    Between the words that both begin with and those that both end with, the first 20,000 words of each
    (`MOST_WORDS`) are compared; further ones count as different, so the score of longer texts may be too low.

    Returns:
        0 to 1; 1 only where the words are the same in the same order. Texts without any word are compared as
        they are. Cost O(m + n), and O(m · n / 64) over the words that are compared.
    """
    a, b = _tokens(truth), _tokens(predicted)
    if not a and not b:
        return float(truth.strip() == predicted.strip())
    first = _same(zip(a, b, strict=False))
    last = _same(zip(reversed(a[first:]), reversed(b[first:]), strict=False))
    between = (words[first : len(words) - last][:MOST_WORDS] for words in (a, b))
    return 2 * (first + last + _common(*between)) / (len(a) + len(b))


@runtime_checkable
class Scorer(Protocol):
    """Scores pairs of texts, 0 to 1 each.

    Args:
        name: What it is, for reports and to tell one run from another.
    """

    name: str

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair, in order."""

    async def ascores(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair, in order, without blocking."""


class FunctionScorer:
    """Scores by a function of two texts.

    Args:
        function: Gives 0 to 1.
    """

    def __init__(self, function: TextSimilarity = lexical_similarity) -> None:
        self.name = getattr(function, "__name__", type(function).__name__)
        self._function = function

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair, in order."""
        return [_unit(self._function(truth, predicted)) for truth, predicted in pairs]

    async def ascores(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair, in order, in a thread."""
        return await run_in_executor(None, self.scores, pairs)


class EmbeddingScorer:
    """Scores by the cosine of two texts' embeddings; all pairs are embedded in one batch.

    A negative cosine counts as 0. Texts that are equal without white space around them score 1 and are not
    embedded. Pre-Act 4.2 takes BGE (Xiao et al., 2023); that is

        from langchain_huggingface import HuggingFaceEmbeddings  # pip install langchain-huggingface

        evaluate_turns(model, "talks.json", similarity=HuggingFaceEmbeddings(model_name="BAAI/bge-large-en-v1.5"))

    which downloads the model's weights when it is first used.

    Args:
        embeddings: Any LangChain embeddings.
    """

    def __init__(self, embeddings: Embeddings) -> None:
        named = getattr(embeddings, "model_name", None) or getattr(embeddings, "model", None)
        kind = type(embeddings).__name__
        self.name = f"{kind}({named})" if isinstance(named, str) else kind
        self._embeddings = embeddings

    def scores(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair, in order.

        Raises:
            InputError: The embeddings give another number of vectors than there are texts, or an empty one.
        """
        texts = _different(pairs)
        return _cosines(pairs, texts, self._embeddings.embed_documents(texts) if texts else [])

    async def ascores(self, pairs: Sequence[Pair]) -> list[float]:
        """One score a pair, in order, without blocking; as `scores`."""
        texts = _different(pairs)
        return _cosines(pairs, texts, await self._embeddings.aembed_documents(texts) if texts else [])


def scorer(similarity: Scorer | Embeddings | TextSimilarity | None) -> Scorer:
    """What scores the answers.

    Args:
        similarity: LangChain embeddings, a function of the true and the predicted text, a scorer, or None for
            `lexical_similarity`.

    Raises:
        InputError: It is none of these.
    """
    if similarity is None:
        return FunctionScorer()
    if isinstance(similarity, Scorer):
        return similarity
    if hasattr(similarity, "embed_documents"):
        return EmbeddingScorer(cast("Embeddings", similarity))
    if callable(similarity):
        return FunctionScorer(similarity)
    raise InputError(
        f"similarity is {type(similarity).__name__}: give LangChain embeddings or a function of two texts"
    )


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _same(pairs: Iterable[Pair]) -> int:
    """How many pairs, from the first, are of the same word twice."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """The length of the longest common subsequence; a row of the table is one integer (Hyyrö, 2004)."""
    places: dict[str, int] = {}
    for index, token in enumerate(a):
        places[token] = places.get(token, 0) | 1 << index
    everything = (1 << len(a)) - 1
    row = everything
    for token in b:
        matches = row & places.get(token, 0)
        row = ((row + matches) | (row - matches)) & everything
    return len(a) - row.bit_count()


def _different(pairs: Sequence[Pair]) -> list[str]:
    """The texts to embed, each once."""
    return list(dict.fromkeys(text for pair in pairs if not _equal(pair) for text in pair))


def _equal(pair: Pair) -> bool:
    return pair[0].strip() == pair[1].strip()


def _cosines(pairs: Sequence[Pair], texts: Sequence[str], vectors: Sequence[Sequence[float]]) -> list[float]:
    if len(vectors) != len(texts) or not all(len(vector) for vector in vectors):
        raise InputError(
            f"the embeddings gave {len(vectors)} vectors for {len(texts)} texts, or an empty one: each text needs one"
        )
    known = dict(zip(texts, vectors, strict=True))
    return [1.0 if _equal(pair) else _cosine(known[pair[0]], known[pair[1]]) for pair in pairs]


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    lengths = math.hypot(*a) * math.hypot(*b)
    return _unit(math.fsum(x * y for x, y in zip(a, b, strict=True)) / lengths) if lengths else 0.0


def _unit(value: Any) -> float:
    number = float(value)
    if math.isnan(number):
        raise InputError("the similarity of two texts is not a number")
    return min(1.0, max(0.0, number))
