"""Keys of providers: where they come from, and where they may go."""

import json
import os
from pathlib import Path

import msgspec
import pytest
from rich.pretty import pretty_repr

from memd.config.settings import Remote
from memd.providers.api_keys import (
    LONGEST_KEY_FILE,
    Account,
    ChoiceInputs,
    NoAccount,
    NoKey,
    ProviderAddress,
    account,
    mistaken,
    read_small,
    with_credentials,
)

HOME = ProviderAddress("https://api.example.com/v1", ("EXAMPLE_API_KEY", "OTHER_API_KEY"))
NO_KEY = ProviderAddress("http://127.0.0.1:11434", needs_key=False)
KEY = "sk-1234567890"


def nothing(path: Path) -> str:
    raise FileNotFoundError(2, "No such file or directory", str(path))


def test_the_usual_variable_holds_the_key_of_the_providers_own_host() -> None:
    """Without any setting, the key comes from the environment and goes home."""
    found = account("example", HOME, Remote(), {"EXAMPLE_API_KEY": f" {KEY}\n"}, nothing)
    assert (found.base_url, found.key) == ("https://api.example.com/v1", KEY)


def test_the_first_variable_that_is_set_counts() -> None:
    """An empty one is as good as none."""
    environ = {"EXAMPLE_API_KEY": " ", "OTHER_API_KEY": KEY}
    assert account("example", HOME, Remote(), environ, nothing).key == KEY


@pytest.mark.parametrize(
    "base_url",
    [
        "https://proxy.example.org/v1",
        "https://api.example.com.evil.org/v1",
        "https://api.example.com:8443/v1",
        "http://api.example.com/v1",
    ],
)
def test_the_usual_variable_is_never_sent_elsewhere(base_url: str) -> None:
    """Another host, port or scheme must be given a key of its own, and the message names the host."""
    with pytest.raises(NoAccount) as refused:
        account("example", HOME, Remote(base_url=base_url), {"EXAMPLE_API_KEY": KEY}, nothing)
    assert "EXAMPLE_API_KEY" in str(refused.value)
    assert KEY not in str(refused.value)


def test_a_longer_path_at_home_is_home() -> None:
    """The host decides, not the path."""
    remote = Remote(base_url="https://api.example.com/v2/")
    assert (
        account("example", HOME, remote, {"EXAMPLE_API_KEY": KEY}, nothing).base_url
        == "https://api.example.com/v2"
    )


@pytest.mark.parametrize(
    "remote",
    [
        Remote(api_key=KEY),
        Remote(api_key_env="MINE"),
        Remote(api_key_file="/keys/one"),
        Remote(api_key=KEY, api_key_env="MISSING"),
    ],
)
def test_a_key_of_the_settings_goes_wherever_they_say(remote: Remote) -> None:
    """Written out, by the name of a variable, or in a file; the first of them counts."""
    remote = msgspec.structs.replace(remote, base_url="https://gateway.example.org/v1")
    found = account("example", HOME, remote, {"MINE": KEY}, lambda _: f"{KEY}\n")
    assert found.key == KEY


@pytest.mark.parametrize(
    ("remote", "word"),
    [
        (Remote(), "EXAMPLE_API_KEY or OTHER_API_KEY"),
        (Remote(api_key_env="MISSING"), "MISSING"),
        (Remote(api_key_file="/keys/none"), "/keys/none"),
        (Remote(api_key="two words"), "remote.api_key"),
        (Remote(api_key="schlüssel"), "remote.api_key"),
        (Remote(api_key_env="hunter_hunter"), "remote.api_key_env"),
        (Remote(base_url="https://[::1"), "remote.base_url"),
        (Remote(base_url="https://example.com:99999"), "remote.base_url"),
        (Remote(base_url="ftp://x"), "http://"),
        (Remote(base_url="api.example.com/v1"), "http://"),
        (Remote(base_url="https://user:pw@example.com/v1"), "api_key"),
        (Remote(base_url="https://example.com/v1?key=1", api_key=KEY), "?"),
        (Remote(base_url="http://gateway.example.org/v1", api_key=KEY), "https://"),
        (Remote(base_url="http://8.8.8.8/v1", api_key=KEY), "https://"),
    ],
)
def test_what_is_missing_is_said(remote: Remote, word: str) -> None:
    """The message names the provider and the setting, and no key."""
    with pytest.raises(NoAccount) as refused:
        account("example", HOME, remote, {}, nothing)
    assert str(refused.value).startswith("example: ")
    assert word in str(refused.value)
    assert KEY not in str(refused.value)
    assert "pw" not in str(refused.value)
    assert "hunter" not in str(refused.value)


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:8000/v1",
        "http://localhost:8000",
        "http://192.168.1.7:1234/v1",
        "http://gpubox/v1",
        "http://[::1]:1/v1",
    ],
)
def test_a_key_may_travel_readably_where_nobody_else_is(base_url: str) -> None:
    """This machine and the local network."""
    assert account("example", HOME, Remote(base_url=base_url, api_key=KEY), {}, nothing).key == KEY


def test_a_server_may_need_no_key() -> None:
    """Then none is looked for."""
    found = account("ollama", NO_KEY, Remote(), {}, nothing)
    assert (found.base_url, found.key) == ("http://127.0.0.1:11434", None)


def test_what_prints_an_account_prints_no_key() -> None:
    """Neither key nor headers."""
    found = Account("https://api.example.com/v1", KEY, {"x-secret": "hush"})
    for shown in (repr(found), str([found]), pretty_repr(found)):
        assert KEY not in shown
        assert "hush" not in shown
        assert "api.example.com" in shown


@pytest.mark.parametrize("variable", ["EXAMPLE_API_KEY", "OTHER_API_KEY"])
def test_a_variable_that_holds_no_key_is_named(variable: str) -> None:
    """Rather than sent: a header with a line end in it would be two."""
    with pytest.raises(NoAccount) as refused:
        account("example", HOME, Remote(), {variable: "sk-one\nsk-two"}, nothing)
    assert variable in str(refused.value)
    assert "sk-" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "  \n", "sk-one\nsk-two\n", "sk one", "sk-\x00"])
def test_a_file_without_a_key_is_named(text: str) -> None:
    """And nothing of what is in it."""
    with pytest.raises(NoAccount) as refused:
        account("example", HOME, Remote(api_key_file="/keys/one"), {}, lambda _: text)
    assert "/keys/one" in str(refused.value)
    assert "sk" not in str(refused.value)


@pytest.mark.parametrize(
    "failure", [PermissionError(13, "Permission denied"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x")]
)
def test_a_file_that_cannot_be_read_is_named(failure: Exception) -> None:
    """With the reason."""

    def fails(_: Path) -> str:
        raise failure

    with pytest.raises(
        NoAccount, match=r"/keys/one \(remote.api_key_file\): (Permission denied|it is no text)\."
    ):
        account("example", HOME, Remote(api_key_file="/keys/one"), {}, fails)


def test_only_a_missing_key_of_its_own_service_is_no_key() -> None:
    """For that one a login of another program may be taken; for a gateway it is not."""
    with pytest.raises(NoKey):
        account("example", HOME, Remote(), {}, nothing)
    with pytest.raises(NoAccount) as refused:
        account("example", HOME, Remote(base_url="https://gateway.example.org"), {}, nothing)
    assert not isinstance(refused.value, NoKey)


@pytest.mark.parametrize("name", ["Authorization", "api-key", "X-API-Key", "x-goog-api-key"])
def test_a_header_may_be_the_key(name: str) -> None:
    """As gateways want it; the key from the environment stays at home."""
    remote = Remote(base_url="https://gateway.example.org/v1", headers={name: "hush"})
    found = account("example", HOME, remote, {"EXAMPLE_API_KEY": KEY}, nothing)
    assert (found.key, found.headers) == (None, {name: "hush"})


def test_a_header_that_is_no_key_is_none() -> None:
    """A server that is asked without a key would refuse each request."""
    remote = Remote(base_url="https://gateway.example.org/v1", headers={"X-Team": "a"})
    with pytest.raises(NoAccount):
        account("example", HOME, remote, {}, nothing)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("https://api.example.com", "https://api.example.com/v1"),
        ("https://api.example.com/", "https://api.example.com/v1"),
        ("https://api.example.com/v1/embeddings", "https://api.example.com/v1"),
        ("https://api.example.com/v1/embeddings/", "https://api.example.com/v1"),
        ("https://api.example.com/embeddings", "https://api.example.com/v1"),
        ("https://api.example.com/team/v2", "https://api.example.com/team/v2"),
    ],
)
def test_an_address_may_be_written_in_several_ways(written: str, meant: str) -> None:
    """With the path of an endpoint, which is cut off, or without any path, which is then the usual one."""
    home = ProviderAddress(
        "https://api.example.com/v1", ("EXAMPLE_API_KEY",), endings=("/embeddings",), path="/v1"
    )
    assert (
        account("example", home, Remote(base_url=written), {"EXAMPLE_API_KEY": KEY}, nothing).base_url
        == meant
    )


def test_the_host_is_told() -> None:
    """Whoever reads the status learns who gets the notes."""
    assert Account("http://gpubox:8080/v1", KEY).host == "gpubox:8080"


def test_a_path_that_no_file_can_have_is_told() -> None:
    """TOML can write a NUL."""
    with pytest.raises(NoAccount, match="it cannot be read"):
        account("example", HOME, Remote(api_key_file="/keys/a\0b"), {}, read_small)


def test_a_secret_header_is_a_key() -> None:
    """Where a provider needs none, it is not sent where others could read it either."""
    remote = Remote(base_url="http://8.8.8.8/v1", headers={"x-secret": KEY})
    with pytest.raises(NoAccount, match="https://") as refused:
        account("example", NO_KEY, remote, {}, nothing)
    assert KEY not in str(refused.value)


def test_a_file_is_read_whole(tmp_path: Path) -> None:
    """As it is, line end and all; through a link, too."""
    (tmp_path / "key").write_bytes("schlüssel\n".encode())
    (tmp_path / "link").symlink_to("key")
    assert read_small(tmp_path / "link") == "schlüssel\n"


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Nobody may ever write to it."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_small(tmp_path / "pipe")


def test_a_directory_is_no_file(tmp_path: Path) -> None:
    """It is said so."""
    with pytest.raises(OSError, match=r"directory|not a regular file"):
        read_small(tmp_path)


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    """A disk image that was named by mistake does not fill the memory."""
    (tmp_path / "large").write_bytes(b"x" * (LONGEST_KEY_FILE + 1))
    with pytest.raises(OSError, match="too large"):
        read_small(tmp_path / "large")
    (tmp_path / "large").write_bytes(b"x" * LONGEST_KEY_FILE)
    assert len(read_small(tmp_path / "large")) == LONGEST_KEY_FILE


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    """By the error of the system."""
    with pytest.raises(FileNotFoundError):
        read_small(tmp_path / "none")


def test_what_is_no_text_is_told(tmp_path: Path) -> None:
    """By an error that the one who reads keys knows."""
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        read_small(tmp_path / "binary")


def _credentials(directory: Path) -> dict[str, str]:
    for name, text in {
        "OPENAI_API_KEY": "sk-1\n",
        "GEMINI_API_KEY": "g-1",
        "vault.key": "v",
        "_X": "x",
    }.items():
        (directory / name).write_text(text, encoding="utf-8")
    (directory / "BROKEN").write_bytes(b"\xff")
    (directory / "FOLDER").mkdir()
    return {"CREDENTIALS_DIRECTORY": str(directory), "HOME": "/home/ann"}


def test_credentials_that_are_named_like_variables_are_variables(tmp_path: Path) -> None:
    """Without the end of their line; other files, and what cannot be read, are none."""
    environ = _credentials(tmp_path)
    assert with_credentials(environ, read_small) == {
        **environ,
        "OPENAI_API_KEY": "sk-1",
        "GEMINI_API_KEY": "g-1",
    }


def test_a_variable_that_is_set_goes_before(tmp_path: Path) -> None:
    """One that is empty is not set."""
    environ = _credentials(tmp_path) | {"OPENAI_API_KEY": "sk-2", "GEMINI_API_KEY": " "}
    found = with_credentials(environ, read_small)
    assert (found["OPENAI_API_KEY"], found["GEMINI_API_KEY"]) == ("sk-2", "g-1")


@pytest.mark.parametrize("directory", [None, "", "relative", "/none/there"])
def test_without_credentials_the_environment_is_as_it_was(directory: str | None) -> None:
    """As with every other way to start it."""
    environ = {"A": "b"} if directory is None else {"CREDENTIALS_DIRECTORY": directory}
    assert with_credentials(environ, read_small) == environ


USER_HOME = Path("/home/ada")
TOKENS = json.dumps({"OPENAI_API_KEY": None, "tokens": {"access_token": "eyJ-mellon"}})


def inputs(files: dict[str, str] | None = None, **environ: str) -> ChoiceInputs:
    """A home directory with these files in it."""

    def read(path: Path) -> str:
        try:
            return (files or {})[str(path)]
        except KeyError:
            raise FileNotFoundError(2, "No such file or directory", str(path)) from None

    return ChoiceInputs(environ, USER_HOME, read)


@pytest.mark.parametrize(
    ("provider", "scene", "words"),
    [
        ("openai", inputs({"/home/ada/.codex/auth.json": TOKENS}), "login of Codex in ~/.codex/auth.json is for chat"),
        ("openai", inputs({"/opt/c/auth.json": TOKENS}, CODEX_HOME="/opt/c"), "$CODEX_HOME/auth.json is for chat"),
        ("openai", inputs({"/home/ada/.codex/auth.json": '{"OPENAI_API_KEY": "sk-mellon"}'}), "key in ~/.codex/auth.json is for Codex"),
        ("gemini", inputs({"/home/ada/.gemini/oauth_creds.json": '{"access_token": "mellon"}'}), "Gemini CLI"),
        ("anthropic", inputs(ANTHROPIC_API_KEY="sk-ant-mellon"), "ANTHROPIC_API_KEY is set, but Anthropic offers no embeddings"),
        ("anthropic", inputs(CLAUDE_CODE_OAUTH_TOKEN="mellon"), "CLAUDE_CODE_OAUTH_TOKEN is set"),
        ("anthropic", inputs({"/home/ada/.claude/.credentials.json": '{"claudeAiOauth": "mellon"}'}), "login of Claude in ~/.claude"),
        ("anthropic", inputs({"/c/.credentials.json": "{}"}, CLAUDE_CONFIG_DIR="/c"), "$CLAUDE_CONFIG_DIR"),
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
    assert mistaken(provider, inputs(files, ANTHROPIC_API_KEY=" ")) is None


def test_surroundings_print_no_environment() -> None:
    """It holds keys."""
    assert "mellon" not in repr(inputs(OPENAI_API_KEY="sk-mellon"))
