"""Makes the notes of an agent that has kept a memory for years, in English and Chinese, the same for the same seed."""

import bisect
import re
from collections.abc import Callable
from datetime import date, timedelta
from itertools import accumulate, cycle
from pathlib import Path
from random import Random
from typing import Literal

import msgspec

from memd.chunk import markdown
from memd.config.settings import Chunking
from memd.domain_types import Document, Kind
from memd.sources.notes import lines_of

# The function words of English make up the head of the distribution, as they do in any text.
_ENGLISH_HEAD = """
the to of and a in for is it that on we with be was this as not are have at by from will an or so if they can but has
our there what all when which up out do more about into some then them only after should its now also no than been were
because before how over just other need one two new
"""
_ENGLISH_WORDS = """
user project meeting team time work decided service database customer week release plan test bug deploy error data
server file request change version check call system review issue report code page script update email note list key
name value token budget design feature model search index memory agent session queue cache backup config setting limit
timeout retry job worker cluster network latency traffic alert metric dashboard log trace branch merge commit patch
rollback migration schema table column query result record field type format import export sync schedule calendar
invoice payment price discount contract vendor supplier order shipment warehouse return refund account login password
access role policy audit security risk incident outage recovery window weekend monday tuesday wednesday thursday friday
morning afternoon evening call agenda minutes action owner deadline milestone roadmap quarter estimate scope priority
blocker decision option draft proposal feedback interview candidate offer hire office travel flight hotel train ticket
visa dinner lunch coffee book article paper chapter idea sketch photo garden kitchen doctor dentist school birthday
present family parents sister brother neighbour holiday beach mountain river weather rain summer winter music concert
guitar piano run bike gym sleep breakfast recipe bread soup tea water light door window wall paint floor roof repair
phone laptop screen keyboard cable battery printer camera router wifi disk drive folder archive label tag topic thread
message channel reply link domain certificate proxy gateway container image registry volume secret variable flag switch
toggle experiment variant baseline sample training dataset feature embedding vector prompt answer question summary
language translation grammar dictionary teacher lesson exercise exam course university library museum station airport
bank tax insurance rent salary pension savings loan interest currency exchange market share company partner founder
board investor revenue profit loss growth churn target forecast survey reader writer editor publisher newsletter blog
"""
_ENGLISH_TAIL = 4000
_ONSETS = "b br c ch cl d dr f fl g gr h j k l m n p pl pr qu r s sh sl st t th tr v w z"
_NUCLEI = "a ai e ea i io o oa ou u"
_CODAS = "l m n nd r rt s st t x"

_CHINESE_HEAD = """
的 了 是 在 我 我们 和 有 不 就 也 要 把 这个 都 上 到 说 用 他 会 对 可以 没有 一个 今天 需要 已经 还 再 从 很 后 给 那个 因为 所以 如果
"""
_CHINESE_WORDS = """
项目 会议 团队 时间 工作 决定 服务 数据库 客户 本周 发布 计划 测试 问题 部署 错误 数据 服务器 文件 请求 修改 版本 检查 系统 评审 报告 代码 页面 脚本 更新
邮件 笔记 列表 密钥 名称 令牌 预算 设计 功能 模型 搜索 索引 记忆 会话 队列 缓存 备份 配置 设置 限制 超时 重试 任务 集群 网络 延迟 流量 告警 指标 面板 日志
分支 合并 提交 补丁 回滚 迁移 结构 字段 查询 结果 记录 类型 格式 导入 导出 同步 日程 日历 发票 付款 价格 折扣 合同 供应商 订单 发货 仓库 退货 退款 账户 登录 密码
权限 角色 策略 审计 安全 风险 事故 故障 恢复 窗口 周末 周一 周二 周三 周四 周五 早上 下午 晚上 议程 纪要 行动 负责人 截止 里程碑 路线图 季度 估算 范围 优先级
阻塞 决策 方案 草稿 提案 反馈 面试 候选人 录用 办公室 出差 航班 酒店 火车 车票 签证 晚饭 午饭 咖啡 书 文章 论文 章节 想法 照片 花园 厨房 医生 学校 生日 礼物
家人 父母 妹妹 哥哥 邻居 假期 海边 天气 下雨 夏天 冬天 音乐 吉他 跑步 自行车 健身 睡眠 早餐 菜谱 面包 喝茶 门 窗户 油漆 屋顶 维修 手机 电脑 屏幕 键盘 电池
"""
_CHINESE_TAIL = 4000

# Ranks share the mass as 1/(rank + shift)^exponent. Source: Mandelbrot, An informational theory of the statistical
# structure of language, 1953; the values are usual for prose.
_SHIFT, _EXPONENT = 2.7, 1.0

_FIRST_DAY = date(2015, 1, 1)
_CHUNKING = Chunking()

Language = Literal["english", "chinese", "mixed", "identifier"]


class Question(msgspec.Struct, frozen=True):
    """A question with the one line of all notes that answers it."""

    text: str
    language: Language
    line: str  # stands in exactly one note
    answer: str  # the part of the line that must be in a hit


class Corpus(msgspec.Struct, frozen=True):
    """How much was written."""

    files: int
    chunks: int


QUESTIONS = (
    Question(
        "which database did we pick for the billing ledger?",
        "english",
        "The billing ledger moves to the PostgreSQL database that Marguerite picked.",
        "PostgreSQL",
    ),
    Question(
        "where is the spare key of the greenhouse?",
        "english",
        "The spare key of the greenhouse hangs behind the blue watering can.",
        "blue watering can",
    ),
    Question(
        "what did the dentist say about the wisdom tooth",
        "english",
        "The dentist says the lower wisdom tooth can stay until it hurts.",
        "can stay until it hurts",
    ),
    Question(
        "who owns the rollback runbook after Henrietta leaves the team?",
        "english",
        "Once Henrietta leaves the team, Osvaldo owns the rollback runbook.",
        "Osvaldo",
    ),
    Question(
        "how long do we keep audit logs for enterprise customers?",
        "english",
        "Audit logs of enterprise customers are kept for nineteen months.",
        "nineteen months",
    ),
    Question(
        "what time does the night train to Ljubljana leave",
        "english",
        "The night train to Ljubljana leaves at 21:47 from track six.",
        "21:47",
    ),
    Question(
        "账单系统最后选了哪个数据库?", "chinese", "账单系统最后选定的数据库是达梦, 由老周负责迁移。", "达梦"
    ),
    Question("温室的备用钥匙放在哪里?", "chinese", "温室的备用钥匙放在蓝色水壶的后面。", "蓝色水壶"),
    Question("奶奶的红烧肉要炖多久?", "chinese", "奶奶的红烧肉要小火慢炖九十分钟。", "九十分钟"),
    Question(
        "支付回调失败以后重试的上限是多少次?",
        "chinese",
        "支付回调失败以后最多重试七次, 之后转人工处理。",
        "七次",
    ),
    Question(
        "小林的签证什么时候到期?", "chinese", "小林的签证明年四月十二日到期, 要提前两个月续签。", "四月十二日"
    ),
    Question("新版路线图里谁负责离线模式?", "chinese", "新版路线图里离线模式归阿珍负责。", "阿珍"),
    Question(
        "Kubernetes 集群的 ingress 用的是哪个方案?",
        "mixed",
        "Kubernetes 集群的 ingress 换成了 Contour 方案。",
        "Contour",
    ),
    Question(
        "Terraform state 文件现在存在哪个 bucket?",
        "mixed",
        "Terraform state 文件放进 bucket frostbyte-7。",
        "frostbyte-7",
    ),
    Question(
        "周会上说 Grafana 面板谁来维护?", "mixed", "周会决定 Grafana 面板以后由 Ingeborg 维护。", "Ingeborg"
    ),
    Question("OAuth token 的过期时间改成多少了?", "mixed", "OAuth token 的过期时间改成 4321 秒。", "4321"),
    Question(
        "zephyr_retry.max_backoff_ms",
        "identifier",
        "Set `zephyr_retry.max_backoff_ms = 8250` on all workers.",
        "8250",
    ),
    Question(
        "incident INC-40817",
        "identifier",
        "Incident INC-40817: a full disk on the replica, closed by Priya.",
        "full disk",
    ),
    Question(
        "ERR_QUORUM_LOST",
        "identifier",
        "`ERR_QUORUM_LOST` means two of the three brokers are down.",
        "three brokers",
    ),
    Question(
        "src/ledger/reconcile.rs",
        "identifier",
        "The rounding bug was in src/ledger/reconcile.rs, line 212.",
        "rounding bug",
    ),
)


def generate(directory: Path, *, chunks: int, seed: int = 1) -> Corpus:
    """Write notes below directory/memory until they make so many chunks, or those of a note or two more.

    One note in five is a long one about a topic, the others are daily. Each line of QUESTIONS stands in one of them,
    spread evenly. The words follow a Zipf-Mandelbrot law, so that common ones are in most chunks and most are rare.

    Args:
        directory: The workspace; made if missing.
        chunks: How many, with the default chunking.
        seed: Other seeds give other notes.
    """
    rng = Random(seed)
    author = _Author(rng)
    needles = [
        (round((n + 0.5) * chunks / len(QUESTIONS)), question.line) for n, question in enumerate(QUESTIONS)
    ]
    day = _FIRST_DAY
    made = 0
    for number, topical in enumerate(cycle((False, False, True, False, False))):
        if made >= chunks and not needles:
            return Corpus(number, made)
        if topical:
            name = f"memory/topics/{number:05}-{author.slug()}.md"
        else:
            name, day = f"memory/{day.isoformat()}.md", day + timedelta(days=1)
        text = author.note(30 if topical else 8)
        while needles and needles[0][0] <= made:
            text += f"- {needles.pop(0)[1]}\n"
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        document = Document(name, Kind.NOTE, lines_of(text))
        made += len(markdown.chunk(document, _CHUNKING.tokens, _CHUNKING.overlap))
    raise AssertionError  # cycle() does not end


def small(directory: Path, *, files: int, seed: int = 2) -> None:
    """Write so many notes of a few lines below directory/memory."""
    author = _Author(Random(seed))
    for number in range(files):
        file = directory / "memory" / f"{number // 500:03}" / f"{number:06}-{author.slug()}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(author.note(1), encoding="utf-8")


def sentences(rng: Random, count: int) -> list[str]:
    """So many sentences, in the languages of notes."""
    author = _Author(rng)
    return [author.sentence() for _ in range(count)]


def natural_questions(count: int, *, seed: int = 1) -> list[str]:
    """Questions in the words of the notes of a seed, so that each shares words with many of them; none comes twice.

    Half of them are English, a quarter Chinese, and a quarter Chinese with English words.
    """
    author, rng = _Author(Random(seed)), Random(seed)
    asked: dict[str, None] = {}
    while len(asked) < count:
        asked[author.question(rng, len(asked))] = None
    return list(asked)


class _Vocabulary:
    """Words by rank, drawn by the Zipf-Mandelbrot law."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self._shares = list(accumulate((rank + _SHIFT) ** -_EXPONENT for rank in range(1, len(words) + 1)))

    def draw(self, rng: Random, n: int) -> list[str]:
        shares, whole = self._shares, self._shares[-1]
        return [self.words[bisect.bisect(shares, rng.random() * whole)] for _ in range(n)]


class _Author:
    """Writes notes from one source of randomness."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        known = list(dict.fromkeys(_ENGLISH_HEAD.split() + _ENGLISH_WORDS.split()))
        self._english = _Vocabulary(known + [self._coined() for _ in range(_ENGLISH_TAIL)])
        characters = _Vocabulary(rng.sample(_common_characters(), 1800))
        pairs = ["".join(characters.draw(rng, 2)) for _ in range(_CHINESE_TAIL)]
        self._chinese = _Vocabulary(
            list(dict.fromkeys(_CHINESE_HEAD.split() + _CHINESE_WORDS.split() + pairs))
        )

    def _coined(self) -> str:
        pick = self._rng.choice
        syllable = [sounds.split() for sounds in (_ONSETS, _NUCLEI, _CODAS)]
        return "".join(pick(sounds) for _ in range(pick((2, 2, 3))) for sounds in syllable)

    def question(self, rng: Random, number: int) -> str:
        """One of words as common as those of sentences, with two that tell what it is about."""
        english, chinese = self._english.words[60:360], self._chinese.words[35:240]
        if number % 2 == 0:
            return (
                f"what about {' '.join(self._english.draw(rng, rng.randint(4, 9)) + rng.sample(english, 2))}?"
            )
        if number % 4 == 1:
            return f"{''.join(self._chinese.draw(rng, rng.randint(4, 8)) + rng.sample(chinese, 2))}是什么?"
        return f"{''.join(self._chinese.draw(rng, rng.randint(3, 6)))} {' '.join(rng.sample(english, 2))} 在哪里?"

    def slug(self) -> str:
        """The name of a topic."""
        return "-".join(word for word in self._english.draw(self._rng, 2) if word.isascii())

    def note(self, sections: int) -> str:
        """A note of so many sections, give or take some."""
        count = max(1, round(sections * self._rng.uniform(0.6, 1.4)))
        return f"# {self._heading()}\n\n" + "".join(self._section() for _ in range(count))

    def _heading(self) -> str:
        return " ".join(self._english.draw(self._rng, self._rng.randint(2, 5))).capitalize()

    def _section(self) -> str:
        """A heading, some sentences, and a list now and then: about a chunk of text."""
        rng = self._rng
        write = self._writer()
        hour, minute = rng.randrange(24), rng.randrange(60)
        lines = [f"## {hour:02}:{minute:02} {self._heading()}", ""]
        lines += [write() for _ in range(rng.randint(3, 6))]
        if rng.random() < 0.4:
            lines += [f"- {write()}" for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.15:
            lines.append(f"- `{self._identifier()}` = {rng.randrange(10_000)}")
        return "\n".join(lines) + "\n\n"

    def sentence(self) -> str:
        """In one of the languages."""
        return self._writer()()

    def _writer(self) -> Callable[[], str]:
        """What writes sentences in one of the languages."""
        writers = (self._english_sentence, self._chinese_sentence, self._mixed_sentence)
        return self._rng.choices(writers, (11, 6, 3))[0]

    def _english_sentence(self) -> str:
        words = self._english.draw(self._rng, self._rng.randint(8, 22))
        return " ".join(words).capitalize() + self._rng.choice("...?")

    def _chinese_sentence(self) -> str:
        words = self._chinese.draw(self._rng, self._rng.randint(8, 22))
        middle = len(words) // 2
        return "".join(words[:middle]) + "，" + "".join(words[middle:]) + "。"

    def _mixed_sentence(self) -> str:
        words = self._chinese.draw(self._rng, self._rng.randint(6, 16))
        for place in range(2, len(words), 5):
            words[place] = f" {self._english.draw(self._rng, 1)[0]} "
        return "".join(words) + "。"

    def _identifier(self) -> str:
        words = [word for word in self._english.draw(self._rng, 3) if re.fullmatch("[a-z]+", word)]
        return self._rng.choice(("_", ".", "-")).join(words)


def _common_characters() -> list[str]:
    """The 3,755 characters of the first level of GB 2312, which cover nearly all of written Chinese."""
    rows = (bytes((0xB0 + row, 0xA1 + cell)) for row in range(40) for cell in range(94))
    return [character for code in rows if (character := code.decode("gb2312", "ignore"))]
