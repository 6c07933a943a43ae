"""The words of the configuration that are planned but do nothing yet: using one is an error, its default is not."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from memd.config import DaemonSettings

# Struct of the table -> key -> its default. A table of them is given with every key it will have.
KEYS: Mapping[type[msgspec.Struct], Mapping[str, Any]] = MappingProxyType(
    {
        DaemonSettings: {"memory_limit_mb": 0},
    }
)

# Struct of the table -> key that exists -> values it will take one day.
VALUES: Mapping[type[msgspec.Struct], Mapping[str, tuple[str, ...]]] = MappingProxyType({})
