"""Measures what transcripts cost that agents have written over months: a first index, a start, one more turn.

    python -m tests.benchmarks.transcripts [--gigabytes 1] [--files 2000] [--seed 1] [--json FILE]

Four agents talk in English and Chinese, and call tools. An eighth of what they write is speech, the rest is what tools
returned, images among it. Nothing is embedded: what is measured is the keyword index. The baseline reads every file and
parses every line as JSON, in one process, and keeps nothing.

It needs twice as much room on the disk of temporary files as it writes.
"""

import argparse
import base64
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import msgspec

from memd_client import Client
from tests.benchmarks.figures import Figure, Samples, milliseconds, repeated, table
from tests.benchmarks.notes import sentences
from tests.daemon.process import Daemon
from tests.fakes.homes import (
    ClaudeCode,
    ClaudeCodeSession,
    Codex,
    CodexSession,
    Gemini,
    GeminiSession,
    OpenClaw,
    OpenClawSession,
)

BEGIN = 1_772_442_000.0  # 2 March 2026
SPEECH = 0.125  # of all bytes
AGENTS = {"claude-code": 0.5, "codex": 0.25, "openclaw": 0.15, "gemini": 0.1}  # shares of the sessions
SPREAD = 1.2  # of the logarithm of the sizes of sessions
IMAGES = 0.04  # of the results of tools
TIMES = 11
QUESTIONS = (
    "which database did we pick for the billing service?",
    "数据库迁移是谁负责的?",
    "the retry limit of the payment callback",
    "周会上说面板谁来维护?",
)

Session = ClaudeCodeSession | CodexSession | GeminiSession | OpenClawSession


class Written(msgspec.Struct, frozen=True):
    """What was laid out."""

    sessions: list[Session]
    bytes: int  # of all files
    speech: int  # bytes of what somebody said, without what stands around it in the files
    turns: int


class _Talkers:
    """Say things, and have tools return others, from one source of randomness."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._sentences = sentences(rng, 30_000)
        self._lines = [
            f"{rng.choice(('src', 'tests'))}/{rng.randrange(99)}.py:{rng.randrange(900)}:    {sentence}"
            for sentence in sentences(rng, 5_000)
        ]
        self._images = [
            base64.b64encode(rng.randbytes(rng.randrange(20_000, 150_000))).decode() for _ in range(40)
        ]

    def question(self) -> str:
        """Mostly a short one; something is pasted now and then."""
        text = self._said(self._rng.randint(1, 4))
        return text if self._rng.random() < 0.9 else f"{text}\n\n```\n{self._said(9)}\n```"

    def answer(self) -> str:
        """Some paragraphs, and a list now and then."""
        parts = [self._said(self._rng.randint(2, 6)) for _ in range(self._rng.randint(1, 5))]
        if self._rng.random() < 0.4:
            parts.append("\n".join(f"- {self._said(1)}" for _ in range(self._rng.randint(2, 6))))
        return "\n\n".join(parts)

    def result(self) -> str:
        """What a tool returned: lines that were found, or an image."""
        if self._rng.random() < IMAGES:
            return f"data:image/png;base64,{self._rng.choice(self._images)}"
        count = int(self._rng.lognormvariate(math.log(60), 1.0)) + 1
        return "\n".join(self._rng.choices(self._lines, k=count))

    def _said(self, count: int) -> str:
        return " ".join(self._rng.choices(self._sentences, k=count))


def lay_out(home: Path, *, total_bytes: float, files: int, seed: int = 1) -> Written:
    """Write transcripts of four agents into their homes.

    Args:
        home: Of their user.
        total_bytes: Of all files together, about.
        files: How many.
        seed: Other seeds give other transcripts.
    """
    rng = Random(seed)
    talkers = _Talkers(rng)
    homes: dict[str, ClaudeCode | Codex | OpenClaw | Gemini] = {
        "claude-code": ClaudeCode(home),
        "codex": Codex(home),
        "openclaw": OpenClaw(home),
        "gemini": Gemini(home),
    }
    shares = [rng.lognormvariate(0, SPREAD) for _ in range(files)]
    sessions: list[Session] = []
    for number, share in enumerate(shares):
        [agent] = rng.choices(list(AGENTS), list(AGENTS.values()))
        at = BEGIN + 600 * number
        session = homes[agent].session(at=at)
        _talk(session, talkers, at, total_bytes * share / sum(shares))
        sessions.append(session)
    return Written(
        sessions,
        sum(session.path.stat().st_size for session in sessions),
        sum(len(turn.text.encode()) for session in sessions for turn in session.turns),
        sum(len(session.turns) for session in sessions),
    )


def _talk(session: Session, talkers: _Talkers, at: float, size: float) -> None:
    """Have a session go on until its file is of about a size, and an eighth of that is speech."""
    written = said = 0
    while written < size:
        question, answer = talkers.question(), talkers.answer()
        said += len(question.encode()) + len(answer.encode())
        session.user(question, at)
        written = session.path.stat().st_size
        while written < min(said / SPEECH, size):
            session.tool("Grep", {"pattern": "TODO", "path": "."}, talkers.result(), at)
            written = session.path.stat().st_size
        session.assistant(answer, at=at)
        written = session.path.stat().st_size
        at += 30


def measure(home: Path, *, gigabytes: float, files: int, seed: int = 1) -> tuple[str, list[Figure]]:
    """Lay out transcripts, and index them; a line on what they are, and the figures.

    Args:
        home: An empty directory, whose path is short enough for a socket.
        gigabytes: Of all transcripts, in 10^9 bytes.
        files: How many there are.
        seed: Other seeds give other transcripts.
    """
    written = lay_out(home, total_bytes=gigabytes * 1e9, files=files, seed=seed)
    title = (
        f"{written.bytes / 1e9:.2f} GB in {len(written.sessions):,} transcripts;"
        f" {written.speech / written.bytes:.0%} of it are {written.turns:,} turns of speech"
    )
    return title, list(_figures(home, written))


def _figures(home: Path, written: Written) -> Iterator[Figure]:
    presets = ", ".join(f'"{agent}"' for agent in AGENTS)
    daemon = Daemon(
        home,
        settings=f'provider = "none"\nsources = ["memory", "sessions"]\nsessions = {{ presets = [{presets}] }}',
    )
    files = [session.path for session in written.sessions]
    parsed = repeated(lambda: [_parse(file) for file in files], 1)
    environ = {"HOME": str(home)}
    began = time.perf_counter()
    with daemon.start(environ=environ), daemon.client(timeout=None) as client:
        client.sync()
        took = time.perf_counter() - began
        yield Figure(
            name="first keyword index",
            unit="s",
            memd=took,
            baseline=parsed.median,
            note=f"{written.bytes / 1e6 / took:.1f} MB/s, {client.status().agents['main'].chunks:,} chunks",
        )
        yield Figure(name="peak of resident memory", unit="MB", memd=peak_bytes(daemon.process.pid) / 1e6)
        size = sum(file.stat().st_size for file in daemon.state.rglob("*") if file.is_file())
        yield Figure(
            name="files of the store",
            unit="MB",
            memd=size / 1e6,
            note=f"{size / written.bytes:.1%} of the transcripts",
        )
        yield from _searches(client)
        yield from _appended(client, written)
        daemon.stop()
    began = time.perf_counter()
    with daemon.start(environ=environ), daemon.client(timeout=None) as client:
        report = client.sync()
        took = time.perf_counter() - began
        assert report.changed == 0, report
        last = client.status().agents["main"].last_pass
        yield Figure(
            name="start, nothing has changed",
            unit="s",
            memd=took,
            note=f"from the start of the process; a look at everything takes {last.took_s if last else 0:.2f} s",
        )
        yield Figure(
            name="peak of resident memory then", unit="MB", memd=peak_bytes(daemon.process.pid) / 1e6
        )


def _searches(client: Client) -> Iterator[Figure]:
    samples = Samples()
    for _ in range(TIMES):
        for question in QUESTIONS:
            with samples.timed():
                client.search(question)
    yield milliseconds("search by keywords", samples)


def _appended(client: Client, written: Written) -> Iterator[Figure]:
    """One turn more in the longest transcripts: until a sync is done, and until a search has found it."""
    longest = sorted(written.sessions, key=lambda session: session.path.stat().st_size)[-TIMES:]
    synced, found, plain = Samples(), Samples(), Samples()
    for number, session in enumerate(longest):
        word = f"landmark{number:03}x"
        session.user(f"The word of the day is {word}.", BEGIN)
        with synced.timed():
            client.sync()
        with found.timed():
            hits = client.search(word).results
        assert any(word in hit.snippet for hit in hits), word
        with plain.timed():
            _parse(session.path)
    size = longest[-1].path.stat().st_size / 1e6
    yield milliseconds("sync after one more turn", synced, plain, f"in transcripts of up to {size:.0f} MB")
    yield milliseconds("search for it", found)


def _parse(file: Path) -> int:
    count = 0
    with file.open("rb") as lines:
        for line in lines:
            json.loads(line)
            count += 1
    return count


def peak_bytes(pid: int) -> int:
    """The most memory that a process has held; Linux alone tells of another one's."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def main(arguments: Sequence[str]) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.transcripts", description="Measure what transcripts cost."
    )
    parser.add_argument(
        "--gigabytes", type=float, default=1.0, metavar="N", help="of all transcripts, in 10^9 bytes"
    )
    parser.add_argument("--files", type=int, default=2000, metavar="N", help="how many there are")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another gives other transcripts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        title, figures = measure(
            Path(os.path.realpath(scratch)), gigabytes=chosen.gigabytes, files=chosen.files, seed=chosen.seed
        )
    sys.stdout.write(f"{title}\n{table(figures)}\n")
    if chosen.json is not None:
        chosen.json.write_bytes(msgspec.json.format(msgspec.json.encode({title: figures})) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1:])
