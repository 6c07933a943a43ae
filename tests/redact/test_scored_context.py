"""Passwords and codes that their context tells."""

import re

import pytest

from memd.config.settings import Redact
from memd.redact.places.scored_context import Matches
from memd.redact.redactor import Redactor
from memd.redact.rule_set import explained
from memd.redact.values import secret_candidates
from tests.bounds import shipped
from tests.table import table

_REDACTOR = Redactor(Redact())


@table(
    ("word", "grade"),
    [
        ("Ivory~931~Tul", "sure"),
        ("z7=q!pU3teLF", "sure"),
        ("kT4v9QpZ2mXw8RbL", "sure"),
        ("PepperTig3r77x", "mixed"),
        ("VZU3AdCLutD", "mixed"),
        ("hunter22", "likely"),
        ("Walnut2019*", "likely"),
        ("plot4me", "weak"),
        ("orbit-velvet-cactus", "weak"),
        ("AX3000-Pro2", "weak"),
        ("KX19-ABT", "weak"),
        ("python3.12", None),
        ("Django4.2", None),
        ("bi_reads_2026", "weak"),
        ("v250+", None),
        ("app_prod_v2.yml", None),
        ("react@18.2.0", None),
        ("ann@mail.example", None),
        ("stacklevel=2", None),
        ("a=1&b=2", None),
        ("xc*10**xe", None),
        ("3f2a1b9c8d7e", None),
        ("ERR_AUTH_40103", None),
        ("x509_ptr", None),
        ("value1", None),
        ("$HOME2", None),
        ("words", None),
    ],
)
def test_a_word_is_graded_by_its_signs(word: str, grade: str | None) -> None:
    """From what could only be a password to words, names, versions, addresses and digests."""
    value = secret_candidates.password(word, 0)
    assert (None if value is None else value.grade) == grade


@table(
    ("text", "secret"),
    [
        ("the password of the laptop, I think, is hunter22", "hunter22"),
        ("log in with hunter22, it still works", "hunter22"),
        ("Overleaf made me change it, now it's GooseLake_44", "GooseLake_44"),
        ("we share one account: ann@mail.example, and then PlumTree77", "PlumTree77"),
        ("it finally took Ivory~931~Tul, not the one on the note", "Ivory~931~Tul"),
        ("hulu Piano!2021x / paramount we cancelled", "Piano!2021x"),
        ("what was the login for the club again?\ntry PlumTree77", "PlumTree77"),
        ("PlumTree77 is what unlocks the laptop", "PlumTree77"),
        ("微信我重新设了个wangfu1955，你记着", "wangfu1955"),
        ("PlumTree77 就是后台的密码", "PlumTree77"),
        ("con la clave entro con Monte432!", "Monte432!"),
        ("the elevator needs 5661 after eight", "5661"),
        ("your lock PIN for 12-15 August is 659085. Check in at three.", "659085"),
        ("Il codice del garage: 47533 e poi sali", "47533"),
        ("大门295214#，然后上楼", "295214#"),
    ],
)
def test_a_value_goes_that_its_context_tells(text: str, secret: str) -> None:
    """Whatever the words for it are, and in which language."""
    assert secret not in _REDACTOR.redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        "the username there is hunter22, and nobody knows the password",
        "the password field is called new_password_2 in the form",
        "the bus to the office stops at gate 9016",
        "the status code is 4031, the error code is 50012",
        "He unlocked level_42-boss on the second try",
        "new one's a ThinkPad-T14s_Gen5, arrives friday",
        "那家店的 Wi-Fi 很慢，换到 5G-CMCC_8812 也不行",
        "路由器型号是 AX3000-Pro2，背面有贴纸",
        "the fix is in MINGW-packages#9319, we ignore it",
        "the safe weighs 4000 pounds, the garage is 4500 mm wide",
        'login(user="ann22x", timeout=5.0)',
        "Encrypts the data of a message, using salsa20.",
        "the safe is shut and the password with the notary, says BADGE77431",
    ],
)
def test_a_value_stays_that_its_context_says_is_something_else(text: str) -> None:
    """A user, a field, a place, a number of something, a model, a network's name, an argument."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("my laptop login is now PlumTree77", "password-in-context"),
        ("the elevator needs 5661 after eight", "code-in-context"),
        ("it finally took Ivory~931~Tul, good", "password-in-context"),
    ],
)
def test_the_rule_is_named(text: str, rule: str) -> None:
    """With the reason that the words around it tell it."""
    (find,) = _REDACTOR.finds(text)
    assert explained(find) == (rule, "a value that the words around it tell")


def test_a_word_in_reach_tells_however_many_stand_before_it() -> None:
    """In a long line, whose earlier words for passwords have nothing near them."""
    filler = "the password policy was discussed at length by everybody in the room for most of the afternoon, and then "
    text = f"{filler * 3}somebody wrote that the wifi takes Pluto#Moon42"
    for cut in range(0, 240, 7):
        assert "Pluto#Moon42" not in _REDACTOR.redact(text[cut:]).text


def test_matches_are_the_same_whatever_was_asked_before() -> None:
    """No part is searched twice, and none is left out."""
    text = "".join("changed " if number % 7 == 0 else f"word{number} " for number in range(3000))
    parts = [(at, at + size) for at in range(0, len(text), 97) for size in (1, 40, 700)]
    pattern = re.compile("changed")
    asked = Matches(pattern, text)
    for start, end in (*parts, *parts[::-1]):
        expected = any(start <= match.start() < end for match in pattern.finditer(text))
        assert asked.any_in(start, end) is expected
    shouted = Matches(pattern, text.upper(), lowered=True)
    assert shouted.any_in(0, 1) is True
    assert Matches(pattern, text.upper()).any_in(0, len(text)) is False


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("密码锁拨到4-0-9就开", "4-0-9"),
        ("Bank texted 620418, entering it now", "620418"),
        ("网盘分享给你：链接 https://pan.example/s/1aB 密码 x9k2", "x9k2"),
        ("I gave it bi_reads_2026 as its password.", "bi_reads_2026"),
    ],
)
def test_what_a_sentence_tells_in_other_words_goes(text: str, secret: str) -> None:
    """Locks that are turned, messages of a bank, shared folders, and names that are given as passwords."""
    assert secret not in _REDACTOR.redact(text).text


@pytest.mark.parametrize("more", [0, 1])
def test_the_password_of_a_shared_folder_stands_near_its_link(more: int) -> None:
    """Four letters that stand farther from it are a word."""
    far = shipped("memd.redact.passwords.sentences_other_languages._CHARS_OF_LINK") + more
    said = f"网盘{'字' * (far - len('网盘'))}密码 x9k2"
    assert ("x9k2" in _REDACTOR.redact(said).text) is bool(more)


@pytest.mark.parametrize(
    ("near", "before", "between", "secret"),
    [
        (shipped("memd.redact.places.scored_context._NEAR_PASS"), "", ("pass ", " is "), "PlumTree77"),
        (shipped("memd.redact.places.scored_context._NEAR_CODE"), "the door ", ("code ", " takes "), "5661"),
        (shipped("memd.redact.places.scored_context._NEAR_WEAK"), "the ", ("password ", " is "), "plot4me"),
    ],
    ids=["pass, which is a verb, too", "a number", "a weak value"],
)
def test_a_word_tells_as_far_as_it_is_near(
    near: int, before: str, between: tuple[str, str], secret: str
) -> None:
    """From its beginning to the value."""
    for more in (0, 1):
        filler = "w" * (near + more - sum(map(len, between)))
        said = f"{before}{filler.join(between)}{secret}."
        assert (secret in _REDACTOR.redact(said).text) is bool(more), said


def test_a_number_right_before_a_told_one_says_that_it_is_no_code() -> None:
    """Such as a line and a column; farther before it, it may be of something else."""
    near = shipped("memd.redact.places.scored_context._NEAR_NUMBER")
    for more in (0, 1):
        said = f"the door code 12{'w' * (near + more - len('12 is '))} is 5661."
        assert ("5661" in _REDACTOR.redact(said).text) is not bool(more), said


@table(
    ("chat", "secret"),
    [
        ("老周 09:15\n服务器口令发一下\n我 09:16\nkqwx_7781!", "kqwx_7781!"),
        ("Zhou (12345) 2024-05-06 10:21:33\nvpn 密码是啥\nLin (54321) 2024-05-06 10:22:01\ntianya_2088#", "tianya_2088#"),
        ("[민수] [오전 10:21] 와이파이 비번 뭐였지\n[나] [오전 10:22]\nchoco2019!", "choco2019!"),
        ("小李：门禁密码多少来着\n我：40718", "40718"),
        ("老婆：家里wifi密码改成啥了，我妈问\n我：tuantuan20170905", "tuantuan20170905"),
        ("agent: 请把手机收到的短信验证码发给我\nuser: 730416", "730416"),
        ("엄마: 와이파이 비번 뭐였죠\n나: choco2019!", "choco2019!"),
        ("A: Wi-Fiのパスワードなんだっけ\nB: kumasan_0824!", "kumasan_0824!"),
    ],
)  # fmt: skip
def test_a_question_without_a_question_mark_is_answered(chat: str, secret: str) -> None:
    """Also where who speaks, and when, has a line of its own."""
    redacted = _REDACTOR.redact(chat).text
    assert secret not in redacted
    assert redacted.startswith(chat[: chat.index(secret)])


@table(
    ("chat",),
    [
        ("老周 09:15\n服务器口令发一下\n我 09:16\nhttps://wiki.example.org/login",),
        ("老周 09:15\n部署分支是啥\n我 09:16\nrelease/v2.3",),
        ("老周 09:15\n密码加密算法是啥\n我 09:16\nsha256",),
        ("小李：端口多少来着\n我：8848",),
        ("小李：验证码几位来着\n我：6",),
        ("小李：昨天会议纪要发给我\n我：meeting_notes_v2.docx",),
        ("小李：密码规则是啥\n我：至少8位，包含大小写",),
        ("민수: 버전이 뭐였죠\n나: v2.3.1",),
        ("小李：wifi 名字是啥\n我：Nest-5G_2F",),
        ("小李：会员账号是啥\n我：lixiaoming88",),
        ("小李：门禁几点关来着\n我：2230",),
        ("小李：验证码接口的错误码是啥\n我：40012",),
        ("민수: 관리자 계정 뭐였죠\n나: minsu2024x",),
        ("민수: 출입문 비번 변경일 알려줘\n나: 0612",),
        ("A: ログインIDなんだっけ\nB: tanaka2024",),
        ("A: サーバーのホスト名教えて\nB: web-prd-01",),
    ],
)
def test_other_questions_of_a_chat_are_none_for_a_secret(chat: str) -> None:
    """Ports, branches, rules, names, accounts and times."""
    assert _REDACTOR.redact(chat).text == chat
