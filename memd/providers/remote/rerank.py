"""Reranks texts by the /rerank endpoint of Cohere, Voyage, Jina, llama.cpp, vLLM and others."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from memd.config.settings import Rerank
from memd.providers.api_keys import (
    Account,
    NoAccount,
    ProviderAddress,
    Read,
    account,
    read_small,
    with_credentials,
)
from memd.providers.remote.dialect import BadReply, HttpAnswer, HttpRequest
from memd.providers.remote.http import HttpConnections
from memd.providers.reranker import BoundedReranker, NoReranker, by_score
from memd.runtime.timers import Clock

MOST_CONNECTIONS = 16
# A request continues after its search has stopped waiting, so that the next one finds an open connection.
LONGEST_S = 5.0

_ENDINGS = ("/rerank", "/reranking")
_HOMES: Mapping[str, tuple[ProviderAddress, str]] = {
    "cohere": (
        ProviderAddress("https://api.cohere.com/v2", ("COHERE_API_KEY", "CO_API_KEY"), endings=_ENDINGS),
        "rerank-v3.5",
    ),
    "voyage": (
        ProviderAddress("https://api.voyageai.com/v1", ("VOYAGE_API_KEY",), endings=_ENDINGS),
        "rerank-2.5-lite",
    ),
    "compatible": (ProviderAddress("", needs_key=False, endings=_ENDINGS), ""),
}
"""Of each provider its address and its default model."""

_REFUSALS = {
    401: "the key is not accepted",
    403: "the key is not accepted",
    404: "there is no /rerank at this address, or no such model",
    429: "too many requests",
}


class _Relevance(msgspec.Struct):
    index: int
    relevance_score: float


class _Reply(msgspec.Struct):
    results: list[_Relevance] = []
    data: list[_Relevance] = []  # the field that Voyage uses


class RerankApi(msgspec.Struct, frozen=True):
    """The requests and replies of one provider; pure."""

    provider: str
    model: str

    def request(self, question: str, texts: Sequence[str]) -> HttpRequest:
        """Return the request for ordering some texts."""
        fields: dict[str, object] = {"query": question, "documents": list(texts)}
        if self.model:
            fields["model"] = self.model
        fields["top_k" if self.provider == "voyage" else "top_n"] = len(texts)
        return HttpRequest("rerank", msgspec.json.encode(fields))

    def order(self, answer: HttpAnswer, count: int) -> list[int]:
        """Return the indexes of the texts, best first; texts missing in the answer come last.

        Raises:
            BadReply: the answer is invalid. It is not quoted, since it may quote texts.
        """
        if not answer.is_success:
            raise BadReply(f"{self.provider}: {_REFUSALS.get(answer.status, f'HTTP {answer.status}')}")
        try:
            reply = msgspec.json.decode(answer.body, type=_Reply)
        except (msgspec.DecodeError, RecursionError) as broken:
            raise BadReply(f"{self.provider}: the answer is not that of a reranker") from broken
        scored = {
            one.index: one.relevance_score
            for one in reply.results or reply.data
            if 0 <= one.index < count and math.isfinite(one.relevance_score)
        }
        if not scored:
            raise BadReply(f"{self.provider}: the answer orders nothing")
        return by_score([scored.get(n) for n in range(count)])


class RemoteReranker(BoundedReranker):
    """A reranker with one provider account."""

    def __init__(self, api: RerankApi, who: Account, settings: Rerank, clock: Clock) -> None:
        """Create the reranker; requests open connections.

        Args:
            api: The requests and replies of the provider.
            who: Address and key.
            settings: The agent's settings.
            clock: Returns monotonic seconds.
        """
        super().__init__(api.provider, settings, clock, MOST_CONNECTIONS)
        self._api = api
        self._session = HttpConnections(api.provider, who, None, MOST_CONNECTIONS)

    async def ask(self, question: str, texts: Sequence[str]) -> list[int]:
        """Return the provider's order.

        Raises:
            BadReply, TransientError: there is no valid answer.
        """
        answer = await self._session.send(self._api.request(question, texts), LONGEST_S)
        return self._api.order(answer, len(texts))

    async def close(self) -> None:
        """Cancel running requests, and close connections."""
        await super().close()
        await self._session.close()


def reranker(
    settings: Rerank,
    clock: Clock,
    environ: Mapping[str, str],
    read: Read = read_small,
) -> RemoteReranker | NoReranker:
    """Create the reranker that the settings name.

    Args:
        settings: With a provider.
        clock: Returns monotonic seconds.
        environ: The environment.
        read: Returns the text of the key file.
    """
    home, model = _HOMES[settings.provider]
    known = with_credentials(environ, read)
    try:
        who = account(settings.provider, home, settings.as_remote, known, read)
    except NoAccount as missing:
        return NoReranker(str(missing).replace("remote.", "rerank.").replace("[remote]", "[rerank]"))
    return RemoteReranker(RerankApi(settings.provider, settings.model or model), who, settings, clock)
