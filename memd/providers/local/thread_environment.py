"""Environment variables that numeric libraries read once, when they load."""

from collections.abc import MutableMapping


def prepare_environment(environ: MutableMapping[str, str], threads: int = 1) -> None:
    """Bound the threads of OpenMP and OpenBLAS, let idle ones sleep, and turn off the telemetry of onnxruntime.

    Call it before numpy is imported and before the embedding engine loads: OpenMP and OpenBLAS look at these
    variables once, in the constructor of their library, and start their threads from what they find. Without it,
    each idle thread of OpenMP spins on a core while it waits for work, and OpenBLAS keeps a thread a core for
    products that one thread finishes sooner. onnxruntime looks once, too: its builds for Linux otherwise write an id of the
    device below ``~/.cache`` and one of the session to the directory for temporary files, for events that they may send.
    What a person exported for other programs is overridden.

    Args:
        environ: ``os.environ``; writing there reaches ``getenv`` of C libraries, and child processes.
        threads: How many threads one call of the engine may use. The daemon embeds short questions: 1.
    """
    environ["OMP_NUM_THREADS"] = str(threads)
    environ["OMP_WAIT_POLICY"] = "PASSIVE"
    environ["OPENBLAS_NUM_THREADS"] = "1"
    environ["ORT_DISABLE_TELEMETRY"] = "1"
