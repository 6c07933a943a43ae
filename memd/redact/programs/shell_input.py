"""Finds secrets that a shell passes on, other than as an argument: here-strings, pipes, files, and what was typed too late for a prompt."""

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


# --- cat > /etc/openvpn/auth.txt, then a user and a password, each on a line

_FILE = re.compile(
    r"(?:cat|tee)[ ][^\n]{0,60}?(?:auth|pass|cred|login|secret|userpass)[\w.-]{0,20}[^\n]{0,24}\n(?P<user>[\w.@+-]{2,64})\n(?P<secret>[!-~]{6,64})\n(?=\^D|EOF|EOT|END|[A-Z]{3,8}\n)",
    re.IGNORECASE,
)


def _in_file(text: str, at: int) -> Span | None:
    match = _FILE.match(text, at)
    is_one = match is not None and secret_values.is_strong(match["secret"])
    return match.span("secret") if match is not None and is_one else None


# --- echo 'paprika-crayon-outback-plankton' > ~/.vault_pass

_WRITTEN = re.compile(
    r"(?:echo|printf)[ ](?:-n[ ]|-e[ ]|'%s'[ ]|\"%s\"[ ])?(?P<quote>[\"'])(?P<secret>[^\"'\n$]{6,120})(?P=quote)[ ]?"
    r"(?:>{1,2}[ ]?[^\s;|&]{0,60}(?:pass|secret|passwd|passphrase|\.pw|\.cred|vault|token|\.key)[\w.-]{0,20}(?![\w/])"
    r"|\|[ ]?(?:sudo[ ])?(?:tee[ ][^\s;|&]{0,60}(?:pass|secret|cred|token)|(?:docker|podman)[ ]secret[ ]create|gh[ ]secret[ ]set|pass[ ]insert|sudo[ ]-S|passwd[ ]--stdin|ansible-vault[ ]encrypt_string|wrangler[ ]secret[ ]put|fly(?:ctl)?[ ]secrets))",
    re.IGNORECASE,
)
_JOINED_WORDS = re.compile(r"[A-Za-z]{3,12}(?:[-_. ][A-Za-z]{3,12}){2,9}[0-9]{0,4}")


def _written(text: str, at: int) -> Span | None:
    match = _WRITTEN.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    said = match["secret"]
    parts = frozenset(re.split("[-_. ]", said.lower()))
    is_phrase = _JOINED_WORDS.fullmatch(said) is not None and parts.isdisjoint(
        secret_values.SENTENCE_WORDS | secret_values.HARMLESS_WORDS
    )
    return match.span("secret") if is_phrase or secret_values.is_strong(said) else None


_NAMES_SECRET = Nearby(re.compile("(?:pass|PASS|Pass|secret|cred|auth|token|vault|key|login)"), 0, 200, 6)


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
FILES = (
    Rule("password-in-file", "password", ("cat >", "cat <<", "tee /", "tee ~", "tee -a"), _in_file, needs=Nearby(re.compile(r">|<<"), 0, 90, 2)),
    Rule("secret-written", "password", ("echo ", "printf "), _written, needs=_NAMES_SECRET),
)  # fmt: skip
"""What is written into a file for passwords, or is piped into a program that keeps them."""
