import hashlib
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.chunk.markdown import LONGEST, chunk
from memd.domain_types import Chunk, Document, Kind, embedded_text
from memd.sources.notes import lines_of
from memd.text.tokens import fts_text
from memd_client.token_estimate import estimate_tokens
from tests.awkward import markdown as awkward
from tests.bounds import shipped
from tests.work import calls, peak_bytes


def document(text: str, path: str = "memory/notes.md", kind: Kind = Kind.NOTE) -> Document:
    return Document(path, kind, tuple(text.split("\n")))


def bounds(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(one.start_line, one.end_line) for one in chunks]


LINES = st.lists(
    st.one_of(
        st.text(alphabet=st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=120),
        st.sampled_from(
            [
                "",
                "",
                "# Title",
                "## Part",
                "- an entry",
                "```",
                "~~~",
                "---",
                "a sentence. " * 20,
                "句子。" * 60,
            ]
        ),
    ),
    max_size=30,
)


def test_a_chunk_has_as_many_lines_as_it_has_room_for() -> None:
    """Of empty ones each takes its end alone."""
    text = "a\n" + 29 * "\n" + "b"
    assert bounds(chunk(document(text), 8, 0)) == [(1, 31)]
    assert bounds(chunk(document("a\n\n" + 29 * "\n" + "b"), 8, 0)) == [(1, 1), (32, 32)]


@given(LINES, st.integers(1, 60), st.integers(0, 60), st.integers(8, 300), st.sampled_from(list(Kind)))
def test_no_text_is_lost_and_no_limit_broken(
    lines: list[str], tokens: int, overlap: int, longest: int, kind: Kind
) -> None:
    """Every line that is not blank is in chunks as it stands, each within both limits, in the order of the file."""
    chunks = chunk(Document("memory/x.md", kind, tuple(lines)), tokens, overlap, longest)
    held: dict[int, list[str]] = {}
    for one in chunks:
        assert estimate_tokens(one.text) <= max(8, tokens)
        assert len(one.text) <= longest
        assert one.text.strip()
        parts = one.text.split("\n")
        assert len(parts) == one.end_line - one.start_line + 1
        for number, part in enumerate(parts, one.start_line):
            held.setdefault(number, []).append(part)
            assert part in lines[number - 1]
    assert [one.start_line for one in chunks] == sorted(one.start_line for one in chunks)
    for number, line in enumerate(lines, 1):
        if line.strip():
            assert covers(held.get(number, []), line)


def covers(parts: list[str], line: str) -> bool:
    """Whether the parts of a line, in order and perhaps overlapping, make all of it but blanks."""
    reached = 0
    for part in parts:
        while reached < len(line) and line[reached].isspace():
            reached += 1
        at = line.rfind(part, 0, reached + len(part))
        if at >= 0:
            reached = max(reached, at + len(part))
    return not line[reached:].strip()


@given(LINES)
def test_cutting_is_deterministic(lines: list[str]) -> None:
    """The same document gives the same chunks."""
    one = Document("memory/x.md", Kind.NOTE, tuple(lines))
    assert chunk(one, 40, 8) == chunk(one, 40, 8)


@pytest.mark.parametrize("text", ["", "\n\n", "  \n\t\n", "\u3000"])
def test_a_blank_document_has_no_chunk(text: str) -> None:
    """Nothing is made of nothing."""
    assert chunk(document(text), 400, 80) == []


def test_a_small_topic_is_one_chunk() -> None:
    """What fits is not cut, whatever parts it has, and blank lines at its ends are left out."""
    chunks = chunk(document("\n# A\n\none\n\n### B\n\ntwo\n\n"), 400, 80)
    assert bounds(chunks) == [(2, 8)]
    assert chunks[0].text == "# A\n\none\n\n### B\n\ntwo"


@pytest.mark.parametrize("kind", [Kind.NOTE, Kind.CURATED])
def test_a_topic_begins_a_chunk(kind: Kind) -> None:
    """A heading of the first two levels begins one; where nothing stands below it, it stays with what follows."""
    text = (
        "# Title\n\n## Work\n- one\n- two\n### Later\n- three\n\n## 家里\n\n- 四\n- 五\n# Other\n## End\nsix"
    )
    assert bounds(chunk(document(text, kind=kind), 400, 80)) == [(1, 7), (9, 12), (13, 15)]


def test_a_section_that_fits_stays_whole() -> None:
    """A section moves to the next chunk rather than being divided."""
    text = "# A\n" + "x" * 60 + "\n## B\n" + "y" * 60 + "\nlast line of B"
    chunks = chunk(document(text), 25, 5)
    assert bounds(chunks) == [(1, 2), (3, 5)]


def test_a_large_section_overlaps_within_itself_alone() -> None:
    """The parts of a section share lines; two sections do not."""
    text = "## A\n" + "\n".join(f"line {n:02} of the first section" for n in range(12)) + "\n## B\nother"
    chunks = chunk(document(text), 40, 10)
    assert len(chunks) > 2
    for before, after in pairwise(chunks):
        if after.text.startswith("## B"):
            assert after.start_line > before.end_line
        else:
            assert before.start_line < after.start_line <= before.end_line


def test_blank_lines_alone_are_not_repeated() -> None:
    """They would take the room of lines that have something to say."""
    lines = [
        "word0 word1 word2 word3 word4 word5 word6 word7",
        f"{'ab ' * 9}c",
        "",
        f"{'ab ' * 10}c",
        " ".join(f"word{number}" for number in range(10)),
    ]
    chunks = chunk(document("\n".join(lines)), tokens=14, overlap=10, longest=10_000)
    assert bounds(chunks) == [(1, 1), (2, 2), (4, 5), (5, 5), (5, 5)]


def test_no_overlap_when_told_so() -> None:
    """With an overlap of 0 every line is in one chunk."""
    text = "\n".join(f"line {n:02} of a long list of lines" for n in range(30))
    chunks = chunk(document(text), 40, 0)
    assert [n for one in chunks for n in range(one.start_line, one.end_line + 1)] == list(range(1, 31))


def test_entries_of_a_curated_file_stay_whole() -> None:
    """In MEMORY.md a list item of the first level is an entry, with the lines under it."""
    entries = "\n".join(f"- fact {n}\n  {'detail ' * 8}" for n in range(6))
    chunks = chunk(document("# Memory\n" + entries, "MEMORY.md", Kind.CURATED), 30, 8)
    assert len(chunks) > 2
    for one in chunks[1:]:
        assert one.text.startswith("- fact")
        assert one.text.split("\n")[-1].startswith("  detail")


def test_a_long_line_is_cut_after_sentences() -> None:
    """Parts of one line keep its number, end with a sentence where they can, and overlap by whole sentences."""
    sentence = "用户决定把数据库迁移到新的机器上。"
    chunks = chunk(document("## 1\n\n" + sentence * 60), 100, 20)
    assert bounds(chunks)[0] == (1, 3)
    assert set(bounds(chunks[1:])) == {(3, 3)}
    for one in chunks:
        assert one.text.endswith("。")
        assert one.text.removeprefix("## 1\n\n").startswith("用户")
    assert sum(one.text.count(sentence) for one in chunks) > 60


def test_a_line_without_a_place_to_cut_is_cut_between_characters() -> None:
    """A word of any length is kept, and no visible character is divided."""
    family = "👨\u200d👩\u200d👧"
    chunks = chunk(document(family * 200), 40, 0)
    assert "".join(one.text for one in chunks) == family * 200
    assert all(one.text.startswith("👨") and one.text.endswith("👧") for one in chunks)


@pytest.mark.parametrize("after", ["", "\n", "\n" * 300, "\n\nmore"])
def test_no_chunk_says_only_what_the_one_before_it_ends_with(after: str) -> None:
    """Blanks behind a long line, be they as many as fill chunks, have the end of the line repeated for nothing."""
    line = " ".join(f"word {n}" for n in range(18))
    for blanks in range(0, 400, 7):
        chunks = chunk(document(line + " " * blanks + after), 40, 10)
        assert all(later.text.strip() not in before.text for before, later in pairwise(chunks))
        assert chunks[-1].text.strip().endswith(("word 17", "more"))


def test_a_chunk_is_no_longer_than_what_a_hit_shows() -> None:
    """Latin text reaches the limit of characters before that of tokens, CJK text that of tokens."""
    latin = chunk(document("\n".join(["word " * 20] * 100)), 400, 80)
    assert 0.8 * LONGEST < max(len(one.text) for one in latin) <= LONGEST
    cjk = chunk(document("\n".join(["字" * 39] * 100)), 400, 80)
    assert 320 < max(len(one.text) for one in cjk) <= 400


@pytest.mark.parametrize(
    ("text", "path", "context"),
    [
        ("# My note\n\ntext", "memory/x.md", "My note"),
        ("no heading", "memory/project-x.md", "project-x"),
        ("# Standup\ntext", "memory/2026-02-09.md", "Standup (2026-02-09, 9 February 2026)"),
        ("# Standup\ntext", "memory/2026-02-09-retro.md", "Standup (2026-02-09, 9 February 2026)"),
        ("text", "memory/2026-02-09.md", "2026-02-09 (9 February 2026)"),
        ("# 站会\n今天开会讨论了", "memory/2026年2月9日.md", "站会 (2026-02-09, 2026年2月9日)"),
        ("今天开会讨论了", "memory/2026年2月9日.md", "2026年2月9日 (2026-02-09)"),
        ("# Standup\ntext", "memory/9.2.2026.md", "Standup (2026-02-09, 9 February 2026)"),
        ("# Standup\ntext", "memory/2026/02/09.md", "Standup (2026-02-09, 9 February 2026)"),
        ("# 二月\n开会", "memory/2026年2月.md", "二月"),
        ("# 9 February 2026\ntext", "memory/2026-02-09.md", "9 February 2026 (2026-02-09)"),
        ("# Monday, February 9, 2026\ntext", "memory/2026-02-09.md", "Monday, February 9, 2026 (2026-02-09)"),
        ("# 站会\n今天开会讨论了", "memory/2026-02-09.md", "站会 (2026-02-09, 2026年2月9日)"),
        ("text", "memory/2026-02-31.md", "2026-02-31"),
        ("text", "memory/2026-02-30-x.md", "2026-02-30-x"),
        ("---\ntitle: 'Front'\n# not: a heading\n---\ntext", "memory/x.md", "Front"),
        ("---\ntitle: never closed\n\ntext", "memory/x.md", "x"),
        ("# Closed ##\ntext", "memory/x.md", "Closed"),
        ("#nospace\ntext", "memory/x.md", "x"),
    ],
)
def test_the_context_places_a_chunk(text: str, path: str, context: str) -> None:
    """Title, or name of the file, and the day that the name tells, in digits and in words."""
    assert [one.context for one in chunk(document(text, path), 400, 80)] == [context]


def test_the_context_has_the_headings_above() -> None:
    """A chunk is placed by the headings over it, not by those of sections that ended."""
    text = (
        "# T\n## A\n" + "a" * 90 + "\n### A1\n" + "b" * 90 + "\n## B\n" + "c" * 90 + "\n### B1\n" + "d" * 90
    )
    contexts = [one.context for one in chunk(document(text), 25, 0)]
    assert contexts == ["T", "T > A", "T", "T > B"]


@pytest.mark.parametrize("fence", ["```", "~~~~", "```python"])
def test_a_fence_hides_headings(fence: str) -> None:
    """A comment in a code block is no heading, and the block ends where its fence does."""
    close = fence.rstrip("python")
    text = f"# T\n{fence}\n# comment\n{'x = 1 ' * 15}\n{close}\n## Real\n{'y' * 80}"
    chunks = chunk(document(text), 30, 0)
    assert [one.context for one in chunks] == ["T", "T"]
    assert chunks[1].text.startswith("## Real")


def test_the_hash_is_of_the_embedded_text() -> None:
    """Equal text under an equal context has an equal hash, wherever it stands; another context makes another."""
    body = "\n".join(["## Same", "a line " * 9])
    chunks = chunk(document(f"# T\n{body}\n{body}\n# U\n{body}"), 18, 0)
    same = [one for one in chunks if one.text.startswith("## Same")]
    assert len(same) == 3
    assert same[0].hash == same[1].hash != same[2].hash
    for one in chunks:
        assert one.hash == hashlib.sha256(embedded_text(one.context, one.text).encode()).digest()


MEGABYTES = 0.25


def filled(unit: str) -> str:
    """A text of that many megabytes: what took the square of its length would take minutes."""
    return unit * (int(MEGABYTES * 1_000_000) // len(unit.encode()))


@pytest.mark.rows(8)
@pytest.mark.parametrize(
    "unit",
    [
        "\n", " \n", "a\n", "#\n", "# h\n", "### a\n- b\n", "- \n", "```\n", "~~~\nx\n", "| a | b |\n", "字\n",
        "x", " ", "\t", "#", "- ", "`", "word ", ". ", "| a ", "字", "用户决定迁移。", "\u3000", "\U00020000", "\u0301",
        "👨\u200d👩\u200d👧", "\ufffd", "x" * 90 + "\n" * 90, "# " + "h" * 90 + "\n",
    ],
)  # fmt: skip
def test_the_time_grows_with_the_text_alone(unit: str) -> None:
    """No text takes more than a moment, whatever it repeats; none gives a chunk of blanks, or more than it has room for."""
    one = document(filled(unit), "MEMORY.md", Kind.CURATED)
    began = process_time()
    chunks = chunk(one, 400, 80)
    # Ten times what a loaded machine takes, and far less than minutes.
    assert process_time() - began < 40 * MEGABYTES
    assert all(each.text.strip() for each in chunks)
    assert bool(chunks) == bool(unit.strip())
    # With the overlap: 80 of 400 tokens.
    assert sum(len(each.text) for each in chunks) <= 1.4 * sum(map(len, one.lines)) + 2 * len(one.lines)


@pytest.mark.parametrize(
    "line",
    [
        "# x" + " " * 250_000 + "y",
        "# " + " " * 250_000 + "x",
        "# " + "x #" * 80_000,
        "title: x" + " " * 250_000 + "y",
        "`" * 250_000 + "x`",
        "- " + " " * 250_000 + "x",
    ],
    ids=["blanks in a heading", "blanks before it", "hashes in it", "blanks in a title", "ticks", "an entry"],
)
def test_no_line_takes_more_than_its_length(line: str) -> None:
    """A line is looked through once, whatever it begins like, in front matter and below it."""
    began = process_time()
    chunk(Document("MEMORY.md", Kind.CURATED, ("---", line, "---", line, line)), 400, 80)
    assert process_time() - began < 10  # by far


# --- documents of every form, by a grammar

_RUNS = st.sampled_from(
    [
        *(
            "word",
            "a sentence. ",
            "句子。",
            "字",
            "メモ",
            "한글",
            "e\u0301",
            "\u0301" * 40,
            "👨\u200d👩\u200d👧",
            "\ud800",
            "\U00020000",
        ),
        *(
            "x" * 90,
            " ",
            "\t",
            "\u3000",
            "\u00a0",
            "\x0b",
            "\x85",
            "\u2028",
            "\0",
            "ﷺ",
            "|",
            "*",
            "`",
            "~",
            "#",
            "- ",
            "> ",
        ),
    ]
) | st.text(st.characters(exclude_characters="\n"), max_size=6)
_PROSE = st.lists(_RUNS, max_size=12).map("".join)
_FENCE_LINES = st.tuples(
    st.integers(0, 4),
    st.sampled_from(["`", "~"]),
    st.integers(2, 6),
    st.sampled_from(["", "python", " x`y", "  "]),
).map(lambda made: " " * made[0] + made[1] * made[2] + made[3])
_HEADING_LINES = st.tuples(
    st.integers(0, 4), st.integers(1, 7), st.sampled_from([" ", "\t", ""]), _PROSE
).map(lambda made: " " * made[0] + "#" * made[1] + made[2] + made[3])
_ITEM_LINES = st.tuples(st.sampled_from(["- ", "  - ", "* ", "1. ", "- [ ] ", "-"]), _PROSE).map("".join)
_ODD_LINES = st.sampled_from(
    ["", "", "---", "...", "title: x", "===", "| a | b |", "<!-- x", " " * 300, "字" * 900, "w " * 700]
)
DOCUMENTS = st.builds(
    lambda lines, front, name, kind: Document(
        f"memory/{name}.md", kind, ("---", "title: front", "---", *lines) if front else tuple(lines)
    ),
    st.lists(_HEADING_LINES | _FENCE_LINES | _ITEM_LINES | _PROSE | _PROSE | _ODD_LINES, max_size=40),
    st.booleans(),
    st.sampled_from(["x", "2026-02-09", "2026-02-30", "日記"]),
    st.sampled_from(list(Kind)),
)


@given(DOCUMENTS, st.integers(1, 90), st.integers(0, 90), st.integers(8, 800))
def test_chunks_of_any_document_make_the_document(
    whole: Document, tokens: int, overlap: int, longest: int
) -> None:
    """Put together by their line numbers, chunks give every line back, and none is too large or repeats too much."""
    chunks = chunk(whole, tokens, overlap, longest)
    assert chunk(whole, tokens, overlap, longest) == chunks
    together: dict[int, list[str]] = {}
    for one in chunks:
        assert len(one.text) <= longest
        assert estimate_tokens(one.text) <= max(8, tokens)
        parts = one.text.split("\n")
        assert len(parts) == one.end_line - one.start_line + 1
        for number, part in enumerate(parts, one.start_line):
            together.setdefault(number, []).append(part)
            assert part in whole.lines[number - 1]
    for number, line in enumerate(whole.lines, 1):
        parts = together.get(number, [])
        if line in parts or not line.strip():
            continue
        assert covers(parts, line)
    for before, after in pairwise(chunks):
        assert before.start_line <= after.start_line
        assert before.end_line <= after.end_line
        assert len(repeated(before, after, whole)) <= longest // 2 + 1
        assert estimate_tokens(repeated(before, after, whole)) <= max(8, tokens) // 2 + 1


def repeated(before: Chunk, after: Chunk, whole: Document) -> str:
    """The whole lines at the beginning of a chunk that the one before it ends with."""
    parts = after.text.split("\n")[: max(0, before.end_line - after.start_line + 1)]
    lines = whole.lines[after.start_line - 1 :]
    return "\n".join(part for part, line in zip(parts, lines, strict=False) if part == line)


FORMS = [
    "# heading\n\nsome words of it\n",
    "### deep\n- item\n",
    "- entry\n",
    "```\ncode\n```\n",
    "```\n",
    "字词句子。\n",
    "word " * 200 + "\n",
    "字" * 300 + "\n",
    "e\u0301" * 100 + "\n",
    "\n",
    " \t\n",
    "x" * 1000 + "\n",
]


@pytest.mark.rows(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", list(Kind))
def test_work_and_memory_grow_with_the_text_alone(form: str, kind: Kind) -> None:
    """Twice the text is twice the work, and what it takes in memory is a few times its size."""
    size = 12_000 // len(form)
    half, full = (document(form * n, kind=kind) for n in (size, 2 * size))
    work = calls(lambda: chunk(half, 60, 12))
    assert calls(lambda: chunk(full, 60, 12)) < 2.2 * work + 500
    made = sum(len(one.text) for one in chunk(full, 60, 12))
    # A chunk is an object with a hash besides its text; a character may take four bytes, and each line has a few numbers.
    assert peak_bytes(lambda: chunk(full, 60, 12)) < 60 * len(full.lines) + 40 * made + 8 * 24_000 + 100_000


@pytest.mark.parametrize("form", ["x" * 400, "字" * 400, "a. ", "字。", "\u0301", "word "])
def test_work_for_one_line_grows_with_its_length_alone(form: str) -> None:
    """So it is where all the text is one line."""
    half, full = (Document("memory/x.md", Kind.NOTE, (form * (n // len(form)),)) for n in (20_000, 40_000))
    work = calls(lambda: chunk(half, 60, 12))
    assert calls(lambda: chunk(full, 60, 12)) < 2.2 * work + 500


@given(
    awkward.TEXTS, st.sampled_from(list(Kind)), st.sampled_from([(400, 80), (40, 10), (8, 200), (1600, 0)])
)
def test_any_note_is_cut_into_its_lines(text: str, kind: Kind, limits: tuple[int, int]) -> None:
    """The text of a chunk is that of its lines, each but a piece of a long one whole; all of them, for bounded work."""
    lines = lines_of(text)
    whole = Document("memory/2026-02-09.md", kind, lines)
    chunks = chunk(whole, *limits)
    held: dict[int, list[str]] = {}
    for one in chunks:
        parts = one.text.split("\n")
        assert len(parts) == one.end_line - one.start_line + 1
        assert list(lines[one.start_line : one.end_line - 1]) == parts[1:-1]
        assert lines[one.start_line - 1].endswith(parts[0]) or len(parts) == 1
        assert lines[one.end_line - 1].startswith(parts[-1]) or len(parts) == 1
        assert all(part in lines[number - 1] for number, part in enumerate(parts, one.start_line))
        for number, part in enumerate(parts, one.start_line):
            held.setdefault(number, []).append(part)
        assert len(one.text) <= LONGEST
        assert one.hash == hashlib.sha256(embedded_text(one.context, one.text).encode()).digest()
        fts_text(one.text).encode()
    for number, line in enumerate(lines, 1):
        if line.strip():
            assert covers(held.get(number, []), line)
    assert calls(lambda: chunk(whole, *limits)) < 60 * (len(text) + len(chunks) + 20)


@pytest.mark.parametrize(
    "text", ["one. two, three. " * 90, "- an entry of a list\n" * 60], ids=["a line", "lines"]
)
def test_an_overlap_of_more_than_half_a_chunk_is_half_a_chunk(text: str) -> None:
    """Else cutting would not get on."""
    cut = chunk(document(text), tokens=100, overlap=100)
    assert cut == chunk(document(text), tokens=100, overlap=50)
    assert len(cut) < 20


def test_a_long_line_shares_its_chunk_with_a_short_heading_alone() -> None:
    """What takes more than a quarter of a chunk is a chunk by itself."""
    line = "The migration was done step by step. " * 30
    short, long = (f"## {'About the walrus and his money ' * times}".strip() for times in (1, 5))
    [first, *_] = chunk(document(f"{short}\n{line}"), tokens=100, overlap=0)
    assert "step by step" in first.text
    [first, *_] = chunk(document(f"{long}\n{line}"), tokens=100, overlap=0)
    assert first.text == long


def test_a_limit_that_would_cut_words_apart_counts_as_the_least() -> None:
    """Of tokens and of characters alike."""
    least = shipped("memd.chunk.markdown._MIN_TOKENS")
    text = "x" * 3000
    for limits in ({"tokens": 400, "longest": 1}, {"tokens": 1, "longest": 700}):
        raised = {name: max(value, least) for name, value in limits.items()}
        larger = {name: max(value, least + 1) for name, value in limits.items()}
        found = chunk(document(text), overlap=0, **limits)
        assert found == chunk(document(text), overlap=0, **raised)
        assert found != chunk(document(text), overlap=0, **larger)


def test_a_line_that_just_fits_stays_whole() -> None:
    """Whatever stands before it; one that is a sign longer is divided."""
    for count, whole in ((LONGEST, True), (LONGEST + 1, False)):
        chunks = chunk(document(f"a few words\n{'x' * count}"), tokens=400, overlap=80)
        assert ("x" * count in [one.text for one in chunks]) is whole
