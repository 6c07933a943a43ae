import subprocess
import sys
from pathlib import Path

import memd_client.context

PROGRAM = """
import importlib, sys
before = set(sys.modules)
for name in sys.argv[1:]:
    importlib.import_module(f"memd_client.context.{name}")
print(*{module.partition(".")[0] for module in set(sys.modules) - before} - set(sys.stdlib_module_names))
print("asyncio" in sys.modules)
"""


def test_the_context_functions_need_msgspec_alone() -> None:
    """An agent's process loads nothing else of others, and no event loop, to look after its window."""
    names = [file.stem for file in Path(memd_client.context.__file__).parent.glob("[a-z]*.py")]
    assert {"bootstrap", "daily_note", "workspace"} <= set(names)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, check=True, timeout=60
    )
    loaded, has_asyncio = done.stdout.splitlines()
    assert set(loaded.split()) <= {
        "memd_client",
        "msgspec",
        "typing_extensions",
    }  # which msgspec takes if it is there
    assert has_asyncio == "False"
