"""Google's Gemini embedding API."""

from collections.abc import Sequence

import msgspec

from memd.config.settings import Remote
from memd.providers.api_keys import ProviderAddress
from memd.providers.provider import ProviderLimits
from memd.providers.remote import known_models
from memd.providers.remote.dialect import BadReply, HttpRequest, TextRole
from memd.providers.remote.replies import decoded

HOME = ProviderAddress(
    "https://generativelanguage.googleapis.com/v1beta",
    ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    endings=("/openai", "/models"),
    path="/v1beta",
)
KEY_HEADER = "x-goog-api-key"
DEFAULT_MODEL = "gemini-embedding-001"
REQUEST_TOKENS = 8000
REQUEST_TEXTS = 100  # more are refused

TASK = {TextRole.QUERY: "RETRIEVAL_QUERY", TextRole.DOCUMENT: "RETRIEVAL_DOCUMENT"}


class _Embedding(msgspec.Struct):
    values: list[float] = []


class _Reply(msgspec.Struct):
    embeddings: list[_Embedding]


class Gemini(msgspec.Struct, frozen=True):
    """POST {base}/models/{model}:batchEmbedContents; the vectors are in the order of the requests."""

    model: str
    dimensions: int | None
    input_tokens: int
    limits: ProviderLimits
    sends_dimensions: bool
    prefixes: tuple[str, str] | None = None  # of queries, of documents; None: the model takes a task type
    provider: str = "gemini"

    @property
    def shape(self) -> tuple[str, ...]:
        """The settings besides the model that affect vectors."""
        return (*(self.prefixes or ()), *((str(self.dimensions),) if self.sends_dimensions else ()))

    def content(self, text: str, role: TextRole) -> dict[str, object]:
        """Return the request for one text, as batch jobs use it too."""
        prefix = "" if self.prefixes is None else self.prefixes[0 if role is TextRole.QUERY else 1]
        one: dict[str, object] = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": prefix + text}]},
        }
        if self.prefixes is None:
            one["taskType"] = TASK[role]
        if self.sends_dimensions:
            one["outputDimensionality"] = self.dimensions
        return one

    def embed(self, texts: Sequence[str], role: TextRole) -> HttpRequest:
        """Return the request for the vectors of some texts."""
        body = {"requests": [self.content(text, role) for text in texts]}
        return HttpRequest(f"models/{self.model}:batchEmbedContents", msgspec.json.encode(body))

    def vectors(self, body: bytes, count: int) -> Sequence[Sequence[float]]:
        """Return the vectors in order.

        Raises:
            BadReply: it does not hold one vector a text.
        """
        reply = decoded(self.provider, body, _Reply)
        if len(reply.embeddings) != count:
            raise BadReply(f"gemini: {count} texts were sent, and {len(reply.embeddings)} vectors came back")
        return [each.values for each in reply.embeddings]


def gemini(model: str, remote: Remote) -> Gemini:
    """Create the dialect for Google's service, or a proxy of it."""
    name = model or DEFAULT_MODEL
    for prefix in ("models/", "gemini/", "google/"):
        name = name.removeprefix(prefix)
    facts = known_models.known(name)
    return Gemini(
        model=name,
        dimensions=remote.dimensions or facts.dimensions,
        input_tokens=remote.max_input_tokens or max(facts.input_tokens, 2000),
        limits=ProviderLimits(REQUEST_TOKENS, REQUEST_TEXTS, remote.concurrency),
        sends_dimensions=bool(remote.dimensions),
        prefixes=(facts.query_prefix, facts.document_prefix) if facts.query_prefix else None,
    )
