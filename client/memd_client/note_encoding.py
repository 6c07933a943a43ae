"""Decodes the bytes of a note: the one place that decides about its encoding.

Notes are UTF-8. Editors on Windows also save UTF-16, with a byte order mark, and, for Chinese users, GBK, which GB18030 includes. Any
bytes are valid in some encoding of one byte, and most are in GB18030, so GB18030 is only believed where it gives common Chinese.
"""

import codecs
from collections.abc import Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

Encoding = Literal["utf-8", "utf-16", "gb18030"]

UTF16_MARKS = MappingProxyType({codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"})
_TESTED_CHARS = 16_384  # of the text that is not UTF-8; more change no decision
# Of a sentence in another encoding less is common, but of a word perhaps all: what was measured is in memd/DECISIONS.md.
_COMMON_SHARE = 0.55
_COMMON_BESIDES = 1


class DecodedNote(msgspec.Struct, frozen=True):
    """The text of a note."""

    text: str  # valid Unicode, without byte order mark; with the NUL characters that it has
    encoding: Encoding  # of the lines that are not UTF-8, if there are any
    is_lossy: bool = False  # bytes had no meaning in the encoding, and are U+FFFD now


def decode_note(raw: bytes) -> DecodedNote:
    """Decode a note, whatever its bytes.

    A byte order mark decides. Otherwise what is valid UTF-8 is UTF-8, also single lines in a file of another encoding, as programs
    append them. If all other lines are valid GB18030 and are Chinese, they are GB18030; else the file is UTF-8 with errors. Neither
    encoding has the byte of a line end within a character, so lines keep their numbers.
    """
    if (marked := UTF16_MARKS.get(raw[:2])) is not None:
        return _lossy(raw[2:], marked, "utf-16")
    is_marked = raw.startswith(codecs.BOM_UTF8)
    body = raw[len(codecs.BOM_UTF8) :] if is_marked else raw
    try:
        return DecodedNote(body.decode(), "utf-8")
    except UnicodeDecodeError:
        chinese = None if is_marked else _gb18030(raw)
    if chinese is not None:
        return DecodedNote(chinese.removeprefix("\ufeff"), "gb18030")
    return DecodedNote(body.decode(errors="replace"), "utf-8", is_lossy=True)


def decode_ends(beginning: bytes, end: bytes) -> tuple[str, str]:
    """Decode the beginning and the end of a note, as decode_note decodes the whole.

    A character that is cut where a piece was taken out between them is left out, but for a digit: it may be the rest of a character
    of four bytes in GB18030.

    Args:
        beginning: The first bytes of the note.
        end: The last bytes of the note, from an even offset in it.
    """
    if (codec := UTF16_MARKS.get(beginning[:2])) is not None:
        return _utf16_ends(beginning[2:], end, codec)
    is_marked = beginning.startswith(codecs.BOM_UTF8)
    body = beginning[len(codecs.BOM_UTF8) :] if is_marked else beginning
    first, last = _without_pending(body, "utf-8"), _without_rest_utf8(end)
    try:
        return first.decode(), last.decode()
    except UnicodeDecodeError:
        chinese = None if is_marked else _gb18030_ends(beginning, end)
    if chinese is not None:
        return chinese
    return first.decode(errors="replace"), last.decode(errors="replace")


def _utf16_ends(beginning: bytes, end: bytes, codec: str) -> tuple[str, str]:
    unit = int.from_bytes(end[:2], "little" if codec == "utf-16-le" else "big")
    if 0xDC00 <= unit <= 0xDFFF:  # the second half of a surrogate pair
        end = end[2:]
    return _without_pending(beginning, codec).decode(codec, "replace"), end.decode(codec, "replace")


def _gb18030_ends(beginning: bytes, end: bytes) -> tuple[str, str] | None:
    """Return both texts of a file with lines in GB18030; None: it has other lines that are not UTF-8."""
    cut = beginning.rpartition(b"\n")[2]
    is_utf8 = _utf8(_without_pending(cut, "utf-8")) is not None
    first = beginning[: len(beginning) - len(cut)] + _without_pending(cut, "utf-8" if is_utf8 else "gb18030")
    cut, newline, after = end.partition(b"\n")
    last = _without_rest(cut) + newline + after
    if (text := _gb18030(first + b"\n" + last)) is None:
        return None
    lines = text.split("\n")
    at = first.count(b"\n") + 1
    return "\n".join(lines[:at]).removeprefix("\ufeff"), "\n".join(lines[at:])


def _without_pending(piece: bytes, codec: str) -> bytes:
    """Return a piece without an incomplete character at its end."""
    decoder = codecs.getincrementaldecoder(codec)("replace")
    decoder.decode(piece)
    return piece[: len(piece) - len(decoder.getstate()[0])]


def _without_rest_utf8(piece: bytes) -> bytes:
    """Return a piece without the rest of a UTF-8 character that began before it."""
    return piece[:3].lstrip(bytes(range(0x80, 0xC0))) + piece[3:]


def _without_rest(line: bytes) -> bytes:
    """Return a line of UTF-8, or of Chinese in GB18030, without the rest of a character that began before it.

    Most bytes may be any of up to four bytes of a character in GB18030. If the first one is taken for another byte than it is, the line is seldom
    valid, and most characters up to the next ASCII one are rare ones.
    """

    def fitness(text: str | None) -> int:
        if text is None:
            return -1
        return sum(letter in _COMMON or _is_punctuation(letter) for letter in text[:_TESTED_CHARS])

    def gb18030(rest: bytes) -> str | None:
        try:
            return rest.decode("gb18030")
        except UnicodeDecodeError:
            return None

    utf8 = _without_rest_utf8(line)
    read = [(utf8, _utf8(utf8)), *((line[at:], gb18030(line[at:])) for at in range(4))]
    return max(read, key=lambda one: fitness(one[1]))[0]


def _lossy(raw: bytes, codec: str, encoding: Encoding) -> DecodedNote:
    try:
        return DecodedNote(raw.decode(codec), encoding)
    except UnicodeDecodeError:
        return DecodedNote(raw.decode(codec, errors="replace"), encoding, is_lossy=True)


def _gb18030(raw: bytes) -> str | None:
    """Return the text of a file with lines in GB18030; None: it has other lines that are not UTF-8."""
    lines = raw.split(b"\n")
    numbers: list[int] = []  # of the lines that are not UTF-8
    size = 0
    read: list[str] = []
    for number, line in enumerate(lines):
        if (text := _utf8(line)) is None:
            numbers.append(number)
            # Most files in other encodings are recognised by their beginning.
            if size < _TESTED_CHARS <= size + len(line) and _chinese(lines, numbers) is None:
                return None
            size += len(line)
        read.append(text or "")
    if (chinese := _chinese(lines, numbers)) is None:
        return None
    for number, text in zip(numbers, chinese, strict=True):
        read[number] = text
    return "\n".join(read)


def _chinese(lines: Sequence[bytes], numbers: Sequence[int]) -> list[str] | None:
    """Return the text of some lines if it is valid and common Chinese in GB18030."""
    try:
        text = b"\n".join([lines[number] for number in numbers]).decode("gb18030")
    except UnicodeDecodeError:
        return None
    return text.split("\n") if _is_chinese(text[:_TESTED_CHARS]) else None


def _utf8(line: bytes) -> str | None:
    """Return the text of a line that is UTF-8, or else None.

    A Chinese character in GB18030 may look like a Cyrillic or Arabic one in UTF-8 (D2 BB is 一 or һ), so a line also needs a
    character of three bytes, if it has any that is not ASCII.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    return text if text.isascii() or max(text) >= "\u0800" else None


def _is_chinese(text: str) -> bool:
    """Return whether enough of a text's characters are common Chinese ones; punctuation counts for nothing."""
    han = [letter for letter in text if letter > "\x7f" and not _is_punctuation(letter)]
    common = sum(letter in _COMMON for letter in han)
    return common >= _COMMON_SHARE * len(han) + _COMMON_BESIDES


def _is_punctuation(letter: str) -> bool:
    return "\u2000" <= letter <= "\u206f" or "\u3000" <= letter <= "\u303f" or "\uff00" <= letter <= "\uffef"


# The most frequent characters of Chinese, 87 of 100 in a text, and their traditional forms; without those whose second byte is a letter
# or sign of ASCII, as it is where a letter with an accent stands before one without.
_COMMON = frozenset(
    "一七万三上下不与专且世业东两严个中丰临为主举久么义之乎乐九也习乡书买乱了争事二于云互五亚些亞交产京亮亲人亿什仅今介仍从他代令以们"
    "件价任份企伊众优会传伤伯似但位低住体佔何余作你使來例供依侧便俄保信修個們倒候值假做停側備傳傷像優儿元兄充先光克免兒党入內全兩八公"
    "六兰共关兴兵其具典养内再写军农冲决况冷准减几出击刀分切划列刘则刚创初判利别到制刺刻前剑剛剧副創劃劇劉劍力办功加务动助劳势動務勝勞"
    "勢包化北区医十千升半华协单卖南博占卫印危即却厂历压原去县参參又及友双反发取受变口古句另只叫召可台史右叶号司吃各合同名后向吗否吧含"
    "听吳吴吸告员呢周味呼命和咱品哈响哥哪唐商啊問善喜喝喫單嗎器嚴四回因团园围固国图國圍土在地场均坐块坚型城域執基堂堅報場境墙增壓士声"
    "处备复夏外多夜够夠大天太夫央失头奇女她好如妇妈始姑姓委威娘媽子字存孙季学孩宁它守安宋完宗官定宜宝实审客宣室宫害家容密富察實寧審寫"
    "寶对导封射将將專對導小少尔尚就尼尽局层居屆届展属層屬山岁岛岸州工左差己已巴市布师希帝带師席帮帶常幫干平年并幹幾广庆序应底府度座庭"
    "康建开异式引弟张張強弹强彈归当录形彩影往征待很律後得從復微徵德心必志忙快念忽怀态怎怕思急性怪总恩息恶情惊惡想意愛感愿慢應懷成我或"
    "战戰戶户房所手才打执扩批找承技把投抗护报担拉招括拿持指按挥换据授掌排採探接控推提擊擔據支收改攻放政故效敌救敗教敢散数整敵數文斗料"
    "断斯新斷方於施旁旅族无既日旧早时昌明易星春是显晚普景暗曲更書曾最會月有服望朝期木未本术朱机杀杂权李材村条来杨松板极构林果枪架某查"
    "标树校样核根格案桥检植楊楚楼構槍樂樓標模樣樹橋權次欢欧止正此步武死段殺殿母每毒比毕毛毫民气氣水永求汉江沉沙没河油治沿法波注泽洋洞"
    "洪洲活派流测济海消深清渐温港游湖湾源準溫满演澤激濟灣火灵炮点烈热然照熟熱爭爱爲父爷爺爾牆片版牌牙牛物特状狀独献獨率玉王环现班球理"
    "甚生用田由甲电男画界留畢略畫異當病痛登白百的皇皮益监盘盛目直相省看真眼着督知短石矿研破础确示礼社祖神票禁福离种科秘积称移程稳穩究"
    "空穿突立站竟章端笑笔第等筑答策简算管節範簡米类精系級素索紧細經線編練總織红约级纪纳线练组细织终经结给绝统继续维编网罗罪置美群習老"
    "考者而职联聞聯聲職聽肉股育背胜胡能脑脚脸臉臣自至致航般船良色艺节花苏若苦英范茶荆草药获菜营落著蒙藏藝藥處號虽血行街衣补表被装襄西"
    "要見規視见观规视觉角解言計訓記試詩話該談請論警變讓计认让训议记讲许论设证评识诉词试诗话该语说请读谁调谈谷象負財貨責賽负财责败货质"
    "贵费资赛走赶起超越足跟路身車軍軟輪輯輸轄车转轮软轻载较辑输辖边达过迎运近还这进远连述追退送适选逐通速造遇道遗還邊那邦部都鄂配酒采"
    "里重量金錄鎮钟钱铁银销错镇长门问间闻队防阳阵阶阿附际陆陈降限院陣除险陳陵陸陽隊随难雄集雨雲雷電需露青静非靠面革音響頂項順須願類顧"
    "顶项顺须顾顿预领题额风飞食飯饭馆首香驗马验骨高鱼鲜黄黑齐龍龙"
)
