"""What a real daemon does with questions that nobody should ask."""

import json
import random
import string
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd_client import RequestFailed
from memd_client.messages import Explain, Explanation, Found, Get, Note, Reply, Request, Search
from tests.daemon.process import Daemon
from tests.server.stranger import Stranger, whole


@pytest.fixture(scope="module")
def served() -> Iterator[Daemon]:
    """A daemon with a few notes, in which every kind of question could find something."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home, Daemon(Path(home)) as daemon:
        daemon.write("MEMORY.md", "- The cat is called Mochi.\n")
        daemon.write(
            "memory/a.md", "# Near\n\nAND OR NOT NEAR: the column is called text, 猫の名前はモチです。\n"
        )
        daemon.write("memory/b.md", '# שלום\n\nالقطة اسمها موتشي.  It\'s "quoted" * ^ - ( ) : 🐈\n')
        with daemon.client() as client:
            client.sync()
        yield daemon


@pytest.fixture(autouse=True)
def _unharmed(served: Daemon) -> Iterator[None]:
    """After each test the same process answers from an index that is whole, and nothing was logged as wrong."""
    served.log.write_text("")
    yield
    with served.client() as client:
        status = client.status()
        assert status.pid == served.process.pid
        assert status.agents["main"].keyword.ok
        assert status.agents["main"].rebuild is None
        assert client.search("cat called").results
    events = [json.loads(line) for line in served.printed().replace("\0", "").splitlines()]
    worse = [event for event in events if event["level"] not in {"debug", "info"}]
    # What is slow says how busy this machine is.
    assert [event for event in worse if not event["event"].endswith(".was_slow")] == []


def answer(served: Daemon, request: Request) -> Reply:
    """The answer to one request."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.ask(request)
        return stranger.hear()[1]


def found(served: Daemon, query: str) -> Found:
    """What a search finds, and explain just the same."""
    hits = answer(served, Search(query=query))
    explained = answer(served, Explain(query=query))
    assert isinstance(hits, Found), hits
    assert isinstance(explained, Explanation), explained
    assert explained.found.results == hits.results
    assert hits.degraded == []
    return hits


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "\n\t",
        "\0",
        "\u200b",
        "\u2028",
        "...",
        "?!",
        "---",
        '"',
        '""',
        "* ^ - ( ) :",
        "——",
        "。、「」",
        "\u202e",
        "\u0301",
    ],
)
def test_a_question_without_a_word_finds_nothing(served: Daemon, query: str) -> None:
    """No word, no hit, and no failure either."""
    assert found(served, query).results == []


@pytest.mark.rows(12)
@pytest.mark.parametrize(
    "query",
    [
        '" OR NEAR( * AND NOT col: ^ -',
        'cat" OR "called',
        "text:cat",
        "context : cat",
        "{text context} : cat",
        "NEAR(cat called, 5)",
        "cat AND",
        "NOT cat",
        "-cat",
        "^cat",
        "cat*",
        "cat + called",
        "(((((cat",
        "cat)",
        "cat; DROP TABLE keywords; --",
        "cat' OR 1=1 --",
        "c\0at called",
        "\ufeffcat called",
        "cat \u202ecalled\u202c",
        "ｃａｔ　ｃａｌｌｅｄ",
        "CAT CALLED " * 50,
        "cat called " + "x" * 100_000,
        "x" * 100_000 + " cat called",
        "cat called " * 9000,
        "猫" * 10_000,
        "猫の名前" * 2500,
        "القطة " * 1000,
        "שלום cat",
        "a" * 1_000_000,
        "\U0010ffff cat \ufffe \uffff",
        "İstanbul ǅ ﬁ ß ŉ",
        "e\u0301" * 1000,
        "\u0301" * 1000 + "cat",
        "👨‍👩‍👧‍👦 cat 🏳️‍🌈",
        "%s %n {} ${HOME} `id` $(id) ../../etc/passwd",
    ],
    ids=lambda query: ascii(query[:24]),
)
def test_any_text_is_a_question(served: Daemon, query: str) -> None:
    """Operators, marks, controls, other scripts, any length: words are looked for, and nothing else is understood."""
    assert isinstance(found(served, query), Found)


@pytest.mark.parametrize(
    "query",
    [
        'cat" OR "called',
        "cat AND",
        "-cat",
        "cat)",
        "c\0at cat",
        "cat; DROP",
        "ｃａｔ",
        "cat called " + "x" * 100_000,
    ],
)
def test_the_words_of_an_odd_question_are_found(served: Daemon, query: str) -> None:
    """What surrounds a word does not keep it from being found."""
    assert "MEMORY.md" in [hit.path for hit in found(served, query).results]


def test_random_questions_are_answered(served: Daemon) -> None:
    """Hundreds of texts of operators, marks and characters of every plane: none breaks the keyword index."""
    rng = random.Random(11)
    pieces = [
        "AND",
        "OR",
        "NOT",
        "NEAR(",
        '"',
        "'",
        "*",
        "^",
        "-",
        ":",
        "(",
        ")",
        "cat",
        "猫",
        "\0",
        " ",
        "\n",
        ".",
        "_",
        "e\u0301",
    ]

    def text() -> str:
        some = [rng.choice(pieces) for _ in range(rng.randrange(12))]
        some += [
            chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]))
            for _ in range(rng.randrange(6))
        ]
        some += rng.choices(string.printable, k=rng.randrange(6))
        rng.shuffle(some)
        return rng.choice(["", " "]).join(some)

    queries = [text() for _ in range(400)]
    with Stranger(served.socket) as stranger:
        stranger.greet()
        for start in range(0, 400, 50):
            stranger.ask(*(Search(query=query) for query in queries[start : start + 50]))
            answers = stranger.hear_some(50)
            assert whole(answers, range(1, 51)), [queries[start + n - 1] for n in answers]
            assert all(isinstance(reply, Found) and not reply.degraded for reply in answers.values())


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({"max_results": 0}, "bad_request", "max_results is 0"),
        ({"max_results": 51}, "bad_request", "1 to 50"),
        ({"max_results": -1}, "bad_request", "max_results is -1"),
        ({"max_results": 2**63}, "bad_request", "max_results"),
        ({"max_results": -(2**63)}, "bad_request", "max_results"),
        ({"max_results": 1.5}, "bad_request", "max_results"),
        ({"max_results": "6"}, "bad_request", "max_results"),
        ({"min_score": -1}, "bad_request", "min_score is -1"),
        ({"min_score": 2}, "bad_request", "0 to 1"),
        ({"min_score": -1e308}, "bad_request", "min_score"),
        ({"min_score": float("nan")}, "bad_request", "min_score"),
        ({"min_score": float("-inf")}, "bad_request", "min_score"),
        ({"min_score": 2**64 - 1}, "bad_request", "min_score"),
        ({"now": "yesterday"}, "bad_request", "now is 'yesterday'"),
        ({"now": "x" * 100_000}, "bad_request", "a day or a moment"),
        ({"now": "9999-12-31T23:59-23:59"}, "bad_request", "a day or a moment"),
        ({"now": 7}, "bad_request", "now"),
        ({"agent": "nobody"}, "unknown_agent", "main"),
        ({"agent": ""}, "unknown_agent", "main"),
        ({"agent": "x" * 100_000}, "unknown_agent", "main"),
        ({"agent": "../main"}, "unknown_agent", "main"),
        ({"agent": "MAIN"}, "unknown_agent", "main"),
        ({"session_key": "agent:nobody:main"}, "unknown_agent", "'nobody'"),
        ({"source": "web"}, "bad_request", "source"),
        ({"source": ""}, "bad_request", "source"),
        ({"query": None}, "bad_request", "query"),
        ({"query": 1}, "bad_request", "query"),
        ({"query": b"cat"}, "bad_request", "query"),
    ],
    ids=ascii,
)
@pytest.mark.parametrize("kind", ["search", "explain"])
def test_a_wrong_field_is_a_clear_failure(
    served: Daemon, kind: str, fields: dict[str, Any], code: str, says: str
) -> None:
    """The failure names what is wrong in a short sentence; the connection lives."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.ask_raw(1, {"type": kind, "query": "cat"} | fields)
        failure = stranger.hear_failure(1)
        assert failure.code == code
        assert says in failure.message
        assert len(failure.message) < 500
        stranger.ask(Search(query="cat called"), first=2)
        assert whole(stranger.hear_some(1), [2])


def test_the_ends_of_the_ranges_are_fine(served: Daemon) -> None:
    """1 and 50 results, scores of 0 and 1, and a source that is empty here are answered."""
    for request in (
        Search(query="cat", max_results=1),
        Search(query="cat", max_results=50),
        Search(query="cat", min_score=0.0),
        Search(query="cat", min_score=0.8),
        Search(query="cat", source="memory"),
    ):
        reply = answer(served, request)
        assert isinstance(reply, Found)
        assert "MEMORY.md" in [hit.path for hit in reply.results]
    reply = answer(served, Search(query="cat", source="sessions"))
    assert isinstance(reply, Found)
    assert reply.results == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        ({"type": "search", "query": "cat", "max_chars": -1}, "bad_request"),
        ({"type": "get", "path": "MEMORY.md", "max_chars": 99}, "bad_request"),
        ({"type": "get", "path": "MEMORY.md", "max_chars": 0}, "bad_request"),
        ({"type": "embed", "action": "stop"}, "bad_request"),
        ({"type": "embed"}, "bad_request"),
        ({"type": "warm"}, "bad_request"),
        ({"type": "sync", "patience_ms": "1"}, "bad_request"),
        ({"type": "sync", "patience_ms": 0}, "timed_out"),
        ({"type": "sync", "patience_ms": -1}, "timed_out"),
        ({"type": "sync", "agent": "nobody"}, "unknown_agent"),
        ({"type": "status", "agent": 1}, "bad_request"),
        ({"type": "forget"}, "unsupported"),
    ],
    ids=ascii,
)
def test_what_a_request_refuses(served: Daemon, request_: dict[str, Any], code: str) -> None:
    """Under its id, by the code that the page of the protocol has for it."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.ask_raw(1, request_)
        assert stranger.hear_failure(1).code == code
        stranger.ask(Search(query="cat called"), first=2)
        assert whole(stranger.hear_some(1), [2])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"start_line": 0}, "from 1"),
        ({"start_line": -1}, "from 1"),
        ({"start_line": -(2**63)}, "from 1"),
        ({"lines": 0}, "from 1"),
        ({"lines": -5}, "from 1"),
        ({"start_line": None}, "start_line"),
        ({"start_line": 1.0001}, "start_line"),
        ({"lines": "all"}, "lines"),
        ({"path": None}, "path"),
        ({"path": ["MEMORY.md"]}, "path"),
    ],
    ids=ascii,
)
def test_lines_that_do_not_exist_are_a_clear_failure(
    served: Daemon, fields: dict[str, Any], says: str
) -> None:
    """Lines count from 1; what is no number is told."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.ask_raw(1, {"type": "get", "path": "MEMORY.md"} | fields)
        failure = stranger.hear_failure(1)
    assert failure.code == "bad_request"
    assert says in failure.message


@pytest.mark.parametrize("start_line", [2, 1000, 2**31, 2**63 - 1, 2**63, 2**64 - 1])
def test_lines_behind_the_end_are_empty(served: Daemon, start_line: int) -> None:
    """A start behind the end of the file is no failure: there is no text, and nothing to read on."""
    note = answer(served, Get(path="MEMORY.md", start_line=start_line))
    assert note == Note(path="MEMORY.md", start_line=start_line, max_chars=4000, total_lines=1)


@pytest.mark.parametrize("lines", [1, 120, 2**31, 2**63, 2**64 - 1])
def test_more_lines_than_there_are_give_those_there_are(served: Daemon, lines: int) -> None:
    """Asking for too many lines is no failure."""
    note = answer(served, Get(path="MEMORY.md", lines=lines))
    assert note == Note(
        path="MEMORY.md", text="- The cat is called Mochi.", end_line=1, max_chars=4000, total_lines=1
    )


def test_half_a_character_never_leaves_the_client(served: Daemon) -> None:
    """A lone surrogate cannot be sent: the client says so, and can be used again."""
    with served.client() as client:
        for ask in (
            lambda: client.search("cat \udcff"),
            lambda: client.get("memory/\ud800.md"),
            lambda: client.search("cat", session_key="agent:main:\udfff"),
        ):
            with pytest.raises(RequestFailed) as failed:
                ask()
            assert failed.value.code == "bad_request"
        assert client.search("cat called").results


def test_a_question_that_is_too_long_is_refused(served: Daemon) -> None:
    """A request over 1 MiB fails with a clear error in the client."""
    with served.client() as client:
        with pytest.raises(RequestFailed) as failed:
            client.search("x" * (1 << 20))
        assert failed.value.code == "too_large"
        assert client.search("cat called").results
