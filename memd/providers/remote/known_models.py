"""Properties of embedding models by name."""

import re

import msgspec


class KnownModel(msgspec.Struct, frozen=True):
    """The documented properties of a model."""

    dimensions: int | None = None  # None: it depends on settings
    input_tokens: int = 512  # the limit of one text; the smallest common limit for an unknown model
    query_prefix: str = ""
    document_prefix: str = ""


_E5 = ("query: ", "passage: ")
_NOMIC = ("search_query: ", "search_document: ")
_GEMMA = ("task: search result | query: ", "title: none | text: ")
_INSTRUCT = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
_SENTENCE = "Represent this sentence for searching relevant passages: "

# Limits are a little below the documented ones, since tokens are estimated.
_KNOWN = {
    # OpenAI: 8192 tokens a text.
    "text-embedding-3-small": KnownModel(1536, 8000),
    "text-embedding-3-large": KnownModel(3072, 8000),
    "text-embedding-ada-002": KnownModel(1536, 8000),
    # Google: 2048; the second generation 8192, and it heeds no task type, but words before the text.
    "gemini-embedding-001": KnownModel(3072, 2000),
    "gemini-embedding-2": KnownModel(3072, 8000, *_GEMMA),
    # Voyage AI.
    "voyage-4-large": KnownModel(1024, 32_000),
    "voyage-4": KnownModel(1024, 32_000),
    "voyage-4-lite": KnownModel(1024, 32_000),
    "voyage-4-nano": KnownModel(None, 32_000),
    "voyage-3-large": KnownModel(1024, 32_000),
    "voyage-3.5": KnownModel(1024, 32_000),
    "voyage-3.5-lite": KnownModel(1024, 32_000),
    "voyage-3": KnownModel(1024, 32_000),
    "voyage-3-lite": KnownModel(512, 32_000),
    "voyage-code-3": KnownModel(1024, 32_000),
    "voyage-finance-2": KnownModel(1024, 32_000),
    "voyage-multilingual-2": KnownModel(1024, 32_000),
    "voyage-law-2": KnownModel(1024, 16_000),
    "voyage-code-2": KnownModel(1536, 16_000),
    # Local models. Ollama limits nomic-embed-text to 2048 tokens, although the model supports more.
    "nomic-embed-text": KnownModel(768, 2000, *_NOMIC),
    "nomic-embed-text-v2-moe": KnownModel(768, 500, *_NOMIC),
    "embeddinggemma": KnownModel(768, 2000, *_GEMMA),
    "mxbai-embed-large": KnownModel(1024, 500, _SENTENCE),
    "snowflake-arctic-embed": KnownModel(None, 500, _SENTENCE),
    "snowflake-arctic-embed2": KnownModel(1024, 8000, "query: "),
    "snowflake-arctic-embed-l-v2.0": KnownModel(1024, 8000, "query: "),
    "bge-m3": KnownModel(1024, 8000),
    "qwen3-embedding": KnownModel(None, 8000, _INSTRUCT),
    "bge-large": KnownModel(1024, 500),
    "all-minilm": KnownModel(384, 250),
    "paraphrase-multilingual": KnownModel(768, 120),
    "multilingual-e5-small": KnownModel(384, 500, *_E5),
    "multilingual-e5-base": KnownModel(768, 500, *_E5),
    "multilingual-e5-large": KnownModel(1024, 500, *_E5),
    "multilingual-e5-large-instruct": KnownModel(1024, 500, _INSTRUCT),
}
_MAKERS = {
    "openai": re.compile(r"text-embedding-(?:3-|ada-)"),
    "gemini": re.compile(r"gemini-embedding-|text-embedding-00\d|embedding-001"),
    "voyage": re.compile(r"voyage-"),
}


def known(name: str) -> KnownModel:
    """Return the properties of a model; organisation, tag and quantisation in its name are ignored."""
    stem = _stem(name)
    # LM Studio prefixes all models: "text-embedding-nomic-embed-text-v1.5".
    for whole in (stem, stem.removeprefix("text-embedding-")):
        parts = whole.split("-")
        # "embeddinggemma-300m-qat-q8_0.gguf" is "embeddinggemma".
        for length in range(len(parts), 0, -1):
            model = _KNOWN.get("-".join(parts[:length]))
            if model is not None:
                return model
    return KnownModel()


def is_from(maker: str, name: str) -> bool:
    """Return whether a model may be from openai, gemini or voyage; the empty name fits each."""
    return not name or _MAKERS[maker].match(_stem(name)) is not None


def _stem(name: str) -> str:
    return name.lower().rpartition("/")[2].partition(":")[0]
