"""A provider that embeds over HTTP."""

import asyncio
import hashlib
from collections.abc import Sequence

import msgspec
import numpy as np

from memd.providers.api_keys import Account
from memd.providers.cosine_calibration import Bias, centred
from memd.providers.provider import (
    Calibration,
    EmbedRejected,
    EmbedTerminal,
    EmbedUnavailable,
    Identity,
    ProviderLimits,
    Vector,
    Vectors,
)
from memd.providers.remote.dialect import ContentRefused, Dialect, Refused, RequestTooLarge, TextRole
from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.retrying_client import ASKING, INDEXING, RetryingClient, RetryPolicy
from memd.providers.remote.split_requests import TextPiece, pieces, requests, split, whole, whole_ones
from memd_client.token_estimate import estimate_tokens

REQUEST_TIMEOUT_S = 60.0
SMALLEST_PIECE = 16  # estimated tokens; a text of this length that is refused for its size has another fault
HARMLESS = "hello"


def key_of(account: Account, dialect: Dialect, generation: int, bias: Bias | None = None) -> str:
    """Return a short hash of everything that shapes a vector, except the names of provider and model."""
    without = () if bias is None else ("centred {}.{}".format(*bias.measured),)
    facts = (account.base_url, *dialect.shape, str(generation), *without)
    return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:16]


class _PieceOutcomes:
    """The outcomes of the pieces of some texts so far."""

    def __init__(self) -> None:
        self.rows: dict[int, Vector] = {}  # by index of the piece
        self.refused: dict[int, str] = {}  # by index of the text


class RemoteProvider:
    """Embeds by one provider's HTTP API."""

    def __init__(
        self,
        client: RetryingClient,
        model: ModelIdentity,
        *,
        query_timeout_s: float,
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        indexing: RetryPolicy = INDEXING,
        asking: RetryPolicy = ASKING,
    ) -> None:
        """Create a provider; its first request connects.

        Args:
            client: Sends the requests.
            model: The identity of the model.
            query_timeout_s: For a question, including retries.
            request_timeout_s: For each request with documents.
            indexing: The retries of requests with documents.
            asking: The retries of questions.
        """
        self._client = client
        self._dialect = client.dialect
        self._model = model
        self._query_timeout_s = query_timeout_s
        self._request_timeout_s = request_timeout_s
        self._indexing = indexing
        self._asking = asking
        self._limits = self._dialect.limits
        self._identity = Identity(
            self._dialect.provider,
            self._dialect.model,
            key_of(client.account, self._dialect, model.generation, model.bias),
            model.dimensions,
        )

    @property
    def identity(self) -> Identity:
        """The identity of its vectors."""
        return self._identity

    @property
    def calibration(self) -> Calibration:
        """The range of its model's cosines."""
        return self._model.calibration

    @property
    def bias(self) -> Bias | None:
        """The mean that is subtracted from its vectors; None: none is."""
        return self._model.bias

    @property
    def limits(self) -> ProviderLimits:
        """The limits of one request, lowered after the provider has refused larger ones."""
        return self._limits

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embed documents; longer ones than the model accepts are embedded in pieces.

        Raises:
            EmbedUnavailable: a temporary failure.
            EmbedTerminal: a permanent failure.
            EmbedRejected: some texts can never be embedded.
        """
        some = pieces([sendable(text) for text in texts], self._dialect.input_tokens)
        came = _PieceOutcomes()
        try:
            at = 0
            for group in requests(some, self._limits):
                await self._embed(group, at, came)
                at += len(group)
        except (EmbedUnavailable, EmbedTerminal) as failure:
            failure.vectors = self._whole_ones(some, texts, came)
            raise
        if came.refused:
            index, reason = next(iter(sorted(came.refused.items())))
            vectors = self._whole_ones(some, texts, came)
            raise EmbedRejected(index, reason, refused=came.refused, vectors=vectors)
        rows = np.stack([came.rows[place] for place in range(len(some))])
        return self._centred(whole(some, rows, len(texts)), texts)

    def _whole_ones(
        self, some: Sequence[TextPiece], texts: Sequence[str], came: "_PieceOutcomes"
    ) -> dict[int, Vector]:
        """Return the vectors of completed texts, by index."""
        vectors = whole_ones(some, came.rows)
        if not vectors:
            return {}
        rows = self._centred(np.stack(list(vectors.values())), [texts[place] for place in vectors])
        return dict(zip(vectors, rows, strict=True))

    def _centred(self, vectors: Vectors, texts: Sequence[str]) -> Vectors:
        bias = self._model.bias
        return vectors if bias is None else centred(vectors, texts, bias.passages)

    async def embed_query(self, text: str) -> Vector:
        """Embed a question; of one longer than the model accepts, its beginning.

        Raises:
            EmbedUnavailable: there is no vector.
        """
        [outcome] = await self.embed_queries([text])
        if isinstance(outcome, EmbedUnavailable):
            raise outcome
        return outcome

    async def embed_queries(self, texts: Sequence[str]) -> Sequence[Vector | EmbedUnavailable]:
        """Return for each question its vector, or why it has none; of longer ones than the model accepts, the beginning is embedded.

        Raises:
            EmbedUnavailable: none has a vector.
        """
        heads = [split(sendable(text), self._dialect.input_tokens)[0] for text in texts]
        some = [TextPiece(head, number, estimate_tokens(head)) for number, head in enumerate(heads)]
        outcomes: list[Vector | EmbedUnavailable] = []
        for group in requests(some, self._limits):
            outcomes += await self._questions(group)
        bias = self._model.bias
        if bias is None:
            return outcomes
        return [
            outcome
            if isinstance(outcome, EmbedUnavailable)
            else centred(outcome[None], [text], bias.questions)[0]
            for text, outcome in zip(texts, outcomes, strict=True)
        ]

    async def _questions(self, group: Sequence[TextPiece]) -> Sequence[Vector | EmbedUnavailable]:
        """Return the outcomes of one request; if it is refused as a whole, of its halves."""
        try:
            async with asyncio.timeout(self._query_timeout_s):
                texts = [piece.text for piece in group]
                return list(await self._ask(texts, TextRole.QUERY, self._query_timeout_s, self._asking))
        except TimeoutError as late:
            raise EmbedUnavailable(
                f"{self._dialect.provider}: the question had no vector after {self._query_timeout_s:g} s"
            ) from late
        except EmbedTerminal as refusal:
            raise EmbedUnavailable(str(refusal)) from refusal
        except (RequestTooLarge, ContentRefused) as refusal:
            if len(group) == 1:
                failure = EmbedUnavailable(str(refusal))
                failure.__cause__ = refusal
                return [failure]
        middle = len(group) // 2
        return [*await self._questions(group[:middle]), *await self._questions(group[middle:])]

    async def embed(self, texts: Sequence[str], role: TextRole) -> Vectors:
        """Embed a few short texts unchanged, in one request.

        Raises:
            EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused.
        """
        return await self._ask(texts, role, self._request_timeout_s, self._indexing)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.session.close()

    async def _embed(self, group: Sequence[TextPiece], at: int, came: "_PieceOutcomes") -> bool:
        """Embed the pieces of one request; if it is refused as a whole, its halves.

        Args:
            group: The pieces.
            at: The index of the first one among all pieces.
            came: Receives outcomes as they arrive, so that paid vectors are kept if a later request fails.

        Returns:
            Whether no piece had to be split. Otherwise a single piece was too large, and not the request.

        Raises:
            EmbedUnavailable, EmbedTerminal.
        """
        try:
            rows = await self.embed([piece.text for piece in group], TextRole.DOCUMENT)
        except (RequestTooLarge, ContentRefused) as refusal:
            if len(group) == 1:
                await self._alone(group[0], at, refusal, came)
                return False
            is_large = isinstance(refusal, RequestTooLarge)
        else:
            came.rows.update(enumerate(rows, at))
            return True
        middle = len(group) // 2
        first_taken = await self._embed(group[:middle], at, came)
        second_taken = await self._embed(group[middle:], at + middle, came)
        are_taken = first_taken and second_taken
        if is_large and are_taken:
            self._take_less(group)
        return are_taken

    async def _alone(
        self, piece: TextPiece, at: int, refusal: RequestTooLarge | ContentRefused, came: "_PieceOutcomes"
    ) -> None:
        """Split a piece that was refused alone because of its size, and combine the vectors of its parts; otherwise refuse it."""
        if isinstance(refusal, RequestTooLarge) and piece.tokens > SMALLEST_PIECE:
            parts = [
                TextPiece(part, 0, estimate_tokens(part))
                for part in split(piece.text, (piece.tokens + 1) // 2)
            ]
            if len(parts) > 1:
                of_parts = _PieceOutcomes()
                for place, part in enumerate(parts):
                    await self._embed([part], place, of_parts)
                if of_parts.refused:
                    came.refused[piece.of] = of_parts.refused[0]
                else:
                    came.rows[at] = whole_ones(parts, of_parts.rows)[0]
                return
        # If no text passes any longer, the cause is not this text.
        try:
            await self.embed([HARMLESS], TextRole.DOCUMENT)
        except (RequestTooLarge, ContentRefused) as everything:
            raise Refused(str(everything)) from everything
        came.refused[piece.of] = str(refusal)

    def _take_less(self, group: Sequence[TextPiece]) -> None:
        tokens = sum(piece.tokens for piece in group)
        self._limits = ProviderLimits(
            max(1, min(self._limits.tokens, tokens // 2)),
            max(1, min(self._limits.texts, len(group) // 2)),
            self._limits.concurrency,
        )

    async def _ask(
        self, texts: Sequence[str], role: TextRole, timeout_s: float, retries: RetryPolicy
    ) -> Vectors:
        return await self._client.ask(
            texts, role, dimensions=self._model.dimensions, timeout_s=timeout_s, retries=retries
        )


def sendable(text: str) -> str:
    """Remove characters that JSON or many servers do not accept: lone surrogates and NUL; the result is never empty."""
    sound = text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    return sound if sound.strip() else "."
