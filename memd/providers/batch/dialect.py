"""What differs from one provider's batch API to another's."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from memd.errors import MemdError
from memd.providers.remote.request import HttpAnswer, HttpRequest


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

    files: Mapping[
        str, str
    ]  # names of files -> those under which they were uploaded; "": the provider does not say
    after: str | None  # where the next page begins; None: this is the last


class BatchDialect(Protocol):
    """One provider's way of taking jobs; pure."""

    @property
    def provider(self) -> str:
        """Its name in the configuration."""
        ...

    @property
    def model(self) -> str:
        """As requests name it."""
        ...

    @property
    def limits(self) -> BatchLimits:
        """What one job may hold."""
        ...

    @property
    def input_tokens(self) -> int:
        """How many estimated tokens one text may have: a longer one would be cut in silence."""
        ...

    def line(self, text_id: str, text: str) -> bytes:
        """One line of an input file, without its end."""
        ...

    def upload(self, name: str, lines: Iterable[bytes]) -> HttpRequest:
        """The request that stores an input file."""
        ...

    def uploaded(self, body: bytes) -> str:
        """The name the provider gave to the file.

        Raises:
            BadReply.
        """
        ...

    def list_files(self, after: str | None) -> HttpRequest:
        """The request for a page of files, of any purpose.

        Args:
            after: As the page before it said; None: the first.
        """
        ...

    def listed_files(self, body: bytes) -> ListedFiles:
        """A page of files, without those whose names cannot be used.

        Raises:
            BadReply.
        """
        ...

    def create(self, file: str, label: str) -> HttpRequest:
        """The request that begins a job, with a label by which it can be found again."""
        ...

    def created(self, body: bytes) -> str:
        """The name the provider gave to the job.

        Raises:
            BadReply.
        """
        ...

    def list(self, after: str | None) -> HttpRequest:
        """The request for a page of jobs.

        Args:
            after: As the page before it said; None: the newest.
        """
        ...

    def listed(self, body: bytes) -> JobListing:
        """A page of jobs, as far as they carry labels.

        Raises:
            BadReply.
        """
        ...

    def poll(self, job: str) -> HttpRequest:
        """The request for a job's state."""
        ...

    def state(self, body: bytes) -> Running | JobEnded:
        """The state of a job. One whose name nobody knows is none in which a job has ended.

        Raises:
            BadReply.
        """
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
        """One line of a file with results.

        Raises:
            BadReply: it says nothing of any text.
        """
        ...

    def failure(self, answer: HttpAnswer, key: str | None) -> MemdError:
        """What an answer without success means: one of the errors of memd.providers.remote.request."""
        ...
