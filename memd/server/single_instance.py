"""One daemon for a state directory and a socket: their directories are made, checked and locked."""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from memd.errors import FatalError
from memd.server.lock import Lock
from memd.store.database_files import sync_directory


@contextlib.contextmanager
def sole_daemon(state: Path, socket: Path) -> Iterator[None]:
    """Hold the locks of the state directory and of the socket, making the directories that are missing.

    Args:
        state: The state directory.
        socket: Where clients connect.

    Raises:
        FatalError: another daemon holds one, or a directory cannot be made.
    """
    for directory, variable in (
        (state / "agents", "MEMD_STATE_DIR"),
        (socket.parent, "MEMD_SOCKET"),
    ):
        try:
            new = [one for one in (directory, *directory.parents) if not one.is_dir()]
            if new:
                directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for one in new:
                # A power cut must not take it, with all that was synced in it. What may not be listed cannot be synced.
                with contextlib.suppress(PermissionError):
                    sync_directory(one.parent)
        except OSError as error:
            raise FatalError(
                f"cannot make {error.filename}: {error.strerror}. Set {variable} to another path.",
                exit_code=78,
            ) from error
    for directory in (state, state / "agents"):
        _require_ours(directory)
    with contextlib.ExitStack() as stack:
        for file, what in (
            (state / "memd.lock", state),
            (socket.with_name(f"{socket.name}.lock"), socket),
        ):
            stack.callback(Lock(file, what).release)
        yield


def _require_ours(directory: Path) -> None:
    """Refuse to keep memory where another user decides what a name means: they could have put a file there, or a link.

    Root's own word is good, and root, in a container, is given directories of others. One of a group is left to the group.

    Raises:
        FatalError: another user may write to the directory.
    """
    try:
        status = directory.stat()
    except OSError as error:
        raise FatalError(
            f"cannot use {directory}: {error.strerror}. Set MEMD_STATE_DIR to another path.", exit_code=78
        ) from error
    user = os.geteuid()
    if status.st_mode & stat.S_IWOTH:
        why = "any user may write there. Give it mode 0700"
    elif user not in {0, status.st_uid} and status.st_uid != 0:
        why = f"it belongs to another user (uid {status.st_uid})"
    else:
        return
    raise FatalError(
        f"memory cannot be kept in {directory}: {why}, or set MEMD_STATE_DIR to a directory of your own, "
        "such as a new one in it.",
        exit_code=78,
    )
