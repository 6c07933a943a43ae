"""Keys in files: one that the settings name, and those that a service manager hands over."""

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

LONGEST = 65_536  # bytes; a key has less than a thousandth
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


def read_small(file: Path) -> str:
    """The text of a regular file; one that would have to be waited for is refused.

    Raises:
        OSError: it cannot be read, is something else than a file, or is too large for a key.
        UnicodeDecodeError: it is no text.
        ValueError: there is a NUL in its path.
    """
    # A pipe would be waited for.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        data = stream.read(LONGEST + 1)
    if len(data) > LONGEST:
        raise OSError(errno.EFBIG, "it is too large for a key", str(file))
    return data.decode()


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
