"""Which guidelines a look is about, told without a chat model: for agents of more guidelines than a turn can judge.

Guidelines are judged in batches that are formed once. Where an agent has many, a look at the conversation asks those
batches alone that lie nearest to what was said: by LangChain embeddings, or without these by the words' spelling.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import suppress
from functools import partial
from heapq import nlargest
from math import inf, log
from typing import Any

from langchain_core.embeddings import Embeddings

from arq_graph.agent.spec import Guideline
from arq_graph.errors import InputError, ModelRequestError, ModelUnavailableError, require_type
from arq_graph.nodes.blueprint_node import UserFunction
from arq_graph.reasoning.conversation import Conversation
from arq_graph.reasoning.failures import classify_failure

MAX_CHARACTERS = 2_000
"""Of one message or result, in what is searched with."""

_WORD = re.compile(r"[^\W_]+")
_RUN = re.compile(r"(?=([\u3040-\u9fff\uac00-\ud7a3]{2}|.{4}|^...$))")
"""Four characters, or a whole short word; of Chinese, Japanese and Korean, whose words are shorter, two."""


class Preselection:
    """Chooses batches, at most `most`, by how near the two nearest guidelines of each are to what is searched with.

    The second of them tells a batch about a matter from one that happens to have a word of it.
    """

    def __init__(
        self, batches: Sequence[Sequence[Guideline]], most: int, embeddings: Embeddings | None
    ) -> None:
        self._batches, self._most = batches, most
        texts = [f"{each.condition_text}. {each.action or ''}" for batch in batches for each in batch]
        self._index = _Spelling(texts) if embeddings is None else _Meaning(texts, embeddings)
        self._least = 0 if embeddings is None else -inf  # no run of characters is shared

    def nearest(self, query: str) -> Generator[UserFunction, Any, set[str]]:
        """The ids of the guidelines in the batches that are nearest; yields what is to be run to know it."""
        if not query:
            return set()
        scores = iter((yield partial(self._index.scores, query)))
        near = [(sum(nlargest(2, (next(scores) for _ in batch))), batch) for batch in self._batches]
        chosen = nlargest(self._most, near, key=lambda each: each[0])
        return {guideline.id for score, batch in chosen if score > self._least for guideline in batch}


def build_search_text(conversation: Conversation, *, again: bool) -> str:
    """What to search with: the agent's last message and what the customer said since; in a later look, the results."""
    lines, last = conversation.lines, conversation.last_customer_line
    before = enumerate(lines[: lines.index(last)] if last else ())
    since = max((number for number, line in before if line.speaker == "agent"), default=0)
    asked = conversation.current_turn_results if again else lines[since:]
    return "\n".join(line.message.text[:MAX_CHARACTERS] for line in asked)


class _Spelling:
    """How many short runs of characters a text shares with others, rare ones counting more; it knows no language."""

    def __init__(self, texts: Sequence[str]) -> None:
        places: dict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for run in _runs(text):
                places[run].append(number)
        # What stands in more than a tenth of many texts tells nothing, and would cost the most.
        most = max(10, len(texts) // 10)
        self._places = {run: at for run, at in places.items() if len(at) <= most}
        self._size = len(texts)

    def scores(self, query: str) -> list[float]:
        scores = [0.0] * self._size
        for run in _runs(query):
            at = self._places.get(run, ())
            for number in at:
                scores[number] += log(self._size / len(at))
        return scores


def _runs(text: str) -> set[str]:
    return {run for word in _WORD.findall(text.casefold()) for run in _RUN.findall(f" {word} ")}


class _Meaning:
    """How near texts lie by their embeddings: these are asked for once, when they are first needed."""

    def __init__(self, texts: Sequence[str], embeddings: Embeddings) -> None:
        way = "give LangChain embeddings, such as OpenAIEmbeddings()"
        self._embeddings = require_type("embeddings", embeddings, Embeddings, way)  # type: ignore[type-abstract]
        try:
            import numpy  # an optional dependency
        except ImportError:
            raise InputError('embeddings need numpy: pip install "arq_graph[embeddings]"') from None
        self._texts, self._numpy = list(texts), numpy
        self._vectors: Any = None

    def scores(self, query: str) -> list[float]:
        try:
            if self._vectors is None:  # without a lock, as all turns would wait behind one call that hangs
                made = self._embeddings.embed_documents(self._texts)
                self._vectors = self._checked(made, len(self._texts))
            near = self._checked([self._embeddings.embed_query(query)], 1, self._vectors.shape[1])
        except Exception as error:
            if not (failure := classify_failure(error)).from_provider:
                raise  # a bug somewhere stays itself
            whom = "the embeddings that choose among guidelines"
            if not failure.transient:
                raise failure.rejected("matcher", whom) from error
            words = failure.words.removesuffix(".")
            raise ModelUnavailableError(f"matcher: {whom} failed: {words}. Try again later.") from error
        scores: list[float] = (self._vectors @ near[0]).tolist()
        return scores

    def _checked(self, made: Any, texts: int, width: int | None = None) -> Any:
        """Vectors of length 1 for so many texts; anything else is refused, as it would silently be near to nothing."""
        came, norm = "of several lengths, or no numbers", self._numpy.linalg.norm
        with suppress(TypeError, ValueError):  # what is no matrix of numbers
            vectors = self._numpy.asarray(made, "float32")
            lengths = norm(vectors, axis=-1, keepdims=True)
            is_fit = vectors.shape == (texts, width or vectors.shape[-1])
            if is_fit and lengths.all() and self._numpy.isfinite(lengths).all():
                return vectors / lengths
            came = f"of the shape {vectors.shape} and of lengths from {lengths.min():g} to {lengths.max():g}"
        raise ModelRequestError(
            f"matcher: the vectors that {type(self._embeddings).__name__} returned are {came}. They must have the "
            f"shape ({texts}, {width or 'n'}), and no length of 0, inf or nan. Look at the model that it asks."
        )
