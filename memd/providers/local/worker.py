"""The process that embeds passages, at low priority, for the daemon that started it.

It reads frames from stdin and writes answers to stdout. The texts of a request are computed side by side, and share the threads that
compute one. It ends at the end of stdin, even within a text.
"""

import contextlib
import ctypes
import fcntl
import os
import platform
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NoReturn, Protocol

import msgspec

from memd.providers.local import bundled_model
from memd.providers.local.protocol import BrokenFrame, Embedded, Passages, Ready, WorkerFrameReader, encode
from memd.providers.provider import Vector
from memd.runtime import safe_traceback
from memd.runtime.startup import prepare_environment

NICE = 10
MAX_THREADS = 8
_PR_SET_PDEATHSIG = 1
# ioprio_set(2) has no wrapper in the C library. The model has wheels for these machines only.
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_THIS_PROCESS, _IDLE, _CLASS_SHIFT = 1, 3, 13
# setiopolicy_np(3): IOPOL_TYPE_DISK, IOPOL_SCOPE_PROCESS, IOPOL_THROTTLE.
_DISK, _WHOLE_PROCESS, _THROTTLED = 0, 0, 3


class WorkerModel(Protocol):
    """Turns a text into a vector; threads share it."""

    def passage(self, text: str) -> Vector:
        """Return the vector of a text, shape (dimensions,)."""
        ...


def lower_priority() -> None:
    """Lower the priority of this process below all others."""
    os.nice(NICE)
    set_idle_io_priority()
    # With autogroup scheduling, nice compares processes of one session only. The session can be lowered as a whole if it is our
    # own; a shared one must not be.
    if os.getsid(0) == os.getpid():
        _write_proc("autogroup", str(NICE))
    # If memory runs out, the kernel should kill the worker, which is restarted, and not the daemon.
    _write_proc("oom_score_adj", "500")


def set_idle_io_priority() -> None:
    """Set idle disk priority for this process and the threads that it starts from now on."""
    # Best effort: not every kernel and disk supports it.
    if sys.platform == "linux" and (number := _IOPRIO_SET.get(platform.machine())) is not None:
        ctypes.CDLL(None).syscall(number, _THIS_PROCESS, 0, _IDLE << _CLASS_SHIFT)
    elif sys.platform == "darwin":
        ctypes.CDLL(None).setiopolicy_np(_DISK, _WHOLE_PROCESS, _THROTTLED)


def _write_proc(name: str, value: str) -> None:
    with contextlib.suppress(OSError):  # not supported here
        Path("/proc/self", name).write_text(value, encoding="ascii")


def end_with_parent() -> None:
    """Let the kernel end this process with the daemon, if it can; the end of stdin has the same effect everywhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def claim_stdout() -> int:
    """Return a descriptor for answers; what libraries print to stdout is discarded from now on."""
    answers = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return answers


def engine_threads() -> int:
    """Return how many texts are computed side by side, and how many threads compute one: all cores, up to a limit.

    On two cores a text of 270 tokens takes 72 ms alone, and 53 where there are others; one of 40 tokens 20 and 12. A question is not
    slowed down, since the worker has low priority.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(cores, MAX_THREADS)


def read_requests(requests: SimpleQueue[Passages]) -> NoReturn:
    """Queue requests, and end the process at the end of stdin."""
    decode = msgspec.msgpack.Decoder(Passages).decode
    reader = WorkerFrameReader()
    try:
        while data := os.read(0, 65_536):
            for body in reader.feed(data):
                requests.put(decode(body))
    except (OSError, BrokenFrame, msgspec.DecodeError):
        os._exit(1)
    os._exit(0)


def serve(version: str, load: Callable[[], WorkerModel]) -> NoReturn:
    """Answer requests until the daemon closes stdin.

    Args:
        version: The version, for the daemon to compare with its own.
        load: Loads the model.
    """
    # Ctrl-C in a terminal is for the daemon, which ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    answers = claim_stdout()
    requests: SimpleQueue[Passages] = SimpleQueue()
    # On a thread of its own: the engine releases the GIL, so the end of stdin is noticed within a text.
    threading.Thread(target=read_requests, args=(requests,), daemon=True).start()
    model = load()
    _write(answers, encode(Ready(version, bundled_model.DIMENSIONS)))
    beside = ThreadPoolExecutor(engine_threads(), "memd-passage")
    while True:
        request = requests.get()
        vectors = beside.map(model.passage, request.texts)
        _write(answers, encode(Embedded(request.id, b"".join(vector.tobytes() for vector in vectors))))


def _write(descriptor: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    except BrokenPipeError:
        os._exit(0)


def main() -> NoReturn:
    """Serve the bundled model, at low priority."""
    safe_traceback.handle_uncaught(safe_traceback.print_traceback)
    lower_priority()
    prepare_environment(os.environ, engine_threads())
    state = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    serve(bundled_model.find().version, lambda: bundled_model.load(engine_threads(), state))


if __name__ == "__main__":
    main()
