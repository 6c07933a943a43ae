"""Whatever bytes a note is made of, it is indexed or counted, and holds up no other."""

import codecs
import os
from pathlib import Path

import pytest

from tests.daemon.fresh import QUICK, becomes_fresh, holding
from tests.daemon.process import Daemon

CONTENTS: dict[str, tuple[bytes, str | None]] = {
    "empty": (b"", None),
    "blank": (b" \n\t\r\n\xe3\x80\x80\n", None),
    "bom": (codecs.BOM_UTF8 + b"# Mark\n\nbomword\n", "bomword"),
    "bom-alone": (codecs.BOM_UTF8, None),
    "crlf": (b"# Dos\r\n\r\ncrlfword\r\n", "crlfword"),
    "cr": (b"# Mac\r\rcrword\r", "crword"),
    "latin1": (b"caf\xe9 latinword \xff\xfe\n", "latinword"),
    "cut": ("字".encode()[:2] + b" cutword", "cutword"),
    "nul": (b"nulword\0\0\0\0\nand\0more", "nulword"),
    "nul-alone": (b"\0" * 4096, None),
    "utf16le": (codecs.BOM_UTF16_LE + "# 日记\n\nutfword 数据".encode("utf-16-le"), "utfword"),
    "utf16be": (codecs.BOM_UTF16_BE + "otherword\r\n".encode("utf-16-be"), "otherword"),
    "gbk": ("# 周会\r\n\r\n我们把数据库移到新的机器 gbkword".encode("gbk"), "数据库移到"),
    "gbk-then-utf8": (
        "# 周会\n\n我们的旧机器没有空间了\n".encode("gbk") + "- 明天买一台 laterword\n".encode(),
        "空间了",
    ),
    "utf16-bare": ("bareword".encode("utf-16-le"), "bareword"),
    "surrogates": (b"\xed\xa0\x80 surrogateword", "surrogateword"),
    "binary": (bytes(range(256)) * 40 + b"\nbinaryword\n", "binaryword"),
    "controls": (b"\x1b[31m redword\x07\x08\n", "redword"),
    "ends": (b"\n" * 30_000 + b"endword" + b"\n" * 30_000, "endword"),
    "line": (b"x" * 200_000 + b" lineword", "lineword"),
    "cjk": ("记忆".encode() * 20_000 + "袋熊".encode(), "袋熊"),
    "hashes": (b"#\n" * 10_000 + b"hashword", "hashword"),
    "fence": (b"```\nnever closed\n# fenceword\n", "fenceword"),
}

NOT_UTF8 = ("latin1", "cut", "surrogates", "binary")


def test_any_bytes(daemon: Daemon) -> None:
    """Text is found whatever its marks, line ends and encoding; what holds no text is there and gives no chunk."""
    daemon.configure(QUICK)
    with daemon.start(), daemon.client(60) as client:
        client.sync()
        for name, (raw, _) in CONTENTS.items():
            daemon.write(f"memory/{name}.md", "").write_bytes(raw)
        fresh = becomes_fresh(daemon, client)
        for name, (_, word) in CONTENTS.items():
            chunks = fresh.contents[f"memory/{name}.md"]
            assert bool(chunks) == (word is not None)
            assert all(chunk.text.strip() for chunk in chunks)
            if word is not None:
                assert holding(client, word) == {f"memory/{name}.md"}
    assert fresh.skipped == {"text that is not UTF-8": len(NOT_UTF8)}
    ends = {(chunk.start_line, chunk.end_line, chunk.text) for chunk in fresh.contents["memory/ends.md"]}
    assert ends == {(30_001, 30_001, "endword")}


def test_a_file_over_the_limit(daemon: Daemon) -> None:
    """It is counted, and indexed when it shrinks; one that grows over the limit is forgotten, for its text is another."""
    huge, log = daemon.workspace / "memory" / "huge.md", daemon.write("memory/log.md", "logword\n")
    daemon.write("memory/small.md", "smallword\n")
    daemon.configure(QUICK)
    with huge.open("wb") as opened:
        opened.write(b"hugeword\n")
        os.truncate(opened.fileno(), 50_000_000)  # the rest takes no room on the disk
    with daemon.start(), daemon.client() as client:
        client.sync()
        assert client.status().agents["main"].skipped == {"too large": 1}
        assert (holding(client, "hugeword"), holding(client, "smallword")) == (set(), {"memory/small.md"})
        assert client.get("memory/huge.md").missing
        os.truncate(log, 16_000_001)
        fresh = becomes_fresh(daemon, client)
        assert (set(fresh.contents), fresh.skipped) == ({"memory/small.md"}, {"too large": 2})
        assert client.get("memory/log.md").missing
        os.truncate(huge, 16_000_000)
        os.truncate(log, 8)
        fresh = becomes_fresh(daemon, client)
        assert (set(fresh.contents), fresh.skipped) == (
            {f"memory/{name}.md" for name in ("huge", "log", "small")},
            {},
        )
        assert holding(client, "hugeword") == {"memory/huge.md"}


@pytest.mark.long
def test_a_file_that_grows_while_it_is_read(daemon: Daemon) -> None:
    """A log that somebody writes all the time is findable meanwhile, and whole when the writing ends."""
    daemon.configure(QUICK)
    log = Path(daemon.write("memory/log.md", "# Log\n\n"))
    with daemon.start(), daemon.client() as client:
        client.sync()
        with log.open("ab", buffering=0) as opened:
            for number in range(300):
                opened.write(f"- entry{number:03} of the log\n".encode() * 20)
                if number % 50 == 49:
                    assert holding(client, f"entry{number:03}") == {"memory/log.md"}
        fresh = becomes_fresh(daemon, client)
    assert fresh.texts()["memory/log.md"].count("entry299") >= 20
