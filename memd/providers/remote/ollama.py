"""Ollama's own embedding API."""

from collections.abc import Sequence

import msgspec

from memd.config.settings import Remote
from memd.providers.api_keys import ProviderAddress
from memd.providers.provider import ProviderLimits
from memd.providers.remote import known_models
from memd.providers.remote.dialect import BadReply, HttpRequest, TextRole
from memd.providers.remote.replies import decoded

HOME = ProviderAddress(
    "http://127.0.0.1:11434", needs_key=False, endings=("/embeddings", "/embed", "/api", "/v1")
)
DEFAULT_MODEL = "nomic-embed-text"
REQUEST_TOKENS = 8000
REQUEST_TEXTS = 64
CONCURRENCY = 2  # it computes on this machine, or on one like it


class _Reply(msgspec.Struct):
    embeddings: list[list[float]]


class Ollama(msgspec.Struct, frozen=True):
    """POST {base}/api/embed; the vectors are in the order of the texts."""

    model: str
    input_tokens: int
    prefixes: tuple[str, str]  # of queries, of documents
    limits: ProviderLimits
    wanted_dimensions: int
    provider: str = "ollama"

    @property
    def dimensions(self) -> int | None:
        """The requested dimensions; None if none were requested: only the server knows those of a model."""
        return self.wanted_dimensions or None

    @property
    def shape(self) -> tuple[str, ...]:
        """The settings besides the model that affect vectors."""
        return (*self.prefixes, str(self.wanted_dimensions))

    def embed(self, texts: Sequence[str], role: TextRole) -> HttpRequest:
        """Return the request for the vectors of some texts; the server rejects texts that are too long, and truncates none."""
        prefix = self.prefixes[0 if role is TextRole.QUERY else 1]
        body: dict[str, object] = {
            "model": self.model,
            "input": [prefix + text for text in texts],
            "truncate": False,
        }
        if self.wanted_dimensions:
            body["dimensions"] = self.wanted_dimensions
        return HttpRequest("api/embed", msgspec.json.encode(body))

    def vectors(self, body: bytes, count: int) -> Sequence[Sequence[float]]:
        """Return the vectors in order.

        Raises:
            BadReply: it does not hold one vector a text.
        """
        reply = decoded(self.provider, body, _Reply)
        if len(reply.embeddings) != count:
            raise BadReply(f"ollama: {count} texts were sent, and {len(reply.embeddings)} vectors came back")
        return reply.embeddings


def ollama(model: str, remote: Remote) -> Ollama:
    """Create the dialect for the server on this machine, or another one."""
    name = (model or DEFAULT_MODEL).removeprefix("ollama/")
    facts = known_models.known(name)
    return Ollama(
        model=name,
        input_tokens=remote.max_input_tokens or facts.input_tokens,
        prefixes=(remote.query_prefix or facts.query_prefix, remote.document_prefix or facts.document_prefix),
        limits=ProviderLimits(REQUEST_TOKENS, REQUEST_TEXTS, min(remote.concurrency, CONCURRENCY)),
        wanted_dimensions=remote.dimensions,
    )
