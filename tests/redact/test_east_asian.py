"""Keys, words that are said, letters that are read out, and corrections, in Chinese, Japanese and Korean."""

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped
from tests.table import table

_REDACTOR = Redactor(Redact())


def _goes(text: str, secret: str) -> bool:
    return secret not in _REDACTOR.redact(text).text


@table(
    ("text", "secret"),
    [
        ("A: 大门密码多少\nB: 4471\nB: 错了,4417", "4417"),
        ("A: 后台 root 是多少\nB: Kx7mango!22\nB: 手滑,应该是 Kx7mango_22!", "Kx7mango_22!"),
        ("玄関の暗証番号は 4471 です\n訂正、正しくは 4417", "4417"),
        ("현관 비밀번호 4471\n아니고 4417", "4417"),
    ],
)
def test_a_correction_goes_with_what_it_corrects(text: str, secret: str) -> None:
    """In the turn or the line behind it."""
    assert _goes(text, secret)


@table(
    "text",
    [
        "A: 密码框多宽\nB: 3200\nB: 错了,3000",
        "A: 登录超时设多少\nB: 30000\nB: 错了,50000",
        "号码写错了,应该是 62881402",
    ],
)
def test_other_corrections_stay(text: str) -> None:
    """Nothing secret was told before."""
    assert _REDACTOR.redact(text).text == text


def test_a_correction_is_near_what_it_corrects() -> None:
    """As far as its line and the one before reach."""
    reach = int(shipped("memd.redact.places.corrections._CHARS_OF_MARK"))
    first = "现关密码 Kx7mango!22"
    assert _goes(f"{first}\n{'这' * 20}打错了 Kx7mango_22!", "Kx7mango_22!")
    assert not _goes(f"{first}\n{'这' * reach}打错了 fuzi77_x9", "fuzi77_x9")


def test_so_many_digits_or_symbols_are_read_out() -> None:
    """Letters alone may be a word."""
    least = int(shipped("memd.redact.codes.digits_in_words._LEAST_READ"))
    assert _goes(f"密码是大K小x大P{'三' * least}", f"大K小x大P{'三' * least}")
    text = f"密码是大K小x大P{'三' * (least - 1)}"
    assert _REDACTOR.redact(text).text == text


def test_a_phrase_without_quotes_has_so_many_characters() -> None:
    """A shorter word may be anything."""
    least = int(shipped("memd.redact.passwords.security_answers._LEAST_OF_PHRASE"))
    assert _goes("进群暗号:" + "蒜苗炒腊肉"[:least], "蒜苗炒腊肉"[:least])
    text = "进群暗号:" + "蒜苗炒腊肉"[: least - 1]
    assert _REDACTOR.redact(text).text == text


def test_what_says_that_a_key_is_none_stands_near_it() -> None:
    """The name of its kind is right before the word."""
    reach = int(shipped("memd.redact.keys.keys_in_sentences_east_asian._CHARS_BEFORE"))
    value = "7Kx-Qm20-vLpZ9"
    assert not _goes(f"缓存{'里' * (reach - 2)}key 是 {value}", value)
    assert _goes(f"缓存{'里' * reach}key 是 {value}", value)


def test_who_asks_for_a_phrase_stands_near_it() -> None:
    """Games, drills and lessons have such words, too."""
    reach = int(shipped("memd.redact.passwords.security_answers._CHARS_OF_ACCESS"))
    assert _goes(f"进群{'啊' * (reach - 2)}暗号:蒜苗炒腊肉", "蒜苗炒腊肉")
    for text in (
        f"进群{'啊' * (reach - 1)}暗号:蒜苗炒腊肉",
        "进群暗号:蒜苗炒腊肉,游戏里说",
        "暗号:蒜苗炒腊肉",
        "进群再说\n暗号:蒜苗炒腊肉",
    ):
        assert _REDACTOR.redact(text).text == text


@table(
    ("text", "secret"),
    [
        ("更衣柜 3719 再拧一下", "3719"),
        ("更衣柜 *3719#", "3719"),
        ("更衣柜 0719", "0719"),
        ("后门输 3719", "3719"),
    ],
)
def test_a_number_beside_what_is_counted_goes_if_somebody_types_it(text: str, secret: str) -> None:
    """Or if it has the signs of a keypad, or begins with zero and is no opening hour."""
    assert _goes(text, secret)


@table("text", ["更衣柜 3719", "后门是 0930", "A: 更衣柜几号\nB: 3719", "路由器换成 hua-wei_ax33"])
def test_a_number_that_nobody_types_stays(text: str) -> None:
    """So does the name of what replaces a device."""
    assert _REDACTOR.redact(text).text == text
