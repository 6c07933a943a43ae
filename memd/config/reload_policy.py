"""What of a changed configuration a running daemon takes over by itself, and what waits for a person. Pure.

An agent may be able to write the configuration file. So only what concerns how memory is read and ranked is followed as soon as
the file says so; what starts a program, sends text elsewhere or lets more be seen waits for `memd-ctl reload`.
"""

import hashlib
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

import msgspec

from memd.config.check import dotted
from memd.config.settings import Config
from memd.config.toml_lines import Key

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
    return tuple(map(dotted, keys))


def digest(config: Config) -> str:
    """A text that is the same for configurations that say the same, 32 hexadecimal digits."""
    tables = msgspec.to_builtins({"daemon": config.daemon, "agents": config.agents}, enc_hook=str)
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
