"""What differs from one provider's batch API to another's, and what input files have in common."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from memd.domain_types import TextHash
from memd.providers.remote.dialect import BadReply, Dialect, HttpRequest
from memd.providers.remote.provider import sendable
from memd.text.tokens import estimate_tokens

BLOCK = 256 << 10  # bytes, roughly: all of a large file at once would stop every thread of the interpreter

# A name with a scheme, a query or a step upwards in it could send the key somewhere else.
_RESOURCE_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)*", re.ASCII)
_LONGEST_NAME = 256


class BatchLimits(msgspec.Struct, frozen=True):
    """What one job may hold."""

    texts: int = 50_000
    bytes: int = 90_000_000  # of the uploaded file; providers take 200 MB and more


class Running(msgspec.Struct, frozen=True):
    """The job is not done."""

    state: str = ""  # as the provider puts it


class JobEnded(msgspec.Struct, frozen=True):
    """The job will change no more; it may have brought only some of the vectors, or none."""

    outputs: tuple[str, ...]  # names of files with results; one with errors comes last
    failure: str | None = None  # why it ended early; None: it is complete
    inputs: tuple[str, ...] = ()  # names of the files it was made of, where the provider says so


class BatchResult(msgspec.Struct, frozen=True):
    """One line of a file with results."""

    id: str
    vector: Sequence[float] | None  # None: this text failed
    reason: str = ""  # why; never the text


class JobListing(msgspec.Struct, frozen=True):
    """A page of a provider's jobs, the newest first."""

    jobs: Mapping[str, str]  # labels -> names of jobs
    after: str | None  # where the next page begins; None: this is the last


class ListedFiles(msgspec.Struct, frozen=True):
    """A page of a provider's files."""

    # Names of files -> those under which they were uploaded; "": the provider does not say.
    files: Mapping[str, str]
    after: str | None  # where the next page begins; None: this is the last


class BatchDialect(Protocol):
    """One provider's batch API: builds requests and reads replies; pure.

    Every method that reads a reply raises BadReply where the reply is not what the API promises.
    """

    @property
    def embeddings(self) -> Dialect:
        """The provider's embedding API: provider, model, and how long a text may be without being cut in silence."""
        ...

    @property
    def limits(self) -> BatchLimits:
        """What one job may hold."""
        ...

    def line(self, text_id: str, text: str) -> bytes:
        """One line of an input file, without its end."""
        ...

    def upload(self, name: str, lines: Iterable[bytes]) -> HttpRequest:
        """The request that stores an input file."""
        ...

    def uploaded(self, body: bytes) -> str:
        """The name the provider gave to the file."""
        ...

    def list_files(self, after: str | None) -> HttpRequest:
        """The request for a page of files, of any purpose.

        Args:
            after: As the page before it said; None: the first.
        """
        ...

    def listed_files(self, body: bytes) -> ListedFiles:
        """A page of files, without those whose names cannot be used."""
        ...

    def create(self, file: str, label: str) -> HttpRequest:
        """The request that creates a job, with a label by which it can be found again."""
        ...

    def created(self, body: bytes) -> str:
        """The name the provider gave to the job."""
        ...

    def list(self, after: str | None) -> HttpRequest:
        """The request for a page of jobs.

        Args:
            after: As the page before it said; None: the newest.
        """
        ...

    def listed(self, body: bytes) -> JobListing:
        """A page of jobs, as far as they carry labels."""
        ...

    def poll(self, job: str) -> HttpRequest:
        """The request for a job's state."""
        ...

    def state(self, body: bytes) -> Running | JobEnded:
        """The state of a job; a state that memd does not know counts as running."""
        ...

    def cancel(self, job: str) -> HttpRequest:
        """The request that ends a job early."""
        ...

    def download(self, file: str) -> HttpRequest:
        """The request for a file with results."""
        ...

    def delete(self, file: str) -> HttpRequest:
        """The request that deletes a file."""
        ...

    def result(self, line: bytes) -> BatchResult:
        """One line of a file with results."""
        ...


# --- input files


def groups(dialect: BatchDialect, texts: Mapping[TextHash, str]) -> Iterator[dict[TextHash, str]]:
    """Divides texts into jobs, each as large as one may be; the texts are as they may be sent.

    A text that is longer than the model takes is in none: it has to be embedded in pieces, by plain requests.
    """
    group: dict[TextHash, str] = {}
    size = 0
    for text_hash, text in texts.items():
        if estimate_tokens(text) > dialect.embeddings.input_tokens:
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
    """The input file of a job: one line per text, named by its hash."""
    for text_hash, text in group.items():
        yield dialect.line(text_hash.hex(), text)


def blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, each with its end, joined to blocks of about BLOCK bytes."""
    block = bytearray()
    for line in lines:
        block += line
        block += b"\n"
        if len(block) >= BLOCK:
            yield bytes(block)
            block.clear()
    if block:
        yield bytes(block)


# --- names of files and jobs, fit to be a part of an address


def checked(provider: str, name: str) -> str:
    """The name as it came.

    Raises:
        BadReply: it could lead to another address.
    """
    if not _is_name(name):
        raise BadReply(f"{provider}: a file or a job came back with a name that is none")
    return name


def usable(name: str | None) -> tuple[str, ...]:
    """The name, where there is one that can be used; else nothing."""
    return (name,) if name and _is_name(name) else ()


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _RESOURCE_NAME.fullmatch(name) is not None
