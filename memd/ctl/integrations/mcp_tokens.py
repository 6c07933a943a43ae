"""The tokens of `memd-ctl mcp serve`: one file per agent and session key, readable only by its owner."""

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.ctl.atomic_write import write_text

_RANDOM = 32  # bytes
_MAX_BYTES = 16_384  # of a file
_OPEN_TO_OTHERS = 0o077


class McpToken(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token that grants access to an agent's memory, as one conversation sees it."""

    token: str
    agent: str | None = None  # None: that of the session key, else the only one, else main
    session_key: str | None = None  # None: the owner

    def __repr__(self) -> str:
        """Return a text without the token, so that no log contains it."""
        return f"McpToken(agent={self.agent!r}, session_key={self.session_key!r})"


class McpTokens:
    """The tokens in a directory.

    Args:
        directory: The directory, which is created with the first token.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def file(self, agent: str | None, session_key: str | None) -> Path:
        """Return the path of the token of an agent and session key, which may not exist."""
        name = msgspec.json.encode([agent, session_key])
        return self.directory / f"{hashlib.sha256(name).hexdigest()[:16]}.json"

    def find(self, agent: str | None, session_key: str | None) -> McpToken | None:
        """Return the token of an agent and a session key; None: there is no valid one."""
        return _read(self.file(agent, session_key))

    def make(self, agent: str | None, session_key: str | None) -> McpToken:
        """Create a token that replaces the existing one and is valid at once.

        Raises:
            NotWritten: it cannot be stored.
        """
        made = McpToken(secrets.token_urlsafe(_RANDOM), agent, session_key)
        file = self.file(agent, session_key)
        # A replaced file would keep its mode, which may let others read the new token.
        file.unlink(missing_ok=True)
        write_text(file, msgspec.json.encode(made).decode())
        return made

    def revoke(self, agent: str | None, session_key: str | None) -> bool:
        """Delete a token; return whether there was one."""
        try:
            self.file(agent, session_key).unlink()
        except FileNotFoundError:
            return False
        return True

    def all(self) -> list[McpToken]:
        """Return all valid tokens."""
        return [found for file in self._files() if (found := _read(file)) is not None]

    def presented(self, token: str) -> McpToken | None:
        """Return the stored token that equals a presented one; None: none does. The comparison takes constant time per token."""
        given = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        whose: McpToken | None = None
        for one in self.all():
            if hmac.compare_digest(hashlib.sha256(one.token.encode()).digest(), given):
                whose = one
        return whose

    def _files(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            yield from sorted(self.directory.glob("*.json"))


def _read(file: Path) -> McpToken | None:
    """Read the token in a file; None if there is none, or if group or others have any permission on the file."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if (
            not stat.S_ISREG(status.st_mode)
            or status.st_uid != os.geteuid()
            or status.st_mode & _OPEN_TO_OTHERS
        ):
            return None
        found = msgspec.json.decode(os.read(descriptor, _MAX_BYTES), type=McpToken)
    except (OSError, msgspec.MsgspecError):
        return None
    finally:
        os.close(descriptor)
    return found if found.token else None
