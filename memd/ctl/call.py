"""One invocation of a command: what was typed, where things are, where to answer."""

import argparse
from collections.abc import Mapping
from typing import Any

import msgspec

from memd.ctl.output.screen import Screen
from memd.ctl.places import Places
from memd_client.blocking import Client

_PATIENCE_S = 10.0


class Call(msgspec.Struct, frozen=True):
    """What a command is given."""

    options: argparse.Namespace
    places: Places
    screen: Screen
    environ: Mapping[str, str]

    def client(self, timeout: float | None = _PATIENCE_S) -> Client:
        """A client of the daemon; --timeout goes before the command's own timeout, in seconds."""
        given: Any = self.options.timeout
        return Client(self.places.socket, timeout if given is None else given)
