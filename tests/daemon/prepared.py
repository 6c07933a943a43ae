"""What each daemon works out anew when it starts, done once in the process that tests fork daemons off.

It is imported there last. Daemons that are forked off afterwards find it done, which halves the processor time of their start.
A daemon that redacts imports the rules, which takes half a second of the processor, and one that shares imports psycopg: here both
are there before. What a daemon imports is tried on programs of their own (`test_imports.py`).
"""

import contextlib
import gc
from pathlib import Path

import memd.daemon
import memd.redact.redactor  # noqa: F401 - to be there
from memd.config.load import parse
from memd.runtime.process import learn_types
from memd.search.query import parse as parse_question
from memd.store.vector_table import find_extension

with contextlib.suppress(ImportError):  # an extra
    import psycopg  # noqa: F401

_CONFIGURATION = '[agents.main]\nworkspace = "/nowhere"\n'
_QUESTION = "Which database did we pick? 我们选了哪个数据库？"

learn_types()
parse(_CONFIGURATION, Path("/nowhere/config.toml"), Path("/nowhere"))
parse_question(_QUESTION)
find_extension()

# What is here is there in each of them: their collections need not look through it, and their memory pages stay shared.
gc.collect()
gc.freeze()
