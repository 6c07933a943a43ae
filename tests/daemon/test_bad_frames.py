"""What a real daemon does with clients that do not keep to the protocol."""

import asyncio
import json
import random
import select
import statistics
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client import AsyncClient, codec
from memd_client.messages import PROTOCOL, Failure, Found, Get, Hello, Note, Search, Status, StatusReport
from tests.daemon.process import Daemon
from tests.server.stranger import Stranger, asked, framed, whole

FLOOD = 5000  # requests


@pytest.fixture(scope="module")
def served() -> Iterator[Daemon]:
    """A daemon with a long note, which outlives everything that is done to it here."""
    with tempfile.TemporaryDirectory(prefix="memd-") as home, Daemon(Path(home)) as daemon:
        lines = (f"Line {number} of the long note about lighthouses." for number in range(400))
        daemon.write("memory/long.md", "\n".join(lines))
        with daemon.client() as client:
            client.sync()
        yield daemon


@pytest.fixture(autouse=True)
def _unharmed(served: Daemon) -> Iterator[None]:
    """After each test it is the same process, answers, and has nothing to report."""
    served.log.write_text("")
    yield
    with served.client() as client:
        assert client.status().pid == served.process.pid
        assert client.search("lighthouses").results
    assert complaints(served) == []


def complaints(daemon: Daemon) -> list[str]:
    """The events of its log that are worse than information, but for slowness: the machine may be busy."""
    events = [json.loads(line) for line in daemon.printed().replace("\0", "").splitlines()]
    worse = [event["event"] for event in events if event["level"] not in {"debug", "info"}]
    return [event for event in worse if not event.endswith(".was_slow")]


def resident_mb(daemon: Daemon) -> float:
    """Memory of the process, in MB."""
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(daemon.process.pid)], capture_output=True, check=True
    )
    return int(told.stdout) / 1000


def test_garbage_ends_its_own_connection_alone(served: Daemon) -> None:
    """Whatever bytes come, before or after a greeting: the connection is refused, others never notice."""
    rng = random.Random(7)
    hello = framed(codec.encode_hello(Hello(protocol=PROTOCOL, version="9.9")))
    with Stranger(served.socket) as polite:
        polite.greet()
        for number in range(60):
            with Stranger(served.socket) as stranger:
                noise = rng.randbytes(rng.randrange(1, 5000))
                # Half of it under a header that fits, or nearly all would end as a frame that is too large.
                stranger.say(hello * (number % 2) + (framed(noise) if number % 3 else noise))
                stranger.finish()
                stranger.hear_end()
            polite.ask(Status(), first=number + 1)
            assert isinstance(polite.hear()[1], StatusReport)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(struct.pack(">I", 0xFFFF_FFFF), "too_large", id="4 GB are announced"),
        pytest.param(framed(b""), "protocol", id="an empty frame"),
        pytest.param(framed(b"\x91" * (codec.REQUEST_LIMIT - 4)), "protocol", id="1 MB of nesting"),
        pytest.param(framed(b"\x92\x01" + b"\x91" * 900_000), "protocol", id="nested below the envelope"),
        pytest.param(
            framed(b"\x92\x01\x82\xa4type\xa6status\xa1x" + b"\x91" * 900_000),
            "protocol",
            id="in an unknown field",
        ),
        pytest.param(framed(b"\xdd\xff\xff\xff\xff"), "protocol", id="an array of 4 billion"),
        pytest.param(framed(b"\xdf\xff\xff\xff\xff"), "protocol", id="a map of 4 billion"),
        pytest.param(framed(b"\xc6\xff\xff\xff\xff"), "protocol", id="4 GB in a frame of five bytes"),
    ],
)
def test_what_cannot_be_read_is_refused(served: Daemon, data: bytes, code: str) -> None:
    """The client hears what was wrong, then the connection ends; no memory is taken for what was announced."""
    before = resident_mb(served)
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.say(data)
        assert stranger.hear_failure().code == code
        assert stranger.hear_end() == b""
    assert resident_mb(served) < before + 100


def test_an_unknown_request_is_answered_and_the_connection_lives(served: Daemon) -> None:
    """A typed error under the id of the request; the same connection goes on."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.ask_raw(1, {"type": "dance"})
        assert stranger.hear_failure(1).code == "unsupported"
        stranger.ask_raw(2, {"type": "search", "query": ["a"]})
        assert stranger.hear_failure(2).code == "bad_request"
        stranger.ask(Search(query="lighthouses"), first=3)
        number, found = stranger.hear()
    assert number == 3
    assert isinstance(found, Found)
    assert found.results


@pytest.mark.parametrize("protocol", [0, PROTOCOL + 1])
def test_another_protocol_is_told_the_number(served: Daemon, protocol: int) -> None:
    """The daemon greets with its own number, says what to do, and closes."""
    with Stranger(served.socket) as stranger:
        assert stranger.greet(protocol).protocol == PROTOCOL
        assert "update" in stranger.hear_failure().message
        assert stranger.hear_end() == b""


def test_a_request_without_a_greeting_is_refused(served: Daemon) -> None:
    """The first frame is a hello or nothing."""
    with Stranger(served.socket) as stranger:
        stranger.ask(Status())
        assert stranger.hear_failure().code == "protocol"
        assert stranger.hear_end() == b""


def test_the_same_id_twice_gets_two_answers(served: Daemon) -> None:
    """Ids are the client's own affair."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.say(asked(5, Search(query="lighthouses")) + asked(5, Search(query="lighthouses")))
        assert [stranger.hear()[0], stranger.hear()[0]] == [5, 5]


def test_bytes_one_by_one_are_requests(served: Daemon) -> None:
    """However the stream is cut."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        for byte in asked(1, Search(query="lighthouses")) + asked(2, Status()):
            stranger.say(bytes([byte]))
        assert whole(stranger.hear_some(2), [1, 2])


def test_a_flood_of_requests_is_answered_to_the_last(served: Daemon) -> None:
    """Thousands of requests written without reading: each gets its answer, and memory does not grow with them."""
    before = resident_mb(served)
    with Stranger(served.socket) as stranger:
        stranger.greet()
        unsent = b"".join(
            asked(number, Get(path="memory/long.md", lines=5)) for number in range(1, FLOOD + 1)
        )
        heard = bytearray()
        connection = stranger.connection
        while unsent:
            # It reads only where it can write no more, because the daemon does not read it either.
            _, writable, _ = select.select([], [connection], [], 0.05)
            if writable:
                unsent = unsent[connection.send(unsent[: 1 << 14]) :]
            else:
                heard += connection.recv(1 << 20)
        stranger.finish()
        heard += stranger.hear_end()
    reader = codec.FrameReader(codec.REPLY_LIMIT)
    reader.feed(bytes(heard))
    answers = {}
    while (payload := reader.next_frame()) is not None:
        number, reply = codec.decode_reply(payload)
        answers[number] = reply
    assert whole(answers, range(1, FLOOD + 1))
    assert resident_mb(served) < before + 100


def test_a_client_that_never_reads_is_in_nobodys_way(served: Daemon) -> None:
    """It takes a bounded share of memory, and another client is answered as fast as ever."""

    def median_s(stranger: Stranger, first: int) -> float:
        took_s = []
        for number in range(first, first + 50):
            began = time.monotonic()
            stranger.ask(Search(query="lighthouses"), first=number)
            assert isinstance(stranger.hear()[1], Found)
            took_s.append(time.monotonic() - began)
        return statistics.median(took_s)

    before = resident_mb(served)
    with Stranger(served.socket) as glutton, Stranger(served.socket) as other:
        glutton.greet()
        other.greet()
        alone_s = median_s(other, 1)
        glutton.connection.settimeout(0.3)
        with pytest.raises(TimeoutError):  # it is not read any more
            glutton.ask(*(Get(path="memory/long.md") for _ in range(100_000)))
        assert median_s(other, 51) < 1 + 20 * alone_s  # a busy machine may be busier now
        assert resident_mb(served) < before + 60


@pytest.mark.long
async def test_two_hundred_clients_at_once(served: Daemon) -> None:
    """Each has a connection of its own, and each search its own answer."""

    async def some(number: int) -> None:
        async with AsyncClient(socket=served.socket, timeout=60) as client:
            for line in (number, number + 1):
                found, note = await asyncio.gather(
                    client.search("lighthouses"), client.get("memory/long.md", start_line=line, lines=1)
                )
                assert found.results
                assert note.text == f"Line {line - 1} of the long note about lighthouses."

    await asyncio.gather(*(some(number) for number in range(1, 201)))


def test_hanging_up_in_mid_request_is_no_event(served: Daemon) -> None:
    """Clients come and go as they like, with half a request or many unanswered ones: nothing is worth a warning."""
    rng = random.Random(8)
    flood = b"".join(asked(number, Search(query="lighthouses")) for number in range(1, 101))
    hello = framed(codec.encode_hello(Hello(protocol=PROTOCOL, version="9.9")))
    for _ in range(100):
        with Stranger(served.socket) as stranger:
            stranger.say((hello + flood)[: rng.randrange(len(flood))])


def test_answers_come_after_the_client_has_said_all(served: Daemon) -> None:
    """EOF after the last request still gets every reply."""
    with Stranger(served.socket) as stranger:
        stranger.greet()
        stranger.ask(*(Get(path="memory/long.md", lines=3) for _ in range(100)))
        stranger.finish()
        answers = stranger.hear_some(100)
        assert stranger.hear_end() == b""
    assert whole(answers, range(1, 101))
    assert all(isinstance(answer, Note) and not isinstance(answer, Failure) for answer in answers.values())
