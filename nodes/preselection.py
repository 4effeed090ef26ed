"""Choosing the guidelines that a matching pass judges, without a chat model, for agents with very many guidelines.

Guidelines are judged in batches that are formed once. If an agent has many, a matching pass asks only the batches
nearest to the conversation, measured by LangChain embeddings or, without these, by the spelling of words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Sequence
from functools import partial
from heapq import nlargest
from math import inf, log
from typing import Any

from langchain_core.embeddings import Embeddings

from arq_graph.agent.guideline import Guideline
from arq_graph.errors import InputError, ModelRequestError, ModelUnavailableError, require_type
from arq_graph.nodes.blueprint_node import DeferredCall
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.failures import classify_failure

MAX_CHARACTERS = 2_000
"""The most characters of one message or result in the search text."""

_SERVICE = "the embeddings that choose among guidelines"
_WORD = re.compile(r"[^\W_]+")
# Of a word with a space on each side: four characters, or all three of a word with one letter; two characters of
# Chinese, Japanese and Korean, whose words are shorter.
_CHARACTER_RUN = re.compile(r"(?=([\u3040-\u9fff\uac00-\ud7a3]{2}|.{4}|^...$))")


class Preselection:
    """Chooses up to `max_batches` batches by how near their two nearest guidelines are to a search text.

    With only one, a batch that happens to share a word with the text would rank like one about its subject.
    """

    def __init__(
        self, batches: Sequence[Sequence[Guideline]], max_batches: int, embeddings: Embeddings | None
    ) -> None:
        self._batches = batches
        self._max_batches = max_batches
        texts: list[str] = []
        for batch in batches:
            for guideline in batch:
                texts.append(f"{guideline.condition_text}. {guideline.action or ''}")
        self._index: _SpellingIndex | _EmbeddingIndex
        if embeddings is None:
            self._index = _SpellingIndex(texts)
            self._min_score = 0.0  # the score of a text that shares no run of characters
        else:
            self._index = _EmbeddingIndex(texts, embeddings)
            self._min_score = -inf

    def choose_guidelines(self, search_text: str) -> Generator[DeferredCall, Any, set[str]]:
        """Return the ids of the guidelines in the nearest batches; yields the function that measures nearness."""
        if not search_text:
            return set()
        scores = yield partial(self._index.score, search_text)
        scored_batches: list[tuple[float, Sequence[Guideline]]] = []
        start = 0
        for batch in self._batches:
            end = start + len(batch)
            scored_batches.append((sum(nlargest(2, scores[start:end])), batch))
            start = end
        chosen: set[str] = set()
        for score, batch in nlargest(self._max_batches, scored_batches, key=lambda pair: pair[0]):
            if score > self._min_score:
                chosen.update(guideline.id for guideline in batch)
        return chosen


def build_search_text(conversation: Conversation, *, is_rematch: bool) -> str:
    """Return what to search with: the agent's last message and what the customer said since, or new tool results."""
    if is_rematch:
        lines = conversation.current_turn_results
    else:
        lines = conversation.lines[_find_last_agent_line(conversation) :]
    return "\n".join(line.text[:MAX_CHARACTERS] for line in lines)


def _find_last_agent_line(conversation: Conversation) -> int:
    """Return the position of the agent's last line before the customer's, or 0."""
    position = 0
    for number, line in enumerate(conversation.lines):
        if line is conversation.last_customer_line:
            return position
        if line.speaker == "agent":
            position = number
    return 0


class _SpellingIndex:
    """Scores texts by the short runs of characters that they share with a query; rare runs count more."""

    def __init__(self, texts: Sequence[str]) -> None:
        positions: dict[str, list[int]] = defaultdict(list)
        for position, text in enumerate(texts):
            for run in _split_into_runs(text):
                positions[run].append(position)
        # A run in more than a tenth of many texts says little, and would cost the most.
        max_texts = max(10, len(texts) // 10)
        self._positions: dict[str, list[int]] = {}
        for run, text_positions in positions.items():
            if len(text_positions) <= max_texts:
                self._positions[run] = text_positions
        self._size = len(texts)

    def score(self, query: str) -> list[float]:
        scores = [0.0] * self._size
        for run in _split_into_runs(query):
            positions = self._positions.get(run, [])
            for position in positions:
                scores[position] += log(self._size / len(positions))
        return scores


def _split_into_runs(text: str) -> set[str]:
    runs: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        runs.update(_CHARACTER_RUN.findall(f" {word} "))
    return runs


class _EmbeddingIndex:
    """Scores texts by the cosine between their embeddings and a query's; embeds the texts at the first query."""

    def __init__(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        hint = "give LangChain embeddings, such as OpenAIEmbeddings()"
        self._embeddings = require_type("embeddings", embeddings, Embeddings, hint)  # type: ignore[type-abstract]
        try:
            import numpy  # an optional dependency
        except ImportError:
            raise InputError('embeddings need numpy: pip install "arq_graph[embeddings]"') from None
        self._numpy = numpy
        self._texts = list(texts)
        self._vectors: Any = None

    def score(self, query: str) -> list[float]:
        try:
            # Without a lock, which would block all turns behind one call that hangs.
            if self._vectors is None:
                vectors = self._embeddings.embed_documents(self._texts)
                self._vectors = self._normalize(vectors, len(self._texts))
            query_vectors = [self._embeddings.embed_query(query)]
            query_vector = self._normalize(query_vectors, 1, width=self._vectors.shape[1])[0]
        except Exception as error:
            failure = classify_failure(error)
            if not failure.is_from_provider:
                raise  # an error in code stays itself
            if not failure.is_transient:
                raise failure.make_request_error("matcher", _SERVICE) from error
            reason = failure.description.removesuffix(".")
            raise ModelUnavailableError(f"matcher: {_SERVICE} failed: {reason}. Try again later.") from error
        scores: list[float] = (self._vectors @ query_vector).tolist()
        return scores

    def _normalize(self, vectors: Any, count: int, width: int | None = None) -> Any:
        """Scale the vectors to length 1.

        Raises:
            ModelRequestError: They aren't `count` vectors of one width, or one of them has no direction.
        """
        expected = f"shape ({count}, {width or 'n'}), and no length of 0, inf or nan"
        source = f"matcher: the vectors that {type(self._embeddings).__name__} returned"
        advice = f"They must have the {expected}. Check the embedding model."
        try:
            matrix = self._numpy.asarray(vectors, "float32")
            lengths = self._numpy.linalg.norm(matrix, axis=-1, keepdims=True)
        except (TypeError, ValueError):  # which numpy raises for anything but a matrix of numbers
            raise ModelRequestError(f"{source} have different lengths or aren't numbers. {advice}") from None
        has_right_shape = matrix.shape == (count, width or matrix.shape[-1])
        if not (has_right_shape and lengths.all() and self._numpy.isfinite(lengths).all()):
            raise ModelRequestError(
                f"{source} have the shape {matrix.shape} and lengths from {lengths.min():g} to {lengths.max():g}. "
                f"{advice}"
            )
        return matrix / lengths
