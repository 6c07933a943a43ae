"""Keys that a service manager hands over as files."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def with_credentials(environ: Mapping[str, str], read: Callable[[Path], str]) -> Mapping[str, str]:
    """The environment, with systemd's credentials that are named like variables as variables.

    ``LoadCredential=OPENAI_API_KEY:FILE`` is then as good as ``OPENAI_API_KEY`` in the environment, which other
    programs of the user could read in /proc. A variable that is set goes before a credential of its name.

    Args:
        environ: Of the process; CREDENTIALS_DIRECTORY is where they are.
        read: Reads a small file.
    """
    directory = environ.get("CREDENTIALS_DIRECTORY", "")
    if not directory.startswith("/"):
        return environ
    found = {}
    with suppress(OSError):
        for file in Path(directory).iterdir():
            # One that cannot be read is as good as none: whoever needs it says that there is no key.
            with suppress(OSError, UnicodeError, ValueError):
                if _VARIABLE.fullmatch(file.name) and not environ.get(file.name, "").strip():
                    found[file.name] = read(file).strip()
    return {**environ, **found}
