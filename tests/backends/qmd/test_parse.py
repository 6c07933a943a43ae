import json
import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given

from memd.backends.qmd import parse
from memd.backends.qmd.parse import NoAnswer, QmdEntry, QmdListing, collections, entries
from memd.backends.qmd.process import (
    AlreadyExists,
    CollectionMissing,
    Locked,
    ProcessEnded,
    QmdBroken,
    QmdFailed,
    UnknownOption,
)
from tests.awkward.programs import PRINTED
from tests.bounds import shipped

REAL = """[
  {
    "docid": "#21253b",
    "score": 0.56,
    "file": "qmd://cur-main/MEMORY.md",
    "line": 4,
    "title": "Memory",
    "snippet": "@@ -3,3 @@ (2 before, 0 after)\\n- one.\\n- 二\\n"
  }
]
"""


def one(**fields: Any) -> QmdEntry:
    [entry] = entries(json.dumps([fields]), "qmd search")
    return entry


def test_a_real_answer_is_read() -> None:
    """Collection, file, the line that is meant and the lines that are shown."""
    assert entries(REAL, "qmd search") == [
        QmdEntry(
            score=0.56,
            collection="cur-main",
            file="MEMORY.md",
            docid="21253b",
            line=4,
            first=3,
            count=3,
            snippet=("- one.", "- 二", ""),
        )
    ]


@pytest.mark.parametrize(
    "stdout",
    [
        "[1/2] loading model [ok]\n" + REAL,
        REAL + "\nTip: run 'qmd embed' [soon]\n",
        "\x1b[?25l{ not json } []\n" + REAL,
        "\ufeff" + REAL,
        json.dumps({"results": json.loads(REAL)}),
        "[" * 30_000 + "\n" + REAL[:0] + "",
    ][:-1],
)
def test_noise_around_an_answer_is_passed_over(stdout: str) -> None:
    """The first list of results counts, wherever it stands."""
    assert [entry.file for entry in entries(stdout, "qmd search")] == ["MEMORY.md"]


@pytest.mark.parametrize(
    "stdout", ["[]", "  [ ]\n", "No results found.\n", "✗ no results found for x", '{"results": []}']
)
def test_nothing_found_is_an_answer(stdout: str) -> None:
    """An empty list, or a line that says so in words."""
    assert entries(stdout, "qmd search") == []


@pytest.mark.parametrize(
    "stdout",
    [
        "",
        " \n",
        "Segmentation fault",
        '[{"docid": "#',
        "[1, 2]",
        '{"error": 1}',
        "[" * 100_000,
        "null",
        '["a"]',
    ],
)
def test_anything_else_is_an_error(stdout: str) -> None:
    """Silence, too: a program that crashed quietly must not look like a memory without an answer."""
    with pytest.raises(NoAnswer, match="qmd search printed"):
        entries(stdout, "qmd search")


@pytest.mark.parametrize(
    ("fields", "collection", "file"),
    [
        ({"file": "qmd://notes/a/b c.md"}, "notes", "a/b c.md"),
        ({"file": "qmd:///notes/a.md"}, "notes", "a.md"),
        ({"file": "qmd://notes/why?.md?index=other"}, "notes", "why?.md"),
        ({"file": "notes/a/b.md"}, "notes", "a/b.md"),
        ({"file": "a/b.md", "collection": "notes"}, "notes", "a/b.md"),
        ({"file": "notes/b.md", "collection": "notes"}, "notes", "b.md"),
        ({"path": "/home/me/b.md"}, None, "/home/me/b.md"),
        ({"displayPath": "notes/会议.md"}, "notes", "会议.md"),
        ({"docid": "#ABC123"}, None, None),
    ],
)
def test_every_way_of_naming_a_file_is_understood(
    fields: dict[str, Any], collection: str | None, file: str | None
) -> None:
    """As a URL, below its collection, beside it, by its whole path, or by its hash alone."""
    entry = one(**fields)
    assert (entry.collection, entry.file) == (collection, file)


@pytest.mark.parametrize(
    ("score", "read"),
    [
        (0.5, 0.5),
        ("0.25", 0.25),
        (1.7, 1.0),
        (-1, 0.0),
        (None, 0.0),
        ("high", 0.0),
        (float("nan"), 0.0),
        ([], 0.0),
    ],
)
def test_a_score_is_between_0_and_1(score: Any, read: float) -> None:
    """Whatever stands there."""
    assert one(file="c/a.md", score=score).score == read


@pytest.mark.parametrize(
    ("fields", "line", "first", "snippet"),
    [
        ({"snippet": "@@ -3,2 @@ (2 before)\na\nb"}, None, 3, ("a", "b")),
        ({"snippet": "@@ -7 @@\na"}, None, 7, ("a",)),
        ({"snippet": "@@ -3,2 +3,2 @@\na"}, None, 3, ("a",)),
        ({"snippet": "a\nb", "line": 9}, 9, None, ("a", "b")),
        ({"body": "a"}, None, None, ("a",)),
        ({"snippet": "@@ -0,0 @@\n"}, None, None, ()),
        ({"line": True}, None, None, ()),
        ({"line": -4, "snippet": 3}, None, None, ()),
        ({"line": 10**40}, None, None, ()),
    ],
)
def test_lines_are_read_as_far_as_they_are_told(
    fields: dict[str, Any], line: int | None, first: int | None, snippet: tuple[str, ...]
) -> None:
    """From the field, and from the header of the snippet."""
    entry = one(file="c/a.md", **fields)
    assert (entry.line, entry.first, entry.snippet) == (line, first, snippet)


@pytest.mark.parametrize("beyond", [0, 1])
def test_an_answer_is_looked_for_at_so_many_brackets(beyond: int) -> None:
    """Whatever a program prints without end, it is given up."""
    noise = "[ " * (shipped("memd.backends.qmd.parse._MOST_TRIES") - 1 + beyond)
    stdout = noise + json.dumps([{"file": "qmd://notes/a.md"}])
    if beyond:
        with pytest.raises(NoAnswer):
            entries(stdout, "qmd search")
    else:
        assert [entry.file for entry in entries(stdout, "qmd search")] == ["a.md"]


def test_results_that_name_no_file_are_none() -> None:
    """They are left out of an answer that has others."""
    assert [
        e.file for e in entries('[{"score": 1}, {"file": "c/a.md"}, {"file": 3, "docid": "x"}]', "x")
    ] == ["a.md"]


# --- collections


REAL_LIST = """Collections (2):

memory-root-main (qmd://memory-root-main/)
  Pattern:  {MEMORY,USER}.md
  Files:    1
  Updated:  1s ago

notes (qmd://notes/)
  Pattern:  **/*.md
  Files:    7
  Updated:  1s ago

"""


@pytest.mark.parametrize(
    ("stdout", "listed"),
    [
        (
            REAL_LIST,
            [
                QmdListing("memory-root-main", None, "{MEMORY,USER}.md", 1),
                QmdListing("notes", None, "**/*.md", 7),
            ],
        ),
        ("No collections found. Run 'qmd collection add .' to begin.\n", []),
        ("[]", []),
        ('["a", "b"]', [QmdListing("a"), QmdListing("b")]),
        ('[{"name": "a", "path": "/x", "mask": "*.md"}]', [QmdListing("a", "/x", "*.md")]),
        (
            '{"collections": [{"name": "a", "pwd": "/x", "glob": "*.md", "files": 3}]}',
            [QmdListing("a", "/x", "*.md", 3)],
        ),
        ('{"a": {"path": "/x", "pattern": "**/*.md"}}', [QmdListing("a", "/x", "**/*.md")]),
        ("warming up [1/2]\n" + '["a"]', [QmdListing("a")]),
        ('{"collections": 2}\n["a", "b"]', [QmdListing("a"), QmdListing("b")]),
        ("notes\n  Path:     /x y\n  Pattern:  **/*.md\n", [QmdListing("notes", "/x y", "**/*.md")]),
        ("- a\n- b\n", [QmdListing("a"), QmdListing("b")]),
        ("a\n  Path: /x\n  Files: 3\nb\n", [QmdListing("a", "/x", None, 3), QmdListing("b")]),
    ],
)
def test_every_shape_of_a_list_is_read(stdout: str, listed: list[QmdListing]) -> None:
    """JSON with names or objects, and the text that versions print in place of it."""
    assert collections(stdout) == listed


def test_a_list_that_is_nothing_is_an_error() -> None:
    """Nothing is removed or added on its account."""
    with pytest.raises(NoAnswer):
        collections(" \n")


# --- the rest


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("SqliteError: database is locked", Locked),
        ("SQLITE_BUSY: try again", Locked),
        ("database disk image is malformed", QmdBroken),
        ("SqliteError: UNIQUE constraint failed: documents.path", QmdBroken),
        ("Collection not found: notes", CollectionMissing),
        ("collection 'x' does not exist", CollectionMissing),
        ("Unknown collection: x", CollectionMissing),
        ("error: unknown option '--json'", UnknownOption),
        ("unrecognized option: -n", UnknownOption),
        ("Unexpected argument", UnknownOption),
        ("Unknown command: vsearch", UnknownOption),
        ("Collection 'a' already exists.", AlreadyExists),
        ("out of memory", QmdFailed),
    ],
)
def test_a_failure_is_told_by_what_follows_from_it(stderr: str, kind: type[QmdFailed]) -> None:
    """The status is in the message, with what was said last."""
    with pytest.raises(QmdFailed, match="qmd search ended with exit status 1") as failed:
        parse.checked(ProcessEnded(1, "", stderr), "qmd search")
    assert type(failed.value) is kind


@pytest.mark.parametrize("unsaid", [(), ("vault",)])
def test_what_a_search_found_before_it_failed_is_not_repeated(unsaid: tuple[str, ...]) -> None:
    """It is memory; what another command prints is not."""
    stdout = '[{"snippet":\n"the PIN cannot be changed"}]'
    with pytest.raises(QmdFailed, match=r"^qmd search ended with exit status 1$"):
        parse.checked(ProcessEnded(1, stdout, ""), "qmd search", unsaid)
    with pytest.raises(QmdFailed, match="cannot be made"):
        parse.checked(ProcessEnded(1, "it cannot be made", ""), "qmd collection add")


def test_a_crash_names_its_signal() -> None:
    """Whatever was printed before it."""
    with pytest.raises(QmdFailed, match="qmd search was ended by signal 11"):
        parse.checked(ProcessEnded(-11, REAL, ""), "qmd search")


@pytest.mark.parametrize(
    ("stdout", "version"),
    [
        ("qmd 2.8.3 (facd35e)\n", (2, 8, 3)),
        ("1.0.6", (1, 0, 6)),
        ("v3.0", (3, 0)),
        ("Usage: qmd", None),
        ("", None),
    ],
)
def test_the_version_is_read(stdout: str, version: tuple[int, ...] | None) -> None:
    """Where there is one."""
    assert parse.version(stdout) == version


def test_counts_are_read_from_what_commands_say() -> None:
    """Of files from an update, of vectors from a status; None where they do not tell."""
    said = "Indexed: 1 new, 2 updated, 3 unchanged, 4 removed\n\nIndexed: 0 new, 0 updated, 7 unchanged, 0 removed\n"
    assert parse.files_indexed(said) == 13
    assert parse.files_indexed("done") is None
    assert parse.vectors("Documents\n  Total: 8\n  Vectors:  12 embedded\n") == 12
    assert parse.vectors("nothing") is None


@pytest.mark.parametrize(
    ("files", "expected"), [(0, 0), (7, 7), (10**15 - 1, 10**15 - 1), (10**15, None), (-1, None), ("7", None)]
)
def test_the_files_of_a_collection_are_a_count(files: object, expected: int | None) -> None:
    """None of them is a count, too; what cannot be one is none."""
    [found] = collections(json.dumps([{"name": "notes", "files": files}]))
    assert found.files == expected


@given(PRINTED)
@example("Indexed: " + "9" * 5000 + " new, 0 updated, 0 unchanged")
@example("Vectors: " + "9" * 5000)
@example("notes\n  files: " + "9" * 5000)
@example('[{"file": "qmd://a/\\ud800.md", "snippet": "\\udc00"}]')
def test_any_output_is_read_or_no_answer(printed: str) -> None:
    """Whatever it prints: results that can be looked up and kept, counts that are numbers, or one typed error."""
    with suppress(NoAnswer):
        for entry in entries(printed, "qmd search"):
            assert entry.file or entry.docid
            assert math.isfinite(entry.score)
            "".join((*entry.snippet, entry.file or "", entry.collection or "", entry.docid or "")).encode()
    with suppress(NoAnswer):
        for listed in collections(printed):
            "".join((listed.name, listed.path or "", listed.pattern or "")).encode()
    for count in (parse.files_indexed(printed), parse.vectors(printed)):
        assert count is None or 0 <= count < 2**63
    parse.version(printed)
    with suppress(QmdFailed):
        parse.checked(ProcessEnded(1, printed, printed), "qmd search", ("which",))
