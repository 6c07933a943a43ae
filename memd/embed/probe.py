"""A few questions with their answers, from whose vectors a model's range of cosines is read."""

import numpy as np
from numpy.typing import NDArray

from memd.embed.provider import Calibration, Vector, Vectors

# Eight matters that have nothing to do with each other: question and answer, in English and in Chinese.
_MATTERS = (
    (
        "Which database did we choose for the billing service?",
        "We decided to run the billing service on PostgreSQL 16 because of row-level locks.",
        "计费服务选了哪个数据库?",
        "计费服务决定使用 PostgreSQL 16,因为它支持行级锁。",
    ),
    (
        "When is grandmother's birthday?",
        "Grandma turns eighty on the third of May; the family meets at the lake.",
        "奶奶什么时候过生日?",
        "五月三日奶奶满八十岁,全家在湖边聚会。",
    ),
    (
        "How do I prune the apple trees?",
        "Cut the apple branches in late winter, above a bud that faces outwards.",
        "苹果树怎么修剪?",
        "冬末修剪苹果树枝,剪在朝外的芽的上方。",
    ),
    (
        "What did the doctor say about my knee?",
        "The orthopaedist found a small meniscus tear and prescribed six weeks of physiotherapy.",
        "医生怎么说我的膝盖?",
        "骨科医生发现半月板有小裂口,开了六周的理疗。",
    ),
    (
        "Where are the spare keys of the flat kept?",
        "A second set of keys hangs at the neighbour's, in the blue tin by the door.",
        "公寓的备用钥匙放在哪里?",
        "另一套钥匙挂在邻居家门边的蓝色铁盒里。",
    ),
    (
        "Which train goes to Basel on Friday?",
        "On Friday take the 7:52 express to Basel, platform four, seats are reserved.",
        "星期五坐哪趟火车去巴塞尔?",
        "星期五坐七点五十二分的快车去巴塞尔,四号站台,座位已订好。",
    ),
    (
        "What is the recipe for the bread?",
        "For the loaf: 500 g of rye flour, 350 ml of water, sourdough, ten hours of rest.",
        "面包的配方是什么?",
        "做面包用五百克黑麦粉、三百五十毫升水和酵头,静置十小时。",
    ),
    (
        "Why did the deployment fail last night?",
        "The rollout stopped at midnight since the certificate of the load balancer had expired.",
        "昨晚的部署为什么失败了?",
        "半夜发布中断,因为负载均衡器的证书过期了。",
    ),
)

QUESTIONS = tuple(matter[0] for matter in _MATTERS) + tuple(matter[2] for matter in _MATTERS)
ANSWERS = tuple(matter[1] for matter in _MATTERS) + tuple(matter[3] for matter in _MATTERS)


SAME = 0.99
"""Vectors of one text by one model, weeks apart, have a cosine above this; providers round a little."""

_LEAST_RANGE = 0.05  # a model that cannot tell a language's texts apart must not make everything look close


def calibration(questions: Vectors, answers: Vectors) -> Calibration:
    """The range of a model's cosines, in each language and across the two.

    A range begins between the median and the 95th percentile of the cosines of questions with answers to others, and
    ends at the highest of a question with its own answer. For multilingual-e5-small this gives .76 to .88, .83 to .93
    and .74 to .84, where measurements on chats and encyclopedia paragraphs gave .77 to .885, .825 to .925 and .745 to .855.

    Args:
        questions: Vectors of QUESTIONS, embedded as such.
        answers: Vectors of ANSWERS, embedded as documents.
    """
    cosines = questions.astype(np.float64) @ answers.astype(np.float64).T
    half = len(_MATTERS)
    low, high = _range(cosines[:half, :half])
    return Calibration(
        low=low,
        high=high,
        cjk=_range(cosines[half:, half:]),
        across=_range(cosines[:half, half:], cosines[half:, :half]),
    )


def same_model(before: Vector, now: Vector) -> bool:
    """Whether two vectors of the first answer came from one model."""
    return len(before) == len(now) and float(before @ now) >= SAME


def _range(*blocks: NDArray[np.float64]) -> tuple[float, float]:
    own = np.eye(len(_MATTERS), dtype=bool)
    others = np.concatenate([block[~own] for block in blocks])
    related = np.concatenate([block[own] for block in blocks])
    low = float((np.median(others) + np.quantile(others, 0.95)) / 2)
    return round(low, 4), round(max(float(related.max()), low + _LEAST_RANGE), 4)
