"""What a daemon takes over of a changed file by itself."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.config.load import parse
from memd.config.reload_policy import CLASSES, ReloadClass, changed_settings, class_of, digest, followed
from memd.config.settings import AgentSettings, Config, DaemonSettings
from memd.config.toml_lines import Key

_HOME = Path("/home/ada")


def _config(text: str) -> Config:
    return parse(f'[agents.main]\nworkspace = "~/w"\n{text}', _HOME / "c.toml", _HOME)


def _leaves(struct: type[msgspec.Struct], at: Key) -> list[Key]:
    found: list[Key] = []
    for field in msgspec.structs.fields(struct):
        kind: Any = field.type
        is_table = isinstance(kind, type) and issubclass(kind, msgspec.Struct)
        found += _leaves(kind, (*at, field.name)) if is_table else [(*at, field.name)]
    return found


SETTINGS = [*_leaves(DaemonSettings, ("daemon",)), *_leaves(AgentSettings, ("agents", "*"))]


@pytest.mark.parametrize("key", SETTINGS, ids=lambda key: ".".join(map(str, key)))
def test_every_setting_is_classed(key: Key) -> None:
    """Whoever adds one says how it comes into force; what nobody has thought of waits."""
    above = [".".join(map(str, key[:length])) for length in range(1, len(key) + 1)]
    assert len([name for name in above if name in CLASSES]) == 1, (
        f"say in CLASSES how {above[-1]} comes into force"
    )


def test_every_class_is_that_of_a_setting() -> None:
    """A name that was misspelt would leave its setting to the default."""
    known = {".".join(map(str, key[:length])) for key in SETTINGS for length in range(1, len(key) + 1)}
    assert CLASSES.keys() <= known


@pytest.mark.parametrize(
    "key",
    [
        ("agents", "main", "publish", "to"),
        ("agents", "main", "rerank"),
        ("daemon", "page"),
        ("agents", "new"),
        ("later",),
    ],
)
def test_what_is_not_classed_waits(key: Key) -> None:
    """Until somebody has thought of it."""
    assert class_of(key) is ReloadClass.WAITS


@pytest.mark.parametrize(
    ("text", "changed", "waits"),
    [
        ("citations = 'on'", "citations", False),
        ("query = { max_results = 3 }", "query.max_results", False),
        ("limits = { max_injected_chars = 900 }", "limits.max_injected_chars", False),
        ("max_file_mb = 2", "max_file_mb", False),
        ("exclude = ['private/', 'more/']", "exclude", False),
        ("exclude = []", "exclude", True),
        ("exclude = ['more/']", "exclude", True),
        ("sync = { wait_ms = 5 }", "sync.wait_ms", False),
        ("sessions = { idle_seconds = 5 }", "sessions.idle_seconds", False),
        ("sessions = { presets = ['codex'] }", "sessions.presets", True),
        ("scope = { default = 'allow' }", "scope.default", True),
        ("scope = { rules = [] }", "scope.rules", True),
        ("provider = 'openai'", "provider", True),
        ("remote = { base_url = 'https://x.example' }", "remote.base_url", True),
        ("backend = 'qmd'", "backend", True),
        ("qmd = { command = '/tmp/x' }", "qmd.command", True),
        ("redact = { mode = 'off' }", "redact.mode", True),
        ("extra_paths = ['/etc']", "extra_paths", True),
        ("sources = ['memory', 'sessions']", "sources", True),
    ],
)
def test_what_is_harmless_is_followed_and_the_rest_waits(text: str, changed: str, waits: bool) -> None:
    """What starts a program, sends text away or lets more be seen waits for a person."""
    before = "" if text.startswith("exclude") else "exclude = ['private/']\n"
    old, new = _config("exclude = ['private/']"), _config(f"{before}{text}")
    assert changed_settings(old, new) == (f"agents.main.{changed}",)
    assert followed(old, new) == (old if waits else new)
    assert digest(old) != digest(new)


def test_of_a_mixed_change_each_part_goes_its_way() -> None:
    """And what waits is what still differs."""
    old = _config("")
    new = _config(
        "citations = 'off'\nscope = { default = 'allow' }\n[agents.work]\nworkspace = '/w'\n[daemon]\nlog_level = 'debug'"
    )
    now = followed(old, new)
    assert (now.daemon.log_level, now.agents["main"].citations) == ("debug", "off")
    assert now.agents["main"].scope == old.agents["main"].scope
    assert changed_settings(now, new) == ("agents.main.scope.default", "agents.work")
    assert changed_settings(new, old)[-1] == "agents.work"
    assert followed(new, old).agents.keys() == {"main", "work"}


def test_a_digest_is_of_what_is_meant() -> None:
    """However it is written."""
    assert digest(_config("citations = 'auto'")) == digest(_config("")) == digest(_config("# a remark"))
