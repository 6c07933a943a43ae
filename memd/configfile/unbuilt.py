"""The words of the configuration that are planned but do nothing yet: using one is an error, its default is not."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from memd.config import AgentSettings, DaemonSettings, Limits

# Struct of the table -> key -> its default. A table of them is given with every key it will have.
KEYS: Mapping[type[msgspec.Struct], Mapping[str, Any]] = MappingProxyType(
    {
        DaemonSettings: {"memory_limit_mb": 0},
        Limits: {"max_injected_chars": 4000},
        AgentSettings: {
            "sessions": {
                "presets": [],
                "paths": [],
                "delta_bytes": 100_000,
                "delta_messages": 50,
                "idle_seconds": 120,
                "subagents": False,
            },
            "redact": {"mode": "sessions", "extra": [], "allow": []},
            "qmd": {
                "command": "qmd",
                "search_mode": "search",
                "collections": [],
                "update_minutes": 5,
                "debounce_seconds": 15,
                "embed_minutes": 60,
                "timeout_ms": 4000,
                "cooldown_seconds": 60,
            },
        },
    }
)

# Struct of the table -> key that exists -> values it will take one day.
VALUES: Mapping[type[msgspec.Struct], Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        AgentSettings: {
            "sources": ("sessions",),
            "backend": ("qmd",),
        },
    }
)
