"""Logins that a person may take for a key to embeddings, and that are none.

Of what stands in their files nothing is kept or told: only whether a login is there.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from memd.providers.api_keys.account import Read

_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")


class ChoiceInputs(msgspec.Struct, frozen=True):
    """What a choice of provider looks at beside the settings."""

    environ: Mapping[str, str]
    home: Path
    read: Read

    def __repr__(self) -> str:
        """Without the environment, which holds keys."""
        return f"Surroundings({self.home})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Likewise."""
        return [("home", self.home)]


def mistaken(provider: str, around: ChoiceInputs) -> str | None:
    """What there is for a provider that is no key to its embeddings, as a sentence; None: nothing."""
    look = _LOOKS.get(provider)
    return None if look is None else look(around)


def _codex(around: ChoiceInputs) -> str | None:
    folder, shown = _folder(around, "CODEX_HOME", ".codex")
    login = _document(around.read, folder / "auth.json")
    if login is None:
        return None
    if login.get("OPENAI_API_KEY"):
        return f"The key in {shown}/auth.json is for Codex, and memd leaves it there: give it one of its own."
    if login.get("tokens"):
        return f"The login of Codex in {shown}/auth.json is for chat; it is no key for embeddings."
    return None


def _gemini_cli(around: ChoiceInputs) -> str | None:
    if _document(around.read, around.home / ".gemini" / "oauth_creds.json") is None:
        return None
    return "The login of the Gemini CLI in ~/.gemini is for chat; it is no key for embeddings."


def _claude(around: ChoiceInputs) -> str | None:
    name = next((name for name in _ANTHROPIC if around.environ.get(name, "").strip()), None)
    if name is not None:
        return f"{name} is set, but Anthropic offers no embeddings."
    folder, shown = _folder(around, "CLAUDE_CONFIG_DIR", ".claude")
    if _document(around.read, folder / ".credentials.json") is None:
        return None
    return f"There is a login of Claude in {shown}, but Anthropic offers no embeddings."


_LOOKS: Mapping[str, Callable[[ChoiceInputs], str | None]] = {
    "openai": _codex,
    "gemini": _gemini_cli,
    "anthropic": _claude,
}


def _folder(around: ChoiceInputs, variable: str, usual: str) -> tuple[Path, str]:
    """A program's directory, and how to name it."""
    named = around.environ.get(variable, "")
    return (Path(named), f"${variable}") if named else (around.home / usual, f"~/{usual}")


def _document(read: Read, file: Path) -> dict[str, Any] | None:
    """What a file of JSON says; None where there is none, or something else in it."""
    try:
        document = msgspec.json.decode(read(file))
    except (OSError, UnicodeError, msgspec.DecodeError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
