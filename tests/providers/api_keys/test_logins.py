"""Logins that are no keys."""

import json
from pathlib import Path

import pytest

from memd.providers.api_keys.logins import ChoiceInputs, mistaken

HOME = Path("/home/ada")
TOKENS = json.dumps({"OPENAI_API_KEY": None, "tokens": {"access_token": "eyJ-mellon"}})


def around(files: dict[str, str] | None = None, **environ: str) -> ChoiceInputs:
    """A home directory with these files in it."""

    def read(path: Path) -> str:
        try:
            return (files or {})[str(path)]
        except KeyError:
            raise FileNotFoundError(2, "No such file or directory", str(path)) from None

    return ChoiceInputs(environ, HOME, read)


@pytest.mark.parametrize(
    ("provider", "scene", "words"),
    [
        ("openai", around({"/home/ada/.codex/auth.json": TOKENS}), "login of Codex in ~/.codex/auth.json is for chat"),
        ("openai", around({"/opt/c/auth.json": TOKENS}, CODEX_HOME="/opt/c"), "$CODEX_HOME/auth.json is for chat"),
        ("openai", around({"/home/ada/.codex/auth.json": '{"OPENAI_API_KEY": "sk-mellon"}'}), "key in ~/.codex/auth.json is for Codex"),
        ("gemini", around({"/home/ada/.gemini/oauth_creds.json": '{"access_token": "mellon"}'}), "Gemini CLI"),
        ("anthropic", around(ANTHROPIC_API_KEY="sk-ant-mellon"), "ANTHROPIC_API_KEY is set, but Anthropic offers no embeddings"),
        ("anthropic", around(CLAUDE_CODE_OAUTH_TOKEN="mellon"), "CLAUDE_CODE_OAUTH_TOKEN is set"),
        ("anthropic", around({"/home/ada/.claude/.credentials.json": '{"claudeAiOauth": "mellon"}'}), "login of Claude in ~/.claude"),
        ("anthropic", around({"/c/.credentials.json": "{}"}, CLAUDE_CONFIG_DIR="/c"), "$CLAUDE_CONFIG_DIR"),
    ],
)  # fmt: skip
def test_a_login_is_told_to_be_no_key(provider: str, scene: ChoiceInputs, words: str) -> None:
    """With where it is, and nothing of what is in it."""
    told = mistaken(provider, scene)
    assert told is not None
    assert words in told
    assert "mellon" not in told


@pytest.mark.parametrize("provider", ["openai", "gemini", "anthropic", "voyage", "ollama"])
@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"tokens": {}}', '{"OPENAI_API_KEY": null}', "[" * 100_000]
)
def test_what_is_no_login_is_not_told(provider: str, text: str) -> None:
    """A file that is empty, broken or of another form is no reason to speak of it."""
    files = {"/home/ada/.codex/auth.json": text}
    assert mistaken(provider, around(files, ANTHROPIC_API_KEY=" ")) is None


def test_surroundings_print_no_environment() -> None:
    """It holds keys."""
    assert "mellon" not in repr(around(OPENAI_API_KEY="sk-mellon"))
