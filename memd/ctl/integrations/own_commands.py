"""The commands of this installation, as another program can start them: by absolute paths.

A program that is started from a desktop has no shell's PATH, and few of its variables: the socket is named, too.
"""

import os
import sys

from memd.ctl.call import Call


def program(script: str, module: str) -> list[str]:
    """A console script of this installation; the module that it runs, where the script is not there."""
    # Beside the interpreter, whose own link is not followed: it would lead out of the virtual environment.
    path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), script)  # noqa: PTH100, PTH118, PTH120  as said
    return [path] if os.access(path, os.X_OK) else [os.path.abspath(sys.executable), "-m", module]  # noqa: PTH100  likewise


def flags(call: Call) -> list[str]:
    """What leads a command to this daemon, and to the conversation it is bound to."""
    options = call.options
    named = (
        ("--socket", str(call.places.socket)),
        ("--agent", options.agent),
        ("--session-key", options.session_key),
    )
    return [word for flag, value in named if value is not None for word in (flag, value)]
