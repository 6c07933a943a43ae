"""Knows the names of the transcript files of each agent, and their directories. Pure rules about names."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, assert_never

import msgspec

Layout = Literal["openclaw", "pi", "claude-code", "codex", "gemini", "qwen", "opencode", "copilot", "plain"]
Parts = tuple[str, ...]

# OpenClaw stamps an archive with the time in ISO 8601, "-" for ":"; older ones with milliseconds.
_NAME = re.compile(
    r"(?P<id>[^.].*?)\.jsonl"
    r"(?:\.reset\.(?P<reset>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{1,9})?Z?|\d{9,16}))?"
    r"(?P<compressed>\.zst)?",
    re.DOTALL,
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])", re.IGNORECASE)
_ROLLOUT = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T")
_DIGITS = re.compile(r"[0-9]+")
# Records of what an agent did, beside what was said.
_SIDECAR = re.compile(r".+\.(?:trajectory|checkpoint(?:\..*)?)", re.DOTALL)
_EVENTS = "events"  # what happened in a session of Copilot CLI, in its directory
_JOURNAL = "journal"  # what Claude Code's subagents did
_SUBAGENTS = "subagents"
_SPILLED = "tool-results"
_COLD = "cold"
_MAIN = "main"  # OpenClaw's first agent
_DATABASE = "openclaw-agent.sqlite"  # in which newer versions of OpenClaw keep the sessions of an agent
_AGENT = "agent"  # its directory, in that of each agent
_DATABASE_DEPTH = 3
_OPENCODE = re.compile(r"opencode(?:-[A-Za-z0-9._-]+)?\.db")  # a channel of releases has one of its own
# One object, as Gemini CLI wrote before it wrote lines.
_OLD_GEMINI = re.compile(r"session-.+\.json", re.DOTALL)
_EXPORT = re.compile(r"conversations(?:-\d{1,4})?\.json")  # of ChatGPT or of Claude
_LOG = "-wal"  # what is written comes here first


class Transcript(msgspec.Struct, frozen=True, gc=False):
    """What the path of a file says of its session."""

    id: str  # the same, however the file is rotated, compressed or archived
    subagent: bool
    archived: bool  # of a session that is over; a live file of the same session goes before it
    compressed: bool
    elsewhere: bool  # not in the directory that its name tells
    reset: str  # when it was archived, as its name says; "" where it does not


def transcript(layout: Layout, parts: Parts) -> Transcript | None:
    """The transcript at these parts below the directory of a layout; None: the file is no transcript.

    Lock files, checkpoints, temporary files, deleted transcripts and other records of an agent are none.
    """
    name = parts[-1] if parts else ""
    is_old = layout == "gemini" and _OLD_GEMINI.fullmatch(name) is not None
    named = _NAME.fullmatch(f"{name}l" if is_old else name)
    if named is None or _SIDECAR.fullmatch(named["id"]):
        return None
    place = _PLACES[layout](parts[:-1], named["id"])
    if place is None:
        return None
    return Transcript(
        id=place.id,
        subagent=place.subagent,
        archived=is_old or place.archived or named["reset"] is not None,
        compressed=named["compressed"] is not None,
        elsewhere=place.elsewhere,
        reset=named["reset"] or "",
    )


def is_database(layout: Layout, parts: Parts) -> bool:
    """Whether the file at these parts below the directory of a layout holds several transcripts: a database, or an export."""
    if layout == "plain":
        return bool(parts) and _EXPORT.fullmatch(parts[-1]) is not None
    if layout == "opencode":
        return len(parts) == 1 and _OPENCODE.fullmatch(parts[0]) is not None
    return layout == "openclaw" and len(parts) == _DATABASE_DEPTH and parts[1:] == (_AGENT, _DATABASE)


def is_database_log(layout: Layout, parts: Parts) -> bool:
    """Whether what is written to a database of transcripts shows in the file at these parts."""
    return (
        layout != "plain"
        and parts[-1].endswith(_LOG)
        and is_database(layout, (*parts[:-1], parts[-1].removesuffix(_LOG)))
    )


def entry(layout: Layout, parts: Parts, identity: str) -> Transcript | None:
    """The session of this id in the database at these parts; None where the id is no name.

    In OpenClaw's it has the name of the file that an older version would have written: a session that is in both is one.
    """
    if "/" in identity or not is_database(layout, parts):
        return None
    if layout != "openclaw":
        named = _NAME.fullmatch(f"{identity}.jsonl")
        is_name = named is not None and named["id"] == identity
        return (
            Transcript(identity, subagent=False, archived=False, compressed=False, elsewhere=False, reset="")
            if is_name
            else None
        )
    session = transcript(layout, (parts[0], "sessions", f"{identity}.jsonl"))
    return session if session is not None and not (session.archived or session.compressed) else None


def descends(layout: Layout, parts: Parts, *, subagents: bool) -> bool:
    """Whether a directory at these parts can hold transcripts, if the one above can."""
    depth, name = len(parts), parts[-1]
    match layout:
        case "openclaw":
            if depth == 3:
                return name == _COLD and parts[1] == "sessions"
            return depth == 1 or (depth == 2 and name in {"sessions", _AGENT})
        case "pi" | "copilot":
            return depth == 1
        case "claude-code":
            return depth == 1 or (subagents and (depth == 2 or (depth == 3 and name == _SUBAGENTS)))
        case "codex":
            return depth <= 3 and _DIGITS.fullmatch(name) is not None
        case "qwen":
            return depth == 1 or (depth == 2 and name == "chats")
        case "opencode":
            return False
        case "gemini":
            return depth == 1 or (depth == 2 and name == "chats") or (depth == 3 and subagents)
        case "plain":
            return name != _SPILLED and (subagents or name != _SUBAGENTS)
        case _:
            assert_never(layout)


def first_is_free(layout: Layout, parts: Parts) -> bool:
    """Whether the same file name below another first directory is a file of the same session.

    If it is not, the id of a session implies the one place of its live file, or `transcript` gives different results for the
    places.
    """
    return layout not in {"plain", "codex", "copilot"} and len(parts) > 1


class _Place(NamedTuple):
    """A transcript, by its layout."""

    id: str
    subagent: bool = False
    archived: bool = False
    elsewhere: bool = False


def _openclaw(above: Parts, own: str) -> _Place | None:
    match above:
        case (agent, "sessions", *cold) if cold in ([], [_COLD]):
            # Ids that a person chose may be those of two agents.
            is_unique = agent == _MAIN or _UUID.match(own)
            return _Place(own if is_unique else f"{agent}/{own}", archived=bool(cold))
        case _:
            return None


def _pi(above: Parts, own: str) -> _Place | None:
    return _Place(own) if len(above) <= 1 else None


def _claude_code(above: Parts, own: str) -> _Place | None:
    is_subagent = own.startswith("agent-")
    match above:
        case (_,) if own != _JOURNAL:
            return _Place(own, is_subagent)
        case (_, session, "subagents") if is_subagent:
            return _Place(f"{session}/{own}", is_subagent)
        case _:
            return None


def _codex(above: Parts, own: str) -> _Place | None:
    date = _ROLLOUT.match(own)
    if date is None or len(above) not in {0, 3} or not all(map(_DIGITS.fullmatch, above)):
        return None
    return _Place(own, elsewhere=above != date.groups())


def _gemini(above: Parts, own: str) -> _Place | None:
    match above:
        case (_, "chats"):
            return _Place(own)
        case (_, "chats", parent):
            return _Place(f"{parent}/{own}", subagent=True)
        case _:
            return None


def _qwen(above: Parts, own: str) -> _Place | None:
    match above:
        case (_, "chats"):
            return _Place(own)
        case _:
            return None


def _copilot(above: Parts, own: str) -> _Place | None:
    match above:
        case ():  # of older versions
            return _Place(own)
        case (session,) if own == _EVENTS and not session.startswith("."):
            return _Place(session)
        case _:
            return None


def _plain(above: Parts, own: str) -> _Place | None:
    if own == _JOURNAL and above[-1:] == (_SUBAGENTS,):
        return None
    return _Place("/".join((*above, own)), subagent=_SUBAGENTS in above)


_PLACES: Mapping[Layout, Callable[[Parts, str], _Place | None]] = MappingProxyType(
    {
        "openclaw": _openclaw,
        "pi": _pi,
        "claude-code": _claude_code,
        "codex": _codex,
        "gemini": _gemini,
        "qwen": _qwen,
        "copilot": _copilot,
        "opencode": lambda *_: None,  # all are in its database
        "plain": _plain,
    }
)
