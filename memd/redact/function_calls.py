"""Secrets that a program hands to a function, where the place or the function says what they are."""

import re

from memd.redact import secret_values
from memd.redact.rule import Find, Rule, Span

_STRING = r"""[bBrRuUfFNL$@]{0,2}\\{0,7}["'](?P<secret>[^"'\n\\]{4,200})\\{0,7}["']"""
_USER = r"""\\{0,7}["'][^"'\n\\]{1,100}\\{0,7}["'][ ]?,\s{0,20}"""
_FIRST = r"(?:[\w.$&*]{1,60}[ ]?,\s{0,20})?"
# A name and a password, for whatever logs in with both.
_LOGIN = re.compile(
    rf"(?:auth[ ]?[=:]?|auth2?|login|credentials?|authenticate)[ ]?\(\s{{0,20}}{_USER}{_STRING}",
    re.IGNORECASE,
)
_CONNECTS = re.compile(rf"connect(?:ion)?[ ]?\(\s{{0,20}}(?:{_USER}|{_FIRST}){_USER}{_STRING}", re.IGNORECASE)
# The key that claims are signed with is the second argument, that of a hash the first.
_SIGNS = re.compile(
    rf"(?:jwt[.:]{{1,2}}\w{{4,20}}\(\s{{0,20}}(?:[\w.$&*]{{1,60}}|\{{[^{{}}\n]{{0,80}}\}})[ ]?,\s{{0,20}}|hmac(?:\.new)?\(\s{{0,20}}(?:[\w.]{{1,40}}|[\"'][\w-]{{1,20}}[\"'])?(?:[ ]?,[ ]?)?){_STRING}",
    re.IGNORECASE,
)
_SECURE = re.compile(rf"ConvertTo-SecureString(?:[ ]-String)?[ ]{_STRING}", re.IGNORECASE)


def _given(pattern: re.Pattern[str], *, random: bool = False) -> Find:
    """Finds a literal that is handed on; where only its place tells, it must look like a secret."""

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        if match is None:
            return None
        said = match["secret"]
        value = secret_values.SecretValue(*match.span("secret"), said, True, "")
        is_one = (
            (secret_values.is_strong(said) and len(said) >= 8)
            if random
            else (any(map(str.isdigit, said)) or secret_values.has_symbol(said))
            and secret_values.is_secret(value, "password", shouts=False, spoken=False)
        )
        return match.span("secret") if is_one and not secret_values.is_reference(said) else None

    return find


RULES = (
    Rule("login-call", "password", ("auth", "login", "cred"), _given(_LOGIN)),
    Rule("connection-call", "password", ("connect",), _given(_CONNECTS)),
    Rule("signing-call", "secret", ("jwt", "hmac"), _given(_SIGNS, random=True)),
    Rule("secure-string", "password", ("convertto-",), _given(_SECURE)),
)
"""Each kind of call."""
