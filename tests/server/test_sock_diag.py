"""Which sockets processes listen on."""

import socket
from pathlib import Path

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
