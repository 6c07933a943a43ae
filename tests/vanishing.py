"""A client that disconnects before it has its reply."""

from pathlib import Path

from memd_client.connect_socket import dial
from memd_client.conversation import Conversation
from memd_client.messages import Request


def vanish(socket: Path, request: Request, share: float) -> None:
    """Connect, send a greeting with a request, or a part of that, and hang up without reading.

    Args:
        socket: The daemon's socket.
        request: The request.
        share: The share of the bytes to send, 0..1.

    Raises:
        DaemonNotRunning, ConnectionLost: no daemon accepts the connection.
    """
    talk = Conversation()
    data = talk.hello() + talk.ask(request, None)[1]
    if (connection := dial(str(socket))) is not None:
        with connection:
            connection.send(data[: round(share * len(data))])
