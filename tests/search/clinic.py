"""The memory of a veterinary practice and of the program that it books with, in two languages; nobody in it exists."""

from tests.search.library import Asked

NOTES = {
    "MEMORY.md": """# Memory

- The practice is called Alder Lane, three vets, two nurses, one receptionist.
- Olamide runs the front desk and hates phone calls before eight.
- 预约系统叫 pawbook，用 Django 写的，数据库是 MariaDB。
- Prefer short answers; never send mail to clients without asking Ingrid.
""",
    "memory/2026-01-05.md": """# 2026-01-05

- Ingrid is back from Tromsø, she brought dried fish for everyone.
- The autoclave fails its leak test; spare gasket ordered from Steris, part 0437-AX.
- 今天给金毛犬大福拔了两颗牙，麻醉一个半小时。
""",
    "memory/2026-01-08.md": """# 2026-01-08

- Moved pawbook to the new host barnacle, 4 cores, 16 GB, costs 38 a month.
- 数据库每天凌晨三点备份，保留十四天，放在 Backblaze。
- Reminder texts went out twice because the cron job ran on both hosts.
""",
    "memory/2026-01-12.md": """# 2026-01-12

- Mrs Petrossian's parrot Figaro plucks its feathers again; try a larger cage first.
- 兔子团子不吃东西，拍片发现肠道胀气，打了止痛针。
- Rent for the annex rises to 1,450 from March.
""",
    "memory/2026-01-15.md": """# 2026-01-15

- Decided to drop Celery and run jobs with plain systemd timers.
- Login cookies live for twelve hours now, before it was thirty days.
- 陈医生下个月去成都参加眼科培训，四天。
""",
    "memory/2026-01-19.md": """# 2026-01-19

- Night shift: a tortoise was left at the door in a shoebox, named it Monday.
- 离心机的转速表不准，厂家星期四派人来校准。
- Vaccine fridge showed 9 degrees at noon, the door seal was frozen open.
""",
    "memory/2026-01-22.md": """# 2026-01-22

- Invoice export to DATEV breaks on umlauts, fixed by writing cp1252.
- The price of a dental check goes from 55 to 62.
- 前台想要一个深色主题，Olamide 说白色太刺眼。
""",
    "memory/2026-01-26.md": """# 2026-01-26

- Gave the students' talk at the riding school: 24 teenagers, many questions about colic.
- 马场老板郭叔想每季度请我们去检查一次，报价八千。
- Kasper twisted his ankle on the stairs and works from home this week.
""",
    "memory/2026-01-29.md": """# 2026-01-29

- X-ray plates arrive on the 11th; the old ones go to the shelter in Vejle.
- 狗粮供应商换成了绿爪，账期三十天。
- Sentry quota was used up by a loop in the calendar widget.
""",
    "memory/2026-02-02.md": """# 2026-02-02

- 大福复查，伤口愈合得很好，下次三个月后。
- The intern Bea starts next Monday and shadows Ingrid in surgery.
- Moved the waiting room's aquarium away from the window because of algae.
""",
    "memory/2026-02-05.md": """# 2026-02-05

- Flaky test test_slot_overlap: it depended on the time zone, freeze the clock to Europe/Copenhagen.
- CI takes eleven minutes, half of it is building the Docker image.
- 陈医生订了一台二手超声，三万六，包运费。
""",
    "memory/2026-02-09.md": """# 2026-02-09

- Complaint from Mr Lindahl: he waited fifty minutes with a bleeding cat. Apologised, waived the fee.
- 停车场要重新划线，给轮椅留一个位子。
- Ketamine register must be signed by two people from now on.
""",
    "memory/2026-02-12.md": """# 2026-02-12

- The online payment provider is Mollie; refunds take five working days.
- 团子的主人送了一篮草莓，放在休息室冰箱里。
- Bea fainted during her first spay, sat down, came back and finished.
""",
    "memory/2026-02-16.md": """# 2026-02-16

- Rolled back release 3.8.1: the waitlist showed other people's pets.
- Root cause: a queryset cached at import, see incident report IR-019.
- 清洁工丁姐一周来三次，钥匙在她那里。
""",
    "memory/2026-02-19.md": """# 2026-02-19

- Wi-Fi for clients is separate now, the printer stays on the inner network at 10.4.0.17.
- 给流浪猫做绝育的日子定在每月最后一个星期天。
- Kasper wants to replace jQuery with htmx, page by page.
""",
    "memory/2026-02-23.md": """# 2026-02-23

- A goat ate the leash, the bandage and half a magazine in the waiting room.
- 麻醉机的流量计坏了，借了隔壁诊所的用两天。
- Insurance for the practice car went up by 9 percent, the car is a grey Berlingo.
""",
    "memory/people.md": """# People

- Ingrid Solvang, owner and surgeon, left-handed, plays the cello, lactose intolerant.
- 陈牧，眼科和小宠，来自昆明，不吃香菜，女儿叫朵朵。
- Kasper Brandt, developer, two days a week, lives on a houseboat, drinks only tea.
- Olamide Adeyemi, reception, studies accounting in the evening.
- 小周，护士，值夜班，会给仓鼠剪指甲。
""",
    "memory/clients.md": """# Clients

- Riding school Højgaard: nine horses, invoices quarterly, contact Birgitte.
- 郭叔的马场：六匹马，最老的一匹叫追风，二十三岁。
- Mrs Petrossian: parrot Figaro, two canaries, pays in cash.
- Mr Lindahl: cat Bishop, diabetic, insulin twice a day, 3 units.
- 林小姐：兔子团子，住在码头附近，周末才有空。
""",
    "memory/pawbook.md": """# pawbook

- Repository: git@forge.example:alder/pawbook, main branch is trunk.
- Deploy with `make ship HOST=barnacle`; never on Fridays after noon.
- Feature flags live in settings/flags.toml, read at start only.
- 短信走 Twilio，每条七分钱，每天上限五百条。
- Error codes: PB-104 slot taken, PB-211 owner unknown, PB-300 payment open.
""",
    "memory/medicine.md": """# 药品

- 止痛：美洛昔康，狗每公斤 0.1 毫克，每天一次。
- Antibiotics for cats: amoxicillin 12.5 mg per kg, twice a day.
- 疫苗冰箱要保持在二到八度，超过两小时就得报废。
- Euthanasia drugs are in the grey safe; the code is changed every quarter by Ingrid.
""",
    "memory/rules.md": """# House rules

- Two people for every dog above forty kilos.
- 急诊先处理，预约的客人最多等二十分钟，超过就送一张优惠券。
- No photos of animals online without the owner's signature.
- The kettle is descaled on the first of the month, whoever is on duty.
""",
    "memory/travel.md": """# Trips

- Conference in Ghent, 14 to 16 May, hotel booked near the canal, train at 6:52.
- 成都培训住在春熙路旁边的酒店，会务费两千四。
- Team outing: kayaking on the fjord, bring dry socks, Kasper brings the grill.
""",
    "memory/building.md": """# Building

- Boiler serviced every October by Nordvarme, contract number NV-5582.
- 二楼的窗户漏风，房东答应四月换新的。
- Alarm: code pad at the back door, siren tested on Wednesdays.
- Solar panels give 6.2 kW at best, the inverter hums in summer.
""",
    "memory/shelter.md": """# 救助站

- 目前有十一只猫，四只狗，一只瘸腿的鹅。
- The goose is called Admiral and bites men in boots.
- 领养要填表、家访，再观察两个星期。
- Donations came to 3,270 last year, most of it from the winter market.
""",
}


QUESTIONS = (
    Asked("direct", "Who runs the front desk?", "Olamide runs"),
    Asked("direct", "Where did Ingrid come back from?", "Tromsø"),
    Asked("direct", "Which part number has the gasket of the autoclave?", "0437-AX"),
    Asked("direct", "How much does the host barnacle cost?", "38 a month"),
    Asked("direct", "What is Mrs Petrossian's parrot called?", "parrot Figaro"),
    Asked("direct", "How high is the rent for the annex?", "1,450"),
    Asked("direct", "How long do login cookies live?", "twelve hours"),
    Asked("direct", "What animal was left in a shoebox?", "tortoise"),
    Asked("direct", "why was the vaccine fridge too warm", "door seal"),
    Asked("direct", "What broke the DATEV export?", "umlauts"),
    Asked("direct", "What does a dental check cost now?", "55 to 62"),
    Asked("direct", "How did Kasper hurt his ankle?", "twisted his ankle"),
    Asked("direct", "Where do the old x-ray plates go?", "Vejle"),
    Asked("direct", "When does Bea start?", "starts next Monday"),
    Asked("direct", "What made test_slot_overlap flaky?", "depended on the time zone"),
    Asked("direct", "How long did Mr Lindahl wait with his cat?", "fifty minutes"),
    Asked("direct", "how long do refunds take with mollie", "five working days"),
    Asked("direct", "Why did we roll back release 3.8.1?", "waitlist showed"),
    Asked("direct", "What is the printer's address?", "10.4.0.17"),
    Asked("direct", "What did the goat eat?", "goat ate the leash"),
    Asked("direct", "Which instrument does Ingrid play?", "plays the cello"),
    Asked("direct", "How do I deploy pawbook?", "make ship"),
    Asked("direct", "Where are the feature flags?", "flags.toml"),
    Asked("direct", "How many horses does Højgaard have?", "nine horses"),
    Asked("direct", "When is the boiler serviced?", "every October"),
    Asked("direct", "what's the name of the goose", "called Admiral"),
    Asked("直接", "预约系统用什么数据库？", "MariaDB"),
    Asked("直接", "大福拔了几颗牙？", "拔了两颗牙"),
    Asked("直接", "数据库备份保留几天？", "保留十四天"),
    Asked("直接", "团子为什么不吃东西？", "肠道胀气"),
    Asked("直接", "陈医生去成都参加什么培训？", "眼科培训"),
    Asked("直接", "离心机什么时候校准？", "星期四派人"),
    Asked("直接", "郭叔给的报价是多少？", "报价八千"),
    Asked("直接", "狗粮供应商换成了谁？", "绿爪"),
    Asked("直接", "二手超声多少钱？", "三万六"),
    Asked("直接", "清洁工一周来几次？", "一周来三次"),
    Asked("直接", "流浪猫绝育定在哪天？", "最后一个星期天"),
    Asked("直接", "陈牧的女儿叫什么？", "女儿叫朵朵"),
    Asked("直接", "谁会给仓鼠剪指甲？", "小周"),
    Asked("直接", "马场最老的马几岁？", "二十三岁"),
    Asked("直接", "美洛昔康的剂量是多少？", "0.1 毫克"),
    Asked("直接", "短信每天最多发多少条？", "上限五百条"),
    Asked("直接", "领养要走什么流程？", "填表、家访"),
    Asked("直接", "会务费多少？", "两千四"),
    Asked("across", "Why is the rabbit not eating?", "肠道胀气"),
    Asked("across", "How often is the database backed up?", "凌晨三点备份"),
    Asked("across", "Who has the cleaner's key?", "钥匙在她那里"),
    Asked("across", "What does Dr Chen not eat?", "不吃香菜"),
    Asked("across", "Who supplies the dog food now?", "绿爪"),
    Asked("across", "How much did the second-hand ultrasound cost?", "三万六"),
    Asked("across", "What happened to the flow meter of the anaesthesia machine?", "流量计坏了"),
    Asked("across", "How many cats are in the shelter?", "十一只猫"),
    Asked("across", "How long may booked clients wait at most?", "最多等二十分钟"),
    Asked("across", "which theme does the reception want", "深色主题"),
    Asked("across", "When will the draughty windows be replaced?", "四月换新的"),
    Asked("across", "龟是在哪儿捡到的？", "tortoise"),
    Asked("across", "会议在哪个城市开？", "Ghent"),
    Asked("across", "英格丽德对什么过敏或者不耐受？", "lactose"),
    Asked("across", "谁住在船屋上？", "houseboat"),
    Asked("across", "公司的车是什么颜色？", "grey Berlingo"),
    Asked("across", "为什么要撤回那个版本？", "waitlist showed"),
    Asked("across", "退款要几天？", "five working days"),
    Asked("across", "实习生第一次做手术时怎么了？", "Bea fainted"),
    Asked("across", "太阳能板最多发多少电？", "6.2 kW"),
    Asked("across", "去年收到多少捐款？", "3,270"),
    Asked("across", "猫的抗生素一天吃几次？", "amoxicillin"),
    Asked("other words", "Who must not be disturbed early in the morning?", "hates phone calls"),
    Asked("other words", "Which bird bites?", "bites men"),
    Asked("other words", "Why did customers get the same message two times?", "went out twice"),
    Asked("other words", "What do we use instead of a task queue?", "systemd timers"),
    Asked("other words", "Who got dizzy in the operating theatre?", "Bea fainted"),
    Asked("other words", "What slows down our pipeline?", "building the Docker image"),
    Asked("other words", "fruit in the fridge, who gave it", "草莓"),
    Asked("other words", "哪位同事晚上还在上课？", "studies accounting"),
    Asked("other words", "哪台仪器量得不准？", "转速表不准"),
    Asked("other words", "残疾人停哪里？", "轮椅"),
    Asked("other words", "药放坏了怎么处理？", "就得报废"),
    Asked("identifier", "PB-211", "PB-211"),
    Asked("identifier", "IR-019", "IR-019"),
    Asked("identifier", "合同 NV-5582 是谁的？", "NV-5582"),
    # Nobody and nothing of that name is in the notes.
    Asked("unknown", "When did Thaddeus start to work here?"),
    Asked("unknown", "What does Mrs Abernathy's hamster eat?"),
    Asked("unknown", "Which instrument does Rosalind play?"),
    Asked("unknown", "How much do we pay for Kubernetes?"),
    Asked("unknown", "Who repaired the dishwasher?"),
    Asked("unknown", "What is the llama called?"),
    Asked("unknown", "What did Gwendolyn say about the release?"),
    Asked("unknown", "How many horses does Windermere stables have?"),
    Asked("unknown", "where does benedikt live"),
    Asked("unknown", "Why did Desmond resign?"),
    Asked("unknown", "What is the phone number of the plumber?"),
    Asked("unknown", "Which version of Elasticsearch do we run?"),
    Asked("unknown", "When is Percival's wedding?"),
    Asked("unknown", "How old is the ferret Noodle?"),
    Asked("unknown", "What colour is the trampoline?"),
    Asked("unknown", "Did Marguerite pay her invoice?"),
    Asked("unknown", "What did we decide about Terraform?"),
    Asked("unknown", "the crocodile's insulin dose"),
    Asked("unknown", "Where did Clementine go on holiday?"),
    Asked("unknown", "How long is the contract with Vattenfall?"),
    Asked("unknown", "PB-977"),
    Asked("unknown", "IR-348 root cause"),
    Asked("unknown", "欧阳医生什么时候来上班？"),
    Asked("unknown", "贺兰的狗叫什么名字？"),
    Asked("unknown", "我们的钢琴放在哪里？"),
    Asked("unknown", "Kubernetes 集群有几个节点？"),
    Asked("unknown", "薛经理的电话是多少？"),
    Asked("unknown", "仓库的无人机多少钱？"),
    Asked("unknown", "谭雪莹对什么过敏？"),
    Asked("unknown", "那只骆驼几岁了？"),
    Asked("unknown", "滑雪场的门票是多少？"),
    Asked("unknown", "谁修好了洗碗机？"),
    Asked("unknown", "司徒先生的刺猬吃什么药？"),
    Asked("unknown", "魏工对新版本怎么说？"),
    Asked("unknown", "婚礼的蛋糕在哪家订的？"),
    Asked("unknown", "Rust 重写的进度怎么样？"),
    Asked("unknown", "钱塘公寓的租金是多少？"),
    Asked("unknown", "尼古拉斯住在哪里？"),
    Asked("unknown", "What does 欧阳 earn?"),
    Asked("unknown", "When did Leopold buy the accordion?"),
    # Somebody whom the notes know, and something that they do not say.
    Asked("unsaid", "How old is Ingrid?"),
    Asked("unsaid", "Is Kasper married?"),
    Asked("unsaid", "When does Olamide sit her exam?"),
    Asked("unsaid", "Can the parrot Figaro talk?"),
    Asked("unsaid", "Who is Bea's landlord?"),
    Asked("unsaid", "How much did the autoclave cost?"),
    Asked("unsaid", "陈牧的太太做什么工作？"),
    Asked("unsaid", "大福几岁了？"),
    Asked("unsaid", "丁姐住在哪里？"),
    Asked("unsaid", "郭叔抽不抽烟？"),
    Asked("unsaid", "团子是什么颜色的？"),
    Asked("unsaid", "小周的工资是多少？"),
    Asked("unsaid", "Does Mr Lindahl have children?"),
    Asked("unsaid", "Which company hosts barnacle?"),
    # Nothing that memory is about.
    Asked("far", "What is the boiling point of nitrogen?"),
    Asked("far", "Who won the world cup in 1974?"),
    Asked("far", "How do submarines dive?"),
    Asked("far", "Translate this poem into Latin"),
    Asked("far", "唐朝一共有多少位皇帝？"),
    Asked("far", "光合作用是怎么回事？"),
    Asked("far", "写一首关于沙漠的诗"),
    Asked("far", "hello, good morning"),
    Asked("far", "thanks, that is great"),
    Asked("far", "你好，在吗"),
    Asked("far", "好的，谢谢"),
    Asked("far", "今天天气怎么样"),
    Asked("far", "what's the weather like"),
    Asked("far", "run the tests and fix what fails"),
    Asked("far", "refactor this function"),
    Asked("far", "把这个函数改短一点"),
    Asked("far", "sing me a song"),
    Asked("far", "讲个笑话"),
    Asked("far", "qqzv mlorp tziv"),
    Asked("far", "jkfd 88xq wyyz"),
    Asked("far", "啊啊啊啊啊啊"),
    Asked("far", "zxcvbnm"),
    Asked("far", "哔哩吧啦咕噜"),
    Asked("far", "How many moons does Jupiter have?"),
    Asked("far", "Прогноз погоды на завтра"),
    Asked("far", "ok continue"),
)
