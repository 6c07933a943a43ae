"""Compares OpenClaw's own memory with memd's, in OpenClaw: the same notes, questions, tool and vectors, in one run.

    python -m tests.client.javascript.compare DIRECTORY... [--vectors FILE]

Each directory has notes (MEMORY.md, memory/) and questions.json: [{"question", "evidence": [{"text", "path", "line"}]}]. Two gateways run at
the same time on one copy of the notes, one with OpenClaw's own memory, which embeds by a stand-in service with the model that comes with memd,
one with memd in its slot. Each question is asked of both, one after the other, for six hits of memory_search by their HTTP interfaces. Evidence
is *seen* if its text stands in the first 4,000 characters of the snippets, *recalled* if its line is within the lines of a hit; mrr is 1 / the
place of the first such hit. `--vectors` names a copy of memd's `embeddings.sqlite` (or where to keep one): what it holds is not embedded again.

OpenClaw halves the score of a daily note every 30 days. So each directory is asked three times: with its notes as they are dated, with all dates
moved by the same number of weeks, so that the newest note is of the last seven days, and with names that have no date, of which OpenClaw lowers
none. At the end every database of both is checked, and that no note has changed.
"""

import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import msgspec

from tests.clients.house import House, house_of
from tests.clients.install import CACHE, installed, system, versions
from tests.clients.model import StandInModel
from tests.clients.programs import PROGRAMS
from tests.fakes.http import Request, Response, Server
from tests.wait import until

TOP, BUDGET_CHARS = 6, 4000
TOKEN = "t" * 32
_DAY = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
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


def near(directory: Path, target: Path, today: date) -> None:
    """Copy notes and questions, with all their dates moved by whole weeks until the newest note is of the last seven days."""
    days = [found for file in directory.rglob("*.md") if (found := _day(file.stem))]
    moved = timedelta(weeks=(today - max(days)).days // 7)

    def later(text: str) -> str:
        return _DAY.sub(lambda found: str(day + moved) if (day := _day(found[0])) else found[0], text)

    for file in sorted(directory.rglob("*")):
        if file.is_file():
            place = target / later(str(file.relative_to(directory)))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(later(file.read_text("utf-8")), encoding="utf-8")


def undated(directory: Path, target: Path) -> None:
    """Copy notes and questions, with names for the notes that have no date."""
    names = {
        str(file.relative_to(directory)): f"memory/note-{number:03}.md"
        for number, file in enumerate(sorted(directory.rglob("*.md")))
        if _day(file.stem)
    }
    for file in sorted(directory.rglob("*")):
        if file.is_file():
            name = str(file.relative_to(directory))
            place = target / names.get(name, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())
    questions = json.loads((directory / "questions.json").read_text("utf-8"))
    for one in questions:
        for each in one["evidence"]:
            each["path"] = names.get(each["path"], each["path"])
    (target / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def invoked(port: int, tool: str, session_key: str = "main", **arguments: Any) -> dict[str, Any]:
    """The reply of a tool, as a gateway gives it."""
    body = {"tool": tool, "args": arguments, "sessionKey": session_key}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/tools/invoke",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        reply: dict[str, Any] = json.load(answer)["result"]["details"]
        return reply


def asked(port: int, query: str) -> dict[str, Any]:
    """The reply of memory_search, which has to be one."""
    reply = invoked(port, "memory_search", query=query, maxResults=TOP)
    assert not reply.get("disabled"), reply
    return reply


def megabytes(pid: int) -> float:
    """What a process and those below it hold."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{pid}/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))
    return own / 1000 + sum(map(megabytes, map(int, children)))


class Side:
    """One of the two memories: a home with a gateway, and what came of the questions."""

    def __init__(self, house: House, port: int, *, is_memd: bool) -> None:
        self.house = house
        self.port = port
        self._is_memd = is_memd
        self.rows: list[tuple[float, float, float]] = []
        self.milliseconds: list[float] = []
        self.before = 0.0  # megabytes of the gateway

    def answers(self) -> bool:
        """Whether this memory answers; while a gateway changes over it answers 500."""
        try:
            return (asked(self.port, "?").get("backend") == "memd") is self._is_memd
        except urllib.error.HTTPError:
            return False

    def ask(self, question: dict[str, Any]) -> None:
        """Ask a question, and keep what came of it."""
        began = time.perf_counter()
        reply = asked(self.port, question["question"])
        self.milliseconds.append(1000 * (time.perf_counter() - began))
        assert (reply.get("backend") == "memd") is self._is_memd, reply
        self.rows.append(score(reply["results"], question["evidence"]))

    def line(self, name: str, memory: str) -> str:
        """A line of the table."""
        seen, recalled, mrr = (statistics.fmean(column) for column in zip(*self.rows, strict=True))
        return f"| {name} | {seen:.3f} | {recalled:.3f} | {mrr:.3f} | {statistics.median(self.milliseconds):.0f} ms | {memory} |"


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
            process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def command_of_openclaw() -> tuple[list[str], Path]:
    """The command of OpenClaw, which npm installs if it is not there, and the directory of its Node."""
    kind, version = f"node-{system()}", versions()
    node = installed(kind, version["node"], CACHE) / kind / "bin"
    program = installed(_OPENCLAW.package, version["openclaw"], CACHE) / _OPENCLAW.executable
    return [str(node / "node"), str(program)], node


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def with_gateway(house: House, port: int, **more: Any) -> None:
    """Put into OpenClaw's configuration how its gateway listens, and more."""
    config = house.home / ".openclaw" / "openclaw.json"
    said = json.loads(config.read_text())
    auth = {"mode": "token", "token": TOKEN}
    said["gateway"] = {"mode": "local", "port": port, "bind": "loopback", "auth": auth}
    config.write_text(json.dumps({**said, **more}))


def on_workspace(house: House, workspace: Path, provider: str) -> None:
    """Have OpenClaw and memd of a home work on a workspace that stands in another home."""
    config = house.home / ".openclaw" / "openclaw.json"
    said = json.loads(config.read_text())
    said["agents"]["defaults"]["workspace"] = str(workspace)
    config.write_text(json.dumps(said))
    house.write(
        ".config/memd/config.toml", f'[agents.main]\nworkspace = "{workspace}"\nprovider = "{provider}"\n'
    )


def damaged(home: Path) -> list[str]:
    """The databases below a home that SQLite finds something wrong with."""
    found = []
    for file in sorted(home.rglob("*.sqlite")):
        with closing(apsw.Connection(str(file))) as database:
            database.set_busy_timeout(30_000)
            # Tables of extensions that are not loaded are passed over.
            if list(database.execute("PRAGMA integrity_check")) != [("ok",)]:
                found.append(str(file))
    return found


def notes_of(workspace: Path) -> dict[str, bytes]:
    """The notes of a workspace."""
    return {str(file.relative_to(workspace)): file.read_bytes() for file in sorted(workspace.rglob("*.md"))}


def is_indexed(house: House, files: int) -> bool:
    """Whether memd has so many files, and no chunk waits for a vector."""
    agent = json.loads(house.memd("status", "--json").out)["data"]["agents"]["main"]
    return bool(agent["files"] == files and agent["vectors"]["waiting"] == 0 and agent["dirty"] == 0)


def compare(directory: Path, name: str, vectors: Path, embeddings: str, model: str) -> None:
    """Both memories on one directory, at the same time."""
    command, node = command_of_openclaw()
    every = json.loads((directory / "questions.json").read_text("utf-8"))
    questions = [one for one in every if one["evidence"]]
    remote = {"baseUrl": f"{embeddings}/v1", "apiKey": "x"}
    search = {"provider": "openai-compatible", "model": "e5", "remote": remote, "sources": ["memory"]}
    kinds = {"queryInputType": "query", "documentInputType": "passage", "rememberAcrossConversations": False}
    with (
        house_of(_OPENCLAW, command, node, model, None) as first,
        house_of(_OPENCLAW, command, node, model, None) as second,
    ):
        workspace = first.home / ".openclaw" / "workspace"
        shutil.copytree(directory, workspace, ignore=shutil.ignore_patterns("*.json"))
        own, memds = Side(first, free_port(), is_memd=False), Side(second, free_port(), is_memd=True)
        with_gateway(first, own.port, memory={"search": {**search, **kinds}})
        with_gateway(second, memds.port)
        on_workspace(second, workspace, "local")
        with gateway(first, command) as its, gateway(second, command) as other:
            own.before, memds.before = megabytes(its), megabytes(other)
            done = first.program("memory", "index", "--force", "--agent", "main")
            assert done.status == 0, done
            notes = notes_of(workspace)
            cache = second.state / "embeddings.sqlite"
            if vectors.exists():
                second.state.mkdir(mode=0o700, parents=True)
                shutil.copy(vectors, cache)
            assert second.memd("up").status == 0
            until(lambda: is_indexed(second, len(notes)), 900)
            assert second.memd("openclaw", "install").status == 0
            for side in (own, memds):
                until(side.answers, 120)
                for one in questions[:3]:  # what is loaded at the first question is no figure
                    asked(side.port, one["question"])
            for number, one in enumerate(questions):
                for side in (own, memds) if number % 2 else (memds, own):
                    side.ask(one)
            daemon = json.loads(second.memd("status", "--json").out)["data"]["pid"]
            held = f"gateway {own.before:.0f} MB, then {megabytes(its):.0f}"
            _say(own.line(f"{name}, {len(questions)} questions: OpenClaw", held))
            held = f"gateway {memds.before:.0f} MB, then {megabytes(other):.0f}; daemon {megabytes(daemon):.0f} MB"
            _say(memds.line(f"{name}: memd", held))
            pairs = zip(own.milliseconds, memds.milliseconds, strict=True)
            _say(
                f"  of the same question OpenClaw takes {statistics.median(a / b for a, b in pairs):.2f} times as long"
            )
        assert notes_of(workspace) == notes, "a note has changed"
        second.memd("down")
        assert damaged(first.home) == damaged(second.home) == []
        shutil.copy(cache, vectors)
        _say("  no note has changed, and all databases are whole")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201  it is what the command is for


def main() -> None:
    """Compare on each directory."""
    parser = argparse.ArgumentParser(prog="python -m tests.client.javascript.compare", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--vectors", type=Path)
    given = parser.parse_args()
    _say("| notes and memory | seen | recall@6 | mrr@6 | a search | memory |")
    _say("|---|---|---|---|---|---|")
    with Server(Embeddings().answer) as embeddings, StandInModel() as model, TemporaryDirectory() as scratch:
        vectors = given.vectors or Path(scratch) / "embeddings.sqlite"
        for directory in given.directories:
            compare(directory, directory.name, vectors, embeddings.url, model.url)
            moved, bare = (Path(scratch) / kind / directory.name for kind in ("moved", "bare"))
            near(directory, moved, date.today())  # noqa: DTZ011  as OpenClaw counts ages
            compare(moved, f"{directory.name}, dates near today", vectors, embeddings.url, model.url)
            undated(directory, bare)
            compare(bare, f"{directory.name}, without dates", vectors, embeddings.url, model.url)


if __name__ == "__main__":
    main()
