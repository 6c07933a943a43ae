"""The errors of the clients.

MemdClientError
├── DaemonNotRunning    nothing to talk to: it has to be started, or the socket is another one
├── ConnectionLost      the connection ended, or broke the rules, before the answer came
├── TimedOut            the answer did not come in the time the client was given
├── ProtocolMismatch    client and daemon are of versions that do not understand each other
└── RequestFailed       the daemon answered that it could not

Anything else that a client raises is a bug, of memd or of the call.
"""

# An updated program runs its old code until it is restarted, on either side.
_OLD_DAEMON = (
    "Upgrade memd-daemon if it is older than this client, then restart it: `memd-ctl service restart`, "
    "or `memd-ctl down` and `memd-ctl up`."
)
_OLD_CLIENT = "Upgrade memd-client where this program runs, then start the program again."
_START = "Start it with `memd run` or `memd-ctl up`; if it listens elsewhere, set MEMD_SOCKET to that path."


class MemdClientError(Exception):
    """Any error that the clients raise on purpose.

    Attributes:
        message: What is wrong, in one or two sentences.
        hint: How to fix it; None if that is unknown.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}" if self.hint else self.message


class DaemonNotRunning(MemdClientError):
    """No daemon can be reached at the socket.

    Attributes:
        socket: The path that was tried.
        reason: Why it does not answer, as the end of a sentence.
    """

    def __init__(self, socket: str, reason: str = "nothing listens there", hint: str = _START) -> None:
        super().__init__(f"No memd daemon can be reached at {socket}: {reason}.", hint)
        self.args = (socket, reason, hint)  # used when the error is copied or pickled
        self.socket = socket
        self.reason = reason


class ConnectionLost(MemdClientError):
    """The connection ended, or violated the protocol, before the reply. The request may have been carried out."""


class TimedOut(MemdClientError):
    """The reply did not arrive in time. The request may still be carried out.

    Attributes:
        timeout_s: Timeout of the whole call, in seconds.
    """

    def __init__(self, timeout_s: float) -> None:
        super().__init__(
            f"memd did not answer within {timeout_s:g} s.",
            "`memd-ctl doctor` tells how it is; a longer timeout may do.",
        )
        self.args = (timeout_s,)
        self.timeout_s = timeout_s


class ProtocolMismatch(MemdClientError):
    """Client and daemon have incompatible versions.

    Attributes:
        ours: The protocol number of this client.
        theirs: The protocol number of the daemon.
    """

    def __init__(self, ours: int, theirs: int) -> None:
        super().__init__(
            f"This client speaks protocol {ours} of memd, the daemon speaks {theirs}.",
            _OLD_CLIENT if theirs > ours else _OLD_DAEMON,
        )
        self.args = (ours, theirs)
        self.ours = ours
        self.theirs = theirs


class RequestFailed(MemdClientError):
    """The daemon could not answer the request.

    Attributes:
        code: The kind of failure, for programs: bad_request, unsupported, too_large, unknown_agent, busy,
            timed_out, unavailable, internal or protocol. Later daemons may have more.
    """

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.args = (code, message, hint)
        self.code = code
