"""Finds passwords in files that keep a user and a password a line, by what the files are for: lists of chpasswd, of WebDAV, of a VPN, of TURN."""

import re

from memd.redact.rule import Rule, Span, line_start, sought
from memd.redact.values import secret_candidates, secret_values

# --- chpasswd: list: | root:quiet_heron

_USER_AND_PASSWORD = re.compile(
    r"(?<=\n)[ \t]{0,16}(?:-[ ])?[\"']?[a-z_][\w.-]{0,31}:(?P<secret>[^\s:\"'$]{4,128})[\"']?[ \t]{0,4}(?=\n|\Z)"
)


def _is_listed(said: str) -> bool:
    """Return whether what follows a user is a password: no number of a port, and no word that has one drawn."""
    return secret_values.is_given(said) and said != "RANDOM" and not (said.isdecimal() and len(said) < 6)


# --- https://cloud.example.org/dav  ann  "seven swans": the secrets of davfs2

_OF_DAV = re.compile(
    r"(?<=\n)[ \t]{0,4}(?:https?://[^\s]{3,120}|/[^\s]{1,80})[ \t]{1,8}\"?[\w.@+-]{1,64}\"?[ \t]{1,8}\"?(?P<secret>(?<=\")[^\"\n]{4,120}|[^\s\"#]{4,120})\"?[ \t]{0,4}(?=\n|\Z)"
)

# --- auth.txt of OpenVPN: a user and a password, each on a line

_NAMES_FILE = re.compile(
    r"(?:auth|auth-user-pass|userpass|user-pass|login|creds|credentials|pass)\.(?:txt|conf|cfg)[^\n]{0,80}\n(?:[\#;][^\n]{0,80}\n)?(?P<user>[\w.@+-]{2,64})[ \t]{0,4}\n(?P<secret>[!-~]{5,64})[ \t]{0,4}(?=\n|\Z)"
)
# What stands before the name of the file: a comment, a heading of head and tail, a command that shows it.
_BEFORE_FILE = re.compile(
    r"[ \t]{0,4}(?:[\#;/~]|==>|[^\n]{0,40}[$#>][ ](?:sudo[ ])?(?:cat|less|more)[ ]|cat[ ])"
)


def _on_two_lines(text: str, at: int) -> Span | None:
    match = _NAMES_FILE.match(text, at)
    if match is None or _BEFORE_FILE.match(text, line_start(text, at, 100), at) is None:
        return None
    said = match["secret"]
    is_one = secret_values.is_strong(said) or secret_candidates.password(said, 0) is not None
    return match.span("secret") if is_one and not secret_values.is_statement(said) else None


# --- user=guest:b33hive, for a server of TURN

_OF_TURN = re.compile(r"user=(?P<user>[\w.@-]{1,40}):(?P<secret>[^\s:\"'$]{5,80})[ \t]{0,4}(?=\n|\Z)")


def _of_turn(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at] not in {"", "\n"} else _OF_TURN.match(text, at)
    if match is None or match["user"] == match["secret"]:
        return None
    return match.span("secret") if secret_values.is_strong(match["secret"]) else None


RULES = (
    Rule(
        "password-of-chpasswd",
        "password",
        ("chpasswd",),
        walk=sought(_USER_AND_PASSWORD, behind=800, width=200, is_one=_is_listed),
    ),
    Rule(
        "password-of-dav",
        "password",
        ("davfs",),
        walk=sought(_OF_DAV, behind=800, width=420, is_one=secret_values.is_given),
    ),
    Rule(
        "password-on-second-line",
        "password",
        ("auth.", "auth-user-pass.", "userpass.", "user-pass.", "login.txt", "login.conf", "creds.", "credentials.", "pass.txt"),
        _on_two_lines,
    ),
    Rule("password-of-turn", "password", ("user=",), _of_turn),
)  # fmt: skip
"""One rule a kind of file."""
