"""Tests of memd, and the daemons that they start, which load what `memd run` loads."""

from memd.runtime.startup import import_msgspec, import_structlog

import_structlog()
import_msgspec()
