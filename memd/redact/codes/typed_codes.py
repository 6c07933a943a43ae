"""Finds codes by how they are typed, drawn or turned: "4 0 7 2", "six zero double two", "left 12 right 30 left 6", "top left, middle, right".

Such a row is rare in a text, and a word for a code or for what it opens in the same line says that it is one.
"""

import re
from itertools import pairwise

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, line_start
from memd.redact.values.code_numbers import is_counted
from memd.redact.words.secret_words import SECRET_WORDS, either, shortest_anchors

_WORDS = SECRET_WORDS.typed_codes
_CHARS_BEFORE, _CHARS_BEHIND = 90, 60  # characters of the line around a row in which a word for it may stand
_CUE = rf"(?<![A-Za-zÀ-ɏ])(?:{either(_WORDS.codes)})(?![A-Za-z]{{4}})"
_ANY_CUE = re.compile(_CUE, re.IGNORECASE)
_ANY_LOCK = re.compile(
    rf"(?<![A-Za-zÀ-ɏ])(?:{either((*_WORDS.codes, *_WORDS.locks))})(?![A-Za-z]{{4}})", re.IGNORECASE
)
# What has a dial, and what has keys with letters.
_ANY_DIAL = re.compile(rf"(?<![A-Za-zÀ-ɏ])(?:{either(_WORDS.dials)})(?![A-Za-z]{{4}})", re.IGNORECASE)
_ANY_KEYPAD = re.compile(rf"(?<![A-Za-z])(?:{either(_WORDS.keypads)})(?![A-Za-z]{{4}})", re.IGNORECASE)
# A code ends its clause; a count of things goes on with them.
_ENDS_CLAUSE = re.compile(
    r"[\"'”’»]?(?:[ ]?[.,;!)(](?![0-9])|[ ]?[–—-][ ]|[ \t]{0,4}(?:\n|\Z)|[ ](?:then|and|keep|if|on[ ]the[ ]keypad|out[ ]loud|mi|rồi|bitte|dann|puis|luego|poi|potem|потом|sonra|together)(?!\w))"
)
_TELLS_ROW = re.compile(
    r"(?:(?<!\w)(?:is|it['’]?s|ist|est|es|è|é|to|jest|это|là|code|pin|press|usa|uses?|pressed|typed|dialled|keyed[ ]in|entered)|['’]s|['’]est|şifresi|[:=,])[ ]{1,2}[\"'“«]?\Z",
    re.IGNORECASE,
)
_NO_CODE = re.compile(rf"(?<![a-z])(?:{either(_WORDS.others)})", re.IGNORECASE)


def _in_line(text: str, cue: re.Pattern[str], start: int, end: int) -> bool:
    """Return whether a word is near a span in its line, and none for another number."""
    begin, till = line_start(text, start, _CHARS_BEFORE), line_end(text, end, _CHARS_BEHIND)
    return (
        cue.search(text, begin, start) is not None or cue.search(text, end, till) is not None
    ) and _NO_CODE.search(text, begin, till) is None


# --- digits one by one: "4 0 7 2", "7-0-3-9", "5 - 2 - 2 - 8"

_APART = re.compile(
    r"(?<![\w.,:/#+=-])(?<![0-9][ ])(?<![0-9][ ][-–][ ])(?P<secret>[#*]?[0-9](?P<by>[ ]|-|[ ][-–][ ]|\.)[0-9](?:(?P=by)[0-9]){1,5}[#*]?)"
    r"(?![ ]?[-–.,:/]?[ ]?[0-9])(?![\w%°+*/=])(?![ ](?:x|of|in|out|goals|points|times|kg|km|cm|mm|hours|days|years)\b)"
)
_HAS_WHEELS = re.compile(
    r"(?:bike |cable |combination |number )?lock|padlock|combination|combo|wheels|suitcase|luggage|briefcase|zahlenschloss|fahrradschloss|schloss|koffer|cadenas|valise|candado|maleta|lucchetto|valigia|cadeado|mala|slot|hangslot|kłódka|замок",
    re.IGNORECASE,
)
_CHARS_OF_APART = 80
_SURE = re.compile(rf"(?:{either(_WORDS.sure)})(?![A-Za-zÀ-ɏ])", re.IGNORECASE)
_ANY_LOCK_NAME = re.compile(
    rf"(?<![A-Za-zÀ-ɏ])(?:{either(_WORDS.named_locks)})(?![A-Za-z]{{3}})", re.IGNORECASE
)


def _digits_apart(text: str, at: int) -> Span | None:
    cue = _ANY_CUE.match(text, at)
    if cue is None:
        return None
    end = text.find("\n", cue.end(), cue.end() + _CHARS_OF_APART)
    match = _APART.search(text, cue.end(), cue.end() + _CHARS_OF_APART + 16 if end < 0 else end)
    if match is None or is_counted(match["secret"]) or _ENDS_CLAUSE.match(text, match.end()) is None:
        return None
    is_sure = _SURE.match(text, at) is not None
    before = text[max(0, match.start() - 12) : match.start()]
    if not is_sure and (
        _TELLS_ROW.search(before) is None
        or _ANY_LOCK_NAME.search(text, at - 40 if at > 40 else 0, match.start()) is None
    ):
        return None
    # Three digits are those of a lock with wheels.
    if len(DIGIT.findall(match["secret"])) == 3 and _HAS_WHEELS.match(text, at) is None:
        return None
    return match.span("secret") if _in_line(text, _ANY_CUE, *match.span("secret")) else None


# --- digits as words: "six zero double two", "star four four one nine hash"

_DIGIT = either(SECRET_WORDS.spoken_numbers.digits)
_SIGN = "hash|star|pound|asterisk|raute|sternchen|dièse|étoile|almohadilla|asterisco|cancelletto|hekje|krzyżyk|решётка|решетка|звёздочка|звездочка"
_ROW = re.compile(
    rf"(?<![^\W\d_])(?P<secret>(?:(?:{_SIGN})[ ,-]{{1,2}})?(?:{_DIGIT})(?!\w)(?:[ ,-]{{1,2}}(?:then[ ])?(?:{_DIGIT}|{_SIGN})(?!\w)){{3,9}})",
    re.IGNORECASE,
)
_COUNTS = re.compile(
    r"one[ ,]{1,2}two[ ,]{1,2}three[ ,]{1,2}four|eins[ ,]{1,2}zwei[ ,]{1,2}drei|un[ ,]{1,2}deux[ ,]{1,2}trois|uno[ ,]{1,2}dos[ ,]{1,2}tres|uno[ ,]{1,2}due[ ,]{1,2}tre|um[ ,]{1,2}dois[ ,]{1,2}três"
    r"|een[ ,]{1,2}twee[ ,]{1,2}drie|один[ ,]{1,2}два[ ,]{1,2}три|jeden[ ,]{1,2}dwa[ ,]{1,2}trzy|four[ ,]{1,2}three[ ,]{1,2}two|(?:one[ ,]{1,2}){3}|three[ ,]{1,2}two[ ,]{1,2}one|drei[ ,]{1,2}zwei[ ,]{1,2}eins|trois[ ,]{1,2}deux[ ,]{1,2}un|tres[ ,]{1,2}dos[ ,]{1,2}uno|tre[ ,]{1,2}due[ ,]{1,2}uno|три[ ,]{1,2}два[ ,]{1,2}один|^(?:(?:zero|one|null|eins)[ ,]{1,2}){2,7}(?:zero|one|null|eins)$|(?:two[ ,]{1,2}){3}",
    re.IGNORECASE,
)


_IS_DIGIT = frozenset(SECRET_WORDS.spoken_numbers.digits)
_TO_BLANKS = str.maketrans(dict.fromkeys("\"'()*,-./:;?!_`|“”‘’«»„", " "))
_WORDS_OF_ROW = 3  # of a row: "double four seven" has three words


def _digits_as_words(text: str, at: int) -> Span | None:
    if _ANY_LOCK.match(text, at) is None and not text.startswith(_WORDS.aloud, at):
        return None
    left = line_start(text, at, 60)
    end = text.find("\n", at, at + 90)
    end = at + 160 if end < 0 else end
    # Most lines have no digits as words, which is told faster by their words.
    line = text[left:end].lower()
    if _IS_DIGIT.isdisjoint(line.translate(_TO_BLANKS).split()):
        return None
    said = [word for word in re.findall(r"[^\W\d_]+", line) if word in _IS_DIGIT]
    if len(said) < _WORDS_OF_ROW:
        return None
    for match in _ROW.finditer(text, left, end):
        is_told = (
            _TELLS_ROW.search(text, max(0, match.start() - 14), match.start()) is not None
            and _ENDS_CLAUSE.match(text, match.end()) is not None
        )
        if (
            is_told
            and _COUNTS.search(match["secret"]) is None
            and _NO_CODE.search(text, left, match.start()) is None
        ):
            return match.span("secret")
    return None


# --- turns of a dial: "left 12 right 30 left 6", "41 then 16 then 28", "four turns left to 41, three right to 12"

_SIDE = r"(?:right|left|clockwise|anti-?clockwise|counter-?clockwise|rechts|links|(?:à[ ])?droite|(?:à[ ])?gauche|derecha|izquierda|destra|sinistra|direita|esquerda|rechtsom|linksom|prawo|lewo|вправо|влево)"
_TIMES = r"(?:(?:once|twice|one|two|three|four|five|[1-5][x×]?|a|full|back|past[ ]it|all[ ]the[ ]way|round|around|turns?|times)[ ]){0,4}"
_SIDE_FIRST = rf"{_TIMES}{_SIDE}[ ](?:turns?[ ]|again[ ]|back[ ]|past[ ]it[ ]|once[ ]|twice[ ]){{0,2}}(?:to|on|at|until|till|auf|bis|à|a|fino[ ]a|su|naar|do|на|до)?[ ]?[0-9]{{1,2}}(?![0-9])"
_NUMBER_FIRST = (
    rf"(?:{_TIMES}to[ ])?[0-9]{{1,2}}[ ](?:to[ ]the[ ]|nach[ ]|a[ ]la[ ]|in[ ])?{_SIDE}(?![A-Za-z])"
)
_AND = r"(?:[ ]?[,;/–-]?[ ]?(?:then[ ]|and[ ]|dann[ ]|puis[ ]|luego[ ]|poi[ ]|e[ ]|past[ ]it[ ]to[ ]|back[ ]){0,2})"
_TURNS = re.compile(
    rf"(?:{_SIDE_FIRST}|{_NUMBER_FIRST})(?:{_AND}(?:{_SIDE_FIRST}|{_NUMBER_FIRST}|{_TIMES}{_SIDE}|[0-9]{{1,2}}(?![0-9]))){{2,5}}",
    re.IGNORECASE,
)
_THEN = re.compile(
    r"(?<![\w.,:/#+=-])(?P<secret>[0-9]{1,2}(?:[ ]?,)?[ ]then[ ](?:to[ ]|back[ ]to[ ]|left[ ]to[ ]|right[ ]to[ ])?[0-9]{1,2}(?:[ ]?,)?[ ](?:and[ ])?then[ ](?:to[ ]|back[ ]to[ ]|left[ ]to[ ]|right[ ]to[ ])?[0-9]{1,2})(?![\w%])",
    re.IGNORECASE,
)
_SIDES = ("left", "right", "clockwise", "links", "rechts", "gauche", "droite", "izquierda", "derecha", "sinistra", "destra", "esquerda", "direita", "lewo", "prawo", "влево", "вправо")  # fmt: skip


def _turned(text: str, at: int) -> Span | None:
    for start in range(max(0, at - 26), at + 1):
        if text[start - 1 : start].isalnum():
            continue
        match = _TURNS.match(text, start)
        if match is not None and match.end() > at and len(re.findall("[0-9]{1,2}", match[0])) >= 3:
            return match.span() if _in_line(text, _ANY_DIAL, *match.span()) else None
    return None


_UNIT = re.compile(
    r"[ ](?:o['’]clock|m?g\b|reps?|sets?|min|sec|hours?|degrees|kg|lbs?|cm|mm|more|times|rows?|stitches|laps)",
    re.IGNORECASE,
)


def _has_same_steps(said: str) -> bool:
    """Return whether numbers have the same distance from each to the next: "10 then 20 then 30"."""
    numbers = list(map(int, re.findall("[0-9]+", said)))
    return len({after - before for before, after in pairwise(numbers)}) == 1


def _then(text: str, at: int) -> Span | None:
    match = _THEN.search(text, max(0, at - 3), at + 44)
    if (
        match is None
        or match.start() >= at
        or _has_same_steps(match["secret"])
        or _UNIT.match(text, match.end())
    ):
        return None
    return match.span("secret") if _in_line(text, _ANY_DIAL, *match.span("secret")) else None


# --- keys of a door: "C then X then 3 then 5"; buttons: "X Y up down LB"

_KEYS = re.compile(
    r"(?<![\w.,:/#+=-])(?P<secret>(?-i:[A-Z0-9])(?:[ ](?:and|\+)[ ](?-i:[A-Z0-9]))?(?:,?[ ](?:and[ ])?then[ ](?-i:[A-Z0-9])(?:[ ](?:and|\+)[ ](?-i:[A-Z0-9]))?(?![\w'’])){2,6})",
    re.IGNORECASE,
)


_TELLS_KEYS = re.compile(r"(?:[ ](?:is|code)|['’]s|[:=])[ ]{1,2}\Z", re.IGNORECASE)


def _keys(text: str, at: int) -> Span | None:
    match = _KEYS.search(text, max(0, at - 8), at + 60)
    if match is None or match.start() >= at or re.search("[A-Z]", match["secret"]) is None:
        return None
    is_told = (
        _TELLS_KEYS.search(text, max(0, match.start() - 12), match.start()) is not None
        and DIGIT.search(match["secret"]) is not None
    )
    return match.span("secret") if is_told and _in_line(text, _ANY_KEYPAD, *match.span("secret")) else None


_BUTTON = r"(?-i:[ABXY]|[LR][123BT]|ZL|ZR)|up|down|left|right|square|circle|triangle|cross|start|select|△|○|□|✕|[↑↓←→]"
_BUTTONS = re.compile(
    rf"(?<![\w-])(?P<secret>(?:{_BUTTON})(?:[ ,/+-]{{1,2}}(?:then[ ])?(?:{_BUTTON})(?![\w-])){{3,9}})",
    re.IGNORECASE,
)
_OF_BUTTONS = re.compile(
    r"(?:parental[ ](?:lock|code|pin)|passkey|pass[ ]?code|kindersicherung)[^\n:=]{0,40}?(?:[ ](?:is|are)|[ ]?[:=])[ ]{1,2}\Z",
    re.IGNORECASE,
)
_OF_GAMES = re.compile(
    r"cheat|konami|combo|move|special|finisher|trophy|unlocks?[ ]all|secret[ ]level", re.IGNORECASE
)


def _buttons(text: str, at: int) -> Span | None:
    left = line_start(text, at, 60)
    end = line_end(text, at, 100)
    match = _BUTTONS.search(text, at, end)
    if (
        match is None
        or _OF_GAMES.search(text, left, end)
        or not _OF_BUTTONS.search(text[left : match.start()])
    ):
        return None
    return match.span("secret")


# --- patterns that are drawn, and pictures: "top left, middle, bottom right", "cat, sun, boat"

_PLACE = (
    r"(?:(?:start|begin|go|then|and|down|up|across|back|over|straight|diagonal(?:ly)?|to|at|the|from|in|dann|puis|luego|poi|oben|unten)[ ]){0,5}"
    r"(?:(?:top|upper|bottom|lower|middle|mid|centre|center|oben|unten|mitte|haut|bas|milieu|arriba|abajo|centro|alto|basso|sopra|sotto|góra|dół|верх|низ)(?:[ -](?:left|right|middle|centre|center|links|rechts|mitte|gauche|droite|izquierda|derecha|sinistra|destra|row))?|up|down|left|right|links|rechts|gauche|droite|izquierda|derecha|sinistra|destra)(?![\w])(?:[ ](?:dot|corner|one))?"
)
_DRAWN = re.compile(
    rf"(?<![\w-])(?P<secret>{_PLACE}(?:(?:[ ]?[,;/–→>-]{{1,2}}[ ]?|[ ])(?:then[ ])?{_PLACE}){{2,9}})",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"(?<![\w.,:/#+=-])(?P<secret>[1-9](?:[ ]?[-–→,>][ ]?[1-9]){3,8}|[1-9](?:[ ][1-9]){3,8})(?![\w-])"
)
_DRAWN_ON = re.compile(
    r"(?:(?:un)?lock(?:ing|[ -]?screen)?[ -]pattern|pattern[ ](?:to[ ]unlock|lock)|pattern[ ](?:on|of|for)[ ](?:the|my|his|her|mum['’]s|dad['’]s|nan['’]s)[ ](?:phone|tablet|ipad|mobile)|(?:phone|tablet|ipad)['’]?s?[ ]pattern|(?:ent)?sperrmuster|patrón[ ]de[ ]desbloqueo|schéma[ ]de[ ]déverrouillage|padrão[ ]de[ ]desbloqueio|ontgrendelpatroon|wzór[ ]odblokowania|граф(?:\.|ический)[ ]ключ|knock[ ]code(?:[ ]on[ ](?:the|my)[ ][a-z]{3,10})?)(?:[ ](?:is|ist|est|es|это)|[ ]?[:=])[ ]{1,2}",
    re.IGNORECASE,
)


def _drawn(text: str, at: int) -> Span | None:
    end = line_end(text, at, 160)
    left = line_start(text, at, 60)
    told = _DRAWN_ON.search(text, left, min(end, at + 60))
    if told is None:
        return None
    match = _DRAWN.match(text, told.end(), end) or _NUMBERED.match(text, told.end(), end)
    return None if match is None else match.span("secret")


_PICTURES = re.compile(
    r"(?:(?:picture|emoji)[ -](?:password|passcode|pin|login)|(?:picture[ ]code|(?:magic|secret)[ ](?:picture|emoji))s?(?=[^\n:=]{0,30}(?:log[ -]?in|app|account)))(?:[ ](?:for|of|on|to)[ ][^\n:=,]{1,30}?)?(?:[ ]?[:=]|[ ](?:is|was|are))[ ]{1,2}"
    r"(?P<secret>[^\W\d_]{2,12}(?:[ ][^\W\d_]{2,12})?(?:[ ]?[,/+→>-][ ]?(?:then[ ])?[^\W\d_]{2,12}(?:[ ][^\W\d_]{2,12})?){2,7})(?=[.;!)]|[ \t]{0,4}(?:\n|\Z)|[ ][(–—-])",
    re.IGNORECASE,
)


def _pictures(text: str, at: int) -> Span | None:
    match = _PICTURES.match(text, at)
    return None if match is None else match.span("secret")


# --- words in order: "the four words, in order: pelican, granite, mustard, oboe"

_COUNT = {
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "3": 3,
    "4": 4,
    "5": 5,
    "6": 6,
    "7": 7,
    "8": 8,
}
_IN_ORDER = re.compile(
    rf"(?<![\w.])(?P<count>{either(_COUNT)})[ -](?:secret[ ]|random[ ]|magic[ ]|little[ ])?words?[^\n:]{{0,24}}:[ ]{{0,2}}[\"'“]?"
    r"(?P<secret>[^\W\d_]{2,14}(?:(?P<by>,[ ]?|[ ]|-|[ ]?/[ ]?)(?:and[ ])?[^\W\d_]{2,14})(?:(?P=by)(?:and[ ])?[^\W\d_]{2,14}){1,6})(?=[\"'”]?(?:[.;!)]|[ \t]{0,4}(?:\n|\Z)|[ ][(–—-]))",
    re.IGNORECASE,
)
_OPENS = re.compile(
    r"(?:opens|unlocks)[ ]the[ ](?:vault|safe|drive|disk|backup|archive|laptop)|phrase[ ]for[ ](?:the|my|our)[ ](?:vault|safe|drive|disk|backup|archive|laptop|wallet)|bitwarden|keepass|1password|veracrypt",
    re.IGNORECASE,
)


def _in_order(text: str, at: int) -> Span | None:
    match = _IN_ORDER.search(text, max(0, at - 20), at + 160)
    if match is None or match.start() > at:
        return None
    words = re.findall(r"[^\W\d_]{2,14}", re.sub(r"(?<![^\W\d_])and[ ]", "", match["secret"]))
    left = line_start(text, at, 60)
    is_one = len(words) == _COUNT[match["count"].lower()] > _COUNT["three"] and (
        _OPENS.search(text, left, match.start("secret"))
        or _OPENS.search(text, match.end(), match.end() + _CHARS_BEHIND)
    )
    return match.span("secret") if is_one else None


_DIGITS_APART = Nearby(
    re.compile(r"[0-9][ .–-]{1,3}[0-9](?![0-9])"), 0, _CHARS_OF_APART + 24, 6, has_digit=True
)


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


RULES = (
    Rule("code-digits-apart", "code", shortest_anchors(_WORDS.codes), _digits_apart, needs=_DIGITS_APART),
    Rule(
        "code-as-words",
        "code",
        shortest_anchors((*_WORDS.codes, *_WORDS.locks, *_WORDS.aloud)),
        _digits_as_words,
    ),
    Rule("lock-turned", "code", _SIDES, _turned, needs=Nearby(DIGIT, 4, 12)),
    Rule("lock-then", "code", (" then ", ", then "), _then, needs=Nearby(DIGIT, 4, 12)),
    Rule("lock-keys", "code", (" then ",), _keys, needs=Nearby(re.compile(r"[ ][A-Z0-9][ ,]"), 3, 8, 3)),
    Rule("buttons", "code", ("xbox", "playstation", "ps4", "ps5", "switch", "console", "parental", "passkey", "controller"), _buttons, needs=Nearby(re.compile(r"[ABXYLR][B1-3T]?[ ,/+-]{1,2}(?:[ABXYLR]|up|down|left|right)"), 60, 80, 9)),
    Rule("pattern-drawn", "code", ("pattern", "muster", "patrón", "schéma", "knock code", "schema", "padrão", "patroon", "wzór", "desen", "узор", "граф. ключ", "графический ключ"), _drawn),
    Rule("pictures", "code", ("picture", "emoji", "magic picture", "magic emoji", "secret picture", "secret emoji"), _pictures),
    Rule("words-in-order", "password", (" words", "-words"), _in_order, needs=Nearby(re.compile(":"), 0, 30)),
)  # fmt: skip
"""One rule a way to type, draw or turn a code."""
DIALLED = (
    Rule("safe-dialled", "code", _WITH_DIAL, _dialled, needs=Nearby(re.compile("[0-9](?:-|[ ][-–][ ]|[ ])[0-9]"), 0, 190, 4, has_digit=True)),
)  # fmt: skip
"""Combinations, where a text tells how a dial is turned."""
