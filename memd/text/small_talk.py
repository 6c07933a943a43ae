"""Recognises messages that memory cannot answer: greetings, thanks, assent, talk about the weather, and how somebody is."""

import re

# Memory may be full of weather and thanks, and none of it was asked for. How the one who is spoken to is ("your day",
# 你) is small talk; how the day of the speaker was ("my day", 我) is a question. The quantifier is possessive: with
# backtracking, the time would double with each repetition of "你好".
_SMALL_TALK = re.compile(
    r"""(?:[\s.,;:!?~。，；：！？～…、]|
    \b(?:hi|hello|hey|bye|goodbye|good\ (?:morning|afternoon|evening|night)|see\ you(?:\ (?:later|soon|tomorrow))?|
    thanks(?:\ a\ lot)?|thx|thank\ you(?:\ (?:so|very)\ much)?|ok|okay|yes|yep|yeah|no|nope|sure|great|nice|cool|perfect|
    please|lol|haha|then|well|right|that\ (?:is|was)\ (?:all|good|great|perfect)|sounds\ good|got\ it|
    continue|go\ on|go\ ahead|keep\ going|proceed|carry\ on|do\ it|
    (?:how(?:\ are|['’]re|\ have)\ (?:you|things)(?:\ been)?(?:\ (?:all|doing|going|feeling))?|
    how(?:['’]s|\ is|\ was)\ (?:it\ going|everything(?:\ going)?|life|your\ (?:day|morning|afternoon|evening|night|week|weekend)(?:\ going)?)|
    (?:what['’]s|what\ is)\ up|what(?:\ are|['’]re)\ you\ (?:doing|up\ to))
    (?:\ (?:today|tonight|now|so\ far|lately|these\ days|this\ (?:morning|afternoon|evening|week)))?|
    (?:what['’]s|what\ is|how['’]s|how\ is)\ the\ weather(?:\ like)?(?:\ (?:today|tomorrow|now|outside))?|
    tell\ me\ a\ (?:joke|story))\b|
    (?:(?:你|您)?(?:今天|今晚|最近|近来|这几天)(?:你|您)?(?:还|都)?|你|您|(?:(?:你|您)?(?:今天|最近|昨天|昨晚|周末))?(?:你|您)?(?:过得|过的|心情|感觉|睡得)(?:还)?|
    一切(?:都|还)?)(?:怎么样|怎样|咋样|如何|好吗|好不好|好么|顺利吗)|(?:你|您)(?:今天|现在)?在(?:干嘛|[干做忙](?:什么|啥))|
    你好|您好|大家好|在吗|在么|早上好|下午好|晚上好|早安|晚安|早|再见|拜拜|回见|明天见|谢谢|多谢|(?:今天)?辛苦|感谢|不客气|
    好的|好|行|可以|没问题|没事|知道了|明白|收到|继续|对|是的|是|嗯|哦|噢|哈|嘿|呵|请|了|啦|啊|吧|呀|呢|哟|你|您|大家|
    (?:今天|明天|现在|外面)(?:的)?天气(?:怎么样|怎样|如何|好吗|真好|真不错|不错)?|讲个笑话|讲个故事)*+""",
    re.VERBOSE | re.IGNORECASE,
)


def is_small_talk(text: str) -> bool:
    """Return whether a whole message is small talk, so that memory has no answer to it.

    One more word, as in "thanks, and which port was it?", makes it a question.
    """
    return _SMALL_TALK.fullmatch(text) is not None
