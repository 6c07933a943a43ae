"""Finds the end of the value after "password =" and the like, and classifies it as a secret or something else."""

import re
from typing import Literal

import msgspec

from memd.redact.values.randomness import (
    MOST_JUDGED,
    NAME,
    OTHER_SIGN,
    count_digits,
    has_digit,
    is_jumble,
    is_unlike_words,
    looks_mixed,
    looks_random,
    mixes,
    words_in,
)
from memd.redact.words.bip39 import words_of
from memd.redact.words.secret_words import SECRET_WORDS, either

LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
"""Latin letters, with and without accents, for a class of a regular expression."""

Strength = Literal["password", "token", "key"]
"""How certain a name makes a value.

A "password" may be a plain word. A "token" has letters and digits, or is long. After "key" alone, which has many other
meanings, only a random value counts.
"""


class SecretValue(msgspec.Struct, frozen=True):
    """The value after a separator."""

    start: int
    end: int
    text: str
    quoted: bool
    rest: str  # the following characters of the line, as far as they matter


_OPEN = re.compile(
    r"""[bBrRuUfFNL@$]{0,2}(?P<quote>\\{0,7}(?:\"{3}|'{3}|["'`])|&quot;|&#39;|["“”„「『‘’《«])"""
)
_CLOSING = {"“": "”", "”": "”", "„": "“”", "「": "」", "『": "』", "‘": "’", "’": "’", "《": "》", "«": "»"}
# Within ASCII quotes, a backslash escapes the next character; within a quoted string, quotes are escaped themselves. YAML,
# SQL and CSV escape a quote by doubling it.
_PLAIN = {
    quote: re.compile(rf"(?:\\.|[^\\\n{quote[0]}]{{1,64}}+|{doubled}(?!{quote})[^\\\n]){{0,256}}", re.DOTALL)
    for quote, doubled in (
        ('"', r'""(?=[^\s"\'`,;:.?|&>/=)\]}\\])|'),
        ("'", r"''(?=[^\s\"'`,;:.?|&>/=)\]}\\])|"),
        ("`", ""),
        ('"""', ""),
        ("'''", ""),
    )
}
# A quote within a word does not end the value: "a"b" as people write it, 'it'\\''s' as a shell requires it.
_GOES_ON = {
    quote: re.compile(
        rf"""{quote}(?:\\{quote}{quote})?(?=[A-Za-z0-9!#%^*+~_-])(?![A-Za-z_-][\w-]{{0,40}}=)[^\s"'`\\,;<>)\]}}]{{1,200}}{quote}?"""
    )
    for quote in ('"', "'")
}
_LATIN = r"!#-%(-+\--:=>?@A-Z\[\]^_a-z{}~¡-ɏ"  # without characters that may end a value
# Up to a blank or a character that no token has. A comma, a semicolon and an ampersand end it only if something new begins
# after them; a quote inside a word does not.
_BARE_PIECE = rf"""(?:[{_LATIN}]{{1,64}}+
    |[,;](?![\s"'\])}}]|\Z|[\w.\[\] -]{{1,40}}[=:]|(?:return|var|let|const|if|for|while|function|this|throw|else|break|case|default|continue|switch|try)\b)
    |&(?![\w.%\[\]-]{{1,40}}=|quot;|amp;|lt;|\#|\Z)
    |\\(?![nrtu"'\\]|\Z)
    |<(?![/a-zA-Z!]|\Z)
    |\|(?![\s|]|\Z)
    |(?<=\w)["'`](?=\w))"""
_BARE = re.compile(rf"{_BARE_PIECE}{{1,64}}", re.VERBOSE | re.ASCII)
_BEGINNING = re.compile(rf"{_BARE_PIECE}{{1,4}}", re.VERBOSE | re.ASCII)
_PROBE = 128  # characters by which an endless list of keys and values is recognised
_BLANK = re.compile(r"\s")
_LETTER = re.compile(r"[^\W\d_]")
_TRAILING = ".,;:!?*|"
# A variable that ends a call whose result is used: key).results
_HANDED_ON = re.compile(r"([A-Za-z_.]+)[)\]}](?=[.,;)\]}]|\Z)")
_PAIRS = ((")", "("), ("]", "["), ("}", "{"), (">", "<"))
_MARK = re.compile(r"\[REDACTED\b", re.IGNORECASE)


def value_at(text: str, at: int) -> SecretValue | None:
    """Return the value that begins at a place, without its quotes; None if there is none."""
    opened = _OPEN.match(text, at)
    if opened is not None:
        if text.startswith('" ', at) and _closes(text, at):
            return None
        start = opened.end()
        end = _quoted_end(text, start, opened["quote"])
        quoted = True
        # In a shell, backquotes enclose a command whose output is the value.
        if opened["quote"] == "`" and " " in text[start:end]:
            return None
    else:
        bare = _BEGINNING.match(text, at)
        if bare is None:
            return None
        said = bare[0]
        # An endless list of keys and values would be read again at each of its keys.
        if len(said) < _PROBE or said.count("=", 0, _PROBE) < 4:
            said = _whole(text, at)
        start, end, quoted = at, at + len(_trimmed(said)), False
    if start == end:
        return None
    line_end = text.find("\n", end, end + 80)
    rest = text[end : line_end if line_end >= 0 else end + 80]
    return SecretValue(start, end, text[start:end], quoted, rest)


def _closes(text: str, at: int) -> bool:
    """Return whether a quote closes one of its line, as behind a prompt: read -p "New password: " PW && export PGPASSWORD="$PW"."""
    left = max(0, at - 160)
    return text.count('"', text.rfind("\n", left, at) + 1 or left, at) % 2 == 1


def _whole(text: str, at: int) -> str:
    bare = _BARE.match(text, at)
    return "" if bare is None else bare[0]


def _quoted_end(text: str, start: int, quote: str) -> int:
    """Return the end of a quoted value; without a closing quote, it ends with the line."""
    plain = _PLAIN.get(quote)
    if plain is not None:
        match = plain.match(text, start)
        end = start if match is None else match.end()
        more = _GOES_ON[quote].match(text, end) if quote in _GOES_ON and end > start else None
        return end if more is None else more.end() - more[0].endswith(quote)
    limit = text.find("\n", start, start + 2048)
    limit = limit if limit >= 0 else min(len(text), start + 2048)
    ends = [text.find(close, start, limit) for close in _CLOSING.get(quote, (quote,))]
    found = [end for end in ends if end >= 0]
    if found:
        return min(found)
    bare = _BARE.match(text, start, limit)
    return start if bare is None else start + len(_trimmed(bare[0]))


def _trimmed(value: str) -> str:
    """Return a value without punctuation of the surrounding sentence or call."""
    if value.isalnum():
        return value
    called = _HANDED_ON.match(value)
    if called is not None:
        return called[1]
    while value:
        last = value[-1]
        opening = next((opens for closes, opens in _PAIRS if closes == last), None)
        if last not in _TRAILING and (opening is None or value.count(opening) >= value.count(last)):
            return value
        value = value[:-1]
    return value


_REFERENCE = re.compile(
    r"""\$[\w{(]|\?[A-Za-z]{2,30}\Z|@@?[A-Za-z_]{3,40}@{1,2}\Z|\(?(?:ConvertTo|Get|Read|New|Import|Export|Invoke|Unprotect)-[A-Z][A-Za-z]{2,30}\b|%\(?[A-Za-z_]\w*\)?[%s]|%[sdr](?![A-Za-z0-9])|%[A-Za-z]/|\{\{|[0-9]{1,4}\}\}|\{[A-Za-z_][\w.\[\]]*[}!:(]|\(\?|\#\{|@\{|<[^\s>]{0,60}>?\Z|\[[^\]]{0,60}\]\Z
    |(?:os\.environ|os\.getenv|getenv|process\.env|import\.meta|env|ENV|secrets|vars|var|local|data|self|this|args|config|cfg
      |settings|options|opts|params|request|req|ctx|context|props|state|form|user|std|System|Deno|vault|module|each)
      (?:\.|\[|\()[A-Za-z_"']
    |[(\[{][A-Za-z_.,:()]*[)\]}]?\Z|:[a-z]+:
    |!(?i:vault|secret|ref|sub|env|env_var|include|getatt|join|importvalue|reference)\b
    |(?:await|new|lambda|function|async|yield|not|return)\b
    |\){1,3}[?&]?\.[A-Za-z_]\w{0,40}(?:[(.]|\Z)            # ask("password: ").strip()
    |[*•●xX._#?…-]{3,}\Z|\*{3,}|[xX]{4,}|\.{3}|…
    |(?:ref\+)?(?:file|env|op|vault|ref|arn|secret|aws-sm|gcp-sm|keychain|exec|cmd|sops|ssm):(?://?|[A-Za-z_]{2})|arn:
    """,
    re.VERBOSE | re.ASCII,
)
_CALL = re.compile(
    r"""[A-Za-z_$][\w$]{0,40}(?:\.[A-Za-z_$][\w$]{0,40})?=(?:void|[a-z]\.[A-Za-z_$][\w$]{0,40})\Z|[A-Za-z_$][\w.$]{0,80}\((?:\)|\{|[bBrRuUfF]{0,2}["'])|[A-Za-z]{2,14}=\Z|[A-Za-z_][\w.:]{0,200}[(\[][\w.,:()\[\]*&=+?-]{0,200}\Z""",
    re.ASCII,
)
_EXAMPLE = re.compile(
    r"""(?:<|\[|\{)?(?:your|my-?own|enter|insert|replace|put|add|paste|fill|some|example|sample|dummy|placeholder|change[_-]?me|change[_-]?it|todo|tbd|fixme)
    (?:[-_ ]?[a-z]++){0,6}[-_]?(?:>|\]|\})?\Z
    |(?:redacted|removed|hidden|masked|omitted|censored|filtered|elided)\Z""",
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_CODE = re.compile(
    r"[A-Za-z_$][A-Za-z_$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$]++)++\Z|[a-z]++(?:_[a-z]++)++\Z|[a-z]++(?:[A-Z][a-z]++)++\Z"
)
_PLACE = re.compile(r"(?:(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\][\w.-]++){2,}+|/[a-z]++)[/\\]?\Z|~/", re.ASCII)
_CLASS = re.compile(r"(?:[A-Za-z_]{1,30}[0-9]{0,5}[a-z]{0,4}\.){1,6}(?:[A-Z][a-z]{2,20}[0-9]{0,5}){1,6}\Z")
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:)?(?:[/\\](?:[A-Za-z._-]++(?![0-9])|[a-z._-]*+[0-9]{1,4}+[a-z._-]*+)){2,}+[/\\]?\Z|(?:~|\.{1,2})/|https?://|s3://|gs://|data:"
)
_TYPE = re.compile(
    r"(?:Optional|Union|List|Dict|Option|Promise|Secret|SecretStr|Annotated|Final|ClassVar|Literal|Callable|Record|Map|Vec|Array|Maybe|Mapped|Column|Field|Sequence|Iterable|Awaitable)[\[<(]"
    r"|(?:str|string|String|bytes|int|integer|number|bool|boolean|object|any|Any|char|float|text|varchar|void|byte|uint8|u8"
    r"|usize|&str|SecretStr|CharField|Buffer|Uint8Array)\b(?:\[\]|\?(?![A-Za-z0-9])|\||\Z|[,;)=])"
)
# PBKDF2-SHA256, minLength:8: how a password is stored, and what it must be like.
_OF_ALGORITHMS = re.compile(
    r"(?:(?:bcrypt|scrypt|yescrypt|argon2(?:id|[id])?|pbkdf2|hmac|sha-?[0-9]{1,3}|md5|aes-?[0-9]{3}|hash(?:ed)?|salt(?:ed)?)(?:[-_/+]|\Z)){1,4}\Z|(?:min|max)[_-]?[a-z]{2,8}[:=][0-9]{1,4}\Z",
    re.IGNORECASE,
)
_COLOUR = re.compile(r"#(?:[0-9A-Fa-f]{3,4}|[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8})")
_CHARACTER_CLASS = re.compile(r"\^?\[[^\]\s]{2,80}\][+*{]")  # of a regular expression
_PARTICIPLE = re.compile(r"[a-z]{2,}(?:ed|ing|ly|able|ible|tion|ment|ness|ful|less|ive|ical|ous)\Z")
_MORE = re.compile(r"[ \t]+[^\s#/(\[|—–)-]|[ \t]*[(\[{=]|[ \t]*[一-鿿]|\.[A-Za-z_]|\(")
_UNIT = re.compile(
    r"[ \t]*(?:位|年|月|日|个|次|天|号|分|秒|元|字|种|条|款|小时|[a-z]{0,4}%|chars?\b|characters?\b|bits?\b|bytes?\b|days?\b|digits?\b|times\b)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"密码|口令|密钥|令牌|请|输入|错误|不|无|空|必填|登录|确认|修改|重置|忘记|设置|管理|正确|你|您|的"
)
# A quoted passphrase may contain "not" or "of".
_ASKS_IN_QUOTES = re.compile(
    r"密码|口令|密钥|令牌|请|输入|错误|不[能可得会对是符同一]|无效|为?空|必填|登录|确认|修改|重置|忘记|设置|管理|正确|你的|您|[这那某]|什么|怎么"
)
_DATE = re.compile(
    r"v?[0-9]{1,4}(?:[.:/-][0-9]{1,4}){1,6}(?:[-+.T_ ]?[a-z]{0,6}[0-9:.]{0,12}Z?)?\Z", re.IGNORECASE
)


def is_secret(
    value: SecretValue,
    strength: Strength,
    *,
    shouts: bool,
    spoken: bool,
    english: bool = True,
    alone: bool = False,
) -> bool:
    """Classify a value.

    Args:
        value: The value after a separator, without its quotes.
        strength: How certain its name makes it.
        shouts: Whether the name is in capitals like an environment variable: the value is then no code.
        spoken: Whether it is in a sentence, after "is" or a colon, where plain words are rarely secret.
        english: Whether the text around it is English, where a word in -ing describes a password and is none.
        alone: Whether name and value are alone on their line, as in a settings file and rarely in code.
    """
    text = value.text[:MOST_JUDGED].strip()
    least = 4 if strength == "password" else 6 if shouts else 8
    if len(text) < least or "[redacted" in value.text.lower():
        return False
    if alone and _OF_SETTINGS.fullmatch(text):
        return True
    if text.lower().strip("*_=") in HARMLESS_WORDS and not (
        shouts and strength == "password" and text.lower() not in SETTING_WORDS
    ):
        return False
    if is_something_else(text, quoted=value.quoted, shouts=shouts):
        return False
    if strength == "password":
        # The variable PWD holds the working directory.
        if _PLACE.match(text):
            return False
        return _is_password(value, text, shouts=shouts, spoken=spoken, english=english)
    if _BLANK.search(text) or _DATE.match(text) or not text.isascii():
        return False
    if strength == "key":
        return looks_random(text) and ("." not in text or len(text) >= 40)
    return _is_token(value, text, shouts=shouts, spoken=spoken)


_HYPHENED = re.compile(r"[a-z]{3,8}(?:-[a-z]{3,8}){3,11}")  # words as wallets draw them
# What stands for a value: a label in a language, or the name of a variable that ends with one, or with one and "here".
_OF_LABEL = re.compile(
    rf"(?:{either(SECRET_WORDS.passwords)})\w{{0,3}}[`'\"]?|[^\W\d_]{{2,12}}(?:[_ -][^\W\d_]{{2,12}}){{0,2}}[_ -](?:{either(SECRET_WORDS.passwords)})"
    r"(?:[_ -](?:aquí|aqui|hier|här|her|ici|qui|tutaj|buraya|здесь|сюда|тут))?",
    re.IGNORECASE,
)
# HIER_PASSWORT_EINTRAGEN: words in capitals, one of which is a label.
_TO_FILL_IN = re.compile(
    rf"<?(?:[^\W\d_]{{2,14}}[_ -]){{0,4}}(?:PASS(?:WORD|PHRASE|CODE)|{either([word.upper() for word in SECRET_WORDS.passwords])})(?:[_ -][^\W\d_a-z]{{2,14}}){{1,4}}>?"
)
# Values that begin with a dollar sign but are no variables: a word, digits and a word in capitals, or other characters.
_BEHIND_DOLLAR = re.compile(
    r"\$(?:[a-z]{2,20}[0-9]{2,4}[A-Z]{2,20}|[A-Z][a-z]{1,20}[0-9]{2,4}[a-z]{2,20}|(?=\w{0,40}[0-9])(?=\w{0,40}[A-Za-z])\w{2,30}[!#%^&*?~]\w{1,30})(?![\w.\[(])"
)
_OF_VARIABLES = re.compile(r"\$\w{8,40}", re.ASCII)


def _refers(text: str) -> bool:
    """Return whether a value refers to one stored elsewhere."""
    if _REFERENCE.match(text) is None:
        return False
    if not text.startswith("$") or text[1:2] in {"{", "("}:
        return True
    if _BEHIND_DOLLAR.match(text) is not None:
        return False
    is_drawn = _OF_VARIABLES.fullmatch(text) is not None and mixes(text.rstrip("0123456789"))
    # In random letters and digits, half of the characters are followed by one of another class; in names fewer.
    return not is_drawn or 2 * len(OTHER_SIGN.findall(text)) < len(text) - 1


def is_something_else(text: str, *, quoted: bool, shouts: bool) -> bool:
    """Return whether a value is a reference, an example, an algorithm, a path or, without quotes, the name of a type."""
    if _refers(text) or _EXAMPLE.match(text) is not None or names_algorithm(text):
        return True
    if not has_digit(text) and (_OF_LABEL.fullmatch(text) or _TO_FILL_IN.fullmatch(text)) is not None:
        return True
    if not quoted and (_TYPE.match(text) or _NAMED_TYPE.fullmatch(text)) is not None:
        return True
    # None of the following consists of letters and digits alone.
    return not text.isalnum() and (
        (_PATH.match(text) is not None and not mixes(text))
        or _CHARACTER_CLASS.match(text) is not None
        or names_place(text)
        or _COLOUR.fullmatch(text) is not None
        or (not quoted and _CALL.match(text) is not None)
        or (not quoted and not shouts and _CLASS.match(text) is not None)
    )


def may_be_plain(said: str) -> bool:
    """Return whether a word may be a password: it is no label, no type, and none that a form says of one."""
    return not (
        said.lower() in HARMLESS_WORDS
        or said.lower() in SECRET_WORDS.plain.function_words
        or is_reference(said)
        or is_something_else(said, quoted=False, shouts=False)
    )


def _is_password(value: SecretValue, text: str, *, shouts: bool, spoken: bool, english: bool) -> bool:
    if _BLANK.search(text):
        return _is_passphrase(text)
    if _HAN.search(text):
        return value.quoted and len(text) <= 20 and not _ASKS_IN_QUOTES.search(text)
    if text.isdecimal():
        return _UNIT.match(value.rest) is None
    if not any(sign.isalnum() for sign in text):
        return False
    if value.quoted or shouts:
        return _FIELD.search(text) is None
    return _is_bare_password(value, text, spoken=spoken, english=english)


def _is_passphrase(text: str) -> bool:
    """Return whether words in quotes are a passphrase and not a sentence about passwords."""
    if len(text) > 200 or _ASKS.search(text) is not None:
        return False
    said = _SAID_WORD.findall(text.lower())
    if has_digit(text):
        speaks = not _ADDRESSING_WORDS.isdisjoint(said) or _LIMIT.search(text) is not None
        return not (speaks and len(text.split()) >= 3)
    return len(said) >= 3 and SENTENCE_WORDS.isdisjoint(said)


_SAID_WORD = re.compile(r"[a-z']+")
# A quoted text with one of these words is a prompt for a passphrase.
_ASKING_WORDS = frozenset({"passphrase", "password", "secret", "enter", "your", "please", "example"})

# A quoted text with a number and one of these words is a message of a form.
_ADDRESSING_WORDS = frozenset({"enter", "your", "please", "must", "should"})
# "at least 8 characters", "in 30 seconds", "3 attempts left".
_LIMIT = re.compile(
    r"[0-9]\+?[ ](?:(?:or|and|to|oder|bis|ou|à|y|o|e|a|of|lub|veya|или|и|до)[ ]\w{1,8}[ ])?(?:(?!of|in|and)[^\W\d_]{3,14}[ ])?"
    r"(?:char(?:acter)?s?|letters?|digits?|numbers?|symbols?|words|seconds?|minutes?|hours?|days?|weeks?|months?|years?|attempts?|tries|times"
    r"|zeichen|buchstaben|ziffern?|zahl(?:en)?|sonderzeichen|sekunden?|minuten?|stunden?|tage?n?|monaten?|versuchen?"
    r"|caractères?|lettres?|chiffres?|secondes?|heures?|jours?|essais|tentatives?"
    r"|caracteres|letras|dígitos?|números?|segundos|minutos|horas|días?|dias|meses|intentos?|tentativas?"
    r"|caratteri|lettere|cifre|numer[io]|secondi|minuti|ore|giorni|tentativi|tekens|letters|cijfers?|seconden|uren|uur|dagen|pogingen"
    r"|znak(?:i|ów)|liter|cyfr\w?|sekund|minut|godzin|dni|prób|karakter|harf|rakam|saniye|dakika|saat|gün|deneme"
    r"|символ\w{0,3}|букв\w?|цифр\w?|секунд\w?|минут\w?|час\w{0,2}|дн\w{1,2}|попыт\w{1,2})(?!\w)",
    re.IGNORECASE,
)


def is_phrase(text: str) -> bool:
    """Return whether a text has three to twelve words, none of which asks for a password."""
    said = _SAID_WORD.findall(text.lower())
    return 3 <= len(said) <= 12 and len(text) <= 120 and _ASKING_WORDS.isdisjoint(said)


def _is_bare_password(value: SecretValue, text: str, *, spoken: bool, english: bool) -> bool:
    if (spoken and _DATE.match(text)) or _CODE.match(text) or _AMOUNT.fullmatch(text):
        return False
    if has_digit(text) or has_symbol(text):
        return True
    if english and spoken and _PARTICIPLE.match(text) and not value.rest.startswith("!."):
        return False
    # A plain word counts only if the sentence ends after it.
    return _MORE.match(value.rest) is None


# Dots or brackets, and digits among letters: no name or call in code has this form.
_OF_SETTINGS = re.compile(
    r"(?=[^0-9]{0,200}[0-9][A-Za-z(])(?=[^A-Z]{0,200}[A-Z])(?=[^a-z]{0,200}[a-z])[A-Za-z0-9][A-Za-z0-9!#%^*+?~-]{2,40}[.(][A-Za-z0-9.!#%^*()+?~-]{2,60}",
    re.ASCII,
)
_NAMED_TYPE = re.compile(
    r"_?[A-Z][A-Za-z0-9]{0,60}[a-z0-9](?:Key|Keys|Types?|Token|Secret|Text|Str|Bytes|Pass|Password|Store"
    r"|Provider)\b(?:[?,)\]|].{0,400})?|(?:[a-z0-9_]{1,30}\.){1,6}[A-Z][A-Za-z0-9]{0,60}(?:Key|Token|Type)s?"
)
_SNAKE = re.compile(r"_?[a-z]+[0-9]{0,3}(?:_[a-z]{2,}|_[0-9]{1,2}){1,8}[0-9]{0,3}")
_AMOUNT = re.compile(r"(?![0-9]{7,}[A-Za-z]{3})[0-9][0-9.,]{0,12}[A-Za-z]{1,3}", re.ASCII)
_HAN = re.compile(r"[一-鿿]")
# challengePassword: the name of a field.
_FIELD = re.compile(r"[a-z](?:Password|Passwd|Passphrase)\Z")


def _is_token(value: SecretValue, text: str, *, shouts: bool, spoken: bool) -> bool:
    has_letter = _LETTER.search(text) is not None
    if text.isdecimal():
        return shouts and len(text) >= 8
    if not has_letter:
        return False
    if has_digit(text):
        # app-secret-2, v1.2.3, token_1: names with a number.
        is_name = (
            NAME.match(text) is not None
            and (not text.isalnum() or len(text) < 10 or count_digits(text) < 2)
            and not looks_mixed(text)
            and not (
                len(text) >= 10
                and mixes(text)
                and is_unlike_words(text, most=0.45)
                and 2 * len(OTHER_SIGN.findall(text)) >= len(text)
            )
        )
        return (
            not is_name
            or (shouts and (len(text) >= 12 or _WORD_AND_NUMBER.fullmatch(text) is not None))
            or (value.quoted and (text.isalnum() or (mixes(text) and count_digits(text) > 1)))
        )
    # Names in code rarely have single lower-case letters between capitals.
    if looks_mixed(text) or is_jumble(text) or (len(text) >= 16 and len(_ALONE.findall(text)) >= 3):
        return True
    if spoken or NAME.match(text) is None:
        return not spoken and len(text) >= 12 and has_symbol(text) and _CODE.match(text) is None
    return shouts and len(text) >= 10 and (text.isalpha() or _joins_words(text))


def _joins_words(text: str) -> bool:
    """Return whether a text is four or more of the words that wallets draw from, and hyphens."""
    words = text.split("-")
    return _HYPHENED.fullmatch(text) is not None and words_of("english").issuperset(words)


# Staging.417: no name in a program, where a variable has it.
_WORD_AND_NUMBER = re.compile(r"[A-Z][a-z]{2,16}[._@#-][0-9]{2,6}")
_ALONE = re.compile(r"(?<=[A-Z])[a-z](?=[A-Z])")


def is_reference(text: str) -> bool:
    """Return whether a text refers to a secret elsewhere, or is a placeholder: $VAR, <password>, ***, パスワード."""
    if not text.isascii() and _OF_LABEL.fullmatch(text) is not None:
        return True
    return _refers(text) or _EXAMPLE.match(text) is not None or _MARK.search(text) is not None


def is_given(text: str) -> bool:
    """Return whether what stands in a place for passwords alone is one, maybe a word: it is no reference and no word about passwords."""
    said = text.strip()
    return (
        len(said) >= _SIGNS_OF_GIVEN
        and any(map(str.isalnum, said))
        and said.lower() not in HARMLESS_WORDS
        and not is_reference(said)
        and not is_something_else(said, quoted=True, shouts=True)
    )


_SIGNS_OF_GIVEN = 4


def names_algorithm(text: str) -> bool:
    """Return whether a text says how passwords are stored, or what they must be like: PBKDF2-SHA256, minLength:8."""
    return _OF_ALGORITHMS.match(text) is not None


def is_about_passwords(text: str) -> bool:
    """Return whether Chinese words speak about a password and are none."""
    return _ASKS.search(text) is not None


def is_participle(text: str) -> bool:
    """Return whether a word ends like a participle or an adjective."""
    return _PARTICIPLE.match(text) is not None


# The name of a resource has parts that are called secrets or keys, and contains none.
_RESOURCE = re.compile(r"(?<![\w-])(?:arn|urn|crn):[\w:/.+-]{1,160}:\Z", re.ASCII)
_CHARS_OF_RESOURCE = 180


def is_in_resource(text: str, at: int) -> bool:
    """Return whether the word at a place is a part of the name of a resource: arn:aws:secretsmanager:region:account:secret:name."""
    return (
        text[at - 1 : at] == ":" and _RESOURCE.search(text, max(0, at - _CHARS_OF_RESOURCE), at) is not None
    )


def is_statement(text: str) -> bool:
    """Return whether a text is code, settings or an address and not a value."""
    if _STATEMENT.search(text) is not None:
        return True
    name = _NAME_BEFORE.match(text)
    if name is None:
        return False
    # What is drawn by chance may have an equals sign, too, and no name before it.
    said = name["name"]
    is_drawn = said != said.lower() and said != said.upper() and is_unlike_words(said)
    return not (is_drawn and name["sign"] == "=")


_STATEMENT = re.compile(r"[\w\])][=:(][\"'`]|://|[({;]\Z")
_NAME_BEFORE = re.compile(r"(?P<name>[A-Za-z_][\w.-]{1,60}?)(?P<sign>[=(:])")


# Ctrl+Shift+X, Alt-F8: what somebody presses where a password is typed.
_SHORTCUT = re.compile(
    r"(?:(?:ctrl|control|alt|option|opt|shift|cmd|command|win|windows|super|meta|fn)[+-]){1,4}(?:f[0-9]{1,2}|[a-z0-9]"
    r"|del(?:ete)?|esc(?:ape)?|tab|enter|return|space|ins(?:ert)?|home|end|pg(?:up|dn)|page(?:up|down)|up|down|left|right|backspace|prtsc|pause|break|num[0-9])",
    re.IGNORECASE,
)
# UserService.java:118, notes.md#L20: a line of a file.
_LINE_OF_FILE = re.compile(
    r"[\w./\\-]{1,100}\.[a-z]{1,5}(?:(?::[0-9]{1,6}){1,2}|#L[0-9]{1,6}(?:-L[0-9]{1,6})?)", re.ASCII
)


def names_place(text: str) -> bool:
    """Return whether a text is keys that are pressed together, or a line of a file: Alt+F8, UserService.java:118."""
    return _SHORTCUT.fullmatch(text) is not None or _LINE_OF_FILE.fullmatch(text) is not None


# A symbol between letters, as in no word, path or name in code: preview!Otter.
_SIGNED = re.compile(
    rf"(?=.{{8}})(?![A-Z]\w*#[a-z]\w*\Z)[{LATIN}0-9-]*[{LATIN}]{{3}}[!#&%~][{LATIN}]{{3}}[{LATIN}0-9-]*[!?]?",
    re.ASCII,
)


def is_strong(text: str) -> bool:
    """Return whether a text has letters and digits or a symbol between letters, and is no date, amount, file or reference.

    For places where little else identifies a secret.
    """
    if _SIGNED.fullmatch(text) is not None:
        return not is_reference(text)
    if not text.isalnum() and names_place(text):
        return False
    return (
        len(text) >= 5
        and has_digit(text)
        and _LETTER.search(text) is not None
        and not _DATE.match(text)
        and not _AMOUNT.fullmatch(text)
        and not _ALGORITHM.match(text)
        and (not _FILE.fullmatch(text) or (mixes(text) and count_digits(text) >= 2))
        and not _SNAKE.fullmatch(text)
        and not is_reference(text)
    )


def strong_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of a strong value at a place, without punctuation behind it; None if it is not strong."""
    said = text[start:end].rstrip(".,;)`\"'")
    return (start, start + len(said)) if is_strong(said) else None


def is_generated(text: str, *, ends_free: bool = False) -> bool:
    """Return whether a word of a sentence can only be a password: letters of both cases, two digits, and a symbol.

    Args:
        text: The word, without punctuation around it.
        ends_free: Whether the symbol may be its last character, as in a sentence that says what it is.
    """
    if (
        not 8 <= len(text) <= 40
        or _GENERATED.fullmatch(text) is None
        or not mixes(text)
        or count_digits(text) < 2
    ):
        return False
    signs = _OF_PASSWORDS.findall(text if ends_free else text[:-1])
    return (
        bool(signs)
        and set(signs) != {"+"}
        and _WITH_VERSION.search(text) is None
        and not is_reference(text)
        and text.count("%") < 2
    )


# Calls, paths, addresses and expressions in code have other characters too.
_GENERATED = re.compile(r"[A-Za-z0-9!@#$%^&*?~+._-]+", re.ASCII)
_OF_PASSWORDS = re.compile(r"[!@#$%^&*?~+]")
# name@1.2.3, ann@example.org, Class#method, HEAD~3
_WITH_VERSION = re.compile(
    r"@@|@v?[0-9^~][0-9.x*^~]{0,20}\Z|@[\w-]+\.[a-z]{2,}|\A@|\A[A-Z]\w*#[a-z]\w*\Z|~[0-9]{1,2}\Z|\A[#&][0-9A-Fa-f]+\Z|%[0-9A-F]{2}",
    re.ASCII,
)


_ALGORITHM = re.compile(
    r"(?:sha|md|base|utf|v|oauth|argon|bcrypt|aes|rsa|pbkdf|http|wpa|tls|ipv|ed|hs|rs|es|ps|x|mp|h|rfc|cve|iso|issue|step|page"
    r"|line|part|test|user|day|week|phase|sprint|version)[-_ ]?[0-9][0-9._-]{0,6}\Z",
    re.IGNORECASE,
)
_FILE = re.compile(r"[\w./-]{1,100}\.[a-z]{1,5}|[\w.-]{0,40}(?:/[\w.-]{1,40}){2,8}/?", re.ASCII)


def has_symbol(text: str) -> bool:
    """Return whether a text has a symbol that words do not have; one hyphen, dot or apostrophe is allowed."""
    return _SYMBOL.search(text) is not None


_SYMBOL = re.compile(r"[^\w\s'’./:-]|-[^-]*-|[A-Za-z]-[A-Za-z]")


# --- words that are no secrets


HARMLESS_WORDS = words_in(
    """
    a about above abstract accepted account admin-only aes aes-256 after again against all allowed
    already also always am an and any anything apikey are argon2 argon2id argument array as async at
    auth authentication authorization available await bad base64 basic bcrypt be bearer because been
    before being below between blank blocked bogus bool boolean both but by byte bytes cached can
    case-sensitive changed char checked class cleartext column common complex complicated confidential
    configured const cookie copied correct could created credential credentials def default delete
    deleted denied dict did different digest disabled do does done double dummy during each easy ed25519
    else email empty enabled encrypted entered enum every everything expired expires export exposed
    extends fake false field final fine flag flags float fn for form forms found from function generated
    generator given good had hard hard-coded hardcoded has hash hashed hashing have having he header her here hidden him hint
    his hmac how i identical if ignored implements import important in incorrect input insecure
    instanceof int integer interface into invalid is it its json just jwt kept key lambda ldap leaked
    length let list loaded locked logged login long lost management manager mandatory may md5 me might
    missing must my name nan necessary needed never new nil no none nor not nothing now null number
    oauth oauth2 object obvious of off ok okay old on one only onto option optional options or our out
    output over page param parameter pass passcode passed passphrase passwd password pasted pbkdf2 pem
    pending per permanent plain plaintext policy printed private prompt protected protection provided
    pub public pwd random read refused rejected removed request required reset reset-link response
    return returned reused revoked rotated rotation rsa safe same saml saved scram-sha-1 scram-sha-256 scrypt secret secure see
    self sensitive sent set sha-256 sha256 sha512 shall shared she short should shown simple since so
    some something specified ssl static still storage stored str strength string strong struct super
    supplied switch synced tbd temporary test-only text that the their them then there these they this
    those tls to todo token tokens toml too true two type typed typeof uint8 unavailable unchanged
    undefined under unique unknown unlocked unnecessary unsafe unset until up updated us used useful
    useless user username utf-8 valid validated value var varchar variable verified very visible void
    was we weak were what when where whether which who whom whose why will with within without would
    written wrong yaml yes you your
    """
) | frozenset(SECRET_WORDS.statements)
"""What a value says about itself, what a type or a keyword of a program is, what goes on in a sentence."""

SETTING_WORDS = words_in("disabled empty enabled false nil no none null optional required true undefined yes")
"""What a variable of an environment is set to, where it has no password."""

SENTENCE_WORDS = words_in(
    """
    a an and are at be can change confirm current enter for forgot incorrect invalid is it least login
    must my new not of or our passphrase password please required reset should sign that the this to was
    we will with wrong you your
    """
)
"""A text in quotes with one of these speaks about passwords. Passphrases are made of other words."""
