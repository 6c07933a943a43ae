"""Recognises transcript files of each agent by their names and directories. Pure rules about names."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, assert_never

import msgspec

Layout = Literal["openclaw", "pi", "claude-code", "codex", "gemini", "qwen", "opencode", "copilot", "plain"]
Parts = tuple[str, ...]

# OpenClaw names an archive by its time in ISO 8601, with "-" for ":"; older ones by milliseconds.
_NAME = re.compile(
    r"(?P<id>[^.].*?)\.jsonl"
    r"(?:\.reset\.(?P<reset>\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{1,9})?Z?|\d{9,16}))?"
    r"(?P<compressed>\.zst)?",
    re.DOTALL,
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])", re.IGNORECASE)
_ROLLOUT = re.compile(r"rollout-(\d{4})-(\d\d)-(\d\d)T")
_DIGITS = re.compile(r"[0-9]+")
# Records of an agent's actions, which contain no conversation.
_SIDECAR = re.compile(r".+\.(?:trajectory|checkpoint(?:\..*)?)", re.DOTALL)
_EVENTS = "events"  # events of a session of Copilot CLI, in the session's directory
_JOURNAL = "journal"  # actions of Claude Code's subagents
_SUBAGENTS = "subagents"
_SPILLED = "tool-results"
_COLD = "cold"
_MAIN = "main"  # OpenClaw's first agent
_DATABASE = "openclaw-agent.sqlite"  # database in which newer versions of OpenClaw store an agent's sessions
_AGENT = "agent"  # its directory, within that of each agent
_DATABASE_DEPTH = 3
_OPENCODE = re.compile(r"opencode(?:-[A-Za-z0-9._-]+)?\.db")  # each release channel has its own
# A single object, as Gemini CLI wrote before it wrote lines.
_OLD_GEMINI = re.compile(r"session-.+\.json", re.DOTALL)
_EXPORT = re.compile(r"conversations(?:-\d{1,4})?\.json")  # of ChatGPT or of Claude
_LOG = "-wal"  # new rows are written to this file first


class Transcript(msgspec.Struct, frozen=True, gc=False):
    """What the path of a file says about its session."""

    id: str  # the same even if the file is rotated, compressed or archived
    subagent: bool
    archived: bool  # the session has ended; a live file of the same session takes precedence
    compressed: bool
    elsewhere: bool  # not in the directory that its name implies
    reset: str  # when it was archived, by its name; "" if the name does not say


def transcript(layout: Layout, parts: Parts) -> Transcript | None:
    """Return the transcript at these parts below the directory of a layout; None: the file is not a transcript.

    Lock files, checkpoints, temporary files, deleted transcripts and other records of an agent are not
    transcripts.
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
    """Return whether the file at these parts below a layout's directory is a database or export of transcripts."""
    if layout == "plain":
        return bool(parts) and _EXPORT.fullmatch(parts[-1]) is not None
    if layout == "opencode":
        return len(parts) == 1 and _OPENCODE.fullmatch(parts[0]) is not None
    return layout == "openclaw" and len(parts) == _DATABASE_DEPTH and parts[1:] == (_AGENT, _DATABASE)


def is_database_log(layout: Layout, parts: Parts) -> bool:
    """Return whether the file at these parts is the write-ahead log of a database of transcripts."""
    return (
        layout != "plain"
        and parts[-1].endswith(_LOG)
        and is_database(layout, (*parts[:-1], parts[-1].removesuffix(_LOG)))
    )


def entry(layout: Layout, parts: Parts, identity: str) -> Transcript | None:
    """Return the session of this id in the database at these parts; None if the id is not valid as a name.

    In OpenClaw's database it gets the name of the file that an older version would have written, so that a
    session in both is one.
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
    """Return whether a directory at these parts can contain transcripts, if the one above can."""
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
    """Return whether the same file name below another first directory is a file of the same session.

    If it is not, the id of a session implies the one position of its live file, or `transcript` gives
    different results for the positions.
    """
    return layout not in {"plain", "codex", "copilot"} and len(parts) > 1


class _Place(NamedTuple):
    """A transcript, as its layout describes it."""

    id: str
    subagent: bool = False
    archived: bool = False
    elsewhere: bool = False


def _openclaw(above: Parts, own: str) -> _Place | None:
    match above:
        case (agent, "sessions", *cold) if cold in ([], [_COLD]):
            # Ids that a person chose may occur in two agents.
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
        "opencode": lambda *_: None,  # all transcripts are in its database
        "plain": _plain,
    }
)
