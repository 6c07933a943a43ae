import pytest

from memd.text.small_talk import is_small_talk


@pytest.mark.parametrize(
    "text",
    ["ok", "LOL, ok then!", "thanks a lot, see you tomorrow", "How are you doing today?", "haha right",
     "今天天气真不错啊", "今天辛苦啦，晚安", "明天见", "好的，没问题", "",
     "good morning, how was your weekend", "Hello! What's up?", "how have you been lately", "How's life", "what’s up",
     "最近怎么样", "你最近还好吗", "一切顺利吗？", "周末过得怎么样", "你在忙什么呢"],
)  # fmt: skip
def test_what_is_said_in_passing_asks_for_nothing(text: str) -> None:
    """As a whole, in any case and with any marks."""
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    ["ok computer", "thanks, and which port was it?", "then what", "the weather station", "今天的会几点",
     "天气站的密钥", "晚安牌的床垫", "what is right", "hi5", "再见不难",
     "how was my weekend", "how is our day going", "how are the bees", "What's up with the boiler?", "how was it",
     "项目怎么样", "我最近怎么样", "我们周末过得怎么样", "孩子最近好吗", "你在忙什么项目"],
)  # fmt: skip
def test_one_word_more_is_a_question(text: str) -> None:
    """It may be what somebody looks for."""
    assert not is_small_talk(text)
