"""The configuration in force, its file, and what a daemon applies of a changed one; the daemon around them is a list."""

import asyncio
import contextlib
import errno
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from memd.config.load import ConfigError, load, parse
from memd.config.reload import (
    CLASSES,
    Configuration,
    ReloadClass,
    changed_settings,
    class_of,
    digest,
    followed,
    stamp_of,
)
from memd.config.settings import AgentSettings, Config, DaemonSettings
from memd.config.toml_lines import Key
from memd.runtime.threads import NoThread
from tests.bounds import shipped
from tests.table import table
from tests.wait import until_async


class _World:
    """A file, and all that was brought into force."""

    def __init__(self, home: Path) -> None:
        self.file = home / "c.toml"
        self._home = home
        self.write("")
        self.applied: list[Config] = []
        self.failure: Exception | None = None  # of bringing a configuration into force
        self.configuration = Configuration(
            load(self.file, {}, home),
            lambda: load(self.file, {}, self._home),
            lambda: stamp_of(self.file),
            self.apply,
            look_s=0.01,
            unchanged_s=0.001,
        )

    async def apply(self, old: Config, new: Config) -> None:
        assert old == self.configuration.in_force
        if self.failure is not None:
            raise self.failure
        self.applied.append(new)

    def write(self, text: str) -> None:
        self.file.write_text(f'[agents.main]\nworkspace = "/w"\n{text}\n', encoding="utf-8")

    @property
    def waiting(self) -> list[str]:
        return list(self.configuration.waiting)

    @property
    def citations(self) -> str:
        return self.configuration.in_force.agents["main"].citations

    @property
    def default(self) -> str:
        return self.configuration.in_force.agents["main"].scope.default


async def test_a_change_that_is_harmless_is_followed_and_the_rest_waits_by_name(tmp_path: Path) -> None:
    """Until a person says so."""
    world = _World(tmp_path)
    await world.configuration.look()
    assert not world.applied
    assert not world.waiting
    world.write("citations = 'on'\nscope = { default = 'allow' }")
    await world.configuration.look()
    assert (world.citations, world.default) == ("on", "deny")
    assert world.waiting == ["agents.main.scope.default"]
    assert await world.configuration.reload() == ("agents.main.scope.default",)
    assert world.default == "allow"
    assert not world.waiting
    assert [one.agents["main"].scope.default for one in world.applied] == ["deny", "allow"]
    await world.configuration.look()
    assert len(world.applied) == 2


async def test_a_change_that_is_taken_back_waits_no_more(tmp_path: Path) -> None:
    """Nothing was brought into force by it."""
    world = _World(tmp_path)
    world.write("provider = 'openai'")
    await world.configuration.look()
    assert world.waiting == ["agents.main.provider"]
    world.write("")
    await world.configuration.look()
    assert not world.waiting
    assert not world.applied


async def test_what_waits_is_logged_when_it_changes(tmp_path: Path) -> None:
    """Not at each other change of the file, and not where nothing waits."""
    world = _World(tmp_path)
    written = (
        "provider = 'openai'",
        "provider = 'openai' # why",
        "provider = 'gemini'\ncache.enabled = false",
        "",
        "# end",
    )
    with capture_logs() as logs:
        for text in written:
            world.write(text)
            await world.configuration.look()
    told = [event["settings"] for event in logs if event["event"] == "config.waits"]
    assert [len(settings) for settings in told] == [1, 2]


@pytest.mark.parametrize("wrong", ["citations = 3", "= nothing", "gone"])
async def test_a_wrong_file_is_refused_and_told_until_it_is_right(tmp_path: Path, wrong: str) -> None:
    """What was in force stays so."""
    world = _World(tmp_path)
    world.write("citations = 'on'")
    await world.configuration.look()
    if wrong == "gone":
        world.file.rename(tmp_path / "elsewhere")
    else:
        world.write(wrong)
    for attempt in (world.configuration.look, world.configuration.reload):
        with pytest.raises(ConfigError):
            await attempt()
        assert world.configuration.error is not None
        assert world.citations == "on"
    world.write("citations = 'off'")
    await world.configuration.look()
    assert (world.citations, world.configuration.error) == ("off", None)


@pytest.mark.parametrize("asked", ["look", "reload"])
@pytest.mark.parametrize("refused", ["pathlib.Path.open", "pathlib.Path.stat", "thread"])
@pytest.mark.parametrize("is_changed", [True, False])
async def test_a_file_that_cannot_be_read_for_a_moment_is_read_at_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, refused: str, is_changed: bool
) -> None:
    """What it says is taken up though it does not change again, and no error stands for what is over."""
    world = _World(tmp_path)
    await world.configuration.look()
    if is_changed:
        world.write("citations = 'on'")

    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    def has_no_thread() -> Config:
        raise NoThread("no thread can be started")

    with monkeypatch.context() as moment:
        if refused == "thread":
            moment.setattr(world.configuration, "_load", has_no_thread)
        else:
            moment.setattr(refused, fails)
        is_looked_at = is_changed or asked == "reload" or refused == "pathlib.Path.stat"
        with pytest.raises((ConfigError, NoThread)) if is_looked_at else contextlib.nullcontext():
            await getattr(world.configuration, asked)()
    await world.configuration.look()
    assert (world.citations, world.configuration.error) == ("on" if is_changed else "auto", None)


async def test_what_could_not_be_brought_into_force_is_tried_at_the_next_look(tmp_path: Path) -> None:
    """Else it would be in force only once the file changes again."""
    world = _World(tmp_path)
    world.write("citations = 'on'")
    world.failure = NoThread("no thread can be started")
    with pytest.raises(NoThread):
        await world.configuration.look()
    world.failure = None
    await world.configuration.look()
    assert world.citations == "on"


async def test_the_usual_file_that_is_gone_drops_nothing(tmp_path: Path) -> None:
    """Without one a daemon begins with built-in defaults; one that runs does not go back to them."""
    usual = tmp_path / ".config" / "memd" / "config.toml"
    usual.parent.mkdir(parents=True)
    usual.write_text("[agents.work]\nworkspace = '/w'\n", encoding="utf-8")
    applied: list[Config] = []

    async def apply(old: Config, new: Config) -> None:
        applied.append(new)

    begun = load(None, {}, tmp_path)
    configuration = Configuration(begun, lambda: load(None, {}, tmp_path), lambda: stamp_of(usual), apply)
    usual.unlink()
    with pytest.raises(ConfigError, match="is gone; what it said stays in force until memd is started again"):
        await configuration.reload()
    assert applied == []
    assert list(configuration.in_force.agents) == ["work"]


async def test_a_file_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    """Half of a configuration is another configuration."""
    world = _World(tmp_path)
    looks = 0

    def stamp() -> tuple[int, ...]:
        nonlocal looks
        looks += 1
        return (looks,)  # at each look it is another file

    world.configuration = Configuration(
        world.configuration.in_force,
        lambda: load(world.file, {}, tmp_path),
        stamp,
        world.apply,
        unchanged_s=0.001,
    )
    world.write("citations = 'on'")
    await world.configuration.look()
    assert world.citations == "auto"


async def test_a_reload_waits_until_the_file_is_whole(tmp_path: Path) -> None:
    """Whoever tells of a change may do so at the first byte; what is cut off is the rules."""
    world = _World(tmp_path)
    world.write("citations = 'off'")
    whole = world.file.read_bytes() + b"[agents.main.scope]\ndefault = 'deny'\nrules = []\n"
    lengths = iter([0, 40, 80, 120, len(whole)])

    def write_on() -> tuple[int, ...]:
        if (length := next(lengths, None)) is not None:
            world.file.write_bytes(whole[:length])
        return stamp_of(world.file)

    world.configuration = Configuration(
        world.configuration.in_force,
        lambda: load(world.file, {}, tmp_path),
        write_on,  # between two looks at its stamp
        world.apply,
        unchanged_s=0.0,
    )
    await world.configuration.reload()
    assert [config.agents["main"].scope.rules for config in world.applied] == [()]


@pytest.mark.parametrize("half", [b"", b"[agents.main]\nworkspace = '/w'\n", b"[agents.main]\nworksp"])
@pytest.mark.parametrize("first", ["look", "reload"])
async def test_what_was_read_while_the_file_was_written_is_not_taken(
    tmp_path: Path, first: str, half: bytes
) -> None:
    """A file that had been quiet may be written at just that moment; what the half of it says is no error either."""
    world = _World(tmp_path)
    world.write("citations = 'off'")
    whole = world.file.read_bytes()
    reads = 0

    def read_while_it_is_written() -> Config:
        nonlocal reads
        reads += 1
        if reads > 1:
            return load(world.file, {}, tmp_path)
        world.file.write_bytes(half)
        try:
            return load(world.file, {}, tmp_path)
        finally:
            world.file.write_bytes(whole + b"# saved once more\n")

    world.configuration = Configuration(
        world.configuration.in_force,
        read_while_it_is_written,
        lambda: stamp_of(world.file),
        world.apply,
        unchanged_s=0.0,
    )
    await getattr(world.configuration, first)()
    assert world.configuration.error is None
    assert [config.agents["main"].citations for config in world.applied] == ["off"] * (first == "reload")
    await world.configuration.look()
    assert [config.agents["main"].citations for config in world.applied] == ["off"]


@pytest.mark.parametrize("is_read", [True, False])
async def test_a_file_that_is_written_without_end_is_not_read(tmp_path: Path, *, is_read: bool) -> None:
    """It is read at the last attempt; after that what is in force stays so, and the person is told."""
    world = _World(tmp_path)
    attempts = shipped("memd.config.reload.READ_ATTEMPTS")
    stamps = itertools.chain(range(2 * (attempts - is_read)), itertools.repeat(-1))  # two looks an attempt
    world.configuration = Configuration(
        world.configuration.in_force,
        lambda: load(world.file, {}, tmp_path),
        lambda: (next(stamps),),
        world.apply,
        unchanged_s=0.0,
    )
    world.write("citations = 'off'")
    with contextlib.nullcontext() if is_read else pytest.raises(ConfigError, match="being written"):
        await world.configuration.reload()
    assert len(world.applied) == is_read


async def test_a_file_that_was_emptied_drops_nothing(tmp_path: Path) -> None:
    """An editor on a full disk leaves no bytes; at a start that means built-in defaults, to a daemon it is a loss."""
    world = _World(tmp_path)
    world.file.write_bytes(b"")
    for change in (world.configuration.reload, world.configuration.look):
        with pytest.raises(ConfigError, match="is empty"):
            await change()
    assert not world.applied
    world.write("citations = 'on'")
    await world.configuration.reload()
    assert world.citations == "on"


async def test_it_looks_by_itself(tmp_path: Path) -> None:
    """And goes on looking after a file that was wrong."""
    world = _World(tmp_path)
    looking = asyncio.create_task(world.configuration.run())
    world.write("citations = 'on'")
    await until_async(lambda: world.citations == "on")
    world.write("= wrong")
    await until_async(lambda: world.configuration.error is not None)
    world.write("citations = 'off'")
    await until_async(lambda: world.citations == "off")
    assert world.configuration.error is None
    looking.cancel()


def test_a_stamp_is_another_one_after_any_change(tmp_path: Path) -> None:
    """Also of the file that a link leads to; one that is not there has one as well."""
    file, link = tmp_path / "a", tmp_path / "link"
    link.symlink_to(file)
    stamps = [stamp_of(link)]
    file.write_text("a")
    stamps.append(stamp_of(link))
    file.write_text("ab")
    stamps.append(stamp_of(link))
    other = tmp_path / "b"
    other.write_text("ab")
    other.rename(file)
    stamps.append(stamp_of(link))
    assert len(set(stamps)) == len(stamps)
    assert stamp_of(link) == stamps[-1]


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


@table("key", SETTINGS)
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
