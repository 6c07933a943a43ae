"""The configuration in force, its file, and which changes of it a running daemon applies without a person.

An agent may be able to write the configuration file. So only what concerns how memory is read and ranked is followed as soon as
the file says so; what starts a program, sends text elsewhere or lets more be seen waits for `memd-ctl reload`.
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
from memd.runtime.timing import until_next_tick_s

log = structlog.get_logger()

S = TypeVar("S", bound=msgspec.Struct)


class ReloadClass(Enum):
    """How a setting that has changed in the file comes into force."""

    FOLLOWS = "at once"
    GROWS = "at once, where a list only got longer; else it waits"
    WAITS = "when a person says so"


CLASSES: Mapping[str, ReloadClass] = {
    "daemon.log_level": ReloadClass.FOLLOWS,
    "daemon.memory_limit_mb": ReloadClass.FOLLOWS,
    "agents.*.workspace": ReloadClass.WAITS,
    "agents.*.extra_paths": ReloadClass.WAITS,
    "agents.*.exclude": ReloadClass.GROWS,  # one pattern less lets more be seen
    "agents.*.max_file_mb": ReloadClass.FOLLOWS,
    "agents.*.sources": ReloadClass.WAITS,
    "agents.*.memory_presets": ReloadClass.WAITS,
    "agents.*.backend": ReloadClass.WAITS,
    "agents.*.citations": ReloadClass.FOLLOWS,
    "agents.*.timezone": ReloadClass.WAITS,  # turns are cut, and embedded, anew with their times
    "agents.*.provider": ReloadClass.WAITS,
    "agents.*.model": ReloadClass.WAITS,
    "agents.*.fallback": ReloadClass.WAITS,
    "agents.*.chunking": ReloadClass.WAITS,  # texts are cut, and embedded, anew: that may cost
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
    "agents.*.cache": ReloadClass.WAITS,  # without it texts that were paid for are paid for again
    "agents.*.remote": ReloadClass.WAITS,
    "agents.*.rerank": ReloadClass.WAITS,
    "agents.*.publish": ReloadClass.WAITS,
    "agents.*.shared": ReloadClass.WAITS,
    "agents.*.include": ReloadClass.WAITS,
    "agents.*.scope": ReloadClass.WAITS,
}
"""By the key of a setting, or of the table that it is in. What is not here waits."""


def class_of(key: Key) -> ReloadClass:
    """How a setting comes into force; an agent that comes or goes waits as a whole."""
    names = ["*" if place == 1 and key[0] == "agents" else str(part) for place, part in enumerate(key)]
    for length in range(len(names), 0, -1):
        if (found := CLASSES.get(".".join(names[:length]))) is not None:
            return found
    return ReloadClass.WAITS


def followed(old: Config, new: Config) -> Config:
    """The configuration in force after the file has changed and before a person has said so.

    Args:
        old: In force.
        new: What the file says.
    """
    return Config(
        daemon=_followed(old.daemon, new.daemon, ("daemon",)),
        agents={
            name: _followed(settings, new.agents[name], ("agents", name)) if name in new.agents else settings
            for name, settings in old.agents.items()
        },
        shared=old.shared,  # where memory is sent, and taken from
        file=new.file,
    )


def changed_settings(old: Config, new: Config) -> tuple[str, ...]:
    """The dotted keys of settings that differ, and of agents that came or went."""
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
    """A text that is the same for configurations that say the same, 32 hexadecimal digits."""
    tables = msgspec.to_builtins(
        {"daemon": config.daemon, "agents": config.agents, "shared": config.shared}, enc_hook=str
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


LOOK_S = 2.0  # from one look at the file to the next
UNCHANGED_S = 0.2  # for which it must stay as it is before it is read: an editor may be writing it
READ_ATTEMPTS = 5  # of a file that is being written, until it is left alone

Stamp = tuple[int, ...]
Apply = Callable[[Config, Config], Awaitable[None]]


class Configuration:
    """The configuration in force: harmless changes of the file are followed by themselves, all others on request."""

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
        """The file has not been looked at since what is in force was read.

        Args:
            in_force: At the start.
            load: Reads the file; raises a ConfigError where it cannot be used. Called on a thread: its disk may not answer.
            stamp: Tells one state of the file from another. Called on a thread, too.
            apply: Brings a configuration into force in the place of another one.
            look_s: From one look at the file to the next, in seconds.
            unchanged_s: For which the file must stay as it is before it is read.
        """
        self.in_force = in_force
        self.waiting: tuple[str, ...] = ()  # dotted keys that the file has otherwise: they wait for reload()
        self.error: str | None = None  # why what the file says cannot be used
        self._load = load
        self._stamp = stamp
        self._apply = apply
        self._look_s = look_s
        self._unchanged_s = unchanged_s
        self._thread = Threads(1, "memd-config")
        self._changing = asyncio.Lock()  # one reader after the other, so that the last one has what is newest
        self._applying = asyncio.Lock()
        self._seen: Stamp | None = None  # of the state that need not be looked at again

    async def reload(self) -> tuple[str, ...]:
        """Bring all that the file says into force; the dotted keys of what was not.

        The half of a file that is being written would be in force until the next reload, without the rules of the other.

        Raises:
            ConfigError: it cannot be used, and what was in force stays so.
            ResourceShortage: it cannot be looked at just now; likewise.
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
        """Look at the file at intervals until the task is cancelled."""
        while True:
            await asyncio.sleep(until_next_tick_s(asyncio.get_running_loop().time(), self._look_s))
            # The log and the status say so; the next look tries again.
            with contextlib.suppress(ConfigError, ResourceShortage):
                await self.look()

    async def look(self) -> None:
        """Follow the file, if it has changed.

        Raises:
            ConfigError: it cannot be used.
            ResourceShortage: it cannot be looked at just now.
        """
        now = await self._thread.run(self._stamp)
        if now == self._seen:
            return
        await asyncio.sleep(self._unchanged_s)
        if now != await self._thread.run(self._stamp):
            return
        async with self._changing:
            # One that is wrong is not read again until it changes; one that could not be read, or brought into force, is.
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
        """Whatever is being brought into force is, and nothing else until the end."""
        async with self._applying:
            yield

    async def _bring(self, new: Config) -> None:
        async with self._applying:
            await self._apply(self.in_force, new)
            self.in_force = new

    async def _read(self, stamp: Stamp) -> Config | None:
        """What the file says; None if it has changed since it had this stamp: what was read may be the half of it.

        Raises:
            ConfigError: it cannot be used.
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
        """What the file says.

        Raises:
            ConfigError: it cannot be used, or is gone or empty. At a start no file means built-in defaults; but to lose one is
                no wish to drop every agent that it names, nor is what a full disk leaves of it.
            ConfigUnreadable: what it says is not known just now.
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
    """What changes with each change of a file, and of the links that lead to it."""
    try:
        status = file.stat()
    except OSError as error:
        return (error.errno or 0,)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
