import asyncio
import gc
import inspect
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest
import uvloop

from memd_client import (
    AsyncClient,
    Client,
    ConnectionLost,
    DaemonNotRunning,
    ProtocolMismatch,
    RequestFailed,
    TimedOut,
)
from memd_client.codec import REQUEST_LIMIT, encode_reply
from memd_client.conversation import IN_FLIGHT
from memd_client.messages import Failure, Found, Get, Note, Sync, SyncReport
from tests.client.scripted_server import Peer, Script, serving, unless_left
from tests.client.surface import BROKEN, CALLS, FOUND, HELLO, REFUSAL, UNFIT, Call, frame, packed
from tests.wait import until_async

T = TypeVar("T")
Run = Callable[[Coroutine[Any, Any, T]], T]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run[Any]:
    """Run a coroutine, which may leave behind no task, no open connection and no complaint of the loop."""

    def run(main: Coroutine[Any, Any, T]) -> T:
        complaints: list[dict[str, Any]] = []

        async def watched() -> T:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: complaints.append(context))
            result = await main
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return result

        with asyncio.Runner(loop_factory=request.param) as runner:
            result = runner.run(watched())
        gc.collect()
        assert complaints == []
        return result

    return run


def answering(*replies: Found | Note | Failure) -> Script:
    """Greet, give these answers, and wait until the client has had enough."""

    def script(peer: Peer) -> None:
        peer.greet()
        for reply in replies:
            peer.answer_next(reply)
        peer.wait_for_end()

    return script


def echoing(count: int) -> Script:
    """Greet, answer so many gets with the path that was asked for, and wait for the end."""

    def script(peer: Peer) -> None:
        peer.greet()
        for _ in range(count):
            request_id, request = peer.hear()
            assert isinstance(request, Get)
            peer.answer(request_id, Note(path=request.path))
        peer.wait_for_end()

    return script


def leaving(peer: Peer) -> None:
    """Greet, answer once, and hang up."""
    peer.greet()
    peer.answer_next(FOUND)


async def until_idle(memd: AsyncClient) -> None:
    """Return when the client has noticed that the daemon hung up."""
    await until_async(lambda: memd._current().find_usable() is None)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.method)
def test_surface(run: Run[None], address: Path, call: Call) -> None:
    """Every method sends its request with every argument in its place, and gives back the answer."""

    def script(peer: Peer) -> None:
        peer.greet()
        assert peer.answer_next(call.reply) == call.request
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address, timeout=None) as memd:
            assert await getattr(memd, call.method)(*call.args, **call.options) == call.reply

    with serving(address, script):
        run(story())


def test_same_surface_as_the_blocking_client() -> None:
    """Whatever can be asked in one client can be asked in the other, with the same arguments."""

    def surface(client: type) -> dict[str, inspect.Signature]:
        methods = inspect.getmembers(client, inspect.isfunction)
        return {name: inspect.signature(method) for name, method in methods if not name.startswith("_")}

    assert surface(AsyncClient) == surface(Client)
    assert inspect.signature(AsyncClient) == inspect.signature(Client)


def test_many_at_once(run: Run[None], address: Path) -> None:
    """Questions do not wait for each other's answers, and each gets its own, in whatever order they come."""

    def script(peer: Peer) -> None:
        peer.greet()
        heard = [peer.hear() for _ in range(10)]
        for request_id, request in reversed(heard):
            assert isinstance(request, Get)
            peer.answer(request_id, Note(path=request.path))
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            notes = await asyncio.gather(*[memd.get(f"{number}.md") for number in range(10)])
            assert [note.path for note in notes] == [f"{number}.md" for number in range(10)]

    with serving(address, script):
        run(story())


def test_in_flight(run: Run[None], address: Path) -> None:
    """No more than 64 requests are under way; the others wait for a place."""

    def script(peer: Peer) -> None:
        peer.greet()
        heard = [peer.hear()[0] for _ in range(IN_FLIGHT)]
        assert peer.is_quiet(0.05)
        peer.answer(heard[0], FOUND)
        heard.append(peer.hear()[0])
        assert peer.is_quiet(0.05)
        for request_id in heard[1:]:
            peer.answer(request_id, FOUND)
        for _ in range(15):
            peer.answer_next(FOUND)
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            assert await asyncio.gather(*[memd.search("x") for _ in range(80)]) == [FOUND] * 80

    assert IN_FLIGHT == 64
    with serving(address, script):
        run(story())


def test_cancelled_caller(run: Run[None], address: Path) -> None:
    """A caller that is cancelled harms nobody: its late answer is dropped and the connection goes on."""
    heard, cancelled = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        late, _ = peer.hear()
        other, _ = peer.hear()
        heard.set()
        assert cancelled.wait(60)
        peer.answer(late, Note(path="late"))
        peer.answer(other, Note(path="other"))
        peer.answer_next(Note(path="next"))
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            first = asyncio.create_task(memd.get("late"))
            other = asyncio.create_task(memd.get("other"))
            await until_async(heard.is_set)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            cancelled.set()
            assert (await other).path == "other"
            assert (await memd.get("next")).path == "next"
            connection = memd._current().find_usable()
            assert connection is not None
            assert (connection._waiting, connection._given_up) == ({}, set())

    with serving(address, script):
        run(story())


def test_places_of_given_up_requests_come_back_with_their_answers(run: Run[None], address: Path) -> None:
    """Not before: the daemon counts them as under way, and would not read what came instead."""
    given_up = IN_FLIGHT // 2 - 1
    heard = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        ids = [peer.hear()[0] for _ in range(given_up)]
        heard.set()
        others = [peer.hear()[0] for _ in range(IN_FLIGHT - given_up)]
        assert peer.is_quiet(0.05)
        for request_id in ids:
            peer.answer(request_id, Note(path="late"))
        others += [peer.hear()[0] for _ in range(given_up)]
        for request_id in others:
            peer.answer(request_id, FOUND)
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            calls = [asyncio.create_task(memd.search("x")) for _ in range(given_up)]
            await until_async(heard.is_set)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            assert await asyncio.gather(*[memd.search("y") for _ in range(IN_FLIGHT)]) == [FOUND] * IN_FLIGHT

    with serving(address, script):
        run(story())


@pytest.mark.parametrize("waiting", [0, 3, 100])
def test_given_up_requests_block_nobody(run: Run[None], address: Path, waiting: int) -> None:
    """When half of the places are theirs, what comes goes over a new connection; whoever waits on the old is answered."""
    heard, cancelled, searched = threading.Event(), threading.Event(), threading.Event()
    beside = min(waiting, IN_FLIGHT // 2)

    def old(peer: Peer) -> None:
        peer.greet()
        ids = [peer.hear()[0] for _ in range(IN_FLIGHT // 2 + beside)]
        heard.set()
        assert cancelled.wait(60)
        if beside:
            assert searched.wait(60)
        for request_id in ids[IN_FLIGHT // 2 :]:
            peer.answer(request_id, Note(path="beside"))
        peer.wait_for_end()

    def new(peer: Peer) -> None:
        peer.greet()
        for _ in range(waiting - beside):
            peer.answer_next(Note(path="beside"))
        peer.answer_next(FOUND)
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            calls = [asyncio.create_task(memd.search("x")) for _ in range(IN_FLIGHT // 2)]
            others = [asyncio.create_task(memd.get("y")) for _ in range(waiting)]
            await until_async(heard.is_set)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            cancelled.set()
            for other in others[beside:]:
                assert (await other).path == "beside"
            assert await memd.search("z") == FOUND
            searched.set()
            assert {(await other).path for other in others} <= {"beside"}

    with serving(address, old, new):
        run(story())


def test_cancelled_while_connecting(run: Run[None], address: Path) -> None:
    """A caller that is cancelled while it connects leaves that to the next one."""
    heard = threading.Event()

    def silent(peer: Peer) -> None:
        peer.hear_greeting()
        heard.set()
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            first = asyncio.create_task(memd.search("x"))
            second = asyncio.create_task(memd.search("y"))
            await until_async(heard.is_set)
            first.cancel()
            assert await second == FOUND
            with pytest.raises(asyncio.CancelledError):
                await first

    with serving(address, silent, answering(FOUND)):
        run(story())


def test_timeout(run: Run[None], address: Path) -> None:
    """A call ends in time; its late answer is dropped, and the connection goes on."""
    given_up = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(Note(path="first"))
        late, _ = peer.hear()
        assert given_up.wait(60)
        peer.answer(late, Note(path="late"))
        peer.answer_next(Note(path="next"))
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address, timeout=60) as memd:
            await memd.get("first")
            memd._timeout_s = 0.4
            began = time.monotonic()
            with pytest.raises(TimedOut) as timed_out:
                await memd.get("late")
            assert 0.39 <= time.monotonic() - began < 60
            assert timed_out.value.timeout_s == 0.4
            given_up.set()
            memd._timeout_s = 60
            assert (await memd.get("next")).path == "next"

    with serving(address, script):
        run(story())


def test_timeout_while_connecting(run: Run[None], address: Path) -> None:
    """A daemon that does not greet is given up in time."""

    async def story() -> None:
        async with AsyncClient(address, timeout=0.1) as memd:
            with pytest.raises(TimedOut):
                await memd.search("x")

    with serving(address, Peer.wait_for_end):
        run(story())


def test_daemon_that_does_not_read(run: Run[None], address: Path) -> None:
    """Requests that do not fit into the socket are given up in time as well."""
    given_up = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        given_up.wait(60)

    async def story() -> None:
        async with AsyncClient(address, timeout=0.2) as memd:
            calls = [memd.search("x" * (REQUEST_LIMIT - 100)) for _ in range(3)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [TimedOut] * 3

    with serving(address, unless_left(script)):
        run(story())
        given_up.set()


@pytest.mark.parametrize(("timeout", "least", "most"), [(60.0, 5000, 56_800), (None, None, None)])
def test_patience(
    run: Run[None], address: Path, timeout: float | None, least: int | None, most: int | None
) -> None:
    """A sync tells the daemon to answer a little before the client would give up."""
    heard: list[int | None] = []

    def script(peer: Peer) -> None:
        peer.greet()
        request = peer.answer_next(SyncReport())
        assert isinstance(request, Sync)
        heard.append(request.patience_ms)
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address, timeout) as memd:
            await memd.sync()

    with serving(address, script):
        run(story())
    (patience_ms,) = heard
    if least is None or most is None:
        assert patience_ms is None
    else:
        assert patience_ms is not None
        assert least <= patience_ms <= most


def test_restarted_between_calls(run: Run[None], address: Path) -> None:
    """A daemon that was restarted between calls is found again, whether the client noticed or not."""

    async def story() -> None:
        async with AsyncClient(address) as memd:
            for notices in (True, False, True):
                with serving(address, leaving):
                    assert await memd.search("x") == FOUND
                if notices:
                    await until_idle(memd)
            with pytest.raises(DaemonNotRunning):
                await memd.search("x")

    run(story())


def test_restarted_during_calls(run: Run[None], address: Path) -> None:
    """Requests that a dying daemon did not answer go to the next one, all over one new connection."""

    def dying(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        for _ in range(5):
            peer.hear()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            await memd.search("x")
            notes = await asyncio.gather(*[memd.get(f"{number}.md") for number in range(5)])
            assert [note.path for note in notes] == [f"{number}.md" for number in range(5)]

    with serving(address, dying, echoing(5)):
        run(story())


def test_waiting_for_a_place_when_the_daemon_dies(run: Run[None], address: Path) -> None:
    """Requests that were not even sent when the daemon died go to the next one, too."""

    def dying(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        for _ in range(IN_FLIGHT):
            peer.hear()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            await memd.search("x")
            notes = await asyncio.gather(*[memd.get(f"{number}.md") for number in range(IN_FLIGHT + 9)])
            assert [note.path for note in notes] == [f"{number}.md" for number in range(IN_FLIGHT + 9)]

    with serving(address, dying, echoing(IN_FLIGHT + 9)):
        run(story())


def test_reconnects_once(run: Run[None], address: Path) -> None:
    """When the second connection dies as well, the call fails."""

    def dying(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        peer.hear()

    def dead(peer: Peer) -> None:
        peer.greet()
        peer.hear()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            assert await memd.search("x") == FOUND
            with pytest.raises(ConnectionLost, match="without an answer"):
                await memd.search("x")
            assert await memd.search("x") == FOUND

    with serving(address, dying, dead, answering(FOUND)):
        run(story())


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"", "without a greeting"),
        (frame(HELLO)[:-1], "without a greeting"),
        (frame(HELLO), "without an answer"),
        (frame(HELLO) + frame(encode_reply(1, FOUND))[:-1], "middle of an answer"),
    ],
)
def test_new_connection_dies(run: Run[None], address: Path, said: bytes, message: str) -> None:
    """A connection that dies before it ever answered is lost: no second try would mend that."""

    def script(peer: Peer) -> None:
        peer.send(said)

    async def story() -> None:
        async with AsyncClient(address) as memd:
            with pytest.raises(ConnectionLost, match=message):
                await memd.search("x")

    with serving(address, script):
        run(story())


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_broken_answers(run: Run[None], address: Path, said: bytes) -> None:
    """A daemon that breaks the protocol costs all who wait their call, and the client its connection."""

    def script(peer: Peer) -> None:
        peer.greet()
        for _ in range(3):
            peer.hear()
        peer.send(said)
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            calls = [memd.search("x") for _ in range(3)]
            outcomes = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [ConnectionLost] * 3
            assert len(set(map(id, outcomes))) == 3
            assert await memd.search("x") == FOUND

    with serving(address, script, answering(FOUND)):
        run(story())


@pytest.mark.parametrize(
    "said", [*BROKEN.values(), packed({"type": "hello", "protocol": "1", "version": ""})]
)
def test_broken_greetings(run: Run[None], address: Path, said: bytes) -> None:
    """Something else that listens there is told from a daemon."""

    def script(peer: Peer) -> None:
        peer.send(said if said != frame(HELLO) else frame(encode_reply(1, FOUND)))
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            with pytest.raises(ConnectionLost):
                await memd.search("x")

    with serving(address, script):
        run(story())


@pytest.mark.parametrize("body", UNFIT.values(), ids=UNFIT)
def test_unfit_answers(run: Run[None], address: Path, body: object) -> None:
    """An answer that is not understood, or of the wrong kind, fails its call and leaves the connection."""

    def script(peer: Peer) -> None:
        peer.greet()
        request_id, _ = peer.hear()
        peer.send(packed([request_id, body]))
        peer.answer_next(FOUND)
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            with pytest.raises(RequestFailed) as failed:
                await memd.search("x")
            assert failed.value.code == "protocol"
            assert await memd.search("x") == FOUND

    with serving(address, script):
        run(story())


def test_failure(run: Run[None], address: Path) -> None:
    """A failure arrives with all it says, and the connection goes on."""

    async def story() -> None:
        async with AsyncClient(address) as memd:
            with pytest.raises(RequestFailed) as failed:
                await memd.search("x")
            assert (failed.value.code, failed.value.message, failed.value.hint) == (
                "busy",
                "Not now.",
                "Wait.",
            )
            assert await memd.search("x") == FOUND

    with serving(address, answering(Failure(code="busy", message="Not now.", hint="Wait."), FOUND)):
        run(story())


@pytest.mark.parametrize("greets", [False, True])
def test_refused_connection(run: Run[None], address: Path, greets: bool) -> None:
    """A daemon that ends the conversation says why, whether it has greeted and listened or not."""

    def script(peer: Peer) -> None:
        if greets:
            peer.greet()
            peer.hear()
        peer.send_frame(encode_reply(0, REFUSAL))

    async def story() -> None:
        async with AsyncClient(address) as memd:
            with pytest.raises(RequestFailed) as failed:
                await memd.search("x")
            assert (failed.value.code, failed.value.hint) == ("protocol", "Be yourself.")
            assert await memd.search("x") == FOUND

    with serving(address, script, answering(FOUND)):
        run(story())


def test_refused_together_with_the_greeting(run: Run[None], address: Path) -> None:
    """A refusal that arrives in one piece with the greeting is heard as well."""

    def script(peer: Peer) -> None:
        peer.send(frame(HELLO) + frame(encode_reply(0, REFUSAL)))
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            with pytest.raises(RequestFailed, match="somebody else"):
                await memd.search("x")

    with serving(address, script):
        run(story())


def test_parting_words_are_not_for_the_next_call(run: Run[None], address: Path) -> None:
    """What a daemon says while nothing is asked concerns nobody: the next call goes to a new connection."""

    def parting(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        peer.send_frame(encode_reply(0, Failure(code="unavailable", message="The daemon stops.")))
        peer.wait_for_end()

    async def story() -> None:
        async with AsyncClient(address) as memd:
            await memd.search("x")
            await until_idle(memd)
            assert await memd.search("x") == FOUND

    with serving(address, parting, answering(FOUND)):
        run(story())


def test_other_protocol(run: Run[None], address: Path) -> None:
    """A daemon of another protocol is not asked anything."""

    def script(peer: Peer) -> None:
        peer.greet(protocol=1)
        assert peer.is_quiet(0.05)

    async def story() -> None:
        async with AsyncClient(address) as memd:
            with pytest.raises(ProtocolMismatch):
                await memd.search("x")

    with serving(address, script):
        run(story())


@pytest.mark.parametrize(
    ("query", "code"),
    [("half \ud800", "bad_request"), ("x" * REQUEST_LIMIT, "too_large")],
    ids=["half", "large"],
)
def test_unsendable(run: Run[None], address: Path, query: str, code: str) -> None:
    """A request that cannot be sent fails in words and leaves the connection as it was."""

    async def story() -> None:
        async with AsyncClient(address) as memd:
            await memd.search("x")
            with pytest.raises(RequestFailed) as failed:
                await memd.search(query)
            assert failed.value.code == code
            assert await memd.search("x") == FOUND

    with serving(address, answering(FOUND, FOUND)):
        run(story())


def test_closed_during_calls(run: Run[None], address: Path) -> None:
    """Closing ends the calls that are under way, at once and without a trace."""
    heard = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        for _ in range(3):
            peer.hear()
        heard.set()
        peer.wait_for_end()

    async def story() -> None:
        memd = AsyncClient(address)
        calls = [asyncio.create_task(memd.search("x")) for _ in range(3)]
        await until_async(heard.is_set)
        await memd.close()
        await memd.close()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["This client is closed."] * 3
        with pytest.raises(ConnectionLost, match="closed"):
            await memd.search("x")

    with serving(address, script):
        run(story())


def test_closed_while_connecting(run: Run[None], address: Path) -> None:
    """A client that is closed while it connects leaves no connection behind."""
    heard, closed = threading.Event(), threading.Event()

    def script(peer: Peer) -> None:
        peer.hear_greeting()
        heard.set()
        assert closed.wait(60)
        peer.send_frame(HELLO)
        peer.wait_for_end()

    async def story() -> None:
        memd = AsyncClient(address)
        call = asyncio.create_task(memd.search("x"))
        await until_async(heard.is_set)
        await memd.close()
        closed.set()
        with pytest.raises(ConnectionLost, match="closed"):
            await call

    with serving(address, script):
        run(story())


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)
def test_one_loop_after_another(address: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    """A client that is used in one asyncio.run after another connects in each, and closes in a last one."""
    memd = AsyncClient(address)

    async def three_at_once() -> list[Note]:
        return await asyncio.gather(*[memd.get(name) for name in "abc"])

    with serving(address, echoing(3), echoing(3)):
        for _ in range(2):
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                assert [note.path for note in runner.run(three_at_once())] == ["a", "b", "c"]
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(memd.close())
    gc.collect()


LOOPS = pytest.mark.parametrize(
    "loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@LOOPS
def test_a_second_loop_beside_the_first(
    address: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """A thread with a loop of its own disturbs neither the calls of the first one nor other connections there."""
    memd = AsyncClient(address)

    def in_another_loop() -> str:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            return runner.run(memd.get("other")).path

    async def other_library() -> bytes:
        """Uses the descriptors that are free now."""
        ours, theirs = socket.socketpair()
        with theirs:
            reader, writer = await asyncio.wait_for(asyncio.open_connection(sock=ours), 5)
            theirs.sendall(b"hello")
            heard = await asyncio.wait_for(reader.readexactly(5), 5)
            writer.close()
            await writer.wait_closed()
        return heard

    async def story() -> None:
        for name in "abc":
            assert (await memd.get(name)).path == name
            assert await asyncio.to_thread(in_another_loop) == "other"
            assert await other_library() == b"hello"
        assert (await memd.get("last")).path == "last"
        await memd.close()

    with (
        serving(address, echoing(4), echoing(1), echoing(1), echoing(1)),
        asyncio.Runner(loop_factory=loop_factory) as runner,
    ):
        runner.run(story())
    gc.collect()


@LOOPS
def test_two_loops_in_turns_have_a_connection_each(
    address: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """However often the client goes from one to the other; closing it in one ends that of the other, too."""
    memd = AsyncClient(address)
    with serving(address, echoing(20), echoing(20)):
        first, second = asyncio.Runner(loop_factory=loop_factory), asyncio.Runner(loop_factory=loop_factory)
        with first, second:
            for _ in range(20):
                for runner in (first, second):
                    assert runner.run(memd.get("a")).path == "a"
            first.run(memd.close())
            second.run(asyncio.sleep(0))
    gc.collect()


def test_never_used(run: Run[None], address: Path) -> None:
    """A client can be made outside of a loop, and closed without a daemon."""
    memd = AsyncClient(address)
    run(memd.close())


def test_no_daemon(run: Run[None], address: Path) -> None:
    """Where nothing listens, every caller hears it."""

    async def story() -> None:
        async with AsyncClient(address) as memd:
            outcomes = await asyncio.gather(*[memd.search("x") for _ in range(3)], return_exceptions=True)
            assert [type(outcome) for outcome in outcomes] == [DaemonNotRunning] * 3

    run(story())


def test_full_queue(run: Run[None], address: Path) -> None:
    """While the daemon is too busy to accept, a client waits, but no longer than it was told."""

    def accept(listener: socket.socket) -> None:
        listener.accept()[0].close()
        with listener.accept()[0] as connection:
            answering(FOUND)(Peer(connection))

    async def story() -> None:
        with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
            listener.bind(str(address))
            listener.listen(0)
            listener.settimeout(60)
            other.connect(str(address))
            async with AsyncClient(address, timeout=0.1) as memd:
                with pytest.raises(TimedOut):
                    await memd.search("x")
            accepting = threading.Thread(target=accept, args=(listener,))
            async with AsyncClient(address, timeout=60) as memd:
                call = asyncio.create_task(memd.search("x"))
                accepting.start()
                assert await call == FOUND
            accepting.join()

    run(story())


def opened() -> int:
    """How many files this process has open."""
    return len(list(Path("/dev/fd").iterdir()))


@asynccontextmanager
async def serving_here(
    address: Path, talk: Callable[[Streams], Coroutine[Any, Any, None]]
) -> AsyncIterator[None]:
    """A daemon in the client's own event loop, so that both take their steps in turn."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await talk((reader, writer))
        writer.close()

    server = await asyncio.start_unix_server(serve, address)
    yield
    server.close()
    await server.wait_closed()


async def hear(reader: asyncio.StreamReader) -> None:
    await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def test_cancelled_at_every_step(run: Run[None], address: Path) -> None:
    """Wherever a caller is cancelled between its call and its answer, the socket is closed."""

    async def talk(streams: Streams) -> None:
        reader, writer = streams
        await hear(reader)
        writer.write(frame(HELLO))
        await hear(reader)
        writer.write(frame(encode_reply(1, FOUND)))
        await hear(reader)

    async def story() -> None:
        outcomes = set()
        async with serving_here(address, talk):
            at_rest = opened()
            for steps in range(60):
                async with AsyncClient(address) as memd:
                    call = asyncio.create_task(memd.search("x"))
                    for _ in range(steps):
                        await asyncio.sleep(0)
                    call.cancel()
                    outcomes.add(type((await asyncio.gather(call, return_exceptions=True))[0]))
                await until_async(lambda: opened() == at_rest and len(asyncio.all_tasks()) == 1)
        assert outcomes == {asyncio.CancelledError, Found}

    run(story())


def test_refused_at_every_step(run: Run[None], address: Path) -> None:
    """Wherever a daemon refuses after its greeting, the reason arrives and the socket is closed."""
    delays = iter(range(30))

    async def talk(streams: Streams) -> None:
        reader, writer = streams
        await hear(reader)
        writer.write(frame(HELLO))
        for _ in range(next(delays)):
            await asyncio.sleep(0)
        writer.write(frame(encode_reply(0, REFUSAL)))
        with suppress(asyncio.IncompleteReadError):
            await hear(reader)

    async def story() -> None:
        async with serving_here(address, talk):
            at_rest = opened()
            for _ in range(30):
                async with AsyncClient(address) as memd:
                    with pytest.raises(RequestFailed, match="somebody else"):
                        await memd.search("x")
                await until_async(lambda: opened() == at_rest and len(asyncio.all_tasks()) == 1)

    run(story())
