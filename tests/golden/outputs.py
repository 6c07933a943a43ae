"""What memd makes of the corpus, and the numbers in an index that stand for it."""

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC
from pathlib import Path

import apsw
import msgspec

from memd.chunk.markdown import chunk
from memd.config.settings import Chunking, Redact
from memd.redact import rule
from memd.redact.redactor import Redactor
from memd.sources.transcripts import format as formats
from memd.store import meta
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.text.tokens import cjk_share, fts_text
from tests.golden import corpus
from tests.indexing.transcribed import apply, held, opened, rules, shelf
from tests.store.conftest import chunk_of, found_file

_SIZES = {"as shipped": Chunking(), "small": Chunking(tokens=60, overlap=12)}
_ROWS = 200  # of keyword text in an index


class Output(msgspec.Struct, frozen=True):
    """Something that an index keeps of what memd made."""

    name: str  # in the file of digests
    number: Callable[[], str]  # what stands in the fingerprint of an index for how it is made
    raised: str  # where the number is, for whoever changes what is made
    made: Callable[[], Mapping[str, object]]  # by the part of the corpus; values that JSON has


def _chunks() -> Mapping[str, object]:
    return {
        f"{name}, {size}": [
            msgspec.structs.replace(one, hash=one.hash.hex())  # for JSON
            for one in chunk(document, chunking.tokens, chunking.overlap)
        ]
        for name, document in corpus.notes().items()
        for size, chunking in _SIZES.items()
    } | {"share of Chinese": {name: cjk_share(text) for name, text in _texts().items()}}


def _keywords() -> Mapping[str, object]:
    return {name: fts_text(text) for name, text in _texts().items()} | {"terms": _terms()}


def _terms() -> list[tuple[str, int, int]]:
    """The terms that SQLite takes from keyword text, with how many rows have them and how often they are there."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "main.sqlite")
        asyncio.run(_fill(file))
        connection = apsw.Connection(str(file))
        try:
            connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, keywords, row)")
            return list(connection.execute("SELECT term, doc, cnt FROM temp.terms ORDER BY term"))
        finally:
            connection.close()


async def _fill(file: Path) -> None:
    index = Index(file)
    await index.open()
    await index.adopt(Fingerprint("c", "t", ("memory",)))
    rows = [text[:2000] for text in _texts().values() if text.strip()][:_ROWS]
    chunks = [chunk_of(text, line) for line, text in enumerate(rows, 1)]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    await index.close()


def _turns() -> Mapping[str, object]:
    made: dict[str, object] = {}
    for size, chunking in _SIZES.items():
        with tempfile.TemporaryDirectory() as directory:
            kept = asyncio.run(_talk(Path(directory), chunking))
        for name in corpus.transcripts():
            made[f"{name}, {size}"] = {
                what: [row for row in rows if row[0] == f"sessions/here/{name}.jsonl"]
                for what, rows in kept.items()
            }
    return made


async def _talk(directory: Path, chunking: Chunking) -> Mapping[str, list[tuple[object, ...]]]:
    """What an index keeps of all transcripts."""
    roots = shelf(directory / "here")
    for name, data in corpus.transcripts().items():
        (directory / "here" / f"{name}.jsonl").write_bytes(data)
    async with opened(directory / "main.sqlite") as index:
        await apply(index, rules(roots, chunking=chunking, zone=UTC))
    return held(directory / "main.sqlite")


def _redacted() -> Mapping[str, object]:
    redactor = Redactor(Redact())
    return {name: redactor.redact(text).text for name, text in corpus.secrets().items()} | {
        f"note: {name}": redactor.redact("\n".join(document.lines)).text
        for name, document in corpus.notes().items()
    }


def _texts() -> Mapping[str, str]:
    return {name: "\n".join(document.lines) for name, document in corpus.notes().items()}


OUTPUTS = (
    Output("chunks", lambda: str(meta.CHUNKING), "CHUNKING in memd/store/meta.py", _chunks),
    Output("keyword text", lambda: str(meta.TOKENIZER), "TOKENIZER in memd/store/meta.py", _keywords),
    Output(
        "turns",
        lambda: f"{formats.VERSION}.{meta.TURNS}, redaction {rule.VERSION}",
        "TURNS in memd/store/meta.py (VERSION in memd/sources/transcripts/format.py for what is read of a line)",
        _turns,
    ),
    Output("redacted text", lambda: str(rule.VERSION), "VERSION in memd/redact/rule.py", _redacted),
)


def digests(output: Output) -> dict[str, str]:
    """A digest for each part of the corpus."""
    return {
        name: hashlib.sha256(shown(made).encode()).hexdigest()[:16] for name, made in output.made().items()
    }


def shown(made: object) -> str:
    """What was made, as JSON to read and to compare."""
    return msgspec.json.format(msgspec.json.encode(made), indent=1).decode()
