"""The pages of a manual in LangChain's in-memory vector store.

Its embeddings count words, so that the example needs no key. Put those of a provider in their place, such as
`init_embeddings("openai:text-embedding-3-small")`, and the store that you use.

pip install "arq_graph[embeddings]"
"""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

PAGES = Path(__file__).parent / "pages"


class WordCounts(Embeddings):
    """Counts of the beginnings of words, of which a text has many in common with another one about the same things."""

    size = 2_048

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        counts = [0.0] * self.size
        for word in re.findall(r"[a-z]{4,}", text.lower()):
            counts[crc32(word[:4].encode()) % self.size] += 1
        return counts


def read_pages() -> list[Document]:
    """Read each page as a document, whose title is its heading."""
    documents = []
    for path in sorted(PAGES.glob("*.md")):
        heading, _, text = path.read_text(encoding="utf-8").partition("\n")
        metadata = {"title": heading.removeprefix("# "), "source": path.name}
        documents.append(Document(" ".join(text.split()), metadata=metadata))
    return documents


def make_retriever() -> BaseRetriever:
    """Return the two pages that are nearest to a query."""
    store = InMemoryVectorStore.from_documents(read_pages(), WordCounts())
    return store.as_retriever(search_kwargs={"k": 2})
