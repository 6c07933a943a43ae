"""Texts put into jobs."""

import pytest

from memd.providers.batch.grouping import groups, lines
from memd.providers.batch.line_blocks import BLOCK, blocks
from tests.providers.batch.rig import dialect_of, hash_of, texts_of


@pytest.mark.parametrize(
    ("count", "most", "sizes"), [(0, 3, []), (3, 3, [3]), (4, 3, [3, 1]), (7, 3, [3, 3, 1])]
)
def test_a_job_has_so_many_texts(count: int, most: int, sizes: list[int]) -> None:
    """In order, each in one."""
    texts = texts_of(count)
    found = list(groups(dialect_of("openai", "", most=most), texts))
    assert [len(group) for group in found] == sizes
    assert [text_hash for group in found for text_hash in group] == list(texts)


@pytest.mark.parametrize("name", ["openai", "gemini", "voyage"])
def test_a_file_has_so_many_bytes(name: str) -> None:
    """As it is sent, line ends included; as many texts as fit."""
    dialect = dialect_of(name, "https://example.org/v1beta", most_bytes=1000)
    found = list(groups(dialect, texts_of(40)))
    sizes = [sum(len(block) for block in blocks(lines(dialect, group))) for group in found]
    assert max(sizes) <= 1000
    shortest = min(len(line) for group in found for line in lines(dialect, group))
    assert all(size > 1000 - 2 * shortest for size in sizes[:-1])


def test_what_cannot_be_sent_whole_is_in_none() -> None:
    """Longer than the model takes, or than a file may be."""
    long, wide = "word " * 20_000, "\N{GREEK SMALL LETTER ALPHA}" * 900
    texts = {hash_of(text): text for text in (long, wide, "short")}
    [group] = groups(dialect_of("openai", "", most_bytes=1000), texts)
    assert list(group.values()) == ["short"]


def test_what_no_json_can_carry_is_mended() -> None:
    """As it is for plain requests, so that both give the same vector."""
    texts = {hash_of(text): text for text in ("a\0b", "\ud800", " ")}
    [group] = groups(dialect_of("openai", ""), texts)
    assert list(group.values()) == ["ab", "?", "."]


def test_blocks_are_the_lines_with_their_ends() -> None:
    """Whatever their number and size."""
    some = [b"x" * size for size in (0, 1, BLOCK, 3, BLOCK * 2, 5)]
    assert b"".join(blocks(some)) == b"".join(line + b"\n" for line in some)
    assert max(map(len, blocks(some * 3))) < BLOCK * 3 + 20
    assert list(blocks([])) == []
