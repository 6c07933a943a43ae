"""Finds lists of secrets under a name: in brackets, as YAML items, or enumerated in a sentence."""

import re
from collections.abc import Iterator, Sequence

from memd.redact.rule import Span
from memd.redact.values import randomness, secret_values

KINDS = ("password", "key")
ANCHORS = (
    "passwords", "passes", "passphrases", "passcodes", "passwörter", "passworter", "passwds", "password_list", "passwordlist",
    "passlist", "pass_list", "pwds", "pws", "secrets", "tokens", "keys", "密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "令牌",
)  # fmt: skip
# The name, in plural if the language has one, up to the first item.
_NAME = re.compile(
    r"""(?:(?P<password>pass(?:word|wd|phrase|code|wort|w[oö]rter)?(?:s|es)|pass(?:word|wd)?_?list|pwds|pws|(?:密码|密碼|口令)(?:们|列表|清单|分别|有|都是){0,2})
      |(?:secret|token|key)s|(?:密钥|密鑰|秘钥|令牌)(?:列表|清单|分别|有|都是){0,2})
    \\{0,7}["'`*_]{0,3}\]?(?:[ ]?:[ ]?[A-Za-z_][\w.\[\]<>, ]{0,40}(?=[ ]=))?
    (?:[ ]{0,40}(?:=>|:=|\+?=|[:：＝])|[ ](?:are|were)(?:[ ](?:now|still|both|:)){0,2}[ ]?:?|[是为]了?[ ]?[:：]?)[*_]{0,2}[ \t]{0,40}""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_OPENS = re.compile(
    r"(?:new[ ])?(?:[\w.:<>&*!]{0,40}(?:\[\])?[\w.]{0,20}[ ]?)?(?P<open>[\[({])\s{0,80}|(?=\n[ \t]{0,40}-[ ])|(?=[\"'“「`]|[!-~]{5})",
    re.ASCII,
)
_CLOSES = {"[": "]", "(": ")", "{": "}"}
_QUOTED = (
    r"""[bBrRuU@$]{0,2}\\{0,7}(?P<quote>["'`])(?P<quoted>(?:(?!(?P=quote))[^\n\\]){1,200})\\{0,7}(?P=quote)"""
)
_ITEM = re.compile(
    rf"(?:{_QUOTED}|(?P<bare>[^\s,;、，；\[\](){{}}\"'`]{{1,200}}))(?:\.to_string\(\)|\.into\(\))?", re.ASCII
)
_NEXT = re.compile(
    r"\s{0,80}[,;]\s{0,80}(?:(?:#|//)[^\n]{0,80}\n\s{0,80})?|[ ]{1,4}(?=[\"'])|\s{1,80}(?=[!-~])"
)
_DASH = re.compile(r"(?:[ \t]{0,8}(?:#[^\n]{0,80})?\n)(?P<indent>[ \t]{0,40})-[ ]{1,4}(?=[^\s])")
_LINE_ITEM = re.compile(
    rf"(?:{_QUOTED}|(?P<bare>[^\s#\"'`][^\s]{{3,200}}))(?=[ \t]{{0,8}}(?:#[^\n]{{0,80}})?(?:\n|\Z))", re.ASCII
)
_SPOKEN = re.compile(r"[\"'`“「]?(?P<bare>[!-~]{5,64}?)[\"'`”」]?(?=[,;.]?(?:\s|\Z)|[、，；和与及以。])")
_AND = re.compile(
    r"[ ]?[,;、，；][ ]?(?:and[ ]|or[ ])?|[ ](?:and|or|&|/|then)[ ](?:then[ ])?|[ ]?[和与及](?:者)?[ ]?|[ ]?以及[ ]?"
)
# Prefixes of keys that are not secret.
_PUBLIC = ("public", "pub", "ssh", "authorized", "primary", "foreign", "partition", "sort", "cache")


def spans(text: str, places: Sequence[int]) -> Iterator[tuple[Span, str]]:
    """Yield the secret items of lists, with their kind.

    A list is walked once, however many of its items contain names of secrets.

    Args:
        text: The text.
        places: The ascending offsets of words for secrets.
    """
    after = 0
    for at in places:
        name = _NAME.match(text, at) if at >= after else None
        opened = None if name is None else _OPENS.match(text, name.end())
        if name is None or opened is None:
            continue
        is_password = name["password"] is not None
        if not is_password and text[max(0, at - 12) : at].lower().rstrip(" _-").endswith(_PUBLIC):
            continue
        if opened["open"]:
            items = _in_brackets(text, opened.end(), _CLOSES[opened["open"]])
        elif text.startswith("\n", opened.end()):
            items = _in_lines(text, opened.end())
        else:
            items = _in_sentence(text, opened.end())
        for start, end, is_bare in items:
            after = end
            if _is_secret(text[start:end], is_password=is_password, is_bare=is_bare):
                yield (start, end), KINDS[0] if is_password else KINDS[1]


def _in_brackets(text: str, at: int, closing: str) -> Iterator[tuple[int, int, bool]]:
    while True:
        item = _ITEM.match(text, at)
        if item is None:
            return
        group = "bare" if item["quote"] is None else "quoted"
        yield *item.span(group), False
        if text.startswith(closing, item.end()):
            return
        following = _NEXT.match(text, item.end())
        if following is None:
            return
        at = following.end()


def _in_lines(text: str, at: int) -> Iterator[tuple[int, int, bool]]:
    indent = None
    while True:
        dash = _DASH.match(text, at)
        item = None if dash is None else _LINE_ITEM.match(text, dash.end())
        if dash is None or item is None or indent not in {None, dash["indent"]}:
            return
        indent = dash["indent"]
        yield *item.span("bare" if item["quote"] is None else "quoted"), False
        at = item.end()


def _in_sentence(text: str, at: int) -> Iterator[tuple[int, int, bool]]:
    while True:
        item = _SPOKEN.match(text, at)
        if item is None:
            return
        start, end = item.span("bare")
        yield start, start + len(text[start:end].rstrip(".,;:!?)")), True
        following = _AND.match(text, item.end())
        if following is None:
            return
        at = following.end()


def _is_secret(said: str, *, is_password: bool, is_bare: bool) -> bool:
    """Return whether an item is a secret, and not a name of one, a description or code."""
    if not is_password:
        return not secret_values.is_reference(said) and (
            randomness.looks_random(said) or randomness.is_scrambled(said)
        )
    value = secret_values.SecretValue(0, 0, said, not is_bare, "")
    return (
        " " not in said
        and (secret_values.is_strong(said) or (not is_bare and secret_values.has_symbol(said)))
        and not secret_values.is_statement(said)
        and secret_values.is_secret(value, "password", shouts=False, spoken=is_bare)
    )
