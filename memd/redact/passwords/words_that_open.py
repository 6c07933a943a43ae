"""Finds passwords of words behind what they open, behind a label and beside a user: "you get in with falcon-zephyr-ginger"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_start
from memd.redact.values import secret_candidates, secret_values
from memd.redact.values.joined_words import is_made_of_words, is_worded_in_any_case
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORD = "[a-z]{3,12}"
# Words with a sign between, with a number behind or three at least; no name of a file and no name in a program has both.
_JOINED = rf"(?:{_WORD}(?:[-._]{_WORD}){{1,4}}[-._]?[0-9]{{2,4}}[!?#*]?|{_WORD}(?:[-.]{_WORD}){{2,8}}|[A-Z][a-z]{{2,12}}(?:[-._][A-Z]?[a-z]{{2,12}}){{1,4}}[-._]?[0-9]{{2,4}}[!?#*]?)"
_ENDS = r"(?=[\"'”’`»]{0,2}(?:[.,;!?)](?!\w)|[ ]?[(（–—]|[ ][-][ ]|[ \t]{0,4}(?:\n|\Z)|[ ](?:and|then|but|so|or|now|for)\b|[ ]?[，。；！？、）]))"
# --- "you get in with falcon-zephyr-ginger", "she logs in with waffle_ember745"

_WITH = re.compile(
    rf"(?:(?:get|gets|got|getting|let|lets|come|comes)[ ](?:you[ ]|me[ ]|us[ ]|them[ ])?(?:in|on|into[ ]\w{{1,16}})|log(?:s|ged|ging)?[ -]?(?:in|on)|sign(?:s|ed|ing)?[ -]?in|opens?|opened|unlocks?|unlocked|decrypts?|mounts?|einloggen|anmelden|connecte|entra|entro|entrar|inloggen|logt[ ]in|loguje|входит|вход)"
    rf"(?:[ ](?:it|there|to|the|her|his|its|at|as|on|fine|now|only|still)){{0,3}}(?:[ ](?!with|using)[\w.@-]{{1,30}})?[ ](?:with|using|via|by[ ]typing|mit|avec|con|com|met|z|с|passphrase|password)[ ]?[:=]?[ ]?[\"'`“«]?(?P<secret>{_JOINED}){_ENDS}",
)


def _with(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _WITH.match(text, at)
    is_one = match is not None and is_made_of_words(match["secret"])
    return match.span("secret") if match is not None and is_one else None


# --- with blanks: "the kdbx opens with: marble vortex bramble biscuit rhubarb 26", "the borg one is four words: lentil garnet lilac bagpipe"

_PHRASE = re.compile(
    rf"(?:(?:opens?|opened|unlocks?|unlocked|decrypts?|mounts?)[ ](?:it[ ])?(?:with|by|using)|(?:three|four|five|six|seven|eight|[3-8])[ ](?:random[ ]|little[ ]|plain[ ]|simple[ ]|lowercase[ ])?words(?:[ ]with[ ](?:spaces|blanks))?(?:[ ](?:in[ ](?:a[ ]row|order)|separated[ ]by[ ]spaces))?)"
    rf"(?:[ ]?[:=][ ]|[ ][–—-][ ])[\"'`“«]?(?P<secret>{_WORD}(?:[ ]{_WORD}){{2,8}}(?:[ ][0-9]{{1,4}})?)(?=[\"'”’`»]{{0,2}}[.!]?(?:[ \t]{{0,4}}(?:\n|\Z)|[ ][(]))"
)
_OPENED = re.compile(
    r"borg|restic|luks|vault|keepass|kdbx|bitwarden|1password|backup|archive|disk|drive|encrypt|crypt|master|wallet|veracrypt|ssh|gpg|pgp|(?<![a-z])key|log-?in|pass|phrase|zip|laptop|server|volume|usb|nas\b|wi-?fi|router|phone",
    re.IGNORECASE,
)


def _phrase(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _PHRASE.match(text, at)
    if match is None or not is_made_of_words(match["secret"]):
        return None
    is_one = _OPENED.search(text, line_start(text, at, 90), match.start("secret")) is not None
    return match.span("secret") if is_one else None


# --- cryptsetup luksOpen /dev/sdb1 vault  # type yapping comet nacho nimble

_REMARK = re.compile(
    rf"(?:cryptsetup|luksopen|veracrypt|zfs[ ]load-key|borg[ ]|restic[ ]|gpg[ ]|ssh-add|ssh[ ]-i|openssl[ ]|age[ ]-d|unzip[ ]|7z[ ]x|sudo[ ]mount|systemd-cryptsetup)[^\n#]{{0,120}}#[ ]?(?:(?:it[ ])?asks,?[ ])?(?:type|enter|pass(?:phrase|word)?|pw|say|answer|with|use|give)(?:[ ]is)?[ :=]{{1,2}}[\"'`]?"
    rf"(?P<secret>{_WORD}(?:[ -]{_WORD}){{2,8}}[0-9]{{0,4}}|[!-~]{{7,64}}?)[\"'`]?(?=[ \t]{{0,4}}(?:\n|\Z)|[ ]?[(,;])",
    re.IGNORECASE,
)


def _remark(text: str, at: int) -> Span | None:
    match = _REMARK.match(text, at)
    if match is None:
        return None
    said = match["secret"]
    is_one = (
        is_made_of_words(said)
        if said.replace(" ", "").replace("-", "").rstrip("0123456789").isalpha() and re.search("[ -]", said)
        else secret_values.is_strong(said) and not secret_values.is_reference(said)
    )
    return match.span("secret") if is_one else None


# --- "login jwest71 copper_magnet671", "printer admin → admin / trumpet_orbit194"

_BESIDE_USER = re.compile(
    rf"(?:log-?in|logon|sign-?in|user(?:name)?|account|(?:user[ ])?id|creds?|credentials|admin|zugang|compte|cuenta|conta|usuario|usuário|utente|utilisateur|benutzer|gebruiker|логин|учетка)"
    rf"[ ]{{0,2}}(?:(?:[:=]|is|->|→|–|-)[ ]{{1,2}})?[\"'`]?(?P<user>[\w.@+-]{{2,40}})[\"'`]?(?:[ ]/[ ]|[ ]\|[ ]|,[ ]|[ ]|/)[\"'`]?(?P<secret>{_JOINED})(?=[\"'`]?[.,;)]?(?:[ \t]{{0,4}}(?:\n|\Z)|[ ][(]|,[ ]|;[ ]|\)))",
)
_MARKED_USER = re.compile(r"[0-9@._]")
_USERS = frozenset({"admin", "root", "administrator", "user", "guest", "setup", "pi", "sysop", "support"})


def _beside_user(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalnum() else _BESIDE_USER.match(text, at)
    if match is None or DIGIT.search(match["secret"]) is None or not is_made_of_words(match["secret"]):
        return None
    by_sign = re.search("[/|]", text[match.end("user") : match.start("secret")]) is not None
    is_user = match["user"].lower() in _USERS or _MARKED_USER.search(match["user"]) is not None
    return match.span("secret") if is_user and (by_sign or "." not in match["secret"]) else None


# --- "密码：eggnog.sherbet.sandbox43", "wachtwoord nu bramble.bramble059": words with a number behind any label

_LABELS = (
    *(word for word in SECRET_WORDS.passwords if len(word) > 3),
    "password", "passphrase", "passwd", "passcode", "密码", "密碼", "口令", "パスワード",
)  # fmt: skip
_LABELLED = re.compile(
    rf"(?:{either(_LABELS)})[^\n.;!?。；！？\"]{{0,60}}?(?:[:：=＝]|[ ](?:is|to|was|now|still|nu|ist|jetzt|lautet|est|es|ahora|agora|ora|sendo|é|è|jest|teraz|это|теперь|är|on|->|→)(?=[ ])|[是为为成])[ ]{{0,2}}[\"'`“「«]?(?P<secret>{_WORD}(?:[-._]{_WORD}){{1,4}}[-._]?[0-9]{{2,4}}[!?#*]?|[a-z]{{4,14}}[0-9]{{3,4}})(?=[\"'`”」»]{{0,2}}(?:[.,;!?)](?!\w)|[ ]?[(（]|[ ][–—-]|[ \t]{{0,4}}(?:\n|\Z)|[ ]?[^\x00-\x7f]|[ ](?:kkk|lol|haha|ok|and|und|et|y|e|en|i|и)(?!\w)))",
    re.IGNORECASE,
)


def _labelled(text: str, at: int) -> Span | None:
    match = _LABELLED.match(text, at)
    if match is None or text[at - 1 : at] in {"_", "-", "."}:
        return None
    said = match["secret"]
    if said != said.lower() or not is_made_of_words(said) or secret_candidates.names_thing(said):
        return None
    is_about = secret_values.is_about_passwords(said) or secret_values.is_reference(said)
    return None if is_about else match.span("secret")


# --- "unifi: bo / velvet.otter.12", "cam at 10.0.0.9 admin:Harbor_view7": behind a user and a slash

_ANY_JOINED = r"(?P<secret>[A-Za-z]{3,12}(?:[-._][A-Za-z]{3,12}){1,4}[-._]?[0-9]{1,4}[!?#*]?)"
_AFTER_SLASH = re.compile(
    rf"[ ]/[ ][\"'`]?{_ANY_JOINED}(?=[\"'`]?[.,;)]?(?:[ \t]{{0,4}}(?:\n|\Z)|[ ][(]|,[ ]|;[ ]|\)))"
)
_USER_BEFORE = re.compile(r"(?:\A|[\s:(=>])[\"'`]?[A-Za-z0-9][\w.@+-]{1,40}[\"'`]?\Z")
_OF_SYSTEM = re.compile(
    rf"(?<![A-Za-z])(?:root|admin|administrator|user|guest|pi|ubuntu|operator|viewer)[:/]{_ANY_JOINED}(?=[\"'`]?[.,;)]?(?:[ \t]{{0,4}}(?:\n|\Z)|[ ]))",
    re.IGNORECASE,
)
_DEVICE = re.compile(
    r"idrac|ilo\b|ipmi|bmc|\bnas\b|router|cam(?:era)?\b|printer|grafana|jenkins|portainer|unifi|proxmox|log-?in|creds?\b|credentials|wi-?fi|mqtt|panel|web ?ui|dashboard|switch\b|nvr|dvr|modem|access point|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|后台|账号|登录|光猫|摄像头|路由",
    re.IGNORECASE,
)


def _after_slash(text: str, at: int) -> Span | None:
    match = _AFTER_SLASH.match(text, at)
    if match is None or _USER_BEFORE.search(text[max(0, at - 44) : at]) is None:
        return None
    return match.span("secret") if is_worded_in_any_case(match["secret"]) else None


def _of_system(text: str, at: int) -> Span | None:
    match = _OF_SYSTEM.match(text, at)
    if match is None or text[at - 1 : at] in {"/", ".", "~", "-", "_"}:
        return None
    is_one = _DEVICE.search(text, line_start(text, at, 70), at) is not None
    return match.span("secret") if is_one and is_worded_in_any_case(match["secret"]) else None


# --- at the end, behind a short label: "bios password on the optiplex dell_otter91", "pass for duolingo = birdie_cactus44"

_SHORT_LABELS = ("pass", "pw", "pwd", "passcode", "mdp", "pword", "creds")
_BEHIND_SHORT = re.compile(
    rf"(?<![A-Za-z])(?:password|passphrase|{either(_SHORT_LABELS)})(?![A-Za-z])[^\n.;!?()\"/]{{0,44}}?(?:[ ]?[:=]|[ ]->|[ ]→|(?<=\w))[ ]{{1,2}}[\"'`]?{_ANY_JOINED}(?=[\"'`]?[.,;!?)]?(?:[ \t]{{0,4}}(?:\n|\Z)|[ ][(–—-])|[,;][ ])",
    re.IGNORECASE,
)
_OF_NAME = re.compile(
    r"(?:column|field|table|file|branch|repo|named|called|name|user|username|host|server|ssid|network|function|variable|test|class|module|as|in|see|from|for|of|and|or|by|at|via|with)[ ]?[:=]?[ ]{1,2}[\"'`]?\Z",
    re.IGNORECASE,
)


def _behind_short(text: str, at: int) -> Span | None:
    match = _BEHIND_SHORT.match(text, at)
    if match is None or _OF_NAME.search(text, max(at, match.start("secret") - 14), match.start("secret")):
        return None
    return match.span("secret") if is_worded_in_any_case(match["secret"]) else None


_WITH_SIGN = re.compile("[-._](?<=[a-zA-Z]{3}.)[a-zA-Z]{3}")
_SIGN_BETWEEN = Nearby(_WITH_SIGN, 0, 90, 4)

RULES = (
    Rule(
        "words-open",
        "password",
        ("get in", "gets in", "got in", "getting in", "get on", "gets on", "get you in", "gets you in", "get into", "gets into", "let you in", "lets you in", "let me in", "log", "sign in", "signs in", "signed in", "opens", "opened", "open with", "unlock", "decrypt", "einloggen", "anmelden", "connecte avec", "entra con", "entro con", "entrar con", "entrar com", "inloggen", "входит", "вход"),
        _with,
        needs=_SIGN_BETWEEN,
    ),
    Rule("phrase-opens", "password", ("opens", "opened", "open with", "open it with", "unlock", "decrypt", *(f"{count} {kind}words" for count in ("three", "four", "five", "six", "seven", "eight", "3", "4", "5", "6", "7", "8") for kind in ("", "random ", "little ", "plain ", "simple ", "lowercase "))), _phrase, needs=Nearby(re.compile("(?:[:=]|[–—-])[ ][\"'`“«]?[a-z]{3}"), 0, 60, 7)),
    Rule("words-in-remark", "password", ("cryptsetup", "luksopen", "veracrypt", "zfs load-key", "borg ", "restic ", "gpg ", "ssh-add", "ssh -i", "openssl ", "age -d", "unzip ", "7z x", "sudo mount"), _remark, needs=Nearby(re.compile("#"), 0, 150)),
)  # fmt: skip
"""Words behind what they open, and in a remark on a command."""
BESIDE_USER_OR_LABEL = (
    Rule("words-beside-user", "password", ("login", "log-in", "logon", "signin", "sign-in", "user", "account", "user id", "creds", "credential", "admin", "zugang", "compte", "cuenta", "conta ", "usuario", "usuário", "utente", "utilisateur", "benutzer", "gebruiker", "логин", "учетка"), _beside_user, needs=Nearby(DIGIT, 0, 130)),
    Rule("words-behind-label", "password", _LABELS, _labelled, needs=Nearby(re.compile("[a-z][-._]?[0-9]{2}"), 0, 110, 4, has_digit=True)),
    Rule("words-after-slash", "password", (" / ",), _after_slash, needs=Nearby(_WITH_SIGN, 0, 40, 4)),
    Rule("words-of-system", "password", ("root:", "root/", "admin:", "admin/", "administrator/", "administrator:", "user:", "user/", "guest:", "guest/", "pi:", "pi/", "ubuntu:", "operator:", "operator/", "viewer:", "viewer/"), _of_system, needs=Nearby(_WITH_SIGN, 0, 40, 4)),
    Rule("words-behind-short-label", "password", ("pass", "pw", "mdp", "creds"), _behind_short, needs=Nearby(DIGIT, 0, 130)),
)  # fmt: skip
"""Words beside a user, behind a label, and behind a slash."""
