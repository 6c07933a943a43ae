"""What each daemon works out anew when it starts, done once in the process that tests fork daemons off.

It is imported there last. Daemons that are forked off afterwards find it done, which halves the processor time of their start.
"""

import gc
from pathlib import Path

from memd.config.load import parse
from memd.runtime.process import learn_types
from memd.search.query import parse as parse_question
from memd.store.vector_table import find_extension

_CONFIGURATION = '[agents.main]\nworkspace = "/nowhere"\n'
_QUESTION = "Which database did we pick? 我们选了哪个数据库？"

learn_types()
parse(_CONFIGURATION, Path("/nowhere/config.toml"), Path("/nowhere"))
parse_question(_QUESTION)
find_extension()

# What is here is there in each of them: their collections need not look through it, and their memory pages stay shared.
gc.collect()
gc.freeze()
