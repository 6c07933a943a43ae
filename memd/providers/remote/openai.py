"""The embedding API of OpenAI and of compatible servers, and that of Voyage AI, which distinguishes questions from documents."""

from collections.abc import Sequence

import msgspec

from memd.config.settings import Remote
from memd.providers.api_keys import ProviderAddress
from memd.providers.provider import ProviderLimits
from memd.providers.remote import known_models
from memd.providers.remote.dialect import BadReply, HttpRequest, TextRole
from memd.providers.remote.replies import decoded

HOME = ProviderAddress("https://api.openai.com/v1", ("OPENAI_API_KEY",), endings=("/embeddings",), path="/v1")
ANY_HOME = ProviderAddress("", needs_key=False, endings=("/embeddings",), path="/v1")
DEFAULT_MODEL = "text-embedding-3-small"
REQUEST_TOKENS = 8000
REQUEST_TEXTS = 256  # the API takes 2048; a request that fails is put again as a whole


class _Item(msgspec.Struct):
    index: int
    embedding: list[float]


class _Reply(msgspec.Struct):
    data: list[_Item]


class OpenAI(msgspec.Struct, frozen=True):
    """POST {base}/embeddings."""

    provider: str
    model: str
    dimensions: int | None
    input_tokens: int
    prefixes: tuple[str, str]  # of queries, of documents
    input_types: tuple[str, str]  # likewise; "": none is sent
    limits: ProviderLimits
    sends_dimensions: bool

    @property
    def shape(self) -> tuple[str, ...]:
        """The settings besides the model that affect vectors."""
        return (*self.prefixes, *self.input_types, str(self.dimensions) if self.sends_dimensions else "")

    def embed(self, texts: Sequence[str], role: TextRole) -> HttpRequest:
        """Return the request for the vectors of some texts."""
        place = 0 if role is TextRole.QUERY else 1
        body: dict[str, object] = {
            "model": self.model,
            "input": [self.prefixes[place] + text for text in texts],
        }
        if self.sends_dimensions:
            body["dimensions"] = self.dimensions
        if self.input_types[place]:
            body["input_type"] = self.input_types[place]
        return HttpRequest("embeddings", msgspec.json.encode(body))

    def vectors(self, body: bytes, count: int) -> Sequence[Sequence[float]]:
        """Return the vectors in the order of their indexes, since the order of the list is not guaranteed.

        Raises:
            BadReply: it does not hold one vector a text.
        """
        return indexed(self.provider, body, count)


def openai(model: str, remote: Remote) -> OpenAI:
    """Create the dialect for OpenAI's service, or a proxy of it."""
    name = (model or DEFAULT_MODEL).removeprefix("openai/")
    facts = known_models.known(name)
    return OpenAI(
        provider="openai",
        model=name,
        dimensions=remote.dimensions or facts.dimensions,
        input_tokens=remote.max_input_tokens or max(facts.input_tokens, 8000),
        prefixes=(remote.query_prefix, remote.document_prefix),
        input_types=("", ""),
        limits=ProviderLimits(REQUEST_TOKENS, REQUEST_TEXTS, remote.concurrency),
        sends_dimensions=bool(remote.dimensions),
    )


def compatible(model: str, remote: Remote) -> OpenAI:
    """Create the dialect for any server with /v1/embeddings. Prefixes are sent only if configured: some servers add the model's own."""
    facts = known_models.known(model)
    return OpenAI(
        provider="openai-compatible",
        model=model,
        dimensions=remote.dimensions or None,
        input_tokens=remote.max_input_tokens or facts.input_tokens,
        prefixes=(remote.query_prefix, remote.document_prefix),
        input_types=(remote.query_input_type, remote.document_input_type),
        limits=ProviderLimits(REQUEST_TOKENS, REQUEST_TEXTS, remote.concurrency),
        sends_dimensions=bool(remote.dimensions),
    )


def indexed(provider: str, body: bytes, count: int) -> list[list[float]]:
    """Return the vectors of {"data": [{"index", "embedding"}]} in the order of index.

    Raises:
        BadReply: it is no such reply, or an index is missing, twice there or too large.
    """
    reply = decoded(provider, body, _Reply)
    by_index = {item.index: item.embedding for item in reply.data}
    if len(reply.data) != count or by_index.keys() != set(range(count)):
        raise BadReply(f"{provider}: {count} texts were sent, and vectors of {len(by_index)} came back")
    return [by_index[index] for index in range(count)]


VOYAGE_HOME = ProviderAddress(
    "https://api.voyageai.com/v1", ("VOYAGE_API_KEY",), endings=("/embeddings",), path="/v1"
)
VOYAGE_MODEL = "voyage-4-large"
VOYAGE_REQUEST_TEXTS = 256  # the API takes 1000


class Voyage(msgspec.Struct, frozen=True):
    """POST {base}/embeddings with an input_type."""

    model: str
    dimensions: int | None
    input_tokens: int
    limits: ProviderLimits
    sends_dimensions: bool
    provider: str = "voyage"

    @property
    def shape(self) -> tuple[str, ...]:
        """The settings besides the model that affect vectors."""
        return (str(self.dimensions),) if self.sends_dimensions else ()

    def embed(self, texts: Sequence[str], role: TextRole) -> HttpRequest:
        """Return the request for the vectors of some texts; the server rejects texts that are too long, and truncates none."""
        body: dict[str, object] = {
            "model": self.model,
            "input": list(texts),
            "input_type": role.value,
            "truncation": False,
        }
        if self.sends_dimensions:
            body["output_dimension"] = self.dimensions
        return HttpRequest("embeddings", msgspec.json.encode(body))

    def vectors(self, body: bytes, count: int) -> Sequence[Sequence[float]]:
        """Return the vectors in the order of their indexes.

        Raises:
            BadReply: it does not hold one vector a text.
        """
        return indexed(self.provider, body, count)


def voyage(model: str, remote: Remote) -> Voyage:
    """Create the dialect for Voyage's service, or a proxy of it."""
    name = (model or VOYAGE_MODEL).removeprefix("voyage/")
    facts = known_models.known(name)
    return Voyage(
        model=name,
        dimensions=remote.dimensions or facts.dimensions,
        input_tokens=remote.max_input_tokens or max(facts.input_tokens, 16_000),
        limits=ProviderLimits(REQUEST_TOKENS, VOYAGE_REQUEST_TEXTS, remote.concurrency),
        sends_dimensions=bool(remote.dimensions),
    )
