"""What every test is run with: no keys, a SIGINT that interrupts, and how hard Hypothesis tries."""

import os
import signal
import sys

from hypothesis import HealthCheck, settings

# With a key of whoever runs the tests, a daemon with provider = auto would send notes to its owner.
for variable in ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VOYAGE_API_KEY"):
    os.environ.pop(variable, None)

# Where Python is told to keep no bytecode, each process that a test starts would compile all of memd (.25 s of the
# processor), and each worker all tests (10 s).
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell starts what it runs in the background with SIGINT ignored, and so would all processes that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Quick where the whole suite runs, deep with --hypothesis-profile=long.
# Neither has a deadline: it would be a time, and other work on the machine is no failure. The quick one tries the same
# each time, so that a suite that was green stays green; the long one prints the seed of what it finds. Nothing is kept
# in between: what was found belongs into a test.
settings.register_profile("quick", max_examples=60, deadline=None, derandomize=True, database=None)
settings.register_profile(
    "long",
    max_examples=1_000,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("quick")
