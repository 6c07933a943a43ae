"""Finds passwords among the arguments of calls that connect a client: connect("host", 22, "ann", "hunter2").

Libraries put them in different places; so the literals of a call are graded, and the one that looks most like a password is meant.
"""

import re
from collections.abc import Iterator

from memd.redact.rule import Rule, Span
from memd.redact.values import randomness, secret_candidates, secret_values

# The call up to its first argument; Visual Basic needs no brackets.
_CALL = re.compile(
    r"(?:connect(?:ion|_ssh|_ftp|_db)?|pdo|mysqli|open_?database|jedis(?:pool|cluster)?|(?:strict)?redis|sequelize|odbc_connect|ftp_login|ldap_bind)[ ]?\(|open[ ]?[( ][ ]?(?=\"[\w ]{2,20}=[\w =;.{}]{1,80}\"[ ]?,)",
    re.IGNORECASE,
)
_ARGUMENT = re.compile(
    r"\s{0,20}(?:[bBrRuUfFNL$@]{0,2}(?P<quote>[\"'])(?P<said>[^\"'\n\\]{0,160})(?P=quote)|[\w.:$\[\]-]{1,60}(?:\([^()\n]{0,60}\))?)\s{0,20}(?P<goes_on>,)?"
)
_HOST_AND_USER = 2
_OF_GRADE = {"sure": 4, "mixed": 3, "likely": 2, "weak": 0, "digits": 0}
# A word with a symbol within, in letters of any script: no address, no query and no name of a signal.
_WITH_SIGN = re.compile(
    r"(?=.{6})[^\W_][^\s/\\:;=\"'<>()\[\]{}|,]{0,40}[!#$%&*+?^~](?!$)[^\s/\\:;=\"'<>()\[\]{}|,]{1,40}"
)
_IS_OTHER = re.compile(
    r"[/\\]|://|\A\w+=|[@.][\w-]+\.\w{2,6}\Z|\.(?:(?:duck)?db|sqlite3?|mdb|accdb|csv|txt|json|ini|conf|pem|key)\Z|%[sd]|\$[\w{(]|\A[#%&*-]|\Av?[0-9.]+\Z"
)


# What else connects has names with a number: connect("node1", "node2", "edge3").
_NUMBERED = re.compile(r"[A-Za-z:]{1,16}[-_]?[0-9]{1,2}")
_OF_SERVER = re.compile(
    r"(?:[A-Za-z_]|(?:sql|db|psycopg2|pg|oracle|odbc|ftp|ssh|ldap|mail|smtp|imap)\w{0,10}\.)\Z", re.IGNORECASE
)
_HOST = re.compile(
    r"localhost|[\w-]{1,60}(?:\.[\w-]{1,40}){1,6}|[\w:]{2,20}//.{1,100}|[\w: ]{2,30}=.{1,130}", re.IGNORECASE
)


def _grade(said: str, *, is_third: bool) -> int:
    """Return how much an argument looks like a password; 0: not at all.

    Args:
        said: The argument.
        is_third: Whether a host and a user are before it: a digit or a symbol is enough then.
    """
    if _IS_OTHER.search(said) is not None or not secret_values.is_given(said):
        return 0
    found = secret_candidates.password(said, 0)
    grade = 0 if found is None or found.said != said.rstrip("?") else _OF_GRADE[found.grade]
    is_signed = _WITH_SIGN.fullmatch(said) is not None
    has_sign = randomness.has_digit(said) or secret_values.has_symbol(said)
    return grade or is_signed or (is_third and has_sign)


def _connected(text: str, at: int) -> Span | None:
    call = _CALL.match(text, at)
    if call is None:
        return None
    literals = list(_literals(text, call.end()))
    is_server = _OF_SERVER.search(text[max(0, at - 24) : at]) is not None or (
        bool(literals) and (not literals[0][0] or _HOST.fullmatch(literals[0][0]) is not None)
    )
    best, span = 0, None
    # Of a host, a user and a password, the host may be a variable.
    for before, (said, start) in enumerate(literals):
        is_third = before >= _HOST_AND_USER and (is_server or _NUMBERED.fullmatch(said) is None)
        grade = _grade(said, is_third=is_third) if before else 0
        if grade and grade >= best:
            best, span = grade, (start, start + len(said))
    return span


def _literals(text: str, place: int) -> Iterator[tuple[str, int]]:
    """Yield the literals among the arguments of a call, each with its offset; a variable that is first counts, and is empty."""
    for number in range(8):
        argument = _ARGUMENT.match(text, place)
        if argument is None:
            return
        if argument["said"] is not None or not number:
            yield argument["said"] or "", argument.start("said")
        if argument["goes_on"] is None:
            return
        place = argument.end()


RULES = (
    Rule(
        "client-call",
        "password",
        ("connect", "pdo", "mysqli", "open", "jedis", "redis(", "sequelize("),
        _connected,
    ),
)
