"""The server that tests of batch jobs share."""

from collections.abc import Iterator

import pytest

from tests.fakes.embedding_server import EmbeddingServer


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimensions=32) as running:
        yield running
