import asyncio
import contextlib
import os
import socket
import struct
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from memd.server.connection import Connection, ConnectionLimits
from memd_client import codec
from memd_client.messages import (
    PROTOCOL,
    Failure,
    Found,
    Get,
    Hello,
    Note,
    Reply,
    Request,
    Search,
    StatusReport,
)
from tests.awkward.streams import pieces
from tests.awkward.wire import STREAMS
from tests.bounds import shipped
from tests.server.serving import serving
from tests.server.stranger import Stranger, asked, framed, whole
from tests.wait import until


async def echo(request: Request) -> Reply:
    """A note that names what was asked for."""
    assert isinstance(request, Get)
    return Note(path=request.path)


def test_answers_under_the_id_of_the_request_whatever_the_order(address: Path) -> None:
    """A request that takes long does not hold up the ones after it."""
    release = asyncio.Event()

    async def handle(request: Request) -> Reply:
        assert isinstance(request, Get)
        if request.path == "slow":
            await release.wait()
        else:
            release.set()
        return Note(path=request.path)

    with serving(address, handle), Stranger(address) as stranger:
        assert stranger.greet() == Hello(protocol=PROTOCOL, version="1.2.3")
        stranger.ask(Get(path="slow"), Get(path="fast"))
        assert stranger.hear() == (2, Note(path="fast"))
        assert stranger.hear() == (1, Note(path="slow"))


# --- what cannot be read


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "too_large", id="another protocol"),
        pytest.param(struct.pack(">I", 0xFFFF_FFFF), "too_large", id="a header of 4 GB"),
        pytest.param(struct.pack(">I", codec.REQUEST_LIMIT + 1), "too_large", id="one byte too many"),
        pytest.param(framed(b""), "protocol", id="an empty frame"),
        pytest.param(framed(b"\xc1"), "protocol", id="a byte that msgpack does not have"),
        pytest.param(framed(b"\x91" * 100_000), "protocol", id="nested for ever"),
        pytest.param(
            framed(codec.encode_hello(Hello(protocol=PROTOCOL, version="9"))), "protocol", id="hello again"
        ),
    ],
)
def test_refuses_what_is_no_request_and_closes(address: Path, data: bytes, code: str) -> None:
    """Where nothing after it can be read, the client hears why, and the connection ends."""
    with serving(address, echo) as connections, Stranger(address) as stranger:
        stranger.greet()
        stranger.say(data)
        assert stranger.hear_failure().code == code
        assert stranger.hear_end() == b""
        until(lambda: not connections)


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xc1", b"\x91" * 100_000, codec.encode_request(1, Get(path="x")), b"\x80"],
    ids=["empty", "garbage", "nested", "a request", "an empty map"],
)
def test_refuses_whoever_does_not_greet_first(address: Path, payload: bytes) -> None:
    """The first frame must be a hello: nothing before it is answered."""
    with serving(address, echo), Stranger(address) as stranger:
        stranger.say_frame(payload)
        failure = stranger.hear_failure()
        assert failure.code == "protocol"
        assert "hello" in failure.message
        assert stranger.hear_end() == b""


@pytest.mark.parametrize("protocol", [0, PROTOCOL + 1, 2**63])
def test_refuses_another_protocol_with_its_own_number(address: Path, protocol: int) -> None:
    """A client of another protocol hears which one is spoken here before the connection ends."""
    with serving(address, echo), Stranger(address) as stranger:
        assert stranger.greet(protocol).protocol == PROTOCOL
        failure = stranger.hear_failure()
        assert failure.code == "protocol"
        assert str(protocol) in failure.message
        assert stranger.hear_end() == b""


def _nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("message", "code", "says"),
    [
        ({"type": "dance"}, "unsupported", "dance"),
        ({"type": "hello", "protocol": 2, "version": "1"}, "unsupported", "hello"),
        ({"type": "get"}, "bad_request", "path"),
        ({"type": "get", "path": 7}, "bad_request", "path"),
        ({"type": "get", "path": "x", "start_line": "1"}, "bad_request", "start_line"),
        ({"type": "get", "path": "x", "start_line": True}, "bad_request", "start_line"),
        ({"type": "get", "path": "x", "lines": 1.5}, "bad_request", "lines"),
        ({"type": "get", "path": _nested(200)}, "bad_request", "path"),
        ({"type": "search", "query": "x", "source": "web"}, "bad_request", "web"),
        ({"type": "search", "query": "x", "min_score": float("nan")}, "bad_request", "min_score"),
        ({"type": "search", "query": "x", "min_score": float("inf")}, "bad_request", "min_score"),
        ({"type": "search", "query": "x", "max_results": -(2**63)}, None, ""),
        ({"type": 3}, "bad_request", ""),
        ({}, "bad_request", ""),
        ([], "bad_request", ""),
        (None, "bad_request", ""),
        ("get", "bad_request", ""),
    ],
)
def test_connection_outlives_a_message_that_is_not_understood(
    address: Path, message: object, code: str | None, says: str
) -> None:
    """It is answered under its id, with the name of what is wrong; the next request is answered as ever."""

    async def handle(_: Request) -> Reply:
        return Note(path="ok")

    with serving(address, handle), Stranger(address) as stranger:
        stranger.greet()
        stranger.ask_raw(7, message)
        if code is None:
            assert stranger.hear() == (7, Note(path="ok"))
        else:
            failure = stranger.hear_failure(7)
            assert (failure.code, says in failure.message) == (code, True)
        stranger.ask(Get(path="x"), first=8)
        assert stranger.hear() == (8, Note(path="ok"))


def test_skips_fields_it_does_not_know(address: Path) -> None:
    """A newer client may say more, however deep it nests it."""
    with serving(address, echo), Stranger(address) as stranger:
        stranger.greet()
        stranger.ask_raw(1, {"type": "get", "path": "x", "colour": _nested(200), "type2": {"a": [1, None]}})
        assert stranger.hear() == (1, Note(path="x"))


def test_a_text_that_is_no_utf8_is_told(address: Path) -> None:
    """Half of a surrogate pair in a path is a bad request, not the end of the connection."""
    with serving(address, echo), Stranger(address) as stranger:
        stranger.greet()
        stranger.say_frame(b"\x92\x01" + b"\x82\xa4type\xa3get\xa4path\xa3\xed\xa0\x80")
        assert stranger.hear_failure(1).code == "bad_request"
        stranger.ask(Get(path="x"), first=2)
        assert stranger.hear() == (2, Note(path="x"))


# --- how long it waits


def test_closes_when_no_hello_comes(address: Path) -> None:
    """A client that says nothing does not keep its connection."""
    with serving(address, echo, ConnectionLimits(hello_s=0.05)), Stranger(address) as stranger:
        assert stranger.hear_failure().message == "no hello came"
        assert stranger.hear_end() == b""


@pytest.mark.parametrize("begun", [b"\0", b"\0\0\0\x09", b"\0\0\0\x09abc"])
def test_closes_when_a_frame_does_not_end(address: Path, begun: bytes) -> None:
    """A frame that was begun must end in time, wherever it stops."""
    with serving(address, echo, ConnectionLimits(frame_s=0.05)), Stranger(address) as stranger:
        stranger.greet()
        stranger.say(begun)
        assert "did not end" in stranger.hear_failure().message
        assert stranger.hear_end() == b""


def test_a_trickle_is_too_slow_as_well(address: Path) -> None:
    """A byte now and then does not begin the wait anew."""
    with serving(address, echo, ConnectionLimits(frame_s=0.1)) as connections, Stranger(address) as stranger:
        stranger.greet()
        stranger.say(struct.pack(">I", 100_000))

        def has_ended() -> bool:
            try:
                stranger.say(b"x")
            except (BrokenPipeError, ConnectionResetError):
                return True
            return not connections

        until(has_ended, 5)


def test_a_greeted_client_may_be_quiet(address: Path) -> None:
    """Between two requests a client may wait for as long as it likes."""
    bounds = ConnectionLimits(hello_s=0.05, frame_s=0.05, unread_s=0.05)
    with serving(address, echo, bounds), Stranger(address) as stranger, Stranger(address) as late:
        stranger.greet()
        late.hear_end()  # the time of all patience has passed once
        stranger.ask(Get(path="a"))
        assert stranger.hear() == (1, Note(path="a"))
        with Stranger(address) as later:
            later.hear_end()
        stranger.ask(Get(path="b"), first=2)
        assert stranger.hear() == (2, Note(path="b"))


def test_a_slow_answer_does_not_count_against_the_client(address: Path) -> None:
    """While requests are in flight, half a frame may wait for its rest until there is room for it."""
    release = asyncio.Event()

    async def handle(request: Request) -> Reply:
        if isinstance(request, Search):
            await release.wait()
            return Found()
        release.set()
        return Note(path="done")

    bounds = ConnectionLimits(in_flight=1, hello_s=0.05, frame_s=0.05)
    with serving(address, handle, bounds), Stranger(address) as stranger, Stranger(address) as late:
        stranger.greet()
        last = asked(2, Get(path="x"))
        stranger.say(asked(1, Search(query="x")) + last[:9])
        late.hear_end()
        with Stranger(address) as other:
            other.greet()
            other.ask(Get(path="x"))
            assert other.hear() == (1, Note(path="done"))
        stranger.say(last[9:])
        assert stranger.hear() == (1, Found())
        assert stranger.hear() == (2, Note(path="done"))


# --- how much it takes


@pytest.mark.parametrize(
    ("bounds", "allowed"),
    [
        (ConnectionLimits(in_flight=3), 3),
        (ConnectionLimits(), shipped("memd.server.connection.ConnectionLimits.in_flight")),
    ],
)
def test_no_more_in_flight_than_allowed(address: Path, bounds: ConnectionLimits, allowed: int) -> None:
    """Of requests written in one piece, the allowed number is worked on at once; all are answered."""
    running = peak = 0

    async def handle(request: Request) -> Reply:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0)
        running -= 1
        return await echo(request)

    with serving(address, handle, bounds), Stranger(address) as stranger:
        stranger.greet()
        stranger.ask(*(Get(path=str(number)) for number in range(1, 501)))
        assert stranger.hear_some(500) == {number: Note(path=str(number)) for number in range(1, 501)}
    assert peak == allowed


def test_is_not_read_while_it_has_enough_in_flight(address: Path) -> None:
    """What a client writes beyond the number in flight stays in its own hands."""
    release = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def handle(request: Request) -> Reply:
        loops.append(asyncio.get_running_loop())
        await release.wait()
        return await echo(request)

    with serving(address, handle, ConnectionLimits(in_flight=2)), Stranger(address) as stranger:
        stranger.greet()
        stranger.connection.settimeout(0.2)
        said = 0
        with contextlib.suppress(TimeoutError):
            while said < 64 << 20:
                said += stranger.connection.send(asked(1, Get(path="x" * 100_000)))
        assert said < 4 << 20  # the buffers of the system, and one piece read ahead
        loops[0].call_soon_threadsafe(release.set)


def test_bytes_one_by_one_are_a_request(address: Path) -> None:
    """However the stream is cut, its frames are found."""
    with serving(address, echo), Stranger(address) as stranger:
        stranger.greet()
        for byte in asked(1, Get(path="a")) + asked(2, Get(path="b")):
            stranger.say(bytes([byte]))
        assert stranger.hear_some(2) == {1: Note(path="a"), 2: Note(path="b")}


def test_a_client_that_does_not_read_is_dropped(address: Path) -> None:
    """Its replies are kept for a while, its requests no longer read, then it is gone; the log has a line of it."""

    async def handle(_: Request) -> Reply:
        return Note(path="big", text="x" * 1_000_000)

    with (
        structlog.testing.capture_logs() as logs,
        serving(address, handle, ConnectionLimits(unread_s=0.2)) as connections,
        Stranger(address) as stranger,
        Stranger(address) as other,
    ):
        stranger.greet()
        other.greet()
        stranger.ask(*(Get(path="x") for _ in range(200)))
        until(lambda: len(connections) < 2)
        assert [event["event"] for event in logs] == ["server.unread_client_dropped"]
        other.ask(Get(path="x"))
        assert isinstance(other.hear()[1], Note)


def test_a_refused_client_that_does_not_read_is_dropped(address: Path) -> None:
    """Also where so little waits for it that it was never told to stop."""

    async def handle(_: Request) -> Reply:
        return Note(path="some", text="x" * 1_000)

    with (
        structlog.testing.capture_logs(),
        serving(address, handle, ConnectionLimits(unread_s=0.2)) as connections,
        Stranger(address) as stranger,
    ):
        stranger.greet()
        held = 0
        # Until what the kernel takes is full, and some more is kept, but less than makes a transport complain.
        while not held:
            stranger.ask(*(Get(path="x") for _ in range(20)))
            time.sleep(0.02)
            held = sum(one.unsent_bytes for one in connections)
        assert held < 1 << 16
        stranger.say(struct.pack(">I", 1) + b"\xc0")
        until(lambda: not connections, 5)


def test_a_client_that_reads_late_gets_everything(address: Path) -> None:
    """One that reads in time after all gets every reply, in spite of all that piled up."""
    began = threading.Event()

    async def handle(request: Request) -> Reply:
        began.set()
        assert isinstance(request, Get)
        return Note(path=request.path, text="x" * 200_000)

    with serving(address, handle), Stranger(address) as stranger:
        stranger.greet()
        stranger.ask(*(Get(path=str(number)) for number in range(1, 201)))
        assert began.wait(60)
        assert whole(stranger.hear_some(200), range(1, 201))


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        pytest.param(Note(path="x", text="x" * (codec.REPLY_LIMIT + 1)), "too_large", id="too large"),
        pytest.param(Note(path="x", text="\udcff"), "internal", id="no valid Unicode"),
        pytest.param(
            StatusReport(
                version="", protocol=2, pid=1, uptime_s=0, socket="/tmp/\udcff", config=None, agents={}
            ),
            "internal",
            id="a socket whose name is not UTF-8",
        ),
    ],
)
def test_a_reply_that_cannot_be_sent_is_a_failure(address: Path, reply: Reply, code: str) -> None:
    """Whoever asked is told, and the connection lives."""

    async def handle(request: Request) -> Reply:
        return reply if isinstance(request, Search) else Note(path="small")

    with serving(address, handle), Stranger(address) as stranger:
        stranger.greet()
        stranger.ask(Search(query="x"), Get(path="x"))
        answers = stranger.hear_some(2)
    assert isinstance(answers[1], Failure)
    assert (answers[1].code, answers[2]) == (code, Note(path="small"))


# --- how it ends


def test_hanging_up_cancels_what_is_asked(address: Path) -> None:
    """Nobody works for a client that has gone; nothing is logged as an error."""
    began, cancelled = threading.Event(), threading.Event()

    async def handle(_: Request) -> Reply:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        raise AssertionError

    with structlog.testing.capture_logs() as logs, serving(address, handle) as connections:
        with Stranger(address) as stranger:
            stranger.greet()
            stranger.ask(Get(path="x"))
            assert began.wait(60)
        assert cancelled.wait(60)
        until(lambda: not connections)
    assert logs == []


@pytest.mark.parametrize("count", [1, 63, 64, 65, 500])
def test_the_last_requests_are_answered_after_the_end_of_the_stream(address: Path, count: int) -> None:
    """A client may say that it has said all, and hear every answer before the connection ends."""

    async def handle(request: Request) -> Reply:
        await asyncio.sleep(0)
        assert isinstance(request, Get)
        return Note(path=request.path, text="x" * 2000)

    with serving(address, handle) as connections, Stranger(address) as stranger:
        stranger.greet()
        stranger.ask(*(Get(path="x") for _ in range(count)))
        stranger.finish()
        assert whole(stranger.hear_some(count), range(1, count + 1))
        assert stranger.hear_end() == b""
        until(lambda: not connections)


def test_the_end_of_the_stream_in_a_frame_ends_the_connection(address: Path) -> None:
    """A frame that cannot end any more is not waited for."""
    with serving(address, echo, ConnectionLimits(frame_s=60)) as connections, Stranger(address) as stranger:
        stranger.greet()
        stranger.say(asked(1, Get(path="x"))[:9])
        stranger.finish()
        assert stranger.hear_end() == b""
        until(lambda: not connections)


def test_a_failure_that_is_said_at_once_comes_before_the_end(address: Path) -> None:
    """An answer that needed no work is sent although the client has said all."""
    with serving(address, echo), Stranger(address) as stranger:
        stranger.greet()
        stranger.ask_raw(1, {"type": "dance"})
        stranger.finish()
        assert stranger.hear_failure(1).code == "unsupported"
        assert stranger.hear_end() == b""


def test_a_stranger_is_not_listened_to(address: Path) -> None:
    """A peer of another user hears nothing, not even why, and is logged by its user id alone."""
    heard: list[Request] = []

    async def handle(request: Request) -> Reply:
        heard.append(request)
        return await echo(request)

    with (
        structlog.testing.capture_logs() as logs,
        serving(address, handle, uid=4_000_000) as connections,
        Stranger(address) as stranger,
    ):
        with contextlib.suppress(BrokenPipeError):  # the daemon may have hung up by now
            stranger.say(framed(codec.encode_hello(Hello(protocol=PROTOCOL, version="9"))))
        assert stranger.hear_end() == b""
        assert not connections
    assert [event["event"] for event in logs] == ["server.stranger_refused"]
    assert heard == []


# --- any bytes at all


class Line(asyncio.Transport):
    """A transport in memory: what is written to it is kept, and who asks finds a peer of the same user."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__({"socket": end})
        self.written = bytearray()
        self.is_closed = False
        self.may_read = asyncio.Event()
        self.may_read.set()

    def write(self, data: Any) -> None:
        self.written += data

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.may_read.clear()

    def resume_reading(self) -> None:
        self.may_read.set()

    def close(self) -> None:
        self.is_closed = True
        self.may_read.set()

    def abort(self) -> None:
        self.close()


def talk(pieces: list[bytes]) -> tuple[list[bytes], bool]:
    """The payloads that come back for a stream, and whether the connection was closed because of it."""

    def requests() -> set[asyncio.Task[Any]]:
        return asyncio.all_tasks() - {asyncio.current_task()}

    async def whole() -> tuple[list[bytes], bool]:
        here, there = socket.socketpair()
        with here, there:
            line = Line(here)
            connections: set[Connection] = set()
            connection = Connection(answer, os.getuid(), "1.2.3", connections)
            connection.connection_made(line)
            for piece in pieces:
                await line.may_read.wait()
                if line.is_closed:
                    break
                connection.data_received(piece)
                assert len(requests()) <= ConnectionLimits().in_flight
            while under_way := requests():
                await asyncio.wait(under_way)
            refused = line.is_closed
            connection.connection_lost(None)
            assert not connections
            reader = codec.FrameReader(codec.REPLY_LIMIT)
            reader.feed(line.written)
            payloads = list(iter(reader.next_frame, None))
            assert not reader.is_midway
            return payloads, refused

    return asyncio.run(whole())


async def answer(request: Request) -> Reply:
    """A note, at once or a little later."""
    path = request.path if isinstance(request, Get) else ""
    for _ in range(min(len(path), 3)):
        await asyncio.sleep(0)
    return Note(path=path)


GREETING = framed(codec.encode_hello(Hello(protocol=PROTOCOL, version="9")))
REQUESTS = st.integers(1, 99).flatmap(
    lambda number: st.text("x", max_size=3).map(lambda path: (number, asked(number, Get(path=path))))
)
UNKNOWN = st.integers(1, 99).map(
    lambda number: (number, framed(msgspec.msgpack.encode([number, {"type": "dance"}])))
)
CUTS = st.lists(st.integers(0, 60), max_size=12)


def cut_up(stream: bytes, cuts: list[int]) -> list[bytes]:
    """A stream in pieces of these lengths, and the rest."""
    pieces = []
    for cut in cuts:
        pieces.append(stream[:cut])
        stream = stream[cut:]
    return [*pieces, stream]


@given(st.lists(REQUESTS | UNKNOWN, max_size=90), CUTS)
def test_every_request_is_answered_once_however_the_stream_is_cut(
    asking: list[tuple[int, bytes]], cuts: list[int]
) -> None:
    """Known or unknown, in one piece or many, more of them than may be in flight: each has one answer under its id."""
    stream = GREETING + b"".join(data for _, data in asking)
    (hello, *answers), refused = talk(cut_up(stream, cuts))
    assert codec.decode_hello(hello).protocol == PROTOCOL
    assert sorted(codec.decode_reply(one)[0] for one in answers) == sorted(number for number, _ in asking)
    assert not refused


@given(
    st.booleans(),
    st.lists(
        st.binary(max_size=20)
        | st.binary(max_size=40).map(framed)
        | (REQUESTS | UNKNOWN).map(lambda one: one[1]),
        max_size=10,
    ),
    CUTS,
)
def test_any_bytes_are_answered_or_refused(greets: bool, parts: list[bytes], cuts: list[int]) -> None:
    """Noise between frames never raises: what comes back is whole answers, the last a complaint if it is the end."""
    stream = GREETING * greets + b"".join(parts)
    payloads, refused = talk(cut_up(stream, cuts))
    answers = payloads[1:] if greets else payloads
    told = [codec.decode_reply(one) for one in answers if not is_hello(one)]
    complaints = [reply for number, reply in told if number == 0]
    assert len(complaints) <= 1
    assert bool(complaints) is refused
    assert all(isinstance(reply, Failure) for reply in complaints)
    assert len(payloads) <= 2 + stream.count(b"\0")  # no more answers than frames can be there


@given(STREAMS, st.data())
def test_what_is_nearly_the_protocol_is_answered_or_refused(stream: bytes, data: st.DataObject) -> None:
    """Messages and frames that are nearly right: as many answers as there are frames at most, and the same however cut."""
    (payloads, refused), (again, refused_again) = talk([stream]), talk(data.draw(pieces(stream)))
    assert (sorted(payloads), refused) == (sorted(again), refused_again)
    reader = codec.FrameReader(codec.REQUEST_LIMIT)
    reader.feed(stream)
    came = 0
    with contextlib.suppress(codec.FrameTooLarge):
        while reader.next_frame() is not None:
            came += 1
    assert len(payloads) <= came + 1
    for number, payload in enumerate(payloads):
        if number == 0 and is_hello(payload):
            continue
        answered, reply = codec.decode_reply(payload)
        assert isinstance(reply, Note | Failure)
        assert answered or isinstance(reply, Failure)


def is_hello(payload: bytes) -> bool:
    """Whether noise happened to be a greeting, and this is the answer."""
    with contextlib.suppress(codec.InvalidPayload):
        codec.decode_hello(payload)
        return True
    return False
