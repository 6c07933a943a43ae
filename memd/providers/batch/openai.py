"""The batch APIs of OpenAI and of Voyage, which has taken over most of OpenAI's."""

import uuid
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

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
from memd.providers.remote.openai import OpenAI, Voyage
from memd.providers.remote.replies import decoded

LABEL = "memd"

_ENDED_EARLY = {"failed", "expired", "cancelled", "canceled"}


class _File(msgspec.Struct):
    id: str
    filename: str | None = None


class _Files(msgspec.Struct):
    data: list[_File]
    has_more: bool = False


class _Fault(msgspec.Struct):
    code: str | None = None


class _Faults(msgspec.Struct):
    data: list[_Fault] | None = None


class _Job(msgspec.Struct):
    id: str
    status: str
    input_file_id: str | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    metadata: dict[str, Any] | None = None
    errors: _Faults | None = None


class _Jobs(msgspec.Struct):
    data: list[_Job]
    has_more: bool = False


class _Datum(msgspec.Struct):
    embedding: list[float]


class _Body(msgspec.Struct):
    data: list[_Datum] = []


class _Response(msgspec.Struct):
    status_code: int = 0
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Line(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: dict[str, Any] | None = None


class OpenAIBatches(msgspec.Struct, frozen=True):
    """Files and batches below the base URL of the embeddings."""

    embeddings: OpenAI | Voyage
    limits: BatchLimits = BatchLimits()

    def line(self, text_id: str, text: str) -> bytes:
        """Return a line with one request; OpenAI's names method, URL and model, Voyage's only the texts."""
        if isinstance(self.embeddings, Voyage):
            return msgspec.json.encode({"custom_id": text_id, "body": {"input": [text]}})
        body = msgspec.Raw(self.embeddings.embed([text], TextRole.DOCUMENT).body)
        return msgspec.json.encode(
            {"custom_id": text_id, "method": "POST", "url": "/v1/embeddings", "body": body}
        )

    def upload(self, name: str, lines: Iterable[bytes]) -> HttpRequest:
        """Return a form with the file and its purpose."""
        boundary = uuid.uuid4().hex
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        return HttpRequest(
            "files",
            head.encode(),
            content_type=f"multipart/form-data; boundary={boundary}",
            more=(*blocks(lines), f"\r\n--{boundary}--\r\n".encode()),
        )

    def uploaded(self, body: bytes) -> str:
        """Return the id of the file."""
        return checked(self.embeddings.provider, decoded(self.embeddings.provider, body, _File).id)

    def list_files(self, after: str | None) -> HttpRequest:
        """Request 100 files, the newest first; no purpose is given, since output files have another one."""
        return HttpRequest(f"files?limit=100{f'&after={quote(after)}' if after else ''}", method="GET")

    def listed_files(self, body: bytes) -> ListedFiles:
        """Parse a page of files."""
        page = decoded(self.embeddings.provider, body, _Files)
        files = {name: file.filename or "" for file in page.data for name in usable(file.id)}
        return ListedFiles(files, page.data[-1].id if page.has_more and page.data else None)

    def create(self, file: str, label: str) -> HttpRequest:
        """Request a batch of embeddings with the label in its metadata."""
        wanted: dict[str, object] = {
            "input_file_id": file,
            "endpoint": "/v1/embeddings",
            "completion_window": "24h",
            "metadata": {LABEL: label},
        }
        if isinstance(self.embeddings, Voyage):
            wanted["completion_window"] = "12h"
            parameters: dict[str, object] = {
                "model": self.embeddings.model,
                "input_type": TextRole.DOCUMENT.value,
            }
            if self.embeddings.sends_dimensions:
                parameters["output_dimension"] = self.embeddings.dimensions
            wanted["request_params"] = parameters
        return HttpRequest("batches", msgspec.json.encode(wanted))

    def created(self, body: bytes) -> str:
        """Return the id of the batch."""
        return checked(self.embeddings.provider, decoded(self.embeddings.provider, body, _Job).id)

    def list(self, after: str | None) -> HttpRequest:
        """Request 100 batches."""
        return HttpRequest(f"batches?limit=100{f'&after={quote(after)}' if after else ''}", method="GET")

    def listed(self, body: bytes) -> JobListing:
        """Parse the batches that have a label of memd."""
        page = decoded(self.embeddings.provider, body, _Jobs)
        jobs = {
            str(job.metadata[LABEL]): checked(self.embeddings.provider, job.id)
            for job in page.data
            if job.metadata and LABEL in job.metadata
        }
        return JobListing(jobs, page.data[-1].id if page.has_more and page.data else None)

    def poll(self, job: str) -> HttpRequest:
        """Request the batch."""
        return HttpRequest(f"batches/{job}", method="GET")

    def state(self, body: bytes) -> Running | JobEnded:
        """Parse the state; a batch that ended early may still have results."""
        job = decoded(self.embeddings.provider, body, _Job)
        outputs = tuple(
            checked(self.embeddings.provider, file)
            for file in (job.output_file_id, job.error_file_id)
            if file
        )
        inputs = usable(job.input_file_id)
        if job.status == "completed":
            return JobEnded(outputs, None, inputs)
        if job.status in _ENDED_EARLY:
            faults = (job.errors.data if job.errors else None) or []
            codes = sorted({one.code[:60] for one in faults if one.code})
            why = f"the job has {job.status}" + (f" ({', '.join(codes)})" if codes else "")
            return JobEnded(outputs, why, inputs)
        return Running(job.status[:40])

    def cancel(self, job: str) -> HttpRequest:
        """Request the cancellation of a batch."""
        return HttpRequest(f"batches/{job}/cancel")

    def download(self, file: str) -> HttpRequest:
        """Request the content of a file."""
        return HttpRequest(f"files/{file}/content", method="GET")

    def delete(self, file: str) -> HttpRequest:
        """Request the deletion of a file; Voyage takes a list of ids."""
        if isinstance(self.embeddings, Voyage):
            return HttpRequest("files/delete", msgspec.json.encode({"file_ids": [file]}))
        return HttpRequest(f"files/{file}", method="DELETE")

    def result(self, line: bytes) -> BatchResult:
        """Parse the vector of a text, or why there is none."""
        read = decoded(self.embeddings.provider, line, _Line)
        response = read.response
        if response is not None and response.status_code == 200:
            found = decoded(self.embeddings.provider, bytes(response.body), _Body).data
            if len(found) == 1:
                return BatchResult(read.custom_id, found[0].embedding)
            return BatchResult(read.custom_id, None, "no vector")
        code = (read.error or {}).get("code")
        status = f"HTTP {response.status_code}" if response is not None else "no vector"
        return BatchResult(read.custom_id, None, str(code)[:60] if code else status)
