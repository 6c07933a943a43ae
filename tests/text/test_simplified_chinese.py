from memd.text.simplified_chinese import _simpler, simplified
from memd.text.tokens import fts_text, tokens
from tests.table import table


@table(
    ("traditional", "simple"),
    [
        ("數據庫備份", "数据库备份"),
        ("會議記錄", "会议记录"),
        ("頭髮與發票", "头发与发票"),
        ("週末去鹹水灣釣魚", "周末去咸水湾钓鱼"),
        ("電話 0912、地址：臺北", "电话 0912、地址：台北"),
        ("車庫的鑰匙在誰那裡？", "车库的钥匙在谁那里？"),
        ("天氣預報說稅率恆定", "天气预报说税率恒定"),
    ],
)
def test_traditional_and_simplified_text_have_the_same_tokens(traditional: str, simple: str) -> None:
    """At the same positions, so that a snippet shows what is written."""
    assert fts_text(traditional) == fts_text(simple)
    assert list(tokens(traditional)) == list(tokens(simple))


def test_other_characters_stay_as_they_are() -> None:
    for ch in "数据a1é가あ。 ":
        assert simplified(ch) == ch


def test_no_character_is_simplified_twice() -> None:
    """Each is one CJK character of the same plane, and stays what it has become."""
    pairs = _simpler()
    assert len(pairs) > 2_000
    for traditional, simple in ((chr(code), simple) for code, simple in pairs.items()):
        assert len(simple) == 1
        assert all("\u4e00" <= one <= "\u9fff" for one in (traditional, simple))
        assert traditional != simple
        assert simplified(simple) == simple
