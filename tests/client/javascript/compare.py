"""Compares OpenClaw's own memory with memd's, in OpenClaw: the same notes, questions, tool and vectors.

    python -m tests.client.javascript.compare DIRECTORY...

Each directory has notes (MEMORY.md, memory/) and questions.json: [{"question", "evidence": [{"text", "path", "line"}]}]. A gateway is asked
for six hits of memory_search by its HTTP interface, first with OpenClaw's own memory, which embeds by a stand-in service with the model that comes
with memd, then with memd in its slot. Evidence is *seen* if its text stands in the first 4,000 characters of the snippets, *recalled* if its line is
within the lines of a hit; mrr is 1 / the place of the first such hit.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.clients.house import House, house_of
from tests.clients.install import CACHE, installed, system, versions
from tests.clients.model import StandInModel
from tests.clients.programs import PROGRAMS
from tests.fakes.http import Request, Response, Server
from tests.wait import until

TOP, BUDGET_CHARS = 6, 4000
TOKEN = "t" * 32
_PORT = 22_555
_OPENCLAW = PROGRAMS["openclaw"]


class Embeddings:
    """An OpenAI-compatible service with memd's bundled model."""

    def __init__(self) -> None:
        from memd.providers.local.bundled_model import load  # noqa: PLC0415  tests use the gateway alone

        self._model = load()
        self._known: dict[tuple[str, str], list[float]] = {}

    async def answer(self, request: Request) -> Response:
        """The vectors of texts."""
        asked = json.loads(request.body)
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        data = [
            {
                "object": "embedding",
                "index": number,
                "embedding": self._vector(text, asked.get("input_type", "")),
            }
            for number, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return Response(
            body=msgspec.json.encode({"object": "list", "model": "e5", "data": data, "usage": usage})
        )

    def _vector(self, text: str, kind: str) -> list[float]:
        if (kind, text) not in self._known:
            embed = self._model.query if kind == "query" else self._model.passage
            self._known[kind, text] = [float(one) for one in embed(text)]
        return self._known[kind, text]


def score(hits: list[dict[str, Any]], evidence: list[dict[str, Any]]) -> tuple[float, float, float]:
    """How much evidence is seen, how much is recalled, and 1 / the place of the first hit that has some."""
    read, left = [], BUDGET_CHARS
    for hit in hits[:TOP]:
        read.append(_squeezed(hit["snippet"][: max(left, 0)]))
        left -= len(hit["snippet"])
    seen = sum(any(_squeezed(one["text"]) in text for text in read) for one in evidence)

    def covers(hit: dict[str, Any], one: dict[str, Any]) -> bool:
        return bool(hit["path"] == one["path"] and hit["startLine"] <= one["line"] <= hit["endLine"])

    recalled = sum(any(covers(hit, one) for hit in hits[:TOP]) for one in evidence)
    places = (place for place, hit in enumerate(hits[:TOP], 1) if any(covers(hit, one) for one in evidence))
    return seen / len(evidence), recalled / len(evidence), 1 / next(places, float("inf"))


def _squeezed(text: str) -> str:
    return "".join(text.split()).lower()


def asked(query: str) -> dict[str, Any]:
    """The reply of memory_search, as the gateway gives it."""
    body = {"tool": "memory_search", "args": {"query": query, "maxResults": TOP}, "sessionKey": "main"}
    request = urllib.request.Request(
        f"http://127.0.0.1:{_PORT}/tools/invoke",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        reply: dict[str, Any] = json.load(answer)["result"]["details"]
    assert not reply.get("disabled"), reply
    return reply


def megabytes(pid: int) -> float:
    """What a process and those below it hold."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{pid}/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return own / 1000 + sum(map(megabytes, map(int, children)))


def figures(name: str, questions: list[dict[str, Any]], more: str, *, is_memd: bool) -> None:
    """Ask all questions and print what came of it."""
    for one in questions[:3]:  # what is loaded at the first question is no figure
        asked(one["question"])
    rows, times = [], []
    for one in questions:
        began = time.perf_counter()
        reply = asked(one["question"])
        times.append(1000 * (time.perf_counter() - began))
        assert (reply.get("backend") == "memd") is is_memd, reply
        rows.append(score(reply["results"], one["evidence"]))
    seen, recalled, mrr = (statistics.fmean(column) for column in zip(*rows, strict=True))
    print(  # noqa: T201
        f"{name:26} {len(rows):4} questions  seen {seen:.3f}  recall@6 {recalled:.3f}  mrr@6 {mrr:.3f}  {statistics.median(times):.0f} ms{more}",
        flush=True,
    )


def _is_memds() -> bool:
    """Whether memd answers; while the gateway changes over it answers 500."""
    try:
        return asked("?").get("backend") == "memd"
    except urllib.error.HTTPError:
        return False


@contextmanager
def gateway(house: House, command: list[str]) -> Iterator[int]:
    """A gateway that listens; its pid."""
    log = house.home / "gateway.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "gateway", "run"],
            env=house.environ,
            cwd=house.work,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        until(lambda: "[gateway] ready" in log.read_text(errors="replace"), 120)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def compare(directory: Path, embeddings: str, model: str) -> None:
    """Both memories on one directory."""
    kind, version = f"node-{system()}", versions()
    node = installed(kind, version["node"], CACHE) / kind / "bin"
    program = installed(_OPENCLAW.package, version["openclaw"], CACHE) / _OPENCLAW.executable
    command = [str(node / "node"), str(program)]
    every = json.loads((directory / "questions.json").read_text("utf-8"))
    questions = [one for one in every if one["evidence"]]
    with house_of(_OPENCLAW, command, node, model, None) as house:
        shutil.copytree(
            directory, house.home / ".openclaw" / "workspace", ignore=shutil.ignore_patterns("*.json")
        )
        config = house.home / ".openclaw" / "openclaw.json"
        said = json.loads(config.read_text())
        said["gateway"] = {
            "mode": "local",
            "port": _PORT,
            "bind": "loopback",
            "auth": {"mode": "token", "token": TOKEN},
        }
        remote = {"baseUrl": f"{embeddings}/v1", "apiKey": "x"}
        search = {"provider": "openai-compatible", "model": "e5", "remote": remote, "sources": ["memory"]}
        kinds = {
            "queryInputType": "query",
            "documentInputType": "passage",
            "rememberAcrossConversations": False,
        }
        said["memory"] = {"search": {**search, **kinds}}
        config.write_text(json.dumps(said))
        house.write(
            ".config/memd/config.toml",
            '[agents.main]\nworkspace = "~/.openclaw/workspace"\nprovider = "local"\n',
        )
        with gateway(house, command) as pid:
            before = megabytes(pid)
            done = house.program("memory", "index", "--force", "--agent", "main")
            assert done.status == 0, done
            figures(
                f"{directory.name}, OpenClaw", questions, f"  indexed in {done.seconds:.1f} s", is_memd=False
            )
            print(f"  gateway {before:.0f} MB before, {megabytes(pid):.0f} MB after", flush=True)  # noqa: T201
            began = time.monotonic()
            assert house.memd("up").status == 0
            assert house.memd("sync").status == 0
            indexed = time.monotonic() - began
            assert house.memd("openclaw", "install").status == 0
            until(_is_memds, 120)
            figures(f"{directory.name}, memd", questions, f"  indexed in {indexed:.1f} s", is_memd=True)
            daemon = json.loads(house.memd("status", "--json").out)["data"]["pid"]
            print(f"  gateway {megabytes(pid):.0f} MB, memd {megabytes(daemon):.0f} MB", flush=True)  # noqa: T201


def main() -> None:
    """Compare on each directory."""
    parser = argparse.ArgumentParser(prog="python -m tests.client.javascript.compare", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    with Server(Embeddings().answer) as embeddings, StandInModel() as model:
        for directory in parser.parse_args().directories:
            compare(directory, embeddings.url, model.url)


if __name__ == "__main__":
    main()
