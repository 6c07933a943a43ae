import subprocess
import sys
from pathlib import Path

from memd.providers.local.thread_environment import prepare_environment
from tests.modules import existing


def test_threads_are_bounded_and_idle_ones_sleep() -> None:
    """All variables are set, whatever was there before."""
    environ = {"OMP_NUM_THREADS": "64", "OMP_WAIT_POLICY": "ACTIVE", "HOME": "/home/someone"}
    prepare_environment(environ, threads=3)
    assert environ == {
        "OMP_NUM_THREADS": "3",
        "OMP_WAIT_POLICY": "PASSIVE",
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "HOME": "/home/someone",
    }


def test_onnxruntime_writes_no_ids(tmp_path: Path) -> None:
    """Neither of the device nor of the session: its telemetry is off."""
    environ = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    prepare_environment(environ)
    subprocess.run([sys.executable, "-c", "import onnxruntime"], check=True, env=environ)
    assert list(tmp_path.iterdir()) == []


def test_it_can_be_called_before_numpy_loads() -> None:
    """Importing the function imports no numeric library, which would read the variables too early."""
    (numpy,) = existing("numpy")
    code = f"import sys, memd.providers.local.thread_environment; sys.exit({numpy!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
