"""What a model's vectors are like, by its answers to a probe: the range of its cosines, and what the language of a text adds to its vector.

Models of many languages put texts of one language close together, whatever they say: the cosine of unrelated Chinese
texts is higher than that of an English question and its Chinese answer. That is a direction of the vectors and not a
number: taken off the cosines, it punishes texts that mix languages.
"""

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memd.providers.provider import Calibration, Vector, Vectors
from memd.text.tokens import cjk_share

CENTRING_VERSION = 1  # raised with any change here: vectors of different versions do not meet


class BiasLine(msgspec.Struct, frozen=True):
    """What the share of CJK in a text predicts of its vector. Float32, little-endian, shape (dimensions,)."""

    mean: bytes  # where nothing is CJK
    slope: bytes  # what is added where everything is


class Bias(msgspec.Struct, frozen=True):
    """The lines of a model."""

    passages: BiasLine
    questions: BiasLine
    # VERSION and that of the texts of memd.providers.calibration, as it was measured: vectors without different lines do not meet.
    measured: tuple[int, int] = (1, 1)


def line(vectors: Vectors, texts: Sequence[str]) -> BiasLine:
    """The line that is nearest to some vectors, by least squares.

    Args:
        vectors: Shape (n, dimensions).
        texts: What they are of, n.
    """
    shares = np.array([cjk_share(text) for text in texts])
    design = np.stack([np.ones(len(texts)), shares], axis=1)
    mean, slope = np.linalg.lstsq(design, vectors.astype(np.float64), rcond=None)[0]
    return BiasLine(_stored(mean), _stored(slope))


def _stored(row: NDArray[np.float64]) -> bytes:
    return row.astype("<f4").tobytes()


def centred(vectors: Vectors, texts: Sequence[str], of: BiasLine) -> Vectors:
    """Vectors with what their language predicts taken out, at length 1.

    Each row depends on its own text alone, to the last bit.

    Args:
        vectors: Shape (n, dimensions), each of length 1.
        texts: What they are of, n.
        of: The line.
    """
    return centred_at(vectors, [cjk_share(text) for text in texts], of)


def centred_at(vectors: Vectors, shares: Sequence[float], of: BiasLine) -> Vectors:
    """The same, where of each text no more is known than its share of CJK (memd.text.tokens.cjk_share), 0..1."""
    left = vectors - np.frombuffer(of.mean, "<f4")
    left -= np.array(shares, np.float32)[:, None] * np.frombuffer(of.slope, "<f4")
    lengths = np.sqrt(np.vecdot(left, left))[:, None]
    # A vector that is all language says nothing: it stays as it is, far from all that were centred.
    rows: Vectors = np.where(lengths > 0, left / np.maximum(lengths, np.finfo(np.float32).tiny), vectors)
    return rows.astype(np.float32, copy=False)


# Raised with any change of the texts: what was measured with others is measured again. The first one stays: by its vector a
# model is known to be the same.
PROBE_VERSION = 1

# A note and a question about it, in English, then in Chinese; as people and agents write them, about matters that have
# little to do with each other.
_MATTERS = (
    (
        "We decided to run the billing service on PostgreSQL 16 because of row-level locks.",
        "Which database did we choose for the billing service?",
        "计费服务决定使用 PostgreSQL 16，因为它支持行级锁。",
        "计费服务选了哪个数据库？",
    ),
    (
        "Grandma turns eighty on the third of May; the family meets at the lake.",
        "When is grandmother's birthday?",
        "五月三日奶奶满八十岁，全家在湖边聚会。",
        "奶奶什么时候过生日？",
    ),
    (
        "Cut the apple branches in late winter, above a bud that faces outwards.",
        "How do I prune the apple trees?",
        "冬末修剪苹果树枝，剪在朝外的芽的上方。",
        "苹果树怎么修剪？",
    ),
    (
        "The orthopaedist found a small meniscus tear and prescribed six weeks of physiotherapy.",
        "What did the doctor say about my knee?",
        "骨科医生发现半月板有小裂口，开了六周的理疗。",
        "医生怎么说我的膝盖？",
    ),
    (
        "A second set of keys hangs at the neighbour's, in the blue tin by the door.",
        "Where are the spare keys of the flat kept?",
        "另一套钥匙挂在邻居家门边的蓝色铁盒里。",
        "公寓的备用钥匙放在哪里？",
    ),
    (
        "On Friday take the 7:52 express to Basel, platform four, seats are reserved.",
        "Which train goes to Basel on Friday?",
        "星期五坐七点五十二分的快车去巴塞尔，四号站台，座位已订好。",
        "星期五坐哪趟火车去巴塞尔？",
    ),
    (
        "For the loaf: 500 g of rye flour, 350 ml of water, sourdough, ten hours of rest.",
        "What is the recipe for the bread?",
        "做面包用五百克黑麦粉、三百五十毫升水和酵头，静置十小时。",
        "面包的配方是什么？",
    ),
    (
        "The rollout stopped at midnight since the certificate of the load balancer had expired.",
        "Why did the deployment fail last night?",
        "半夜发布中断，因为负载均衡器的证书过期了。",
        "昨晚的部署为什么失败了？",
    ),
    (
        "- Car: new winter tyres fitted, 420 francs, the old ones are in the cellar.",
        "How much did the winter tyres cost?",
        "- 车：换了冬季轮胎，四百二十法郎，旧的放在地下室。",
        "冬季轮胎花了多少钱？",
    ),
    (
        "- The nursery closes at half past five; being late costs ten euros each time.",
        "What happens if we pick up the child too late?",
        "- 幼儿园五点半关门，迟到一次罚十欧元。",
        "接孩子迟到了会怎么样？",
    ),
    (
        "Meeting with the landlord: the rent rises by three per cent from October.",
        "By how much does our rent go up?",
        "和房东见面：房租从十月起涨百分之三。",
        "我们的房租涨多少？",
    ),
    (
        "The backup runs every night at two and keeps the last fourteen days.",
        "How long are backups kept?",
        "备份每天夜里两点运行，保留最近十四天。",
        "备份保留多久？",
    ),
    (
        "Switched the router to channel 11, since then the video calls are stable.",
        "What fixed the dropped video calls?",
        "把路由器换到 11 频道，之后视频通话就稳定了。",
        "视频通话断线是怎么解决的？",
    ),
    (
        "She is allergic to penicillin; it is written in the yellow vaccination booklet.",
        "Which medicine must she not take?",
        "她对青霉素过敏，写在黄色的疫苗本里。",
        "她不能用什么药？",
    ),
    (
        "The client wants the logo in dark green and no shadow behind the letters.",
        "What colour does the customer want?",
        "客户要深绿色的标志，字的后面不要阴影。",
        "客户想要什么颜色？",
    ),
    (
        "Booked the small hotel behind the harbour for three nights, breakfast included.",
        "Where do we stay during the trip?",
        "订了港口后面的小旅馆，三个晚上，含早餐。",
        "旅行时我们住在哪里？",
    ),
    (
        "The cat gets half a tablet against worms on the first day of every month.",
        "When does the cat need its medicine?",
        "每个月一号给猫吃半片驱虫药。",
        "猫什么时候要吃药？",
    ),
    (
        "Ran eleven kilometres along the river, the left shoe rubs at the heel.",
        "How far did I run?",
        "沿着河跑了十一公里，左边的鞋磨脚后跟。",
        "我跑了多远？",
    ),
    (
        "The tax return is due at the end of June; the receipts are in the green folder.",
        "When must the taxes be declared?",
        "报税截止到六月底，收据在绿色的文件夹里。",
        "什么时候要报税？",
    ),
    (
        "Tried the new soup with pumpkin and ginger, the children asked for more.",
        "What dish did the kids like?",
        "试做了南瓜姜汤，孩子们还要第二碗。",
        "孩子们喜欢哪道菜？",
    ),
    (
        "## Decisions\n- No third supplier this year, the quality of the first two is enough.",
        "Are we looking for another supplier?",
        "## 决定\n- 今年不找第三家供应商，前两家的质量够了。",
        "我们还要找别的供应商吗？",
    ),
    (
        "The printer in the office jams when the paper is thinner than 80 grams.",
        "Why does the printer get stuck?",
        "办公室的打印机遇到低于八十克的纸就会卡纸。",
        "打印机为什么卡住？",
    ),
    (
        "Anna moved the rehearsal from Monday to Wednesday evening at eight.",
        "What day do we rehearse now?",
        "安娜把排练从星期一改到星期三晚上八点。",
        "现在星期几排练？",
    ),
    (
        "Signed the contract today: thirty per cent now, the rest on delivery.",
        "How is the payment split?",
        "今天签了合同：先付百分之三十，其余交货时付。",
        "货款怎么付？",
    ),
    (
        "The tomatoes on the balcony need water twice a day when it is hot.",
        "How often should the plants be watered?",
        "天热的时候阳台上的番茄每天要浇两次水。",
        "植物多久浇一次水？",
    ),
    (
        "Read the novel about the lighthouse keeper; the ending was too sudden.",
        "What did I think of the book?",
        "读完了那本讲灯塔看守人的小说，结尾太突然。",
        "我觉得那本书怎么样？",
    ),
    (
        "The heating engineer replaced the pump and bled all radiators.",
        "What was repaired in the heating?",
        "暖气师傅换了水泵，给所有暖气片放了气。",
        "暖气修了什么？",
    ),
    (
        "Passport number renewed, valid until 2034, fetched at the consulate.",
        "Until when is the passport valid?",
        "护照换新了，有效期到 2034 年，在领事馆取的。",
        "护照有效期到什么时候？",
    ),
    (
        "The intern starts on Monday and shares the desk with Paul.",
        "Where will the new trainee sit?",
        "实习生星期一开始上班，和保罗共用一张桌子。",
        "新来的实习生坐在哪里？",
    ),
    (
        "Battery test: nine hours with the screen on, then it switched itself off.",
        "How long does the battery last?",
        "电池测试：亮屏九个小时，然后自己关机。",
        "电池能用多久？",
    ),
    (
        "He prefers to be called in the afternoon and never on Sundays.",
        "When may I phone him?",
        "他希望下午接电话，星期天从来不接。",
        "我什么时候可以给他打电话？",
    ),
    (
        "The window in the bathroom does not close since the storm; glazier comes on the 12th.",
        "What is broken in the bathroom?",
        "暴风雨以后浴室的窗户关不上，12 号玻璃师傅来。",
        "浴室里什么坏了？",
    ),
    (
        "Moved the tests to the new server, they take four minutes instead of nine.",
        "How fast are the tests now?",
        "把测试搬到新服务器上，从九分钟变成四分钟。",
        "测试现在要多长时间？",
    ),
    (
        "The school trip goes to the salt mine; each child brings a warm jacket.",
        "What should be packed for the excursion?",
        "学校组织去盐矿，每个孩子带一件厚外套。",
        "郊游要带什么？",
    ),
    (
        "We sold the old sofa for ninety euros to a student from the third floor.",
        "Who bought our couch?",
        "旧沙发九十欧元卖给了三楼的一个学生。",
        "谁买了我们的沙发？",
    ),
    (
        "Her blood pressure was 135 over 82 this morning, after ten minutes of rest.",
        "What was the blood pressure?",
        "她今天早上休息十分钟后血压 135/82。",
        "血压是多少？",
    ),
    (
        "The glaze runs when it is fired above 1240 degrees, so hold it at 1225.",
        "At what temperature should the glaze be fired?",
        "釉料超过 1240 度会流，所以保温在 1225 度。",
        "釉要烧到多少度？",
    ),
    (
        "Dentist: one filling on the upper left, next check in half a year.",
        "When is my next dental check?",
        "看牙：左上补了一颗，半年后复查。",
        "下次看牙是什么时候？",
    ),
    (
        "The insurance pays for the stolen bicycle except for the first hundred euros.",
        "Does the insurance cover the bike?",
        "保险赔偿被偷的自行车，自己承担前一百欧元。",
        "自行车被偷保险赔吗？",
    ),
    (
        "Use short sentences in reports: first the result, then the reason.",
        "How should reports be written?",
        "报告用短句：先写结果，再写原因。",
        "报告应该怎么写？",
    ),
    (
        "The concert raised 640 euros for the village library.",
        "How much money was collected at the concert?",
        "音乐会为村图书馆筹到六百四十欧元。",
        "音乐会募到多少钱？",
    ),
    (
        "Father's hearing aid needs a new battery every nine days.",
        "How often is the battery of the hearing aid changed?",
        "爸爸的助听器每九天换一次电池。",
        "助听器多久换电池？",
    ),
    (
        "Ordered twelve bowls and six plates for the wedding, to be ready by April.",
        "What was ordered for the wedding?",
        "婚礼订了十二只碗和六个盘子，四月前做好。",
        "婚礼订了什么？",
    ),
    (
        "The garage door opens with the code of the old house number, backwards.",
        "How do I open the garage?",
        "车库门的密码是旧门牌号倒过来。",
        "车库怎么打开？",
    ),
    (
        "My brother lends us the drill until the shelves are up.",
        "Whose drill are we using?",
        "哥哥把电钻借给我们，等架子装好再还。",
        "我们用的是谁的电钻？",
    ),
    (
        "The parcel from the potter arrived broken; she sends another one without charge.",
        "What was wrong with the parcel?",
        "陶艺师寄来的包裹到的时候碎了，她免费再寄一个。",
        "包裹出了什么问题？",
    ),
    (
        "Snow closed the pass, so we came home through the tunnel two hours late.",
        "Why were we late coming home?",
        "大雪封了山口，我们走隧道，晚了两个小时到家。",
        "我们为什么回家晚了？",
    ),
    (
        "The password policy changes: sixteen characters and no expiry.",
        "What are the new rules for passwords?",
        "密码规则改了：十六个字符，不再过期。",
        "密码的新规则是什么？",
    ),
)

ANSWERS = tuple(matter[0] for matter in _MATTERS) + tuple(matter[2] for matter in _MATTERS)
QUESTIONS = tuple(matter[1] for matter in _MATTERS) + tuple(matter[3] for matter in _MATTERS)

SAME = 0.99
"""Vectors of one text by one model, weeks apart, have a cosine above this; providers round a little."""

UNRELATED = 0.975  # this share of unrelated pairs is not worth reading
_LEAST_RANGE = 0.05  # a model that cannot tell texts apart must not make everything look close


def bias(questions: Vectors, answers: Vectors) -> Bias | None:
    """What the language of a text adds to its vector; None where taking it out finds no more.

    It is worth taking out where questions then have the answer in the other language further in front: with
    multilingual-e5-small at 1/1.6 in the mean, instead of 1/4.1.

    Args:
        questions: Vectors of QUESTIONS, embedded as such.
        answers: Vectors of ANSWERS, embedded as documents.
    """
    found = Bias(line(answers, ANSWERS), line(questions, QUESTIONS), (CENTRING_VERSION, PROBE_VERSION))
    without = centred(questions, QUESTIONS, found.questions) @ centred(answers, ANSWERS, found.passages).T
    return found if _across(without) > _across(questions @ answers.T) else None


def _across(cosines: NDArray[np.float32]) -> float:
    """The mean of 1 / the place of the answer in the other language, among all in whatever language."""
    wanted = np.diagonal(np.roll(cosines, len(_MATTERS), axis=1))
    return float((1 / (1 + (cosines > wanted[:, None]).sum(axis=1))).mean())


def calibration(questions: Vectors, answers: Vectors) -> Calibration:
    """The range of a model's cosines: from what is usual between texts that have nothing to do with each other.

    Args:
        questions: Vectors of QUESTIONS as a search has them, without their bias.
        answers: Vectors of ANSWERS, likewise.
    """
    cosines = questions.astype(np.float64) @ answers.astype(np.float64).T
    own = np.eye(len(QUESTIONS), dtype=bool)
    others = cosines[~(own | np.roll(own, len(_MATTERS), axis=1))]
    low, unrelated = np.quantile(others, [0.5, UNRELATED])
    return Calibration.where(round(float(low), 4), round(max(float(unrelated), float(low) + _LEAST_RANGE), 4))


def same_model(before: Vector, now: Vector) -> bool:
    """Whether two vectors of the first answer came from one model."""
    return len(before) == len(now) and float(before @ now) >= SAME
