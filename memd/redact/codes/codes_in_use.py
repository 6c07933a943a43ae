"""Finds codes and keys that a text uses without their usual label: "enter 168185 within 30 seconds or the siren goes", "the 4 digits are 5711"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, line_start
from memd.redact.values import randomness, secret_candidates, secret_values
from memd.redact.values.code_numbers import ENDS_NUMBER, is_counted
from memd.redact.words.bip39 import words_of
from memd.redact.words.secret_words import either

_ENDS = r"(?=[\"'”’`»]{0,2}(?:[.,;!?)](?!\w)|[ ]?[(（–—]|[ \t]{0,4}(?:\n|\Z)|[ ](?:and|then|but|so|or)\b|[ ]?[，。；！？、）]))"


def _no_count(said: str) -> bool:
    """Return whether digits are neither a year, nor a round number, nor a series."""
    return not (secret_candidates.is_year(said) or said.endswith("000") or is_counted(said))


# --- "the 4 digits are 5711", "asks for a pairing number, it's 4331"

_DIGITS_ARE = re.compile(
    rf"(?:(?<!last )(?<!first )(?<!final )(?<!next )(?:the|my|our|her|his|its|those|these)[ ](?:four|five|six|4|5|6)[ -](?:digits?|numbers?)|(?:pairing|pair|bluetooth|unlock|disarm|keypad|entry[ ]phone)[ ](?:number|digits))"
    rf"[ ]?(?:[^\n0-9.;!?]{{0,20}}?[ ])??(?:are|is|it['’]?s|they['’]?re|was|[:=,])[ ]{{1,2}}(?:it['’]?s[ ]|is[ ])?[\"'“]?(?P<secret>[0-9]{{4,8}}){ENDS_NUMBER}",
    re.IGNORECASE,
)
_IS_TYPED = re.compile(
    r"card|bank|\bpin\b|atm|cash|safe|lock|door|gate|alarm|phone|keypad|sim\b|tablet|ipad|pairing|bluetooth|disarm|stereo|handsfree|hands-free|headset|car\b|tv\b",
    re.IGNORECASE,
)
_OF_ANOTHER = re.compile(
    r"last|ending|ends in|postal|zip|post ?code|extension|invoice|order|ticket|account number|phone number",
    re.IGNORECASE,
)


def _digits_are(text: str, at: int) -> Span | None:
    if text[at - 1 : at].isalpha():
        return None
    match = _DIGITS_ARE.match(text, at)
    if match is None or not _no_count(match["secret"]):
        return None
    begin, end = line_start(text, at, 80), line_end(text, match.end(), 60)
    is_one = _IS_TYPED.search(text, begin, end) is not None and _OF_ANOTHER.search(text, begin, end) is None
    return match.span("secret") if is_one else None


# --- "enter 168185 within 30 seconds or the siren goes"

_ENTER = re.compile(
    rf"(?:enter|type|punch[ ]in|key[ ]in|put[ ]in|tap[ ]in|tippe?|gib|tapez|tape|marca|marque|teclea|digita|digite|toets|wpisz|введи(?:те)?|набери(?:те)?|набрать|tuşla)[ ](?:in[ ]|the[ ]code[ ]|код[ ])?[\"'“]?(?P<secret>[0-9]{{4,8}}[#*]?){ENDS_NUMBER}",
    re.IGNORECASE,
)
_SIREN = re.compile(
    r"siren|(?<![a-z])alarm|disarm|beep|keypad|burglar|sirene|sirène|sirena|allarme|сирен|сигнализац|пищит|бипер|piept|piepst|bipe|pita|suena",
    re.IGNORECASE,
)


def _entered(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _ENTER.match(text, at)
    if match is None or not _no_count(match["secret"].rstrip("#*")):
        return None
    is_one = (
        _SIREN.search(text, line_start(text, at, 90), at) is not None
        or _SIREN.search(text, match.end(), line_end(text, match.end(), 60)) is not None
    )
    return match.span("secret") if is_one else None


# --- on a dial: "Safe: left to the first, right past once... 29-53-46-52"

_DIALLED = re.compile(
    r"(?:left|right|clockwise|turns?|links|rechts|gauche|droite|izquierda|derecha|左|右)[^\n0-9]{0,60}(?:[0-9][ ](?:times|turns)[^\n0-9]{0,30})?(?<![\w.,:/#+=-])(?P<secret>[0-9]{1,2}(?:(?:-|[ ][-–][ ]|[ ])[0-9]{1,2}){2,4})(?![ ]?[-–/.:][ ]?[0-9]|[\w%°])",
    re.IGNORECASE,
)
_WITH_DIAL = (
    "safe", "vault", "dial", "padlock", "combination", "combo", "tresor", "coffre", "caja fuerte", "cassaforte", "cofre", "kluis", "sejf", "сейф", "保险柜", "保险箱", "转盘", "金庫",
)  # fmt: skip
_DIAL = re.compile(rf"(?<![a-z])(?:{either(_WITH_DIAL)})(?![a-z]{{3}})", re.IGNORECASE)


def _dialled(text: str, at: int) -> Span | None:
    if _DIAL.match(text, at) is None:
        return None
    match = _DIALLED.search(text, at, line_end(text, at, 200))
    if match is None or match.start() > at + 80 or is_counted(match["secret"]):
        return None
    return match.span("secret")


# --- from a list: "TAN for the transfer, next free on the list nr 37: 715348"

_TAN = re.compile(
    rf"(?<![A-Za-z])(?:[imp]|sms-?|push-?|photo-?|chip-?)?(?-i:TAN)(?![A-Za-z])[^\n:=]{{0,60}}?(?:[ ]?[:=]|[ ](?:is|ist|lautet))[ ]{{1,3}}(?P<secret>[0-9]{{6}}){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _tan(text: str, at: int) -> Span | None:
    match = _TAN.match(text, at)
    return None if match is None else match.span("secret")


# --- "收到了，810890" and "已填入验证码": what somebody got, beside what is done with it

_GOT = re.compile(
    r"(?:收到了?|来了|來了|发来了?|到了|发我的是|短信(?:里)?(?:是|写的)?|got[ ](?:it|one)|here[ ](?:it[ ]is|you[ ]go)|it[ ]says)[，,：: 。.]{1,2}[ ]?(?P<secret>[0-9]{4,8}|[0-9]{3}[ -][0-9]{3})(?=[。，！]|[,.!]?[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)
_SPEAKS_OF_CODE = re.compile(
    r"验证码|驗證碼|校验码|动态码|登录码|短信码|认证码|verification|one-time|\botp\b|2fa|\bcode\b|两步",
    re.IGNORECASE,
)


def _got(text: str, at: int) -> Span | None:
    match = _GOT.match(text, at)
    if match is None or not _no_count(match["secret"]):
        return None
    after = line_end(text, min(len(text), match.end() + 1), 90)
    before = line_start(text, max(0, line_start(text, at, 60) - 1), 90)
    is_one = (
        _SPEAKS_OF_CODE.search(text, match.end(), after) is not None
        or _SPEAKS_OF_CODE.search(text, before, at) is not None
    )
    return match.span("secret") if is_one else None


# --- "家长管控密码 7689", "登录密码 442993a": digits, or digits with a letter or two, behind a password of one thing

_DIGITS_IN_CHINESE = re.compile(
    r"(?:(?P<of>(?<=管控)|(?<=家长)|(?<=监护)|(?<=少年)|(?<=模式)|(?<=童锁)|(?<=儿童)|(?<=支付)|(?<=付款)|(?<=交易)|(?<=取款)|(?<=查询)|(?<=锁屏)|(?<=开机)|(?<=用锁)|(?<=隐私)|(?<=电话)|(?<=服务)|(?<=卡)|(?<=手机)|(?<=平板)|(?<=习机)|(?<=电视)|(?<=顶盒)|(?<=由器)|(?<=印机)|(?<=锁)|(?<=门禁)|(?<=险箱)|(?<=险柜)|(?<=李箱)|(?<=车库)|(?<=无线)))?"
    r"(?:密码|密碼|口令)[ ]?(?:[:：=,，]|就?是|为|改成了?|设成了?|换成了?)?[ ]{0,2}(?P<secret>[0-9]{4,10}[a-z]{1,4}|[a-z]{1,3}[0-9]{5,10}|(?P<digits>[0-9]{4,6}))"
    r"(?![\w%.:/-])(?![ ]?[位个個次年月日天分秒元块条种项页字])"
)
_ENDS_DIGITS = re.compile(r"[，。；！）,;)](?![0-9])|[ \t]{0,4}(?:\n|\Z)|[ ]?[（(#]")
_UNIT = re.compile(
    "[0-9]+(?:bits?|byte|px|ms|mb|gb|kb|hz|mhz|kg|km|cm|mm|min|h|s|x|v|w|p|k|th|st|nd|rd|am|pm)"
)
_ASKS_NUMBER = re.compile("错误|失败|最多|至少|长度|超过|不足|尝试|返回|报错|状态码|端口|第|用户数|泄露了?$")


def _digits_in_chinese(text: str, at: int) -> Span | None:
    match = _DIGITS_IN_CHINESE.match(text, at)
    if match is None:
        return None
    said = match["secret"]
    if match["digits"] is not None:
        is_apart = (
            text[match.start("secret") - 1] in " ：:" and _ENDS_DIGITS.match(text, match.end()) is not None
        )
        if not _no_count(said) or (match["of"] is None and not is_apart):
            return None
    if _UNIT.fullmatch(said) is not None or (
        said[-1].isdecimal() and not said[0].isdecimal() and len(said) < 7
    ):
        return None
    is_other = _ASKS_NUMBER.search(text, max(0, at - 12), match.start("secret")) is not None
    return None if is_other else match.span("secret")


# --- "萤石摄像头 序列号 E53907217 验证码 PCGLYX": six capitals on the label of a camera

_OF_CAMERA = re.compile(r"验证码[ ]?[:：]?[ ]?(?P<secret>[A-Z]{6})(?![A-Za-z0-9])")
_CAMERA = re.compile("序列号|萤石|海康|摄像头|摄像机|录像机|门铃|机身|SN", re.IGNORECASE)


def _of_camera(text: str, at: int) -> Span | None:
    match = _OF_CAMERA.match(text, at)
    is_one = match is not None and _CAMERA.search(text, max(0, at - 60), at) is not None
    return match.span("secret") if match is not None and is_one else None


# --- "Left over from the printed sheet is only a8f36-6f43e", "discord gave 10 of these": one of a list of codes

_SPARE = (
    "of these", "left over", "leftover", "printed", "lost the phone", "lost my phone", "new phone", "without the phone", "without my phone", "single use", "single-use",
    "spare code", "one of the codes", "emergency", "discord gave", "github gave", "google gave", "last one of", "剩下", "打印的", "手机丢", "还剩",
)  # fmt: skip
_SPARE_CODE = re.compile(
    r"(?<![\w/.:@#-])(?P<secret>(?=[a-z-]{0,9}[0-9])(?=[0-9-]{0,9}[a-z])(?:[a-z0-9]{4}-[a-z0-9]{4}|[a-f0-9]{5}-[a-f0-9]{5}|[a-z0-9]{5}-[a-z0-9]{5}))(?=[.,;!)]?[ \t]{0,4}(?:\n|\Z)|[,;.)][ ]|[ ][-–—(]|[，。；])"
)
_OF_ACCOUNT = re.compile(
    r"discord|github|gitlab|google|microsoft|dropbox|paypal|proton|account|phone|authenticator|2fa|mfa|two-factor|login|log in|sheet|codes?\b|账号|验证|备用|手机",
    re.IGNORECASE,
)


def _spare(text: str, at: int) -> Span | None:
    match = _SPARE_CODE.search(text, at, at + 130)
    if match is None or match.start() > at + 110 or "\n\n" in text[at : match.start()]:
        return None
    said = match["secret"].split("-")
    # Names with a number have it in one part alone.
    is_drawn = sum(DIGIT.search(part) is not None for part in said) == len(said)
    is_one = is_drawn and _OF_ACCOUNT.search(text, max(0, at - 90), match.start()) is not None
    return match.span("secret") if is_one else None


# --- "humble bundle leftover for Sam: VDBXM-LR5XY-32ISQ": keys of games

_GAME_KEY = re.compile(
    r"(?<![\w-])(?P<secret>(?=[A-Z-]{0,17}[0-9])(?=[0-9-]{0,17}[A-Z])[A-Z0-9]{5}(?:-[A-Z0-9]{5}){2,4})(?![\w-])"
)


def _of_game(text: str, at: int) -> Span | None:
    match = _GAME_KEY.search(text, at, line_end(text, at, 120))
    return None if match is None else match.span("secret")


# --- "the app specific one, xuyz-jxbz-mvok-brty": sixteen letters that a provider of mail drew

_MAIL = (
    "app specific", "app-specific", "app pass", "apppass", "application password", "application-specific", "thunderbird", "imap", "smtp", "icloud",
    "授权码", "授權碼", "应用专用", "app专用", "专用密码", "應用程式密碼", "アプリパスワード", "앱 비밀번호", "anwendungsspezifisch", "app-passwort", "mot de passe d'application", "contraseña de aplicación",
)  # fmt: skip
_FOURS = re.compile(
    r"(?<![A-Za-z-])(?P<secret>[a-z]{4}(?P<by>[ -])[a-z]{4}(?:(?P=by)[a-z]{4}){2})(?![A-Za-z-])"
)
_SIXTEEN = re.compile(r"(?<![A-Za-z0-9_./@-])(?P<secret>[a-z]{16})(?![A-Za-z0-9_./@-])")
_TELLS = re.compile(r"(?:[:：=]|->|→|是|(?<![a-z])(?:is|it['’]?s))[ ]{0,2}[\"'“`]?\Z")


def _of_mail(text: str, at: int) -> Span | None:
    fours = _FOURS.search(text, at, min(len(text), at + 160))
    if fours is not None and randomness.is_unlike_words(re.sub("[ -]", "", fours["secret"])):
        words = frozenset(re.split("[ -]", fours["secret"]))
        if words.isdisjoint(_FOUR_LETTERS) and len(words & words_of("english")) < 2:
            return fours.span("secret")
    sixteen = _SIXTEEN.search(text, at, line_end(text, at, 140))
    if sixteen is None or text[at].isascii():
        return None
    is_told = _TELLS.search(text, max(0, sixteen.start() - 8), sixteen.start()) is not None
    is_word = sixteen["secret"] in secret_values.HARMLESS_WORDS
    return sixteen.span("secret") if is_told and not is_word else None


_FOUR_LETTERS = frozenset((
    "that", "this", "with", "have", "from", "your", "they", "will", "what", "when", "then", "than", "them",
    "were", "been", "some", "just", "like", "into", "only", "also", "more", "need", "make", "take", "know",
    "good", "here", "each", "does", "must", "over", "such", "very", "mail", "imap", "smtp", "port", "name",
    "user", "pass", "code", "last", "sync", "send", "sent", "home", "work",
))  # fmt: skip

# --- on the label of a router: "hinten am Router: 22880499425417305413", "Pour la box, c'est B4AA42B81074A6E3A0112A152B"

_BOXES = ("wlan", "wifi", "wi-fi", "router", "routeur", "fritz", "livebox", "freebox", "bbox", "la box", "modem", "speedport", "easybox", "easy box", "路由", "ルーター", "роутер", "вайфай")  # fmt: skip
_ON_LABEL = re.compile(
    r"(?:[:：=]|(?:c['’]est|is|it['’]?s|ist|lautet|es|è|é|est|это)(?=[ ]))[ ]{1,2}[\"'“`]?(?P<secret>[0-9]{16,20}|(?=[A-F]{0,25}[0-9])(?=[0-9]{0,25}[A-F])(?:[0-9A-F]{26}|[0-9A-F]{20}|[0-9A-F]{16}))(?![\w-]|[ ][a-z])"
)
_NUMBER_OF_DEVICE = re.compile(
    r"s/?n\b|serial|imei|iccid|\bmac\b|model|serien|série|serie|account|customer|contract|kunden|client|vertrag|contrat|序列号|серийн|order|tracking|ref",
    re.IGNORECASE,
)


def _on_label(text: str, at: int) -> Span | None:
    match = _ON_LABEL.search(text, at, line_end(text, at, 130))
    if match is None or _NUMBER_OF_DEVICE.search(text, max(at - 30, 0), match.start()) is not None:
        return None
    return match.span("secret") if len(set(match["secret"])) > 5 else None


# --- "paper wallet sweeps with K2wshus...": the form of a private key of Bitcoin

_OF_BITCOIN = re.compile(
    r"(?<![A-Za-z0-9])(?P<secret>[KL][1-9A-HJ-NP-Za-km-z]{51}|5[1-9A-HJ-NP-Za-km-z]{50})(?![A-Za-z0-9])"
)


def _of_bitcoin(text: str, at: int) -> Span | None:
    match = _OF_BITCOIN.search(text, max(0, at - 120), at + 220)
    is_one = match is not None and randomness.mixes(match["secret"])
    return match.span("secret") if match is not None and is_one else None


# --- "write it on paper ok? talent parade ladder ...": a row of as many words as a wallet has, all of which it may draw

_ROW_OF_WORDS = re.compile(
    r"(?<![\w'’-])(?P<secret>[a-z]{3,8}(?:[ ][a-z]{3,8}){11,23})(?=[.!]?[\"'”)]?[ \t]{0,4}(?:\n|\Z))"
)
_LENGTHS = frozenset({12, 15, 18, 21, 24})


def _of_wallet(text: str, at: int) -> Span | None:
    for match in _ROW_OF_WORDS.finditer(text, max(0, at - 220), at + 330):
        words = match["secret"].split(" ")
        if len(words) in _LENGTHS and len(set(words)) == len(words) and words_of("english").issuperset(words):
            return match.span("secret")
    return None


# --- "Your Notion login code is tulip-lemon-quartz-copper"

_CODE_OF_WORDS = re.compile(
    r"(?:(?:log-?in|sign-?in|verification|temporary|one-?time|access|security|magic)[ ]code(?:[ ](?:is|for[ ][\w ]{1,24}[ ]is))?|(?:登录|验证|临时)码[是为]?)[ ]?[:：]?[ ]{0,2}\n?[\"'“]?(?P<secret>[a-z]{3,10}(?:-[a-z]{3,10}){2,5})(?![\w-])",
    re.IGNORECASE,
)


def _code_of_words(text: str, at: int) -> Span | None:
    match = _CODE_OF_WORDS.match(text, at)
    if match is None or match["secret"] != match["secret"].lower():
        return None
    parts = match["secret"].split("-")
    return match.span("secret") if secret_values.HARMLESS_WORDS.isdisjoint(parts) else None


# --- "token 的 secret 写死在 yml 里：ahkamnvzuahsfpnhqihslgvegb": small letters that are no words, behind a word for a key

_JUMBLED = re.compile(
    r"(?:secret|token|密钥|密匙|秘钥|私钥|签名|盐|salt)[^\nA-Za-z]{0,8}(?:[A-Za-z]{1,8})?[^\nA-Za-z]{0,16}[:：=是为][ ]?[\"'`“]?(?P<secret>[a-z]{18,40})(?![\w./-])",
    re.IGNORECASE,
)
_HAN = re.compile("[一-鿿]")


def _jumbled(text: str, at: int) -> Span | None:
    match = _JUMBLED.match(text, at)
    is_one = (
        match is not None
        and randomness.is_jumble(match["secret"])
        and _HAN.search(text, at, match.start("secret"))
    )
    return match.span("secret") if match is not None and is_one else None


# --- "童锁 3807", "锁屏 198503，支付 770213": what is locked, and the digits at once

_LOCKED = re.compile(
    r"(?:童锁|儿童锁|锁屏|支付|取款|付款|屏锁|门锁|门禁|保险柜|保险箱|应用锁|密码锁|电子锁|指纹锁|撤防)(?:密码|码)?[ :：]{1,2}(?P<secret>[0-9]{4,6}[#*]?)(?=[，。,;；）)\n]|\Z|[ ](?![0-9个個次元块条种项人]))"
)
_COUNTS = re.compile(
    "元|块|￥|¥|金额|订单|花了|扣|收|退|合计|总|钻|级|关|岁|月|日|点|号楼|次|分钟|小时|排|名|人"
)


def _locked(text: str, at: int) -> Span | None:
    match = _LOCKED.match(text, at)
    if match is None or not _no_count(match["secret"].rstrip("#*")) or match["secret"].endswith("00"):
        return None
    is_counted = _COUNTS.search(text, line_start(text, at, 20), line_end(text, match.end(), 12)) is not None
    return None if is_counted else match.span("secret")


# --- behind its name at once: "alarm panel: disarm 6620 duress 6621", "verification code 482 913", "card pin's 3317"

_AT_ONCE = re.compile(
    r"(?:disarm|duress|(?:verification|confirmation|log-?in|sign-?in|one-?time|2fa)[ ]code|(?:card|sim|voicemail|phone|bank|debit|atm)[ ]pin['’]?s?|mk[ ]thẻ)(?:[ ]?[:=]|[ ]is)?[ ](?P<secret>[0-9]{3}[ -][0-9]{3}|[0-9]{4,8})(?=[.,;!?)](?!\w)|[ \t]{0,4}(?:\n|\Z)|[ ](?:ok|duress|disarm|and|don|do|please|pls|expires|valid|from|to)\b)",
    re.IGNORECASE,
)


def _at_once(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _AT_ONCE.match(text, at)
    return match.span("secret") if match is not None and _no_count(match["secret"]) else None


# --- "the code for the bike shed is 0837": what is opened, of a house

_OF_PLACE = re.compile(
    rf"code[ ](?:for|to|of|on)[ ](?:the|our|my|her|his|their|your)[ ](?:[a-z'’-]{{1,14}}[ ]){{0,3}}?(?:shed|bike|barn|attic|cellar|basement|gym|pool|pantry|cabin|cottage|flat|apartment|building|office|studio|garage|gate|door|lobby|stairwell|entrance|entry|hallway|laundry|mailbox|locker|lock|lockbox|safe|box|cupboard|cabinet|drawer|alarm|elevator|lift|bathroom|toilet|restroom|car[ ]park|parking|barrier|fence|yard|courtyard|storage|unit|airbnb|rental|keypad|suitcase|briefcase)(?:[ ](?:door|gate|lock|room|area|now|here|there|today|still)){{0,2}}[ ]?(?:is|was|:|=|,[ ]it['’]?s|has[ ]changed[ ]to|changed[ ]to)[ ](?:still[ ]|now[ ])?(?P<secret>[0-9]{{4,8}}[#*]?){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _of_place(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _OF_PLACE.match(text, at)
    return match.span("secret") if match is not None and _no_count(match["secret"].rstrip("#*")) else None


# --- "hue bridge username Zt6RkqY1b-5Vw...", "tuya local_key = 7f3bd0a91c4e2865": keys of devices of a house

_OF_HOUSE = re.compile(
    r"(?:(?:hue|bridge)[^\n]{0,30}?user(?:name)?|local_?[ ]?key|miio[ ]token|(?:xiaomi|miot|roborock|vacuum|yeelight)[^\n]{0,20}?token|(?:z-?wave|zigbee|thread|s0|s2)[^\n]{0,16}?(?:network[ ])?key)"
    r"[\"']?[ ]?[:=]?[ ]{0,2}[\"']?(?P<secret>(?=[A-Za-z-]{0,30}[0-9])[A-Za-z0-9-]{40}|[0-9a-f]{32}|[0-9a-f]{16}|(?:0x[0-9a-f]{2},[ ]?){15}0x[0-9a-f]{2}|(?:[0-9a-f]{2}[ :]){15}[0-9a-f]{2})(?![\w-])",
    re.IGNORECASE,
)


def _of_house(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _OF_HOUSE.match(text, at)
    return None if match is None else match.span("secret")


# --- "the barrier wants 7731 then hash": digits, and the key that ends them

_THEN_SIGN = re.compile(
    r"[ ]?,?[ ]?(?:then|and|followed[ ]by|plus|und|dann|puis|et|luego|y|poi|e|depois|en|dan|potem|i|затем|и|потом|再按|然后按|接着按|加)[ ]?(?:press[ ]|hit[ ]|the[ ])?(?:hash|star|pound|asterisk|[#*](?![A-Za-z0-9])|raute|stern|dièse|étoile|almohadilla|asterisco|cancelletto|jogo da velha|hekje|sterretje|krzyżyk|gwiazdka|решётк|решетк|звёздочк|звездочк|井号?键?|星号?键?)[а-я]{0,3}(?=[\"'”)]?[.,;!?](?!\w)|[ \t]{0,4}(?:\n|\Z)|[ ](?:key|button|sign|to[ ]open|at[ ]the[ ]end|taste|drücken)|[ ]?[^\x00-\x7f])",
    re.IGNORECASE,
)
_DIGITS_BEFORE = re.compile(r"(?<![\w.,:/#+€$£-])(?P<secret>[0-9]{3,8})\Z")


def _then_sign(text: str, at: int) -> Span | None:
    left = max(0, at - 12)
    # The anchor may begin with the blank before the word.
    match = _DIGITS_BEFORE.search(text[left:at].rstrip(", "))
    if match is None or _THEN_SIGN.match(text, left + match.end()) is None or not _no_count(match["secret"]):
        return None
    return left + match.start("secret"), left + match.end("secret")


# --- behind the number of a locker: "Gym locker 88: 4092"

_LOCKER = re.compile(
    rf"(?:locker|schließfach|spind|casier|taquilla|armadietto|kluisje|szafka|шкафчик|储物柜|更衣柜|柜子|ロッカー)[ ]?(?:no\.?[ ]?|nr\.?[ ]?|n°[ ]?|#)?[A-Z]?[0-9]{{1,3}}[ ]?(?:号|番)?[ ]?(?:[:：,，]|=|->|→)[ ]?(?:code[ ]|密码[ ]?|combo[ ])?(?P<secret>[0-9]{{4,6}}){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _of_locker(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() and text[at].isascii() else _LOCKER.match(text, at)
    return match.span("secret") if match is not None and _no_count(match["secret"]) else None


# --- "portal access code K7D2M9QX", "itunes card X7D2M9QXP3WZR8TN": capitals and digits behind the name of a code or a card

_CAPITALS = re.compile(
    r"(?:(?:access|entry|portal|registration|enrol?lment|invitation|invite|pairing|claim|activation|redeem|redemption|license|licence|setup|unlock)[ ]code|(?:itunes|apple|google[ ]play|amazon|xbox|psn|playstation|nintendo|eshop|roblox|razer|steam|netflix|gift|paysafe|voucher)[ ](?:gift[ ])?(?:card|voucher|code)|邀请码|激活码|兑换码|注册码)"
    r"(?:[ ](?:is|was|for[ ][\w ]{1,24}?(?:[ ]is|:))|[ ]?[:=：是])?[ ]?[\"'`]?(?P<secret>(?-i:(?=[A-Z-]{0,18}[0-9])(?=[0-9-]{0,18}[A-Z])(?:[A-Z0-9]{8,20}|[A-Z0-9]{4,6}(?:-[A-Z0-9]{4,6}){1,4})))(?![\w-])",
    re.IGNORECASE,
)


def _in_capitals(text: str, at: int) -> Span | None:
    match = _CAPITALS.match(text, at)
    if match is None:
        return None
    said = match["secret"].replace("-", "")
    return match.span("secret") if len(DIGIT.findall(said)) >= 2 and not said[-4:].isdecimal() else None


# --- "telephone banking password Heron": a word that a bank asks for

_BANK_WORD = re.compile(
    r"(?:(?:telephone|phone|tele)[ -]?banking[ ](?:password|word|passcode)|memorable[ ](?:word|name))(?:[ ](?:is|was)|[ ]?[:=])?[ ][\"'“]?(?P<secret>(?-i:[A-Z])[a-z]{3,15}[0-9]{0,4})(?=[\"'”]?[.,;!)]?(?:[ \t]{0,4}(?:\n|\Z)|[ ][(–-]))",
    re.IGNORECASE,
)


def _bank_word(text: str, at: int) -> Span | None:
    match = _BANK_WORD.match(text, at)
    if match is None or match["secret"].lower() in secret_values.HARMLESS_WORDS:
        return None
    return match.span("secret")


# --- "wo de mima shi huahua0611": the Chinese word in Latin letters

_PINYIN = re.compile(
    r"(?<![a-z])(?:mi[ ]?ma|kou[ ]?ling)[ ]?(?:shi|wei|:|：|=|gai[ ]?cheng|gai[ ]?le|huan[ ]?cheng)[ ]{0,2}[\"'`]?(?P<secret>[!-~]{5,40}?)(?=[\"'`]?[.,;!?)]?(?:\s|\Z)|[，。])",
    re.IGNORECASE,
)


def _in_pinyin(text: str, at: int) -> Span | None:
    match = _PINYIN.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    return match.span("secret") if secret_values.is_strong(match["secret"]) else None


_NUMBER_NEAR = Nearby(re.compile("[0-9]{4}"), 0, 60, 4, has_digit=True)
_VERBS = (
    "enter ", "type ", "punch in ", "key in ", "put in ", "tap in ", "tippe ", "tipp ", "gib ", "tapez ", "tape ", "marca ", "marque ", "teclea ", "digita ", "digite ", "toets ", "wpisz ", "введи", "набери", "набрать", "tuşla ",
)  # fmt: skip

RULES = (
    Rule("digits-are", "code", ("the four", "my four", "the 4", "my 4", "the six", "the 6", "my 6", "my six", "the five", "the 5", "her 4", "his 4", "its 4", "our 4", "pairing ", "pair number", "bluetooth ", "unlock ", "disarm ", "keypad "), _digits_are, needs=_NUMBER_NEAR),
    Rule("code-entered", "code", _VERBS, _entered, needs=Nearby(re.compile("[0-9]{4}"), 0, 24, 4, has_digit=True)),
    Rule("code-locked-chinese", "code", ("童锁", "儿童锁", "锁屏", "支付", "取款", "付款", "屏锁", "门锁", "门禁", "保险柜", "保险箱", "应用锁", "密码锁", "电子锁", "指纹锁", "撤防"), _locked, needs=Nearby(re.compile("[0-9]{4}"), 0, 9, 4, has_digit=True)),
    Rule("code-at-once", "code", ("disarm", "duress", "verification code", "confirmation code", "login code", "log-in code", "signin code", "sign-in code", "one-time code", "one time code", "2fa code", "card pin", "sim pin", "voicemail pin", "phone pin", "bank pin", "debit pin", "atm pin"), _at_once, needs=Nearby(re.compile("[0-9]{3}"), 0, 30, 3, has_digit=True)),
    Rule("code-of-place", "code", ("code for ", "code to ", "code of ", "code on "), _of_place, needs=Nearby(re.compile("[0-9]{4}"), 0, 90, 4, has_digit=True)),
    Rule("key-of-house", "key", ("hue", "bridge", "local_key", "localkey", "local key", "miio token", "xiaomi", "miot", "roborock", "vacuum", "yeelight", "z-wave", "zwave", "zigbee", "thread", "s0 key", "s2 key"), _of_house, needs=Nearby(re.compile("[0-9A-Fa-f]{2}"), 0, 70, 2)),
    Rule("code-then-sign", "code", ("then hash", "then star", "then pound", "then #", "then *", "then press #", "then press *", "then the hash", "then the star", "and hash", "and star", "and pound", "and #", "and *", "followed by hash", "followed by #", "followed by star", "plus hash", "plus #", "und raute", "dann raute", "und stern", "dann stern", "puis dièse", "et dièse", "luego almohadilla", "y almohadilla", "luego asterisco", "poi cancelletto", "poi asterisco", "en hekje", "dan hekje", "dan sterretje", "potem krzyżyk", "potem gwiazdka", "затем реш", "и реш", "потом реш", "затем зв", "再按#", "再按井", "再按*", "再按星", "然后按#", "然后按井", "接着按#", "加#", "加井"), _then_sign, needs=Nearby(DIGIT, 12, 0)),
    Rule("code-of-locker", "code", ("locker", "schließfach", "spind", "casier", "taquilla", "armadietto", "kluisje", "szafka", "шкафчик", "储物柜", "更衣柜", "柜子", "ロッカー"), _of_locker, needs=Nearby(re.compile("[0-9]{4}"), 0, 44, 4, has_digit=True)),
    Rule("code-in-capitals", "code", ("access code", "entry code", "portal code", "registration code", "enrolment code", "enrollment code", "invitation code", "invite code", "pairing code", "claim code", "activation code", "redeem code", "redemption code", "license code", "licence code", "setup code", "unlock code", "itunes ", "apple gift", "google play ", "amazon ", "xbox ", "psn ", "playstation ", "nintendo ", "eshop ", "roblox ", "razer ", "steam ", "netflix ", "gift ", "paysafe ", "邀请码", "激活码", "兑换码", "注册码"), _in_capitals, needs=Nearby(re.compile("[A-Z][0-9]|[0-9][A-Z]"), 0, 70, 2)),
    Rule("word-of-bank", "password", ("telephone bank", "phone bank", "telebank", "tele-bank", "memorable word", "memorable name"), _bank_word),
    Rule("password-in-pinyin", "password", ("mima", "mi ma", "kouling", "kou ling"), _in_pinyin),
    Rule("safe-dialled", "code", _WITH_DIAL, _dialled, needs=Nearby(re.compile("[0-9](?:-|[ ][-–][ ]|[ ])[0-9]"), 0, 190, 4, has_digit=True)),
    Rule("tan-of-list", "code", ("tan ", "tan:", "tan,"), _tan, needs=Nearby(re.compile("[0-9]{6}"), 0, 80, 6, has_digit=True)),
    Rule("code-got", "code", ("收到", "来了", "來了", "发来", "到了", "发我的是", "短信", "got it", "got one", "here it is", "here you go", "it says"), _got, needs=Nearby(re.compile("[0-9]{3}"), 0, 14, 3, has_digit=True)),
    Rule("password-of-digits-chinese", "password", ("密码", "密碼", "口令"), _digits_in_chinese, needs=Nearby(re.compile("[0-9]{4}"), 0, 12, 4, has_digit=True)),
    Rule("code-of-camera", "code", ("验证码",), _of_camera, needs=Nearby(re.compile("[A-Z]{6}"), 0, 8, 6)),
    Rule("code-spare", "code", _SPARE, _spare, needs=Nearby(re.compile("[a-z0-9]{4}-[a-z0-9]{4}"), 0, 120, 9)),
    Rule("key-of-game", "key", ("humble", "steam", "gog", "epic games", "bundle", "office 20", "office:", "windows 1", "windows:", "parallels", "vmware", "kaspersky", "norton", "redeem", "game key", "cd key", "cd-key", "leftover", "spare key", "兑换", "激活"), _of_game, needs=Nearby(re.compile("[A-Z0-9]{5}-[A-Z0-9]{5}-"), 0, 120, 12)),
    Rule("letters-of-mail", "password", _MAIL, _of_mail, needs=Nearby(re.compile("[a-z]{4}[ -][a-z]{4}[ -][a-z]{4}[ -][a-z]{4}|[a-z]{16}"), 0, 140, 19)),
    Rule("key-of-router", "password", _BOXES, _on_label, needs=Nearby(re.compile("[0-9A-F]{16}"), 0, 130, 16)),
    Rule("bitcoin-key", "wallet-key", ("wallet", "sweep", "bitcoin", "btc", "wif ", "wif)", "wif:", "private key", "privkey", "钱包", "私钥"), _of_bitcoin, needs=Nearby(re.compile("[KL5][1-9A-HJ-NP-Za-km-z]{50}"), 120, 160, 51)),
    Rule("wallet-words-alone", "seed-phrase", ("write it on", "write it down", "write them", "write these", "write this", "on paper", "backup", "back up", "metal plate", "offline", "cold storage", "restore", "safe place", "抄下", "抄在", "备份", "保管"), _of_wallet, needs=Nearby(re.compile("(?<![a-z])(?:[a-z]{3,8}+[ ]){11}[a-z]{3}"), 220, 220, 108)),
    Rule("code-of-words", "code", ("login code", "log-in code", "sign-in code", "signin code", "verification code", "temporary code", "one-time code", "access code", "security code", "magic code", "登录码", "验证码", "临时码"), _code_of_words, needs=Nearby(re.compile("[a-z]-[a-z]{3,10}-[a-z]"), 0, 60, 14)),
    Rule("key-of-letters-chinese", "key", ("secret", "token", "密钥", "密匙", "秘钥", "私钥", "签名", "盐", "salt"), _jumbled, needs=Nearby(re.compile("[一-鿿]"), 0, 40)),
)  # fmt: skip
