"""Names that a provider gives to its files and jobs, fit to be a part of an address."""

import re

from memd.providers.remote.request import BadReply

# A name with a scheme, a query or a step upwards in it could send the key somewhere else.
_NAME = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][\w.-]*(?:/[\w.-]+)*", re.ASCII)
_LONGEST = 256


def checked(provider: str, name: str) -> str:
    """The name as it came.

    Raises:
        BadReply: it is none.
    """
    if not _is_one(name):
        raise BadReply(f"{provider}: a file or a job came back with a name that is none")
    return name


def usable(name: str | None) -> tuple[str, ...]:
    """The name, where there is one that can be used; else nothing."""
    return (name,) if name and _is_one(name) else ()


def _is_one(name: str) -> bool:
    return len(name) <= _LONGEST and _NAME.fullmatch(name) is not None
