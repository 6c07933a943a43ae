"""The first steps of a program: standard streams, environment of numeric libraries, imports, a quiet end on Ctrl-C."""

import contextlib
import importlib
import os
import signal
import sys
from collections.abc import Iterator, MutableMapping
from functools import partial


def open_streams() -> None:
    """Open each stream that the parent process has closed, on /dev/null.

    Otherwise a socket, or a descriptor of the event loop, would get the number of a closed stream and receive what is printed.
    libuv aborts a process that closes a descriptor up to 2.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdin = sys.stdin or open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  a descriptor
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  likewise
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  likewise


STATUS = 130  # as shells have it: 128 + SIGINT


def end_quietly(status: int = STATUS) -> bool:
    """Let SIGINT end the process at once from now on; call it while there is nothing to lose.

    Returns:
        Whether the handler was set. It is not if the signal is ignored, as in the background of a shell, if
        another handler is set, or on a thread other than the main one.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return False
    try:
        signal.signal(signal.SIGINT, partial(_end, status))
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def quiet(status: int = STATUS) -> Iterator[None]:
    """Apply end_quietly within the block; afterwards Python raises KeyboardInterrupt as usual."""
    is_changed = end_quietly(status)
    try:
        yield
    finally:
        if is_changed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(status: int, *_: object) -> None:
    os._exit(status)


def import_structlog() -> None:
    """Import structlog without rich, which it would import to format tracebacks; call it before other imports of structlog.

    memd formats tracebacks itself. Importing rich takes 80 ms of processor time, a fifth of the daemon's
    start. A later import of rich works as usual.
    """
    _import_without("rich", "structlog")


def import_msgspec() -> None:
    """Import msgspec without typing_extensions, where that is installed; call it before other imports of msgspec.

    What msgspec takes from it is also in Python's own typing. Importing it takes an eighth of the processor time of a
    search by memd-ctl. A later import of it works as usual.
    """
    _import_without("typing_extensions", "msgspec")


def _import_without(left_out: str, module: str) -> None:
    if left_out in sys.modules or module in sys.modules:
        return
    sys.modules[left_out] = None  # type: ignore[assignment] # as the documentation of import has it: there is none
    try:
        importlib.import_module(module)
    finally:
        del sys.modules[left_out]


def prepare_environment(environ: MutableMapping[str, str], threads: int = 1) -> None:
    """Limit the threads of OpenMP and OpenBLAS, let idle ones sleep, and turn off the telemetry of onnxruntime.

    Call it before numpy and the embedding model's runtime are imported: OpenMP and OpenBLAS read these
    variables once, when their library is loaded, and start threads accordingly. Without them, each idle
    thread of OpenMP spins on a core while it waits for work, and OpenBLAS starts a thread per core for
    products that one thread finishes sooner. onnxruntime, too, reads its variable once: its builds for Linux
    otherwise write an id of the device below ``~/.cache`` and one of the session to the directory for
    temporary files, for events that they may send. Values that the user has exported for other programs are
    overwritten.

    Args:
        environ: ``os.environ``; assignments to it reach ``getenv`` of C libraries, and child processes.
        threads: How many threads one call of the model may use. The daemon embeds short questions: 1.
    """
    environ["OMP_NUM_THREADS"] = str(threads)
    environ["OMP_WAIT_POLICY"] = "PASSIVE"
    environ["OPENBLAS_NUM_THREADS"] = "1"
    environ["ORT_DISABLE_TELEMETRY"] = "1"
