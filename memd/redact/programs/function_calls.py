"""Finds secrets that are literals passed to a function, where the position or the function identifies them: login("ann", "...")."""

import re

from memd.redact.rule import Find, Rule, Span
from memd.redact.values import randomness, secret_values

_STRING = r"""[bBrRuUfFNL$@]{0,2}\\{0,7}["'](?P<secret>[^"'\n\\]{4,200})\\{0,7}["']"""
_USER_ARGUMENT = r"""\\{0,7}["'][^"'\n\\]{1,100}\\{0,7}["'][ ]?,\s{0,20}"""
_FIRST = r"(?:[\w.$&*]{1,60}[ ]?,\s{0,20})?"
# User name and password, for functions that log in with both.
_LOGIN = re.compile(
    rf"(?:auth[ ]?[=:]?|auth2?|authentication|login|log_in|sign_?in(?:_?with_?(?:email_?and_?)?password)?|credentials?"
    rf"|authenticate|(?:create|add|new)_?user|username_pw_set|(?:simple_)?bind(?:_s)?|credentials\.basic|http_?basic|auth_password)"
    rf"[ ]?\(\s{{0,20}}{_FIRST}{_USER_ARGUMENT}{_STRING}",
    re.IGNORECASE,
)
# A network and its password.
_JOINS = re.compile(
    rf"(?:wifi(?:multi)?\.begin|softap|addap)[ ]?\(\s{{0,20}}{_USER_ARGUMENT}{_STRING}", re.IGNORECASE
)
# The key for signing claims is the second argument, the key of a hash the first.
_SIGNS = re.compile(
    rf"(?:jwt[.:]{{1,2}}\w{{4,20}}\(\s{{0,20}}(?:[\w.$&*]{{1,60}}|\{{[^{{}}\n]{{0,80}}\}})[ ]?,\s{{0,20}}"
    rf"|(?:hmac(?:\.new)?|create(?:hmac|cipheriv|decipheriv)|fernet|secretkeyspec|aes\.new"
    rf"|cryptojs\.[a-z0-9]{{2,10}}(?:\.(?:en|de)crypt)?)\(\s{{0,20}}(?:[\w.]{{1,40}}|[\"'][\w-]{{1,20}}[\"'])?(?:[ ]?,[ ]?)?(?:[\w.]{{1,30}}\([ ]?)?){_STRING}",
    re.IGNORECASE,
)
_SECURE = re.compile(
    rf"ConvertTo-SecureString(?:[ ]-(?:String|AsPlainText|Force)){{0,3}}[ ]{_STRING}", re.IGNORECASE
)


def _given(pattern: re.Pattern[str], *, random: bool = False, plain: bool = False) -> Find:
    """Return a Find for a literal argument.

    Args:
        pattern: The call up to the argument, which is its group "secret".
        random: Whether it must look like a secret, since only its position identifies it.
        plain: Whether it may be a word.
    """

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        if match is None:
            return None
        said = match["secret"]
        value = secret_values.SecretValue(*match.span("secret"), said, True, "")
        if random:
            is_one = secret_values.is_strong(said) and len(said) >= 8
        else:
            is_one = (
                (plain and "password" not in said.lower())
                or randomness.has_digit(said)
                or secret_values.has_symbol(said)
                or randomness.is_jumble(said)
            ) and secret_values.is_secret(value, "password", shouts=False, spoken=False)
        if "your_" in said.lower() or secret_values.is_reference(said):
            return None
        return match.span("secret") if is_one else None

    return find


RULES = (
    Rule(
        "login-call",
        "password",
        (
            "auth",
            "login",
            "log_in",
            "sign",
            "cred",
            "create",
            "add",
            "new",
            "username_pw_set",
            "bind(",
            "bind_s(",
            "http_basic(",
            "httpbasic(",
        ),
        _given(_LOGIN),
        skips_prose=True,
    ),
    Rule(
        "network-call",
        "password",
        ("wifi.begin", "wifimulti.begin", "softap", "addap"),
        _given(_JOINS, plain=True),
    ),
    Rule(
        "signing-call",
        "secret",
        (
            "jwt",
            "hmac",
            "createcipheriv",
            "createdecipheriv",
            "fernet",
            "secretkeyspec",
            "aes.new",
            "cryptojs.",
        ),
        _given(_SIGNS, random=True),
        skips_prose=True,
    ),
    Rule("secure-string", "password", ("convertto-",), _given(_SECURE)),
)
"""Calls that log in, that join a network, that sign, and that protect a string."""
