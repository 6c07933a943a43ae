"""When a transcript is read again that has grown: pure arithmetic.

An agent writes to its transcript all the time, and what it has just said it knows anyway. So a transcript is read when
enough has come, or when nothing has for a while.
"""

from memd.config.settings import SessionSettings

# A time further ahead than this was set, or the clock was put back since: it tells nothing about quiet.
_AHEAD_S = 2.0


def due_at(
    came_bytes: int, came_lines: int, changed_at: float, settings: SessionSettings, now: float
) -> float:
    """When a transcript that has changed is to be read.

    Args:
        came_bytes: Since it was read last; all of it where it never was. None, or less than none: it was cut, written
            anew, compressed or only touched, and what the index says of it may not be true any more.
        came_lines: Likewise; 0 where nobody has counted, which can only make it later.
        changed_at: When the file was last written to, in Unix time.
        settings: How much is enough, and how long a while.
        now: Unix time.

    Returns:
        Unix time; now or earlier: at once. It is never further away than the time of quiet, and a little.
    """
    if came_bytes <= 0 or came_bytes >= settings.delta_bytes or came_lines >= settings.delta_messages:
        return now
    if changed_at > now + _AHEAD_S:
        return now
    return changed_at + settings.idle_seconds
