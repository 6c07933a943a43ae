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
