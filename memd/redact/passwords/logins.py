"""Finds passwords in texts about logging in: beside a user name, or joined to it."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span
from memd.redact.values import randomness, secret_candidates, secret_values
from memd.redact.values.joined_words import is_made_of_words
from memd.redact.values.secret_values import is_generated, is_strong, strong_span

# Behind a word for logging in: "login: admin / Hunter2x9".
_PAIR = re.compile(
    r"""(?:(?<![A-Za-z])(?:log-?in|creds?|credentials|htpasswd|basic[ ]auth|wi-?fi|guests?(?=[ ]?:)|(?P<auth>auth))(?![A-Za-z])|登[录陆入]|[账帐]号|[賬帳]號|账户
    |(?<![A-Za-z])(?:zugangsdaten|anmeldedaten|identifiants?|credenciales|credenziali|credenciais|inloggegevens|dane[ ]logowania|giriş[ ]bilgileri|thông[ ]tin[ ]đăng[ ]nhập)
    |учётные[ ]данные|учетные[ ]данные|доступы?|ログイン情報|로그인[ ]정보|بيانات[ ]الدخول)
    ["'*`]{0,2}(?:[ ](?:is|are|was|were)
    |[ ](?:for|to|of|für|pour|para|per|voor|do|для)(?:[ ][\w.-]{1,30}){1,4}?(?:[ ](?:is|are))?)?
    [ ]?(?:(?:[:=]|→|->)?[ ]{1,2}|(?<=[录陆入号號户])(?:[是为]|[:：])?[ ]?|[：])[`"']?
    (?P<user>[\w.@+-]{2,60})(?:[ ][/|][ ]|[/:|])(?P<secret>[!-~]{5,64})""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_MAIL = re.compile(
    r"@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4}[\"'`)]?(?P<by>[ ][/|–-][ ]|:|[ ]pw[ ]|[ ]{0,3}(?:->|→|=>)[ ]{1,3}|[ ]?[,;][ ]|[ ](?:and|with)[ ]|[ ]{1,3}(?=[!-~]{8}))[\"'`]?(?P<secret>[!-~]{6,64})",
    re.ASCII | re.IGNORECASE,
)
# A line of a map for relays: smtp.example.org:ann@example.org:hunter2, [smtp.example.org]:587 ann@example.org:hunter2
_OF_RELAY = re.compile(
    r"(?:\A|\n)[ \t]{0,4}(?:\*|[\w*-]{1,40}(?:\.[\w-]{1,40}){1,4}|\[[\w.-]{1,80}\](?::\w{1,10})?)[: \t]{1,8}[\w.+-]{1,64}\Z",
    re.ASCII,
)
_SURE_OF_MAIL = frozenset({" / ", " | ", " pw ", " - ", " – "})
_AT_HOST = re.compile(r":(?P<secret>[^\s:@/'\"`]{6,64})@(?=[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b)", re.ASCII)
_COPIES = re.compile(r"\b(?:scp|rsync|git|ssh|sftp|clone|remote)\b", re.IGNORECASE)
_PW = re.compile(r"(?<![A-Za-z])(?:pw|pass)[ ](?P<secret>[!-~]{5,64})(?=\s|\Z)", re.IGNORECASE)
_LOGS_IN = re.compile(r"\b(?:user(?:name)?|login|account|admin|root|mail)\b|@", re.IGNORECASE)

# root/hunter2: a path, unless the text is about logging in, or the word has characters that file names do not have.
_USER = re.compile(
    r"(?<![\w./~@-])(?P<user>root|admin|administrator)(?P<by>[/:])[ ]?(?P<secret>[!-.0-~]{6,64})(?![/\w])",
    re.ASCII | re.IGNORECASE,
)
_LOGS_IN_WITH = re.compile(
    r"\b(?:ssh|rdp|vnc|creds?|credentials?|(?:log(?:s|ged|ging)?|sign(?:s|ed|ing)?)[ -]?in(?:[ ](?:as|with|by))?)[ ]?[:=]?[ ][\"'`]?\Z",
    re.IGNORECASE,
)
_TO_LOG_IN = re.compile(r"[\"'`]?[ ](?:to|for)[ ](?:log|sign|ssh)", re.IGNORECASE)
_OF_FILES = frozenset("._-")
_OF_ADDRESSES = frozenset(".:@/")


def _user(text: str, at: int) -> Span | None:
    """Return a user name and password joined to one word."""
    match = _USER.match(text, at)
    span = None if match is None else strong_span(text, *match.span("secret"))
    if match is None or span is None:
        return None
    said = text[slice(*span)]
    if match["by"] == ":":
        is_made = len(said) >= 8 and randomness.mixes(said) and secret_values.has_symbol(said)
        return span if is_made or _is_drawn(said) else None
    if secret_values.has_symbol(said) and _OF_FILES.isdisjoint(said):
        return span
    if text[at - 1 : at] == "(" and _is_drawn(said):
        return span
    is_login = _LOGS_IN_WITH.search(text[max(0, at - 40) : at]) or _TO_LOG_IN.match(text, span[1])
    return span if said.isalnum() and is_login else None


# A user who logs in, and a word that is drawn by chance, alone on a line.
_ALONE = re.compile(
    r"(?:root|admin|administrator|ubuntu)[ ]{1,4}(?P<secret>[A-Za-z0-9!@#$%^&*?~+_-]{8,64})[ \t]{0,4}(?=\n|\Z)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"(?:^|\n)[ \t>*•-]{0,6}\Z")


def _alone(text: str, at: int) -> Span | None:
    match = _ALONE.match(text, at)
    if match is None or _BULLET.search(text[max(0, at - 8) : at]) is None:
        return None
    said = match["secret"]
    is_one = randomness.alternates(said) or is_generated(said, ends_free=True)
    return match.span("secret") if is_one else None


def _is_password(said: str) -> bool:
    """Return whether a word is a password, where a sentence announces one."""
    return is_generated(said, ends_free=True) or _is_drawn(said) or _HYPHENED.fullmatch(said) is not None


def _is_drawn(said: str) -> bool:
    """Return whether a word has letters of both cases and two digits that are not only at its end, and is no file name."""
    return (
        len(said) >= 8
        and len(re.findall("[0-9]", said)) >= 2
        and any(map(str.isupper, said))
        and any(map(str.islower, said))
        and not said.rstrip("0123456789").isalpha()
        and "." not in said
        and "/" not in said
        and ":" not in said
    )


def _paired(text: str, at: int) -> Span | None:
    match = _PAIR.match(text, at)
    if match is None or "/" in match["secret"]:
        return None
    if match["auth"] and text[match.start("secret") - 3 : match.start("secret")] != " / ":
        return None
    span = strong_span(text, *match.span("secret"))
    if span is not None or text[match.start("secret") - 3 : match.start("secret")] != " / ":
        return span
    named = _NAME_AND_NUMBER.match(match["secret"])
    return None if named is None else (match.start("secret"), match.start("secret") + named.end())


# Behind a user, what is the name of a variable elsewhere is a password.
_NAME_AND_NUMBER = re.compile(r"[a-z]{2,12}(?:_[a-z]{2,12}){0,3}_[0-9]{2,8}(?![\w-])")


def _with_mail(text: str, at: int) -> Span | None:
    """Return a password after an e-mail address; directly after it, only one that no file name resembles."""
    match = _MAIL.match(text, at)
    if match is not None:
        said = match["secret"].rstrip(".,;\"'`")
        by = match["by"].lower()
        ends_line = text[match.end() : match.end() + 1] in {"", "\n"}
        if by == ":" and ends_line and _OF_RELAY.search(text[max(0, at - 140) : at]) is not None:
            return match.span("secret") if secret_values.is_given(said) else None
        if by == ":" and (
            "/" in said
            or not (is_strong(said) and any(map(str.isupper, said)) and any(map(str.islower, said)))
            or _COPIES.search(text[max(0, at - 60) : at])
        ):
            return None
        if by.isspace() and not is_generated(said, ends_free=True):
            return None
        if by not in _SURE_OF_MAIL and by != ":" and not (len(said) >= 8 and randomness.mixes(said)):
            return None
        return strong_span(text, *match.span("secret"))
    left = max(0, at - 66)
    host = _AT_HOST.search(text[left : at + 20]) if text[at + 1 : at + 2].isdigit() else None
    if host is None or left + host.end() != at + 1:
        return None
    return strong_span(text, left + host.start("secret"), left + host.end("secret"))


def _short(text: str, at: int) -> Span | None:
    """Return a password after "pw", or after "pass" if a login precedes it."""
    match = _PW.match(text, at)
    if match is None or (text[at + 1] in "aA" and _LOGS_IN.search(text[max(0, at - 50) : at]) is None):
        return None
    return strong_span(text, *match.span("secret"))


# ssh ann@10.0.0.14 (kode: hav3gris): in brackets behind who logs in
_IN_BRACKETS = re.compile(
    r"\((?:(?:kode|kod|code|koodi)(?=[ ]?[:=])|pw|pwd|pass|passwort|ww|mdp|heslo|hasło|haslo|senha|clave|salasana|lösen)[ ]?[:=]?[ ]{1,2}(?P<secret>[!-~]{5,64}?)\)",
    re.IGNORECASE,
)
_WHO_LOGS_IN = re.compile(
    r"(?:[\w.+-]{1,40}@[\w.-]{2,60}|(?:user|login|admin|root|ssh|konto|bruger|benutzer|utente|usuario)[ :=]{1,2}[\w.@+-]{2,60}|(?<![a-z])(?:admin|root))[ ]\Z",
    re.IGNORECASE,
)


def _in_brackets(text: str, at: int) -> Span | None:
    match = _IN_BRACKETS.match(text, at)
    if match is None or _WHO_LOGS_IN.search(text[max(0, at - 110) : at]) is None:
        return None
    return strong_span(text, *match.span("secret"))


# "user is ann, pw "gravel-Monday"": words in quotes behind a short label and a user
_QUOTED = re.compile(
    r"(?<![A-Za-z])(?:pw|pwd|pass|password)[ ]?[:=]?[ ][\"“](?P<secret>(?=[a-z_.-]{0,40}[A-Z])[A-Za-z]{3,16}(?:[-_.][A-Za-z]{3,16}){1,4})[\"”]",
)


def _quoted(text: str, at: int) -> Span | None:
    match = _QUOTED.match(text, at)
    if match is None or not text.endswith((", ", "; ", "/ ", "and ", "with "), max(0, at - 8), at):
        return None
    is_one = _LOGS_IN.search(text[max(0, at - 50) : at]) is not None and is_made_of_words(match["secret"])
    return match.span("secret") if is_one else None


# The password of a meeting or shared file: "zoom pwd 774812". Elsewhere, digits alone are not enough.
_PWD_OF_DIGITS = re.compile(
    r"(?<![A-Za-z])(?:pwd|passcode)[ ](?:is[ ])?(?P<secret>[0-9]{6,10})(?![\w.,:/-])", re.IGNORECASE
)
_MEETS = re.compile(r"zoom|meeting|teams|webex|\bcall\b|conference|tencent|会议", re.IGNORECASE)


def _of_meeting(text: str, at: int) -> Span | None:
    match = _PWD_OF_DIGITS.match(text, at)
    return match.span("secret") if match is not None and _MEETS.search(text[max(0, at - 80) : at]) else None


# The name of a network makes the key beside it a secret: "SSID harbour-5G, key ...".
_KEY_OF_NETWORK = re.compile(
    r"(?<![A-Za-z_-])key(?:[ ]is|[ ]?[:=])?[ ][\"'`]?(?P<secret>[!-~]{8,63}?)[\"'`]?(?=[.,;)]?(?:\s|\Z))",
    re.IGNORECASE,
)


_NETWORK = re.compile(r"ssid|wi-?fi|wlan|(?<![a-z])network(?:[ ]?name)?[\"']?[ ]?[:=]", re.IGNORECASE)


def _of_network(text: str, at: int) -> Span | None:
    match = _KEY_OF_NETWORK.match(text, at)
    span = None if match is None else strong_span(text, *match.span("secret"))
    return None if span is None or _NETWORK.search(text, max(0, at - 70), at) is None else span


# "Log in as admin with hunter2", "it opens with ...".
_WITH = re.compile(
    r"(?:log(?:s|ged|ging)?[ -]?(?:in(?:to)?|on)|sign(?:s|ed|ing)?[ -]?in(?:to)?|login|rdp|ssh|unlock(?:s|ed)?|unzip(?:s|ped)?|extract(?:s|ed)?|(?:de|en)crypt(?:s|ed)?|(?:password-)?protected|opens?)(?:[ ][\w.@:'’-]{1,40}){0,5}?"
    r"[ ](?:with|using|via|by)[ ](?:the[ ])?(?:password[ ]|passphrase[ ]|pass[ ])?[\"'`“]?(?P<secret>[!-~]{6,64})",
    re.IGNORECASE,
)
_WITH_BOTH = re.compile(
    r"(?:get|gets|got|let|lets|log|logs|logged|sign|signs)(?:[ ](?:you|me|us))?[ -]?(?:in|on)(?:to[ ](?:it|the[ ]\w{1,16}))?[ ](?:with|as|using)[ ](?:user[ ])?[\"'`]?[\w.@+-]{2,40}[\"'`]?(?:[ ]and[ ]then|,?[ ]then|[ ]and)[ ][\"'`]?(?P<secret>[!-~]{6,64})",
    re.IGNORECASE,
)
_TYPED_WORD = re.compile(r"[A-Za-z]{2,16}[A-Z][a-z]{2,16}[0-9]{1,4}[!?#*]?")
_WORDS_WITH = re.compile(
    r"(?:unlock|decrypt)(?:s|ed)?(?:[ ](?:it|them|the[ ]\w{1,16}))?[ ](?:with|using|by)[ ][\"'`“]?(?P<secret>[a-z]{3,10}(?:[ -][a-z]{3,10}){3,9})[\"'`”]?[.]?[ \t]{0,4}(?=\n|\Z)"
)


def _with(text: str, at: int) -> Span | None:
    match = _WORDS_WITH.match(text, at)
    if match is not None:
        words = frozenset(re.split("[ -]", match["secret"]))
        is_one = words.isdisjoint(secret_values.SENTENCE_WORDS) and words.isdisjoint(
            secret_values.HARMLESS_WORDS
        )
        return match.span("secret") if is_one else None
    both = _WITH_BOTH.match(text, at)
    if both is not None and (typed := strong_span(text, *both.span("secret"))) is not None:
        said = text[slice(*typed)]
        is_one = _TYPED_WORD.fullmatch(said) is not None or secret_candidates.password(said, 0) is not None
        return typed if is_one else None
    match = _WITH.match(text, at)
    span = None if match is None else strong_span(text, *match.span("secret"))
    if span is None:
        return None
    said = text[slice(*span)].rstrip("”")
    is_one = _is_password(said) or (
        len(said) >= 8 and secret_values.has_symbol(said) and _OF_ADDRESSES.isdisjoint(said)
    )
    return (span[0], span[0] + len(said)) if is_one else None


# A master password opens everything stored under it.
_MASTER = re.compile(
    r"(?:(?<=1password )|(?<=bitwarden )|(?<=lastpass )|(?<=keepass )|(?<=keepassxc )|(?<=vault )|(?<=dashlane )|(?<=proton pass ))"
    r"master(?:[ ](?:pass(?:word|phrase)?|pw|key))?(?:[ ]is|[ ]?[:=])[ ]{1,2}[\"'`“]?(?P<secret>[!-~]{8,80})",
    re.IGNORECASE,
)
_SOME_WORDS = re.compile(r"[A-Za-z]{3,12}(?:[-_.][A-Za-z]{3,12}){2,9}")


def _master(text: str, at: int) -> Span | None:
    match = _MASTER.match(text, at)
    if match is None:
        return None
    said = match["secret"].rstrip(".,;\"'`”")
    is_one = is_strong(said) or _SOME_WORDS.fullmatch(said) is not None
    return (match.start("secret"), match.start("secret") + len(said)) if is_one else None


# "tried hunter2 for the printer and it works"
_HYPHENED = re.compile(r"[a-z]{3,12}(?:[-_][a-z]{3,12}){1,5}[-_]?[0-9]{2,4}", re.ASCII)
_TRIED = re.compile(
    r"(?:tried|try|typed|entered|used|using)[ ][\"'`“]?(?P<secret>[!-~]{6,64}?)[\"'`”]?[ ](?:for|on|at|in|with)[ ](?:[\w.'’-]{1,24}[ ]){1,5}?"
    r"(?:and|,|-|–|—)[ ]?(?:it|that)[ ](?:works|worked|did|let|got|was[ ]accepted|logged)",
    re.IGNORECASE,
)


def _tried(text: str, at: int) -> Span | None:
    match = _TRIED.match(text, at) if text[at - 1 : at] in {"", " ", "\n", "("} else None
    return match.span("secret") if match is not None and _is_password(match["secret"]) else None


# A network and its passphrase of 8 to 63 characters, in a line of text or in the content of a QR code.
_NETWORK_LINE = re.compile(
    r"(?:wi-?fi|wlan)[ ]?(?:\([^()\n]{1,20}\)[ ]?)?[:：][ ]{0,2}(?P<name>[^/|\n]{1,32}?)[ ][/|][ ](?P<secret>[^/|\n]{8,63}?)[ \t]{0,4}(?=\n|\Z)",
    re.IGNORECASE,
)
_SCANNED = re.compile(r"WIFI:(?:[A-OQ-Z]:(?:\\.|[^;\n]){0,64};){0,4}P:(?P<secret>(?:\\.|[^;\n]){4,64});")
# The label of a router: groups of four digits, or one word.
_OF_ROUTER = re.compile(
    r"(?:(?:(?:wlan|wpa2?)-?)?(?:netz(?:werk)?)?schl(?:ü|ue)ssel|(?:network|wireless|wpa2?)[ ](?:security[ ])?key|clé[ ](?:wi-?fi|wpa|de[ ]sécurité)|clave[ ]de[ ](?:la[ ])?red|chiave[ ]di[ ]rete)"
    r"[ ]?(?:\([^()\n]{1,20}\)[ ]?)?[:：=][ ]{0,3}(?P<secret>(?:[0-9]{4}[ ]){3,4}[0-9]{4}|[!-~]{8,63})",
    re.IGNORECASE,
)


def _network(text: str, at: int) -> Span | None:
    scanned = _SCANNED.match(text, at)
    if scanned is not None:
        return scanned.span("secret")
    match = _OF_ROUTER.match(text, at) or _NETWORK_LINE.match(text, at)
    return None if match is None or secret_values.is_reference(match["secret"]) else match.span("secret")


# A line of two strings: the user list of a connection pooler.
_LISTED = re.compile(r"\"[\w.@-]{1,63}\"[ ]\"(?P<secret>[^\"\s]{8,128})\"[ \t]{0,4}(?=\n|\Z)")


def _listed(text: str, at: int) -> Span | None:
    begin = text.rfind("\n", max(0, at - 66), at) + 1 or max(0, at - 66)
    match = _LISTED.match(text, begin)
    return match.span("secret") if match is not None and _is_password(match["secret"]) else None


RULES = (
    Rule(
        "network-passphrase",
        "password",
        (
            "wifi",
            "wi-fi",
            "wlan",
            "wpa",
            "netzwerkschl",
            "netzschl",
            "network ",
            "wireless ",
            "clé",
            "clave de",
            "chiave di rete",
        ),
        _network,
    ),
    Rule(
        "password-in-brackets",
        "password",
        ("(k", "(code", "(p", "(ww", "(mdp", "(h", "(senha", "(clave", "(salasana", "(lösen"),
        _in_brackets,
        needs=Nearby(DIGIT, 0, 80),
    ),
    Rule("password-quoted", "password", ("pw", "pass"), _quoted, needs=Nearby(re.compile('["“]'), 0, 14)),
    Rule("user-listed", "password", ('" "',), _listed),
    Rule(
        "login-paired",
        "password",
        (
            "login",
            "cred",
            "htpasswd",
            "basic auth",
            "wifi",
            "wi-fi",
            "guest",
            "auth",
            "登录",
            "登陆",
            "登入",
            "账号",
            "帐号",
            "賬號",
            "帳號",
            "账户",
            "zugangsdaten",
            "anmeldedaten",
            "identifiant",
            "credenci",
            "credenzial",
            "inloggegevens",
            "dane logowania",
            "giriş bilgileri",
            "thông tin đăng nhập",
            "учётные данные",
            "учетные данные",
            "доступ",
            "ログイン情報",
            "로그인 정보",
            "بيانات الدخول",
        ),
        _paired,
    ),
    Rule(
        "user-paired",
        "password",
        ("root/", "admin/", "administrator/", "root:", "admin:", "administrator:"),
        _user,
    ),
    Rule("mail-paired", "password", ("@",), _with_mail),
    Rule("user-and-password", "password", ("root ", "admin ", "administrator ", "ubuntu "), _alone),
    Rule("password-short", "password", ("pass", "pw"), _short, skips_prose=True),
    Rule(
        "login-with",
        "password",
        (
            "log",
            "sign",
            "rdp",
            "ssh",
            "unlock",
            "decrypt",
            "encrypt",
            "unzip",
            "extract",
            "protected",
            "open",
            "get in",
            "gets in",
            "got in",
            "get you in",
            "lets you in",
            "get on",
        ),
        _with,
    ),
    Rule("meeting-password", "password", ("pwd", "passcode"), _of_meeting),
    Rule("network-key", "password", ("key",), _of_network, skips_prose=True),
    Rule("password-tried", "password", ("tried", "try ", "typed", "entered", "used", "using"), _tried),
    Rule("password-master", "password", ("master",), _master),
)
"""Names and passwords, and passwords that no word before them names."""
