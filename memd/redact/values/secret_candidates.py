"""Grades how much a word looks like a password or a code, whatever stands around it.

Words of a language, names in programs, versions, names of files, digests and identifiers are none. What is left is graded by
its classes of characters: letters of both cases, digits and symbols, in random order or as a person puts them together.
"""

import re
from typing import Literal

import msgspec

from memd.redact.rule import Span
from memd.redact.values import joined_words, pinyin_and_korean, randomness, secret_values

Grade = Literal["sure", "mixed", "likely", "weak", "digits"]
"""From what can only be a password to what is often something else; "digits" is the grade of codes."""

_SHORTEST, _WORD_SIGNS = 5, 64  # the fewest and the most characters of a password
_SIGNS_OF_LIKELY = 7
_LEAST_TYPED = 6  # characters of a word of another script in Latin letters
_SIGNS_OF_MIXED = 8
_DIGITS_OF_LIKELY = 2
_SIGNS_OF_SUFFIX = 5  # characters of the suffix of a file, with its dot
_ROW_OF_DRAWN = 3  # the most letters of one case, or digits, in a row in random text
_AROUND = "\"'`*_()[]{}<>.,;:"
_ENDS = "!?"
_AROUND_CODE = _AROUND.replace("*", "") + _ENDS

# Symbols that no word, address or expression has between its letters.
_SIGN = re.compile(r"[!#$%&*+?^~=@]")
_SIGNED = re.compile(
    r"(?=[^A-Za-z]{0,40}[A-Za-z])(?=[^0-9]{0,40}[0-9])[!-~]{0,40}?(?<=[A-Za-z0-9])[!#$%&*^~=@][A-Za-z0-9][!-~]{0,40}"
)
# hunter#12, R&D-2024, x=5, HEAD~3: programs have a word, a symbol and a number, too.
_WORD_SIGN_NUMBER = re.compile(
    r"[A-Za-z][A-Za-z_-]{0,30}[!#$%&*^~=@]{1,2}[0-9][0-9.x]{0,8}|[0-9.]{1,8}[!#$%&*^~=@][A-Za-z]{1,30}"
)
_EXPRESSION = re.compile(
    r"[A-Za-z_][\w.]{0,30}=[^!#$%^*~+]{0,40}|[^!#$%^*~]{0,40}[&?][^!#$%^*~=]{0,40}=[^!#$%^*~]{0,40}|.{0,40}\*\*.{0,40}|.{0,40}[0-9]\.[A-Z][a-z].{0,40}"
)
_NAMED_THING = re.compile(
    r"(?:nvme|mmcblk|python|node|java|jdk|ubuntu|debian|windows|win|ios|macos|android|iphone|ipad|pixel|galaxy|server|host|web|db|user|test|version|chrome|postgres|mysql|php"
    r"|ruby|log|covid|usb|hdmi|ipv|wpa|tls|ssl|rtx|room|vlan|eth|wlan|keepass|1password|bcrypt|argon|pbkdf|base|rot|rsa|aes|ed|oauth|saml|fido|sha|md|gpt|claude"
    r"|react|vue|angular|nest|ruoyi|keycloak|adminlte|antd|bootstrap|redis|oracle|nginx|tomcat|spring|flutter|kotlin|swift|gradle|ruby|unity|utf|ryzen|pkce"
    r"|qwen|llama|gemini|opus|sonnet|salsa|chacha|blake)[a-z]{0,3}[-_.]?[0-9][\w.-]{0,6}"
    r"|(?:jwt|aes|rsa|sha|hmac|ecdsa|oauth|pkce|l?gpl|agpl|apache|bsd|mpl|gps|i[3579]|r[3579])-[\w.-]{1,14}",
    re.IGNORECASE,
)
# db-credentials-2, sys.user.initPassword, FRITZ!Box: what names a secret that is kept elsewhere, and a network.
_NAME_OF_SECRET = re.compile(
    r"[a-z][A-Za-z0-9_-]{0,30}(?:\.[A-Za-z][A-Za-z0-9_-]{0,30}){0,6}\.[A-Za-z0-9_-]{0,24}(?:[Cc]redential|[Ss]ecret|[Pp]assword|[Pp]asswd|[Pp]wd|[Tt]oken|[Kk]ey)s?|[a-z0-9.-]{1,40}-(?:credentials?|secrets?|passwords?|tokens?|keys?|tls|cert)(?:-[a-z0-9]{1,3})?|FRITZ!(?:Box|Repeater|WLAN|Powerline)(?:-[A-Z0-9-]{1,12})?"
)
_NAME_AND_VERSION = re.compile(
    r"[A-Za-z]{2,16}-?[0-9]{1,3}(?:\.[0-9]{1,4}){1,3}|[A-Za-z][\w.-]{1,40}[_-](?:v[0-9]{1,3}|v?[0-9]{1,3}(?:\.[0-9]{1,3}){1,3}|[0-9]{1,6}(?:ms|s|m|h|[kmg]i?b))|[0-9]{2,5}[x×*][0-9]{2,5}"
)
_FILE = re.compile(
    r"\.[a-z]{1,5}\Z|[/\\:=()<>]|_v?[0-9]{1,2}\.[0-9]|[_-]v[0-9]+\Z|[0-9](?:ms|s|m|h|[kmg]?b)\Z"
)
# "li-lei3", "bao-xiao-2": names of people and things in Latin letters, too.
_NAME_AND_DIGIT = re.compile(r"[a-z]{2,6}(?:[-_][a-z]{2,6}){0,2}[-_]?[0-9]")
_OF_PROGRAM = re.compile(
    r"[(){}\[\]<>;:,\"'`\\|/]|@[\w-]+\.|\.[a-z]{1,5}\Z|[a-z]\.[a-z]|\A-|\A[A-Z]{2,10}[-#][0-9][0-9-]*\Z|\A0x|\A[0-9a-f]{6,}\Z|\A[A-Z0-9]{1,40}+(?:_[A-Z0-9]{1,40}+){1,10}\Z"
    r"|&[a-z]{2,6}\b|&#|\A[$%]\w+\Z|%[0-9]\$[a-z]|\A[xX]\.509|\A[@#]\w+\Z|%(?:[2-7][0-9A-F]|0[9AD])(?![0-9]{2})|\A\$[A-Z]|@[a-z]+\Z|\Av[0-9]|\A[0-9]+-[a-z]+\Z|\A[a-z0-9]+(?:_[a-z0-9]+){0,6}_[a-z]+\Z|\w\.[A-Z]\w*\Z"
)
# AX3000-Pro2, RTX4070Ti, ThinkPad-T14s, KX19-ABT: models of products, and registered numbers.
_SERIES = re.compile(
    r"[A-Z]{1,5}-?[0-9]{1,6}(?:[A-Z][a-z]{1,7}|[A-Za-z]{1,3})?(?:[-_][A-Za-z0-9]{1,8}){0,2}|[A-Z0-9]{1,8}(?:-[A-Z0-9]{1,8}){0,4}"
)
_ROW = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_NUMBERED = re.compile(r"[A-Za-z]{2,12}[-_.]?[0-9]")  # value1, step-2
_YEAR = re.compile("(?:19|20)[0-9]{2}")
_TYPED_CODE = re.compile(r"[#*]?[0-9]{4,8}[#*]?")
_WORD_AND_NUMBER = re.compile(r"[A-Za-z]{4,16}_[0-9]{2,6}")
_WORDS_AND_NUMBER = re.compile(r"[a-z]{2,12}(?:_[a-z]{2,12}){1,3}_[0-9]{2,6}")
_WORDS = re.compile(
    r"[A-Za-z]{3,12}([-.])[A-Za-z]{3,12}(?:\1[A-Za-z]{3,12}){1,8}|[a-z]{3,12}(?:_[a-z]{3,12}){3,8}"
)
_NAME_BEFORE = re.compile(r"[\w.@+-]{1,40}[/:|=]")
_CODE = re.compile(
    r"[0-9]{3,8}[#*]?|[0-9]{1,2}(?:-[0-9]{1,2}){2,3}|[0-9](?:-[0-9]){2,5}|[0-9]{3,6}[A-F]|[A-F][0-9]{3,6}|[0-9]{3}[ -][0-9]{3}(?:[ -][0-9]{3})?"
    # With the signs of a keypad, of a parcel to fetch, and digits apart.
    r"|[#*][0-9]{2,8}[#*]?|[#*]?[0-9]{2,6}(?:[*#-][0-9]{2,6}){1,2}[#*]|[#*][0-9]{2,6}(?:[*#-][0-9]{2,6}){1,2}|[0-9]{2,6}[*#][0-9]{2,6}|[0-9]{1,2}-[0-9]{1,2}-[0-9]{3,5}(?<![12][09][0-9]{2})|(?![A-Z]{2,8}[0-9]{1,6}\Z)(?=[A-Z]{0,4}[0-9])(?=[0-9]{0,6}[A-Z])[A-Z0-9]{5,8}|[0-9](?:[ ][0-9]){3,5}|[0-9]{2,4}[ ][0-9]{2,4}"
)


class SecretCandidate(msgspec.Struct, frozen=True):
    """A word that may be a password or a code, with its place in the text."""

    start: int
    end: int
    said: str
    grade: Grade

    @property
    def has_sign(self) -> bool:
        """Whether it is graded by a symbol that words do not have, and not only by its random letters."""
        return (
            self.grade == "sure"
            and _SIGN.search(self.said) is not None
            and _WORD_SIGN_NUMBER.fullmatch(self.said) is None
        )


def names_thing(word: str) -> bool:
    """Return whether a word is a thing and its number: server2, python3.11."""
    return _NAMED_THING.fullmatch(word) is not None


def is_year(digits: str) -> bool:
    """Return whether a number may be a year of the last hundred or of the next."""
    return _YEAR.fullmatch(digits) is not None


def is_typed_code(word: str) -> bool:
    """Return whether a word is the digits of a code, maybe with a sign of a keypad around them, and no year."""
    return _TYPED_CODE.fullmatch(word) is not None and not is_year(word)


def password_alone(word: str, at: int) -> Span | None:
    """Return the span of the password that a line or a turn consists of; None: the word is likely something else."""
    found = password(word, at)
    if found is None or found.grade == "weak" or secret_values.is_statement(word):
        return None
    return found.start, found.end


def _within(word: str) -> str:
    """Return a number without the punctuation around it; one star before or behind it is a key of a keypad."""
    said = word.strip(_AROUND_CODE)
    return said.strip(_AROUND) if said.startswith("**") or said.endswith("**") else said


def is_code(word: str) -> bool:
    """Return whether a word without the punctuation around it may be a code."""
    return _CODE.fullmatch(_within(word)) is not None


def may_be_password(word: str) -> bool:
    """Return whether a word may be a password by its length and digits; a cheap check before `password`."""
    return len(word) >= _SHORTEST and not word.isdecimal()


def code(word: str, at: int) -> SecretCandidate | None:
    """Return a word without the punctuation around it; None if it is no code.

    Args:
        word: The characters between two blanks.
        at: The offset of the word in the text.
    """
    said = _within(word)
    if _CODE.fullmatch(said) is None:
        return None
    start = at + word.index(said)
    return SecretCandidate(start, start + len(said), said, "digits")


def password(word: str, at: int) -> SecretCandidate | None:
    """Return a word without the punctuation around it; None if it is no password.

    Args:
        word: The characters between two blanks; a name before it, as in "ann/hunter2", is removed.
        at: The offset of the word in the text.
    """
    said = word.lstrip(_AROUND).rstrip(_AROUND + "?")
    start = at + len(word) - len(word.lstrip(_AROUND))
    name = _NAME_BEFORE.match(said)
    if name is not None and secret_values.is_generated(said[name.end() :], ends_free=True):
        start, said = start + name.end(), said[name.end() :]
    grade = _graded(said)
    if (
        grade in {None, "weak"}
        and _LEAST_TYPED <= len(said) <= _WORD_SIGNS
        and _is_typed_abroad(said.rstrip(_ENDS))
    ):
        grade = "likely"
    return None if grade is None else SecretCandidate(start, start + len(said), said, grade)


def _is_typed_abroad(plain: str) -> bool:
    """Return whether a word is Chinese in Latin letters with a digit, or Korean on a keyboard of Latin letters."""
    return (
        _FILE.search(plain) is None
        and (_NAME_AND_DIGIT.fullmatch(plain) is None or pinyin_and_korean.is_typed_korean(plain))
        and plain.lower() not in secret_values.HARMLESS_WORDS
        and (pinyin_and_korean.is_romanised(plain) or pinyin_and_korean.is_typed_korean(plain))
    )


def _graded(said: str) -> Grade | None:
    plain = said.rstrip(_ENDS)
    if not _SHORTEST <= len(said) <= _WORD_SIGNS or said.isalpha() or said.isdecimal():
        return None
    if plain.lower() in secret_values.HARMLESS_WORDS or secret_values.names_algorithm(plain):
        return None
    if _NAME_OF_SECRET.fullmatch(plain) is not None or _NAME_AND_VERSION.fullmatch(plain) is not None:
        return None
    if (
        _NAMED_THING.fullmatch(plain) is not None
        or secret_values.is_reference(said)
        or secret_values.names_place(plain)
    ):
        return None
    if secret_values.is_generated(said, ends_free=True):
        return "sure"
    if _WORDS.fullmatch(plain) is not None:
        return None if "." in plain[-_SIGNS_OF_SUFFIX:] else "weak"
    if joined_words.is_worded(said):
        return "weak" if "." in said else "likely"
    if _OF_PROGRAM.search(plain) is not None or _EXPRESSION.fullmatch(plain) is not None:
        return "weak" if joined_words.is_worded_in_any_case(said) else None
    if _SIGNED.fullmatch(said) is not None and len(said) >= _SIGNS_OF_LIKELY:
        return "likely" if _WORD_SIGN_NUMBER.fullmatch(plain) is not None else "sure"
    return _graded_without_sign(said, plain)


def _graded_without_sign(said: str, plain: str) -> Grade | None:
    if not secret_values.is_strong(said):
        if _WORD_AND_NUMBER.fullmatch(plain) is not None:
            return "likely"
        return "weak" if _WORDS_AND_NUMBER.fullmatch(plain) is not None else None
    if randomness.is_scrambled(said):
        return "sure"
    if _NUMBERED.fullmatch(plain) is not None:
        return None
    if _SERIES.fullmatch(plain) is not None or plain == plain.upper():
        return "weak"
    digits = sum(map(str.isdigit, said))
    if len(said) >= _SIGNS_OF_MIXED and digits >= _DIGITS_OF_LIKELY and randomness.mixes(said):
        return "likely" if plain.rstrip("0123456789-_").isalpha() else "mixed"
    if (
        len(said) >= _SIGNS_OF_MIXED
        and randomness.mixes(said)
        and max(map(len, _ROW.findall(said))) <= _ROW_OF_DRAWN
    ):
        return "mixed"
    if len(said) >= _SIGNS_OF_LIKELY and (
        digits >= _DIGITS_OF_LIKELY or _SIGN.search(said) is not None or randomness.is_unlike_words(said)
    ):
        return "likely"
    return "weak"
