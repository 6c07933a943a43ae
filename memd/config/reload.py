"""Reloads the configuration, and decides which changes of its file are applied without confirmation.

An agent may be able to write the configuration file. Therefore only settings that affect how memory is read
and ranked are applied automatically; those that start a program, send text elsewhere or make more visible
wait for `memd-ctl reload`.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog

from memd.config.check import dotted
from memd.config.load import ConfigError, ConfigUnreadable
from memd.config.settings import Config
from memd.config.toml_lines import Key
from memd.runtime.threads import ResourceShortage, Threads
from memd.runtime.timers import until_next_tick_s
from memd.text.memory_paths import as_text

log = structlog.get_logger()

S = TypeVar("S", bound=msgspec.Struct)


class ReloadClass(Enum):
    """When a changed setting is applied."""

    FOLLOWS = "at once"
    GROWS = "at once, where a list only got longer; else it waits"
    WAITS = "when a person says so"


CLASSES: Mapping[str, ReloadClass] = {
    "daemon.log_level": ReloadClass.FOLLOWS,
    "daemon.memory_limit_mb": ReloadClass.FOLLOWS,
    "agents.*.workspace": ReloadClass.WAITS,
    "agents.*.extra_paths": ReloadClass.WAITS,
    "agents.*.exclude": ReloadClass.GROWS,  # removing a pattern makes more visible
    "agents.*.max_file_mb": ReloadClass.FOLLOWS,
    "agents.*.sources": ReloadClass.WAITS,
    "agents.*.memory_presets": ReloadClass.WAITS,
    "agents.*.backend": ReloadClass.WAITS,
    "agents.*.citations": ReloadClass.FOLLOWS,
    "agents.*.timezone": ReloadClass.WAITS,  # turns are cut and embedded again, with new times
    "agents.*.provider": ReloadClass.WAITS,
    "agents.*.model": ReloadClass.WAITS,
    "agents.*.fallback": ReloadClass.WAITS,
    "agents.*.chunking": ReloadClass.WAITS,  # texts are cut and embedded again, which may cost money
    "agents.*.query": ReloadClass.FOLLOWS,
    "agents.*.limits": ReloadClass.FOLLOWS,
    "agents.*.sync": ReloadClass.FOLLOWS,
    "agents.*.sessions.presets": ReloadClass.WAITS,
    "agents.*.sessions.paths": ReloadClass.WAITS,
    "agents.*.sessions.subagents": ReloadClass.WAITS,
    "agents.*.sessions.delta_bytes": ReloadClass.FOLLOWS,
    "agents.*.sessions.delta_messages": ReloadClass.FOLLOWS,
    "agents.*.sessions.idle_seconds": ReloadClass.FOLLOWS,
    "agents.*.redact": ReloadClass.WAITS,
    "agents.*.qmd": ReloadClass.WAITS,
    "agents.*.cache": ReloadClass.WAITS,  # without it, texts may be embedded, and paid for, again
    "agents.*.remote": ReloadClass.WAITS,
    "agents.*.rerank": ReloadClass.WAITS,
    "agents.*.publish": ReloadClass.WAITS,
    "agents.*.shared": ReloadClass.WAITS,
    "agents.*.include": ReloadClass.WAITS,
    "agents.*.scope": ReloadClass.WAITS,
}
"""By the key of a setting, or of the table that it is in. What is not here waits."""


def class_of(key: Key) -> ReloadClass:
    """Return when a changed setting is applied; a new or removed agent waits as a whole."""
    names = ["*" if place == 1 and key[0] == "agents" else str(part) for place, part in enumerate(key)]
    for length in range(len(names), 0, -1):
        if (found := CLASSES.get(".".join(names[:length]))) is not None:
            return found
    return ReloadClass.WAITS


def followed(old: Config, new: Config) -> Config:
    """Return the configuration to apply automatically after the file has changed.

    Args:
        old: The configuration in use.
        new: The configuration in the file.
    """
    return Config(
        daemon=_followed(old.daemon, new.daemon, ("daemon",)),
        agents={
            name: _followed(settings, new.agents[name], ("agents", name)) if name in new.agents else settings
            for name, settings in old.agents.items()
        },
        shared=old.shared,  # decides where memory is sent and read from
        file=new.file,
    )


def changed_settings(old: Config, new: Config) -> tuple[str, ...]:
    """Return the dotted keys of settings that differ, and of agents that were added or removed."""
    keys = list(_changed(old.daemon, new.daemon, ("daemon",)))
    for name in sorted(old.agents.keys() | new.agents.keys()):
        before, after = old.agents.get(name), new.agents.get(name)
        if before is None or after is None:
            keys.append(("agents", name))
        else:
            keys += _changed(before, after, ("agents", name))
    keys += [
        ("shared", name)
        for name in sorted(old.shared.keys() | new.shared.keys())
        if old.shared.get(name) != new.shared.get(name)
    ]
    return tuple(map(dotted, keys))


def digest(config: Config) -> str:
    """Return a digest of a configuration: 32 hexadecimal digits, equal for equal settings."""
    tables = msgspec.to_builtins(
        {"daemon": config.daemon, "agents": config.agents, "shared": config.shared}, enc_hook=as_text
    )
    written = msgspec.json.encode(tables, order="deterministic")
    return hashlib.blake2b(written, digest_size=16).hexdigest()


def _followed(old: S, new: S, at: Key) -> S:
    changes: dict[str, Any] = {}
    for name in old.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, msgspec.Struct):
            changes[name] = _followed(before, after, (*at, name))
        elif _is_followed(before, after, class_of((*at, name))):
            changes[name] = after
    return msgspec.structs.replace(old, **changes)


def _is_followed(before: Any, after: Any, kind: ReloadClass) -> bool:
    match kind:
        case ReloadClass.FOLLOWS:
            return True
        case ReloadClass.GROWS:
            return set(before) <= set(after)
        case ReloadClass.WAITS:
            return False


def _changed(old: msgspec.Struct, new: msgspec.Struct, at: Key) -> Iterator[Key]:
    for name in old.__struct_fields__:
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(before, msgspec.Struct):
            yield from _changed(before, after, (*at, name))
        elif before != after:
            yield (*at, name)


LOOK_S = 2.0  # between two checks of the file
UNCHANGED_S = 0.2  # how long the file must stay unchanged before it is read: an editor may be writing it
READ_ATTEMPTS = 5  # attempts to read a file that is being written

Stamp = tuple[int, ...]
Apply = Callable[[Config, Config], Awaitable[None]]


class Configuration:
    """The configuration in use; harmless changes of the file are applied automatically, others by `reload`."""

    def __init__(
        self,
        in_force: Config,
        load: Callable[[], Config],
        stamp: Callable[[], Stamp],
        apply: Apply,
        *,
        look_s: float = LOOK_S,
        unchanged_s: float = UNCHANGED_S,
    ) -> None:
        """Create it; the file is not checked yet.

        Args:
            in_force: The initial configuration.
            load: Reads the file, or raises a ConfigError. Called on a thread, as its disk may not answer.
            stamp: Returns a value that changes with the file. Called on a thread, too.
            apply: Replaces the first configuration by the second.
            look_s: Seconds between two checks of the file.
            unchanged_s: Seconds for which the file must stay unchanged before it is read.
        """
        self.in_force = in_force
        self.waiting: tuple[str, ...] = ()  # dotted keys of changed settings that wait for reload()
        self.error: str | None = None  # why the configuration in the file cannot be used
        self._load = load
        self._stamp = stamp
        self._apply = apply
        self._look_s = look_s
        self._unchanged_s = unchanged_s
        self._thread = Threads(1, "memd-config")
        self._changing = asyncio.Lock()  # one reader at a time, so that the last has the newest file
        self._applying = asyncio.Lock()
        self._seen: Stamp | None = None  # stamp of the file version that was handled already

    async def reload(self) -> tuple[str, ...]:
        """Apply the whole configuration file; return the dotted keys that have changed.

        A file that is still being written is not read, since half of it would apply until the next reload,
        without the rules of the other half.

        Raises:
            ConfigError: the file is invalid; the previous configuration stays in use.
            ResourceShortage: the file cannot be read now; likewise.
        """
        async with self._changing:
            for _ in range(READ_ATTEMPTS):
                now = await self._thread.run(self._stamp)
                await asyncio.sleep(self._unchanged_s)
                if now != await self._thread.run(self._stamp):
                    continue
                self._seen = None
                if (new := await self._read(now)) is not None:
                    break
            else:
                raise ConfigError(
                    "the configuration file is being written all the time; reload once that has ended"
                )
            changed = changed_settings(self.in_force, new)
            await self._bring(new)
            self.waiting = ()
            log.info("config.reloaded", agents=sorted(new.agents), changed=list(changed))
            return changed

    async def run(self) -> None:
        """Check the file at intervals until cancelled."""
        while True:
            await asyncio.sleep(until_next_tick_s(asyncio.get_running_loop().time(), self._look_s))
            # The failure is in the log and the status; the next check tries again.
            with contextlib.suppress(ConfigError, ResourceShortage):
                await self.look()

    async def look(self) -> None:
        """Apply harmless changes of the file, if it has changed.

        Raises:
            ConfigError: the file is invalid.
            ResourceShortage: the file cannot be read now.
        """
        now = await self._thread.run(self._stamp)
        if now == self._seen:
            return
        await asyncio.sleep(self._unchanged_s)
        if now != await self._thread.run(self._stamp):
            return
        async with self._changing:
            # An invalid file is not read again until it changes; one that could not be read or applied is.
            self._seen = None
            try:
                new = await self._read(now)
            except ConfigUnreadable:
                raise
            except ConfigError:
                self._seen = now
                raise
            if new is None:
                return
            harmless = followed(self.in_force, new)
            if harmless != self.in_force:
                changed = changed_settings(self.in_force, harmless)
                await self._bring(harmless)
                log.info("config.followed", changed=list(changed))
            waiting = changed_settings(self.in_force, new)
            if waiting and waiting != self.waiting:
                log.warning("config.waits", settings=list(waiting), remedy="memd-ctl reload")
            self.waiting = waiting
            self._seen = now

    @contextlib.asynccontextmanager
    async def unchanged(self) -> AsyncIterator[None]:
        """Wait until a configuration that is being applied is complete, and apply no other within the block."""
        async with self._applying:
            yield

    async def _bring(self, new: Config) -> None:
        async with self._applying:
            await self._apply(self.in_force, new)
            self.in_force = new

    async def _read(self, stamp: Stamp) -> Config | None:
        """Return the configuration in the file; None if the file has changed since this stamp, and may be incomplete.

        Raises:
            ConfigError: the file is invalid.
        """
        try:
            read: Config | ConfigError = await self._thread.run(self._load_again)
        except ConfigError as error:
            read = error
        if stamp != await self._thread.run(self._stamp):
            return None
        if isinstance(read, ConfigError):
            if self.error != str(read):
                log.error("config.reload_refused", reason=str(read))
            self.error = str(read)
            raise read
        self.error = None
        return read

    def _load_again(self) -> Config:
        """Return the configuration in the file.

        Raises:
            ConfigError: the file is invalid, missing or empty. At the start, a missing file means built-in
                defaults; but a file that disappears, or is emptied by a full disk, is no request to remove
                all agents.
            ConfigUnreadable: the file cannot be read now.
        """
        new = self._load()
        before = self.in_force
        if before.file is not None and (new.file is None or (_is_empty(new.file) and new != before)):
            lost = "gone" if new.file is None else "empty"
            raise ConfigError(
                f"{before.file} is {lost}; what it said stays in force until memd is started again"
            )
        return new


def _is_empty(file: Path) -> bool:
    try:
        return file.stat().st_size == 0
    except OSError as error:
        raise ConfigUnreadable(f"{file} cannot be read: {error.strerror}") from error


def stamp_of(file: Path) -> Stamp:
    """Return a value that changes with each change of a file, or of the links that lead to it."""
    try:
        status = file.stat()
    except OSError as error:
        return (error.errno or 0,)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
