"""What runs in the stand-in of qmd; see qmd_standin. It starts hundreds of times in a run of the tests: imports cost."""
# Pathlib, json and signal each take longer to import than all that is done here.
# ruff: noqa: PTH105, PTH109, PTH110, PTH112, PTH114, PTH118, PTH120, PTH123

import fcntl
import marshal
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main() -> None:
    """Be qmd for one command."""
    home = os.path.dirname(sys.argv[0])
    arguments = sys.argv[1:]
    command = " ".join(arguments[:2] if arguments[:1] == ["collection"] else arguments[:1])
    act = scripted(home, command, arguments)
    time.sleep(act.get("after_s", 0.0))
    if act.get("hangs"):
        hang(home)
    if "floods" in act:
        for _ in range(act["floods"] // 1000 + 1):
            sys.stdout.write("x" * 1000)
    if "stdout" in act:
        sys.stdout.write(act["stdout"])
        sys.stdout.flush()
        sys.stderr.write(act.get("stderr", ""))
        if "signal" in act:
            os.kill(os.getpid(), act["signal"])
        raise SystemExit(act.get("status", 0))
    Usual(os.path.join(os.environ["XDG_CACHE_HOME"], "standin")).do(command, arguments)


def scripted(home: str, command: str, arguments: list[str]) -> "dict[str, Any]":
    """Write the call into the book; what is to be done at it."""
    with open(os.path.join(home, "calls"), "a+b") as book:
        fcntl.flock(book, fcntl.LOCK_EX)
        before, end = 0, book.seek(0, os.SEEK_END)
        book.seek(0)
        while book.tell() < end:
            before += marshal.load(book)["command"] == command
        call = {
            "command": command,
            "arguments": arguments,
            "environ": dict(os.environ),
            "pid": os.getpid(),
            "directory": os.getcwd(),
        }
        marshal.dump(call, book)
    script = os.path.join(home, "script")
    if not os.path.exists(script):
        return {}
    with open(script, "rb") as stream:
        played = marshal.load(stream)
    acts = played["acts"].get(command, [])
    at = before - played["from"].get(command, 0)
    return acts[min(at, len(acts) - 1)] if acts else {}


def hang(home: str) -> None:
    """Never end; nor does a child."""
    import signal  # noqa: PLC0415

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = os.fork()
    with open(os.path.join(home, "children"), "a", encoding="utf-8") as book:
        book.write(f"{os.getpid()}\n")
    while child >= 0:
        time.sleep(3600)


class Usual:
    """What qmd does where nothing else is scripted."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.state: dict[str, Any] = {"collections": {}, "documents": {}, "vectors": 0}
        if os.path.exists(file):
            with open(file, "rb") as stream:
                self.state = marshal.load(stream)

    def do(self, command: str, arguments: list[str]) -> None:
        """One command."""
        match command:
            case "--version":
                say("qmd 2.8.3 (facd35e)")
            case "collection list":
                self.show()
            case "collection add":
                self.add(*arguments[2:])
            case "collection remove":
                self.remove(arguments[2])
            case "update":
                self.update()
            case "cleanup":
                self.state.pop("gone", None)
                self.save()
            case "embed":
                self.state["vectors"] = len(self.state["documents"])
                self.save()
            case "status":
                say(f"QMD Status\n\nDocuments\n  Vectors:  {self.state['vectors']} embedded")
            case "search" | "vsearch" | "query":
                self.search(command, arguments[1:])
            case _:
                fail(f"Unknown command: {command}")

    def save(self) -> None:
        temporary = f"{self.file}.{os.getpid()}"
        with open(temporary, "wb") as stream:
            marshal.dump(self.state, stream)
        os.replace(temporary, self.file)

    def show(self) -> None:
        collections = self.state["collections"]
        say(f"Collections ({len(collections)}):\n" if collections else "No collections found.")
        for name, one in collections.items():
            say(f"{name} (qmd://{name}/)\n  Pattern:  {one['pattern']}\n  Files:    {self.files(name)}\n")

    def files(self, name: str) -> int:
        return sum(key.startswith(f"{name}/") for key in self.state["documents"])

    def add(self, path: str, _name: str, name: str, _mask: str, pattern: str) -> None:
        if name in self.state["collections"]:
            fail(f"Collection '{name}' already exists.")
        for other, one in self.state["collections"].items():
            if (one["path"], one["pattern"]) == (path, pattern):
                fail(f"A collection already exists for this path and pattern:\n  Name: {other}")
        if not os.path.isdir(path):
            fail("Collection path does not exist.")
        self.state["collections"][name] = {"path": path, "pattern": pattern}
        self.read(name)
        self.save()
        say(f"Collection '{name}' created successfully")

    def remove(self, name: str) -> None:
        if name not in self.state["collections"]:
            fail(f"Collection not found: {name}")
        del self.state["collections"][name]
        self.forget(name)
        self.save()

    def update(self) -> None:
        before = self.state["documents"]
        for name in self.state["collections"]:
            self.read(name)
            say(f"Indexed: 0 new, 0 updated, {self.files(name)} unchanged, 0 removed")
        # What is gone is only hidden, until somebody cleans up.
        kept = self.state["documents"].values()
        self.state["gone"] = [
            *self.state.get("gone", []),
            *(text for text in before.values() if text not in kept),
        ]
        self.save()

    def forget(self, name: str) -> None:
        documents = self.state["documents"]
        self.state["documents"] = {
            key: text for key, text in documents.items() if not key.startswith(f"{name}/")
        }

    def read(self, name: str) -> None:
        self.forget(name)
        one = self.state["collections"][name]
        for place, _, files in sorted(os.walk(one["path"])):
            for file in sorted(files):
                whole = os.path.join(place, file)
                below = os.path.relpath(whole, one["path"])
                if matches(below, one["pattern"]) and not os.path.islink(whole):
                    with open(whole, encoding="utf-8", errors="replace") as stream:
                        self.state["documents"][f"{name}/{below}"] = stream.read()

    def search(self, command: str, arguments: list[str]) -> None:
        end = arguments.index("--")
        options, question = arguments[:end], arguments[end + 1]
        names = [options[n + 1] for n, option in enumerate(options) if option == "-c"]
        most = int(options[options.index("-n") + 1])
        for name in names:
            if name not in self.state["collections"]:
                fail(f"Collection not found: {name}")
        if command == "vsearch" and not self.state["vectors"]:
            say("[]")
            return
        lines = [line.removeprefix("lex: ") for line in question.split("\n")]
        results = []
        for key, text in self.state["documents"].items():
            found = max(scored(line, text) for line in lines)
            if found > 0 and key.partition("/")[0] in names:
                results.append(result(key, text, lines[0], found))
        results.sort(key=lambda one: -float(one["score"]))
        import json  # noqa: PLC0415

        say(json.dumps(results[:most], indent=2, ensure_ascii=False))


def matches(name: str, pattern: str) -> bool:
    """Whether qmd reads a file: as much of its globs as memd uses."""
    if pattern == "{MEMORY,USER}.md":
        return name in {"MEMORY.md", "USER.md"}
    if pattern.endswith("**/*.md"):
        hidden = {"node_modules", "vendor", "dist", "build"}
        return name.endswith(".md") and hidden.isdisjoint(name.split("/")[:-1])
    return name == pattern


def scored(line: str, text: str) -> float:
    """Above 0 where a text holds all words of a line."""
    words = [word.strip('"').lower() for word in line.split()]
    counts = [text.lower().count(word) for word in words]
    return 1 - 1 / (1 + sum(counts)) if counts and all(counts) else 0.0


def result(key: str, text: str, question: str, score: float) -> "dict[str, Any]":
    """As qmd prints it: the line with the most words, with its neighbours."""
    lines = text.split("\n")
    words = [word.strip('"') for word in question.lower().split()]
    best = max(range(len(lines)), key=lambda n: sum(word in lines[n].lower() for word in words))
    start, end = max(0, best - 1), min(len(lines), best + 3)
    header = f"@@ -{start + 1},{end - start} @@ ({start} before, {len(lines) - end} after)"
    shown = "\n".join(lines[start:end])
    return {
        "docid": "#abc123",
        "score": round(score, 2),
        "file": f"qmd://{key}",
        "line": best + 1,
        "title": "A title",
        "snippet": f"{header}\n{shown[:297] + '...' if len(shown) > 300 else shown}",
    }


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(text + "\n")


def fail(message: str) -> None:
    """End with a message and status 1."""
    sys.stderr.write(message + "\n")
    raise SystemExit(1)
