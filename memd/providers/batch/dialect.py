"""The interface of a provider's batch API, and the input files of jobs, which all providers share."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from memd.domain_types import TextHash
from memd.providers.remote.dialect import BadReply, Dialect, HttpRequest
from memd.providers.remote.provider import sendable
from memd_client.token_estimate import estimate_tokens

BLOCK = 256 << 10  # bytes, roughly: all of a large file at once would stop every thread of the interpreter

# A name with a scheme, a query or a step upwards in it could send the key somewhere else.
_RESOURCE_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)*", re.ASCII)
_LONGEST_NAME = 256


class BatchLimits(msgspec.Struct, frozen=True):
    """The limits of one job."""

    texts: int = 50_000
    bytes: int = 90_000_000  # of the uploaded file; providers take 200 MB and more


class Running(msgspec.Struct, frozen=True):
    """The job has not ended."""

    state: str = ""  # as the provider puts it


class JobEnded(msgspec.Struct, frozen=True):
    """The job has ended; it may have embedded only some of the texts, or none."""

    outputs: tuple[str, ...]  # names of files with results; one with errors comes last
    failure: str | None = None  # why it ended early; None: it is complete
    inputs: tuple[str, ...] = ()  # names of the files it was made of, where the provider says so


class BatchResult(msgspec.Struct, frozen=True):
    """A line of an output file."""

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
    """Builds the requests and parses the replies of one provider's batch API; pure.

    Every method that reads a reply raises BadReply where the reply is not what the API promises.
    """

    @property
    def embeddings(self) -> Dialect:
        """The provider's embedding API, with the provider's name, the model and the limits of a text."""
        ...

    @property
    def limits(self) -> BatchLimits:
        """The limits of one job."""
        ...

    def line(self, text_id: str, text: str) -> bytes:
        """Return the line of an input file for a text, without its line end."""
        ...

    def upload(self, name: str, lines: Iterable[bytes]) -> HttpRequest:
        """Return the request that uploads an input file."""
        ...

    def uploaded(self, body: bytes) -> str:
        """Return the provider's name of the uploaded file."""
        ...

    def list_files(self, after: str | None) -> HttpRequest:
        """Return the request for a page of files, of any purpose.

        Args:
            after: As the page before it said; None: the first.
        """
        ...

    def listed_files(self, body: bytes) -> ListedFiles:
        """Parse a page of files, without those whose names are invalid."""
        ...

    def create(self, file: str, label: str) -> HttpRequest:
        """Return the request that creates a job, with a label by which the job can be found again."""
        ...

    def created(self, body: bytes) -> str:
        """Return the provider's name of the job."""
        ...

    def list(self, after: str | None) -> HttpRequest:
        """Return the request for a page of jobs.

        Args:
            after: As the page before it said; None: the newest.
        """
        ...

    def listed(self, body: bytes) -> JobListing:
        """Parse a page of jobs, without those that have no label."""
        ...

    def poll(self, job: str) -> HttpRequest:
        """Return the request for the state of a job."""
        ...

    def state(self, body: bytes) -> Running | JobEnded:
        """Parse the state of a job; an unknown state counts as running."""
        ...

    def cancel(self, job: str) -> HttpRequest:
        """Return the request that cancels a job."""
        ...

    def download(self, file: str) -> HttpRequest:
        """Return the request for an output file."""
        ...

    def delete(self, file: str) -> HttpRequest:
        """Return the request that deletes a file."""
        ...

    def result(self, line: bytes) -> BatchResult:
        """Parse a line of an output file."""
        ...


# --- input files


def groups(dialect: BatchDialect, texts: Mapping[TextHash, str]) -> Iterator[dict[TextHash, str]]:
    """Yield the texts of each job, as many as the limits allow.

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
    """Yield the lines of a job's input file: one per text, with its hash as the id."""
    for text_hash, text in group.items():
        yield dialect.line(text_hash.hex(), text)


def blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join the lines, each with its line end, into blocks of about BLOCK bytes."""
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
    """Return a name of the provider's if it is safe to use in a URL.

    Raises:
        BadReply: it could lead to another address.
    """
    if not _is_name(name):
        raise BadReply(f"{provider}: a file or a job came back with a name that is none")
    return name


def usable(name: str | None) -> tuple[str, ...]:
    """Return (name,) if a name is safe to use in a URL; otherwise ()."""
    return (name,) if name and _is_name(name) else ()


def _is_name(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _RESOURCE_NAME.fullmatch(name) is not None
