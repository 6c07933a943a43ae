"""Finds values of keys that are named like secrets: environment variables, JSON, YAML, TOML, INI, code and flags."""

import re

import msgspec

from memd.redact.rule import Find, Rule, Span, stem
from memd.redact.values import randomness, secret_values
from memd.redact.values.secret_values import Strength
from memd.redact.words.secret_words import either

# Suffixes that may follow the word in a name. "password_hash" and "token_limit" are no secrets.
_SUFFIX = (
    r"(?:[_.-]?(?:[0-9]{1,3}|value|val|plain|raw|prod|production|dev|staging|live|main|old|new|current|b64|base64|base|data))?"
    r"(?![A-Za-z0-9_]|-[A-Za-z0-9])"
)


class KeyWord(msgspec.Struct, frozen=True):
    """A word that the names of secrets end with."""

    name: str
    kind: str
    anchor: str
    pattern: str  # matched at the anchor: the rest of the word
    strength: Strength
    before: tuple[str, ...] = ()  # one of these must precede it, if any are given
    never: tuple[str, ...] = ()  # none of these may precede it
    hump: bool = False  # or a lower-case letter precedes it, if the word is capitalised: dbPass
    strict: bool = False  # the word is ambiguous: its value must have letters and digits


_KEYS_OF = (
    "api", "access", "secret", "private", "auth", "account", "encryption", "encrypt", "signing", "sign",
    "master", "service", "app", "client", "shared", "consumer", "deploy", "webhook", "hmac", "jwt",
    "cipher", "aes", "license", "root", "storage", "admin", "crypto", "bot", "rsa", "sas", "user",
    "application", "subscription", "preshared", "pre-shared", "write", "ingest", "admin api", "vault",
)  # fmt: skip
# "API key", "api_key", "apiKey", "X-Api-Key" and "api.key" are the same word.
_COMPOUNDS = tuple(f"{word}{gap}" for word in _KEYS_OF for gap in ("", " ", "_", "-", "."))
_PUBLIC = tuple(
    f"{word}{gap}"
    for word in ["public", "pub", "primary", "foreign", "partition", "sort", "cache", "idempotency", "dedupe"]
    for gap in ("", " ", "_", "-")
)

WORDS = (
    KeyWord(
        "password", "password", "pass", r"pass(?:word|wd|_?phrase|code|wort|(?<=mot de pass)e)", "password"
    ),
    # "pass" alone is an English word; as a part of a name it is a password.
    KeyWord(
        "pass",
        "password",
        "pass",
        "pass",
        "password",
        hump=True,
        before=(
            "_",
            "-",
            ".",
            "db",
            "smtp",
            "ftp",
            "user",
            "my",
            "ssh",
            "pg",
            "mail",
            "admin",
            "root",
            "redis",
            "require",
        ),
        never=(
            "to_",
            "last_",
            "next_",
            "first_",
            "second_",
            "by_",
            "one_",
            "each_",
            "this_",
            "do_",
            "no_",
            "per_",
            "all_",
        ),
    ),
    KeyWord("pass-alone", "password", "pass", r"(?<![A-Za-z0-9_.-])pass", "password", strict=True),
    KeyWord("pwd", "password", "pw", r"pwd", "password"),
    KeyWord("pw", "password", "pw", r"(?<![A-Za-z0-9.])pw", "password", strict=True),
    KeyWord("psk", "password", "psk", r"(?<![A-Za-z0-9_-])psk", "password", strict=True),
    KeyWord("psw", "password", "psw", r"(?<![A-Za-z])psw", "password"),
    KeyWord("contrasena", "password", "contrase", r"contrase(?:[ñÑ]|n\u0303?)a", "password"),
    # As keys of settings are called where they are not in English.
    *(
        KeyWord(word, "password", word, rf"(?<![a-z]){word}", "password", strict=True)
        for word in (
            "kennwort",
            "wachtwoord",
            "senha",
            "haslo",
            "heslo",
            "motdepasse",
            "mot_de_passe",
            "mdp",
            "losenord",
            "salasana",
            "adgangskode",
            "passord",
            "sifre",
            "parool",
        )
    ),
    KeyWord(
        "pre-shared", "password", "shared", r"shared(?:[_-]?key)?", "password", before=("pre", "pre_", "pre-")
    ),
    KeyWord("secret-phrase", "password", "secret", r"secret[_-]?(?:phrase|word)", "password"),
    KeyWord("secret", "secret", "secret", r"secret", "token"),
    KeyWord(
        "token",
        "token",
        "token",
        r"token",
        "token",
        never=(
            "publickey",
            "max_",
            "max",
            "num_",
            "pad_",
            "eos_",
            "bos_",
            "unk_",
            "sep_",
            "cls_",
            "mask_",
            "stop_",
            "per_",
        ),
    ),
    KeyWord("secret-id", "secret", "secret", r"secret[_-]?id", "token"),
    KeyWord("credential", "credential", "cred", r"credentials?", "token", never=("load", "loadencrypted")),
    KeyWord("key", "api-key", "key", r"key", "token", before=_COMPOUNDS),
    KeyWord(
        "wifi-key",
        "password",
        "key",
        r"key",
        "password",
        before=tuple(
            f"{word}{gap}" for word in ("wifi", "wi-fi", "wpa", "wpa2", "wep") for gap in (" ", "_", "-")
        ),
    ),
    KeyWord("keys-of-anything", "key", "key", r"key", "key", never=(*_COMPOUNDS, *_PUBLIC)),
    KeyWord(
        "sonar-login", "token", "login", r"login", "token", before=("sonar", "sonar.", "sonar_", "sonar-")
    ),
    KeyWord("reporter-id", "token", "reporter", r"reporter[_-]id", "token"),
    KeyWord("auth", "token", "auth", r"auth", "key"),
    # What the nodes of a cluster know each other by.
    KeyWord(
        "identity-value",
        "token",
        "identity",
        r"identity[._-]value",
        "token",
        before=("server.", "auth_", "auth.", "server_"),
    ),
    KeyWord("sign", "secret", "sign", r"(?<![A-Za-z])sign", "key"),
    KeyWord(
        "auth-of",
        "password",
        "auth",
        r"auth",
        "token",
        before=("basic_", "basic-", "rediscli_", "redis_", "http_", "proxy_"),
    ),
    KeyWord(
        "seed",
        "secret",
        "seed",
        r"seed",
        "token",
        before=tuple(f"{word}{gap}" for word in ("mfa", "2fa", "totp", "otp") for gap in (" ", "_", "-")),
    ),
)

_HEAD = re.compile(
    r"""\\{0,7}["'`]?[*_]{0,3}\]?                       # the end of the key: quotes, emphasis, environ["X"]
    (?:[ ]?[(（](?!["'])[^()（）\n]{1,30}[)）]|[ ]\[[^\[\]\n"']{1,30}\])?[*_]{0,3}[ \t]{0,40}
    (?:</(?:b|i|u|em|strong|code|span|label|td|th|p)>[ \t]{0,4})?
    (?:\#[ ]?(?==>))?(?P<sep>=>|:=|\?=|!==?|={1,3}|[:：＝]|->|→|⇒|➜|<-(?=[ ]?["'])|\|\|?|\?\?|\bor\b|,(?=[ \t]{0,4}\\{0,7}["'])
      |[.·…]{4,80}(?=[ ])|(?:就?是|为|即|如下|换成|换为|改成|改为|设为|设成|设置为|更新为|填)了?[ ]?[:：]?)
    [*_]{0,3}[ \t\u3000]{0,40}
    (?:</?(?:b|i|u|em|strong|code|kbd|tt|pre|span|td|p)(?:[ ][^<>\n]{0,80})?>[ \t]{0,8}){0,3}
    (?:!!?(?!ref|sub|vault|secret|env|include|getatt|join|import)[a-z]{1,10}[ ]|&[\w-]{1,40}[ ](?!=))?             # a tag or an anchor of YAML
    # Around a literal of a program: brackets, a line of its own, a type of strings.
    (?:(?:(?:new[ ])?(?:[\w.]{1,40}\((?:[^()\n"']{0,60},)?\s{0,40}(?:default|fallback|initial)[ ]?=[ ]?|[\w.]{1,40}\([^()\n]{0,60}\)[ ](?:or|\|\||\?\?)[ ](?=["'])|(?:String::from|String|str|bytes|SecretStr|SecretString(?:::(?:new|from))?|Secret|aws\.String|ptr|strdup|trim|md5|sha1|sha256|sha512|hash|crypt|bcrypt|b64decode|atob|Buffer\.from)?\(|(?<==)\{))?
      [ \t]{0,8}(?:\\?\n[ \t]{1,40})?(?=[bBrRuUfFNL$@]{0,2}["'`]))?
    """,
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
# The default value in the call that creates a field.
_DEFAULT_OF = r"(?:[\w.]{1,40}\((?:[^()\n\"']{0,60},)?\s{0,40}(?:default|fallback|initial)[ ]?=[ ]?)?"
_ANNOTATED = re.compile(
    rf"[A-Za-z_&][\w.\[\], |?&'<>]{{0,60}}?[ ]?=[ ]?{_DEFAULT_OF}(?=[bBrRuUfFNL$@]{{0,2}}[\"'`])", re.ASCII
)
_CHARS_OF_TYPE = 64  # before the equals sign
_SPACED = re.compile(
    r"""\\{0,7}["']?(?:[ \t]{1,40}|=)(?:(?:--(?:body|value|data)[ =]|-[bv][ ]|<<<[ ]?))?""", re.ASCII
)
_FLAG = re.compile(r"(?:^|[\s\"'`(\[,])--?[A-Za-z][\w.-]*\Z|(?:^|\s)--?\Z")
_BEFORE_NAME = re.compile(
    r"(?:^|[\s;&|])(?:ENV|ARG|setx?|set[ ]-[A-Za-z]{1,3}|setenv|export|config|login|set-env|secret[ ](?:set|put))[ \t]{1,4}\Z",
    re.ASCII,
)
_SET_BY_HAND = re.compile(r"(?:configure|config)[ ]set[ ]\Z", re.ASCII)
_ELEMENT = re.compile(
    r"""(?:["']?(?:[ ][^<>\n]{0,60})?>|</key>\s{0,40}<string>)\s{0,40}
    (?:<(?:value|plaintext|string)>\s{0,8})?
    (?:<!\[CDATA\[(?P<cdata>(?:(?!\]\]>)[^\n]){4,400})\]\]>|(?P<secret>[^<>\s]{4,400})(?=\s{0,40}</))""",
    re.ASCII | re.VERBOSE | re.IGNORECASE,
)
# A value that is apart from its key: value="..." in a tag, "value": "..." in the same object, the default of a variable or a
# template, or after a type annotation.
_PLACED = re.compile(
    r"""["'](?:[ ]{1,4}[\w:.-]{1,30}=["'][^"'<>\n]{0,80}["']){0,6}[ ]{1,4}(?:value|content)[ ]?=[ ]?(?=["'])
    |\\{0,7}["']?[ \t]{0,4},?(?:\s|\\{1,7}n){0,40}\\{0,7}["']?\bvalue\\{0,7}["']?[ ]?[:=][ ]?
    |["'][ ]?\{[^{}]{0,200}?\bdefault[ ]{0,8}=[ ]{0,8}(?=["'])
    |["']?\]["']?(?:\)\.(?:type|fill|sendKeys|setValue)\(|[ ]?,[ ]?)(?=["'])
    |["']\)?(?:\)\.|,[ ]?)(?:type|fill|send_?keys|set_?value|set_?text|enter_?text|press_?sequentially|val)\([ ]{0,2}(?=["'])
    |["'][ ]?,[ ]?(?=["'](?:(?=[^\s"']{0,40}[0-9])(?=[^\s"']{0,40}[A-Z])(?=[^\s"']{0,40}[a-z])(?=[^\s"']{0,40}[!@\#$%^&*?~])[^\s"'(){}]{8,64}|[0-9a-f]{32,128}|(?=[A-Z_a-z-]{0,40}[0-9])(?=[a-z_0-9-]{0,40}[A-Z])[\w+/=-]{20,128})["'])
    |[ ]by[ ]\w{1,20}[ ]?[({][ ]?(?=["'])
    |["'](?:[ ]?,[ ]?(?!default|fallback)[\w.]{1,20}=[^,\n]{1,40}){0,4}[ ]?,[ ]{0,2}(?:default|fallback)[ ]?[=:][ ]?(?=["'])
    # What a program takes where a variable of the environment is not set.
    |["'](?:\]|\)){1,2}[ ]?(?:or|\|\||\?\?|\?:)[ ]?(?=["'])
    |["']\){1,2}[ ]?\{[ ]?(?=["'])
    |["']\){1,2}\s{0,20}\.(?:unwrap_?or(?:_?else)?|or(?:_?else)?|get_?or(?:_?else)?|(?:with_?)?default(?:_?value)?|fallback)\([ ]?(?:\|\w{0,8}\|[ ]?|\(\)[ ]?[=-]>[ ]?|\{[ ]?)?(?=["'])
    |:["']?;?\s{1,4}send[ ](?=["'])
    |[ ]?\|[ ]?default\([ ]?(?=["'])
    |[ ](?:\*?string|\[\]byte|String|str)[ ]?=[ ]?(?=["'`])
    |\[[0-9]{0,4}\][ ]?=[ ]?(?=["'])
    |[ ]\{[ ]?get;[^{}\n]{0,40}\}[ ]?=[ ]?(?=@?["'])""",
    re.ASCII | re.VERBOSE | re.IGNORECASE,
)
# In a tag, the value may precede the name.
_VALUE_FIRST = re.compile(
    r"""\b(?:value|content)=(?P<quote>["'])(?P<secret>[^"'<>\n]{4,160})(?P=quote)[ ]{1,4}(?:name|key|id)=["']\Z"""
)
_PLACED_FIRST = frozenset("\"]', \\\n[|{\r")
# A literal argument of a function that sets the password.
_HANDED = re.compile(r"""[({][ ]?(?=[bBrRuUfFNL$@]{0,2}["'])""")
# A YAML block literal below the key, or one within a JSON string.
_LITERAL = re.compile(
    r"[|>][-+]?[0-9]?[-+]?[ \t]{0,8}(?P<gap>(?:\\{1,7}n|\n)[ \t]{1,40})(?P<first>(?!\s)(?:(?!\\{1,7}n)[^\n]){1,4096})"
)
# "login with ann, password hunter2": a word with letters and digits at the end of a sentence.
_LOOSE = re.compile(
    r"""(?P<gap>[ \t]{1,40}(?:of[ ])?[(（"'`*_]{0,3}|[(（【\[])(?P<secret>(?=[A-Za-z!@#$%^&*~+=?._-]{0,40}[0-9]|[A-Za-z]{3,30}[!\#&%~][A-Za-z]{3})(?=[0-9!@#$%^&*~+=?._-]{0,40}[A-Za-z])[A-Za-z0-9!@#%^&*~][A-Za-z0-9!@#$%^&*~+=?._-]{4,64})
    (?=["'`)）\]】*_,;!。，]{0,4}(?:\s|\Z|[一-鿿]))""",
    re.ASCII | re.VERBOSE,
)
_LOOSE_TOKEN = re.compile(
    r"""(?:[ ](?:provided|created|generated|issued|received|used|revoked|added|found|copied|below))?[:]?[ \t]{1,8}["'`]{0,3}(?P<secret>[\w.+/=~:-]{16,512})""",
    re.ASCII,
)
_HEX = re.compile(
    r"[ \t]{1,8}[\"'`]{0,3}(?P<secret>(?=[a-f]{0,32}[0-9])(?=[0-9]{0,32}[a-f])(?:[0-9a-f]{32,128}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}))(?![\w-])",
    re.ASCII | re.IGNORECASE,
)
_QUOTED_NEXT = re.compile(r"""[ \t]{1,4}(?=\\{0,7}["'`])""")
# "Password:" at the end of a line, and a line below, maybe in a code fence, with a value alone.
_BELOW = re.compile(
    r"""["'`*_]{0,3}(?:[ ](?:is[ ])?(?:below|here|follows)[ ]?[:：]?|(?:[ ](?:is|was|has|been|shown|only|once|now|generated|created|follows|following|as|set|to|the|in|full)){1,6}[:：]|(?:[ ](?:for|of|to)[ ][^\n:(]{1,40})?(?:[ ]?\([^()\n]{1,80}\))?[:：]|(?:在这里|在下面|见下|如下|是)?[ ]?[:：])[*_]{0,3}[ \t]{0,8}\n(?:[ \t]{0,8}\n)?(?:[ \t>]{0,8}```[a-z]{0,10}\n)?
    [ \t>*-]{0,8}["'`“「]?(?P<secret>[!-~]{6,200}?)["'`”」]?[ \t]{0,8}(?=\n|\Z)""",
    re.VERBOSE,
)


_PROSE = re.compile(
    r"[ ](?!(?:of|or|string|value|str|content|default|below|here|follows|is)\b)[a-z]{1,20}(?=[ \n)]|[,.;?!](?:\s|\Z)|\Z)|[).;!?](?=\s|\Z)"
)
_SAYS = re.compile(r"[\"'`*_]{0,4}[ \t]{0,4}(?:[:=：＝]|是|为)|>")
_DIGIT_SOON = re.compile(r"[^0-9]{0,120}[0-9]")
_NAMES = ("-", "_", "/")


def assigned(word: KeyWord) -> Find:
    """Return a Find for values assigned to names that end with a word."""
    ending = re.compile(word.pattern + _SUFFIX, re.IGNORECASE | re.ASCII)
    # For words that need a certain prefix: the last characters of those prefixes, for a quick check.
    last_signs = "" if word.hump else "".join({part[-1] for part in word.before})
    last_signs += last_signs.upper()

    def find(text: str, at: int) -> Span | None:
        if last_signs and text[at - 1 : at] not in last_signs:
            return None
        match = ending.match(text, at)
        if match is None:
            return None
        # Most occurrences are words of a sentence that continues.
        if (
            text[at].islower()
            and _PROSE.match(text, match.end()) is not None
            and not text.endswith(_NAMES, 0, at)
        ):
            return None
        # Random and strong values have a digit near their beginning.
        if (word.strict or word.strength == "key") and _DIGIT_SOON.match(text, match.end()) is None:
            return None
        end = match.end()
        if (
            word.strict
            and _SAYS.match(text, end) is None
            and (text[end : end + 1] not in {'"', "'", "\n"} or _PLACED.match(text, end) is None)
        ):
            return None
        if word.never or word.before:
            before = text[max(0, at - 16) : at].lower()
            if before.endswith(word.never) or (
                word.before and not before.endswith(word.before) and not (word.hump and _is_hump(text, at))
            ):
                return None
        span = _value_after(text, at, match.end(), word.strength)
        if word.strict and span is not None and not secret_values.is_strong(text[slice(*span)]):
            return None
        return span

    return find


def _is_hump(text: str, at: int) -> bool:
    """Return whether a word begins in the middle of a name like dbPass."""
    return at > 0 and text[at].isupper() and text[at - 1].islower()


def _value_after(text: str, at: int, end: int, strength: Strength) -> Span | None:
    key_end = text[at:end]
    name = stem(text, at, 48, _NAME_SIGNS)
    shouts = (name + key_end).isupper() and key_end.isupper()
    follows = text[end : end + 1]
    placed = _PLACED.match(text, end) if follows in _PLACED_FIRST else None
    if placed is not None:
        value = secret_values.value_at(text, placed.end())
        if value is not None and (
            shouts or _has_digit_or_sign(value.text) or secret_values.has_symbol(value.text)
        ):
            return _judged(value, strength, shouts=True, spoken=False)
    head = _HEAD.match(text, end)
    if text[at - len(name) - 1 : at - len(name)] in {'"', "'"} and (
        earlier := _earlier(text, at - len(name))
    ):
        return _judged(earlier, strength, shouts=shouts, spoken=False)
    if head is not None:
        span = _behind(text, head, strength, name=name + key_end, shouts=shouts, begins=at - len(name))
        return span or _below(text, end, strength)
    if follows in {">", " ", '"', "'", "<"} and (element := _ELEMENT.match(text, end)) is not None:
        inner = "secret" if element["cdata"] is None else "cdata"
        value = secret_values.SecretValue(*element.span(inner), element[inner], True, "")
        return _judged(value, strength, shouts=shouts, spoken=False)
    before = text[max(0, at - len(name) - 14) : at]
    if _is_ordered(before, before[: len(before) - len(name)], shouts=shouts):
        place = _SPACED.match(text, end)
        if place is not None:
            return _behind_flag(text, place.end(), strength)
    return (
        _handed(text, end, strength, name=name + key_end, shouts=shouts)
        or _below(text, end, strength)
        or _loose(text, end, strength, name)
    )


def _earlier(text: str, begin: int) -> secret_values.SecretValue | None:
    """Return the value of a tag that precedes its name."""
    left = max(0, begin - 240)
    found = _VALUE_FIRST.search(text[left:begin])
    if found is None:
        return None
    start, end = found.span("secret")
    return secret_values.SecretValue(left + start, left + end, found["secret"], True, "")


def _is_ordered(before: str, verb: str, *, shouts: bool) -> bool:
    """Return whether a key is a flag, or the argument of a command that sets it."""
    return (
        _FLAG.search(before) is not None
        or (shouts and _BEFORE_NAME.search(verb) is not None)
        or _SET_BY_HAND.search(verb) is not None
    )


def _behind_flag(text: str, at: int, strength: Strength) -> Span | None:
    value = secret_values.value_at(text, at)
    if value is None or value.text.startswith("-") or value.text.lower() in secret_values.HARMLESS_WORDS:
        return None
    if strength == "password" and value.quoted and secret_values.is_phrase(value.text):
        return value.start, value.end
    return _judged(value, strength, shouts=True, spoken=False)


def _handed(text: str, end: int, strength: Strength, *, name: str, shouts: bool) -> Span | None:
    """Return a literal directly after the key, separate or in brackets."""
    place = _QUOTED_NEXT.match(text, end)
    is_apart = place is not None
    place = place or _HANDED.match(text, end)
    value = None if place is None else secret_values.value_at(text, place.end())
    if value is None:
        return None
    # A keyword of a map, as in Clojure.
    is_keyword = text[end - len(name) - 1 : end - len(name)] == ":" and _SIGN.search(value.text) is not None
    if not ((is_apart and shouts) or is_keyword or _has_digit_or_sign(value.text)):
        return None
    if strength != "password":
        is_one = randomness.is_scrambled(value.text) if is_apart else randomness.looks_random(value.text)
        return (value.start, value.end) if is_one else None
    has_sign = shouts or is_keyword or any(map(str.isdigit, value.text))
    if is_apart and (" " in value.text or not has_sign):
        return None
    return _judged(value, "password", shouts=False, spoken=False)


def _has_digit_or_sign(text: str) -> bool:
    return any(map(str.isdigit, text)) or _SIGNS.search(text) is not None


_SIGNS = re.compile(r"[!@#$%^&*+=?~;<>{}|\[\]]")
_SIGN = re.compile(r"[^\w\s'’./:-]")


def _loose(text: str, end: int, strength: Strength, name: str) -> Span | None:
    """Return a strong value directly after the key, without a separator."""
    # "API-KEY 0123...": this many hexadecimal digits are no word of a sentence.
    digits = _HEX.match(text, end) if strength == "token" else None
    if digits is not None:
        return digits.span("secret")
    # "hibernate.connection.password" is the name of a setting.
    if name and not name.endswith("."):
        said_apart = _LOOSE_TOKEN.match(text, end) if strength == "token" else None
        bare = "" if said_apart is None else said_apart["secret"].rstrip(".,;:")
        is_one = randomness.is_scrambled(bare) or (bare.endswith("=") and randomness.looks_random(bare))
        return said_apart.span("secret") if said_apart is not None and is_one else None
    if strength == "password":
        match = _LOOSE.match(text, end)
        if match is None:
            return None
        said = match["secret"].rstrip(".,;")
        return (
            (match.start("secret"), match.start("secret") + len(said))
            if secret_values.is_strong(said)
            else None
        )
    match = _LOOSE_TOKEN.match(text, end)
    said = "" if match is None else match["secret"].rstrip(".,;:")
    if (
        match is None
        or not randomness.looks_random(said)
        or secret_values.is_reference(said)
        or "://" in said
    ):
        return None
    return match.start("secret"), match.start("secret") + len(said)


def _below(text: str, end: int, strength: Strength) -> Span | None:
    """Return the value that is alone on the line below a key."""
    match = None if strength == "key" else _BELOW.match(text, end)
    if match is None:
        return None
    said = match["secret"]
    value = secret_values.SecretValue(*match.span("secret"), said, False, "")
    if (
        said.endswith(":")
        or secret_values.is_statement(said)
        or not secret_values.is_strong(said)
        or not secret_values.is_secret(value, strength, shouts=False, spoken=True)
    ):
        return None
    return match.span("secret")


def _behind(
    text: str, head: re.Match[str], strength: Strength, *, name: str, shouts: bool, begins: int
) -> Span | None:
    """What stands behind a separator."""
    sep = head["sep"]
    at = head.end()
    is_annotated = sep == ":" and text.find("=", at, at + _CHARS_OF_TYPE) >= 0
    annotated = _ANNOTATED.match(text, at) if is_annotated else None
    if annotated is not None:
        at = annotated.end()
    if sep == ":" and text[at : at + 1] in {"|", ">"} and (literal := _LITERAL.match(text, at)) is not None:
        return _in_literal(text, literal, strength)
    if head[0] == ":" and secret_values.is_in_resource(text, begins):
        return None
    value = secret_values.value_at(text, at)
    # "password=***" was redacted before; what follows is something else.
    if value is None or _is_end(text, at, begins, head) or head[0].endswith("*** "):
        return None
    # ":password" is a placeholder of a database query.
    if head[0] == " :" and not value.quoted:
        return None
    line = text[text.rfind("\n", max(0, begins - 80), begins) + 1 : begins]
    # {"PWD": directory} in code; in settings files, a quoted name has a quoted value.
    if head[0][:1] in {'"', "'"} and not value.quoted:
        shouts = False
    # password=password passes a variable on, in code.
    if not value.quoted and not shouts and name.lower().endswith(value.text.lower()):
        return None
    if not _fits(sep, value, line):
        return None
    # Neither is prose: the flag of a command, and the keys and values that connect to a database.
    connects = _CONNECTS.match(value.rest) is not None or _CONNECTED.search(line[-160:]) is not None
    if head[0] == "=" and (connects or (name.startswith("--") and not value.text.isupper())):
        value = msgspec.structs.replace(value, rest="", quoted=value.quoted or connects)
    spoken = (
        (sep in {":", "：", "->", "→"} or "一" <= sep[0] <= "鿿")
        and not value.quoted
        and " " in line.strip(" \t-*>#\"'{")
    )
    alone = head[0] == "=" and not value.quoted and _is_line(text, value, line)
    # There are no expressions in an INI file: smtp.relay is no attribute of something.
    is_literal = alone and strength == "password" and _IN_SECTION.search(text, max(0, begins - 600), begins)
    value = msgspec.structs.replace(value, quoted=True) if is_literal else value
    return _judged(
        value, strength, shouts=shouts and sep in {"=", ":=", "?=", ":"}, spoken=spoken, alone=alone
    ) or (_exported(value, line) if strength == "password" and shouts and head[0] == "=" else None)


def _exported(value: secret_values.SecretValue, line: str) -> Span | None:
    """Return a passphrase with words of sentences, of a variable that a command exports."""
    is_one = value.quoted and _EXPORTS.fullmatch(line) is not None and secret_values.is_phrase(value.text)
    return (value.start, value.end) if is_one else None


def _is_line(text: str, value: secret_values.SecretValue, before: str) -> bool:
    """Return whether nothing is in a line but a key and its value; `before` stands before the key."""
    return text[value.end : value.end + 1] in {"", "\n", "\r"} and not before.strip()


# What stands before a key of an INI file: the name of its section, and lines with other keys.
_IN_SECTION = re.compile(
    r"(?:\A|\n)\[[\w .:/-]{1,40}\][ \t]{0,8}\r?\n(?:[ \t]{0,8}(?:[\w.-]{1,40}[ \t]{0,8}=[^\n]{0,160}|[#;][^\n]{0,160}|)\n){0,20}[ \t]{0,8}\Z"
)
# Another key and value of the line, as in a connection string or an inventory.
_CONNECTS = re.compile(r"[ ][a-z][a-z_]{1,40}=[^\s=]")
# The same before the last one.
_CONNECTED = re.compile(
    r"(?<!\w)(?:host|hostaddr|dbname|user|port|server|database|uid)=[^\s=;\"']{1,80}[ ](?:[a-z_]{2,20}=[^\s=]{1,60}[ ]){0,6}\Z"
)
# What sets a variable of the environment.
_EXPORTS = re.compile(r"[ \t$>#*-]{0,8}(?:export|ENV|declare[ ]-x|set[ ]-x|\$env:)[ ]{0,2}", re.IGNORECASE)


def _fits(sep: str, value: secret_values.SecretValue, line: str) -> bool:
    """Return whether a value fits to a separator and to the beginning of its line."""
    if sep in _OF_LITERALS and not value.quoted:
        return False
    # A table row has bars on both sides.
    if sep == "|" and not line.lstrip().startswith("|"):
        return False
    if sep in {"|", ","}:
        return any(map(str.isdigit, value.text)) or secret_values.has_symbol(value.text)
    return sep[0] not in ".·…→⇒➜" or value.quoted or secret_values.is_strong(value.text)


_OF_LITERALS = frozenset({"||", "??", ",", "or", "OR", "===", "==", "!=", "!==", "->"})


def _in_literal(text: str, literal: re.Match[str], strength: Strength) -> Span | None:
    """Return the lines of a YAML block literal if the first is a secret."""
    first = secret_values.SecretValue(*literal.span("first"), literal["first"].rstrip(), True, "")
    if not secret_values.is_secret(first, strength, shouts=False, spoken=False):
        return None
    end, gap = literal.end("first"), literal["gap"]
    while text.startswith(gap, end):
        till = text.find(gap[0], end + len(gap))
        end = len(text) if till < 0 else till
    return first.start, end


def _is_end(text: str, at: int, begins: int, head: re.Match[str]) -> bool:
    """Return whether a quote after the separator closes one that opened before the key, as in: the form `password=`."""
    opened = text[begins - 1 : begins]
    return (
        bool(opened)
        and opened in "\"'`"
        and text[at : at + 1] == opened
        and head[0][:1] not in {opened, "\\"}
    )


def _judged(
    value: secret_values.SecretValue, strength: Strength, *, shouts: bool, spoken: bool, alone: bool = False
) -> Span | None:
    is_one = secret_values.is_secret(value, strength, shouts=shouts, spoken=spoken, alone=alone)
    return (value.start, value.end) if is_one else None


_NAME_SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

# {"user":"hall-2","mdp":"marmelade"}: a word in a record that says who logs in.
_STRICT = tuple(dict.fromkeys(word.anchor for word in WORDS if word.strict))
_FIELD = re.compile(rf"(?:{either(_STRICT)})\"[ ]?:[ ]?\"(?P<secret>[^\W\d_]{{5,40}})\"", re.IGNORECASE)
_FIELD_BEFORE = re.compile(
    r"\"(?P<name>user|username|usr|login|session|account|email|mail|usuario|usuário|utente|utilisateur|identifiant|compte|benutzer|konto|gebruiker|kullanici|uzytkownik|anvandare|bruger|ssid)\"[ ]?:[ ]?\"(?!(?:(?P=name)|string|name|text|username)\")[^\"\nA-Z]{2,60}\",[^\n{}]{0,60}\"\Z"
)


def _beside_login(text: str, at: int) -> Span | None:
    match = _FIELD.match(text, at)
    if (
        match is None
        or not secret_values.is_given(match["secret"])
        or secret_values.is_participle(match["secret"])
    ):
        return None
    return match.span("secret") if _FIELD_BEFORE.search(text[max(0, at - 180) : at]) is not None else None


RULES = (
    *(
        Rule(
            f"{word.name}-assigned",
            word.kind,
            (word.anchor,),
            assigned(word),
            skips_prose=True,
            reads_value=True,
        )
        for word in WORDS
    ),
    Rule("field-beside-login", "password", tuple(f'{word}"' for word in _STRICT), _beside_login),
)
"""One rule a word, and one for words in a record."""
