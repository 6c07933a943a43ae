import pytest

from memd.text.small_talk import is_small_talk


@pytest.mark.parametrize(
    "text",
    ["ok", "LOL, ok then!", "thanks a lot, see you tomorrow", "How are you doing today?", "haha right",
     "今天天气真不错啊", "今天辛苦啦，晚安", "明天见", "好的，没问题", ""],
)  # fmt: skip
def test_what_is_said_in_passing_asks_for_nothing(text: str) -> None:
    """As a whole, in any case and with any marks."""
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    ["ok computer", "thanks, and which port was it?", "then what", "the weather station", "今天的会几点",
     "天气站的密钥", "晚安牌的床垫", "what is right", "hi5", "再见不难"],
)  # fmt: skip
def test_one_word_more_is_a_question(text: str) -> None:
    """It may be what somebody looks for."""
    assert not is_small_talk(text)
