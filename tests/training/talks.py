"""Talks with questions that single turns of them answer, as people and agents ask them; nobody in them exists."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from memd.chunk import markdown
from memd.chunk.turns import chunk_turns
from memd.domain_types import Chunk, Document, Kind, Turn, embedded_part, embedded_text

FILES = tuple(sorted(Path(__file__).with_name("talks").glob("*.jsonl")))
TOKENS, OVERLAP = 400, 80  # of a chunk: the defaults


class AskedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question, and the index of the turn that answers it."""

    turn: int
    question: str
    kind: Literal["para", "cross", "plain"]  # see NotePair


class Talk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A talk of two; each turn begins with who speaks."""

    turns: tuple[str, ...]
    asked: tuple[AskedTurn, ...]


class CutTalk(msgspec.Struct, frozen=True):
    """A talk as it is embedded: its chunks, and their parts; each text with the indexes of the turns that it holds."""

    chunks: dict[str, frozenset[int]]
    parts: dict[str, frozenset[int]]


def read() -> list[Talk]:
    """Return the talks.

    Raises:
        msgspec.MsgspecError: a line is no Talk.
    """
    decoder = msgspec.json.Decoder(Talk)
    return [decoder.decode(line) for file in FILES for line in file.read_bytes().splitlines()]


def as_transcript(talk: Talk, seed: int) -> CutTalk:
    """Cut a talk as a transcript of a random day."""
    rng = random.Random(seed)
    at = datetime(2023, 1, 1, tzinfo=UTC).timestamp() + rng.randrange(3 * 365 * 24 * 60) * 60
    turns = [
        Turn("", "assistant" if n % 2 else "user", at + 60 * n, n + 1, n + 1, text)
        for n, text in enumerate(talk.turns)
    ]
    made = chunk_turns(turns, 0, f"session_{seed}", tokens=TOKENS, overlap=OVERLAP, zone=None).chunks
    return _embedded(talk, made)


def as_note(talk: Talk, seed: int) -> CutTalk:
    """Cut a talk as a list in a note of a random day."""
    rng = random.Random(seed)
    day = datetime.fromtimestamp(1.67e9 + rng.randrange(3 * 365) * 86400, UTC)
    lines = (f"# {day:%d %B, %Y}", "", *(f"- {turn}" for turn in talk.turns))
    document = Document(f"memory/talk-{seed}.md", Kind.NOTE, lines)
    return _embedded(talk, markdown.chunk(document, TOKENS, OVERLAP))


def _embedded(talk: Talk, chunks: Iterable[Chunk]) -> CutTalk:
    whole: dict[str, frozenset[int]] = {}
    parts: dict[str, frozenset[int]] = {}
    for chunk in chunks:
        held = {n: chunk.text.find(turn) for n, turn in enumerate(talk.turns) if turn in chunk.text}
        whole[embedded_text(chunk.context, chunk.text)] = frozenset(held)
        for first, last in chunk.parts:
            # A long turn is cut between sentences: what has a third of it holds it.
            parts[embedded_part(chunk.text, first, last)] = frozenset(
                n
                for n, begin in held.items()
                if 3 * (min(last, begin + len(talk.turns[n])) - max(first, begin)) >= len(talk.turns[n])
            )
    return CutTalk(whole, parts)
