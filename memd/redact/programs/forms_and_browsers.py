"""Finds what is typed into a form, by a person, a test or its scenario, and what a browser keeps or a recording of its requests has."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_start, stem
from memd.redact.values import secret_values
from memd.redact.values.fixed_places import with_digit

# --- setItem('auth','zz_91.kk0.TTq') in a console of a browser, and a name and a value in a recording of requests

_STORED = re.compile(
    r"(?:setitem|set_cookie|setcookie|cookies?\.set|storage\.set|sessionstorage\.set)\([ ]?[\"'][\w.:-]{0,30}(?:auth|token|session|sess|sid|jwt|key|pass|secret|cred|csrf)[\w.:-]{0,20}[\"'][ ]?,[ ]?[\"'](?P<secret>[^\"'\n\s$]{6,400})[\"']",
    re.IGNORECASE,
)
_VALUE_OF_NAME = re.compile(
    r"name\\{0,3}[\"'][ ]?:[ ]?\\{0,3}[\"'][\w.:-]{0,40}(?:auth|session|sess|sid|token|secret|api-?key|apikey|csrf|passw)[\w.:-]{0,20}\\{0,3}[\"'][ ]?,\s{0,12}\\{0,3}[\"']value\\{0,3}[\"'][ ]?:[ ]?\\{0,3}[\"'](?P<secret>[^\"'\n\s\\$<{]{6,400})(?=\\{0,3}[\"'])",
    re.IGNORECASE,
)


# --- When I enter "amy" and "Nutmeg+Grater5"

_ENTERED = re.compile(
    r"(?:enters?|types?|fills?(?:[ ]in)?|submits?|logs?[ ]in[ ](?:as|with)|signs?[ ]in[ ](?:as|with)|credentials|login[ ]with|logging[ ]in[ ](?:as|with))[ ](?:the[ ])?(?:user(?:name)?[ ]|e-?mail[ ])?[\"'“](?=[^\"'“”\n]{0,40}[A-Za-z])[^\"'“”\n]{1,60}[\"'”](?:[ ](?:and|with|/|,)|,)(?:[ ](?:the[ ])?pass(?:word|code))?[ ][\"'“](?=[^\s\"'“”]{0,60}[A-Za-z])(?P<secret>[^\s\"'“”]{5,64})[\"'”]",
    re.IGNORECASE,
)


_OF_LOGIN = re.compile(r"log[ -]?in|sign[ -]?in|logging[ ]in|password|user[ ]?name|credential", re.IGNORECASE)


def _entered(text: str, at: int) -> Span | None:
    match = _ENTERED.match(text, at)
    end = 0 if match is None else text.find("\n", match.end(), match.end() + 60)
    left = line_start(text, at, 60)
    is_one = (
        match is not None
        and DIGIT.search(match["secret"]) is not None
        and (
            _OF_LOGIN.search(text, left, match.start("secret"))
            or _OF_LOGIN.search(text, match.end(), match.end() + 60 if end < 0 else end)
        )
    )
    return (
        match.span("secret")
        if match is not None and is_one and not secret_values.is_reference(match["secret"])
        else None
    )


# --- find_element(By.ID, "mm").send_keys("..."), page.fill("#mima", "..."): what is typed into a field for passwords

_FIELD = re.compile(
    r"[\"'#=\[.](?:(?:[a-z0-9]{1,16}[_-]|dl|yh|xs|user|login)?(?:mm|kl)|[a-z0-9_-]{0,16}(?:mima|kouling|psw|psd|pswd|upass))[\"'\]]{1,4}"
    r"(?:[ ]?\){1,2}\.(?:clear\(\)\.)?(?:send_?keys|fill|type|val|set_?value|set_?text|input|press_?sequentially)\([ ]?|[ ]?,[ ]?)[\"'](?P<secret>[^\s\"'\n]{5,64})[\"'][ ]?\)",
    re.IGNORECASE | re.ASCII,
)
_TYPES = re.compile(r"(?:find|locat|query|element|fill|type|send|input|\$)\w{0,24}[.(]", re.IGNORECASE)


def _typed_into(text: str, at: int) -> Span | None:
    begin = at - len(stem(text, at, 20)) - 1
    match = _FIELD.match(text, begin) if begin >= 0 else None
    if match is None or _TYPES.search(text, line_start(text, at, 80), at) is None:
        return None
    said = match["secret"]
    is_date = DIGIT.match(said) is not None and not said.isdecimal() and re.search("[A-Za-z]", said) is None
    is_one = not is_date and (DIGIT.search(said) is not None or secret_values.has_symbol(said))
    return match.span("secret") if is_one and not secret_values.is_reference(said) else None


FIELDS = (
    Rule("typed-into-field", "password", ('mm"', "mm'", 'kl"', "kl'", 'psd"', "psd'", "pswd", "upass", "mima", "kouling"), _typed_into, needs=Nearby(re.compile(r"[(,][ ]?[\"']"), 0, 60, 3)),
)  # fmt: skip
"""What is typed into a field."""
STORAGE_AND_RECORDINGS = (
    Rule("stored-value", "token", ("setitem(", "set_cookie(", "setcookie(", "cookies.set(", "cookie.set(", "storage.set("), with_digit(_STORED)),
    Rule("value-of-name", "token", ('name":', "name':", 'name\\":'), with_digit(_VALUE_OF_NAME), needs=Nearby(re.compile("value"), 0, 100, 5)),
)  # fmt: skip
"""What a browser keeps, and what a recording of its requests has."""
SCENARIOS = (
    Rule("entered-in-scenario", "password", ("enter", "type", "fill", "submit", "in as", "in with", "credentials", "login with"), _entered, needs=Nearby(re.compile("[\"“']"), 0, 30)),
)  # fmt: skip
"""What a scenario of a test enters."""
