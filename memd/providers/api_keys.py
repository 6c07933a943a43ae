"""Finds the address and API key of a provider. A key is never sent to a host that it does not belong to."""

import errno
import os
import re
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from memd.config import check_embedding
from memd.config.settings import Remote
from memd.providers.provider import EmbedTerminal

Read = Callable[[Path], str]
"""Gives the text of a small file; raises OSError or ValueError."""

# Headers in which servers expect a key: one of these with a value counts as a key.
_KEY_HEADERS = frozenset({"authorization", "api-key", "x-api-key", "x-goog-api-key"})
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


class ProviderAddress(msgspec.Struct, frozen=True):
    """A provider's own address, and where its key usually is."""

    base_url: str  # "": the provider has no own address
    variables: tuple[str, ...] = ()  # environment variables with a key; the first that is set is used
    needs_key: bool = True
    endings: tuple[str, ...] = ()  # paths that people append to the base URL by mistake
    path: str = ""  # appended if the base URL has no path


class NoAccount(EmbedTerminal):
    """There is no key or address for this provider."""


class NoKey(NoAccount):
    """The provider's own service would be used, and there is no key for it."""


class Account(msgspec.Struct, frozen=True):
    """An address, with the key and headers that may be sent to it."""

    base_url: str  # without a final slash
    key: str | None
    headers: Mapping[str, str] = {}  # configured headers; they may be secret, too

    @property
    def host(self) -> str:
        """The host that receives what is sent."""
        return urlsplit(self.base_url).netloc

    @property
    def origin(self) -> str:
        """The address without its path."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc}"

    def __repr__(self) -> str:
        """Return the address only, so that printing an account never prints its key."""
        return f"Account({self.base_url})"

    def __rich_repr__(self) -> list[tuple[str, object]]:
        """Return the fields that rich shows, also in tracebacks."""
        return [("base_url", self.base_url)]


def account(
    provider: str, home: ProviderAddress, remote: Remote, environ: Mapping[str, str], read: Read
) -> Account:
    """Return the address and the key that the settings give.

    The usual environment variable contains a key for the provider's own service, and is used for that only:
    any other base_url must be given a key of its own.

    Args:
        provider: The provider's name, for messages.
        home: The provider's own address.
        remote: The settings.
        environ: The process's environment.
        read: Reads a text file.

    Raises:
        NoAccount: the message says what is missing, and how to provide it.
    """
    base_url = _base_url(provider, home, remote)
    is_home = bool(home.base_url) and _origin(base_url) == _origin(home.base_url)
    key = _own_key(provider, remote, environ, read)
    if key is None and is_home:
        key = _usual_key(provider, home, environ)
    if key is None and home.needs_key and not _KEY_HEADERS.intersection(map(str.lower, remote.headers)):
        if is_home:
            raise NoKey(
                f"{provider}: {' or '.join(home.variables)} is not set where memd runs, nor is a key in [remote]."
            )
        raise NoAccount(
            f"{provider}: {urlsplit(base_url).hostname} is not the provider's own host, so {home.variables[0]} is not"
            " sent there. Set remote.api_key, api_key_env or api_key_file for it, or take openai-compatible if it needs none."
        )
    if (key is not None or remote.headers) and check_embedding.is_readable(base_url):
        raise NoAccount(
            f"{provider}: a key could be read on its way to {urlsplit(base_url).hostname}. Use https://."
        )
    return Account(base_url, key, dict(remote.headers))


def origin_of(home: ProviderAddress) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of a provider's own service."""
    return _origin(home.base_url)


def _base_url(provider: str, home: ProviderAddress, remote: Remote) -> str:
    """Return the base URL of requests."""
    given = remote.base_url or home.base_url
    if not given:
        raise NoAccount(f"{provider}: set remote.base_url to the address of the server.")
    fault = check_embedding.url_fault(given)
    if fault is not None:
        raise NoAccount(f"{provider}: remote.base_url {fault}.")
    parts = urlsplit(given)
    path = parts.path.rstrip("/")
    for ending in home.endings:
        path = path.removesuffix(ending).rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path or home.path, "", ""))


def _own_key(provider: str, remote: Remote, environ: Mapping[str, str], read: Read) -> str | None:
    """Return the key that the settings give; None if they give none."""
    if remote.api_key:
        return _checked(provider, "remote.api_key", remote.api_key)
    if remote.api_key_env:
        # The value may be a key, entered by mistake, so it is not repeated.
        name = remote.api_key_env if _VARIABLE.fullmatch(remote.api_key_env) else "variable of that name"
        if not environ.get(remote.api_key_env, "").strip():
            raise NoAccount(f"{provider}: the environment has no {name} (remote.api_key_env).")
        return _checked(provider, name, environ[remote.api_key_env])
    if remote.api_key_file:
        try:
            text = read(Path(remote.api_key_file))
        except (OSError, ValueError) as failure:  # ValueError: the path contains a NUL
            raise NoAccount(
                f"{provider}: cannot read {remote.api_key_file} (remote.api_key_file): {_why(failure)}."
            ) from failure
        return _checked(provider, remote.api_key_file, text)
    return None


def _usual_key(provider: str, home: ProviderAddress, environ: Mapping[str, str]) -> str | None:
    found = next((name for name in home.variables if environ.get(name, "").strip()), None)
    return None if found is None else _checked(provider, found, environ[found])


def _checked(provider: str, where: str, text: str) -> str:
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise NoAccount(
            f"{provider}: what {where} holds is no key: it is empty, or has spaces or other signs in it."
        )
    return key


def _why(failure: OSError | ValueError) -> str:
    if isinstance(failure, UnicodeError):
        return "it is no text"
    return (failure.strerror if isinstance(failure, OSError) else None) or "it cannot be read"


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").rstrip("."), port


LONGEST_KEY_FILE = 65_536  # bytes; keys are shorter than a thousandth of that


def read_small(file: Path) -> str:
    """Read a small regular text file, without ever blocking on a pipe.

    Raises:
        OSError: it cannot be read, is not a regular file, or is too large for a key.
        UnicodeDecodeError: it is not text.
        ValueError: its path contains a NUL.
    """
    # Opening a pipe would wait for a writer.
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(file))
        data = stream.read(LONGEST_KEY_FILE + 1)
    if len(data) > LONGEST_KEY_FILE:
        raise OSError(errno.EFBIG, "it is too large for a key", str(file))
    return data.decode()


def with_credentials(environ: Mapping[str, str], read: Callable[[Path], str]) -> Mapping[str, str]:
    """Return the environment with systemd's credentials added as variables, if their names are valid for variables.

    ``LoadCredential=OPENAI_API_KEY:FILE`` then works like ``OPENAI_API_KEY`` in the environment, which other
    programs of the user could read in /proc. A variable that is set takes precedence over a credential.

    Args:
        environ: The process's environment; CREDENTIALS_DIRECTORY is the directory of the credentials.
        read: Reads a small file.
    """
    directory = environ.get("CREDENTIALS_DIRECTORY", "")
    if not directory.startswith("/"):
        return environ
    found = {}
    with suppress(OSError):
        for file in Path(directory).iterdir():
            # An unreadable credential counts as missing: the provider that needs it reports that there is no
            # key.
            with suppress(OSError, UnicodeError, ValueError):
                if _VARIABLE.fullmatch(file.name) and not environ.get(file.name, "").strip():
                    found[file.name] = read(file).strip()
    return {**environ, **found}


_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")


class ChoiceInputs(msgspec.Struct, frozen=True):
    """Where the choice of a provider looks for keys and logins, apart from the settings."""

    environ: Mapping[str, str]
    home: Path
    read: Read
    state: Path | None = None  # the state directory; None: nothing is written

    def __repr__(self) -> str:
        """Return a text without the environment, which contains keys."""
        return f"ChoiceInputs({self.home})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the fields that rich shows."""
        return [("home", self.home)]


def mistaken(provider: str, inputs: ChoiceInputs) -> str | None:
    """Return a sentence about a login or key that cannot be used for a provider's embeddings; None if there is none."""
    look = _LOOKS.get(provider)
    return None if look is None else look(inputs)


def _codex(inputs: ChoiceInputs) -> str | None:
    folder, shown = _folder(inputs, "CODEX_HOME", ".codex")
    login = _document(inputs.read, folder / "auth.json")
    if login is None:
        return None
    if login.get("OPENAI_API_KEY"):
        return f"The key in {shown}/auth.json is for Codex, and memd leaves it there: give it one of its own."
    if login.get("tokens"):
        return f"The login of Codex in {shown}/auth.json is for chat; it is no key for embeddings."
    return None


def _gemini_cli(inputs: ChoiceInputs) -> str | None:
    if _document(inputs.read, inputs.home / ".gemini" / "oauth_creds.json") is None:
        return None
    return "The login of the Gemini CLI in ~/.gemini is for chat; it is no key for embeddings."


def _claude(inputs: ChoiceInputs) -> str | None:
    name = next((name for name in _ANTHROPIC if inputs.environ.get(name, "").strip()), None)
    if name is not None:
        return f"{name} is set, but Anthropic offers no embeddings."
    folder, shown = _folder(inputs, "CLAUDE_CONFIG_DIR", ".claude")
    if _document(inputs.read, folder / ".credentials.json") is None:
        return None
    return f"There is a login of Claude in {shown}, but Anthropic offers no embeddings."


_LOOKS: Mapping[str, Callable[[ChoiceInputs], str | None]] = {
    "openai": _codex,
    "gemini": _gemini_cli,
    "anthropic": _claude,
}


def _folder(inputs: ChoiceInputs, variable: str, usual: str) -> tuple[Path, str]:
    """Return a program's directory, and its name for messages."""
    named = inputs.environ.get(variable, "")
    return (Path(named), f"${variable}") if named else (inputs.home / usual, f"~/{usual}")


def _document(read: Read, file: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file; None if there is no file, or it contains something else."""
    try:
        document = msgspec.json.decode(read(file))
    except (OSError, UnicodeError, msgspec.DecodeError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
