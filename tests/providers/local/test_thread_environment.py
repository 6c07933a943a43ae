import subprocess
import sys

from memd.providers.local.thread_environment import prepare_environment
from tests.modules import existing


def test_threads_are_bounded_and_idle_ones_sleep() -> None:
    """All three variables are set, whatever was there before."""
    environ = {"OMP_NUM_THREADS": "64", "OMP_WAIT_POLICY": "ACTIVE", "HOME": "/home/someone"}
    prepare_environment(environ, threads=3)
    assert environ == {
        "OMP_NUM_THREADS": "3",
        "OMP_WAIT_POLICY": "PASSIVE",
        "OPENBLAS_NUM_THREADS": "1",
        "HOME": "/home/someone",
    }


def test_it_can_be_called_before_numpy_loads() -> None:
    """Importing the function imports no numeric library, which would read the variables too early."""
    (numpy,) = existing("numpy")
    code = f"import sys, memd.providers.local.thread_environment; sys.exit({numpy!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
