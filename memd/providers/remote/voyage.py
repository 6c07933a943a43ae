"""Voyage AI's embedding API: OpenAI's, with a type for each side of a search."""

from collections.abc import Sequence

import msgspec

from memd.config.settings import Remote
from memd.errors import MemdError
from memd.providers.api_keys.account import ProviderAddress
from memd.providers.provider import ProviderLimits
from memd.providers.remote import error_replies, known_models
from memd.providers.remote.openai import indexed
from memd.providers.remote.request import HttpAnswer, HttpRequest, TextRole

HOME = ProviderAddress(
    "https://api.voyageai.com/v1", ("VOYAGE_API_KEY",), endings=("/embeddings",), path="/v1"
)
DEFAULT_MODEL = "voyage-4-large"
REQUEST_TOKENS = 8000
REQUEST_TEXTS = 256  # the API takes 1000


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
        """What else decides about a vector."""
        return (str(self.dimensions),) if self.sends_dimensions else ()

    def embed(self, texts: Sequence[str], side: TextRole) -> HttpRequest:
        """The request for the vectors of some texts; one that is too long is an error, not cut in silence."""
        body: dict[str, object] = {
            "model": self.model,
            "input": list(texts),
            "input_type": side.value,
            "truncation": False,
        }
        if self.sends_dimensions:
            body["output_dimension"] = self.dimensions
        return HttpRequest("embeddings", msgspec.json.encode(body))

    def vectors(self, body: bytes, count: int) -> Sequence[Sequence[float]]:
        """The vectors by the index that each carries.

        Raises:
            BadReply: it does not hold one vector a text.
        """
        return indexed(self.provider, body, count)

    def failure(self, answer: HttpAnswer, key: str | None, texts: Sequence[str] = ()) -> MemdError:
        """What an answer without success means."""
        return error_replies.failure(answer, provider=self.provider, model=self.model, key=key, texts=texts)


def voyage(model: str, remote: Remote) -> Voyage:
    """Voyage's service, or a proxy of it."""
    name = (model or DEFAULT_MODEL).removeprefix("voyage/")
    facts = known_models.known(name)
    return Voyage(
        model=name,
        dimensions=remote.dimensions or facts.dimensions,
        input_tokens=remote.max_input_tokens or max(facts.input_tokens, 16_000),
        limits=ProviderLimits(REQUEST_TOKENS, REQUEST_TEXTS, remote.concurrency),
        sends_dimensions=bool(remote.dimensions),
    )
