"""Many texts as several jobs, each as large as one may be."""

from collections.abc import Iterator, Mapping

from memd.model import TextHash
from memd.providers.batch.dialect import BatchDialect
from memd.providers.remote.provider import sendable
from memd.text.tokens import estimate_tokens


def groups(dialect: BatchDialect, texts: Mapping[TextHash, str]) -> Iterator[dict[TextHash, str]]:
    """The texts of each job, as they may be sent.

    A text that is longer than the model takes is in none: it has to be embedded in pieces, by plain requests.
    """
    group: dict[TextHash, str] = {}
    size = 0
    for text_hash, text in texts.items():
        if estimate_tokens(text) > dialect.input_tokens:
            continue
        sound = sendable(text)
        added = len(dialect.line(text_hash.hex(), sound)) + 1
        if added > dialect.limits.bytes:
            continue
        if group and (size + added > dialect.limits.bytes or len(group) >= dialect.limits.texts):
            yield group
            group, size = {}, 0
        group[text_hash] = sound
        size += added
    if group:
        yield group


def lines(dialect: BatchDialect, group: Mapping[TextHash, str]) -> Iterator[bytes]:
    """The input file of a job: a line a text, named by its hash."""
    for text_hash, text in group.items():
        yield dialect.line(text_hash.hex(), text)
