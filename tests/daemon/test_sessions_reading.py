"""What is found in transcripts, and what is read of them."""

import json
from pathlib import Path

from memd.text.turn_header import header_in
from memd_client.tool_replies import encoded
from memd_client.tools import AsyncTools
from tests.daemon.inprocess import running, write

SETTINGS = 'sources = ["memory", "sessions"]\nsessions = {{ paths = ["{home}/chats"], idle_seconds = 0 }}'


def transcript(home: Path, name: str, texts: list[str]) -> None:
    """A talk, with what a tool did between any two turns."""
    (home / "chats").mkdir(exist_ok=True)
    records = []
    for number, text in enumerate(texts):
        role = ("user", "assistant")[number % 2]
        records += [
            {"role": role, "content": text, "timestamp": 1_772_442_120 + 60 * number},
            {"role": "tool", "content": f"did {number}"},
        ]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (home / "chats" / name).write_text(lines, encoding="utf-8")


async def test_a_hit_of_a_session_is_read_where_it_stands(home: Path) -> None:
    """Its lines are those of the transcript; from there on every turn is read once, however long one is."""
    long = " ".join(f"word{number}" for number in range(6000))
    texts = [f"we talked of matter {number:02}" for number in range(60)]
    texts[41], texts[44] = "the kettle is painted vermilion", long
    transcript(home, "talk.jsonl", texts)
    async with running(home, settings=SETTINGS.format(home=home)) as memd:
        await memd.sync(vectors=False)
        found = await memd.search("vermilion kettle", max_results=1)
        [hit] = found.results
        assert (hit.source, hit.path) == ("sessions", "sessions/chats/talk.jsonl")
        assert hit.start_line <= 83 <= hit.end_line
        assert header_in(hit.snippet)
        note = await memd.get(hit.path, start_line=83, lines=3)
        told, beside = note.text.split("\n\n")
        assert told.endswith("Assistant: the kettle is painted vermilion")
        assert beside.endswith("User: we talked of matter 42")
        assert (note.start_line, note.end_line, note.next_line) == (83, 85, 87)
        read, start, end_line = "", 1, 0
        for _ in range(100):
            note = await memd.get(hit.path, start_line=start, lines=7)
            assert len(note.text) <= 12_000
            read, end_line = read + note.text, note.end_line
            if note.next_line is None:
                break
            start = note.next_line
        assert all(read.count(text) == 1 for text in texts)
        beyond = await memd.get(hit.path, start_line=10_000)
        assert (beyond.text, beyond.end_line, beyond.next_line, beyond.total_lines) == ("", 0, None, end_line)
        missing = await memd.get("sessions/chats/other.jsonl")
        assert missing.missing


async def test_a_model_reads_all_of_a_turn_that_is_longer_than_its_replies(home: Path) -> None:
    """Reading on from nextLine misses nothing, although a reply holds far less than the daemon gives at once."""
    long = "\n".join(f'he said "word{number}"' for number in range(1500))
    transcript(home, "talk.jsonl", ["what did he say?", long, "thank you"])
    async with running(home, settings=SETTINGS.format(home=home)) as memd:
        await memd.sync(vectors=False)
        tools = AsyncTools(lambda: memd)
        read, start = "", 1
        for _ in range(100):
            place = {"path": "sessions/chats/talk.jsonl", "from": start}
            reply = await tools.call("memory_get", place)
            assert len(encoded(reply)) <= 4000
            assert "truncated" not in reply
            read += reply["text"]
            if "nextLine" not in reply:
                break
            start = reply["nextLine"]
        assert long in read
        assert (read.count("what did he say?"), read.count("thank you")) == (1, 1)


async def test_notes_and_sessions_are_both_among_the_hits(home: Path) -> None:
    """However much of one there is; and each can be asked for alone."""
    transcript(home, "talk.jsonl", [f"kettle {number}. " + "It was boiling. " * 45 for number in range(60)])
    write(home, "memory/kitchen.md", "# Kitchen\n\nThe kettle stands beside the window of the old house.\n")
    async with running(home, settings=SETTINGS.format(home=home)) as memd:
        await memd.sync()
        both = await memd.search("kettle boiling", max_results=6)
        assert {hit.source for hit in both.results[:3]} == {"memory", "sessions"}
        assert len(both.results) == 6
        for source in ("memory", "sessions"):
            alone = await memd.search("kettle boiling", max_results=6, source=source)
            assert {hit.source for hit in alone.results} == {source}
