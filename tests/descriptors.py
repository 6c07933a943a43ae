"""Tells what the process of the tests has open."""

import gc
import os
from pathlib import Path


def open_descriptors() -> dict[int, str]:
    """Return the open descriptors of this process, each with what it leads to, on a system that tells.

    Garbage of earlier tests is collected first: else it might be closed between two looks.
    """
    gc.collect()
    found = dict[int, str]()
    for entry in Path("/dev/fd").iterdir():
        try:
            found[int(entry.name)] = os.readlink(entry)  # noqa: PTH115 - what it leads to may be no path
        except FileNotFoundError:  # the one that lists them
            continue
        except OSError:  # on macOS they are no links
            found[int(entry.name)] = ""
    return found
