"""A memory of two languages, and questions about it by kind; nobody and nothing in it exists."""

import json
from collections.abc import Iterator
from datetime import date, timedelta

import msgspec

from tests.training import pairs


class Fact(msgspec.Struct, frozen=True):
    """A state that changed once, as a note has it in one language, and what is asked about it."""

    line: str  # with {} for what is so
    old: str
    new: str
    same: str  # asked in the language of the line, in other words
    other: str  # asked in the other one


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question; without evidence nothing answers it."""

    kind: str
    text: str
    evidence: str = ""  # stands in the snippet that answers
    not_first: str = ""  # must not be read before the evidence
    once: str = ""  # must be read in one hit at most
    now: str | None = None
    tags: tuple[str, ...] = ()
    source: str = "memory"


def _fact(line: str, old: str, new: str, same: str, other: str) -> Fact:
    return Fact(line, old, new, same, other)


FACTS = (
    _fact("The boiler is looked after by {}, who comes every autumn.", "Aldo Brenn", "Mira Costan", "Who services our heating?", "谁来保养我们的暖气？"),
    _fact("小提琴课在二楼琴房，时间是{}。", "周二下午四点", "周四下午五点", "孩子几点去学拉琴？", "When does the violin lesson take place?"),
    _fact("Our flour comes from {}, two sacks a month.", "the Harrow mill", "Tessler Grain", "Where do we buy what we bake with?", "我们烤面包的面粉是哪里进的？"),
    _fact("车库的密码锁换成了{}牌的。", "铁卫", "安橡", "停车那间屋子的门锁是什么牌子？", "Which brand is the lock of the garage?"),
    _fact("The allotment is plot number {} behind the chapel.", "14", "31", "Which piece of land do we grow vegetables on?", "我们种菜的那块地是几号？"),
    _fact("给外公买药的药店是{}，可以送货。", "仁和堂", "百草轩", "老人吃的药在哪家店配？", "Which pharmacy delivers Grandpa's medicine?"),
    _fact("The choir rehearses in {}, with tea afterwards.", "the old fire station", "Saint Oda's hall", "Where do the singers practise?", "合唱团在哪里排练？"),
    _fact("扫地机器人每天{}开始打扫客厅。", "早上九点", "下午两点", "家里自动清洁地板是什么时候？", "At what time does the robot vacuum clean the living room?"),
    _fact("The bees are treated against mites with {}.", "formic acid", "thymol strips", "What do we give the hives for parasites?", "蜂箱里用什么治螨虫？"),
    _fact("露营用的帐篷是{}色的，四人款。", "橙", "墨绿", "野外过夜时睡的那顶是什么颜色？", "What colour is the tent we camp in?"),
    _fact("Deliveries for the shop are taken in by {} when we are closed.", "the florist", "Mr Quillon upstairs", "Who accepts parcels while nobody is at the store?", "店关门时谁帮忙收快递？"),
    _fact("网站的域名在{}续费，每年一次。", "云帆", "蓝鲸互联", "网址是在哪家公司交年费？", "With which company is the domain registered?"),
    _fact("The ferry to the island leaves from pier {} in summer.", "three", "seven", "Where does the boat to the isle depart?", "去岛上的渡轮从几号码头开？"),
    _fact("女儿的校车司机姓{}，电话贴在冰箱上。", "邱", "欧阳", "谁开车送孩子上学？", "Who drives our daughter's school bus?"),
    _fact("The greenhouse is watered for {} minutes at dawn.", "twelve", "twenty", "How long do the tomatoes under glass get a drink?", "温室每天清晨浇水多久？"),
    _fact("冬天轮胎寄存在{}，换胎也在那儿。", "顺达修理厂", "老罗车行", "雪地胎平时放在哪里？", "Where are the winter tyres stored?"),
    _fact("Noor's allergy is to {}; she carries a pen.", "walnuts", "sesame", "What must Noor not eat?", "努尔对什么过敏？"),
    _fact("书房的打印机墨盒型号是{}。", "墨盒甲六", "墨盒丁九", "印文件用哪种墨？", "Which ink cartridge does the printer in the study take?"),
    _fact("The cellar is rented out to {} from Tuesday to Friday.", "a wine club", "a cabinetmaker", "Who uses the room under the house?", "地下室租给了谁？"),
    _fact("公司年会定在{}，一共六桌。", "望湖楼", "锦鲤饭店", "同事们年底在哪里聚餐？", "Where does the annual company dinner take place?"),
    _fact("The piano is tuned by {} each spring.", "Mrs Haverly", "a man called Ostrow", "Who puts the keyboard instrument in tune?", "钢琴是谁来调音的？"),
    _fact("阳台上的仙人掌每{}浇一次水。", "两周", "四周", "多久给那盆带刺的植物水？", "How often is the cactus on the balcony watered?"),
    _fact("The accounts are kept in {}, backed up on Sundays.", "Ledgerly", "Tallybook", "Which program holds our bookkeeping?", "我们用什么软件记账？"),
    _fact("马场的教练建议骑{}那匹马。", "栗子", "北斗", "去骑术学校该选哪一匹？", "Which horse does the riding instructor recommend?"),
    _fact("The spare wheel pump is kept {}.", "in the shed", "under the back seat", "Where is the thing that inflates tyres?", "打气筒放在哪里？"),
)  # fmt: skip

_THINGS = (
    ("oak boards", "橡木板"), ("brass hinges", "黄铜合页"), ("linen thread", "亚麻线"), ("lamp oil", "灯油"), ("copper wire", "铜线"),
    ("wool felt", "羊毛毡"), ("glass jars", "玻璃罐"), ("candle wax", "蜡"), ("roof slates", "石板瓦"), ("garden hose", "水管"),
    ("paper bags", "纸袋"), ("door seals", "门封条"), ("seed potatoes", "种薯"), ("cork stoppers", "软木塞"), ("steel bolts", "钢螺栓"),
    ("chalk paint", "粉笔漆"), ("tea towels", "茶巾"), ("bicycle chains", "自行车链条"), ("clay pots", "陶盆"), ("yeast", "酵母"),
    ("violin strings", "琴弦"), ("goat feed", "羊饲料"), ("printer labels", "标签纸"), ("window putty", "油灰"), ("rubber boots", "胶靴"),
)  # fmt: skip
_SUPPLIERS = ("ZK", "QV", "HB", "NT", "RX")
_DEEDS = (
    ("Walked to the quarry with {}, came back soaked.", "和{}去采石场散步，回来全湿了。", "Iben"),
    ("{} repaired the gate and painted it.", "{}修好了大门，还刷了漆。", "Tomasz"),
    ("Lunch with {} about the exhibition.", "和{}吃午饭，谈了展览的事。", "Yuna"),
    ("{} brought twelve jars of plum jam.", "{}送来十二罐李子酱。", "Severin"),
    ("Called {} because of the broken skylight.", "因为天窗坏了给{}打了电话。", "Farida"),
)
_UNKNOWN = ("Ottoline Brask", "Dagfinn", "Perpetua Lindqvist", "Zubair Okonedo", "Calista Wren")
_ASKED_OF_UNKNOWN = (
    "What is {}'s profession?", "When did {} move to the coast?", "Which instrument does {} play?", "How many goats does {} keep?",
    "Why was {} late for the wedding?", "{} 住在哪个城市？", "{} 的狗叫什么名字？", "{} 什么时候退休？", "我们欠 {} 多少钱？", "{} 喜欢喝什么茶？",
)  # fmt: skip
# Lines of both languages, with what is asked in the one and in the other.
_MIXED = (
    ("周会改到 Thursday 10:30，Zoom link 在 calendar 里。", "When is the weekly meeting now?", "每周例会现在几点？"),
    ("给 landlord 打过电话了，boiler 的维修费他出。", "Who pays for repairing the heating?", "暖气的修理费由谁承担？"),
    ("新 laptop 的 charger 是 65W 的，别用旧的那个。", "Which power supply does the new computer take?", "新电脑要用多少瓦的充电头？"),
    ("Ming 的 flight 延误，改成 KL 880，周六早上到 Terminal 2。", "When does Ming land?", "小明坐哪一班飞机？"),
    ("gym membership 下个月 auto renew，要在 20 号前 cancel。", "Until when can we quit the fitness club?", "健身房会员最晚哪天退？"),
    ("birthday cake 订的是 matcha 口味，8 inch，写 Happy 70th。", "Which flavour is the cake?", "生日蛋糕是什么口味的？"),
    ("API 的 rate limit 提到每分钟 900 次，support 那边确认了。", "How many requests a minute may we send?", "接口每分钟最多能调用多少次？"),
    ("piano recital 的 dress code 是深色，孩子要穿 white shirt。", "What are children to wear at the concert?", "钢琴演出孩子该穿什么颜色的上衣？"),
    ("车的 insurance 换成 Allora 了，deductible 三百。", "Which company insures the car?", "汽车保险的免赔额是多少？"),
    ("backup 盘放在 office 的保险柜，password 问 Lena。", "Who knows how to open the safe copy's disk?", "备份的硬盘放在哪儿？"),
    ("kids 的 swimming class 这学期在 pool B，教练姓邹。", "What is the swimming coach called?", "孩子的游泳课在几号池？"),
    ("Wedding 的 photographer 定了 Ilse，deposit 付了五百欧。", "How much was paid in advance for the pictures?", "婚礼请谁来拍照？"),
)  # fmt: skip
# What may and what may not be; asked is which may not.
_DENIED = (
    ("The {} may be washed at sixty degrees.", "The {} may not be washed at sixty degrees.", "What must not be washed hot?", ("curtains", "wool blanket")),
    ("{} eats pork.", "{} eats no pork.", "Who does not eat pork?", ("Uncle Berend", "Cousin Samira")),
    ("The {} door is locked at night.", "The {} door is never locked at night.", "Which door stays open at night?", ("north", "garden")),
    ("{} has signed the lease.", "{} has not signed the lease yet.", "Whose signature is missing on the lease?", ("Radka", "Emmerich")),
    ("The {} works with the old firmware.", "The {} doesn't work with the old firmware.", "Which device needs newer firmware?", ("kitchen speaker", "hall speaker")),
    ("{}可以喝牛奶。", "{}不能喝牛奶。", "谁不能喝牛奶？", ("大表哥", "小侄女")),
    ("{}那条路雨天能走。", "{}那条路雨天不能走。", "下雨时哪条路走不通？", ("河边", "后山")),
    ("{}的押金退了。", "{}的押金没退。", "哪里的押金还没有退？", ("老房子", "仓库")),
    ("{}会游泳。", "{}不会游泳。", "哪个孩子不会水？", ("阿笙", "阿筝")),
    ("{}的票可以改签。", "{}的票不可以改签。", "哪张票改不了时间？", ("去程", "回程")),
)  # fmt: skip
_SHORT = (
    ("wifi", "tulip-ferry-9", "What is the Wi-Fi called?"), ("taxi", "Taxi: Brogan 5512", "Which taxi do we call?"),
    ("shoe-size", "Noor 38, Iben 44", "Which shoe size has Iben?"), ("gate", "gate code 4471#", "How does one get through the gate?"),
    ("血型", "外婆 AB 型", "外婆是什么血型？"), ("快递柜", "取件码尾号 6620", "快递柜的取件码尾号是多少？"),
    ("水表", "水表在楼梯下", "水表在哪里？"), ("vet", "Vet: Dr Amsel, Mondays", "When does the vet see patients?"),
)  # fmt: skip
_FIRST = date(2026, 1, 5)  # a Monday
_SESSION = "sessions/recall.jsonl"


def _is_chinese(text: str) -> bool:
    return any("\u4e00" <= one <= "\u9fff" for one in text)


def _code(number: int) -> str:
    return f"{_SUPPLIERS[number % 5]}-{4107 + 37 * number}-{'ABCDEFG'[number % 7]}"


def _ordered(number: int) -> str:
    english, chinese = _THINGS[number % 25]
    if number % 2:
        return f"订单 {_code(number)}：{chinese}，{3 + number} 件，已付款。"
    return f"Order {_code(number)}: {english}, {3 + number} pieces, paid."


def _deed(number: int) -> str:
    english, chinese, who = _DEEDS[number % 5]
    return f"{(chinese if number % 2 else english).format(who)} ({number + 1})"


def _day(number: int) -> date:
    return _FIRST + timedelta(days=number)


def notes() -> dict[str, str]:
    """The notes, by path."""
    found = {"MEMORY.md": "# Memory\n\n- A household with a bakery; English and 中文 as it comes.\n"}
    for number, fact in enumerate(FACTS):
        topic = f"{number:02}"
        found[f"memory/2025-10-{1 + number:02}.md"] = f"# Notes\n\n- {fact.line.format(fact.old)}\n"
        found[f"memory/2025-12-{1 + number:02}.md"] = f"# Notes\n\n- {fact.line.format(fact.new)}\n"
        if number < 20:
            # A copy with other marks, of a month later.
            found[f"copies/copy-{topic}.md"] = (
                f"---\ndate: 2026-02-{1 + number:02}\n---\n# Notes\n\n* {fact.line.format(fact.new)}\n"
            )
        place = "attic" if number % 2 else "office"
        found[f"memory/lists/{place}-{topic}.md"] = (
            f"---\ntags: [{place}]\n---\n# Inventory\n\n- {_THINGS[number][0]} / {_THINGS[number][1]}: shelf {number + 2}, checked twice\n"
        )
        other = "office" if number % 2 else "attic"
        found[f"memory/lists/{other}-{topic}-b.md"] = (
            f"---\ntags: [{other}]\n---\n# Inventory\n\n- {_THINGS[number][0]} / {_THINGS[number][1]}: box {number + 40}, checked once\n"
        )
    for week in range(10):
        lines = "\n".join(f"- {_ordered(number)}" for number in range(5 * week, 5 * week + 5))
        found[f"memory/orders-{week}.md"] = f"# Orders\n\n{lines}\n"
    for number in range(50):
        found[f"memory/{_day(number)}.md"] = f"- {_deed(number)}\n"
    for number, (line, _, _) in enumerate(_MIXED):
        found[f"memory/mixed-{number:02}.md"] = f"# {'日常' if number % 2 else 'Daily'}\n\n- {line}\n"
    for number, (may, may_not, _, (one, other)) in enumerate(_DENIED):
        found[f"memory/rules-{number:02}.md"] = f"- {may.format(one)}\n\n## b\n\n- {may_not.format(other)}\n"
    for name, line, _ in _SHORT:
        found[f"memory/{name}.md"] = f"{line}\n"
    found["memory/counted.md"] = "# Counted\n\n" + "".join(f"{_counted(number)}\n" for number in range(3000))
    # One long note, whose sections repeat nothing that is asked for.
    sections = (
        f"## Recipe {number}\n\nKnead for {number + 3} minutes, rest, fold {number % 4 + 1} times, bake at {180 + number} degrees.\n"
        for number in range(200)
    )
    found["memory/recipes.md"] = "# Recipes\n\n" + "\n".join(sections)
    return found


def _counted(number: int) -> str:
    english, chinese = _THINGS[number % 25]
    if number % 2:
        return f"- 第{number + 1}次盘点：{chinese}剩{7 * number % 90 + 3}。"
    return f"- Count {number + 1}: {7 * number % 90 + 3} {english} left."


def distractions(count: int) -> dict[str, str]:
    """Notes of the same kind, two to a file, that answer no question: those that the bundled model is trained on.

    Where more are wanted than there are, they come again with other numbers.
    """
    trained, kept_back = pairs.read()
    texts = [text for pair in (*trained, *kept_back) for text in (pair.note, pair.near)]
    found: dict[str, str] = {}
    for number in range(count):
        turn, at = divmod(number, len(texts))
        text = texts[at].translate({ord(str(n)): str((n + turn) % 10) for n in range(10)})
        path = f"memory/others/{number // 200:03}/{number // 2:05}.md"
        found[path] = f"{found[path]}\n## b\n\n{text}\n" if path in found else f"## a\n\n{text}\n"
    return found


def _told(number: int) -> str:
    english, chinese = _THINGS[number]
    if number % 2:
        return f"我们决定{chinese}以后都放在第{number + 3}号仓库。"
    return f"We decided that the {english} go to warehouse {number + 3} from now on."


def transcript() -> str:
    """A session: one line a turn."""
    turns = []
    for number in range(25):
        turns += [
            {"role": "user", "content": f"Note {number}: {_told(number)}"},
            {"role": "assistant", "content": "Noted, I will remember it."},
        ]
    return "".join(f"{json.dumps(turn, ensure_ascii=False)}\n" for turn in turns)


def questions() -> Iterator[Question]:
    """All questions, kind by kind."""
    for fact in FACTS:
        now, was = fact.line.format(fact.new), fact.line.format(fact.old)
        yield Question(kind="other words", text=fact.same, evidence=now)
        yield Question(kind="other language", text=fact.other, evidence=now)
        present = "现在{}" if _is_chinese(fact.same) else "{} (as of now)"
        yield Question(kind="updates", text=present.format(fact.same), evidence=now, not_first=was)
        present = "现在{}" if _is_chinese(fact.other) else "{} (as of now)"
        yield Question(kind="updates", text=present.format(fact.other), evidence=now, not_first=was)
    for fact in FACTS[:20]:
        said = fact.line.format(fact.new)
        yield Question(kind="copies", text=said, evidence=said, once=said)
    for number in range(50):
        yield Question(kind="identifiers", text=_code(number), evidence=_ordered(number))
        is_english = number % 2 == 0
        text = f"What was in order {_code(number)}?" if is_english else f"订单 {_code(number)} 里是什么？"
        yield Question(kind="identifiers", text=text, evidence=_ordered(number))
        named = _day(number)
        on = (
            f"What happened on {named:%-d %B %Y}?"
            if is_english
            else f"{named.year}年{named.month}月{named.day}日做了什么？"
        )
        yield Question(kind="time", text=on, evidence=_deed(number))
        ago = "What did we do three days ago?" if is_english else "三天前我们做了什么？"
        yield Question(kind="time", text=ago, evidence=_deed(number), now=str(named + timedelta(days=3)))
        yield Question(
            kind="unanswerable", text=_ASKED_OF_UNKNOWN[number % 10].format(_UNKNOWN[number // 10])
        )
    for line, english, chinese in _MIXED:
        yield Question(kind="mixed lines", text=english, evidence=line)
        yield Question(kind="mixed lines", text=chinese, evidence=line)
    for may, may_not, text, (one, other) in _DENIED:
        yield Question(kind="negations", text=text, evidence=may_not.format(other), not_first=may.format(one))
    for _, line, text in _SHORT:
        yield Question(kind="short notes", text=text, evidence=line)
    for number in range(100, 2800, 240):
        yield Question(
            kind="a long note", text=f"What was left at count {number + 1}?", evidence=_counted(number)
        )
        yield Question(
            kind="a long note", text=f"第{number + 122}次盘点还剩多少？", evidence=_counted(number + 121)
        )
    for number in range(25):
        english, chinese = _THINGS[number]
        for tag, evidence in (
            ("attic", "box" if number % 2 == 0 else "shelf"),
            ("office", "shelf" if number % 2 == 0 else "box"),
        ):
            count = number + (40 if evidence == "box" else 2)
            text = f"Where are the {english}?" if tag == "attic" else f"{chinese}在哪里？"
            yield Question(kind="tags", text=text, evidence=f"{chinese}: {evidence} {count},", tags=(tag,))
        text = f"Where do the {english} go?" if number % 2 == 0 else f"{chinese}放在哪里？"
        yield Question(kind="sessions", text=text, evidence=_told(number), source="sessions")
