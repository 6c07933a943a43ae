import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from random import Random

import pytest

from memd_client import Client, ConnectionLost, DaemonNotRunning, ProtocolMismatch, RequestFailed, TimedOut
from memd_client.codec import REQUEST_LIMIT, encode_reply, encode_request
from memd_client.messages import Failure, Found, Get, Hello, Note, Search, Sync, SyncReport
from memd_client.tools import Tools
from tests.client.scripted_server import Peer, Script, serving, unless_left
from tests.client.surface import BROKEN, CALLS, FOUND, HELLO, REFUSAL, UNFIT, Call, frame, packed


def answering(*replies: Found | Note | Failure) -> Script:
    """Greet, give these answers, and wait until the client has had enough."""

    def script(peer: Peer) -> None:
        peer.greet()
        for reply in replies:
            peer.answer_next(reply)
        peer.wait_for_end()

    return script


def leaving(peer: Peer) -> None:
    """Greet, answer once, and hang up."""
    peer.greet()
    peer.answer_next(FOUND)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.method)
def test_surface(address: Path, call: Call) -> None:
    """Every method sends its request with every argument in its place, and gives back the answer."""

    def script(peer: Peer) -> None:
        peer.greet()
        assert peer.answer_next(call.reply) == call.request

    with serving(address, script), Client(address, timeout=None) as memd:
        assert getattr(memd, call.method)(*call.args, **call.options) == call.reply


def test_greeting(address: Path) -> None:
    """The client greets first, with its protocol and the version of its distribution."""

    def script(peer: Peer) -> None:
        assert peer.greet() == Hello(protocol=2, version=version("memd-client"))
        peer.answer_next(FOUND)

    with serving(address, script), Client(str(address)) as memd:
        memd.search("x")


def test_connects_when_asked(address: Path) -> None:
    """A client can be made, closed and closed again without a daemon."""
    memd = Client(address)
    memd.close()
    memd.close()


def test_one_connection_for_many_calls(address: Path) -> None:
    """Calls share a connection, also after one that failed."""
    with (
        serving(address, answering(FOUND, Failure(code="busy", message="no"), FOUND)),
        Client(address) as memd,
    ):
        assert memd.search("x") == FOUND
        with pytest.raises(RequestFailed):
            memd.search("x")
        assert memd.search("x") == FOUND


def test_default_socket(address: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an argument, or with an empty one, the environment says where the socket is."""
    monkeypatch.setenv("MEMD_SOCKET", str(address))
    with serving(address, answering(FOUND), answering(FOUND)):
        for memd in (Client(), Client("")):
            with memd:
                assert memd.search("x") == FOUND


@pytest.mark.parametrize(("timeout", "least", "most"), [(60.0, 5000, 56_800), (None, None, None)])
def test_patience(address: Path, timeout: float | None, least: int | None, most: int | None) -> None:
    """A sync tells the daemon to answer a little before the client would give up."""

    def script(peer: Peer) -> None:
        peer.greet()
        request = peer.answer_next(SyncReport())
        assert isinstance(request, Sync)
        if least is None or most is None:
            assert request.patience_ms is None
        else:
            assert request.patience_ms is not None
            assert least <= request.patience_ms <= most

    with serving(address, script), Client(address, timeout) as memd:
        memd.sync()


def test_restarted_between_calls(address: Path) -> None:
    """A daemon that was restarted while nothing was asked is found again."""
    memd = Client(address)
    for _ in range(3):
        with serving(address, leaving):
            assert memd.search("x") == FOUND
    memd.close()


def test_restarted_during_a_call(address: Path) -> None:
    """A request that a dying daemon heard and did not answer is sent to the next one."""

    def dying(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        assert peer.hear()[1] == Get(path="a.md")

    with serving(address, dying, answering(Note(path="a.md"))), Client(address) as memd:
        assert memd.search("x") == FOUND
        assert memd.get("a.md") == Note(path="a.md")


def test_reconnects_once(address: Path) -> None:
    """When the second connection dies as well, the call fails."""

    def dying(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        peer.hear()

    def dead(peer: Peer) -> None:
        peer.greet()
        peer.hear()

    with serving(address, dying, dead, answering(FOUND)), Client(address) as memd:
        assert memd.search("x") == FOUND
        with pytest.raises(ConnectionLost, match="without an answer"):
            memd.search("x")
        assert memd.search("x") == FOUND


def test_gone_for_good(address: Path) -> None:
    """A daemon that stopped, and was not started again, is not running."""
    with Client(address) as memd:
        with serving(address, leaving):
            memd.search("x")
        with pytest.raises(DaemonNotRunning):
            memd.search("x")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (b"", "without a greeting"),
        (frame(HELLO)[:-1], "without a greeting"),
        (frame(HELLO), "without an answer"),
        (frame(HELLO) + frame(encode_reply(1, FOUND))[:-1], "middle of an answer"),
    ],
)
def test_new_connection_dies(address: Path, said: bytes, message: str) -> None:
    """A connection that dies before it ever answered is lost: no second try would mend that."""

    def script(peer: Peer) -> None:
        peer.send(said)

    with serving(address, script), Client(address) as memd, pytest.raises(ConnectionLost, match=message):
        memd.search("x")


def test_half_an_answer(address: Path) -> None:
    """A connection that breaks inside an answer is lost, also when it answered before."""

    def script(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        peer.hear()
        peer.send(b"\0\0")

    with serving(address, script), Client(address) as memd:
        memd.search("x")
        with pytest.raises(ConnectionLost, match="middle of an answer"):
            memd.search("x")


@pytest.mark.parametrize("said", BROKEN.values(), ids=BROKEN)
def test_broken_answers(address: Path, said: bytes) -> None:
    """A daemon that breaks the protocol costs one call and its connection, and neither memory nor time."""

    def script(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        peer.send(said)
        peer.wait_for_end()

    with serving(address, script, answering(FOUND)), Client(address) as memd:
        with pytest.raises(ConnectionLost):
            memd.search("x")
        assert memd.search("x") == FOUND


@pytest.mark.parametrize(
    "said", [*BROKEN.values(), packed({"type": "hello", "protocol": "1", "version": ""})]
)
def test_broken_greetings(address: Path, said: bytes) -> None:
    """Something else that listens there is told from a daemon."""

    def script(peer: Peer) -> None:
        peer.send(said if said != frame(HELLO) else frame(encode_reply(1, FOUND)))
        peer.wait_for_end()

    with serving(address, script), Client(address) as memd, pytest.raises(ConnectionLost):
        memd.search("x")


def test_answer_to_another_question(address: Path) -> None:
    """An answer with an id that was not given out breaks the protocol."""

    def script(peer: Peer) -> None:
        peer.greet()
        request_id, _ = peer.hear()
        peer.answer(request_id + 1, FOUND)
        peer.wait_for_end()

    with serving(address, script), Client(address) as memd, pytest.raises(ConnectionLost, match="not asked"):
        memd.search("x")


@pytest.mark.parametrize("body", UNFIT.values(), ids=UNFIT)
def test_unfit_answers(address: Path, body: object) -> None:
    """An answer that is not understood, or of the wrong kind, fails its call and leaves the connection."""

    def script(peer: Peer) -> None:
        peer.greet()
        request_id, _ = peer.hear()
        peer.send(packed([request_id, body]))
        peer.answer_next(FOUND)
        peer.wait_for_end()

    with serving(address, script), Client(address) as memd:
        with pytest.raises(RequestFailed) as failed:
            memd.search("x")
        assert failed.value.code == "protocol"
        assert failed.value.hint
        assert memd.search("x") == FOUND


def test_failure(address: Path) -> None:
    """A failure arrives with its code, its message and its hint."""
    failure = Failure(code="unknown_agent", message="There is no agent 'wrok'.", hint="Did you mean 'work'?")
    with serving(address, answering(failure)), Client(address) as memd:
        with pytest.raises(RequestFailed) as failed:
            memd.search("x", agent="wrok")
        assert (failed.value.code, failed.value.message, failed.value.hint) == (
            "unknown_agent",
            "There is no agent 'wrok'.",
            "Did you mean 'work'?",
        )


@pytest.mark.parametrize("greets", [False, True])
def test_refused_connection(address: Path, greets: bool) -> None:
    """A daemon that ends the conversation says why, whether it has greeted and listened or not."""

    def script(peer: Peer) -> None:
        if greets:
            peer.greet()
            peer.hear()
        peer.send_frame(encode_reply(0, REFUSAL))

    with serving(address, script, answering(FOUND)), Client(address) as memd:
        with pytest.raises(RequestFailed) as failed:
            memd.search("x")
        assert (failed.value.code, failed.value.hint) == ("protocol", "Be yourself.")
        assert memd.search("x") == FOUND


def test_parting_words_are_not_for_the_next_call(address: Path) -> None:
    """What a daemon says while nothing is asked concerns nobody: the next call goes to a new connection."""
    parted = threading.Event()

    def parting(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        peer.send_frame(encode_reply(0, Failure(code="unavailable", message="The daemon stops.")))
        parted.set()
        peer.wait_for_end()

    with serving(address, parting, answering(FOUND)), Client(address) as memd:
        memd.search("x")
        assert parted.wait(60)
        assert memd.search("x") == FOUND


@pytest.mark.parametrize("theirs", [0, 1, 1_000_000])
def test_other_protocol(address: Path, theirs: int) -> None:
    """A daemon of another protocol is not asked anything."""

    def script(peer: Peer) -> None:
        peer.greet(protocol=theirs)
        assert peer.is_quiet(0.05)

    with serving(address, script), Client(address) as memd, pytest.raises(ProtocolMismatch) as mismatch:
        memd.search("x")
    assert (mismatch.value.ours, mismatch.value.theirs) == (2, theirs)


@pytest.mark.parametrize("greets", [False, True])
def test_silence(address: Path, greets: bool) -> None:
    """A daemon that says nothing is given up in time, whether it has greeted or not."""

    def script(peer: Peer) -> None:
        if greets:
            peer.greet()
        peer.wait_for_end()

    with serving(address, unless_left(script)), Client(address, timeout=0.1) as memd:
        began = time.monotonic()
        with pytest.raises(TimedOut) as timed_out:
            memd.search("x")
        assert time.monotonic() - began >= 0.1
        assert timed_out.value.timeout_s == 0.1


def test_timeout_is_of_the_whole_call(address: Path) -> None:
    """A daemon that drips cannot hold a caller: the time counts from the call, not from the last byte."""

    def script(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        for byte in frame(encode_reply(1, FOUND)):
            if not peer.is_quiet(0.03):
                return
            peer.send(bytes([byte]))

    with (
        serving(address, unless_left(script)),
        Client(address, timeout=0.2) as memd,
        pytest.raises(TimedOut),  # before all of it has come
    ):
        memd.search("x")


def test_daemon_that_does_not_read(address: Path) -> None:
    """A request that does not fit into the socket is given up in time as well."""

    def script(peer: Peer) -> None:
        peer.greet()
        given_up.wait(60)

    given_up = threading.Event()
    with serving(address, unless_left(script)), Client(address, timeout=0.2) as memd:
        with pytest.raises(TimedOut):
            memd.search("x" * (REQUEST_LIMIT - 100))
        given_up.set()


def test_late_answer(address: Path) -> None:
    """An answer that comes after its call was given up is never taken for that of the next call."""
    given_up = threading.Event()

    def slow(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(Note(path="first"))
        request_id, _ = peer.hear()
        assert given_up.wait(60)
        with pytest.raises(BrokenPipeError):
            peer.answer(request_id, Note(path="late"))

    with serving(address, slow, answering(Note(path="b.md"))), Client(address, timeout=60) as memd:
        memd.get("first")
        memd._timeout_s = 0.1
        with pytest.raises(TimedOut):
            memd.get("a.md")
        given_up.set()
        memd._timeout_s = 60
        assert memd.get("b.md") == Note(path="b.md")


class Interrupted(Exception):
    pass


def test_interrupted_call(address: Path) -> None:
    """A call that a signal ends takes its connection with it, so that its answer finds nobody."""

    def interrupting(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        peer.interrupt_until_end(signal.SIGUSR1)

    def interrupt() -> None:
        raise Interrupted

    with (
        handling_once(signal.SIGUSR1, interrupt),
        serving(address, interrupting, answering(FOUND)),
        Client(address) as memd,
    ):
        with pytest.raises(Interrupted):
            memd.search("x")
        assert memd.search("x") == FOUND


@contextmanager
def handling(signal_number: int, handler: Callable[[], None]) -> Iterator[None]:
    """Calls this for a signal."""
    previous = signal.signal(signal_number, lambda *_: handler())
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal_number, previous)


@contextmanager
def handling_once(signal_number: int, handler: Callable[[], None]) -> Iterator[None]:
    """Calls this for the first of several signals, and nothing for the others."""
    left = [handler]
    with handling(signal_number, lambda: left.pop()() if left else None):
        yield


# A socket that was made when the handler raised, and belonged to nobody yet, is closed by Python, which warns of it.
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_an_interruption_at_any_moment_leaves_the_client_usable(address: Path) -> None:
    """Whatever a signal handler raises, wherever: the next call is asked and answered, and the client can be closed."""
    interrupted = 0
    armed = False

    def interrupt() -> None:
        if armed:
            raise Interrupted

    def echo(peer: Peer) -> None:
        peer.greet()
        with suppress(EOFError, OSError):
            while True:
                peer.answer_next(FOUND)

    pauses = Random(3)
    with handling(signal.SIGALRM, interrupt), everybody(address, echo):
        memd = Client(address, timeout=60)
        while interrupted < 60:
            with suppress(Interrupted):
                try:
                    armed = True
                    signal.setitimer(signal.ITIMER_REAL, pauses.uniform(1e-6, 1e-3))
                    memd.search("x")
                    armed = False
                except Interrupted:
                    interrupted += 1
                    raise
                finally:
                    armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert memd.search("x") == FOUND
        memd.close()


@pytest.mark.parametrize("at", ["acquire", "release"])
def test_an_interruption_around_the_lock_does_not_keep_it(address: Path, at: str) -> None:
    """The very moment at which it was taken, or is given back."""

    class Lock:
        """Interrupts once, when its call has come back."""

        def __init__(self) -> None:
            self.lock = threading.RLock()
            self.waits = True

        def acquire(self, timeout: float) -> bool:
            return self.interrupted("acquire", self.lock.acquire(timeout=timeout))

        def release(self) -> None:
            self.lock.release()
            self.interrupted("release", value=True)

        def interrupted(self, name: str, value: bool) -> bool:
            if self.waits and name == at:
                self.waits = False
                raise Interrupted
            return value

    with serving(address, answering(FOUND, FOUND)) if at == "release" else serving(address, answering(FOUND)):
        memd = Client(address)
        memd._locked()._lock = Lock()  # type: ignore[assignment]
        with pytest.raises(Interrupted):
            memd.search("x")
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(memd.search, "x").result(60) == FOUND
        memd.close()


def test_closing_in_a_signal_handler_ends_the_call(address: Path) -> None:
    """Which the handler has interrupted, in the same thread: it cannot be waited for."""

    def interrupting(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        peer.interrupt_until_end(signal.SIGUSR1)

    memd = Client(address, timeout=None)
    with handling_once(signal.SIGUSR1, memd.close), serving(address, interrupting):
        with pytest.raises(ConnectionLost, match="This client is closed"):
            memd.search("x")
        memd.close()


def test_a_call_in_a_signal_handler_is_answered(address: Path) -> None:
    """On a connection of its own, and so is the call that it has interrupted."""
    inner: list[Note] = []

    def interrupting(peer: Peer) -> None:
        peer.greet()
        request_id, _ = peer.hear()
        while not asked.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
            asked.wait(0.05)
        peer.answer(request_id, Note(path="outer"))
        peer.answer_next(Note(path="next"))
        peer.wait_for_end()

    def handler(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(Note(path="inner"))
        peer.wait_for_end()
        asked.set()

    asked = threading.Event()
    with (
        Client(address) as memd,
        handling_once(signal.SIGUSR1, lambda: inner.append(memd.get("inner"))),
        serving(address, interrupting, handler),
    ):
        assert memd.get("outer").path == "outer"
        assert memd.get("next").path == "next"
        memd.close()
    assert [note.path for note in inner] == ["inner"]


@pytest.mark.parametrize("is_tool", [False, True])
def test_a_time_limit_of_the_program_is_its_own(address: Path, is_tool: bool) -> None:
    """A TimeoutError that a signal handler raises comes through as it is, whether tools or a client are called."""

    class Budget(TimeoutError):
        pass

    def exceed() -> None:
        raise Budget

    def interrupting(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        peer.interrupt_until_end(signal.SIGUSR1)

    with handling_once(signal.SIGUSR1, exceed), serving(address, interrupting):
        if is_tool:
            with pytest.raises(Budget):
                Tools(lambda: Client(address)).call("memory_search", {"query": "x"})
        else:
            with Client(address) as memd, pytest.raises(Budget):
                memd.search("x")


def test_closing_waits_for_another_thread_no_longer_than_a_call_may_take(address: Path) -> None:
    """Then that call loses its connection."""
    heard = threading.Event()

    def silent(peer: Peer) -> None:
        peer.greet()
        peer.hear()
        heard.set()
        peer.wait_for_end()

    with serving(address, silent), ThreadPoolExecutor(1) as threads:
        memd = Client(address, timeout=None)
        call = threads.submit(memd.search, "x")
        assert heard.wait(60)
        memd._timeout_s = 0.05
        memd.close()
        with pytest.raises(ConnectionLost, match="This client is closed"):
            call.result(60)


@contextmanager
def everybody(address: Path, script: Script) -> Iterator[None]:
    """A daemon that plays the same script to as many as come."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(address))
    listener.listen(64)

    def play() -> None:
        with suppress(OSError), ThreadPoolExecutor() as threads:
            while True:
                connection, _ = listener.accept()
                threads.submit(serve, connection)

    def serve(connection: socket.socket) -> None:
        with connection, suppress(EOFError, OSError):
            script(Peer(connection))

    thread = threading.Thread(target=play)
    thread.start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)
        listener.close()


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [("half \ud800", "bad_request", "surrogate"), ("x" * REQUEST_LIMIT, "too_large", str(REQUEST_LIMIT))],
)
def test_unsendable(address: Path, query: str, code: str, message: str) -> None:
    """A request that cannot be sent fails in words and leaves the connection as it was."""
    with serving(address, answering(FOUND, FOUND)), Client(address) as memd:
        memd.search("x")
        with pytest.raises(RequestFailed, match=message) as failed:
            memd.search(query)
        assert failed.value.code == code
        assert memd.search("x") == FOUND


def test_largest_messages(address: Path) -> None:
    """A request of a mebibyte and a reply of eight pass."""
    query = "x" * (REQUEST_LIMIT - len(encode_request(1, Search(query="x" * 70_000))) + 70_000)
    assert len(encode_request(1, Search(query=query))) == REQUEST_LIMIT
    note = Note(path="a.md", text="数" * 2_700_000)

    def script(peer: Peer) -> None:
        peer.greet()
        assert peer.answer_next(FOUND) == Search(query=query)
        peer.answer_next(note)

    with serving(address, script), Client(address) as memd:
        assert memd.search(query) == FOUND
        assert memd.get("a.md") == note


def test_threads_take_turns(address: Path) -> None:
    """Each of many threads gets the answer to its own question, over one connection."""

    def script(peer: Peer) -> None:
        peer.greet()
        for _ in range(80):
            request_id, request = peer.hear()
            assert isinstance(request, Get)
            peer.answer(request_id, Note(path=request.path))

    with serving(address, script), Client(address) as memd, ThreadPoolExecutor(8) as threads:
        paths = [f"memory/{number}.md" for number in range(80)]
        assert [note.path for note in threads.map(memd.get, paths)] == paths


def test_waiting_for_a_turn_counts(address: Path) -> None:
    """A thread that does not get its turn in time has timed out, and its request was never sent."""
    heard = threading.Event()
    timed_out = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        request_id, _ = peer.hear()
        heard.set()
        assert timed_out.wait(60)
        assert peer.is_quiet(0.05)
        peer.answer(request_id, FOUND)
        peer.wait_for_end()

    with serving(address, script), Client(address, timeout=60) as memd, ThreadPoolExecutor(1) as threads:
        first = threads.submit(memd.search, "x")
        assert heard.wait(60)
        memd._timeout_s = 0.1
        with pytest.raises(TimedOut):
            memd.search("y")
        timed_out.set()
        assert first.result() == FOUND


def forked(act: Callable[[], bool]) -> bool:
    """Whether the action came true in a forked child."""
    pid = os.fork()
    if not pid:
        try:
            os._exit(0 if act() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork(address: Path) -> None:
    """A forked child gets a connection of its own, and its end does not end that of the parent."""

    def parents(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(Note(path="parent"))
        peer.answer_next(Note(path="parent"))
        peer.wait_for_end()

    def childs(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(Note(path="child"))
        peer.wait_for_end()

    with serving(address, parents, childs, childs), Client(address) as memd:
        assert memd.get("a.md").path == "parent"
        assert forked(lambda: memd.get("a.md").path == "child")

        def child_closes() -> bool:
            with memd:
                return memd.get("a.md").path == "child"

        assert forked(child_closes)
        assert memd.get("a.md").path == "parent"


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_fork_during_a_call(address: Path) -> None:
    """A child that was forked while a thread of its parent waited for an answer need not wait for it."""
    heard = threading.Event()
    forked_one_is_done = threading.Event()

    def parents(peer: Peer) -> None:
        peer.greet()
        request_id, _ = peer.hear()
        heard.set()
        assert forked_one_is_done.wait(60)
        peer.answer(request_id, FOUND)
        peer.wait_for_end()

    with (
        serving(address, parents, answering(FOUND)),
        Client(address, 5) as memd,
        ThreadPoolExecutor(1) as threads,
    ):
        first = threads.submit(memd.search, "x")
        assert heard.wait(60)
        assert forked(lambda: memd.search("y") == FOUND)
        forked_one_is_done.set()
        assert first.result() == FOUND


def test_closed_client(address: Path) -> None:
    """A closed client has closed its connection, and answers nobody."""
    closed = threading.Event()

    def script(peer: Peer) -> None:
        peer.greet()
        peer.answer_next(FOUND)
        peer.wait_for_end()
        closed.set()

    with serving(address, script):
        with Client(address) as memd:
            memd.search("x")
        assert closed.wait(60)
        with pytest.raises(ConnectionLost, match="closed"):
            memd.search("x")


def test_full_queue(address: Path) -> None:
    """While the daemon is too busy to accept, a client waits, but no longer than it was told."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as other:
        listener.bind(str(address))
        listener.listen(0)
        listener.settimeout(60)
        other.connect(str(address))
        with Client(address, timeout=0.1) as memd, pytest.raises(TimedOut):
            memd.search("x")
        with ThreadPoolExecutor(1) as threads, Client(address, timeout=60) as memd:
            call = threads.submit(memd.search, "x")
            listener.accept()[0].close()
            with listener.accept()[0] as connection:
                peer = Peer(connection)
                peer.greet()
                peer.answer_next(FOUND)
                assert call.result() == FOUND


def test_outlives_sigpipe() -> None:
    """A program that lets SIGPIPE end it, as filters in a pipeline do, outlives a daemon that hangs up."""
    program = """
import signal, socket
from memd_client.blocking import _Connection, _Deadline
from memd_client.errors import ConnectionLost
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
ours, theirs = socket.socketpair()
theirs.close()
try:
    _Connection(ours).greet(_Deadline(5))
except ConnectionLost as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "without a greeting" in done.stdout


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_impossible_timeout(timeout: float) -> None:
    """A timeout in which nothing can be answered is refused at once."""
    with pytest.raises(ValueError, match="timeout"):
        Client(timeout=timeout)


def test_answer_of_another_kind(address: Path) -> None:
    """The answer to another sort of request is told apart, and both are named."""
    with (
        serving(address, answering(FOUND)),
        Client(address) as memd,
        pytest.raises(RequestFailed, match="Found instead of StatusReport"),
    ):
        memd.status()


def test_pieces(address: Path) -> None:
    """Greeting and answer are understood in whatever pieces they arrive."""

    def script(peer: Peer) -> None:
        for byte in frame(HELLO):
            peer.send(bytes([byte]))
        assert peer.hear_greeting().protocol == 2
        request_id, _ = peer.hear()
        for byte in frame(encode_reply(request_id, FOUND)):
            peer.send(bytes([byte]))

    with serving(address, script), Client(address) as memd:
        assert memd.search("x") == FOUND
