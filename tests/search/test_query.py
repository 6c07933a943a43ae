import re
from datetime import datetime
from itertools import islice

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.search.query import left_out, parse
from memd.search.terms import held
from memd.store import keywords
from memd.text.tokens import fts_text, tokens
from tests.awkward import markdown
from tests.awkward.characters import characters
from tests.bounds import shipped
from tests.table import table
from tests.work import calls, peak_bytes


def found(match: str, *texts: str) -> set[int]:
    """Which of the texts a MATCH expression finds in a real index."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE keywords USING fts5(text, tokenize = 'porter ascii')")
    connection.executemany(
        "INSERT INTO keywords (rowid, text) VALUES (?, ?)",
        [(n, fts_text(text)) for n, text in enumerate(texts)],
    )
    return {
        rowid
        for (rowid,) in connection.execute("SELECT rowid FROM keywords WHERE keywords MATCH ?", (match,))
    }


@table(
    ("question", "words", "phrases"),
    [
        ("Which database did we pick?", ("database", "pick"), ()),
        ("What is Ann's cat called?", ("ann", "cat", "called"), ()),
        ("I don't", ("don",), ()),
        ("数据库迁移", ("数据", "据库", "库迁", "迁移"), ()),
        ("用API做", ("用", "api", "做"), ()),
        ("猫", ("猫",), ()),
        ("2月9日开会", ("2 月", "9 日", "日开", "开会"), ()),
        ("第3步", ("第", "3 步"), ()),
        ("第3", ("第", "3"), ()),
        ("memorySearch.query.hybrid", ("memorysearch", "query", "hybrid"), ("memorysearch query hybrid",)),
        ("on 2026-02-09", ("2026",), ("2026 02 09",)),
        ("v2026.1.10 ok", ("v2026", "ok"), ("v2026 1 10",)),
        (
            "user@host.example /etc/hosts",
            ("user", "host", "example", "etc", "hosts"),
            ("user host example", "etc hosts"),
        ),
        ("snake_case_name", ("snake", "case", "name"), ("snake case name",)),
        ('"exact words here" matter', ("exact", "words", "matter"), ("exact words here",)),
        ("“决定迁移”的原因", ("决定", "定迁", "迁移", "的原", "原因"), ("决定迁移",)),
        ("ＡＰＩ", ("api",), ()),
        ("what is it", ("what", "is", "it"), ()),
        ("小满不能吃什么？", ("小满", "满不", "能吃"), ()),
        ("为什么改？", ("改",), ()),
        ("很多大学", ("很多", "多大", "大学"), ()),
        ("下次会议是什么时候", ("下次", "次会", "会议", "议是"), ()),
        ("对象的目的", ("对象", "象的", "的目", "目的"), ()),
        ("为什么", ("为什", "什么"), ()),
        ("API的key", ("api", "key"), ()),
        # One sign, or two digits, is in too many texts.
        ("x-ray 12-345", ("ray", "345"), ("12 345", "x ray")),
        ("“决定”的原因", ("决定", "的原", "原因"), ()),  # a quoted pair is the pair
        ("“猫”", ("猫",), ()),
        ("the the cat cat", ("cat",), ()),
    ],
)
def test_a_question_becomes_terms(question: str, words: tuple[str, ...], phrases: tuple[str, ...]) -> None:
    """Words, pairs of CJK characters, and phrases of names and quotations; stop words only where there is nothing else."""
    asked = parse(question)
    assert asked.words == words
    assert tuple(sorted(asked.phrases)) == tuple(sorted(phrases))


@pytest.mark.parametrize(
    ("question", "text", "share"),
    [
        ("数据库迁移", "数据库", 0.6),  # three of five characters, not two of four pairs
        ("小满对哪种食物过敏？", "小满对花生过敏", 0.6),  # 小 满 食 物 敏
        ("数据的数据", "数据", 1.0),
        ("API 命令", "命令", 0.5),
        ("猫和狗", "狗", 0.0),  # a single character is no pair
        ("为什么", "什么", 1.0),
        ("database backup nightly", "backup", 1 / 3),
        ("?", "什么", 0.0),
    ],
)
def test_a_share_of_the_question_is_held(question: str, text: str, share: float) -> None:
    """Characters count once whatever pairs they are in, words twice as much, grammar not at all."""
    asked = parse(question)
    assert asked.share(sorted(held([text], asked.terms))) == pytest.approx(share)


@pytest.mark.parametrize("question", ["", "   ", "?!", "。、？", "---", '""', "\0", "_ . / :", "\u200d"])
def test_a_question_without_a_word_is_empty(question: str) -> None:
    """There is nothing to look for and nothing to embed."""
    asked = parse(question)
    assert asked.is_empty
    assert asked.match is None
    assert asked.embed_text == ""


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which painting did she paint?", "They painted a lake."),
        ("数据库", "用户决定把数据库迁移"),
        ("迁移", "把数据库迁移到新机器"),
        ("GitHub备份脚本", "昨天GitHub备份失败"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("café", "the cafe round the corner"),
        ("memory_search.query", "set memory_search.query to 3"),
        ("データベース", "新しいデータベース"),
        ("회의 일정", "다음주 회의 일정은 화요일"),
        ("NOT AND OR NEAR", "near the river"),
        ("what about ticket PROJ-1234?", "PROJ-1234 is closed"),
        ("猫", "家里的猫叫团子"),
        ("2月9日", "2026年2月9日的笔记"),
        ("Где лежит ключ", "ключ лежит под ковриком"),
    ],
)
def test_the_expression_finds_what_is_meant(question: str, text: str) -> None:
    """A real index of keyword text gives the note, and not one about something else."""
    match = parse(question).match
    assert match is not None
    assert found(match, text, "something else entirely 其他") == {0}


@table(
    "question",
    [
        '"', '""" OR "', 'a" OR b', "text:foo", "{a b}: c", "^start", "col* pre*", "NEAR(a b, 2)", "a AND NOT b", "-a +b",
        "(", ")))", "'; DROP TABLE x; --", "a\0b", "\\", "\ud800 lone", "NOT",
    ],
)  # fmt: skip
def test_operators_are_plain_text(question: str) -> None:
    """No sign of the expression language means anything in a question."""
    match = parse(question).match
    if match is not None:
        found(match, "text")


@given(
    markdown.TEXTS
    | st.text(alphabet=st.characters())
    | st.text(alphabet="\"'()*:^-+{}ab数据 .\n_/@", max_size=60)
)
def test_no_question_breaks_the_index(question: str) -> None:
    """Whatever is asked, the expression is a valid one."""
    match = parse(question).match
    if match is not None:
        found(match, "text 数据")


@given(st.text(alphabet="ab数据库 c", min_size=1, max_size=40).filter(lambda text: bool(text.strip())))
def test_a_text_answers_itself(text: str) -> None:
    """Asked for in its own words, a text is found."""
    match = parse(text).match
    assert match is not None
    assert found(match, text) == {0}


MOST_WORDS, MOST_PHRASES = shipped("memd.search.query._MAX_WORDS"), shipped("memd.search.query._MAX_PHRASES")
MOST_PHRASE_WORDS = shipped("memd.search.query._MAX_PHRASE_WORDS")
MOST_READ, MOST_EMBEDDED = (
    shipped("memd.search.query._MAX_READ_CHARS"),
    shipped("memd.search.query._MAX_EMBED_CHARS"),
)


def test_a_question_is_read_up_to_its_bounds() -> None:
    """As many words and names as there may be, and no more; what is read, and what is embedded, end at a character."""
    words = parse(" ".join(f"word{n:04}" for n in range(MOST_WORDS + 1)))
    assert len(words.words) == MOST_WORDS
    names = parse(" ".join(f"a{n}.b{n}" for n in range(MOST_PHRASES + 1)))
    assert len(names.phrases) == MOST_PHRASES
    blanks = " " * (MOST_READ - len("walrus"))
    assert parse(f"{blanks}walrus").words == ("walrus",)
    assert parse(f"{blanks} walrus").words == ("walru",)
    assert len(parse("x" * (MOST_EMBEDDED + 1)).embed_text) == MOST_EMBEDDED


@pytest.mark.parametrize(
    "question", ["word " * 20_000, "字" * 100_000, "a-" * 50_000, '"' * 100_000, "名" + "x1 " * 30_000]
)
def test_a_huge_question_is_bounded(question: str) -> None:
    """100 kB make a bounded number of terms and a bounded text to embed."""
    asked = parse(question)
    assert len(asked.words) <= MOST_WORDS
    assert len(asked.phrases) <= MOST_PHRASES
    assert len(asked.embed_text) <= MOST_EMBEDDED
    if asked.match is not None:
        assert len(asked.match) < 50_000
        found(asked.match, "text")


def test_of_many_words_the_long_ones_are_kept() -> None:
    """The longest words, mostly the rarest, are looked for, in the order of the question."""
    asked = parse(" ".join(f"w{n}" for n in range(100)) + " extraordinary circumstances")
    assert asked.words[-2:] == ("extraordinary", "circumstances")
    assert len(asked.words) == MOST_WORDS


def test_what_is_embedded_is_the_question() -> None:
    """The question as it was put, without blanks at its ends or runs of them inside."""
    assert parse("  Which\n database?  ").embed_text == "Which database?"
    assert re.fullmatch(r"(long )+long", parse("long " * 1000).embed_text.strip())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("which database did we pick?", ("which", "did", "we")),
        ("数据库选的是哪个", ("哪个", "的是")),
        ("什么时候去北京?", ("什么时候",)),
        ("what is the", ()),
        ("为什么", ()),
        ("", ()),
        ("retry.max_attempts", ()),
    ],
)
def test_what_is_not_looked_for_is_known(question: str, expected: tuple[str, ...]) -> None:
    """Words that ask, and grammar; a question of such words alone asks for them."""
    assert left_out(question) == expected


ODD = st.text(
    st.sampled_from(
        "\u0301\u200d\ufe0f\u202e\0\ud800\udfffﷺ①½ﬁ’“」『\u3099が한글ᄀ🙂👨ßİſ\u0345²_-'\"*:^(){}[] "
    )
    | st.characters(),
    max_size=40,
)


@given(
    st.lists(
        ODD | st.sampled_from(["AND", "OR", "NOT", "NEAR", "text:", "数据库", "Ann's", "2月9日"]), max_size=12
    )
)
def test_a_question_of_odd_characters_is_asked_and_read(words: list[str]) -> None:
    """Marks, halves of characters and operators of the index are looked for or left out, and bounded."""
    question = " ".join(words)
    asked = parse(question)
    assert parse(question) == asked
    assert len(asked.terms) <= 64
    assert len(asked.parts) == len(asked.words)
    assert len(asked.embed_text) <= 2000
    assert 0 <= asked.share(range(len(asked.terms))) <= 1
    assert held([question], asked.terms) <= set(range(len(asked.terms)))
    if asked.match is not None:
        found(asked.match, question.encode("utf-8", "replace").decode(), "数据 text")


@pytest.mark.parametrize(
    "part", ["word ", "字", "a-", '"', "名x1 ", "\u0301", "é", "ﷺ", "a.b:c/", "👨\u200d", "2月"]
)
def test_work_is_bounded_by_what_is_read(part: str) -> None:
    """Twice as long a question is twice the work at most, and a very long one no more than what is read of it."""
    size = 4000 // len(part)
    work = calls(lambda: parse(part * size))
    assert calls(lambda: parse(part * 2 * size)) < 2.3 * work + 500
    longest = calls(lambda: parse(part * (20_000 // len(part) + 1)))
    assert calls(lambda: parse(part * 200_000)) < 1.1 * longest + 500
    assert peak_bytes(lambda: parse(part * 2 * size)) < 400 * len(part) * 2 * size + 100_000


@pytest.mark.long
def test_sqlite_divides_every_character_as_places_are_told() -> None:
    """FTS5 makes the tokens of a text that memd.text.tokens tells, whatever version of Unicode it knows."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE divided USING fts5(text, tokenize = 'ascii')")
    connection.execute("CREATE VIRTUAL TABLE instances USING fts5vocab('divided', 'instance')")
    written = [f"{ch} kettle{ch}walrus" for ch in characters()]
    connection.executemany(
        "INSERT INTO divided (rowid, text) VALUES (?, ?)", enumerate(map(fts_text, written))
    )
    divided: list[dict[int, str]] = [{} for _ in written]
    for term, document, offset in connection.execute("SELECT term, doc, offset FROM instances"):
        divided[document][offset] = term
    for text, found in zip(written, divided, strict=True):
        assert [found[at] for at in sorted(found)] == [token for token, _, _ in tokens(text)], text


@pytest.mark.long
def test_every_character_is_found_by_the_string_that_holds_it() -> None:
    """Alone and inside a word: what a question asks of FTS5 is in the text that it was copied from."""
    connection = apsw.Connection(":memory:")
    keywords.make(connection)
    asked: list[tuple[str, int, str]] = []
    for ch in islice(characters(), None, None, 11):
        for text in (ch, f"kettle{ch}walrus"):
            match = parse(text).match
            assert match is not None or not list(tokens(text)) or ch.isascii(), text
            if match is not None:
                asked.append((match, len(asked) + 1, text))
    connection.executemany(
        "INSERT INTO keywords (rowid, text, context) VALUES (?, ?, '')",
        [(rowid, fts_text(text)) for _, rowid, text in asked],
    )
    found = "SELECT 1 FROM keywords WHERE keywords MATCH ? AND rowid = ?"
    assert [
        text for match, rowid, text in asked if not connection.execute(found, (match, rowid)).fetchall()
    ] == []


@pytest.mark.rows(20)
@pytest.mark.parametrize("joint", [*"._-/:@'’", " ", '" "', "」「", "𝟏.", "ﷺ-"])
@pytest.mark.parametrize("word", ["a", "的", "walrus", "1", "數据", "a.b c"])
def test_no_question_makes_a_long_phrase(word: str, joint: str) -> None:
    """Whatever joins 20,000 characters: a phrase has a dozen words, and there are a few dozen terms."""
    for text in (f"{word}{joint}" * 10_000, f'"{f"{word}{joint}" * 60}' * 50, f"「{word * 90}」"):
        match = parse(text).match
        phrases = [] if match is None else re.findall(r'"([^"]*)"', match)
        assert len(phrases) <= MOST_WORDS + MOST_PHRASES
        assert max((len(phrase.split()) for phrase in phrases), default=0) <= MOST_PHRASE_WORDS


def test_a_long_name_is_found_by_its_beginning() -> None:
    """As a phrase, before others that hold its words apart."""
    name = ".".join(f"part{n}" for n in range(30))
    apart = " ".join(f"part{n}" for n in reversed(range(30)))
    asked = parse(name)
    assert asked.phrases == (" ".join(f"part{n}" for n in range(MOST_PHRASE_WORDS)),)
    assert found(f'"{asked.phrases[0]}"', name, apart) == {0}


WEDNESDAY = datetime(2026, 2, 11, 15, 30)  # noqa: DTZ001 - as clocks on the wall show it


MONDAY = datetime(2026, 2, 9, 12)  # noqa: DTZ001 - as clocks on the wall show it


@table(
    "text",
    ["What did we do three days ago?", "what happened last Tuesday", "What happened today?", "anything new yesterday?",
     "Tell me about the events of last week", "Any news from 5 January 2026?", "Summarize last week", "recap of yesterday",
     "Yesterday's notes", "What did you do yesterday?", "Who was there last Friday?", "what about last month?", "and yesterday?",
     "last Tuesday", "everything from last week", "Tell me everything that happened on 3 January 2026", "What's new today?",
     "昨天", "昨天呢？", "上周发生了什么事情？", "2026年1月6日做了什么？", "今天做了什么", "上周都忙了些啥", "总结一下上個月的筆記",
     "昨天发生了哪些事", "前天的记录", "上周的笔记", "三天前我们做了什么？", "昨天有什么新的吗", "你昨天做了什么？", "昨天谁在", "上个月干了什么"],
)  # fmt: skip
def test_a_question_may_ask_for_whatever_was_at_a_time(text: str) -> None:
    """It asks what happened, what was done or written, or names the time and nothing else."""
    asked = parse(text, MONDAY)
    assert asked.asks_of_time_alone
    assert not asked.is_small_talk


@table(
    "text",
    ["What did we decide last Tuesday?", "what did Iben do yesterday", "Where did Iben go in January 2026?", "what happened", "",
     "What was planned for last week?", "How did yesterday go?", "How was last week?", "How did we do last month?",
     "Did you do it today?", "I made notes yesterday", "I will tell you everything tomorrow", "This is what happened today",
     "will do it tomorrow", "Not today.", "what day is it today", "we did all of this last week", "Is it done today?",
     "昨天谁来修门", "上周结婚的是谁", "上周决定了什么？", "昨天计划了什么", "今天怎么了", "昨天怎么样", "我昨天过得怎么样", "今天没什么",
     "今天没有什么事", "今天什么都没做", "我今天做了", "今天不做了", "今天有事", "明天再做吧", "今天忙吗"],
)  # fmt: skip
def test_a_question_of_a_time_may_ask_for_more_than_the_time(text: str) -> None:
    """A word that tells more asks for that; a judgement or a statement does not ask what happened. All may be in a note."""
    asked = parse(text, MONDAY)
    assert not asked.asks_of_time_alone
    assert not asked.is_small_talk or not text


@table(
    "text",
    ["How are things today?", "How's your day today?", "what's up today", "How are you doing today?", "How’s it going today?",
     "how is everything today", "Hello, how are you this morning?", "what are you up to today?", "How are you feeling today?",
     "see you tomorrow", "what's the weather like today", "今天怎么样?", "今天过得好吗", "今天天气怎么样?", "你今天过得怎么样？",
     "今天还好吗", "早上好，今天怎么样？", "你今天在干嘛", "昨天过得如何", "你昨晚睡得好吗", "今天心情如何", "明天见"],
)  # fmt: skip
def test_small_talk_of_a_day_does_not_ask_for_the_day(text: str) -> None:
    """Else each greeting would find all notes of today."""
    asked = parse(text, MONDAY)
    assert asked.times
    assert asked.is_small_talk
    assert not asked.asks_of_time_alone


def test_a_question_asks_for_the_date_of_a_day_that_it_names() -> None:
    """Besides its words, by which notes are found that say "yesterday" themselves; what is embedded stays as it is."""
    asked = parse("Who called Yesterday?", WEDNESDAY)
    assert asked.phrases == ("2026 02 10",)
    assert "yesterday" in asked.words
    assert asked.embed_text == "Who called Yesterday?"
    assert parse("Who called Yesterday?").phrases == ()
    assert parse("昨天", WEDNESDAY).phrases == ("2026 02 10",)


def test_of_times_that_contain_each_other_the_narrowest_is_asked_for() -> None:
    """A longer time than a day is no term: no note has all its days."""
    asked = parse("Tuesday's rehearsal this week, and the one of last month", WEDNESDAY)
    assert asked.phrases == ("2026 02 10",)
    assert [(str(one.first.date()), str(one.last.date())) for one in asked.times] == [
        ("2026-02-10", "2026-02-10"),
        ("2026-01-01", "2026-01-31"),
    ]
    assert parse("what of last week", WEDNESDAY).times
    assert parse("what of last week").times == ()


@table(
    ("question", "tense"),
    [
        ("who mows the meadow now?", "present"),
        ("which courier do we use these days", "present"),
        ("what is the current fee?", "present"),
        ("which sail did we choose in the end?", "past"),  # of a decision, not of a state
        ("in the end, which sail is it?", "present"),
        ("谁现在管钥匙？", "present"),
        ("目前的價格是多少", "present"),
        ("合同最后由谁签", "present"),
        ("最新的报价", "present"),
        ("who mows the meadow?", None),
        ("钥匙在谁那里？", None),
        ("which nozzle has the red one?", None),
        ("who used to mow the meadow?", "past"),
        ("what was the fee before?", "past"),
        ("why did we choose the lake?", "past"),
        ("what inspired the painting?", "past"),
        ("how many letters has she written?", "past"),
        ("which lakes have they ever been to?", "past"),
        ("what did we pay until now?", "past"),
        ("以前谁管钥匙？", "past"),
        ("當初為什麼選這家", "past"),
        ("他们去过哪些湖？", "past"),
        ("搬家之前住在哪里，现在呢", "past"),
        ("保险什么时候过期？", None),
        ("what is planned in March 2026?", "past"),  # of a time that it names
        ("三月的安排", "past"),
        ("食堂周五现在是什么汤？", "present"),
        ("the snowman", None),
        ("renowned places", None),
        ("", None),
    ],
)
def test_a_question_says_whether_it_asks_for_what_is_or_for_what_was(
    question: str, tense: str | None
) -> None:
    """Whoever asks for what was, or at a time, wants nothing later first."""
    assert parse(question, datetime(2026, 5, 6, 12)).tense == tense  # noqa: DTZ001
