"""Checks whether clients reach the daemon at its socket, and no other program listens there."""

import socket
import stat
import struct
import sys
from pathlib import Path

import msgspec

from memd.ctl.doctor import system
from memd.ctl.doctor.finding import DoctorContext, Finding, failed, passed, quoted, unchecked
from memd_client import paths
from memd_client.blocking import Client
from memd_client.connect_socket import dial
from memd_client.errors import (
    ConnectionLost,
    DaemonNotRunning,
    MemdClientError,
    ProtocolMismatch,
    RequestFailed,
    TimedOut,
)
from memd_client.messages import StatusReport


class Peer(msgspec.Struct, frozen=True):
    """The listening process, as the system knows it."""

    pid: int
    uid: int


class SocketAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon's report, or why there is none."""

    report: StatusReport | None = None
    error: MemdClientError | None = None
    peer: Peer | None = None  # None: no process listens, or the system does not report it


def ask(path: Path, timeout_s: float) -> SocketAnswer:
    """Request the daemon's status; an error is a part of the answer."""
    peer = _find_peer(path)
    try:
        with Client(path, timeout_s) as memd:
            return SocketAnswer(report=memd.status(), peer=peer)
    except MemdClientError as error:
        return SocketAnswer(error=error, peer=peer)


def _find_peer(path: Path) -> Peer | None:
    if sys.platform != "linux":
        return None
    try:
        connection = dial(str(path))
    except MemdClientError:
        return None
    if connection is None:
        return None
    with connection:
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(pid, uid)


_ELSEWHERE = "or set MEMD_SOCKET to another path"


class SocketPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The file at the path of the socket."""

    kind: str | None  # "socket", or what else it is; None: it does not exist
    owner: int | None = None  # of the socket
    directory: Path
    directory_exists: bool = True
    directory_mode: int = 0o700
    directory_owner: int = 0


def look(path: Path) -> SocketPlace:
    """Inspect the path without connecting."""
    kind, owner = None, None
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    else:
        owner = status.st_uid
        kind = "socket" if stat.S_ISSOCK(status.st_mode) else "something that is not a socket"
    try:
        around = path.parent.stat()
    except (FileNotFoundError, NotADirectoryError):
        return SocketPlace(kind=kind, owner=owner, directory=path.parent, directory_exists=False)
    return SocketPlace(
        kind=kind,
        owner=owner,
        directory=path.parent,
        directory_mode=stat.S_IMODE(around.st_mode),
        directory_owner=around.st_uid,
    )


def check(place: SocketPlace | str, answer: SocketAnswer | None, context: DoctorContext) -> list[Finding]:
    """Check path, directory and listener of the socket.

    Args:
        place: The result of `look`, or why it failed, as the predicate of a sentence.
        answer: The answer from the socket; None: the request did not return.
        context: Paths, platform and user.
    """
    path = _path(context)
    if isinstance(place, str):
        at = f"{context.shown(context.places.socket)} {place}"
        return [
            path,
            failed(
                "socket.listener", at, "Set MEMD_SOCKET to a path on a local disk that this user may reach."
            ),
        ]
    return [path, _directory(place, context), _listener(place, answer, context)]


def _path(context: DoctorContext) -> Finding:
    try:
        paths.checked_socket(context.places.socket, context.platform)
    except paths.SocketPathTooLong as error:
        return failed("socket.path", str(error).removesuffix(f" {error.hint}"), error.hint)
    return passed("socket.path", context.shown(context.places.socket))


def _directory(place: SocketPlace, context: DoctorContext) -> Finding:
    name, shown = "socket.directory", context.shown(place.directory)
    if not place.directory_exists:
        return passed(name, f"{shown} does not exist yet: the daemon makes it")
    if place.directory_owner not in {context.uid, 0}:
        return failed(
            name,
            f"{shown} belongs to user {place.directory_owner}, who could put another socket there",
            f"Set MEMD_SOCKET to a path in a directory of your own, such as {context.shown(context.places.state)}/memd.sock",
        )
    others_write = place.directory_mode & 0o022
    if others_write and not place.directory_mode & stat.S_ISVTX:
        return failed(
            name,
            f"{shown} has mode {place.directory_mode:04o}: others can put another socket there",
            f"chmod go-w {quoted(place.directory)}",
        )
    return passed(name, f"{shown}, mode {place.directory_mode:04o}")


def _listener(place: SocketPlace, answer: SocketAnswer | None, context: DoctorContext) -> Finding:
    name = "socket.listener"
    if place.kind not in {None, "socket"}:
        return failed(
            name,
            f"{place.kind} is at {context.shown(context.places.socket)}",
            f"Move it away (mv {quoted(context.places.socket)} /somewhere/else), {_ELSEWHERE}.",
        )
    if answer is None:
        return failed(name, "connecting to it does not end", f"Restart the daemon: {context.restart()}")
    if answer.peer is not None and answer.peer.uid != context.uid:
        return failed(
            name,
            f"a process of user {answer.peer.uid} listens there ({_program(answer)})",
            f"Set MEMD_SOCKET to a path in a directory of your own, then: {context.ctl('up')}",
        )
    match answer.error:
        case None:
            assert answer.report is not None
            return passed(name, f"our daemon listens (pid {answer.report.pid})")
        case DaemonNotRunning() if place.kind is None:
            return unchecked(name, "there is no socket, and no daemon to make one")
        case DaemonNotRunning(reason=reason) if place.owner == context.uid:
            return failed(
                name,
                f"a dead socket: {reason}",
                f"Start the daemon, which takes it over: {context.ctl('up')}",
            )
        case DaemonNotRunning(reason=reason):
            return failed(
                name,
                f"the socket of user {place.owner}: {reason}",
                f"Ask as that user, {_ELSEWHERE}.",
            )
        case TimedOut():
            return failed(
                name,
                f"{_program(answer)} accepts connections and never answers",
                _end(answer, context),
            )
        case ProtocolMismatch() | RequestFailed():
            return passed(name, f"our daemon listens ({_program(answer)})")
        case ConnectionLost() | _:
            return failed(
                name,
                f"{_program(answer)} listens, and does not speak the protocol of memd",
                f"End that program, {_ELSEWHERE}.",
            )


def _program(answer: SocketAnswer) -> str:
    if answer.peer is None:
        return "a program"
    called = system.process_name(answer.peer.pid) if sys.platform == "linux" else None
    return f"{called}, pid {answer.peer.pid}" if called else f"pid {answer.peer.pid}"


def _end(answer: SocketAnswer, context: DoctorContext) -> str:
    pid = "" if answer.peer is None else f"kill -9 {answer.peer.pid} && "
    return f"End it and start the daemon again: {pid}{context.ctl('up')}"
