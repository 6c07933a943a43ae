"""The memory of a small library and its reading café, mostly in two languages, with questions by kind; nobody in it exists."""

import msgspec

NOTES = {
    "memory/2026-03-02.md": """# 2026-03-02

## Building
- The lift is out of order again, the technician found a worn cable and comes back on Thursday.
- Ordered two trolleys for returned books from Lindqvist, order LQ-40871, delivery in three weeks.
- 阅览室的暖气太热，读者把窗户打开了，跟物业说了要换温控阀。

## Café
- New supplier of oat milk, 1.90 a litre instead of 2.30.
- 咖啡机漏水，先用毛巾垫着，星期三请人来修。
""",
    "memory/2026-03-05.md": """# 2026-03-05

## 活动
- 周六的亲子故事会报了十八个孩子，讲《小鼠和月亮》，志愿者是高一的两个女生。
- 书法班的老师下周出差，课改到星期五晚上。

## Building
- Lift repaired, the bill is 640, half of it is paid by the town.
- A pipe burst in the cellar; forty boxes of old newspapers got wet and are drying in the garage.
""",
    "memory/2026-03-09.md": """# 2026-03-09

- Evening opening until nine on Tuesdays starts in April. Marta takes the late shift.
- 复印机的错误代码 E-3152 是纸盒没有推到底，推紧就好了。
- The old scanner goes to the school, the new one needs driver 7.4.2 and a firewall rule for port 9102.
- Mr Okafor left 2,000 to the library in his will, to be spent on large-print novels.
""",
    "memory/2026-03-16.md": """# 2026-03-16

## 采购
- 儿童区要十二把矮椅子，预算一千二，颜色用黄色和蓝色。
- 订了四十本大字版小说，用的是那笔遗赠。

## Café
- The cinnamon buns sell out by ten; bake thirty instead of twenty from Monday.
- Wages of the helpers go up to 14.20 an hour from May.
""",
    "memory/2026-03-23.md": """# 2026-03-23

- The catalogue moved to the new server over the weekend, backup every night at one, kept for thirty days.
- 门口的书箱被人砸了，报了警，保险赔一半。
- Marta prefers mornings after all, so Jonas takes the Tuesday evenings.
- Someone returned an atlas that was borrowed in 1987; no fine, a photo went to the newspaper.
""",
    "memory/people.md": """# People

- Marta Holm, head librarian, allergic to dust, brings her dog Biscuit on Fridays.
- 高远，管系统和网络，电话下午打，家里有双胞胎。
- Jonas, student of history, works twelve hours a week, rides a cargo bike.
- 苏阿姨，咖啡馆的厨师，来自绍兴，做的桂花糕最受欢迎。
""",
    "memory/rules.md": """# 规则

- 一张借书证最多借十五本，期限四个星期，可以续两次。
- 丢书按原价赔，孩子的书只赔一半。
- 自习室不能吃东西，水要有盖子。
- Dogs are allowed on a lead, but not in the children's corner.
""",
    "memory/visitors.md": """# Visitors

- Насос в подвале заменили в мае, гарантия на него три года.
- مفتاح القبو معلق خلف باب المطبخ.
- 返却ポストの鍵は受付の引き出しに入っている。
- 복사기 수리 기사는 금요일 아침에 온다.
""",
}


class Asked(msgspec.Struct, frozen=True):
    """A question with the words of the line that answers it; none: nothing does."""

    kind: str
    text: str
    answer: str = ""


QUESTIONS = (
    Asked("across", "What is wrong with the coffee machine?", "咖啡机漏水"),
    Asked("across", "How many children signed up for the story hour?", "十八个孩子"),
    Asked("across", "To which evening was the calligraphy class moved?", "改到星期五晚上"),
    Asked("across", "How many books may one person borrow?", "最多借十五本"),
    Asked("across", "What colours do we want for the small chairs?", "黄色和蓝色"),
    Asked("across", "Why did readers open the windows in the reading room?", "暖气太热"),
    Asked("across", "Who looks after the network?", "高远，管系统和网络"),
    Asked("across", "电梯的修理费是多少，谁出？", "the bill is 640"),
    Asked("across", "燕麦奶现在多少钱一升？", "1.90 a litre"),
    Asked("across", "地下室的水管爆了，什么东西被弄湿了？", "forty boxes of old newspapers"),
    Asked("across", "肉桂卷每天要烤多少个？", "bake thirty"),
    Asked("across", "图书目录的备份保留多久？", "kept for thirty days"),
    Asked("other words", "Which animal comes along at the end of the week?", "her dog Biscuit"),
    Asked("other words", "What did we inherit?", "left 2,000"),
    Asked("other words", "How did the elevator get fixed and what did that cost?", "Lift repaired"),
    Asked("other words", "How long did somebody keep a map book?", "borrowed in 1987"),
    Asked("other words", "What do assistants earn?", "14.20 an hour"),
    Asked("other words", "谁做的点心最好吃？", "苏阿姨"),
    Asked("other words", "把书弄不见了要付多少钱？", "丢书按原价赔"),
    Asked("other words", "入口的还书柜出了什么事？", "门口的书箱被人砸了"),
    Asked("identifier", "LQ-40871", "LQ-40871"),
    Asked("identifier", "复印机 E-3152 怎么办？", "E-3152"),
    Asked("identifier", "port 9102", "9102"),
    Asked("identifier", "driver 7.4.2", "7.4.2"),
    Asked("scripts", "Сколько длится гарантия на насос?", "Насос в подвале"),
    Asked("scripts", "أين مفتاح القبو؟", "مفتاح القبو"),
    Asked("scripts", "返却ポストの鍵はどこにありますか", "返却ポストの鍵"),
    Asked("scripts", "복사기는 언제 고치나요?", "복사기 수리"),
    Asked("nothing", "How do I reset the temperature of the aquarium?"),
    Asked("nothing", "火星上有没有水？"),
    Asked("nothing", "zxqv wibble fnord"),
)

# The memory of a sailing club and of an office that translates: of each thing what it was, what it became, and a later line
# that says neither.
STATES = {
    "memory/2026-01-06.md": """# 2026-01-06

- 教练是 Benno，只带少年组。
- 周会取消，因为三个人感冒。
""",
    "memory/2026-01-12.md": """# 2026-01-12

- 整理了照片，删了四百张。
- The insurance for the safety boat is with Nordhaven, policy ends in June.
""",
    "memory/2026-01-20.md": """# 2026-01-20

- CAT tool of the office: Trabant 2021, two licences.
- Rain all day, nobody came.
""",
    "memory/2026-01-31.md": """# 2026-01-31

- 客户 Feldkirch 的联系人是 Herr Amsel。
- 周会取消，因为三个人感冒。
""",
    "memory/2026-02-08.md": """# 2026-02-08

- 翻译单价：德译中每千字 260。
- Dentist called, appointment moved by an hour.
""",
    "memory/2026-02-13.md": """# 2026-02-13

- Key of the boathouse hangs behind the fuse box.
- The cat of the harbour master slept on the charts.
- 食堂周五供应鱼汤，厨师阿强。
""",
    "memory/2026-02-15.md": """# 2026-02-15

- A school class visited, twenty-two children, lots of questions.
- Diesel at the dock: 1.94 a litre, cash only.
""",
    "memory/2026-02-20.md": """# 2026-02-20

- We have moved to Lingolite, five seats, paid yearly.
- 晚饭吃了饺子，韭菜馅。
""",
    "memory/2026-02-22.md": """# 2026-02-22

- Lost property is kept for four weeks in the green chest.
- 给窗台的薄荷浇水，快枯了。
""",
    "memory/2026-02-24.md": """# 2026-02-24

- Rain all day, nobody came.
- 冬季存船费每米 95 元。
""",
    "memory/2026-03-01.md": """# 2026-03-01

- 周会取消，因为三个人感冒。
- 浮桥 B 排归访客用。
""",
    "memory/2026-03-04.md": """# 2026-03-04

- Storage room rented at Kilnway 4, 75 a month.
- Heating on for the first time this autumn.
""",
    "memory/2026-03-09.md": """# 2026-03-09

- 打印机卡纸，拆开清了一下。
- A segment crashed the CAT tool twice, sent the log to support.
""",
    "memory/2026-03-23.md": """# 2026-03-23

- Fuel dock takes cards, diesel 2.12 a litre.
- 德译中调到每千字 310，老客户也一样。
- Read half of the report about the breakwater; dull.
""",
    "memory/2026-03-30.md": """# 2026-03-30

- Safety boat is insured by Skerry Mutual since the claim was refused.
- Swept the slip, algae everywhere.
""",
    "memory/2026-04-02.md": """# 2026-04-02

- 路上堵车一个小时，桥在修。
- Lost property goes to the town office after ten days.
""",
    "memory/2026-04-05.md": """# 2026-04-05

- 少年组的教练换成魏敏，Benno 退休了。
- 周会取消，因为三个人感冒。
""",
    "memory/2026-04-06.md": """# 2026-04-06

- The hose of the fuel dock drips, Ottmar has ordered a seal.
- 把旧杂志送去了回收站。
- Feldkirch 那边换人了，联系 Frau Zeisig，只发邮件。
""",
    "memory/2026-04-14.md": """# 2026-04-14

- Birthday of Ylva, cake with plums.
- A single glove and a thermos in lost property.
""",
    "memory/2026-04-16.md": """# 2026-04-16

- The boathouse key is with Ottmar at the fuel dock from now on.
- The cat of the harbour master slept on the charts.
""",
    "memory/2026-04-21.md": """# 2026-04-21

- The cat of the harbour master slept on the charts.
- Feldkirch 来问能不能再便宜点，没答应。
""",
    "memory/2026-04-24.md": """# 2026-04-24

- 给窗台的薄荷浇水，快枯了。
- 少年组这次来了九个孩子，风太小，只练了绳结。
""",
    "memory/2026-05-01.md": """# 2026-05-01

- The town plans a bus stop at the corner.
- 访客船位挪到 D 排，B 排给会员。
""",
    "memory/2026-05-02.md": """# 2026-05-02

- 给窗台的薄荷浇水，快枯了。
- 德译中的稿子晚了两天，客户没说什么。
""",
    "memory/2026-05-03.md": """# 2026-05-03

- Read half of the report about the breakwater; dull.
- Insurance wants photographs of the safety boat's trailer.
""",
    "memory/2026-05-12.md": """# 2026-05-12

- Somebody left the boathouse unlocked over night, nothing is missing.
- Rain all day, nobody came.
""",
    "memory/2026-05-22.md": """# 2026-05-22

- Gave up Kilnway; boxes are in the cellar of Harbour Street 12, 40 a month.
- Ordered paper towels and bin bags.
""",
    "memory/2026-05-29.md": """# 2026-05-29

- 访客投诉洗手间太远，考虑放一个移动的。
- Read half of the report about the breakwater; dull.
""",
    "memory/2026-06-02.md": """# 2026-06-02

- 食堂厨师换成 Nadja，周五改成扁豆汤。
- Rain all day, nobody came.
""",
    "memory/2026-06-05.md": """# 2026-06-05

- Mice in the storage, bought two traps.
- A school class visited, twenty-two children, lots of questions.
""",
    "memory/2026-06-22.md": """# 2026-06-22

- Read half of the report about the breakwater; dull.
- 存船费涨到每米 118 元，从这个冬天开始算。
""",
    "memory/2026-07-04.md": """# 2026-07-04

- 食堂的灯坏了一盏，等电工。
- 路上堵车一个小时，桥在修。
""",
    "memory/2026-07-29.md": """# 2026-07-29

- 有三条船的存船费还没交，要再催一次。
- Read half of the report about the breakwater; dull.
""",
}


class AskedOfStates(msgspec.Struct, frozen=True):
    """A question for what is so now, for what was, or with a tense that says neither."""

    kind: str
    text: str
    right: str
    wrong: str  # what was so at another time


OF_STATES = (
    AskedOfStates(
        "now",
        "Where is the boathouse key now?",
        "The boathouse key is with Ottmar at the fuel dock from now on.",
        "Key of the boathouse hangs behind the fuse box.",
    ),
    AskedOfStates(
        "unsaid",
        "where do I get the key to the boathouse?",
        "The boathouse key is with Ottmar at the fuel dock from now on.",
        "Key of the boathouse hangs behind the fuse box.",
    ),
    AskedOfStates(
        "then",
        "where did the boathouse key hang before?",
        "Key of the boathouse hangs behind the fuse box.",
        "The boathouse key is with Ottmar at the fuel dock from now on.",
    ),
    AskedOfStates(
        "now",
        "现在冬季存船每米多少钱？",
        "存船费涨到每米 118 元，从这个冬天开始算。",
        "冬季存船费每米 95 元。",
    ),
    AskedOfStates(
        "unsaid",
        "存一冬天的船怎么收费？",
        "存船费涨到每米 118 元，从这个冬天开始算。",
        "冬季存船费每米 95 元。",
    ),
    AskedOfStates(
        "then", "以前存船费每米多少？", "冬季存船费每米 95 元。", "存船费涨到每米 118 元，从这个冬天开始算。"
    ),
    AskedOfStates(
        "now",
        "Who coaches the juniors now?",
        "少年组的教练换成魏敏，Benno 退休了。",
        "教练是 Benno，只带少年组。",
    ),
    AskedOfStates(
        "unsaid", "少年组谁在教？", "少年组的教练换成魏敏，Benno 退休了。", "教练是 Benno，只带少年组。"
    ),
    AskedOfStates(
        "then", "魏敏之前是谁带少年组？", "教练是 Benno，只带少年组。", "少年组的教练换成魏敏，Benno 退休了。"
    ),
    AskedOfStates(
        "now",
        "柴油现在卖多少一升？",
        "Fuel dock takes cards, diesel 2.12 a litre.",
        "Diesel at the dock: 1.94 a litre, cash only.",
    ),
    AskedOfStates(
        "unsaid",
        "what does diesel cost at our dock?",
        "Fuel dock takes cards, diesel 2.12 a litre.",
        "Diesel at the dock: 1.94 a litre, cash only.",
    ),
    AskedOfStates(
        "then",
        "what was the diesel price before they took cards?",
        "Diesel at the dock: 1.94 a litre, cash only.",
        "Fuel dock takes cards, diesel 2.12 a litre.",
    ),
    AskedOfStates(
        "now",
        "Which company insures the safety boat now?",
        "Safety boat is insured by Skerry Mutual since the claim was refused.",
        "The insurance for the safety boat is with Nordhaven, policy ends in June.",
    ),
    AskedOfStates(
        "unsaid",
        "安全艇的保险在哪家公司？",
        "Safety boat is insured by Skerry Mutual since the claim was refused.",
        "The insurance for the safety boat is with Nordhaven, policy ends in June.",
    ),
    AskedOfStates(
        "then",
        "who insured the safety boat formerly?",
        "The insurance for the safety boat is with Nordhaven, policy ends in June.",
        "Safety boat is insured by Skerry Mutual since the claim was refused.",
    ),
    AskedOfStates("now", "访客现在停哪一排？", "访客船位挪到 D 排，B 排给会员。", "浮桥 B 排归访客用。"),
    AskedOfStates(
        "unsaid", "where do visiting boats moor?", "访客船位挪到 D 排，B 排给会员。", "浮桥 B 排归访客用。"
    ),
    AskedOfStates("then", "访客原先停在哪一排？", "浮桥 B 排归访客用。", "访客船位挪到 D 排，B 排给会员。"),
    AskedOfStates(
        "now",
        "德译中现行单价是多少？",
        "德译中调到每千字 310，老客户也一样。",
        "翻译单价：德译中每千字 260。",
    ),
    AskedOfStates(
        "unsaid",
        "what do we charge per thousand characters for German into Chinese?",
        "德译中调到每千字 310，老客户也一样。",
        "翻译单价：德译中每千字 260。",
    ),
    AskedOfStates(
        "then",
        "涨价前德译中多少钱千字？",
        "翻译单价：德译中每千字 260。",
        "德译中调到每千字 310，老客户也一样。",
    ),
    AskedOfStates(
        "now",
        "Which CAT tool are we on now?",
        "We have moved to Lingolite, five seats, paid yearly.",
        "CAT tool of the office: Trabant 2021, two licences.",
    ),
    AskedOfStates(
        "unsaid",
        "办公室用哪个 CAT 软件？",
        "We have moved to Lingolite, five seats, paid yearly.",
        "CAT tool of the office: Trabant 2021, two licences.",
    ),
    AskedOfStates(
        "then",
        "which CAT tool did we use before Lingolite?",
        "CAT tool of the office: Trabant 2021, two licences.",
        "We have moved to Lingolite, five seats, paid yearly.",
    ),
    AskedOfStates(
        "now",
        "Feldkirch 现在找谁？",
        "Feldkirch 那边换人了，联系 Frau Zeisig，只发邮件。",
        "客户 Feldkirch 的联系人是 Herr Amsel。",
    ),
    AskedOfStates(
        "unsaid",
        "who is our contact at Feldkirch?",
        "Feldkirch 那边换人了，联系 Frau Zeisig，只发邮件。",
        "客户 Feldkirch 的联系人是 Herr Amsel。",
    ),
    AskedOfStates(
        "then",
        "Feldkirch 以前的联系人是谁？",
        "客户 Feldkirch 的联系人是 Herr Amsel。",
        "Feldkirch 那边换人了，联系 Frau Zeisig，只发邮件。",
    ),
    AskedOfStates(
        "now",
        "Where do we store the boxes at present?",
        "Gave up Kilnway; boxes are in the cellar of Harbour Street 12, 40 a month.",
        "Storage room rented at Kilnway 4, 75 a month.",
    ),
    AskedOfStates(
        "unsaid",
        "存东西的房间在哪条街？",
        "Gave up Kilnway; boxes are in the cellar of Harbour Street 12, 40 a month.",
        "Storage room rented at Kilnway 4, 75 a month.",
    ),
    AskedOfStates(
        "then",
        "where was our storage room before?",
        "Storage room rented at Kilnway 4, 75 a month.",
        "Gave up Kilnway; boxes are in the cellar of Harbour Street 12, 40 a month.",
    ),
    AskedOfStates(
        "now",
        "How long is lost property kept now?",
        "Lost property goes to the town office after ten days.",
        "Lost property is kept for four weeks in the green chest.",
    ),
    AskedOfStates(
        "unsaid",
        "失物放多久？",
        "Lost property goes to the town office after ten days.",
        "Lost property is kept for four weeks in the green chest.",
    ),
    AskedOfStates(
        "then",
        "how long was lost property kept before?",
        "Lost property is kept for four weeks in the green chest.",
        "Lost property goes to the town office after ten days.",
    ),
    AskedOfStates(
        "now",
        "食堂周五现在是什么汤？",
        "食堂厨师换成 Nadja，周五改成扁豆汤。",
        "食堂周五供应鱼汤，厨师阿强。",
    ),
    AskedOfStates(
        "unsaid",
        "what soup is there on Fridays?",
        "食堂厨师换成 Nadja，周五改成扁豆汤。",
        "食堂周五供应鱼汤，厨师阿强。",
    ),
    AskedOfStates(
        "then",
        "食堂周五以前是什么汤？",
        "食堂周五供应鱼汤，厨师阿强。",
        "食堂厨师换成 Nadja，周五改成扁豆汤。",
    ),
)
