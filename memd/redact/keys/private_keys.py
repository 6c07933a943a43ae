"""Finds private keys as blocks of text: whole, quoted, escaped in JSON, or truncated at either end."""

import re

from memd.redact.rule import Rule, Span
from memd.redact.values.randomness import mixes

# The words of an armour line are separated by blanks, by the end of a wrapped line, or not at all.
_BLANK = r"[ _]{0,2}(?:\n[ \t>|]{0,8})?"
_PRIVATE_KEY = rf"[ A-Z0-9_\n>|]{{0,40}}?PRIVATE{_BLANK}KEY(?:{_BLANK}BLOCK)?"
# Some programs display two hyphens as a dash, and a copied key may lack some dashes at either end.
_DASHES = r"(?:[-–—] ?){0,8}"
_BEGIN = re.compile(rf"(?:(?P<whole>-{{4,5}}) ?|{_DASHES})BEGIN{_PRIVATE_KEY}(?: ?{_DASHES})?", re.IGNORECASE)
_END = re.compile(
    rf"{_DASHES}END{_PRIVATE_KEY}(?: ?{_DASHES})?|-{{4,5}} ?END[ A-Z0-9]{{0,40}}", re.IGNORECASE
)
_PUTTY = re.compile(r"PuTTY-User-Key-File-[0-9]: ?(?:(?!\\{1,8}n)[^\n]){0,80}", re.IGNORECASE)
# What may separate lines of a key besides line ends: an escaped line end, a tag, a quotation mark, the syntax of a string
# literal per line, or a line number.
_BETWEEN = re.compile(
    r"""(?:\\{1,8}[nrt]|[\s>|"'+,`;*#\\]|</?[a-z]{1,4}[ ]?/?>|//|\.\.\.|…|(?<=[\n ])[0-9]{1,6}(?:[:|\t→-]|[ ]{1,3}(?=[A-Za-z0-9+/-]{20})))*+"""
)
_HEADER = re.compile(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID|Encryption|Key-Derivation|Argon2-[A-Za-z]{1,20}"
    r"|Public-Lines|Private-Lines|Private-MAC|Private-Hash): ?(?:(?!\\{1,8}n)[^\n]){0,300}"
)
_MATERIAL = re.compile(r"[A-Za-z0-9+/=]++")
# The last line of a key is usually short.
_SHORT = re.compile(r"""[\s>|"'+,`;*#\\]{0,20}[A-Za-z0-9+/=]{1,80}[\s"'+,`;\\]{0,8}""")
_QUOTES = " \t>|\"'+,`;*#"
_LEAST = 16  # characters of a line of a key
_LEAST_DRAWN = 32  # characters of such a line if the armour line has no dashes
_TAIL = re.compile(r"(?:[ \t>|\"'+,`;*#\\]|\\n)*+(?:\n|\Z)")
_LINE = re.compile(r"""[\s>|"'+,`;*#\\]{0,40}[A-Za-z0-9+/]{32,}={0,2}(?:\\{1,8}[nr]|[\s"'+,`;\\]){0,20}""")


def _from_beginning(text: str, at: int) -> Span | None:
    """Return a block from its first line to its last; without a last line, as far as the lines look like a key."""
    begin = _BEGIN.match(text, at) or _PUTTY.match(text, at)
    if begin is None:
        return None
    is_whole = begin.re is _PUTTY or begin["whole"] is not None
    end = begin.end()
    lines = 0
    while True:
        between = _BETWEEN.match(text, end)
        here = end if between is None else between.end()
        last = _END.match(text, here)
        if last is not None:
            return (at, last.end()) if lines else None
        known = _HEADER.match(text, here) or _material(text, here, lines)
        if known is not None and not (lines or is_whole or known.re is _HEADER or _is_drawn(known[0])):
            return None
        if known is None:
            # An armour line alone is none: programs that search for keys contain it.
            return (at, end) if lines else None
        lines += 1
        end = known.end()


def _material(text: str, at: int, lines: int) -> re.Match[str] | None:
    """Match a line of a key. The last line may be short if nothing else is on it."""
    found = _MATERIAL.match(text, at)
    if found is None or found.end() - at >= _LEAST:
        return found
    is_alone = (lines > 0 or found.end() == len(text)) and _TAIL.match(text, found.end()) is not None
    return found if is_alone or _END.match(text, _skipped(text, found.end())) else None


def _is_drawn(line: str) -> bool:
    """Return whether a base64 line is data, and not words, a path or a hexadecimal digest."""
    return len(line) >= _LEAST_DRAWN and mixes(line)


def _skipped(text: str, at: int) -> int:
    between = _BETWEEN.match(text, at)
    return at if between is None else between.end()


def _from_end(text: str, at: int) -> Span | None:
    """Return the rest of a block whose first lines are missing."""
    end = _END.match(text, at)
    if end is None or "private" not in end[0].lower():
        return None
    # A quotation mark before the last line is on that line.
    begin = start = len(text[max(0, at - 40) : at].rstrip(_QUOTES)) + max(0, at - 40)
    while start > 0:
        above = text.rfind("\n", max(0, start - 200), start - 1) + 1
        if above == 0 and start > 200:
            break
        line = _LINE.fullmatch(text, above, start)
        if line is None and not (start == begin and _SHORT.fullmatch(text, above, start)):
            break
        start = above
    return (start, end.end()) if start < begin else None


def _beginning(text: str, at: int) -> Span | None:
    return _from_beginning(text, _dashes(text, at))


def _ending(text: str, at: int) -> Span | None:
    return _from_end(text, _dashes(text, at))


def _dashes(text: str, at: int) -> int:
    """Return the beginning of the armour line that contains an anchor."""
    begin = _FIRST_WORD.search(text[max(0, at - _ARMOUR_SIGNS) : at])
    return at if begin is None else max(0, at - _ARMOUR_SIGNS) + begin.start()


_ARMOUR_SIGNS = 60  # the most characters of an armour line before "PRIVATE KEY"
_FIRST_WORD = re.compile(
    rf"(?:-{{4,5}} ?|{_DASHES})(?:BEGIN|END)(?!.*(?:BEGIN|END))", re.IGNORECASE | re.DOTALL
)


# Only lines as in a key.
_ALL_MATERIAL = re.compile(
    r"[\s>]*+(?P<secret>(?:[A-Za-z0-9+/]{60,76}[ \t\r]*+\n[ \t>]*+){2,}+[A-Za-z0-9+/]{0,76}={0,2})\s*+"
)


def middle(text: str) -> Span | None:
    """Return the span of a text that has only base64 lines: a part of a key that was sent in pieces.

    Lists of digests are hexadecimal, and other base64 is not worth searching for.
    """
    found = _ALL_MATERIAL.fullmatch(text)
    if found is None:
        return None
    said = found["secret"]
    is_one = "+" in said or "/" in said
    is_one = (
        is_one and any(map(str.isupper, said)) and any(map(str.islower, said)) and any(map(str.isdigit, said))
    )
    return (found.start("secret"), found.start("secret") + len(said.rstrip())) if is_one else None


# The beginning of a key in base64: DER with the version of a private key (0 or 1), or the OpenSSH format.
_BODY = re.compile(
    r"MII[A-P][A-Za-z0-9+/][AQgw]IB(?:AAKC|ADAN)|M(?:Hc|HQ|Gg)CAQEE|MI(?:GkAgEBBD|HcAgEBBE|GHAgEAMB|G2AgEAMB|HuAgEAMB)|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXktdjE"
)
_ENDS_LINE = re.compile(r"\n|\\[nr]")
_BEFORE_ANCHOR = 6  # characters of it before an anchor


def _body(text: str, at: int) -> Span | None:
    """Return the lines of a key whose armour line is missing."""
    start = at - _BEFORE_ANCHOR if text.startswith("IBA", at) else at
    if start < 0 or _BODY.match(text, start) is None or text[start - 1 : start].isalnum():
        return None
    end, lines, here = start, 0, start
    while (known := _material(text, here, lines)) is not None:
        end, lines = known.end(), lines + 1
        here = _skipped(text, end)
        if _ENDS_LINE.search(text, end, here) is None:
            break
    return (start, end) if end - start >= _LEAST_BODY else None


_LEAST_BODY = 60  # characters; the shortest keys, of Ed25519, have 64


_MEMBER = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,4}:\s{0,4}\"(?P<secret>[\w-]{20,700})\"", re.ASCII)
_MOST_OF_OBJECT = 4_000  # characters


def _of_json(text: str, at: int) -> Span | None:
    """Return the span from the first to the last private member of a JSON Web Key."""
    begin = text.rfind("{", max(0, at - _MOST_OF_OBJECT), at)
    end = text.find("}", at, at + _MOST_OF_OBJECT)
    members = [] if begin < 0 or end < 0 else list(_MEMBER.finditer(text, begin, end))
    return (members[0].start("secret"), members[-1].end("secret")) if members else None


_ARMOUR = ("private key", "private  key", "private\n", "privatekey-", "private_key-")
RULES = (
    Rule("private-key", "private-key", _ARMOUR, _beginning),
    Rule("json-web-key", "private-key", ('"kty"',), _of_json),
    Rule("private-key-end", "private-key", _ARMOUR, _ending),
    Rule("putty-key", "private-key", ("putty-user-key-file-",), _from_beginning),
    Rule(
        "private-key-body",
        "private-key",
        (
            "IBAAKC",
            "IBADAN",
            "MHcCAQEE",
            "MHQCAQEE",
            "MGgCAQEE",
            "MIGkAgEBBD",
            "MIHcAgEBBE",
            "MIGHAgEAMB",
            "MIG2AgEAMB",
            "MIHuAgEAMB",
            "MC4CAQAwBQYDK2V",
            "b3BlbnNzaC1rZXktdjE",
        ),
        _body,
        in_token=True,
    ),
)
"""Both ends of blocks, the form that one program has of its own, and bodies whose ends are missing."""
