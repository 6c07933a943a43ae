"""Finds secrets that a shell passes on, other than as an argument: here-strings, pipes, and what was typed too late for a prompt."""

import base64
import re

from memd.redact.rule import Nearby, Rule, Span, line_end, line_start
from memd.redact.values import secret_values
from memd.redact.values.fixed_places import QUOTED_OR_BARE, in_place, quoted_or_bare

# --- cryptsetup luksOpen /dev/sdb2 bak <<< 'thirteen grey herons'

_HERE = re.compile(rf"<<<[ ]?(?:{QUOTED_OR_BARE})")
_READS = re.compile(
    r"cryptsetup|sudo[ ]-S|gpg2?[ ]|passwd|ssh-add|ssh-keygen|keepassxc-cli|veracrypt|kinit|smbclient|borg|restic|zfs[ ]load-key|luks|--pass(?:word|phrase)|7z[ ]|age[ ]-|docker[ ]login",
    re.IGNORECASE,
)


def _here(text: str, at: int) -> Span | None:
    match = _HERE.match(text, at)
    if match is None:
        return None
    said, span = quoted_or_bare(match)
    left = line_start(text, at, 160)
    is_one = _READS.search(text, left, at) is not None and not secret_values.is_reference(said)
    return span if is_one else None


# --- echo c3F1aWRJbmsx | base64 -d   # that's the grafana admin

_ENCODED = re.compile(
    r"(?:echo|printf)[ ](?:-n[ ])?[\"']?(?P<secret>[A-Za-z0-9+/]{8,400}={0,2})[\"']?[ ]?\|[ ]?base64[ ](?:-d|-D|--decode)",
    re.ASCII,
)
_SAYS_SECRET = re.compile(r"pass|admin|secret|cred|wi-?fi|root|pw", re.IGNORECASE)


def _encoded(text: str, at: int) -> Span | None:
    match = _ENCODED.match(text, at)
    if match is None:
        return None
    is_called = _SAYS_SECRET.search(
        text, match.end(), line_end(text, match.end(), 80)
    ) or _SAYS_SECRET.search(text, line_start(text, at, 80), at)
    return match.span("secret") if is_called and _decodes(match["secret"]) else None


def _decodes(said: str) -> bool:
    """Return whether base64 encodes visible characters."""
    try:
        plain = base64.b64decode(said + "=" * (-len(said) % 4))
    except ValueError:
        return False
    return all(32 <= byte < 127 or byte in b"\r\n" for byte in plain)


# --- a shell that got what was meant for a prompt: "pi@attic's password:" and "bash: gooseberry_Fool9: command not found"

_MISSED = re.compile(
    r"pass(?:word|phrase|code)[^\n]{0,60}:[ \t]{0,4}\n(?:[^\n]{0,80}\n){0,3}?[^\n]{0,40}[$#%>❯][ ](?P<typed>\S{4,64})\n(?:-?bash|-?zsh|sh|fish|ksh|dash):[^\n]{0,40}?(?P=typed):?[ ]\Z",
    re.IGNORECASE,
)
_CHARS_OF_MISSED = 400


def _missed(text: str, at: int) -> Span | None:
    """Return what was typed, with the message of the shell up to it."""
    left = max(0, at - _CHARS_OF_MISSED)
    match = _MISSED.search(text[left:at])
    return None if match is None else (left + match.start("typed"), left + len(match.string.rstrip(": ")))


HERE_STRINGS = (Rule("here-string", "password", ("<<<",), _here),)
"""What a program reads from a here-string."""
ENCODED_AND_MISSED = (
    Rule("encoded-secret", "password", ("echo ", "printf "), _encoded, needs=Nearby(re.compile("base64"), 0, 440, 6, has_digit=True)),
    Rule("typed-too-late", "password", ("command not found", "unknown command"), _missed),
)  # fmt: skip
"""What is decoded from base64, and what came too late for a prompt."""
PASSPHRASES_OF_DISKS = (
    Rule(
        "disk-passphrase",
        "password",
        ("echo ", "printf "),
        in_place(r"(?:echo[ ](?:-n[ ])?|printf[ ])(?P<quote>[\"'])(?P<secret>[^\"'\n$]{4,100})(?P=quote)[ ]?\|[ ]?(?:sudo[ ])?cryptsetup\b"),
        needs=Nearby(re.compile("cryptsetup"), 0, 140, 10),
    ),
)  # fmt: skip
"""What is piped into the program that opens a disk."""
