"""Ten thousand transcripts in one directory."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.daemon.chats import AT_ONCE, directory, settings
from tests.daemon.inprocess import running

COUNT = 10_000


def lay_out(home: Path) -> Path:
    """So many short transcripts, of long ago."""
    place = directory(home) / "app"
    place.mkdir(parents=True)
    (home / "workspace" / "memory").mkdir(parents=True)
    for number in range(COUNT):
        line = {"role": "user", "content": f"walrus{number} was seen"}
        file = place / f"{number}.jsonl"
        file.write_text(json.dumps(line) + "\n")
        os.utime(file, (1_700_000_000, 1_700_000_000 + number))
    return place


@pytest.mark.long
async def test_ten_thousand_transcripts_are_indexed_and_followed(home: Path) -> None:
    """All are found; a look at the unchanged ones is quick, and so is one more turn among them."""
    place = lay_out(home)
    async with running(home, settings=settings(home, AT_ONCE)) as client:
        assert (await client.sync()).files == COUNT
        began = time.process_time()
        assert (await client.sync()).changed == 0
        assert time.process_time() - began < 10
        with (place / "7.jsonl").open("a") as stream:
            stream.write('{"role": "assistant", "content": "it is called Wanda"}\n')
        found = await client.search("Wanda")
        assert [hit.path for hit in found.results] == ["sessions/projects/app/7.jsonl"]
        (place / "8.jsonl").unlink()
        (place / "9.jsonl").rename(place / "moved.jsonl")
        assert (await client.sync()).files == COUNT - 1
        told = (await client.status()).agents["main"]
        assert told.sessions is not None
        assert (told.sessions.files, told.sessions.turns) == (COUNT - 1, COUNT)
    async with running(home, settings=settings(home, AT_ONCE)) as client:
        assert (await client.sync()).changed == 0
