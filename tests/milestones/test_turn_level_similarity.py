"""How near two answers are: by words, and by embeddings."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from arq_graph.errors import InputError
from arq_graph.milestones.turn_level.similarity import MOST_WORDS, lexical_similarity, scorer


class Known(Embeddings):
    """Vectors written down, and the batches that were asked for."""

    def __init__(self, **vectors: list[float]) -> None:
        self.vectors = vectors
        self.batches: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.batches.append(texts)
        return [self.vectors[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        raise NotImplementedError


def longest_common(a: list[str], b: list[str]) -> int:
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest_common(a[1:], b[1:])
    return max(longest_common(a[1:], b), longest_common(a, b[1:]))


@pytest.mark.parametrize(
    ("truth", "predicted", "similarity"),
    [
        ("Your order is late.", "your ORDER is late", 1),
        ("a b c d", "a x c d", 0.75),  # a c d: 2 · 3 / (4 + 4)
        ("a b", "b a", 0.5),  # either alone: 2 · 1 / (2 + 2)
        ("a b", "c d", 0),
        ("a", "", 0),
        ("", "", 1),
        ("?", "!", 0),
        ("?", "? ", 1),
        ("ﬁne", "fine", 1),
        ("东京天气", "东京", 2 * 2 / 6),
    ],
)
def test_words_are_compared_in_their_order(truth, predicted, similarity):
    assert lexical_similarity(truth, predicted) == pytest.approx(similarity)


@given(st.lists(st.sampled_from("abc"), max_size=7), st.lists(st.sampled_from("abc"), max_size=7))
@settings(max_examples=80)
def test_it_equals_the_plain_definition_and_is_1_only_for_the_same_words(a, b):
    found = lexical_similarity(" ".join(a), " ".join(b))
    assert found == (2 * longest_common(a, b) / (len(a) + len(b)) if a or b else 1)
    assert (found == 1) == (a == b)
    assert found == lexical_similarity(" ".join(b), " ".join(a))


def test_of_very_long_texts_the_first_words_that_differ_are_compared():
    many = MOST_WORDS + 1
    a, b = "a " * many, "b " * many
    assert lexical_similarity(a + "end", b + "end") == 2 / (2 * many + 2)  # what both end with counts
    assert lexical_similarity("x " + b + "c y", "x " + a + "c z") == 2 / (
        2 * many + 6
    )  # the c comes too late
    assert lexical_similarity(a + "end", a + "end") == 1
    assert 0.999 < lexical_similarity(a + "x " + a, a + "y " + a) < 1


def test_embeddings_are_asked_once_for_many_pairs_and_not_for_equal_texts():
    known = Known(a=[1, 0], b=[1, 1], c=[-1, 0], zero=[0, 0])
    scores = scorer(known).scores([("a", "b"), ("a", "c"), ("a", " a "), ("a", "zero")])
    assert scores == pytest.approx([1 / math.sqrt(2), 0, 1, 0])  # a negative cosine counts as 0
    assert known.batches == [["a", "b", "c", "zero"]]


def test_equal_texts_alone_need_no_embedding():
    known = Known()
    assert scorer(known).scores([("same", "same")]) == [1]
    assert known.batches == []


async def test_awaited_scores_are_the_same():
    known = Known(a=[1, 0], b=[1, 1])
    pairs = [("a", "b"), ("c", "c")]
    assert await scorer(known).ascores(pairs) == scorer(known).scores(pairs)
    assert await scorer(None).ascores(pairs) == [0, 1]


def test_embeddings_that_lose_a_text_are_an_error():
    class Lossy(Known):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0]]

    with pytest.raises(InputError, match="1 vectors for 2 texts"):
        scorer(Lossy()).scores([("a", "b")])


def test_what_cannot_score_is_said():
    with pytest.raises(InputError, match="give LangChain embeddings"):
        scorer("bge")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="not a number"):
        scorer(lambda a, b: math.nan).scores([("a", "b")])


def test_a_function_is_kept_between_0_and_1():
    assert scorer(lambda a, b: 7).scores([("a", "b")]) == [1]
