"""Gemini's batch API: uploaded files, and long-running operations."""

import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from memd.providers.batch.dialect import (
    BatchLimits,
    BatchResult,
    JobEnded,
    JobListing,
    ListedFiles,
    Running,
    blocks,
    checked,
    usable,
)
from memd.providers.remote.dialect import HttpRequest, TextRole
from memd.providers.remote.gemini import Gemini
from memd.providers.remote.replies import decoded

_ENDED_EARLY = {"FAILED", "CANCELLED", "CANCELED", "EXPIRED"}
_DONE = {"SUCCEEDED", "COMPLETED", "DONE"}
_JSONL = "application/jsonl"


class _File(msgspec.Struct, rename="camel"):
    name: str
    display_name: str | None = None


class _Files(msgspec.Struct, rename="camel"):
    files: list[_File] = []
    next_page_token: str | None = None


class _Uploaded(msgspec.Struct):
    file: _File | None = None
    name: str | None = None


class _Output(msgspec.Struct, rename="camel"):
    responses_file: str | None = None


class _Input(msgspec.Struct, rename="camel"):
    file_name: str | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    state: str | None = None
    display_name: str | None = None
    output: _Output | None = None
    input_config: _Input | None = None


class _Error(msgspec.Struct):
    code: int | None = None
    status: str | None = None


class _Operation(msgspec.Struct, rename="camel"):
    name: str
    done: bool = False
    state: str | None = None
    metadata: _Metadata | None = None
    response: _Output | None = None
    error: _Error | None = None


class _Operations(msgspec.Struct, rename="camel"):
    operations: list[_Operation] = []
    next_page_token: str | None = None


class _Values(msgspec.Struct):
    values: list[float] = []


class _Answer(msgspec.Struct):
    embedding: _Values | None = None


class _Line(msgspec.Struct):
    key: str
    response: _Answer | None = None
    embedding: _Values | None = None
    error: dict[str, Any] | None = None


class GeminiBatches(msgspec.Struct, frozen=True):
    """Uploads a file of requests, and creates an operation that answers them."""

    embeddings: Gemini
    base_url: str
    limits: BatchLimits = BatchLimits()

    def line(self, text_id: str, text: str) -> bytes:
        """Return a line with one embedContent request."""
        return msgspec.json.encode(
            {"key": text_id, "request": self.embeddings.content(text, TextRole.DOCUMENT)}
        )

    def upload(self, name: str, lines: Iterable[bytes]) -> HttpRequest:
        """Return a multipart request with the file's description and its content."""
        boundary = uuid.uuid4().hex
        described = msgspec.json.encode({"file": {"displayName": name, "mimeType": _JSONL}})
        head = [
            f"--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n".encode(),
            described,
            f"\r\n--{boundary}\r\nContent-Type: {_JSONL}\r\n\r\n".encode(),
        ]
        return HttpRequest(
            f"{self._beside('upload')}/files?uploadType=multipart",
            b"".join(head),
            content_type=f"multipart/related; boundary={boundary}",
            headers={"x-goog-upload-protocol": "multipart"},
            more=(*blocks(lines), f"\r\n--{boundary}--\r\n".encode()),
        )

    def uploaded(self, body: bytes) -> str:
        """Return the name of the file."""
        reply = decoded(self.embeddings.provider, body, _Uploaded)
        return checked(
            self.embeddings.provider, reply.file.name if reply.file is not None else reply.name or ""
        )

    def list_files(self, after: str | None) -> HttpRequest:
        """Request 100 files, the largest page."""
        return HttpRequest(f"files?pageSize=100{f'&pageToken={quote(after)}' if after else ''}", method="GET")

    def listed_files(self, body: bytes) -> ListedFiles:
        """Parse a page of files; an empty page has no list."""
        page = decoded(self.embeddings.provider, body, _Files)
        files = {name: file.display_name or "" for file in page.files for name in usable(file.name)}
        return ListedFiles(files, page.next_page_token or None)

    def create(self, file: str, label: str) -> HttpRequest:
        """Request an operation whose display name is the label."""
        wanted = {"batch": {"displayName": label, "inputConfig": {"fileName": file}}}
        return HttpRequest(
            f"models/{self.embeddings.model}:asyncBatchEmbedContent", msgspec.json.encode(wanted)
        )

    def created(self, body: bytes) -> str:
        """Return the name of the operation."""
        return checked(self.embeddings.provider, decoded(self.embeddings.provider, body, _Operation).name)

    def list(self, after: str | None) -> HttpRequest:
        """Request 100 operations."""
        return HttpRequest(
            f"batches?pageSize=100{f'&pageToken={quote(after)}' if after else ''}", method="GET"
        )

    def listed(self, body: bytes) -> JobListing:
        """Parse the operations that have a display name; those of other programs match no label."""
        reply = decoded(self.embeddings.provider, body, _Operations)
        jobs = {
            one.metadata.display_name: checked(self.embeddings.provider, one.name)
            for one in reply.operations
            if one.metadata is not None and one.metadata.display_name
        }
        return JobListing(jobs, reply.next_page_token or None)

    def poll(self, job: str) -> HttpRequest:
        """Request the operation."""
        return HttpRequest(job, method="GET")

    def state(self, body: bytes) -> Running | JobEnded:
        """Parse the state; an operation that is done in an unknown state has succeeded if it names an output file."""
        job = decoded(self.embeddings.provider, body, _Operation)
        prefixed = (job.metadata.state if job.metadata is not None else None) or job.state or ""
        state = prefixed.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        places = (job.response, job.metadata.output if job.metadata is not None else None)
        file = next((place.responses_file for place in places if place and place.responses_file), None)
        outputs = () if file is None else (checked(self.embeddings.provider, file),)
        given = job.metadata.input_config if job.metadata is not None else None
        inputs = usable(given.file_name) if given is not None else ()
        if state in _ENDED_EARLY or job.error is not None:
            return JobEnded(outputs, f"the job has {state.lower() or 'failed'}", inputs)
        if state in _DONE or job.done:
            return JobEnded(outputs, None if outputs else "the job names no file with results", inputs)
        return Running(prefixed[:40])

    def cancel(self, job: str) -> HttpRequest:
        """Request the cancellation of an operation."""
        return HttpRequest(f"{job}:cancel")

    def download(self, file: str) -> HttpRequest:
        """Request the content of a file."""
        return HttpRequest(f"{self._beside('download')}/{file}:download?alt=media", method="GET")

    def delete(self, file: str) -> HttpRequest:
        """Request the deletion of a file."""
        return HttpRequest(file, method="DELETE")

    def result(self, line: bytes) -> BatchResult:
        """Parse the vector of a text, or why there is none."""
        read = decoded(self.embeddings.provider, line, _Line)
        found = read.embedding or (read.response.embedding if read.response is not None else None)
        if found is not None and found.values:
            return BatchResult(read.key, found.values)
        status = (read.error or {}).get("status") or (read.error or {}).get("code")
        return BatchResult(read.key, None, f"error {status}" if status else "no vector")

    def _beside(self, service: str) -> str:
        """Return the URL of another service on the same host: /v1beta becomes /upload/v1beta."""
        above, _, version = urlsplit(self.base_url).path.rpartition("/")
        return f"{above}/{service}/{version}"
