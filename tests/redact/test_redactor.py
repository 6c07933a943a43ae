"""Redacting a text."""

import json
import re
import sys
from collections.abc import Callable
from random import Random
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.config.settings import Redact, UserRule
from memd.redact.redactor import Redactor
from memd.redact.rule import GOES_ON, Rule, SecretSpan, rules_key
from memd.redact.rule_set import RULES, explained
from tests.redact import innocent
from tests.redact.corpus import samples
from tests.table import table

_KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
_REDACTOR = Redactor(Redact())
_SOME = [sample.text for sample in samples(seed=3)][::97]


def _redacted(text: str, **settings: object) -> str:
    return Redactor(Redact(**settings)).redact(text).text  # type: ignore[arg-type]


@table(
    ("text", "value"),
    [
        ("password is hunter2", "hunter2"),
        ("my password: correct-horse", "correct-horse"),
        ("the password for the staging db is hunter2.", "hunter2"),
        ("the password was changed to Tr0ub4dor&3", "Tr0ub4dor&3"),
        ('my passphrase is "correct horse battery staple"', "battery"),
        ("log in as ann, password hunter2", "hunter2"),
        ("**Password:** hunter2", "hunter2"),
        ("| password | hunter2 |", "hunter2"),
        ("hunter2 is my password", "hunter2"),
        ("abc123是我的密码", "abc123"),
        ("密码是 abc123", "abc123"),
        ("密码:qwerty", "qwerty"),
        ("密码：qwerty", "qwerty"),
        ("密码＝abc123", "abc123"),
        ("密码abc123", "abc123"),
        ("密码（测试）：abc123", "abc123"),
        ("密码我改成了 hunter2", "hunter2"),
        ("密码改成了「hunter2」", "hunter2"),
        ("数据库密码为“hunter2”。", "hunter2"),
        ("我的密码是hunter2，别告诉别人", "hunter2"),
        ("账号密码：admin/admin123", "admin123"),
        ("部NAS個密碼我改咗做 siuMai&haGow，你試下", "siuMai&haGow"),
        ("小号 账号 yuan@example.com 密码 paimeng!shiwu 别抽卡", "paimeng!shiwu"),
        ("iDRAC 用户 root 口令 calvin-no-more", "calvin-no-more"),
        ("进群口令是“芝麻烧饼不要糖”，对上了我再拉你", "芝麻烧饼不要糖"),
        ("原来明文是 Cangku#wms1 ，现在是加密的", "Cangku#wms1"),
        ("webhook 的签名校验 CGlFsRPUlxFI12yHwsb0IN", "CGlFsRPUlxFI12yHwsb0IN"),
        ("La contraseña del correo de la comunidad es Portero2B_2025", "Portero2B_2025"),
        ("пароль от роутера Samovar_1703, логин admin", "Samovar_1703"),
        ("Rotated the root password yesterday: was Mango-Kiste-1, is now Mango-Kiste-2b.", "Mango-Kiste-2b"),
        ("What is the password for staging?\nuser: preview!Otter\nthanks", "preview!Otter"),
        (
            "Password for the elastic user (reset with `bin/reset`):\n  T8*IvOj7nKUs5sL=i9J",
            "T8*IvOj7nKUs5sL=i9J",
        ),
        ("<Password>\n  <Value>Pf4ndflasche</Value>\n</Password>", "Pf4ndflasche"),
        (
            "define( 'AUTH_KEY',  'Ep@vpp%29fD#N2^yn?EU{YGeEE2Q5QJ0uf(L._4Pqu&}?S<JE)vaPF:xz' );",
            "EU{YGeEE2Q5QJ0uf",
        ),
        ("API 密钥：abcdef123456", "abcdef123456"),
        ("password=letmein", "letmein"),
        ("POSTGRES_PASSWORD: postgres", "postgres"),
        ("export DB_PASS=hunter2", "hunter2"),
        ("db.password=hunter2!", "hunter2!"),
        ('"password": "hunter2"', "hunter2"),
        (json.dumps(json.dumps(json.dumps({"password": "hunter2"}))), "hunter2"),
        ('"password": "p@ss\\"word1"', "word1"),
        ("DB_PASSWORD=hunter2\\nPORT=1", "hunter2"),
        ("password = 'correct horse battery staple'", "battery"),
        ('os.environ.get("DB_PASSWORD", "hunter2")', "hunter2"),
        ('password: str = "hunter2"', "hunter2"),
        ("<password>hunter2</password>", "hunter2"),
        ('<add key="DbPassword" value="hunter2"/>', "hunter2"),
        ("Server=h;User Id=sa;Password=hunter2;Encrypt=no", "hunter2"),
        ("user=ann&password=hunter2&x=1", "hunter2"),
        ("--password hunter2", "hunter2"),
        ("mysql -uroot -phunter2 app", "hunter2"),
        ("login -p'hunter2'", "hunter2"),
        ("curl -u ann:hunter2 https://x", "hunter2"),
        ("machine h login ann password hunter2", "hunter2"),
        ("IDENTIFIED BY 'hunter2'", "hunter2"),
        ("postgres://ann:p/w@1@db:5432/x", "p/w@1"),
        ("redis://:hunter2@h:6379/0", "hunter2"),
        ("jdbc:oracle:thin:ann/hunter2@//h:1521/x", "hunter2"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "K7MDENG"),
        ("//registry.npmjs.org/:_authToken=abcdef12-3456-7890", "abcdef12-3456"),
        ('"auth": "YW5uOmh1bnRlcjI="', "YW5uOmh1bnRlcjI"),
        ("Authorization: Bearer hunter2", "hunter2"),
        ("Authorization: Basic YW5uOng=", "YW5uOng="),
        ('Authorization: Digest username="ann", response="abcdef"', "response"),
        ("the key is Ab3dEf6hIj9kLm2nOp5q", "Ab3dEf6hIj9kLm2nOp5q"),
        ("b64:" + "a" * 3 + "8Q~" + "xy7" * 11 + "x", "8Q~xy7x"),
        ("0123456789abcdef0123456789abcdef-us12", "-us12"),
    ],
)
def test_a_secret_is_taken_out(text: str, value: str) -> None:
    """However it is told; what says what it is stays."""
    redacted = _REDACTOR.redact(text)
    assert value in text
    assert value not in redacted.text
    assert sum(redacted.counts.values()) == 1


@table("line", innocent.LINES)
def test_what_is_no_secret_stays(line: str) -> None:
    """Though it speaks of secrets, or looks like one."""
    assert _REDACTOR.redact(line).text == line


@pytest.mark.parametrize("seed", range(3))
def test_talk_programs_and_logs_stay(seed: int) -> None:
    """Two thousand lines of them."""
    text = innocent.chat(Random(seed), 2000)
    assert [text[find.start : find.end] for find in _REDACTOR.finds(text)] == []


def test_key_and_quotes_stay() -> None:
    """Only the value goes, so that the text says what was there."""
    assert _redacted('{"password": "hunter2", "port": 1}') == '{"password": "[REDACTED:password]", "port": 1}'
    assert _redacted("DB_PASSWORD='hunter2' run") == "DB_PASSWORD='[REDACTED:password]' run"
    assert _redacted(f"Authorization: Bearer {_KEY}") == "Authorization: Bearer [REDACTED:github-token]"
    assert _redacted("postgres://ann:hunter2@db/x") == "postgres://ann:[REDACTED:url-password]@db/x"


def test_kinds_are_counted() -> None:
    """By name, never by value."""
    redacted = _REDACTOR.redact(f"{_KEY} and {_KEY}\npassword=hunter2")
    assert redacted.counts == {"github-token": 2, "password": 1}
    assert _REDACTOR.redact("nothing here").counts == {}


def test_finds_that_overlap_are_one() -> None:
    """It has the kind that is known for certain."""
    redacted = _REDACTOR.redact(f'GITHUB_TOKEN="{_KEY}"')
    assert (redacted.text, redacted.counts) == ('GITHUB_TOKEN="[REDACTED:github-token]"', {"github-token": 1})


_PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + ("Q2x1ZQ" * 10 + "abcd\n") * 6
    + "Zm9v\n-----END RSA PRIVATE KEY-----"
)


def test_a_private_key_keeps_its_lines() -> None:
    """So that what comes after it is where it was."""
    redacted = _REDACTOR.redact(f"before\n{_PEM}\nafter")
    assert redacted.text == "before\n[REDACTED:private-key]" + "\n" * 9 + "after"
    assert redacted.counts == {"private-key": 1}


@pytest.mark.parametrize("cut", range(40, len(_PEM), 7))
def test_a_private_key_goes_wherever_it_is_cut(cut: int) -> None:
    """Its beginning, and its end."""
    first, rest = _PEM[:cut], _PEM[cut:]
    left = _redacted(f"see {first}")
    assert not re.search(
        r"[A-Za-z0-9+/]{10}", left.replace("[REDACTED:private-key]", "").replace("BEGIN RSA PRIVATE KEY", "")
    )
    right = _redacted(f"so:\n{rest}\nthat was it")
    assert "Q2x1ZQQ2x1ZQ" not in right.split("\n", 2)[-1]
    assert right.endswith("that was it")


@pytest.mark.parametrize("mark", ["> ", ">> ", "    ", "| ", "+"])
def test_the_rest_of_a_private_key_that_is_quoted_goes(mark: str) -> None:
    """With a mark before each line, the last one included."""
    lines = [f"{mark}{line}" for line in _PEM.split("\n")[3:]]
    left = _redacted("\n".join(["so:", *lines, "that was it"]))
    assert "Q2x1ZQ" not in left
    assert left.startswith("so:\n")
    assert left.endswith("\nthat was it")


def test_what_follows_a_cut_key_stays() -> None:
    """Unless it is made as keys are."""
    cut = "\n".join(_PEM.split("\n")[:4])
    assert _redacted(f"{cut}\n\nThe rest is in the safe.").endswith("\n\nThe rest is in the safe.")


def test_a_quoted_and_an_escaped_key_go() -> None:
    """Marks of quotation, and JSON within JSON."""
    quoted = "\n".join(f"> {line}" for line in _PEM.split("\n"))
    assert "Q2x1" not in _redacted(quoted)
    escaped = json.dumps(json.dumps({"private_key": _PEM, "id": 7}))
    assert _redacted(escaped).endswith('[REDACTED:private-key]\\", \\"id\\": 7}"')


def test_a_secret_goes_wherever_it_stands_again() -> None:
    """As a whole word, whatever is around it; a word of letters alone, a short one and a part of another one stay."""
    secret = "Tulip7harbor"
    text = f"my password is {secret}.\n\nThe quick one: {secret}; x{secret}, {secret}9, and ({secret})"
    gone = f"my password is [M].\n\nThe quick one: [M]; x{secret}, {secret}9, and ([M])"
    assert _REDACTOR.redact(text).text == gone.replace("[M]", "[REDACTED:password]")
    seventeen = " ".join(f"password: Tulip{number}harbor" for number in range(100, 117))
    assert _REDACTOR.redact(f"{seventeen}\nThe quick one: Tulip103harbor").text.endswith(" Tulip103harbor")
    assert "a sunshine day" in _REDACTOR.redact('password = "sunshine"\nIt was a sunshine day').text


def test_an_allowed_text_stays() -> None:
    """That very text alone, in these capitals."""
    allow = ("hunter2",)
    assert _redacted("password=hunter2", allow=allow) == "password=hunter2"
    assert "Hunter2" not in _redacted("password=Hunter2", allow=allow)
    assert "hunter22" not in _redacted("password=hunter22", allow=allow)


def test_a_users_rule_adds_to_the_others() -> None:
    """The group of that name is replaced, or else the first one, or else all of it."""
    extra = (
        UserRule(name="badge", pattern=r"badge (?P<x>no\.) (?P<secret>\d+)"),
        UserRule(name="door", pattern=r"door (\d+)"),
        UserRule(name="bird", pattern=r"heron|egret(s)?"),
    )
    text = "badge no. 77, door 12, heron, egret, password=hunter2"
    assert _redacted(text, extra=extra) == (
        "badge no. [REDACTED:badge], door [REDACTED:door], [REDACTED:bird], [REDACTED:bird], password=[REDACTED:password]"
    )


def test_a_users_rule_does_not_touch_marks() -> None:
    """Though it matches them: redacting twice is redacting once."""
    redactor = Redactor(Redact(extra=(UserRule(name="shout", pattern="[A-Z]{4,}|:pass"),)))
    once = redactor.redact("LOUD password=hunter2").text
    assert once == "[REDACTED:shout] password=[REDACTED:password]"
    assert redactor.redact(once).text == once


def test_the_key_of_the_rules_follows_what_decides() -> None:
    """Not the mode, and not the order of what is allowed."""
    extra = (UserRule(name="a", pattern="b"),)
    keys = [rules_key(Redact()), rules_key(Redact(extra=extra)), rules_key(Redact(allow=("x",)))]
    assert len(set(keys)) == 3
    assert rules_key(Redact(mode="off")) == keys[0]
    assert rules_key(Redact(allow=("x", "y", "x"))) == rules_key(Redact(allow=("y", "x")))


def test_rules_have_names_of_their_own() -> None:
    """And kinds that a mark can hold; what is looked for is in the letters that it is looked for in."""
    names = [rule.name for rule in RULES]
    assert len(names) == len(set(names))
    for rule in RULES:
        assert re.fullmatch("[a-z0-9-]{1,40}", rule.kind)
        assert rule.anchors
        assert rule.in_token or all(anchor == anchor.lower() for anchor in rule.anchors)


_PIECES = st.sampled_from(
    [
        *_SOME, *innocent.LINES, _KEY, "password", "密码", "是", "=", ": ", '"', "'", "\\", "\\n", "\n", "\r\n", " ", "://", "@", "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----", "MIIEvQ" * 9, "[REDACTED:", "[REDACTED:password]", "]", "Bearer ", "Cookie: a=", "İ", "\0", "𝒳", "hunter2", "--token ", " -p", "eyJ", "?key=",
    ]
)  # fmt: skip


@given(st.lists(_PIECES | st.text(max_size=8), max_size=12).map("".join))
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """Whatever the text; and lines keep their numbers."""
    once = _REDACTOR.redact(text)
    assert _REDACTOR.redact(once.text) == type(once)(once.text, {})
    assert once.text.count("\n") == text.count("\n")
    assert (once.text == text) == (not once.counts)


_REPEATED = st.sampled_from(
    [
        "a", "A", "0", "-", "_", ".", " ", "  ", "a ", "abcd   ", "1. abcd  ", "a-", "a.", "a=", "a=;", "a00-a;", "/a", "\\\\", "\\\\n", '"', '""', "'a'", "''a",
        "(", "[", "{{", "*", "`", "=", ":", "，", "密", "是", "is ", "the ", "Aa", "aA0", "x1.", "@a", "%41", "&a=", "\t", "a: its ", "\n", "> ", "| ",
    ]
)  # fmt: skip


@given(
    before=st.lists(_PIECES, min_size=1, max_size=3).map("".join),
    prefix=st.sampled_from(["", "put", "your", "PUT", "my", "~/", "$", "f(", "q", "ab", "1", "-", '"', "'"]),
    unit=st.lists(_REPEATED, min_size=1, max_size=3).map("".join),
    count=st.sampled_from([9, 10, 30, 300]),
    after=st.sampled_from(["", "%", "!!", "\x01", "\n", "。", '"', "x"]) | _PIECES,
)
@example(before="password: ", prefix="put", unit="a", count=300, after="%")
@example(before="my seed phrase: ", prefix="", unit="abcd   ", count=10, after="!!")
def test_no_text_takes_long(before: str, prefix: str, unit: str, count: int, after: str) -> None:
    """However something repeats itself behind what announces a secret, it is looked through in no time."""
    text = f"{before}{prefix}{unit * count}{after}"
    began = process_time()
    _REDACTOR.redact(text)
    assert process_time() - began < 1  # by far: it takes milliseconds


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_token_goes_wherever_it_stands(before: str, after: str) -> None:
    """Unless a letter or digit is right before it, for then it is a part of something else."""
    text = f"{before} {_KEY} {after}"
    assert _KEY not in _REDACTOR.redact(text).text


@pytest.mark.parametrize("shift", range(0, 60, 3))
def test_a_token_goes_wherever_a_large_text_is_divided(shift: int) -> None:
    """It is looked through in pieces."""
    text = "a b " * 65_530 + " " * shift + _KEY + " b" * 9
    assert _REDACTOR.redact(text).counts == {"github-token": 1}


def test_large_texts_are_redacted() -> None:
    """More than a million signs, with secrets at both ends."""
    text = f"password=hunter2 {'我们 talked about the index. ' * 60_000} {_KEY}"
    redacted = _REDACTOR.redact(text)
    assert redacted.counts == {"github-token": 1, "password": 1}
    assert len(text) > 1_000_000


@pytest.mark.parametrize("text", ["İ ENCRYPTION_KEY=hunter2hunter22", "İ APIKEY: hunter2hunter22"])
def test_capitals_are_read_beside_a_letter_that_grows_in_lower_case(text: str) -> None:
    """One such letter would shift all that follows it: then only letters of ASCII are made small."""
    assert "hunter2" not in _redacted(text)


@pytest.mark.parametrize(
    "text", ["密码改成了「hunter2", "密码是“hunter2", "my password is «hunter2 and so on"]
)
def test_a_quotation_that_does_not_end_hides_nothing(text: str) -> None:
    """Its first word is the value."""
    assert "hunter2" not in _redacted(text)


@pytest.mark.parametrize(("text", "is_secret"), [("API_SECRET=a1b2c3", True), ("API_SECRET=a1b2c", False)])
def test_a_variable_in_capitals_has_a_short_value(text: str, is_secret: bool) -> None:
    """Six signs are enough there, and fewer are none."""
    assert ("a1b2c" not in _redacted(text)) is is_secret


_ANCHORS = sorted({anchor for rule in RULES for anchor in rule.anchors})


@pytest.mark.rows(1)
@pytest.mark.parametrize("part", range(20))  # one by one, they would take longer to begin than to run
def test_calls_grow_with_the_length(part: int) -> None:
    """Four times as many of any anchor take far from sixteen times as many calls.

    They may take a little more than four times as many: what is taken out makes the shorter text shorter for each search.
    A few anchors come to that only in longer texts, where each search finds something.
    """
    anchors = _ANCHORS[part::20]
    assert anchors
    assert [anchor for anchor in anchors if _is_steep(anchor, 100) and _is_steep(anchor, 250)] == []


def _is_steep(anchor: str, count: int) -> bool:
    return _calls(anchor * 4 * count) > 6 * _calls(anchor * count) + 200


@pytest.mark.parametrize("shift", range(0, 20, 3))
def test_each_token_is_found_once_and_where_it_stands(shift: int) -> None:
    """Between words of any length, and where a large text is divided."""
    text, starts = "", []
    for size in (0, 5, 13, 14, 60, 131_000, 131_000):
        text += " a-b.c" * (size // 6) + "x" * shift + " "
        starts.append(len(text))
        text += _KEY + "\n"
    assert [find.start for find in _REDACTOR.finds(text)] == starts


@pytest.mark.rows(1)
@pytest.mark.parametrize("piece", ["Q~", "Q~\u200b"])
def test_only_what_is_near_is_searched_again(piece: str) -> None:
    """Each search takes out the last token of many that overlap, and the others are not tried again."""
    text = "".join(f"{digit}{piece}" for digit in Random(1).choices(range(10), k=40_000))
    once = _calls(text, _REDACTOR.finds)
    assert sum(_REDACTOR.redact(text).counts.values()) > 4
    assert _calls(text) < 4 * once


def test_what_is_hidden_by_another_is_found_far_from_the_first() -> None:
    """Whether it stands in a short text or between long ones."""
    text, far = "8Q~" * 100, "nothing is here\n" * 4000
    assert _redacted(far + text + "\n" + far) == far + _redacted(text + "\n") + far


def _calls(text: str, search: Callable[[str], object] = _REDACTOR.redact) -> int:
    """How many functions are called to search a text."""
    count = 0

    def seen(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        search(text)
    finally:
        sys.setprofile(before)
    return count


_ENDINGS = ("", "s", "word", "wd", "code", "phrase", "ed", "ing", "entials", "ization", "ion")
_NEXT = (
    "is", "to", "for", "from", "of", "the", "my", "value", "below", "code", "are", "plain", "login", "works", "hunter", "and", "with",
    "sunshine", "qwerty", "abc", "then", "token", "password", "not", "here", "tomorrow",
)  # fmt: skip
_AFTER = (
    "", " ", "\n", ", ", ". ", "! ", "? ", "; ", ") ", ": ", " is hunter2", " hunter2x", "\nhunter2Xy", "\n\nhunter2Xy", " = hunter2", ": Xy12345678",
    ' "hunter2"', "\n| a | b |", ".\nhunter2Xy", " to hunter2", " (hunter2)", " / hunter2", '("a", "hunter2!")', "\n  hunter2Xy9\n",
)  # fmt: skip


@pytest.mark.rows(12)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.skips_prose], ids=lambda rule: rule.name)
def test_a_rule_that_skips_prose_finds_nothing_there(rule: Rule) -> None:
    """Its places in sentences that go on are left out before it is asked."""
    left_out = 0
    for anchor in rule.anchors:
        for before in ("", "the ", "my api ", "x\n", "recovery ", "A1b2c3 is the "):
            for ending in _ENDINGS:
                for following in ("", *(f" {word}" for word in _NEXT)):
                    for after in _AFTER:
                        text = f"{before}{anchor}{ending}{following}{after}"
                        if GOES_ON.match(text, len(before)) is not None:
                            left_out += 1
                            assert rule.find is None or rule.find(text, len(before)) is None, text
    assert left_out > 1000 or not rule.anchors[0].isalpha()


@given(st.sampled_from([rule for rule in RULES if rule.skips_prose]), st.data())
def test_a_rule_that_skips_prose_finds_nothing_in_any_text(rule: Rule, data: st.DataObject) -> None:
    """Whatever stands around the word."""
    signs = st.text("ab1 .,:='\"!?)(\n-_A", max_size=12)
    before, ending, after = data.draw(signs), data.draw(st.sampled_from(_ENDINGS)), data.draw(signs)
    word = data.draw(st.sampled_from(["", *(f" {word}" for word in _NEXT)]))
    text = f"{before} {data.draw(st.sampled_from(rule.anchors))}{ending}{word}{after}"
    if GOES_ON.match(text, len(before) + 1) is not None:
        assert rule.find is None or rule.find(text, len(before) + 1) is None


@pytest.mark.rows(4)
@pytest.mark.parametrize(
    ("piece", "redacted"),
    [
        ("password: hunter22\n", "password: [REDACTED:password]\n"),
        ("ok 密码是 Ab3dEf9g 吗 ", "ok 密码是 [REDACTED:password] 吗 "),
        ("a word and no secret; ", "a word and no secret; "),
        ("%70assword%3Dhunter22\n", "%70assword%3D[REDACTED:password]\n"),
    ],
)
@pytest.mark.parametrize("times", [1_000, 1_001, 5_000])
def test_what_is_said_again_and_again_is_taken_out_each_time(piece: str, redacted: str, times: int) -> None:
    """As a model says it that is caught in a loop; what is around it goes as ever."""
    around = f"the token is ghp_{'aB3dE9' * 6} and it works\n"
    gone = "the token is [REDACTED:github-token] and it works\n"
    text = around + piece * times + around + piece * times + around
    found = Redactor(Redact()).redact(text)
    assert found.text == gone + redacted * times + gone + redacted * times + gone
    assert sum(found.counts.values()) == 3 + 2 * times * (piece != redacted)


def test_a_secret_in_the_middle_of_what_repeats_itself_goes() -> None:
    """It ends the one stretch, and begins the other."""
    for secret_at in range(0, 2_000, 97):
        pieces = ["the very same line\n"] * 3_000
        pieces[secret_at] = "password: hunter22\n"
        assert "hunter22" not in Redactor(Redact()).redact("".join(pieces)).text


def test_a_token_without_an_end_goes_as_a_whole() -> None:
    """Though what is looked at of it is less."""
    text = "it is sk-ant-api03-" + "aB3dE9xQ" * 10_000 + " now"
    assert Redactor(Redact()).redact(text).text == "it is [REDACTED:anthropic-key] now"


def test_each_rule_gives_a_reason_of_its_own_kind() -> None:
    """`memd-ctl redact --explain` shows it."""
    for rank, rule in enumerate(RULES):
        name, reason = explained(SecretSpan(0, 1, rule.kind, rank))
        assert name == rule.name
        assert reason
        assert ("as a system keeps it" in reason) == (rule.kind == "password-hash"), rule.name
