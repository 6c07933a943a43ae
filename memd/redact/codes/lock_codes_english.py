"""Finds codes of locks in English sentences: "the gate code is 4471", "the safe opens with 731904", "combo 12-34-08"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, line_start, matching
from memd.redact.values.code_numbers import ENDS_NUMBER, may_be_code
from memd.redact.words.secret_words import SECRET_WORDS, either

# Things with a lock: digits near them are their code, whatever is between.
_LOCKS = (
    "door", "gate", "alarm", "disarm", "arming", "entry", "entrance", "unlock", "keypad", "garage", "safe", "vault", "lock", "locker",
    "lockbox", "key box", "keybox", "padlock", "voicemail", "sim", "debit", "credit", "atm", "bank", "card", "burglar", "panel",
    "building", "office", "duress", "apartment", "house", "elevator", "lift", "gym", "bike", "suitcase", "luggage", "ipad", "iphone", "phone",
    "tablet", "screen", "parental", "smart lock", "smartlock", "front", "back",
)  # fmt: skip
_LOCKED = f"(?:{'|'.join(_LOCKS)})"
_BEFORE_CODE = tuple(f"{word} " for word in (*_LOCKS, "time"))
_OF_LOCK = re.compile(rf"(?<![A-Za-z]){_LOCKED}(?:[ ]time)?[ ]\Z", re.IGNORECASE)
_CODE_OF_LOCK = re.compile(
    r"(?:code|pin|combo|passcode)(?![a-z])(?:[ ](?:for|of|to|on)(?:[ ][\w'’-]{1,20}){1,4}?)?"
    r"(?:[ ](?:is|was|now|still|just|set|to|hasn['’]t|has|not|changed|new)){0,3}[ ]?[:=—–-]?[ ]{0,3}[\"'`*#]{0,2}"
    rf"(?P<secret>[0-9]{{4,8}}|[0-9]{{1,2}}(?:[ ]?[-–/][ ]?[0-9]{{1,2}}){{2,3}}|(?-i:(?=[0-9]{{0,7}}[A-Z])(?=[A-Z]{{0,7}}[0-9])[0-9A-Z]{{4,8}})){ENDS_NUMBER}",
    re.IGNORECASE,
)
_CODE_FOR_LOCK = re.compile(
    rf"(?:code|pin|combo)[ ](?:for|of|to|on)[ ](?:(?:the|my|our|his|her|their|your)[ ])?(?:[\w'’-]{{1,20}}[ ]){{0,2}}{_LOCKED}(?:[ ](?:door|gate|panel|lock|keypad|box)){{0,2}}"
    rf"(?:(?:[ ](?:is|was|now|still|just)){{1,3}}[ ]?:?|[ ]?:)[ ]{{0,3}}[\"'`*]{{0,2}}(?P<secret>[0-9]{{3,8}}|(?-i:(?=[0-9]{{0,7}}[A-Z])(?=[A-Z]{{0,7}}[0-9])[0-9A-Z]{{4,8}})){ENDS_NUMBER}",
    re.IGNORECASE,
)
# "The keypad takes 4471#"
_TAKEN_BY = re.compile(
    rf"(?:door|gate|pad|lock|alarm|safe)[ ](?:takes|wants|accepts)[ ](?:the[ ]code[ ])?(?P<secret>[0-9]{{4,8}}(?:\#|(?=[.,;!]?[ ]{{0,4}}(?:\n|\Z)|[.,;!][ ]))){ENDS_NUMBER}",
    re.IGNORECASE,
)
_DATE = r"(?:[0-2]?[0-9]|3[01])-(?:0?[1-9]|1[0-2])-[0-9]{2}(?![0-9-])"
_OPENS = re.compile(
    r"(?:(?:opens?|unlocks?|disarms?|(?<=alarm )off)[ ](?:it[ ])?(?:with|by|using|on|at)|disarms?[ ](?:the|my|our|your)[ ](?:[\w'’-]{1,16}[ ]){1,4}?(?:with|by|using))[ ](?:the[ ])?(?:code[ ]|number[ ]|pin[ ])?"
    rf"(?P<secret>(?<! at )[0-9]{{4,8}}#?|(?:(?<!on )|(?!{_DATE}))[0-9]{{1,2}}(?:-[0-9]{{1,2}}){{2,3}}){ENDS_NUMBER}"
    rf"(?![ ](?!(?:{either(SECRET_WORDS.context.goes_on)})(?!\w))[A-Za-z])",
    re.IGNORECASE,
)
# Of 3-4-5, which may be a triangle or a score, a word may not follow; nor what three numbers are counted in.
_ENDS_TURNS = r"(?<![^0-9][0-9]-[0-9]-[0-9](?=[ ][A-Za-z]))(?![ ](?:are|is|days|hours|minutes|items|times|people|times|in|of|cm|mm)\b)"
_COMBINATION = re.compile(
    r"(?<!key )comb(?:ination|o)(?:(?:[ ](?:is|was|to|for|of|the|my|our|safe|lock|locker)){0,4}[ ]?[:=]?|[ ](?:is|was|to|for|of)[ ][^\n:]{1,60}:)[ ]"
    rf"(?P<secret>[LR]?[0-9]{{1,3}}(?:[ ]?[-–][ ]?[LR]?[0-9]{{1,3}}){{2,4}})(?![\w-]){_ENDS_TURNS}",
    re.IGNORECASE,
)
# A lock with its location, and three numbers: the safe in the study: 38-07-52
_TURNED = re.compile(
    r"(?:safe|lock|locker|padlock|vault)(?:[ ](?:in|of|on|at|for)(?:[ ][\w'’-]{1,20}){1,4}?)?[ ]?[:=][ ]{0,2}(?:combination[ ])?"
    rf"(?P<secret>[0-9]{{1,2}}(?:[ ]?-[ ]?[0-9]{{1,2}}){{2,3}}|(?<=combination )[0-9]{{3,6}})(?![\w-]){_ENDS_TURNS}",
    re.IGNORECASE,
)
_CHARS_OF_LOCK = 20  # characters before the word for a code, in which the name of the lock begins


def _of_lock(text: str, at: int) -> Span | None:
    """Return the code of a lock that is named before or after the word for a code."""
    match = _CODE_FOR_LOCK.match(text, at)
    if match is not None:
        return match.span("secret")
    left = text[max(0, at - _CHARS_OF_LOCK) : at]
    if not left.lower().endswith(_BEFORE_CODE):
        return None
    match = _CODE_OF_LOCK.match(text, at)
    return None if match is None or _OF_LOCK.search(left) is None else match.span("secret")


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
    if match is None or not may_be_code(match["secret"]):
        return None
    begin, end = line_start(text, at, 80), line_end(text, match.end(), 60)
    is_one = _IS_TYPED.search(text, begin, end) is not None and _OF_ANOTHER.search(text, begin, end) is None
    return match.span("secret") if is_one else None


# --- "the code for the bike shed is 0837": what is opened, of a house

_OF_PLACE = re.compile(
    rf"code[ ](?:for|to|of|on)[ ](?:the|our|my|her|his|their|your)[ ](?:[a-z'’-]{{1,14}}[ ]){{0,3}}?(?:shed|bike|barn|attic|cellar|basement|gym|pool|pantry|cabin|cottage|flat|apartment|building|office|studio|garage|gate|door|lobby|stairwell|entrance|entry|hallway|laundry|mailbox|locker|lock|lockbox|safe|box|cupboard|cabinet|drawer|alarm|elevator|lift|bathroom|toilet|restroom|car[ ]park|parking|barrier|fence|yard|courtyard|storage|unit|airbnb|rental|keypad|suitcase|briefcase)(?:[ ](?:door|gate|lock|room|area|now|here|there|today|still)){{0,2}}[ ]?(?:is|was|:|=|,[ ]it['’]?s|has[ ]changed[ ]to|changed[ ]to)[ ](?:still[ ]|now[ ])?(?P<secret>[0-9]{{4,8}}[#*]?){ENDS_NUMBER}",
    re.IGNORECASE,
)


def _of_place(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _OF_PLACE.match(text, at)
    return match.span("secret") if match is not None and may_be_code(match["secret"].rstrip("#*")) else None


_NUMBER_NEAR = Nearby(re.compile("[0-9]{4}"), 0, 60, 4, has_digit=True)
# Behind the verb at once: "unlock: 4471".
_UNLOCKS = re.compile(
    r"unlock(?:s|[ ](?:code|pin|number))?[ ]?[=:][ ]?(?P<secret>[0-9]{4,8})(?<!00)(?=[.,;)](?![0-9])|[ \t]{0,4}(?:\n|\Z)|[ ]and[ ])",
    re.IGNORECASE,
)


RULES = (
    Rule("code-of-lock", "code", ("code", "pin", "combo", "passcode"), _of_lock, skips_prose=True, needs=Nearby(DIGIT, 0, 120)),
    Rule("code-opens", "code", ("open", "unlock", "disarm", "off with"), matching(_OPENS), has_digit=True),
    Rule(
        "code-taken",
        "code",
        tuple(f"{lock} {takes}" for lock in ("door", "gate", "pad", "lock", "alarm", "safe") for takes in ("takes", "wants", "accepts")),
        matching(_TAKEN_BY),
        has_digit=True,
    ),
    Rule("combination-of-lock", "code", ("safe", "lock", "vault"), matching(_TURNED), has_digit=True),
    Rule("combination-said", "code", ("combination", "combo"), matching(_COMBINATION), has_digit=True),
)  # fmt: skip
"""Digits behind a word for codes and a lock, behind a verb for opening, and combinations."""
DIGITS_ALONE = (
    Rule("digits-are", "code", ("the four", "my four", "the 4", "my 4", "the six", "the 6", "my 6", "my six", "the five", "the 5", "her 4", "his 4", "its 4", "our 4", "pairing ", "pair number", "bluetooth ", "unlock ", "disarm ", "keypad "), _digits_are, needs=_NUMBER_NEAR),
)  # fmt: skip
"""Digits where a text says how many they are, without a word for codes."""
OF_PLACES = (
    Rule("code-of-place", "code", ("code for ", "code to ", "code of ", "code on "), _of_place, needs=Nearby(re.compile("[0-9]{4}"), 0, 90, 4, has_digit=True)),
)  # fmt: skip
"""Codes for places in and around a house."""
THAT_UNLOCK = (
    Rule("code-that-unlocks", "code", ("unlock",), matching(_UNLOCKS), needs=Nearby(re.compile("[=:]"), 0, 22), has_digit=True),
)  # fmt: skip
"""Digits that unlock something."""
