"""Which sockets processes listen on."""

import socket
import struct
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from memd.server.sock_diag import is_listened_on
from tests.server.given import listening


def test_a_socket_is_listened_on_while_a_process_listens(address: Path) -> None:
    """Not before, not afterwards, and without anybody being connected to."""
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(address))
        assert not is_listened_on(address)
        bound.listen()
        assert is_listened_on(address)
        bound.setblocking(False)
        try:
            bound.accept()
        except BlockingIOError:
            pass
        else:
            raise AssertionError("somebody connected")
    assert address.exists()
    assert not is_listened_on(address)


def test_it_is_the_file_that_counts_and_not_its_name(address: Path) -> None:
    """A socket keeps its file under another name; another file under its name is not it."""
    with listening(address), socket.socket(socket.AF_UNIX) as stale:
        other = address.with_name("other")
        address.rename(other)
        assert is_listened_on(other)
        assert not is_listened_on(address)
        stale.bind(str(address))
        assert not is_listened_on(address)


def test_many_sockets_are_looked_through(address: Path) -> None:
    """The kernel tells of them in several parts."""
    crowd = [listening(address.with_name(f"c{number}")) for number in range(600)]
    try:
        with listening(address):
            assert is_listened_on(address)
        assert not is_listened_on(address)
        assert all(is_listened_on(address.with_name(f"c{number}")) for number in (0, 299, 599))
    finally:
        for one in crowd:
            one.close()


@pytest.mark.parametrize("kind", [2, 3], ids=["an error", "the end"])
def test_nothing_is_waited_for_after_the_last_message(
    address: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    """An error of the kernel is the last one, too: a kernel without sock_diag says no more."""
    address.touch()
    kernel = MagicMock()
    kernel.__enter__.return_value.recv.side_effect = [
        struct.pack("=IHHII", 36, kind, 0, 1, 0) + bytes(20),
        AssertionError("it was asked again"),
    ]
    with monkeypatch.context() as patch:
        patch.setattr("memd.server.sock_diag.socket.socket", lambda *_: kernel)
        assert not is_listened_on(address)
