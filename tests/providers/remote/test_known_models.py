import pytest

from memd.providers.remote.known_models import KnownModel, is_from, known
from tests.bounds import shipped


@pytest.mark.parametrize(
    ("name", "dimensions"),
    [
        ("text-embedding-3-small", 1536),
        ("openai/text-embedding-3-large", 3072),
        ("nomic-embed-text", 768),
        ("nomic-embed-text:v1.5", 768),
        ("nomic-ai/nomic-embed-text-v1.5-GGUF", 768),
        ("embeddinggemma:300m-qat-q8_0", 768),
        ("embeddinggemma-300m-qat-Q8_0.gguf", 768),
        ("BAAI/bge-m3", 1024),
        ("bge-m3:latest", 1024),
        ("text-embedding-nomic-embed-text-v1.5", 768),
        ("text-embedding-embeddinggemma-300m-qat", 768),
        ("gemini-embedding-2-preview", 3072),
        ("voyage-3-lite", 512),
        ("intfloat/multilingual-e5-large-instruct", 1024),
    ],
)
def test_a_model_is_known_by_any_of_its_names(name: str, dimensions: int) -> None:
    """With an organisation before it, a tag, a version or a quantisation after it."""
    assert known(name).dimensions == dimensions


@pytest.mark.parametrize(
    ("dimensions", "tokens", "names"),
    [
        (None, 500, "snowflake-arctic-embed"),
        (None, 8_000, "qwen3-embedding"),
        (None, 32_000, "voyage-4-nano"),
        (384, 250, "all-minilm"),
        (384, 500, "multilingual-e5-small"),
        (512, 32_000, "voyage-3-lite"),
        (768, 120, "paraphrase-multilingual"),
        (768, 500, "nomic-embed-text-v2-moe multilingual-e5-base"),
        (768, 2_000, "nomic-embed-text embeddinggemma"),
        (1024, 500, "mxbai-embed-large bge-large multilingual-e5-large multilingual-e5-large-instruct"),
        (1024, 8_000, "snowflake-arctic-embed2 snowflake-arctic-embed-l-v2.0 bge-m3"),
        (1024, 16_000, "voyage-law-2"),
        (
            1024,
            32_000,
            "voyage-4-large voyage-4 voyage-4-lite voyage-3-large voyage-3.5 voyage-3.5-lite voyage-3 voyage-code-3 voyage-finance-2 voyage-multilingual-2",
        ),
        (1536, 8_000, "text-embedding-3-small text-embedding-ada-002"),
        (1536, 16_000, "voyage-code-2"),
        (3072, 2_000, "gemini-embedding-001"),
        (3072, 8_000, "text-embedding-3-large gemini-embedding-2"),
    ],
)
def test_what_is_known_of_each(dimensions: int | None, tokens: int, names: str) -> None:
    """As their makers document them: a text that is longer than the model takes is refused, or cut."""
    for name in names.split():
        assert (known(name).dimensions, known(name).input_tokens) == (dimensions, tokens), name


def test_the_longest_name_counts() -> None:
    """A model whose name begins like another's is not that one."""
    assert known("multilingual-e5-large-instruct").document_prefix == ""
    assert known("multilingual-e5-large").document_prefix == "passage: "
    assert known("nomic-embed-text-v2-moe").input_tokens < known("nomic-embed-text").input_tokens
    assert known("voyage-4-nano").dimensions is None
    assert known("text-embedding-3-small").query_prefix == ""


@pytest.mark.parametrize(
    ("maker", "name", "can_be"),
    [
        ("openai", "", True),
        ("openai", "text-embedding-3-large", True),
        ("openai", "openai/text-embedding-ada-002", True),
        ("openai", "text-embedding-004", False),
        ("openai", "bge-m3", False),
        ("gemini", "models/gemini-embedding-001", True),
        ("gemini", "text-embedding-004", True),
        ("gemini", "text-embedding-3-small", False),
        ("voyage", "voyage-4-large", True),
        ("voyage", "multilingual-e5-small-q4", False),
    ],
)
def test_a_name_tells_whose_model_it_is(maker: str, name: str, *, can_be: bool) -> None:
    """So that a model is not asked for where it cannot be."""
    assert is_from(maker, name) is can_be


@pytest.mark.parametrize("name", ["", "something-else", "gpt-4o", "-", "a/b:c"])
def test_nothing_is_assumed_of_others(name: str) -> None:
    """Neither a length nor prefixes."""
    assert known(name) == KnownModel()
    assert known(name).input_tokens == shipped("memd.providers.remote.known_models.KnownModel.input_tokens")
