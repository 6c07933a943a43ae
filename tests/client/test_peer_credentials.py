"""Who is at the other end of a socket."""

import os
import socket
from pathlib import Path

import pytest

from memd_client.peer_credentials import peer_uid


def test_both_ends_are_known_by_their_user(address: Path) -> None:
    """The system tells the user of the process at the other end, to the one that listens and to the one that connects."""
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(str(address))
        listener.listen()
        client.connect(str(address))
        with listener.accept()[0] as accepted:
            assert peer_uid(accepted) == peer_uid(client) == os.getuid()


def test_an_end_that_is_gone_was_still_somebodys(address: Path) -> None:
    """Whoever hung up at once is known all the same."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(address))
        with listener.accept()[0] as accepted:
            assert peer_uid(accepted) == os.getuid()


def test_what_cannot_be_asked_is_an_error() -> None:
    """A socket that is closed belongs to nobody."""
    closed = socket.socket(socket.AF_UNIX)
    closed.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        peer_uid(closed)
