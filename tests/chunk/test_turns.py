from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.chunk.turns import ChunkedTurns, chunk_turns
from memd.domain_types import Role, Turn, embedded_text
from memd.text.turn_header import CONTINUED, brief, header_in
from memd_client.token_estimate import estimate_tokens
from tests.bounds import shipped

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC).timestamp()
LONG = "The migration was done step by step. " * 60


def turn(text: str, role: Role = "user", *, line: int = 1, minutes: float | None = 0, lines: int = 1) -> Turn:
    """A turn of some minutes past noon."""
    at = None if minutes is None else NOON + 60 * minutes
    return Turn("", role, at, line, line + lines - 1, text)


def talk(*texts: str) -> list[Turn]:
    """Turns of user and assistant by turns, on every second line."""
    roles: tuple[Role, Role] = ("user", "assistant")
    return [
        turn(text, roles[number % 2], line=2 * number + 1, minutes=number)
        for number, text in enumerate(texts)
    ]


def cut(
    turns: list[Turn], first: int = 0, *, tokens: int = 400, overlap: int = 80, longest: int = 700
) -> ChunkedTurns:
    return chunk_turns(turns, first, "chat", tokens=tokens, overlap=overlap, zone=None, longest=longest)


def test_short_turns_share_a_chunk() -> None:
    """Each with who said it and when; the chunk stands on the lines of the transcript."""
    [chunk] = cut(talk("Which database?\nFor the index.", "SQLite.")).chunks
    assert chunk.text == (
        "2026-03-02 12:00 User: Which database?\nFor the index.\n2026-03-02 12:01 Assistant: SQLite."
    )
    assert (chunk.start_line, chunk.end_line, chunk.numbers, chunk.turn) == (1, 3, (1, 1, 3), 0)
    assert chunk.context == "chat (2026-03-02, 2 March 2026)"


def test_a_turn_without_a_time_has_no_date() -> None:
    """Neither before it nor in the context."""
    [chunk] = cut([turn("hello", minutes=None)]).chunks
    assert (chunk.text, chunk.context) == ("User: hello", "chat")


def test_the_end_of_a_chunk_is_that_of_its_last_turn() -> None:
    """A turn that was written on several lines is cited by its first, and ends on its last."""
    [chunk] = cut([turn("a"), turn("b\nc", "assistant", line=4, lines=6)]).chunks
    assert (chunk.start_line, chunk.end_line, chunk.numbers) == (1, 9, (1, 4, 4))


def test_the_days_of_a_chunk_are_in_its_context() -> None:
    """The first and, if it is another, the last, in the language of what was said."""
    day = 24 * 60
    turns = [turn("good night"), turn("good morning", "assistant", line=2, minutes=day)]
    assert cut(turns).chunks[0].context == "chat (2026-03-02, 2 March 2026, 2026-03-03, 3 March 2026)"
    assert cut([turn("我们选了数据库")]).chunks[0].context == "chat (2026-03-02, 2026年3月2日)"


def test_times_are_told_in_the_zone() -> None:
    """The day in the context, too."""
    zone = timezone(timedelta(hours=14))
    [chunk] = chunk_turns([turn("hello")], 0, "chat", tokens=400, overlap=80, zone=zone).chunks
    assert chunk.text == "2026-03-03 02:00 User: hello"
    assert "3 March 2026" in chunk.context


def test_each_part_of_a_long_turn_says_who_speaks() -> None:
    """It is cut after a sentence, and its last part is no crumb."""
    chunks = cut([turn(LONG, "assistant", line=7)]).chunks
    assert chunks[0].text.startswith("2026-03-02 12:00 Assistant: The migration")
    assert all(chunk.text.startswith("2026-03-02 12:00 Assistant: … The") for chunk in chunks[1:])
    assert all(chunk.text.endswith("step by step.") for chunk in chunks)
    assert all((chunk.start_line, chunk.end_line, chunk.turn) == (7, 7, 0) for chunk in chunks)
    assert min(len(chunk.text) for chunk in chunks) > 200


def test_a_long_turn_is_cut_between_paragraphs_and_lines() -> None:
    """A paragraph that fits stays whole, and so does a line."""
    paragraphs = [f"Paragraph {number}. " + "word " * 70 for number in range(6)]
    chunks = cut([turn("\n\n".join(paragraphs), "assistant")]).chunks
    assert [chunk.text.count("Paragraph") for chunk in chunks] == [1] * 6
    lines = [f"- entry {number} of the list. It is short." for number in range(60)]
    for chunk in cut([turn("\n".join(lines), "assistant")]).chunks:
        assert all(line.endswith("short.") for line in chunk.text.split("\n"))


@pytest.mark.parametrize("answer", ["It was SQLite. " * 20, LONG])
def test_a_question_is_with_its_answer(answer: str) -> None:
    """Where a chunk ends after a question, the next one begins with it, whatever the overlap is."""
    question = "And which database did we choose in the end?"
    chunks = cut(talk("filler " * 40, "noted " * 40, question, answer), overlap=0).chunks
    assert any(question in chunk.text and answer[:50] in chunk.text for chunk in chunks)


def test_the_last_turns_are_repeated_whole() -> None:
    """As many as the overlap has room for, so that what was said just before is there."""
    turns = [turn(f"remark number {number}", "assistant", line=number + 1) for number in range(40)]
    chunks = cut(turns, overlap=80).chunks
    for before, after in pairwise(chunks):
        assert before.numbers is not None
        assert after.numbers is not None
        repeated = [number for number in after.numbers if number in before.numbers]
        # The first of 45 characters, the others, which are shown without the time, of 28; a fifth of a chunk is 140.
        assert len(repeated) == 4
        assert after.text.split("\n")[:4] == before.text.split("\n")[-4:]
    # Without an overlap, the last one alone.
    apart = cut(turns, overlap=0).chunks
    assert sum(len(chunk.numbers or ()) for chunk in apart) == 40 + len(apart) - 1


def test_no_turns_make_no_chunk() -> None:
    """A transcript in which nothing was said yet."""
    assert cut([], 5) == ChunkedTurns((), 5)


def test_a_chunk_is_settled_when_the_last_turn_had_no_say_in_it() -> None:
    """Where the last turn does not fit, it ends the chunk before; once it is longer than a chunk, it begins in that."""
    first, last = turn("yes. " * 30), turn("and so on. " * 50, "assistant", line=3)
    before = cut([first, last])
    assert [chunk.turn for chunk in before.chunks] == [0, 1]
    grown = msgspec.structs.replace(last, text=last.text * 4)
    whole = cut([first, grown])
    assert whole.chunks[0] != before.chunks[0]
    assert before.resume == 0


WORDS = st.sampled_from(
    ["yes", "a few words", "数据库迁移", "line\n\nother line", "one. two! three? " * 9, "x" * 250]
)
TURNS = st.lists(
    st.builds(
        lambda words, role, gap, minutes: (" ".join(words), role, gap, minutes),
        st.lists(WORDS, min_size=1, max_size=8),
        st.sampled_from(["user", "assistant"]),
        st.integers(1, 3),
        st.none() | st.integers(0, 5000),
    ),
    max_size=14,
)
LIMITS = st.tuples(st.sampled_from([8, 60, 120, 400]), st.integers(0, 120), st.sampled_from([128, 300, 700]))


def made(described: list[tuple[str, Role, int, int | None]]) -> list[Turn]:
    line, turns = 1, []
    for text, role, gap, minutes in described:
        turns.append(turn(text, role, line=line, minutes=minutes))
        line += gap
    return turns


@given(TURNS, LIMITS, st.integers(0, 3))
def test_cutting_on_gives_what_cutting_all_gives(
    described: list[tuple[str, Role, int, int | None]], limits: tuple[int, int, int], ending: int
) -> None:
    """Turn by turn, the last one growing or being taken back: what begins before resume stays, the rest is made anew."""
    turns = made(described)
    tokens, overlap, longest = limits

    def whole(some: list[Turn], first: int = 0) -> ChunkedTurns:
        return cut(some, first, tokens=tokens, overlap=overlap, longest=longest)

    known = ChunkedTurns((), 0)
    for count in range(1, len(turns) + 1):
        last = turns[count - 1]
        changed = [
            last,
            msgspec.structs.replace(last, text=last.text + "\n\n" + "and more of it. " * 30),
            msgspec.structs.replace(last, text="no", role="assistant"),
        ]
        for one in (changed[ending % 3], last):
            now = [*turns[: count - 1], one]
            again = whole(now[known.resume :], known.resume)
            kept = tuple(chunk for chunk in known.chunks if (chunk.turn or 0) < known.resume)
            known = ChunkedTurns(kept + again.chunks, again.resume)
            assert known == whole(now)


@given(TURNS, LIMITS)
def test_everything_is_in_some_chunk_within_the_limits(
    described: list[tuple[str, Role, int, int | None]], limits: tuple[int, int, int]
) -> None:
    """Every line of text has its line of the transcript; nothing is lost, too long, or without a speaker."""
    turns = made(described)
    tokens, overlap, longest = limits
    chunks = cut(turns, tokens=tokens, overlap=overlap, longest=longest).chunks
    for chunk in chunks:
        assert estimate_tokens(chunk.text) <= max(32, tokens)
        assert len(brief(chunk.text)) <= longest
        lines = chunk.text.split("\n")
        assert chunk.numbers is not None
        assert len(lines) == len(chunk.numbers)
        assert list(chunk.numbers) == sorted(chunk.numbers)
        assert chunk.numbers[0] == chunk.start_line
        assert [one.start_line for one in turns].index(chunk.start_line) == chunk.turn
        assert chunk.hash == sha256(embedded_text(chunk.context, chunk.text).encode()).digest()
        starts = [
            line for at, line in enumerate(lines) if at == 0 or chunk.numbers[at - 1] != chunk.numbers[at]
        ]
        assert all(header_in(line) for line in starts)
    for one in turns:
        told: list[str] = []
        for chunk in chunks:
            numbered = zip(chunk.text.split("\n"), chunk.numbers or (), strict=True)
            part = "\n".join(line for line, number in numbered if number == one.start_line)
            said = "".join(part.removeprefix(header_in(part)).removeprefix(CONTINUED).split())
            is_again = bool(told) and said == "".join(one.text.split())
            told += [said] if said and not is_again else []
        assert "".join(told) == "".join(one.text.split())


def test_little_is_cut_again_after_a_long_talk() -> None:
    """One more turn costs the last chunk or two, however long the talk was and however long its turns are."""
    short = talk(*(f"remark number {number}, and some words more" for number in range(2000)))
    assert len(short) - cut(short).resume < 20
    long = talk(*(LONG if number % 3 else "and then?" for number in range(60)))
    assert len(long) - cut(long).resume <= 3
    every = talk(*([LONG] * 30))
    assert len(every) - cut(every).resume <= 2
    crooked = talk(*("one sentence of a turn. " * 31 for _ in range(60)))
    assert len(crooked) - cut(crooked).resume <= 2


def test_a_very_long_turn_is_cut_in_linear_time() -> None:
    """Whatever it holds, every part of it is looked at a few times only."""
    for filler in ("word ", "x", "字", "\n", "a\n\n"):
        text = "begin " + filler * (600_000 // len(filler)) + " end"
        chunks = cut([turn(text, "assistant")]).chunks
        assert chunks[-1].text.endswith("end")


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                [
                    "User: who?",
                    "Assistant: I have checked it",
                    "2026-03-02 09:02 Assistant: me",
                    "words " * 30,
                    "",
                ]
            ),
            min_size=1,
            max_size=12,
        ),
        min_size=1,
        max_size=5,
    )
)
def test_nobody_is_said_to_have_spoken_but_those_who_did(said: list[list[str]]) -> None:
    """Each line of a chunk that looks like a header is that of a turn of this role, whatever was pasted into turns."""
    turns = [turn("\n".join(lines) or "x", line=n + 1) for n, lines in enumerate(said)]
    for chunk in cut(turns, tokens=60).chunks:
        assert {header_in(line) for line in chunk.text.split("\n")} <= {"", "2026-03-02 12:00 User: "}
        assert header_in(chunk.text)


def test_a_limit_that_would_cut_words_apart_counts_as_the_least() -> None:
    """Of tokens and of characters alike."""
    least = {
        "tokens": shipped("memd.chunk.turns._MIN_TOKENS"),
        "longest": shipped("memd.chunk.turns._MIN_CHARS"),
    }
    usual = {"tokens": 400, "longest": 700}
    turns = talk("x" * 3000, "y" * 3000)
    for name, limit in least.items():
        found = cut(turns, overlap=0, **usual | {name: 1})
        assert found == cut(turns, overlap=0, **usual | {name: limit})
        assert found != cut(turns, overlap=0, **usual | {name: limit + 1})


def test_turns_that_just_fill_a_chunk_share_it() -> None:
    """And with one sign more they do not; nor does one that is as long as a chunk need two."""
    for count, chunks in (
        (700 - len("User: \nAssistant: ") - 300, 1),
        (700 - len("User: \nAssistant: ") - 299, 2),
    ):
        turns = [turn("x" * 300, minutes=None), turn("y" * count, "assistant", line=3, minutes=None)]
        assert len(cut(turns, overlap=0).chunks) == chunks
    for count, chunks in ((700 - len("User: "), 1), (701 - len("User: "), 2)):
        assert len(cut([turn("x" * count, minutes=None)], overlap=0).chunks) == chunks


def test_a_chunk_has_room_for_what_is_shown_of_its_headers() -> None:
    """Of turns of one hour, the time of the first alone; each has its own in the text, and of another hour it counts."""
    head = len("2026-03-02 12:00 User: \nAssistant: ")
    for minutes, spare, count in ((59, 0, 1), (59, 1, 2), (60, 0, 2), (60, -17, 1)):
        turns = [turn("x" * 300), turn("y" * (400 - head + spare), "assistant", line=2, minutes=minutes)]
        chunks = cut(turns, overlap=0).chunks
        assert len(chunks) == count
        assert chunks[0].text.startswith("2026-03-02 12:00 User: x")
        assert f"2026-03-02 {12 + minutes // 60}:{minutes % 60:02} Assistant: y" in chunks[-1].text


def test_the_tokens_of_all_headers_count() -> None:
    """They are embedded with the times that are not shown."""
    turns = [turn("是", line=n + 1, minutes=n) for n in range(30)]
    for chunk in cut(turns, tokens=100).chunks:
        assert estimate_tokens(chunk.text) <= 100


def test_what_is_repeated_leaves_room_for_the_next_turn() -> None:
    """Where both just fill a chunk, it is repeated; where they are a sign too long, it is not."""
    before, repeated = turn("x" * 600, minutes=None), turn("y" * 60, "assistant", line=2, minutes=None)
    heads = len("Assistant: \nUser: ")
    for spare, count in ((0, 2), (1, 1)):
        last = turn("z" * (700 - heads - 60 + spare), line=3, minutes=None)
        chunks = cut([before, repeated, last], overlap=80).chunks
        assert [len(chunk.numbers or ()) for chunk in chunks] == [2, count]


@pytest.mark.parametrize("length", [700, 720, 800, 1000, 1300])
def test_what_two_chunks_hold_is_divided_about_in_half(length: int) -> None:
    """A few words by themselves would be found by anything and tell nothing."""
    chunks = cut([turn("x" * length, "assistant", minutes=None)], overlap=0).chunks
    first, second = (chunk.text.count("x") for chunk in chunks)
    assert first + second == length
    assert second > length / 4


@pytest.mark.parametrize(
    ("asks", "answers"), [("user", "assistant"), ("assistant", "user"), ("user", "user")]
)
def test_the_last_turn_is_repeated_up_to_a_third_of_a_chunk(asks: Role, answers: Role) -> None:
    """Whatever the overlap is, and whoever speaks; a longer one is with its answer only where both have room."""
    share = shipped("memd.chunk.turns._REPEATED")
    most = 700 // share - len(f"{asks}: \n")
    for length, count in ((most, 2), (most + 1, 1)):
        asked, answer = (
            turn("y" * length, asks, minutes=None, line=2),
            turn("z" * 300, answers, line=3, minutes=None),
        )
        chunks = cut([turn("x" * 300, "assistant", minutes=None), asked, answer], overlap=0).chunks
        assert [len(chunk.numbers or ()) for chunk in chunks] == [2, count]
