"""The golden stores: files of the state directory as earlier programs left them."""

from pathlib import Path

import zstandard

DIRECTORY = Path(__file__).parent
WORKSPACE = DIRECTORY / "workspace"  # what was indexed; never changed
TALKED = DIRECTORY / "talked"  # the same with transcripts beside it, in a collection of their own
TRANSCRIPTS = TALKED / "transcripts"  # never changed
REJECTED = "unembeddable"  # a text with that word was set aside
FILES = ("agents/main.sqlite", "embeddings.sqlite")
_MOST_BYTES = 64 << 20


def stores(collection: Path = DIRECTORY) -> list[Path]:
    """One directory a schema, the oldest first."""
    return sorted(collection.glob("schema-*"), key=lambda path: [int(n) for n in path.name.split("-")[1:]])


def settings(home: Path) -> str:
    """TOML of the agent whose store has transcripts."""
    return (
        'sources = ["memory", "sessions"]\n'
        f'sessions = {{ paths = ["{home}/transcripts"], idle_seconds = 80000 }}\n'
        "sync = { wait_ms = 10000, interval_minutes = 600 }"
    )


def part(name: str) -> str:
    """What a file of the state directory is called in the collection."""
    return f"{Path(name).name}.zst"


def unpack(store: Path, state: Path) -> None:
    """Put a golden store where a daemon finds it."""
    for name in FILES:
        file = state / name
        file.parent.mkdir(parents=True, exist_ok=True)
        data = (store / part(name)).read_bytes()
        file.write_bytes(zstandard.decompress(data, max_output_size=_MOST_BYTES))


QUESTIONS = {
    "which database did we pick?": "MEMORY.md",
    "我们选了哪个数据库?": "MEMORY.md",
    "机房": "memory/2026-02-09.md",
    "jitter": "memory/2026-02-09.md",
}
