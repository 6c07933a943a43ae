import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context.bootstrap import (
    FILE_CHARS,
    MARK_CHARS,
    NOTE_CHARS,
    NOTES_CHARS,
    TOTAL_CHARS,
    USER_CHARS,
    Ends,
    Limits,
    Missing,
    Unreadable,
    Whole,
    WorkspaceFile,
    bootstrap,
    file_names,
    gets_notes,
)
from memd_client.context.session_kind import SessionKind
from memd_client.watermark import marked, unmarked
from tests.bounds import shipped

ALL: list[WorkspaceFile] = [
    Whole(name, f"This is {name}.")
    for name in (
        "AGENTS.md",
        "SOUL.md",
        "TOOLS.md",
        "IDENTITY.md",
        "USER.md",
        "HEARTBEAT.md",
        "BOOTSTRAP.md",
        "MEMORY.md",
        "memory.md",
        "memory/2026-02-09.md",
        "memory/2026-02-08.md",
        "secrets.md",
    )
]
SHARED = ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md"]
PRIVATE = [*SHARED, "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md", "MEMORY.md", "memory.md"]
NOTES = ["memory/2026-02-09.md", "memory/2026-02-08.md"]

FILES: list[tuple[SessionKind, list[str]]] = [
    ("main", PRIVATE + NOTES),
    ("direct", PRIVATE + NOTES),
    ("cron", [*SHARED, "USER.md"]),
    ("subagent", ["AGENTS.md", "TOOLS.md"]),
    ("group", SHARED),
    ("channel", SHARED),
    ("unknown", SHARED),
]


@pytest.mark.parametrize(("kind", "names"), FILES)
def test_each_kind_of_session_gets_its_files(kind: SessionKind, names: list[str]) -> None:
    """What is passed beyond that is left out without a word."""
    made = bootstrap(ALL, kind)
    assert [part.name for part in made.parts] == names
    assert all((f"This is {file.name}." in made.text) == (file.name in names) for file in ALL)


def test_a_kind_that_nobody_knows_is_shared() -> None:
    """What a later version may invent sees no more than a group."""
    kind: SessionKind = "séance"  # type: ignore[assignment]  # from a caller without types
    assert list(file_names(kind)) == SHARED
    assert not gets_notes(kind)
    assert "MEMORY" not in bootstrap(ALL, kind).text


def test_a_file_that_is_needed_and_missing_is_named() -> None:
    """The model can say so; what may be missing is missing quietly."""
    made = bootstrap([Missing("AGENTS.md"), Missing("MEMORY.md"), Missing("USER.md")], "main")
    assert made.text == marked("## AGENTS.md\n\n[MISSING] Expected at: AGENTS.md\n\n", "workspace")
    assert [part.state for part in made.parts] == ["missing"] * 3


def test_a_file_that_cannot_be_read_is_named_with_its_reason() -> None:
    """It is neither empty nor missing."""
    made = bootstrap([Unreadable("SOUL.md", "permission denied")], "group")
    assert "[UNREADABLE] SOUL.md: permission denied" in made.text
    assert made.parts[0].state == "unreadable"


def test_an_empty_file_takes_no_room() -> None:
    """Blank lines are not worth a heading."""
    made = bootstrap([Whole("AGENTS.md", " \r\n\n")], "main")
    assert (made.text, made.parts[0].state) == ("", "empty")


def test_a_long_file_keeps_its_ends_around_a_mark() -> None:
    """Three quarters of the cap go to the beginning, a quarter to the end, and the mark is part of the cap."""
    text = "a" * 30_000 + "z" * 30_000
    part = bootstrap([Whole("AGENTS.md", text)], "main").parts[0]
    body = part.text.removeprefix("## AGENTS.md\n\n").removesuffix("\n\n")
    assert len(body) == 20_000
    assert (part.state, part.raw, part.raw_unit) == ("truncated", 60_000, "characters")
    assert "AGENTS.md has 60,000 characters" in body
    assert 14_900 <= body.count("a") <= 15_020
    assert 4_900 <= body.count("z") <= 5_000
    assert body.startswith("a" * 14_000)
    assert body.endswith("z" * 4_900)


def test_a_file_of_which_only_the_ends_were_read_is_told_in_bytes() -> None:
    """Nobody counted its characters."""
    part = bootstrap([Ends("AGENTS.md", "a" * 20_000, "z" * 20_000, 104_857_600)], "main").parts[0]
    assert "104,857,600 bytes" in part.text
    assert (part.state, part.raw, part.raw_unit) == ("truncated", 104_857_600, "bytes")
    assert len(part.text) <= 20_000 + len("## AGENTS.md\n\n\n\n")


def test_what_is_known_of_the_user_has_a_cap_of_its_own() -> None:
    """USER.md gets 4,000 characters."""
    part = bootstrap([Whole("USER.md", "u" * 10_000)], "main").parts[0]
    assert len(part.text) == len("## USER.md\n\n\n\n") + 4_000


def test_a_note_keeps_its_latest_part() -> None:
    """A daily note grows at its end: most of its 1,200 characters are from there, and notes have 2,800 together."""
    files = [Whole(f"memory/2026-02-0{day}.md", "a" * 5_000 + "z" * 5_000) for day in (9, 8, 7)]
    made = bootstrap(files, "main")
    assert 700 <= made.parts[0].text.count("z") <= 1_000
    assert made.parts[0].text.count("a") < 300
    assert len(made.text) - MARK_CHARS <= 2_800
    assert [part.state for part in made.parts] == ["truncated"] * 3


def test_what_has_no_room_is_left_out_and_told() -> None:
    """A file that would get fewer than 64 characters gets none; a smaller one that fits comes after it."""
    files: list[WorkspaceFile] = [
        Whole("AGENTS.md", "a" * 80),
        Whole("SOUL.md", "s" * 500),
        Whole("TOOLS.md", "tools"),
    ]
    made = bootstrap(files, "main", Limits(total_chars=170 + MARK_CHARS))
    assert [part.state for part in made.parts] == ["whole", "left_out", "whole"]
    assert made.parts[1].raw == 500
    assert len(made.text) <= 170 + MARK_CHARS


text = st.text(max_size=60) | st.builds(
    lambda piece, n: piece * n, st.text(min_size=1, max_size=3), st.integers(0, 400)
)
names = st.sampled_from([file.name for file in ALL])
files = st.lists(
    st.builds(Whole, names, text)
    | st.builds(Ends, names, text, text, st.integers(0, 10**9))
    | st.builds(Missing, names)
    | st.builds(Unreadable, names, st.text(max_size=40)),
    max_size=8,
)
caps = st.integers(-5, 400)
limits = st.builds(
    Limits, file_chars=caps, total_chars=caps, user_chars=caps, note_chars=caps, notes_chars=caps
)


@given(files, st.sampled_from([kind for kind, _ in FILES]), limits)
def test_no_cap_is_ever_exceeded(some: list[WorkspaceFile], kind: SessionKind, caps: Limits) -> None:
    """Whatever the files and the caps: the total with its headings, and each body, stay below their cap."""
    made = bootstrap(some, kind, caps)
    assert len(made.text) <= max(0, caps.total_chars)
    told = "".join(part.text for part in made.parts)
    assert made.text == (marked(told, "workspace") if told else "")
    assert unmarked(made.text) == ""
    for part in made.parts:
        cap = caps.note_chars if part.name in NOTES else caps.file_chars
        assert len(part.text) <= max(0, cap) + len(f"## {part.name}\n\n\n\n")
        assert (part.state in {"empty", "left_out"}) <= (part.text == "")
    format_notes = sum(len(part.text) for part in made.parts if part.name in NOTES)
    assert format_notes <= max(0, caps.notes_chars)
    assert {part.name for part in made.parts} <= set(dict(FILES)[kind])


@given(files, st.sampled_from([kind for kind, _ in FILES]), limits)
def test_the_same_files_give_the_same_prompt(
    some: list[WorkspaceFile], kind: SessionKind, caps: Limits
) -> None:
    """A provider's cache depends on it."""
    assert bootstrap(some, kind, caps) == bootstrap(list(some), kind, caps)


@pytest.mark.parametrize(
    ("name", "most"),
    [("AGENTS.md", FILE_CHARS), ("USER.md", USER_CHARS), ("memory/2026-02-09.md", NOTE_CHARS)],
)
def test_a_file_is_shown_whole_up_to_its_limit(name: str, most: int) -> None:
    """By the limits that are shipped."""
    for size, state in ((most, "whole"), (most + 1, "truncated")):
        [part] = bootstrap([Whole(name, "x" * size)], "main").parts
        assert part.state == state
        assert len(part.text) <= most + 100


def test_all_files_and_all_notes_have_a_limit_together() -> None:
    """By the limits that are shipped; what has hardly any room is left out, and is no stump."""
    made = bootstrap([Whole(name, "x" * FILE_CHARS) for name in SHARED], "main")
    assert TOTAL_CHARS - 200 < len(made.text) <= TOTAL_CHARS
    notes = bootstrap(
        [
            Whole(name, "x" * NOTE_CHARS)
            for name in ("memory/2026-02-09.md", "memory/2026-02-08.md", "memory/2026-02-07.md")
        ],
        "main",
    )
    assert NOTES_CHARS - 200 < len(notes.text) - MARK_CHARS <= NOTES_CHARS
    least = shipped("memd_client.context.bootstrap._LEAST_CHARS")
    whole = len(bootstrap([Whole("AGENTS.md", "x" * 1000)], "main").parts[0].text) - 1000
    states = []
    for room in (least - 1, least):
        limits = Limits(total_chars=MARK_CHARS + whole + room)
        states.append(bootstrap([Whole("AGENTS.md", "x" * 1000)], "main", limits).parts[0].state)
    assert states == ["left_out", "truncated"]


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("AGENTS.md", shipped("memd_client.context.bootstrap._HEAD_SHARE")),
        ("memory/2026-02-09.md", shipped("memd_client.context.bootstrap._NOTE_HEAD_SHARE")),
    ],
)
def test_a_file_that_is_cut_is_shown_from_both_ends(name: str, share: float) -> None:
    """Most of the beginning of a file, and most of the end of a note, to which one appends."""
    made = bootstrap(
        [Whole(name, "é" * 5_000 + "ß" * 5_000)], "main", Limits(file_chars=1_000, note_chars=1_000)
    )
    first, last = made.text.count("é"), made.text.count("ß")
    assert first + last > 800
    assert first == int((first + last) * share)
