"""A client that goes away before it has its answer."""

from pathlib import Path

from memd_client.connect_socket import dial
from memd_client.conversation import Conversation
from memd_client.messages import Request


def vanish(socket: Path, request: Request, share: float) -> None:
    """Connect, send a greeting with a request, or a part of that, and hang up without reading.

    Args:
        socket: Where the daemon listens.
        request: What is asked.
        share: How much of the bytes is sent, 0..1.

    Raises:
        DaemonNotRunning, ConnectionLost: there was nobody to vanish from.
    """
    talk = Conversation()
    data = talk.hello() + talk.ask(request, None)[1]
    if (connection := dial(str(socket))) is not None:
        with connection:
            connection.send(data[: round(share * len(data))])
