"""What every test is run with: no keys, a SIGINT that interrupts, and how hard Hypothesis tries."""

import faulthandler
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tests.bytecode import compile_share
from tests.order import spread

# With a key of whoever runs the tests, a daemon with provider = auto would send notes to its owner.
for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY"):
    os.environ.pop(variable, None)

# Where Python is told to keep no bytecode, each process that a test starts would compile all of memd (.25 s of the
# processor), and each worker all tests (10 s).
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# httpcore asks for it at each step of a request, and where it is not installed Python looks for it on the whole path each time:
# an eighth of the processor time of tests that talk to a provider.
if find_spec("sniffio") is None:
    vars(sys)["modules"]["sniffio"] = None

# What is made while tests are imported stays to the end: to look through it again and again for what is garbage takes a
# fifth of that time in each worker, and a third of a second at each collection afterwards.
gc.disable()

# A shell starts what it runs in the background with SIGINT ignored, and so would all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# More in a run of all tests, deep with --hypothesis-profile=long.
# None has a deadline, nor a limit on what it takes to make an input: each would be a time, and other work on the machine is no
# failure. But for the long one, they try the
# same each time, so that a suite that was green stays green; the long one prints the seed of what it finds. Nothing is kept
# in between: what was found belongs into a test.
settings.register_profile(
    "usual",
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("whole", settings.get_profile("usual"), max_examples=100)
settings.register_profile(
    "long",
    max_examples=1_000,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("usual")
# Hypothesis would try the constants of all modules that are loaded, too: what a test tries would depend on those before it in its
# worker, and each worker would parse all of memd (3 s of the processor in a new clone).
_providers = sys.modules.get("hypothesis.internal.conjecture.providers")
if hasattr(_providers, "_get_local_constants"):
    vars(_providers)["_get_local_constants"] = vars(_providers)["Constants"]

_WITHOUT_LONG = ("not long", "quick")
_HERE = Path(__file__).parent
_NOT_QUICK = [
    line for line in (_HERE / "not_quick.txt").read_text("utf-8").splitlines() if not line.startswith("#")
]
_SLOW_TESTS = frozenset(place for place in _NOT_QUICK if "::" in place)
_SLOW = frozenset(_HERE / place for place in _NOT_QUICK if "::" not in place)


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: a test of a daemon waits for its process, and others hardly ever.

    Each worker takes nine seconds of the processor to import and collect all tests. On two cores three took less time than
    four: 5:38 against 5:56, and quick tests 77 s with three and 95 s with two.
    """
    return (os.cpu_count() or 1) + 1


# Where Linux keeps files in memory, and the bytes that must be free there: a whole run has used .4 GB at a time.
_MEMORY = Path("/dev/shm")
_SCRATCH_BYTES = 2_000_000_000


def _scratch_in_memory() -> None:
    """What tests write lies in memory, unless somebody says where.

    Each index that a test makes waits for the disk some ten times, which is a third of the time of a quick run, and shows nothing:
    what a power cut leaves is tried on a model of a disk (`tests/faults`).
    """
    has_room = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _SCRATCH_BYTES
    if sys.platform == "linux" and "TMPDIR" not in os.environ and has_room:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None  # it has been looked up


def pytest_configure(config: pytest.Config) -> None:
    """Write to memory but in a run of all tests, which tries five times as many inputs."""
    if config.option.markexpr:
        _scratch_in_memory()
    elif not config.getoption("--hypothesis-profile"):
        settings.load_profile("whole")


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Compile a share of what is imported, where there is no bytecode yet: else each worker would compile all of it."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        compile_share(int(worker["workerid"].removeprefix("gw")), worker["workercount"])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Of a test that passes, have a worker tell no more than that: a quick run sends 24,000 messages instead of 72,000.

    Each costs the two processes .1 ms. What lists how long tests took needs them all.
    """
    option = item.config.option
    if not hasattr(item.config, "workerinput") or option.durations is not None or option.xmlpath is not None:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test with a limit of its own have its process as much longer, which pytest would end after the usual time."""
    marker = item.get_closest_marker("timeout")
    usual = float(item.config.getini("timeout"))
    if marker is not None and marker.args[0] > usual:
        seconds = float(item.config.getini("faulthandler_timeout")) * marker.args[0] / usual
        stderr = item.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(seconds, file=stderr, exit=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m quick`, what cannot be quick is not even imported: each worker would do so for itself (1.5 s)."""
    return True if config.option.markexpr == "quick" and collection_path in _SLOW else None


def pytest_collection_finish() -> None:
    """Have the garbage collection leave alone what there is by now, and look through what is new less often.

    To look through what there is takes .4 s, and to look as often as usual takes a tenth of the time of tests in this process.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make nothing of rows that are not run: a third of all rows, and to make and drop one takes each worker .2 ms."""
    marker = metafunc.definition.get_closest_marker("rows")
    if marker is not None and metafunc.config.option.markexpr in _WITHOUT_LONG:
        del metafunc._calls[marker.args[0] :]  # noqa: SLF001 - there is no other way


def _mark_other_rows(items: Sequence[pytest.Item]) -> None:
    """Mark the rows of parametrized tests that are long because others are run without them."""
    met = Counter[str]()
    for item in items:
        marker = item.get_closest_marker("rows")
        if marker is not None:
            test = item.nodeid.partition("[")[0]
            met[test] += 1
            if met[test] > marker.args[0]:
                item.add_marker(pytest.mark.long)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the long rows, and the quick tests; a worker gets them in another order."""
    _mark_other_rows(items)
    for place in _NOT_QUICK:
        file, _, test = place.partition("::")
        if not (_HERE / file).exists() or (test and f"def {test}(" not in (_HERE / file).read_text("utf-8")):
            raise pytest.UsageError(f"{place} is in tests/not_quick.txt, and is not there")
    is_slow = cache(lambda path: not _SLOW.isdisjoint({path, *path.parents}))  # a path has many tests
    for item in items:
        test = item.nodeid.removeprefix(f"{_HERE.name}/").partition("[")[0]
        if item.get_closest_marker("long") is None and test not in _SLOW_TESTS and not is_slow(item.path):
            item.add_marker(pytest.mark.quick)
    if hasattr(config, "workerinput"):
        items[:] = spread(items, lambda item: item.path, is_slow)
