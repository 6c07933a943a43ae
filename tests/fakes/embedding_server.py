"""One local server that speaks the embedding APIs of OpenAI, Gemini, Voyage and Ollama, their batches too.

Forms of requests, answers and errors are those of the providers' documentation. The vectors are those of the hashing
embedder, so that a test can tell from a stored vector whether it belongs to the text it stands beside.
"""

import itertools
import re
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.fakes import HashingProvider
from tests.fakes.http import Request, Response, Server

KEY = "sk-test-0123456789abcdef"
MOST_TEXTS = {"openai": 2048, "gemini": 100, "voyage": 1000, "ollama": 100_000}

Plan = Callable[["Seen"], Response | None]
After = Callable[["Seen", Response], Response]


class Seen(msgspec.Struct):
    """One request as it was understood, and what came of it."""

    provider: str
    what: str  # embed | upload | create | poll | download | list | cancel | delete
    request: Request
    texts: tuple[str, ...] = ()
    kind: str = ""  # query or document, where the request says so
    status: int = 0
    billed: bool = False  # answered with vectors, whether or not the answer arrived whole


class Job(msgspec.Struct):
    """One batch job."""

    id: str
    provider: str
    input_file: str
    label: dict[str, str]  # its metadata, or its display name
    model: str = ""
    state: str = "running"  # running | cancelling | completed | failed | expired | cancelled
    output_file: str | None = None
    error_file: str | None = None
    faults: tuple[str, ...] = ()  # codes of what is wrong with the input file
    polls: int = 0  # since it began, or since it was cancelled


class EmbeddingServer:
    """Answers like the providers do; what goes wrong is up to its switches.

    `plan` may answer in the place of the server, which then does nothing; `after` may change an answer to what the server
    has done: hold it, cut it short, or lose it.
    """

    def __init__(self, *, dimensions: int = 384, key: str | None = KEY, delay_s: float = 0.0) -> None:
        """Nothing listens yet.

        Args:
            dimensions: Of the vectors.
            key: The only one that is accepted; None: none is needed.
            delay_s: How long each answer with vectors takes.
        """
        self.embedder = HashingProvider(dimensions=dimensions)
        self.dimensions = dimensions
        self.key = key
        self.delay_s = delay_s
        self.plan: Plan = lambda _: None
        self.seen: list[Seen] = []
        self.files: dict[str, bytes] = {}
        self.file_names: dict[str, str] = {}  # under which they were uploaded
        self.deleted: dict[str, bytes] = {}
        self.jobs: dict[str, Job] = {}
        self.after: After = lambda _, response: response
        self.polls_until_done = 1
        self.batch_outcome = "completed"  # or failed | expired | cancelled | never
        self.done_before_end = 0  # lines that a job has done when it ends early
        self.polls_until_cancelled = 1
        self.running_state: str | None = None  # what a job that runs is called instead
        self.fails_line: Callable[[str], bool] = lambda _: False  # text -> its line of a batch fails
        self.output: Callable[[list[bytes]], list[bytes]] = lambda lines: (
            lines
        )  # lines of a file with results
        self.names_output = True  # False: a job is complete, and names no file with results
        self.gemini_places = frozenset({"response", "metadata"})  # where an operation names it
        self.page = 100  # jobs of a list
        self.has_batches = True
        self.models: frozenset[str] | None = None  # None: any name will do
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._server = Server(self._answer)

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.__exit__(kind, value, traceback)

    @property
    def url(self) -> str:
        """Where it listens; providers' paths lie below."""
        return self._server.url

    @property
    def open_connections(self) -> int:
        """How many clients are connected."""
        return self._server.open_connections

    def refuse(self) -> None:
        """Break off every connection, and refuse new ones."""
        self._server.refuse()

    def listen(self) -> None:
        """Take connections again."""
        self._server.listen()

    def base_url(self, provider: str) -> str:
        """The base URL that a person would configure."""
        return {
            "openai": f"{self.url}/openai/v1",
            "openai-compatible": f"{self.url}/openai/v1",
            "voyage": f"{self.url}/voyage/v1",
            "gemini": f"{self.url}/v1beta",
            "ollama": self.url,
        }[provider]

    def embedded(self, *, billed: bool = True) -> list[str]:
        """Every text of the requests for vectors, in order, batches included; only those that were answered."""
        with self._lock:
            return [
                text
                for one in self.seen
                if one.what in {"embed", "line"} and (one.billed or not billed)
                for text in one.texts
            ]

    def requests(self, what: str) -> list[Seen]:
        """The requests of one kind."""
        with self._lock:
            return [one for one in self.seen if one.what == what]

    # --- routing

    async def _answer(self, request: Request) -> Response:
        for pattern, handler in self._routes():
            found = re.fullmatch(pattern, request.target)
            if found is not None:
                return handler(request, *found.groups())
        return _openai_error(
            404, f"Unknown request URL: {request.method} {request.target}", "invalid_request_error"
        )

    def _routes(self) -> Sequence[tuple[str, Callable[..., Response]]]:
        return (
            (r"/(openai|voyage)/v1/embeddings", self.embed_openai),
            (r"/(openai|voyage)/v1/files(?:\?.*)?", self._upload),
            (r"/(voyage)/v1/files/delete", self._delete_some),
            (r"/(openai)/v1/files/([^/?]+)", self._delete),
            (r"/(openai|voyage)/v1/files/([^/?]+)/content", self._download),
            (r"/(openai|voyage)/v1/batches(?:\?.*)?", self._batches),
            (r"/(openai|voyage)/v1/batches/([^/?]+)", self._poll),
            (r"/(openai|voyage)/v1/batches/([^/?]+)/cancel", self._cancel),
            (r"/v1beta/models/([^/:]+):(batchEmbedContents|embedContent)", self._embed_gemini),
            (r"/upload/v1beta/files\?uploadType=multipart", self._upload_gemini),
            (r"/v1beta/models/([^/:]+):asyncBatchEmbedContent", self._create_gemini),
            (r"/v1beta/batches(?:\?.*)?", self._list_gemini),
            (r"/v1beta/files(?:\?.*)?", self._list_files_gemini),
            (r"/v1beta/batches/([^/?:]+)", self._poll_gemini),
            (r"/v1beta/batches/([^/?:]+):cancel", self._cancel_gemini),
            (r"/download/v1beta/files/([^/?:]+):download\?alt=media", self._download_gemini),
            (r"/v1beta/files/([^/?:]+)", self._delete_gemini),
            (r"/api/embed", self._embed_ollama),
        )

    def _note(self, seen: Seen) -> Response | None:
        """Remember a request; what it is answered if the plan has something in mind for it."""
        with self._lock:
            self.seen.append(seen)
        return self.plan(seen)

    def _planned(self, seen: Seen, normal: Callable[[], Response]) -> Response:
        response = self._note(seen)
        if response is None:
            response = normal()
        response = self.after(seen, response)
        seen.status = response.status
        seen.billed = response.status == 200 and not response.reset
        return response

    # --- vectors

    def vectors_of(self, texts: Sequence[str]) -> list[list[float]]:
        return [[float(value) for value in row] for row in self.embedder.embed(texts)]

    def embed_openai(self, request: Request, provider: str) -> Response:
        body = msgspec.json.decode(request.body)
        inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
        seen = Seen(provider, "embed", request, tuple(inputs), body.get("input_type", ""))

        def normal() -> Response:
            if not self._is_let_in(request.headers.get("authorization", "").removeprefix("Bearer ")):
                return wrong_key(provider)
            if self.models is not None and body["model"] not in self.models:
                return unknown_model(provider, body["model"])
            if len(inputs) > MOST_TEXTS[provider]:
                return too_many(provider)
            return self._with_vectors(
                {
                    "object": "list",
                    "data": [
                        {"object": "embedding", "index": index, "embedding": vector}
                        for index, vector in enumerate(self.vectors_of(inputs))
                    ],
                    "model": body["model"],
                    "usage": {"prompt_tokens": len(inputs), "total_tokens": len(inputs)},
                }
            )

        return self._planned(seen, normal)

    def _embed_gemini(self, request: Request, model: str, method: str) -> Response:
        body = msgspec.json.decode(request.body)
        asked = body["requests"] if method == "batchEmbedContents" else [body]
        texts = tuple(one["content"]["parts"][0]["text"] for one in asked)
        kind = {"RETRIEVAL_QUERY": "query", "RETRIEVAL_DOCUMENT": "document"}.get(
            asked[0].get("taskType", ""), ""
        )
        seen = Seen("gemini", "embed", request, texts, kind)

        def normal() -> Response:
            if not self._is_let_in(request.headers.get("x-goog-api-key", "")):
                return wrong_key("gemini")
            if self.models is not None and model not in self.models:
                return unknown_model("gemini", model)
            if len(texts) > MOST_TEXTS["gemini"]:
                return too_many("gemini")
            vectors = [{"values": vector} for vector in self.vectors_of(texts)]
            return self._with_vectors(
                {"embeddings": vectors} if method == "batchEmbedContents" else {"embedding": vectors[0]}
            )

        return self._planned(seen, normal)

    def _embed_ollama(self, request: Request) -> Response:
        body = msgspec.json.decode(request.body)
        inputs = body["input"] if isinstance(body["input"], list) else [body["input"]]
        seen = Seen("ollama", "embed", request, tuple(inputs))

        def normal() -> Response:
            if self.models is not None and body["model"] not in self.models:
                return unknown_model("ollama", body["model"])
            return self._with_vectors(
                {
                    "model": body["model"],
                    "embeddings": self.vectors_of(inputs),
                    "total_duration": 1,
                    "load_duration": 1,
                }
            )

        return self._planned(seen, normal)

    def _with_vectors(self, document: dict[str, Any]) -> Response:
        return Response(body=msgspec.json.encode(document), delay_s=self.delay_s)

    def _is_let_in(self, key: str) -> bool:
        return self.key is None or key == self.key

    # --- batches of OpenAI and Voyage

    def _guarded(self, seen: Seen, normal: Callable[[], Response]) -> Response:
        """Like _planned, for those with the key."""
        headers = seen.request.headers
        key = (
            headers.get("x-goog-api-key", "")
            if seen.provider == "gemini"
            else headers.get("authorization", "").removeprefix("Bearer ")
        )
        return self._planned(seen, normal if self._is_let_in(key) else lambda: wrong_key(seen.provider))

    def _upload(self, request: Request, provider: str) -> Response:
        if request.method == "GET":
            return self._guarded(
                Seen(provider, "list_files", request), lambda: self._list_files(request, provider)
            )

        def normal() -> Response:
            parts = _multipart(request)
            assert parts["purpose"] == b"batch", "the purpose of the file is missing"
            return _json(
                {
                    "id": self._keep(parts["file"], _filename(request)),
                    "object": "file",
                    "purpose": "batch",
                    "status": "processed",
                }
            )

        return self._guarded(Seen(provider, "upload", request), normal)

    def _list_files(self, request: Request, provider: str) -> Response:
        query = parse_qs(urlsplit(request.target).query)
        names = list(reversed(self.files))
        if "after" in query:
            names = names[names.index(query["after"][0]) + 1 :]
        most = min(self.page, int(query["limit"][0]))
        documents = [
            {"id": name, "object": "file", "filename": self.file_names.get(name, ""), "purpose": "batch"}
            for name in names[:most]
        ]
        return _json({"object": "list", "data": documents, "has_more": len(names) > most})

    def _batches(self, request: Request, provider: str) -> Response:
        if request.method == "GET":
            return self._guarded(Seen(provider, "list", request), lambda: self._list(request, provider))
        body = msgspec.json.decode(request.body)

        def normal() -> Response:
            if not self.has_batches:
                return _openai_error(404, "Batches are not available.", "invalid_request_error")
            window = {"openai": "24h", "voyage": "12h"}[provider]
            if (
                body["input_file_id"] not in self.files
                or body["endpoint"] != "/v1/embeddings"
                or body["completion_window"] != window
            ):
                return _openai_error(400, "Invalid input file.", "invalid_request_error")
            # Of metadata: 16 pairs, names of 64 characters, values of 512.
            metadata = body.get("metadata") or {}
            if len(metadata) > 16 or any(len(k) > 64 or len(v) > 512 for k, v in metadata.items()):
                return _openai_error(400, "Invalid 'metadata'.", "invalid_request_error")
            model = body["request_params"]["model"] if provider == "voyage" else ""
            return _json(self._openai_job(self._begin(provider, body["input_file_id"], metadata, model)))

        return self._guarded(Seen(provider, "create", request), normal)

    def _list(self, request: Request, provider: str) -> Response:
        jobs, more = self._page(provider, request, "limit", "after")
        documents = [self._openai_job(job) for job in jobs]
        return _json({"object": "list", "data": documents, "has_more": more})

    def _page(self, provider: str, request: Request, size: str, start: str) -> tuple[list[Job], bool]:
        """A page of jobs, the newest first, and whether there are more."""
        query = parse_qs(urlsplit(request.target).query)
        jobs = [job for job in reversed(self.jobs.values()) if job.provider == provider]
        if start in query:
            places = [place for place, job in enumerate(jobs, 1) if job.id == query[start][0]]
            jobs = jobs[places[0] :]
        most = min(self.page, int(query[size][0]))
        return jobs[:most], len(jobs) > most

    def _poll(self, request: Request, provider: str, job_id: str) -> Response:
        def normal() -> Response:
            job = self.jobs.get(job_id)
            if job is None:
                return _openai_error(404, f"No batch found with id '{job_id}'.", "invalid_request_error")
            self._move_on(job)
            return _json(self._openai_job(job))

        return self._guarded(Seen(provider, "poll", request), normal)

    def _cancel(self, request: Request, provider: str, job_id: str) -> Response:
        def normal() -> Response:
            job = self.jobs[job_id]
            if job.state != "running":
                return _openai_error(409, f"Cannot cancel a batch with status '{job.state}'.", "conflict")
            job.state, job.polls = "cancelling", 0
            return _json(self._openai_job(job))

        return self._guarded(Seen(provider, "cancel", request), normal)

    def _download(self, request: Request, provider: str, file_id: str) -> Response:
        def normal() -> Response:
            if file_id not in self.files:
                return _openai_error(404, f"No such File object: {file_id}", "invalid_request_error")
            return Response(body=self.files[file_id], content_type="application/octet-stream")

        return self._guarded(Seen(provider, "download", request), normal)

    def _delete(self, request: Request, provider: str, file_id: str) -> Response:
        assert request.method == "DELETE"

        def normal() -> Response:
            if not self._drop(file_id):
                return _openai_error(404, f"No such File object: {file_id}", "invalid_request_error")
            return _json({"id": file_id, "object": "file", "deleted": True})

        return self._guarded(Seen(provider, "delete", request), normal)

    def _delete_some(self, request: Request, provider: str) -> Response:
        def normal() -> Response:
            for file_id in msgspec.json.decode(request.body)["file_ids"]:
                self._drop(file_id)
            return _json({})

        return self._guarded(Seen(provider, "delete", request), normal)

    def _openai_job(self, job: Job) -> dict[str, Any]:
        running = self.running_state or ("validating", "in_progress", "finalizing")[min(job.polls, 2)]
        faults = [{"code": code, "message": "Invalid line.", "line": 1} for code in job.faults]
        return {
            "id": job.id,
            "object": "batch",
            "endpoint": "/v1/embeddings",
            "input_file_id": job.input_file,
            "completion_window": "24h",
            "status": running if job.state == "running" else job.state,
            "output_file_id": job.output_file,
            "error_file_id": job.error_file,
            "errors": {"object": "list", "data": faults} if faults else None,
            "metadata": job.label,
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }

    # --- batches of Gemini

    def _upload_gemini(self, request: Request) -> Response:
        def normal() -> Response:
            described, content = _related(request)
            file = msgspec.json.decode(described)["file"]
            assert file["mimeType"] in {"application/jsonl", "jsonl"}
            return _json({"file": {"name": f"files/{self._keep(content, file['displayName'])}"}})

        return self._guarded(Seen("gemini", "upload", request), normal)

    def _list_files_gemini(self, request: Request) -> Response:
        def normal() -> Response:
            query = parse_qs(urlsplit(request.target).query)
            names = list(self.files)[int(query.get("pageToken", ["0"])[0]) :]
            most = min(self.page, int(query["pageSize"][0]), 100)
            if not names:
                return _json({})
            documents = [
                {"name": f"files/{name}", "displayName": self.file_names.get(name, "")}
                for name in names[:most]
            ]
            more = {"nextPageToken": str(len(self.files) - len(names) + most)} if len(names) > most else {}
            return _json({"files": documents, **more})

        return self._guarded(Seen("gemini", "list_files", request), normal)

    def _create_gemini(self, request: Request, model: str) -> Response:
        body = msgspec.json.decode(request.body)["batch"]

        def normal() -> Response:
            if not self.has_batches:
                return _google_error(
                    404, f"models/{model} is not found for asyncBatchEmbedContent.", "NOT_FOUND"
                )
            config = body["inputConfig"]
            file = (config.get("fileName") or config.get("file_name")).removeprefix("files/")
            if file not in self.files:
                return _google_error(400, "The input file was not found.", "INVALID_ARGUMENT")
            label = {"displayName": body["displayName"]}
            return _json(self._operation(self._begin("gemini", file, label, model)))

        return self._guarded(Seen("gemini", "create", request), normal)

    def _list_gemini(self, request: Request) -> Response:
        def normal() -> Response:
            jobs, more = self._page("gemini", request, "pageSize", "pageToken")
            document: dict[str, Any] = {"operations": [self._operation(job) for job in jobs]}
            if more:
                document["nextPageToken"] = jobs[-1].id
            return _json(document)

        return self._guarded(Seen("gemini", "list", request), normal)

    def _poll_gemini(self, request: Request, job_id: str) -> Response:
        def normal() -> Response:
            job = self.jobs.get(job_id)
            if job is None:
                return _google_error(404, "Requested entity was not found.", "NOT_FOUND")
            self._move_on(job)
            return _json(self._operation(job))

        return self._guarded(Seen("gemini", "poll", request), normal)

    def _cancel_gemini(self, request: Request, job_id: str) -> Response:
        def normal() -> Response:
            job = self.jobs[job_id]
            if job.state == "running":
                job.state, job.polls = "cancelling", 0
            return _json({})

        return self._guarded(Seen("gemini", "cancel", request), normal)

    def _download_gemini(self, request: Request, file_id: str) -> Response:
        def normal() -> Response:
            if file_id not in self.files:
                return _google_error(404, "Requested entity was not found.", "NOT_FOUND")
            return Response(body=self.files[file_id], content_type="application/octet-stream")

        return self._guarded(Seen("gemini", "download", request), normal)

    def _delete_gemini(self, request: Request, file_id: str) -> Response:
        assert request.method == "DELETE"

        def normal() -> Response:
            if not self._drop(file_id):
                return _google_error(
                    403, "You do not have permission to access the File.", "PERMISSION_DENIED"
                )
            return _json({})

        return self._guarded(Seen("gemini", "delete", request), normal)

    def _operation(self, job: Job) -> dict[str, Any]:
        states = {
            "completed": "SUCCEEDED",
            "failed": "FAILED",
            "expired": "EXPIRED",
            "cancelled": "CANCELLED",
        }
        state = states.get(job.state) or self.running_state or ("PENDING" if job.polls == 0 else "RUNNING")
        name = f"batches/{job.id}"
        metadata: dict[str, Any] = {
            "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.EmbedContentBatch",
            "model": f"models/{job.model}",
            "displayName": job.label["displayName"],
            "name": name,
            "state": f"BATCH_STATE_{state}",
            "inputConfig": {"fileName": f"files/{job.input_file}"},
        }
        operation: dict[str, Any] = {"name": name, "metadata": metadata}
        if job.state in states:
            operation["done"] = True
        output = {"responsesFile": f"files/{job.output_file}"}
        if job.output_file is not None and "metadata" in self.gemini_places:
            metadata["output"] = output
        if job.state == "completed" and "response" in self.gemini_places:
            operation["response"] = {
                "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.EmbedContentBatchOutput",
                **(output if job.output_file is not None else {}),
            }
        elif job.state in states and job.state != "completed":
            operation["error"] = {"code": 13, "message": f"the batch has {job.state}"}
        return operation

    # --- what a job does

    def _keep(self, content: bytes, name: str = "results") -> str:
        file_id = f"file-{next(self._ids):06}"
        self.files[file_id], self.file_names[file_id] = content, name
        return file_id

    def _drop(self, file_id: str) -> bool:
        if file_id not in self.files:
            return False
        self.deleted[file_id] = self.files.pop(file_id)
        return True

    def _begin(self, provider: str, file_id: str, label: dict[str, str], model: str) -> Job:
        job = Job(f"batch_{next(self._ids):06}", provider, file_id, label, model)
        job.faults = _faults(provider, self._input(job))
        self.jobs[job.id] = job
        return job

    def _input(self, job: Job) -> list[dict[str, Any]]:
        lines = self.files[job.input_file].split(b"\n")
        return [msgspec.json.decode(line) for line in lines if line.strip()]

    def _move_on(self, job: Job) -> None:
        job.polls += 1
        if job.state == "running" and job.faults:
            job.state = "failed"
        elif job.state == "cancelling" and job.polls >= self.polls_until_cancelled:
            self._finish(job, "cancelled")
        elif job.state == "running" and self.batch_outcome != "never" and job.polls >= self.polls_until_done:
            self._finish(job, self.batch_outcome)

    def _finish(self, job: Job, outcome: str) -> None:
        job.state = outcome
        lines = self._input(job)
        if outcome != "completed":
            lines = lines[: self.done_before_end]
        good = [line for line in lines if not self.fails_line(_text_of(line))]
        bad = [line for line in lines if self.fails_line(_text_of(line))]
        texts = [_text_of(line) for line in good]
        empty = Request("POST", "", {}, b"")
        with self._lock:
            self.seen += [
                Seen(job.provider, "line", empty, (text,), "document", status=200, billed=True)
                for text in texts
            ]
        answered = [_answered(job, one, v) for one, v in zip(good, self.vectors_of(texts), strict=True)]
        refused = [_refused(job, one) for one in bad]
        if job.provider == "gemini":
            answered, refused = [*refused, *answered], []
        if answered and self.names_output:
            # Results come in no particular order.
            job.output_file = self._keep(b"".join(self.output(_lines(answered[::-1]))))
        if refused and self.names_output:
            job.error_file = self._keep(b"".join(_lines(refused)))


# --- errors as the providers put them


def wrong_key(provider: str) -> Response:
    """401, or Google's 400."""
    if provider == "gemini":
        details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
        return _google_error(
            400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", details
        )
    if provider == "voyage":
        return _json({"detail": "Provided API key is invalid."}, 401)
    return _openai_error(
        401, f"Incorrect API key provided: {KEY[:8]}****.", "invalid_request_error", "invalid_api_key"
    )


def forbidden(provider: str) -> Response:
    """403, which Google answers for a file that is not there, too."""
    if provider == "gemini":
        return _google_error(403, "You do not have permission to access the File.", "PERMISSION_DENIED")
    return _openai_error(403, "You have insufficient permissions for this operation.", "permission_error")


def unknown_model(provider: str, model: str) -> Response:
    """404, or Voyage's 400."""
    if provider == "gemini":
        return _google_error(404, f"models/{model} is not found for API version v1beta.", "NOT_FOUND")
    if provider == "ollama":
        return _json({"error": f'model "{model}" not found, try pulling it first'}, 404)
    if provider == "voyage":
        return _json({"detail": f"Model {model} is not supported."}, 400)
    return _openai_error(
        404, f"The model `{model}` does not exist.", "invalid_request_error", "model_not_found"
    )


def too_many(provider: str) -> Response:
    """400: more texts than a request may have."""
    if provider == "gemini":
        return _google_error(
            400, "BatchEmbedContentsRequest: at most 100 requests can be in one batch", "INVALID_ARGUMENT"
        )
    if provider == "voyage":
        return _json({"detail": "The batch size limit is 1000."}, 400)
    return _openai_error(
        400, "Invalid 'input': array too long.", "invalid_request_error", "array_above_max_length"
    )


def too_long(provider: str) -> Response:
    """400: a text with more tokens than the model takes."""
    if provider == "gemini":
        return _google_error(
            400, "The input token count exceeds the maximum number of tokens.", "INVALID_ARGUMENT"
        )
    if provider == "ollama":
        return _json({"error": "the input length exceeds the context length"}, 400)
    if provider == "voyage":
        return _json({"detail": "The example at index 0 in your batch has too many tokens."}, 400)
    return _openai_error(
        400,
        "This model's maximum context length is 8192 tokens.",
        "invalid_request_error",
        "context_length_exceeded",
    )


def bad_text(provider: str) -> Response:
    """400: something in the text."""
    if provider == "gemini":
        return _google_error(400, "Request contains an invalid argument.", "INVALID_ARGUMENT")
    if provider == "ollama":
        return _json({"error": "invalid input type"}, 400)
    if provider == "voyage":
        return _json({"detail": "Input cannot contain that."}, 400)
    return _openai_error(400, "'$.input' is invalid.", "invalid_request_error")


def too_fast(provider: str, retry_after: str | None = "1") -> Response:
    """429, to be tried again."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    if provider == "gemini":
        details = (
            []
            if retry_after is None
            else [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{retry_after}s"}]
        )
        return _google_error(
            429, "Resource has been exhausted (e.g. check quota).", "RESOURCE_EXHAUSTED", details
        )
    if provider == "voyage":
        return _json({"detail": "You have exceeded your rate limit."}, 429, headers)
    return _openai_error(429, "Rate limit reached.", "requests", "rate_limit_exceeded", headers)


def no_quota(provider: str) -> Response:
    """429, not to be tried again: nothing is left to pay with."""
    if provider == "gemini":
        details = [
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{"quotaId": "EmbedContentRequestsPerDayPerProjectPerModel-FreeTier"}],
            }
        ]
        return _google_error(429, "You exceeded your current quota.", "RESOURCE_EXHAUSTED", details)
    if provider == "voyage":
        return _json({"detail": "No payment method on file."}, 402)
    return _openai_error(
        429,
        "You exceeded your current quota, please check your plan.",
        "insufficient_quota",
        "insufficient_quota",
    )


def broken(provider: str, status: int = 503) -> Response:
    """5xx."""
    if provider == "gemini":
        return _google_error(status, "The model is overloaded. Please try again later.", "UNAVAILABLE")
    if provider == "ollama":
        return _json({"error": "llama runner process has terminated"}, status)
    return Response(status, b"<html>502 Bad Gateway</html>", content_type="text/html")


def _openai_error(
    status: int, message: str, kind: str, code: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    return _json({"error": {"message": message, "type": kind, "param": None, "code": code}}, status, headers)


def _google_error(
    status: int, message: str, name: str, details: list[dict[str, Any]] | None = None
) -> Response:
    error: dict[str, Any] = {"code": status, "message": message, "status": name}
    if details:
        error["details"] = details
    return _json({"error": error}, status)


def _json(document: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(status, msgspec.json.encode(document), headers or {})


def _lines(documents: Sequence[object]) -> list[bytes]:
    return [msgspec.json.encode(document) + b"\n" for document in documents]


def _answered(job: Job, line: dict[str, Any], vector: list[float]) -> dict[str, Any]:
    """The line of a file with results for a text that has its vector."""
    if job.provider == "gemini":
        return {"key": line["key"], "response": {"embedding": {"values": vector}}}
    data = [{"object": "embedding", "index": 0, "embedding": vector}]
    return {
        "id": f"batch_req_{line['custom_id'][:8]}",
        "custom_id": line["custom_id"],
        "response": {"status_code": 200, "request_id": "r", "body": {"object": "list", "data": data}},
        "error": None,
    }


def _refused(job: Job, line: dict[str, Any]) -> dict[str, Any]:
    """The same for a text that was refused."""
    if job.provider == "gemini":
        error = {"code": 3, "message": "Invalid argument.", "status": "INVALID_ARGUMENT"}
        return {"key": line["key"], "error": error}
    body = {"error": {"message": "Invalid input.", "type": "invalid_request_error", "code": None}}
    return {"custom_id": line["custom_id"], "response": {"status_code": 400, "body": body}, "error": None}


def _faults(provider: str, lines: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """What is wrong with an input file, as the codes of its provider."""
    name = "key" if provider == "gemini" else "custom_id"
    names = [line.get(name, "") for line in lines]
    found = set()
    if not lines:
        found.add("empty_file")
    if len(lines) > 50_000:
        found.add("too_many_tasks")
    if len(set(names)) < len(names):
        found.add("duplicate_custom_id")
    if any(not 0 < len(each) <= 64 for each in names):
        found.add("invalid_custom_id")
    wanted = {"gemini": {"key", "request"}, "voyage": {"custom_id", "body"}}.get(
        provider, {"custom_id", "method", "url", "body"}
    )
    if any(line.keys() != wanted for line in lines):
        found.add("invalid_json_line")
    if provider == "openai" and any("model" not in line.get("body", {}) for line in lines):
        found.add("missing_required_parameter")
    return tuple(sorted(found))


def _text_of(line: dict[str, Any]) -> str:
    """The text of one line of an input file, whosoever's it is."""
    if "key" in line:
        return str(line["request"]["content"]["parts"][0]["text"])
    given = line["body"]["input"]
    return str(given[0] if isinstance(given, list) else given)


def _filename(request: Request) -> str:
    """The name of the file in a form."""
    found = re.search(rb'filename="([^"]*)"', request.body)
    assert found is not None
    return found[1].decode()


def _multipart(request: Request) -> dict[str, bytes]:
    """The parts of a form, by name."""
    boundary = request.headers["content-type"].partition("boundary=")[2].strip('"').encode()
    parts: dict[str, bytes] = {}
    for part in request.body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]*)"', head)
        assert name is not None, "a part of the form has no name"
        parts[name[1].decode()] = content.removesuffix(b"\r\n")
    return parts


def _related(request: Request) -> tuple[bytes, bytes]:
    """The two parts of a multipart/related upload."""
    boundary = request.headers["content-type"].partition("boundary=")[2].strip('"').encode()
    first, second = (
        part.removeprefix(b"\r\n").partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        for part in request.body.split(b"--" + boundary)[1:-1]
    )
    return first, second
