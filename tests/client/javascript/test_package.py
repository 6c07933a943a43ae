"""The Node client and the plugin for OpenClaw: what is written from PROTOCOL.md, their own tests, and a real daemon."""

import inspect
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from memd_client import AsyncClient, Client, errors, watermark
from memd_client.conversation import __version__
from tests.client.golden.write import DIRECTORY as GOLDEN
from tests.client.javascript.write import PACKAGE, PAGE, script, tables, types
from tests.clients.install import CACHE, installed
from tests.daemon.process import Daemon

TYPESCRIPT = "5.9.3"
NODE_TYPES = "22.19.0"

REQUESTS = [
    table
    for table in tables(PAGE.read_text(encoding="utf-8"))
    if table.section == "Requests" and table.name != "hello"
]

PLUGIN = PACKAGE.with_name("openclaw")
TESTS = Path(__file__).parent
ROOT = PACKAGE.parents[1]

SCRIPT = """
import { Client } from "memd-client";

const memd = new Client({ timeoutMs: 90_000 });
const out = {};
out.synced = await memd.sync();
out.found = await memd.search("which database did we pick?", { max_results: 1, now: new Date("2026-02-09T12:00Z") });
out.note = await memd.get(out.found.results[0].path, { start_line: 3, lines: 1 });
out.explained = (await memd.explain("数据库")).terms;
out.status = await memd.status();
out.many = (await Promise.all(Array.from({ length: 100 }, (_, n) => memd.search(`question ${n}`)))).length;
out.missing = await memd.search("x", { agent: "nobody" }).catch((error) => [error.name, error.code]);
out.wrong = await memd.search("x", { max_results: 99 }).catch((error) => [error.name, error.code]);
console.log(JSON.stringify(out));
// The connection stays open: the program ends all the same.
"""

MARKS = """
import { marked, markedReply } from "memd-client";
import { readFileSync } from "node:fs";

const replies = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify({ replies: replies.map(markedReply), texts: replies.map((reply) => marked(reply.text)) }));
"""

TYPED = """
import { Client, Hit, RequestFailed } from "memd-client";
const memd: Client = new Client({ timeoutMs: null });
const hits: Hit[] = (await memd.search("x", { max_results: 3, source: "memory", now: new Date() })).results;
const window: [number, number] | null = (await memd.explain("x")).candidates[0].window;
const failure: string | null = new RequestFailed("x").hint;
const waiting: number = (await memd.status()).agents["main"].vectors.waiting;
// @ts-expect-error: there is no such option
await memd.search("x", { maxResults: 3 });
// @ts-expect-error: there is no such action
await memd.embed("stop");
export { hits, window, failure, waiting };
"""


def test_messages_are_those_of_the_page() -> None:
    """After a message has gained a field: python -m tests.client.javascript.write."""
    page = PAGE.read_text(encoding="utf-8")
    assert (PACKAGE / "messages.js").read_text(encoding="utf-8") == script(page)
    assert (PACKAGE / "messages.d.ts").read_text(encoding="utf-8") == types(page)


@pytest.mark.parametrize("name", [table.name for table in REQUESTS])
def test_each_client_has_a_method_for_each_request(name: str) -> None:
    """Those of Python, and the one for Node, with its types and its page."""
    assert callable(getattr(Client, name))
    assert inspect.iscoroutinefunction(getattr(AsyncClient, name))
    for file in ("client.js", "index.d.ts"):
        assert re.search(rf"^  {name}\(", (PACKAGE / file).read_text(encoding="utf-8"), re.MULTILINE), file
    assert f"`{name}`" in (PACKAGE / "README.md").read_text(encoding="utf-8")


def test_the_plugin_has_the_version_of_the_client() -> None:
    """Both are released together."""
    package = json.loads((PLUGIN / "package.json").read_text())
    assert package["version"] == __version__
    assert package["openclaw"]["extensions"] == [f"./{package['main'].removeprefix('./')}"]


def test_version_and_errors_are_those_of_the_python_client() -> None:
    """Both are released together, and one page describes both."""
    assert json.loads((PACKAGE / "package.json").read_text())["version"] == __version__
    assert f'const VERSION = "{__version__}";' in (PACKAGE / "client.js").read_text()
    ours = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    exported = set(re.findall(r"export class (\w+)", (PACKAGE / "errors.js").read_text()))
    assert exported == ours
    assert ours <= set(re.findall(r"\b\w+\b", (PACKAGE / "index.js").read_text()))


@pytest.fixture(scope="module")
def project() -> Iterator[Path]:
    """A directory of a program that has installed the client; beside it a copy of the clone, with the tests."""
    if shutil.which("node") is None:
        pytest.skip("there is no Node")
    with TemporaryDirectory(prefix="memd-node-") as scratch:
        directory = Path(scratch)
        for source in (PACKAGE, PLUGIN, TESTS):
            shutil.copytree(source, directory / source.relative_to(ROOT))
        for modules in (directory / "node_modules", directory / "client" / "node_modules"):
            modules.mkdir()
            (modules / "memd-client").symlink_to(directory / "client" / "javascript")
        (directory / "package.json").write_text('{"type": "module"}')
        yield directory


def run(project: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A program in the project's directory."""
    return subprocess.run(
        command,
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, **environ},
    )


def test_the_tests_in_javascript_pass(project: Path) -> None:
    """Of the client with the golden frames and a server that follows a script, of the plugin with a client that does."""
    tests = sorted(str(file.relative_to(ROOT)) for file in TESTS.glob("*.test.js"))
    assert len(tests) >= 5
    done = run(project, "node", "--test", *tests, MEMD_GOLDEN=str(GOLDEN))
    assert done.returncode == 0, done.stdout[-5000:]
    assert "\n# fail 0\n" in done.stdout or "\nℹ fail 0\n" in done.stdout


def test_marks_are_those_of_python(project: Path) -> None:
    """What a program for Node has marked is known again in its transcript."""
    replies: list[dict[str, Any]] = [
        {"text": "We chose PostgreSQL.", "results": [{"path": "MEMORY.md", "score": 0.5, "n": 3}]},
        {
            "text": "数据库\u00a0与\u3000空格\u001f\u0085\ufeff 😀",
            "z": ["b", ["a", None]],
            "a": {"y": "1", "x": True},
        },
        {"text": "a <memd-recall 0123456789abcdef> block </memd-flush in a text", "empty": ""},
        # Around the borders of the blocks that the digest is made of.
        *({"text": "x" * length} for length in (0, 1, 121, 122, 123, 124, 125, 249, 250, 251, 252, 5000)),
    ]
    (project / "marks.js").write_text(MARKS)
    done = subprocess.run(
        ["node", "marks.js"],
        input=json.dumps(replies),
        cwd=project,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    out = json.loads(done.stdout)
    assert out["replies"] == [watermark.marked_reply(reply) for reply in replies]
    assert out["texts"] == [watermark.marked(reply["text"]) for reply in replies]


@pytest.mark.long
@pytest.mark.timeout(400)  # the first time it installs packages
def test_types_are_checked_by_typescript(project: Path) -> None:
    """A program with a wrong option does not compile."""
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    for package, version in (("typescript", TYPESCRIPT), ("@types/node", NODE_TYPES)):
        for directory in installed(package, version, CACHE).iterdir():
            if not directory.name.startswith("."):
                shutil.copytree(directory, project / "node_modules" / directory.name, dirs_exist_ok=True)
    (project / "typed.ts").write_text(TYPED)
    options = (
        "--strict",
        "--noEmit",
        "--module",
        "nodenext",
        "--target",
        "es2022",
        "--skipLibCheck",
        "false",
    )
    done = run(project, "node", "node_modules/typescript/bin/tsc", *options, "typed.ts")
    assert done.returncode == 0, done.stdout


def test_a_program_asks_a_real_daemon_and_ends(project: Path) -> None:
    """Every answer is whole, failures have their codes, and an open connection does not keep the program alive."""
    (project / "ask.js").write_text(SCRIPT)
    with TemporaryDirectory(prefix="memd") as directory:
        daemon = Daemon(Path(directory))
        daemon.write(
            "MEMORY.md", "# Decisions\n\n- We picked PostgreSQL as the database. 我们选了这个数据库。\n"
        )
        with daemon:
            done = run(project, "node", "ask.js", MEMD_SOCKET=str(daemon.socket))
        gone = run(project, "node", "ask.js", MEMD_SOCKET=str(daemon.socket))
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    out = json.loads(done.stdout)
    assert out["found"]["results"][0]["path"] == out["note"]["path"] == "MEMORY.md"
    assert "PostgreSQL" in out["note"]["text"]
    assert out["found"]["results"][0]["source"] == "memory"
    assert out["explained"]
    assert out["status"]["agents"]["main"]["files"] == out["synced"]["files"] == 1
    assert out["many"] == 100
    assert out["missing"] == ["RequestFailed", "unknown_agent"]
    assert out["wrong"] == ["RequestFailed", "bad_request"]
    assert gone.returncode == 1
    assert "DaemonNotRunning" in gone.stderr
    assert "memd-ctl up" in gone.stderr
