from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.time_phrases import UnknownTime, dated, read_time, time_phrases
from memd.text.time_spans import TimeSpan
from memd.text.tokens import folded
from tests.bounds import shipped
from tests.table import table
from tests.work import calls

NOW = datetime(2026, 2, 11, 15, 30)  # noqa: DTZ001 - a Wednesday, as clocks on the wall show it


def written(span: TimeSpan) -> str:
    """Whole days as days, and anything else with its times."""
    if span == TimeSpan(
        span.first.replace(hour=0, minute=0, second=0), span.last.replace(hour=23, minute=59, second=59)
    ):
        days = sorted({f"{span.first:%Y-%m-%d}", f"{span.last:%Y-%m-%d}"})
        return "..".join(days)
    return f"{span.first.isoformat()}..{span.last.isoformat()}"


# A line a phrase, or some that mean the same.
PHRASES = """
2026-02-09 | 2026/2/9 | 2026.02.09 | 20260209 | 9 Feb 2026 | on the 9th of February | 2月9日 | 2 月 9 号 | 二月九号 | Feb 9th, 2026 = 2026-02-09
2026-02 | 2026/02 | 02/2026 | this month | the current month | current month | 本月 | 这个月 | 這個月 | 当月 | 當月 | February | Feb 2026 | 二月 | 2026年2月份 = 2026-02-01..2026-02-28
2026-W07 | 2026w7 | w07 | week 7 | calendar week 7 of 2026 | 第7周 | this week | 本周 | 这个礼拜 | 这周 = 2026-02-09..2026-02-15
week 7 of last year | 2025-W07 = 2025-02-10..2025-02-16
2026-W01 = 2025-12-29..2026-01-04
2020-W53 = 2020-12-28..2021-01-03
2025年第三周 = 2025-01-13..2025-01-19
today | 今天 | 今晚 | tonight | this morning | this afternoon | this evening | wednesday | 周三 | 星期三 = 2026-02-11
yesterday | 昨天 | 昨晚 | 昨日 | last night | yesterday morning | yesterday evening | 昨天下午 | 昨日的早上 | 周二晚上 | last Tuesday | on Tuesday | 周二 | 1d | 1 day ago | 一天前 | Tuesday's = 2026-02-10
the day before yesterday | day before yesterday | 前天 | 前日 | 前晚 | 前天晚上 | 2d | 2d ago | two days ago | 两天前 | 兩天前 | 2 天以前 = 2026-02-09
大前天 | 三天前 | three days ago | last Sunday | 星期天 = 2026-02-08
tomorrow | 明天 | 明日 | 明晚 = 2026-02-12
the day after tomorrow | day after tomorrow | 后天 | 後天 | this Friday | next Friday | 这周五 | 本周五 = 2026-02-13
7d | 7 days | 1w | 7天 | last Wed = 2026-02-04
2w | 2周 | 2 weeks = 2026-01-28
3mo | 3 months | 3个月 = 2025-11-11
1y | 1 year | 1年 = 2025-02-11
last week | 上周 | 上个星期 | 上个礼拜 | a week ago | 一周前 | the previous week = 2026-02-02..2026-02-08
the week before last | 上上周 | 上上个星期 | two weeks ago | 2w ago | 2 wks ago | 两周前 | 2个星期前 = 2026-01-26..2026-02-01
next week | 下周 = 2026-02-16..2026-02-22
下下周 = 2026-02-23..2026-03-01
Tuesday last week | last week's Tuesday | 上周二 | 上星期二 | 上个礼拜二 | Tuesday before last = 2026-02-03
上上周五 = 2026-01-30
two Sundays ago | 2 sundays ago = 2026-02-01
last weekend | 上周末 | the last weekend | 周末 | weekend = 2026-02-07..2026-02-08
this weekend | 这周末 = 2026-02-14..2026-02-15
last month | 上个月 | 上月 | previous month | a month ago | 一个月前 | January | 一月 | in Jan = 2026-01-01..2026-01-31
上上个月 | the month before last | two months ago | 两个月前 | December | 十二月 | 12月份 | last December | 去年12月 = 2025-12-01..2025-12-31
in May | may | last May | 五月 | May of last year | May 2025 | 去年五月 | 2025年5月 | 二〇二五年五月 = 2025-05-01..2025-05-31
in May 2026 | 今年五月 | 2026-05 = 2026-05-01..2026-05-31
march | 去年三月 = 2025-03-01..2025-03-31
3 March | March 3rd | the 3rd of March | 三月三号 | 3月3日 | 2025年3月3日 = 2025-03-03
3rd of last month | 上个月3号 | January 3 = 2026-01-03
29 February = 2024-02-29
the week of 3 March | week of March 3rd | 3月3日那周 = 2025-03-03..2025-03-09
Q3 2025 | q3 | 2025q3 | 2025-Q3 | Q3/2025 | the third quarter of last year | 第三季度 | 去年三季度 = 2025-07-01..2025-09-30
last quarter | 上个季度 | 上季度 | Q4 | 去年第四季度 = 2025-10-01..2025-12-31
this quarter | 本季度 | Q1 = 2026-01-01..2026-03-31
H1 2025 | the first half of 2025 | 去年上半年 = 2025-01-01..2025-06-30
下半年 = 2025-07-01..2025-12-31
2025 | last year | 去年 | 2025年 | a year ago | 一年前 = 2025-01-01..2025-12-31
明年 | next year = 2027-01-01..2027-12-31
后年 | 後年 = 2028-01-01..2028-12-31
大后天 | 大後天 = 2026-02-14
this year | 今年 | 本年 = 2026-01-01..2026-12-31
前年 | the year before last | two years ago = 2024-01-01..2024-12-31
大前年 = 2023-01-01..2023-12-31
early 2025 | 2025年初 | 去年年初 | 去年初 = 2025-01-01..2025-03-31
年底 | 去年底 | end of 2025 | the end of the year | 2025年底 = 2025-10-01..2025-12-31
mid 2025 | the middle of 2025 = 2025-05-01..2025-08-31
summer | last summer | 去年夏天 | summer 2025 | 夏季 = 2025-06-01..2025-08-31
this summer | 今年夏天 = 2026-06-01..2026-08-31
winter | this winter | 冬天 | winter 2025 = 2025-12-01..2026-02-28
last winter = 2024-12-01..2025-02-28
spring | 春天 = 2025-03-01..2025-05-31
autumn | fall | last fall | 秋天 = 2025-09-01..2025-11-30
月底 | the end of the month | 上个月底 | 上月末 | end of last month | late January | 一月下旬 = 2026-01-21..2026-01-31
月初 | early February | 二月初 | the beginning of this month = 2026-02-01..2026-02-10
3月中旬 | mid-March | 去年三月中旬 = 2025-03-11..2025-03-20
first Sunday of October | 十月的第一个周日 | the first Sunday of October 2025 = 2025-10-05
去年九月第三个周日 = 2025-09-21
the last Friday of May | 五月最后一个周五 = 2025-05-30
the second Tuesday of last month = 2026-01-13
the last week of May = 2025-05-25..2025-05-31
the second week of May | 五月第二周 = 2025-05-08..2025-05-14
the fifth week of May = 2025-05-29..2025-05-31
last 7 days | 过去七天 | 最近一周 | the past week | last few days | 这几天 = 2026-02-04..2026-02-11
the past two weeks | 近两周 | last fortnight | recently | lately | 最近 = 2026-01-28..2026-02-11
the past month | past month = 2026-01-11..2026-02-11
in the last 3 days = 2026-02-08..2026-02-11
the last 12 months = 2025-02-11..2026-02-11
past 2 hours | 过去两小时 = 2026-02-11T13:30:00..2026-02-11T15:30:00
next May = 2026-05-01..2026-05-31
next February = 2027-02-01..2027-02-28
from December to February | from December 2025 to February = 2025-12-01..2026-02-28
30h = 2026-02-10T09:30:00..2026-02-10T09:30:00
最近三个月 | the last three months = 2025-11-11..2026-02-11
a few days ago | 几天前 = 2026-02-04..2026-02-09
两三天前 = 2026-02-08..2026-02-09
三五天前 = 2026-02-06..2026-02-08
二三十天前 = 2026-01-12..2026-01-22
十二三天前 = 2026-01-29..2026-01-30
十几天前 = 2026-01-23..2026-01-31
几十天前 = 2025-11-13..2026-01-22
七八个月前 = 2025-06-01..2025-07-31
最近两三天 = 2026-02-08..2026-02-11
半年前 | half a year ago = 2025-08-01..2025-08-31
between March and May 2025 | 三月到五月 | from March to May 2025 = 2025-03-01..2025-05-31
上周一到周五 = 2026-02-02..2026-02-06
周一至周五 = 2026-02-09..2026-02-13
昨天到周六 = 2026-02-10..2026-02-14
March 5 to 8 | from March 5th to 8th | March 5-8, 2025 | 5–8 March | from the 5th to the 8th of March | between 5 and 8 March | between March 5 and 8 | 3月5日到8日 | 从3月5号至8号 | 3月5-8日 | 2025年三月五日到八日 = 2025-03-05..2025-03-08
the 10th to 12th of last month | 上个月10号到12号 = 2026-01-10..2026-01-12
2月9日到15日 | 9 to 15 February = 2026-02-09..2026-02-15
half an hour ago | 半小时前 | 半个钟头前 = 2026-02-11T15:00:00..2026-02-11T15:00:00
from 30 December to 2 January = 2025-12-30..2026-01-02
from 29 February 2024 to 3 January 2024 = 2023-02-28..2024-01-03
since last Tuesday = 2026-02-10T00:00:00..2026-02-11T15:30:00
三月以来 = 2025-03-01T00:00:00..2026-02-11T15:30:00
24h | 24 hours = 2026-02-10T15:30:00..2026-02-10T15:30:00
90min = 2026-02-11T14:00:00..2026-02-11T14:00:00
2026-02-09T18:30 | 2026-02-09 18:30 = 2026-02-09T18:30:00..2026-02-09T18:30:59
2026-02-09T18:30:05 = 2026-02-09T18:30:05..2026-02-09T18:30:05
"""
TABLE = [
    (phrase.strip(), said.strip())
    for line in PHRASES.strip().splitlines()
    for phrase in line.rpartition("=")[0].split("|")
    for said in [line.rpartition("=")[2]]
]

# The same on a day late in the year.
LATE = datetime(2026, 11, 29, 15, 30)  # noqa: DTZ001 - a Sunday
LATE_PHRASES = """
this summer | 今年夏天 | last summer | summer = 2026-06-01..2026-08-31
this spring = 2026-03-01..2026-05-31
this autumn = 2026-09-01..2026-11-30
this winter = 2026-12-01..2027-02-28
this December = 2026-12-01..2026-12-31
2025年3月到5月 | 2025年三月至五月 | 去年三月到五月 | from March 2025 to May | between March 2025 and May | 25年3月到5月 = 2025-03-01..2025-05-31
2025年10月20日到11月5日 | from Oct 20, 2025 to Nov 5 | 20 October 2025 - 5 November | 2025-10-20 to 5 November | from Oct 20 to Nov 5, 2025 = 2025-10-20..2025-11-05
2025年11月到2月 | from November 2025 to February | from November to February 2026 = 2025-11-01..2026-02-28
2025年第一季度到第三季度 | Q1 2025 to Q3 | 25年第一季度到第三季度 = 2025-01-01..2025-09-30
去年春天到秋天 | spring 2025 to autumn = 2025-03-01..2025-11-30
去年三月初到五月底 = 2025-03-01..2025-05-31
10月到12月 | from October to December = 2026-10-01..2026-12-31
11月20日到12月5日 | Nov 20 to Dec 5 = 2026-11-20..2026-12-05
年初到年底 | 2026 = 2026-01-01..2026-12-31
周五到周一 | 周五至周一 = 2026-11-27..2026-11-30
上周一到周五 = 2026-11-16..2026-11-20
一个半月前 | 1个半月前 | 1.5个月前 | a month and a half ago | one and a half months ago = 2026-10-07..2026-10-21
两个半月前 | 兩個半月以前 | 2.5 months ago = 2026-09-07..2026-09-21
一年半前 | 1.5年前 | a year and a half ago | 1.5 years ago = 2025-05-01..2025-05-31
一周半前 | 一个半星期前 | a week and a half ago = 2026-11-16..2026-11-20
两个半小时前 | two and a half hours ago = 2026-11-29T13:00:00..2026-11-29T13:00:00
25年3月 | 25 年 3 月 | 二五年三月 | 2025年3月 = 2025-03-01..2025-03-31
25年3月5日 | 25年3月5号 = 2025-03-05
98年5月 = 1998-05-01..1998-05-31
25年夏天 = 2025-06-01..2025-08-31
25年下半年 = 2025-07-01..2025-12-31
一年前的今天 | 去年的今天 | 去年今天 | 去年这一天 | 2025年的今天 | a year ago today | one year ago today | today a year ago | this day last year | on this day last year | this day a year ago | the same day last year | today last year = 2025-11-29
the last month and a half | in the past one and a half months | 最近一个半月 | 过去一个半月 = 2026-10-14..2026-11-29
最近半年 | 过去半年 | 近半年来 | the last half year | the past half a year = 2026-05-29..2026-11-29
最近一年半 | the last year and a half | the past 1.5 years = 2025-05-29..2026-11-29
最近半个月 = 2026-11-14..2026-11-29
过去半小时 | the last half hour = 2026-11-29T15:00:00..2026-11-29T15:30:00
25年底 | 25年年底 | 2025年底 = 2025-10-01..2025-12-31
this past summer | the past summer = 2026-06-01..2026-08-31
a week ago today | 上周的今天 | 一周前的今天 | this day last week = 2026-11-22
a week ago yesterday = 2026-11-21
上个月的今天 | 一个月前的今天 = 2026-10-29
in 3 days | in three days | 3 days from now | 3天后 | 三天以后 = 2026-12-02
in a week | in 1w | 一周后 = 2026-12-06
in 2 hours | 2小时后 = 2026-11-29T17:30:00..2026-11-29T17:30:00
上个月月底 | 上个月底 | 上月月底 | 上个月的月底 = 2026-10-21..2026-10-31
3月月底 = 2026-03-21..2026-03-31
26号 | 26 号 | 26日 | 二十六号 | the 26th | on the 26th | 26th | 26号晚上 | 11月的26号 = 2026-11-26
31号 | the 31st = 2026-10-31
30号 = 2026-10-30
上个月的26号 = 2026-10-26
26号到28号 | from the 26th to the 28th | between the 26th and the 28th = 2026-11-26..2026-11-28
28号到3号 = 2026-11-28..2026-12-03
24.11.2026 | 24/11/2026 | 11/24/2026 | 24-11-2026 | 2026年11月24日 = 2026-11-24
5.3.2025 | 05.03.2025 = 2025-03-05
24/11/2025 to 26 November = 2025-11-24..2025-11-26
since the 26th | 26号以来 = 2026-11-26T00:00:00..2026-11-29T15:30:00
"""
LATE_TABLE = [
    (phrase.strip(), said.strip())
    for line in LATE_PHRASES.strip().splitlines()
    for phrase in line.rpartition("=")[0].split("|")
    for said in [line.rpartition("=")[2]]
]


@table(("phrase", "expected"), LATE_TABLE)
def test_late_in_the_year_a_phrase_is_an_interval(phrase: str, expected: str) -> None:
    """The end of a range has the year of its beginning, and what names no year is not in the future."""
    assert written(read_time(phrase, LATE)) == expected


@table(("phrase", "expected"), TABLE)
def test_a_phrase_is_an_interval(phrase: str, expected: str) -> None:
    """Whatever its case, with and without a word such as "in" before it."""
    assert written(read_time(phrase, NOW)) == expected
    assert written(read_time(f"  {phrase.upper()} ", NOW)) == expected


@table(
    "text",
    ["", " ", "banana", "13月", "去年十三月", "2026-02-30", "2026-13", "week 60", "2026-W60", "last", "上", "for ever", "99999d",
     "32 March", "十十天前", "三二天前", "一二三天前", "yesterday banana", "Q5", "2026-02-09T25:00", "\0", "3", "五", "03/04/2026", "32号", "31.02.2026", "9" * 5000, "last " * 500],
)  # fmt: skip
def test_what_says_no_time_is_refused(text: str) -> None:
    """With what may be written instead."""
    with pytest.raises(UnknownTime, match="is no time that memd knows; write a date") as refused:
        read_time(text, NOW)
    assert len(str(refused.value)) < 400


@table(
    ("question", "expected"),
    [
        ("What did we decide last Tuesday?", ["2026-02-10"]),
        ("上个月我们决定了什么？", ["2026-01-01..2026-01-31"]),
        ("Tuesday's rehearsal, the one this week", ["2026-02-10", "2026-02-09..2026-02-15"]),
        ("2 days ago or yesterday", ["2026-02-09", "2026-02-10"]),
        ("我三天前买的", ["2026-02-08"]),
        ("二三十天前我们讨论了什么？", ["2026-01-12..2026-01-22"]),
        ("十十天前", []),
        ("三个月前的账单", ["2025-11-01..2025-11-30"]),
        ("上周五烧的那一窑", ["2026-02-06"]),
        ("since May what changed", ["2025-05-01T00:00:00..2026-02-11T15:30:00"]),
        ("周一到周五做了什么", ["2026-02-09..2026-02-13"]),
        ("what did I break 2d ago", ["2026-02-09"]),
        ("what broke from March 5 to 8?", ["2025-03-05..2025-03-08"]),
        ("3月5日到8日做了什么", ["2025-03-05..2025-03-08"]),
        ("3月5日到8月1日的账", ["2025-03-05..2025-08-01"]),
        ("the call of March 5 to 8 pm", ["2025-03-05"]),
        ("March 8 to 5", ["2025-03-08"]),
        ("三月到五月之间", ["2025-03-01..2025-05-31"]),
        ("see memory/2026-02-09.md", ["2026-02-09"]),
        ("the plan of 2025", ["2025-01-01..2025-12-31"]),
        ("when did the summer house burn in winter", ["2025-12-01..2026-02-28"]),
        ("May I march in May?", ["2025-05-01..2025-05-31"]),
        ("the first Sunday of October 2025?", ["2025-10-05"]),
        # These name no time.
        ("which database did we pick?", []),
        ("may I see the march", []),
        ("every Monday", []),
        ("on tuesdays", []),
        ("lasting mondays", []),
        ("每周一开会吗", []),
        ("两周一次", []),
        ("以前天天", []),
        ("NF-10588 v2026.1.10 20250303 1234567890", []),
        ("the 2025 model", []),
        ("a spring that will fall", []),
        ("how long in 3 days", []),
        ("100 天", []),
        ("before March", []),
        ("五月之前用的数据库", []),
        ("5月以前", []),
        ("5月前的会议", []),
        ("上周五前", []),
        ("两月前", ["2025-12-01..2025-12-31"]),
        ("twenty-two days ago", []),
        ("九百天前", []),
        ("99999 days ago", []),
        ("the past 5000 years", []),
        ("past day", []),
        ("xlast week", []),
        ("what did week 7 of the course cover", []),
        ("第二周的课讲了什么", []),
        ("what was decided in week 7 of last year", ["2025-02-10..2025-02-16"]),
    ],
)
def test_a_question_names_times(question: str, expected: list[str]) -> None:
    """In the order of the text; what may be anything else is none."""
    assert [written(one.span) for one in time_phrases(folded(question), NOW)] == expected


@table(
    ("question", "expected"),
    [
        ("what did we do this summer?", ["2026-06-01..2026-08-31"]),
        ("2025年3月到5月发生了什么", ["2025-03-01..2025-05-31"]),
        ("what happened from Oct 20, 2025 to Nov 5", ["2025-10-20..2025-11-05"]),
        ("in November and December 2025", ["2025-11-01..2025-11-30", "2025-12-01..2025-12-31"]),
        (
            "in March, April and May 2025",
            ["2025-03-01..2025-03-31", "2025-04-01..2025-04-30", "2025-05-01..2025-05-31"],
        ),
        ("2025年3月和5月的账", ["2025-03-01..2025-03-31", "2025-05-01..2025-05-31"]),
        ("last month and in May", ["2026-10-01..2026-10-31", "2026-05-01..2026-05-31"]),
        ("in May 2025, on Friday", ["2025-05-01..2025-05-31", "2026-11-27"]),
        ("三个人去年三月到五月做了什么", ["2025-03-01..2025-05-31"]),
        ("一个半月前我们说了什么", ["2026-10-07..2026-10-21"]),
        ("两个半小时前", ["2026-11-29T13:00:00..2026-11-29T14:00:00"]),
        ("三五个半月前", []),
        ("25年3月的会议", ["2025-03-01..2025-03-31"]),
        ("第25年春天", ["2026-03-01..2026-05-31"]),
        ("去年的今天我们做了什么", ["2025-11-29"]),
        ("去年这天气怎么样", ["2025-01-01..2025-12-31"]),
        ("what did we do a year ago today", ["2025-11-29"]),
        ("几年前的今天", ["2019-01-01..2024-12-31", "2026-11-29"]),
        ("how long in 3 days", []),
        ("三天后要做什么", []),
        ("what did we do on Monday and Tuesday", ["2026-11-23", "2026-11-24"]),
        ("on Monday, Tuesday and Friday", ["2026-11-23", "2026-11-24", "2026-11-27"]),
        ("on Monday & Tuesday", ["2026-11-23", "2026-11-24"]),
        ("最近半年我们买了什么", ["2026-05-29..2026-11-29"]),
        ("what did we buy in the last month and a half", ["2026-10-14..2026-11-29"]),
        ("附近半月湾的房子用了将近半年", []),
        ("上半年", ["2026-01-01..2026-06-30"]),
        ("25年年底的账", ["2025-10-01..2025-12-31"]),
        ("on Monday and Tuesday last week", ["2026-11-16", "2026-11-17"]),
        ("上周一和周五", ["2026-11-16", "2026-11-20"]),
        ("what changed since Monday", ["2026-11-23T00:00:00..2026-11-29T15:30:00"]),
        ("what did I do from Monday to Friday", ["2026-11-23..2026-11-27"]),
        ("上个月月底交了什么", ["2026-10-21..2026-10-31"]),
        ("26号做了什么", ["2026-11-26"]),
        ("26号的会议", ["2026-11-26"]),
        ("在26日我们谈了什么", ["2026-11-26"]),
        ("3月5号和6号的账", ["2026-03-05", "2026-03-06"]),
        ("3月5日、6日", ["2026-03-05", "2026-03-06"]),
        ("昨天和26号", ["2026-11-28", "2026-11-26"]),
        ("what was decided on the 26th?", ["2026-11-26"]),
        ("who called on the 26th and 27th about it", ["2026-11-26", "2026-11-27"]),
        # These name no day.
        ("3号服务器的密码", []),
        ("坐3号线", []),
        ("1号和2号服务器", []),
        ("1号、2号和3号服务器", []),
        ("3号发动机和2号开关", []),
        ("26号、27号和28号的会议", ["2026-11-26", "2026-11-27", "2026-11-28"]),
        ("26号和小李开会", ["2026-11-26"]),
        ("三月到明年的计划", ["2026-03-01..2027-12-31"]),
        ("第3号文件", []),
        ("1号位和2号位是谁", []),
        ("每月26号", []),
        ("3日内完成", []),
        ("在3日内完成，在3日后付款，在3日游之前", []),
        ("26号之前", []),
        ("on the 5th floor", []),
        ("on the 2nd attempt", []),
        ("in the 26th minute of our 26th birthday", []),
        ("I came 1st and 2nd", []),
        ("on the 26th of each month", []),
        ("every Monday and Tuesday", []),
        ("2.3 years ago", []),
        ("what about 24.11.2026?", ["2026-11-24"]),
        ("24/11/2026 or 11/25/2026", ["2026-11-24", "2026-11-25"]),
        # Which number is the month, nobody can tell; the rest are no dates.
        ("what about 03/04/2026", []),
        ("in 04/2026", ["2026-04-01..2026-04-30"]),
        ("31.02.2026, version 1.24.11.2026, 24.11.2026.1 and 10.0.0.2026", []),
    ],
)
def test_late_in_the_year_a_question_names_times(question: str, expected: list[str]) -> None:
    """In lists and ranges, too, of which one part alone may name the year."""
    assert [written(one.span) for one in time_phrases(folded(question), LATE)] == expected


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        (datetime(2028, 2, 29), "2027-02-28"),  # noqa: DTZ001
        (datetime(2026, 1, 1), "2025-01-01"),  # noqa: DTZ001
    ],
)
def test_the_same_day_of_another_year_exists(day: datetime, expected: str) -> None:
    """After a leap day it is the last of the month."""
    assert written(read_time("a year ago today", day)) == expected


def test_after_the_31st_a_range_of_days_ends_in_the_next_month() -> None:
    """Also where that has no such day."""
    now = datetime(2026, 2, 3, 12)  # noqa: DTZ001
    assert written(read_time("31号到28号", now)) == "2026-01-31..2026-02-28"
    assert written(read_time("31号到2号", now)) == "2026-01-31..2026-02-02"


def test_what_is_read_of_english_does_not_depend_on_chinese_beside_it() -> None:
    """Rules of Chinese are not tried on a text in ASCII."""
    for phrase, _ in (*TABLE, *LATE_TABLE):
        if phrase.isascii():
            alone = time_phrases(folded(phrase), LATE)
            assert [one.span for one in time_phrases(folded(f"{phrase}, 茶"), LATE)] == [
                one.span for one in alone
            ]


def test_where_a_phrase_stands_is_told() -> None:
    """Of the folded text, with the words that belong to it."""
    text = folded("Who called since last Tuesday, 上周?")
    assert [text[one.start : one.end] for one in time_phrases(text, NOW)] == ["since last tuesday", "上周"]


@pytest.mark.parametrize("day", range(7))
def test_each_weekday_is_read_on_each_day(day: int) -> None:
    """The last is the latest before today, a bare one may be today, and Chinese weeks begin on Monday."""
    now = NOW + timedelta(days=day)
    monday = now.date() - timedelta(days=now.weekday())
    for number, name in enumerate(
        ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    ):
        last = read_time(f"last {name}", now).only_day
        bare = read_time(name, now).only_day
        assert last is not None
        assert bare is not None
        assert 1 <= (now.date() - last).days <= 7
        assert 0 <= (now.date() - bare).days <= 6
        assert last.weekday() == bare.weekday() == number
        chinese = "一二三四五六日"[number]
        assert read_time(f"本周{chinese}", now).only_day == monday + timedelta(days=number)
        assert read_time(f"上周{chinese}", now).only_day == monday + timedelta(days=number - 7)
        assert read_time(f"上上星期{chinese}", now).only_day == monday + timedelta(days=number - 14)
        assert read_time(f"{name} last week", now).only_day == monday + timedelta(days=number - 7)
        assert read_time(f"周{chinese}", now).only_day == bare
    saturday = monday + timedelta(days=5)
    begun = saturday if now.date() >= saturday else saturday - timedelta(weeks=1)
    assert read_time("weekend", now).first.date() == begun
    assert read_time("last weekend", now).first.date() == saturday - timedelta(weeks=1)
    assert read_time("this weekend", now).first.date() == saturday


@pytest.mark.parametrize("month", range(1, 13))
def test_each_month_is_the_latest_that_has_begun(month: int) -> None:
    """In both languages, by each of its names."""
    name = f"{datetime(2000, month, 1):%B}"  # noqa: DTZ001
    chinese = ["一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二"][month - 1]
    expected = f"{2026 if month <= 2 else 2025}-{month:02}"
    for phrase in (name, name[:3], f"in {name}", f"{chinese}月", f"{month}月", f"{month} 月份"):
        assert f"{read_time(phrase, NOW).first:%Y-%m}" == expected


def test_the_turn_of_the_year_is_passed() -> None:
    """On the first of January all of these lie in the year before."""
    now = datetime(2026, 1, 1, 0, 0, 1)  # noqa: DTZ001
    expected = {
        "yesterday": "2025-12-31",
        "last week": "2025-12-22..2025-12-28",
        "this week": "2025-12-29..2026-01-04",
        "last month": "2025-12-01..2025-12-31",
        "上个季度": "2025-10-01..2025-12-31",
        "三个月前": "2025-10-01..2025-10-31",
        "月底": "2025-12-21..2025-12-31",
        "winter": "2025-12-01..2026-02-28",
        "1mo": "2025-12-01",
    }
    assert {phrase: written(read_time(phrase, now)) for phrase in expected} == expected


def test_a_month_before_the_31st_has_fewer_days() -> None:
    """Its last day is meant."""
    now = datetime(2026, 3, 31, 12)  # noqa: DTZ001
    assert written(read_time("1mo", now)) == "2026-02-28"
    assert written(read_time("the past month", now)) == "2026-02-28..2026-03-31"


def test_a_moment_of_another_zone_is_one_of_this_zone() -> None:
    """Over the change to summer time, too; without a zone it is as it is written."""
    berlin = ZoneInfo("Europe/Berlin")
    for text, hour in (
        ("2026-03-29T00:30:00Z", 1),
        ("2026-03-29T01:30:00+00:00", 3),
        ("2026-10-25T00:30:00Z", 2),
    ):
        assert read_time(text, NOW, berlin).first == datetime.fromisoformat(text).astimezone(berlin).replace(
            tzinfo=None
        )
        assert read_time(text, NOW, berlin).first.hour == hour
    assert read_time("2026-03-29T02:30:00", NOW, berlin).first.hour == 2
    assert read_time("2026-03-29T02:30:00+05:00", NOW, UTC).first.hour == 21


def test_times_out_of_the_range_of_dates_are_not_read() -> None:
    """Whatever a client says that the time is."""
    for now in (datetime(1, 1, 1), datetime(9999, 12, 31)):  # noqa: DTZ001
        assert time_phrases("yesterday, last friday, 一周前, 本周日, summer, q3", now) == ()
        with pytest.raises(UnknownTime):
            read_time("last week", now)


def test_a_distance_has_an_end() -> None:
    """No question of a memory goes further back."""
    most = shipped("memd.text.time_rules._MOST_BACK")
    for now in (NOW, datetime(1000, 1, 1)):  # noqa: DTZ001
        assert [
            one.span.last - one.span.first < timedelta(days=7)
            for one in time_phrases(f"{most} weeks ago", now)
        ] == [True]
        assert time_phrases(f"{most + 1} weeks ago", now) == ()


def test_a_question_is_read_up_to_a_length() -> None:
    """What stands beyond it names no time."""
    most = shipped("memd.text.time_phrases._MAX_READ_CHARS")
    assert time_phrases("x" * (most - 10) + " yesterday", NOW) != ()
    assert time_phrases("x" * most + " yesterday", NOW) == ()


@pytest.mark.parametrize(
    "text",
    ["last ", "1 ", "一", "2025-", "the last of may ", "上", "first sunday of ", "1号、", "on the 1st, "],
)
def test_hostile_texts_take_no_more_than_their_length(text: str) -> None:
    """Twice as long is at most about twice the work."""
    short, long = (text * (size // len(text)) for size in (500, 1000))
    time_phrases(short, NOW)
    assert calls(lambda: time_phrases(long, NOW)) <= 3 * calls(lambda: time_phrases(short, NOW)) + 1000


@given(
    st.text("0123456789 -/天日周月年季前上这大个星期礼拜第一二agoweks daythremnlsumrq", max_size=40),
    st.datetimes(datetime(1900, 1, 1)),  # noqa: DTZ001
)
def test_any_text_at_any_time_names_times(text: str, now: datetime) -> None:
    """From a first second to a last, in the order of the text, apart from each other."""
    reached = 0
    for phrase in time_phrases(folded(text), now):
        assert phrase.span.first <= phrase.span.last
        assert reached <= phrase.start < phrase.end <= len(folded(text))
        reached = phrase.end


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-02-09", "2026-02-09"),
        ("Monday, 9 February 2026", "2026-02-09"),
        ("Montag, 9.2.2026", "2026-02-09"),
        ("26号", None),
        ("2026-02-09T10:00:00+01:00", "2026-02-09"),
        ("2026年2月9日 星期一", "2026-02-09"),
        ("Review of 2026-W07", "2026-02-09..2026-02-15"),
        ("February 2026", "2026-02-01..2026-02-28"),
        ("Q1 2026", "2026-01-01..2026-03-31"),
        ("9 February", None),
        ("yesterday", None),
        ("Last year", None),
        ("2026", None),
        ("1225 °C", None),
        ("14:30", None),
        ("", None),
    ],
)
def test_a_heading_says_a_date_with_its_year(text: str, expected: str | None) -> None:
    """What counts from another day says nothing."""
    span = dated(text)
    assert (None if span is None else written(span)) == expected


def test_within_a_month_a_heading_needs_no_year() -> None:
    """And nothing outside of the month is meant."""
    may = read_time("2025-05", NOW)
    assert written(dated("12 May", may) or NOW_SPAN) == "2025-05-12"
    assert written(dated("5月12日", may) or NOW_SPAN) == "2025-05-12"
    assert dated("12 June", may) is None
    assert dated("2024-05-12", may) is None


NOW_SPAN = TimeSpan(NOW, NOW)
