"""Finds secrets in command lines and what they print, where the flag or the position identifies them, and in literals with a comment."""

import re

from memd.redact.rule import DIGIT, Find, Nearby, Rule, Span, matching, sought
from memd.redact.values import randomness, secret_candidates, secret_values
from memd.redact.values.fixed_places import QUOTED_OR_BARE, in_place, quoted_or_bare

# A quoted value of -p, attached or separate, is a password in any program.
_ATTACHED = re.compile(r"""-p(?=(?P<quote>["'])(?P<secret>[^\s"']{3,200})(?P=quote))""")
# Programs by their password flags; in other programs, -p is a port, a path or a project. _APART: the value may be separate.
# With MySQL's client it must be attached: a separate word after -p is the name of a database.
_APART: dict[str, tuple[str, ...]] = {
    "p": (
        "sshpass", "mongo", "psexec", "docker login", "podman login", "helm registry", "az login", "az ad", "az acr", "rabbitmqadmin",
        "impala", "cqlsh", "clickhouse-client", "twine", "rdesktop", "freerdp", "ncftp", "useradd", "usermod",
    ),
    "P": ("sqlcmd", "osql", "isql", "bcp", "ipmitool", "zip", "tsql", "snmp", "mosquitto_"),
    "a": ("redis-cli", "valkey-cli"),
    "w": ("ldap",),
    "k": ("openssl", "ossutil", "obsutil", "cosutil", "coscli"),
    "A": ("snmp",),
    "X": ("snmp",),
    "t": ("influx",),
}  # fmt: skip
_TOGETHER: dict[str, tuple[str, ...]] = {
    "p": (
        "sshpass",
        "mysql",
        "mariadb",
        "mongo",
        "7z",
        "rar ",
        "az login",
        "docker login",
        "zip",
        "impala",
        "cqlsh",
    ),
    "a": ("redis-cli", "valkey-cli"),
    "P": ("sqlcmd", "unzip", "bcp"),
}
_OF_MANY = frozenset("pPw")  # flags for passwords in so many programs that the value itself decides
_PUTTY = ("plink", "pscp", "psftp", "putty")
_USER = re.compile(
    r"""(?:-u|--user|--proxy-user|-U|-a|--auth)[ =]{0,2}(?P<quote>\\{0,7}["'])?(?P<name>[^\s:"'\\,%]{0,100}(?:\\{1,2}[^\s:"'\\,%]{1,60}(?=%))?)(?P<by>[:,%])(?:(?<=,)["'](?=[^\s"']{3,200}["']))?(?P<secret>(?(quote)[^"'\n\\]{3,200}|[^\s"'\\]{3,200}))"""
)
# The text between user name and password, by program.
_USES: dict[str, tuple[str, ...]] = {
    ":": ("curl", "wget", "http ", "https ", "xh ", "aria2c", "ftp "),
    ",": ("lftp",),
    "%": ("smb", "rpcclient", "net "),
}
_CLAUSES = 160  # characters before a flag in which its program is named
_PLACEHOLDERS = frozenset({"pass", "password", "passwd", "pwd", "secret"})


def _flagged(text: str, at: int) -> Span | None:
    attached = _ATTACHED.match(text, at + 1)
    if attached is not None and not attached["secret"].isdecimal() and "/" not in attached["secret"]:
        return None if secret_values.is_reference(attached["secret"]) else attached.span("secret")
    sign = text[at + 2 : at + 3]
    if sign not in _APART:
        return _named(text, at) if sign in {"U", "u", "-"} else None
    follows = text[at + 3 : at + 4]
    programs: tuple[str, ...]
    if sign == "p" and follows == "w" and text[at + 4 : at + 5] == " ":
        programs, start = _PUTTY, at + 5
    elif follows in {" ", "="}:
        programs, start = _APART[sign], at + 4
    elif sign in _TOGETHER:
        programs, start = _TOGETHER[sign], at + 3
    else:
        return None
    # Cheap checks first: of thousands of such flags in a row, none has a value.
    if text[start : start + 1] in {"", " ", "-", "\n", "\t"} or text.startswith("[REDACTED:", start):
        return None
    is_known = _runs(text, at, programs)
    value = secret_values.value_at(text, start) if is_known or sign in _OF_MANY else None
    if not is_known and (value is None or not secret_values.is_generated(value.text, ends_free=True)):
        return _named(text, at) if sign == "a" else None
    if value is None or secret_values.is_reference(value.text) or len(value.text) < 3:
        return None
    return value.start, value.end


def _named(text: str, at: int) -> Span | None:
    """Return the password in a "name:password" flag."""
    match = _USER.match(text, at + 1)
    if (
        match is None
        or secret_values.is_reference(match["secret"])
        or match["secret"].lower() in _PLACEHOLDERS
        or not _runs(text, at, _USES[match["by"]])
    ):
        return None
    return match.span("secret")


def _runs(text: str, at: int, programs: tuple[str, ...]) -> bool:
    """Return whether one of some programs is named in the command before a flag."""
    left = text[max(0, at - _CLAUSES) : at + 1].lower()
    line = left.rfind("\n") + 1
    if line and left.rstrip(" ").endswith("\\\n"):
        line = 0
    begin = max(line, left.rfind("&&") + 1, left.rfind(";") + 1)
    return any(left.find(program, begin) >= 0 for program in programs)


_VALUE = r"""(?:(?P<quote>\\{0,7}["'])(?P<quoted>[^"'\n]{3,200}?)(?P=quote)|(?P<bare>(?![一-鿿ぁ-ヿ가-힣])[^\s"'|<>-][^\s"'|<>，。；、]{2,200}))"""


def _behind(written: str, *, strong: bool = False) -> Find:
    """Return a Find for the value at a fixed position of a command.

    Args:
        written: A pattern of the command up to the value, from the anchor on.
        strong: Whether the value must have letters and digits, since the command is an English word too.
    """
    pattern = re.compile(written + _VALUE, re.IGNORECASE | re.VERBOSE)

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        if match is None:
            return None
        group = "bare" if match["quoted"] is None else "quoted"
        said = match[group]
        if group == "bare":
            said = said.rstrip(");,")
        if (
            secret_values.is_reference(said)
            or said.startswith("/")
            or (strong and not secret_values.is_strong(said))
        ):
            return None
        return match.start(group), match.start(group) + len(said)

    return find


# A comment after a literal says what it is: derive("hunter2") // the key that signs.
_COMMENTED = re.compile(
    r"[\])};,. ]{1,8}(?://|\#|--)[ ]?(?:[\w'’-]{1,20}[ ]){0,5}?(?:key|token|secret|password|passphrase)(?![a-z])",
    re.IGNORECASE,
)
_LITERAL = re.compile(r"(?P<quote>[\"'])(?P<secret>[^\s\"'\n]{8,200})(?P=quote)\Z")
_COMMENTS = tuple(
    f"{quote}{closed}{blank}{comment}"
    for quote in ('"', "'")
    for closed in ("", ")", ");", "))", ",", ";", "),")
    for blank in (" ", "  ")
    for comment in ("//", "#", "--")
)


def _commented(text: str, at: int) -> Span | None:
    if _COMMENTED.match(text, at + 1) is None:
        return None
    left = max(0, at - 202)
    match = _LITERAL.search(text[left : at + 1])
    if match is None:
        return None
    said = match["secret"]
    is_one = secret_values.is_generated(said, ends_free=True) or randomness.looks_random(said)
    return (left + match.start("secret"), left + match.end("secret")) if is_one else None


# A client or a wallet is created with its key: a random value, or a number of hexadecimal digits as such a key has.
_MADE_WITH = re.compile(
    r"(?:client|api|sdk|bot|wallet|signer|account|session|gateway|provider)(?:from[A-Za-z]{2,20})?[ ]?\(\s{0,20}"
    r"(?:(?:[\w.$&*]{1,40}|[\"'](?P<id>[^\"'\n]{1,60})[\"'])[ ]?,\s{0,20}){0,2}"
    r"(?:[\w.]{1,30}[ ]?[=:][ ]?)?[bBrRuUfFNL$@]{0,2}\\{0,7}[\"'](?P<secret>(?:0x)?[\w+/=.:-]{16,200})\\{0,7}[\"'](?P<behind>[^\n]{0,60})",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z]{0,4}(?:[0-9a-f]{16,64}|[0-9A-Z]{16,40})")
_DIGITS = re.compile(r"(?=[a-f]{0,32}[0-9])(?=[0-9]{0,32}[a-f])[0-9a-f]{32,64}")
_OF_WALLET = re.compile(r"(?:0x)?[0-9a-f]{64}", re.IGNORECASE)
_SAYS_KEY = re.compile(r"(?:key|token|secret)(?![a-z])|密钥|令牌", re.IGNORECASE)


def _made_with(text: str, at: int) -> Span | None:
    match = _MADE_WITH.match(text, at)
    if match is None:
        return None
    said = match["secret"]
    is_one = (
        randomness.is_scrambled(said)
        or (
            _OF_WALLET.fullmatch(said) is not None
            and text[at : at + 6].lower() in {"wallet", "signer", "accoun"}
        )
        or (randomness.looks_random(said) and _SAYS_KEY.search(match["behind"]) is not None)
        # The number of an account, and its key.
        or (match["id"] is not None and _IDENTIFIER.fullmatch(match["id"]) and _DIGITS.fullmatch(said))
    )
    return match.span("secret") if is_one and not secret_values.is_reference(said) else None


# The line below a command that asks for a secret, with its output alone.
_PRINTED = re.compile(
    r"[^\n]{0,200}\n[ \t]{0,4}(?P<secret>[!-~]{12,200}?)%?[ \t]{0,4}(?=\n|\Z)",
)
_PROMPT = re.compile(r"[ \t>]{0,8}(?:[\w.@:~/-]{0,60}[$#%❯»]|PS[ ][^\n>]{1,60}>)[ ]")
_LINE_BEFORE = 220  # characters


def _printed(text: str, at: int) -> Span | None:
    begin = text.rfind("\n", max(0, at - _LINE_BEFORE), at) + 1
    if _PROMPT.match(text, begin or max(0, at - _LINE_BEFORE), at) is None:
        return None
    match = _PRINTED.match(text, at)
    if match is None:
        return None
    said = match["secret"]
    is_one = randomness.is_scrambled(said) or secret_values.is_generated(said, ends_free=True)
    return match.span("secret") if is_one else None


# A random value in a Terraform state.
_DRAWN = re.compile(r"\"result\"[ ]?:[ ]?\"(?P<secret>[^\"\n]{8,200})\"")
_CHARS_OF_STATE = 600  # characters around the name of the resource


# echo hunter2 | sudo -S ...: the line is read backwards from the program that takes the password.
_ECHO = re.compile(
    r"""(?:echo|printf)[ ](?:-[neE]{1,3}[ ])?(?P<quote>["'])?(?P<user>[\w.-]{1,40}:)?(?P<secret>(?(quote)[^"'\n]{3,200}|[^\s"'|]{3,200}))(?(quote)["'])[ ]?\|[ ]?(?:[^\s|]{1,40}[ ]){0,6}\Z"""
)
_TAKES = re.compile(r"chpasswd|kinit\b|passwd[ ]--stdin|--?password-stdin|--with-token|-S[ ]")
# The text before its anchor.
_TAKES_BEFORE = {"p": ("ch", "--", "-"), "w": ("--",), "k": (), " ": ()}


def _piped(text: str, at: int) -> Span | None:
    before = next((one for one in _TAKES_BEFORE[text[at].lower()] if text.endswith(one, 0, at)), "")
    begin = at + 1 if text[at] == " " else at - len(before)
    if _TAKES.match(text, begin) is None:
        return None
    left = max(0, begin - 320)
    line = text.rfind("\n", left, begin) + 1 or left
    match = _ECHO.search(text[line:begin])
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    return line + match.start("secret"), line + match.end("secret")


_OF_NETRC = re.compile(r"(?:machine[ \t\n]{1,40}\S{1,200}|default)[ \t\n]{1,40}\Z", re.IGNORECASE)
_NETRC = re.compile(
    r"login[ \t\n]{1,40}\S{1,200}[ \t\n]{1,40}password[ \t\n]{1,40}(?P<secret>\S{1,400})",
    re.IGNORECASE,
)
_SQL = re.compile(
    r"""identified[ ](?:with[ ]\w{1,40}[ ])?by[ ](?:password[ ])?(?P<quote>\\{0,7}["'])(?P<secret>[^"'\n\\]{3,200})""",
    re.IGNORECASE,
)
_PGPASS = re.compile(
    r":(?:5432|5433|5434|5439|6432|15432|26257|\*):(?P<rest>[\w*.-]{1,60}:[\w*.-]{1,60}:)(?P<secret>(?:\\[:\\]|[^\s:/\"'\\]){3,200})[ \t]{0,8}(?:\n|\Z|[\"'](?=[ \t]{0,4}(?:>|\n|\Z)))"
)
# A line of its own in a protocol log.
_SPOKEN = re.compile(
    r"auth[ ](?:(?:plain|login|xoauth2|cram-md5)[ ](?P<secret>[A-Za-z0-9+/]{8,2048}={0,2})(?=\s|\Z)|(?P<redis>[!-~]{6,200})(?=\n|\Z))",
    re.IGNORECASE,
)
_USER_PASS = re.compile(
    r"user[ ]\S{1,100}\r?\n(?:[0-9+<][^\n]{0,100}\n)?(?:[<>][ ])?pass[ ](?P<secret>[^\s]{3,200})",
    re.IGNORECASE,
)
_IMAP = re.compile(
    r"(?<=[a-z0-9][0-9][ ])login[ ]\"?[^\s\"]{1,100}\"?[ ]\"?(?P<secret>[^\s\"]{4,200})", re.IGNORECASE
)
_WINDOWS = re.compile(
    r"/p(?:ass(?:word)?)?:(?:(?P<quote>[\"'])(?P<quoted>[^\s\"']{4,200})(?P=quote)|(?P<secret>[^\s\"'=]{4,200}))",
    re.IGNORECASE,
)
_WINDOWS_USER = re.compile(r"/u(?:ser)?:|rdp", re.IGNORECASE)


def _secret_of(pattern: re.Pattern[str]) -> Find:
    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        return None if match is None or secret_values.is_reference(match["secret"]) else match.span("secret")

    return find


def _sql(text: str, at: int) -> Span | None:
    match = _SQL.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    is_one = (
        (text[at : at + 10].isupper() and match["secret"].lower() not in _PLACEHOLDERS)
        or secret_values.is_strong(match["secret"])
        or _OF_USERS.search(text[max(0, at - 120) : at]) is not None
    )
    return match.span("secret") if is_one else None


_OF_USERS = re.compile(r"\b(?:user|grant|role)\b|@", re.IGNORECASE)


def _netrc(text: str, at: int) -> Span | None:
    match = _NETRC.match(text, at)
    if (
        match is None
        or _OF_NETRC.search(text[max(0, at - 260) : at]) is None
        or secret_values.is_reference(match["secret"])
    ):
        return None
    return match.span("secret")


def _sent_to_server(text: str, at: int) -> Span | None:
    """Return the argument of AUTH, as sent to a mail server or Redis."""
    match = _SPOKEN.match(text, at)
    if match is None or text[at : at + 4] != "AUTH":
        return None
    if match["secret"] is not None:
        return (
            match.span("secret")
            if len(match["secret"]) >= 16 or secret_values.is_strong(match["secret"])
            else None
        )
    return match.span("redis") if secret_values.is_strong(match["redis"]) else None


def _of_windows(text: str, at: int) -> Span | None:
    match = _WINDOWS.match(text, at)
    if match is None or text[at - 1 : at] not in {" ", "'", '"'}:
        return None
    group = "secret" if match["quoted"] is None else "quoted"
    around = text[max(0, at - 120) : match.end() + 80]
    if secret_values.is_reference(match[group]) or _WINDOWS_USER.search(around) is None:
        return None
    return match.span(group)


# --- relay --hmac stoatweasel12, tnl run --tok=AAAE.p9.7qZ

_RARE_FLAG = re.compile(
    rf"--(?:hmac|tok|authkey|pw|passw|passwort|join-key|join-token|enrol?l?-(?:key|token)|psk|admin-pass|rpcpassword|rpc-secret)[ =](?:{QUOTED_OR_BARE})(?=\s|\Z|[\"'`,;)])",
    re.IGNORECASE,
)


def _rarely_flagged(text: str, at: int) -> Span | None:
    match = _RARE_FLAG.match(text, at)
    if match is None:
        return None
    said, span = quoted_or_bare(match)
    is_one = (
        DIGIT.search(said) is not None
        and not said.startswith(("/", ".", "~"))
        and secret_values.is_strong(said)
    )
    return span if is_one and not secret_candidates.names_thing(said) else None


# --- srun login -u 2267796004 -p niuniu1995

_WITH_USER = re.compile(
    r"-(?:u|U|user|username|-user(?:name)?)[ =][\"']?[\w.@\\+-]{2,64}[\"']?[ ](?:-p|-P|-pw|--?pass(?:word)?)[ =]?[\"']?(?P<secret>[^\s\"':/\\|<>$;&=-][^\s\"':/\\|<>$;&=]{4,63})(?=[\"']?(?:\s|\Z))"
)


def _with_user(text: str, at: int) -> Span | None:
    match = _WITH_USER.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    said = match["secret"]
    is_one = secret_values.is_strong(said) and re.search("[A-Za-z]", said) is not None
    is_address = re.fullmatch(r"[\w-]{1,20}(?:[.,][\w-]{1,20}){1,8}", said) is not None
    return match.span("secret") if is_one and not is_address else None


RULES = (
    Rule("password-flag", "password", (" -",), _flagged),
    Rule("password-flag-below", "password", ("\\\n-",), lambda text, at: _flagged(text, at + 1)),
    Rule("printed", "password", ("pass", "secret", "token", "credential"), _printed),
    Rule(
        "terraform-state",
        "password",
        ("random_password", "random_string"),
        walk=sought(_DRAWN, before=_CHARS_OF_STATE, behind=_CHARS_OF_STATE, width=220),
    ),
    Rule("netrc", "password", ("login",), _netrc),
    Rule("sql-user", "password", ("identified",), _sql),
    Rule(
        "pgpass",
        "password",
        (":5432:", ":5433:", ":5434:", ":5439:", ":6432:", ":15432:", ":26257:", ":*:"),
        _secret_of(_PGPASS),
    ),
    Rule("piped", "password", ("passwd", "password-stdin", "with-token", "kinit", " -s "), _piped),
    Rule("server-auth", "password", ("auth",), _sent_to_server, skips_prose=True),
    Rule("server-user", "password", ("user ",), _secret_of(_USER_PASS)),
    Rule("server-login", "password", ("login",), _secret_of(_IMAP)),
    Rule("windows-flag", "password", ("/p",), _of_windows),
    Rule(
        "pass-argument",
        "password",
        ("pass",),
        _behind(
            r"""pass(?:(?<=[ "'=]pass):|(?:(?<=storepass)|(?<=keypass))[ ]|(?:(?<=htpass)wd)[ ]-(?:nb|bn|nbB|nBb|Bbn)[a-zA-Z]{0,2}[ ]\S{1,60}[ ]|(?:(?<=htpass)wd)[ ]-[a-zA-Z]{0,4}b[a-zA-Z]{0,4}[ ]\S{1,120}[ ]\S{1,60}[ ]
            |(?:word)?[-_](?:command|cmd)[ =]["']?echo[ ](?:-n[ ])?
            |(?:word|phrase|wd)?(?:[-_]?file)?[ =]<\((?:echo|printf)[ ](?:-n[ ])?)"""
        ),
        skips_prose=True,
    ),
    Rule(
        "pass-directive",
        "password",
        ("pass",),
        _behind(
            r"pass(?:(?:(?<=requirepass)|(?<=auth_pass))|(?<=vncpass)wd[ ]<<<|(?<=change_pass)word[ ]\S{1,60}|(?<=wpa_pass)phrase[ ](?:\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|\S{1,60}))[ ]",
            strong=True,
        ),
        skips_prose=True,
    ),
    Rule(
        "pw-directive",
        "password",
        ("bindpw ", "bindpw\t", "rootpw ", "rootpw\t", "rootpw: "),
        _behind(r"(?:bind|root)pw:?[ \t]{1,16}", strong=True),
    ),
    Rule(
        "configured-auth",
        "password",
        ("auth",),
        _behind(r"(?:(?<=master)auth|(?<=_)authtoken|(?<=-)authtoken)[ ]", strong=True),
        skips_prose=True,
    ),
    Rule(
        "added-user",
        "password",
        ("user ",),
        _behind(r"(?:(?<=add_)user[ ]\S{1,60}|(?<=net[ ])user[ ]\S{1,60})[ ]", strong=True),
    ),
    Rule(
        "net-use",
        "password",
        ("net use",),
        _behind(r"net[ ]use[ ](?:[A-Z*]:?[ ])?\\{2,4}[^\s]{1,120}[ ](?:/user:\S{1,80}[ ])?", strong=True),
    ),
    Rule(
        "storage-alias",
        "key",
        ("mc alias set ", "mc config host add "),
        _behind(r"mc[ ](?:alias[ ]set|config[ ]host[ ]add)[ ]\S{1,40}[ ]https?://\S{1,120}[ ]\S{3,60}[ ]"),
    ),
    Rule("sqlplus", "password", ("sqlplus",), _behind(r"sqlplus[ ](?:-[a-z][ ])?[\w$]{1,40}/", strong=True)),
    Rule(
        "login-token",
        "token",
        ("login",),
        _behind(r"(?:(?<=vault[ ])|(?<=wandb[ ])|(?<=railway[ ]))login[ ]", strong=True),
    ),
    Rule(
        "here-token",
        "token",
        ("token",),
        _behind(r"(?<=--with-)token[ ]<<<[ ]?", strong=True),
        skips_prose=True,
    ),
    Rule(
        "wifi-psk",
        "password",
        ("psk",),
        _behind(r"(?:(?<=sec\.)|(?<=security\.)|(?<=:[ ])(?=psk[ ][\"']))psk[ ]"),
        skips_prose=True,
    ),
    Rule(
        "enable-password",
        "password",
        ("enable password ", "enable secret "),
        _behind(
            r"(?:(?<=\n)|(?<![^\n]))enable[ ](?:password|secret)[ ](?:level[ ][0-9]{1,2}[ ])?(?=(?-i:[A-Z]?[a-z]{2,}[A-Z][a-zA-Z]{3,40})[ ]{0,2}(?:\n|\Z))"
        ),
    ),
    Rule(
        "wifi-connect",
        "password",
        ("nmcli",),
        _behind(
            r"nmcli[ ](?:-\S{1,20}[ ]){0,3}d(?:ev(?:ice)?)?[ ]wifi[ ]connect[ ](?:\"[^\"\n]{1,60}\"|'[^'\n]{1,60}'|\S{1,60})[ ]password[ ]"
        ),
    ),
    Rule("archive-password", "password", ("rar ",), _behind(r"rar[ ][^\n|;&]{1,80}?[ ]-hp")),
    Rule(
        "here-password",
        "password",
        ("kinit", "vncpasswd", "chpasswd", "smbpasswd"),
        _behind(r"(?:kinit|vncpasswd|chpasswd|smbpasswd)\b[^\n<|;]{0,60}<<<[ ]?(?:[\"']?[\w.-]{1,40}:)?"),
    ),
    Rule(
        "environment-of-server",
        "password",
        ("setenv ",),
        _behind(r"setenv[ ]\w{0,40}(?:PASS|PWD|PASSWORD|SECRET|TOKEN)[ ]{1,4}"),
    ),
    Rule("sudo-given", "password", ("sudo -s",), _behind(r"sudo[ ]-S\b[^\n<]{0,80}<<<[ ]?")),
    Rule(
        "expected",
        "password",
        ('assword:"', "assword:'", 'assword: "', "assword: '", 'assword"', "assword'", "assword:\n"),
        _behind(r"assword[^\n\"']{0,8}[\"']?[;\s]{1,4}send(?:_user)?[ ](?:--[ ])?(?=[\"'])"),
    ),
    Rule(
        "password-set",
        "password",
        ("set password",),
        _behind(r"set[ ]password(?:[ ]for[ ][^=\n]{1,80}?)?[ ]?(?:=|to)[ ]?(?:password\()?(?=[\"'])"),
    ),
    Rule(
        "snmp-community",
        "password",
        ("community",),
        _behind(
            r"(?:(?<=snmp-server[ ])community|(?<=snmp-agent[ ])community[ ](?:read|write)|(?<=r[ow])community6?)[ ]",
            strong=True,
        ),
    ),
    Rule(
        "router-password",
        "password",
        (
            "password 7 ",
            "key 7 ",
            *(f"secret {kind} " for kind in "04589"),
            *(f"password {kind} " for kind in "0589"),
        ),
        _behind(
            r"(?:password|secret|key)[ ](?:7[ ](?=[0-9A-F]{8})|(?:0[ ](?=[!-~]{8})|[4589][ ](?=[$\w./]{8})))",
            strong=True,
        ),
    ),
    Rule(
        "cookie-file",
        "cookie",
        ("\ttrue\t", "\tfalse\t"),
        matching(
            r"\t(?:TRUE|FALSE)\t/[^\s]{0,100}\t(?:TRUE|FALSE)\t[0-9]{1,12}\t[^\s]{1,100}\t(?P<secret>[^\s]{12,4000})",
            re.IGNORECASE,
        ),
    ),
    Rule("key-in-comment", "key", _COMMENTS, _commented),
    Rule(
        "rpc-login",
        "api-key",
        ("login_with_api_key",),
        _behind(r"login_with_api_key[\"'],\s{0,40}[\"']params[\"'][ ]?:[ ]?\[\s{0,40}"),
    ),
    Rule("iwconfig-key", "password", ("key",), _behind(r"key[ ](?:s:)", strong=True), skips_prose=True),
    Rule(
        "made-with-key",
        "key",
        ("client", "api", "sdk", "bot", "wallet", "signer", "account", "session", "gateway", "provider"),
        _made_with,
        skips_prose=True,
    ),
    Rule(
        "authenticator-command",
        "code",
        ("oathtool",),
        matching(
            r"oathtool[ ](?:-{1,2}[\w=-]{1,24}[ ]){0,6}[\"']?(?P<secret>[A-Z2-7]{16,104}={0,6}|[0-9a-f]{20,128})(?![\w])",
            re.IGNORECASE,
        ),
    ),
)  # fmt: skip
"""Each kind of place on a command line."""
RARE_FLAGS = (
    Rule(
        "flag-of-secret", "token", ("--",), _rarely_flagged, needs=Nearby(re.compile("[a-z][ =]"), 0, 24, 2)
    ),
)
"""Flags for secrets of programs without a rule of their own."""
LOGINS_AND_PASSPHRASES = (
    Rule("database-login", "password", ("disql ",), in_place(r"disql[ ][\"']?[\w$]{1,40}/(?P<quote>(?:\\?[\"']){1,3})?(?P<secret>(?(quote)[^\s\"'\\]{4,64}|[^\s@\"'/\\]{4,64}))(?=(?:\\?[\"']){1,3}|@|\s|\Z)")),
    Rule(
        "key-passphrase",
        "password",
        ("ssh-keygen",),
        in_place(r"ssh-keygen\b[^\n|;&]{0,120}?[ ]-[NP][ ](?P<quote>[\"'])(?P<secret>[^\"'\n$]{4,100})(?P=quote)"),
    ),
)  # fmt: skip
"""The login of a client of a database, and the passphrase of a key."""
BESIDE_USER = (
    Rule("user-flag-and-password", "password", ("-u ", "-user ", "-username ", "--user "), _with_user, needs=Nearby(re.compile("-[pP]"), 0, 80, 2)),
)  # fmt: skip
"""The flag of a password behind that of its user."""
