"""One invocation of a command."""

import io
from pathlib import Path

import pytest

from memd.ctl import arguments
from memd.ctl.call import Call
from memd.ctl.output.screen import Screen
from memd.ctl.places import Places
from memd_client import TimedOut
from tests.client.scripted_server import serving


@pytest.mark.parametrize("flags", [[], ["--timeout", "0.05"]])
def test_the_timeout_that_was_typed_goes_before_the_commands_own(address: Path, flags: list[str]) -> None:
    """A command knows how long it takes; whoever waits knows better."""
    screen = Screen(io.StringIO(), io.StringIO(), {}, wants_color=False, json=False)
    places = Places(Path("/"), None, Path("/state"), address)
    call = Call(arguments.parse(["status", *flags]), places, screen, {})
    with serving(address, lambda peer: peer.wait_for_end()), call.client(0.1) as memd:
        with pytest.raises(TimedOut) as timed_out:
            memd.status()
        memd.close()
    assert timed_out.value.timeout_s == (0.05 if flags else 0.1)
