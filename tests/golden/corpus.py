"""A fixed corpus: notes in English and Chinese, code, long lines, transcripts, secrets. Never changed, only added to."""

import json
from collections.abc import Mapping
from random import Random

from memd.domain_types import Document, Kind

_WORDS = [
    "harbour",
    "ledger",
    "kettle",
    "violin",
    "orchard",
    "compass",
    "lighthouse",
    "migration",
    "the",
    "a",
    "of",
    "and",
    "to",
    "was",
    "in",
    "picked",
    "because",
    "invoice",
    "database",
    "staging",
    "rollback",
    "Müller",
    "naïve",
    "don't",
    "e-mail",
    "v2.1",
    "2026-02-09",
    "running",
    "ran",
    "runs",
    "flies",
    "studies",
]
_HAN = (
    "我们选择了数据库因为需要事务灯塔港口迁移会议记录发布版本测试环境备份脚本上传失败明天再试花园水壶小提琴"
)
_ENDS = (". ", "! ", "? ", ", ", "; ", ": ")


def _english(rng: Random, words: int) -> str:
    made = []
    for number in range(words):
        made += [rng.choice(_WORDS), rng.choice(_ENDS) if number % 9 == 8 else " "]
    return "".join(made).strip() + "."


def _chinese(rng: Random, characters: int) -> str:
    return "".join(
        rng.choice(_HAN) + (rng.choice("，。；！") if number % 12 == 11 else "")
        for number in range(characters)
    )


def _sections(rng: Random) -> str:
    """Headings of four levels, of which some are repeated, empty or underlined, with text of every length below."""
    parts = ["# A title of a note\n\n" + _english(rng, 30)]
    for number in range(24):
        level = (1, 2, 3, 4, 3, 2)[number % 6]
        parts.append(
            f"{'#' * level} Part {number} {rng.choice(_WORDS)}\n\n{_english(rng, rng.randrange(5, 260))}"
        )
        if number % 5 == 0:
            parts.append("\n".join(f"- {_english(rng, rng.randrange(3, 30))}" for _ in range(14)))
    return "\n\n".join(parts)


_CODE = '''---
title: "How we deploy"
tags: [ops, deploy]
---

Steps first.

```python
# not a heading
def deploy(target: str) -> None:
    """Deploys."""
    for host in hosts_of(target):
        run(host, "systemctl restart app")
```

    an indented block
    # nor is this a heading

~~~
```
~~~

| host | role | since |
|---|---|---|
| a1 | web | 2024 |
| a2 | database | 2025 |

> quoted
> # and quoted

Setext heading
==============

1. one
   - nested
     - deeper
2. two

***

<details>
<summary>More</summary>

text

</details>

## ASCII art ##

+-----+
|  x  |
+-----+
'''


def notes() -> Mapping[str, Document]:
    """Notes by what is special of them."""
    rng = Random(11)
    texts = {
        "sections": ("memory/plan.md", _sections(rng)),
        "day": ("memory/2026-02-09.md", f"Standup\n\n{_english(rng, 400)}\n\n## Later\n\n{_english(rng, 90)}\n"),
        "day in chinese": ("memory/2026-02-09-会议.md", f"# 会议记录\n\n{_chinese(rng, 900)}\n\n## 决定\n\n{_chinese(rng, 200)}\n"),
        "chinese": ("memory/项目.md", "\n\n".join(f"{'#' * (n % 3 + 1)} 第{n}节\n\n{_chinese(rng, 40 * n)}" for n in range(1, 9))),
        "mixed": ("MEMORY.md", "\n".join(f"- {_english(rng, 12)} {_chinese(rng, 15)} {_english(rng, 3)}" for _ in range(60))),
        "code": ("memory/deploy.md", _CODE),
        "long lines": ("memory/long.md", f"# Long\n\n{_english(rng, 1500)}\n\n{_chinese(rng, 2500)}\n\n{'x' * 3000}\n"),
        "short lines": ("memory/short.md", "\n".join(rng.choice(_WORDS) for _ in range(900))),
        "odd": ("memory/odd.md", "\ufeff\n\n   \n#\n##   \n# #\nemoji 👩‍👩‍👧 e\u0301 ﬁ\u200b\ttab\n日本語 かな 한국어\n\n\n"),
        "empty": ("memory/empty.md", ""),
        "chinese name": ("memory/2026年2月9日.md", "# 会议\n\n我们选择了数据库\n"),
        "year last": ("memory/plan-2.md", "# Plan\n\n## 24.11.2026\n\nThe ledger was picked.\n"),
    }  # fmt: skip
    return {
        name: Document(path, Kind.CURATED if path == "MEMORY.md" else Kind.NOTE, tuple(text.split("\n")))
        for name, (path, text) in texts.items()
    }


def transcripts() -> Mapping[str, bytes]:
    """Transcripts in memd's plain format: of short turns, of long ones, in Chinese, with times, and cut off."""
    rng = Random(12)
    short = [_english(rng, rng.randrange(1, 25)) for _ in range(60)]
    long = [_english(rng, rng.choice((8, 40, 300, 900))) for _ in range(12)]
    chinese = [_chinese(rng, rng.randrange(3, 300)) for _ in range(20)]
    return {
        "short": _said(short, at=1_770_000_000),
        "long": _said(long),
        "chinese": _said(chinese, at=1_770_100_000),
        "secret": _said([f"the key is {secret}, keep it" for secret in secrets().values()], at=1_770_200_000),
        "cut off": _said(short[:7])[:-30],
    }


def _said(texts: list[str], at: int | None = None) -> bytes:
    lines = []
    for number, text in enumerate(texts):
        line: dict[str, object] = {"role": ("user", "assistant")[number % 2], "content": text}
        if at is not None:
            line["timestamp"] = at + 60 * number
        lines.append(json.dumps(line, ensure_ascii=number % 3 == 0))
    return "\n".join(lines).encode() + b"\n"


def secrets() -> Mapping[str, str]:
    """What is secret, and what only looks like it; put together here, so that no scanner takes this file for a leak."""
    rng = Random(13)

    def token(length: int) -> str:
        return "".join(
            rng.choice("abcdefghjkmnpqrstuvwxyzABCDEFGHJKMNPQRSTUVWXYZ23456789") for _ in range(length)
        )

    def block(width: int, lines: int) -> str:
        rows = "\n".join(token(width) for _ in range(lines))
        return f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{rows}\n-----END RSA PRIVATE {'KEY'}-----"

    return {
        "model": "sk-ant-" + "api03-" + token(80),
        "cloud": "AKIA" + token(16).upper() + " and " + "ghp_" + token(36),
        "assigned": f"DB_PASSWORD={token(14)} password: {token(11)}, pwd='{token(9)}'",
        "url": f"postgres://ann:{token(12)}@db.example.org:5432/x",
        "header": f"Authorization: Bearer {token(40)}",
        "key": block(64, 9),
        "narrow key": block(20, 6),
        "cut key": block(64, 9)[:300],
        "narrowest cut key": block(16, 5)[:-40] + "\nand so on",
        "too narrow for a key": block(15, 5)[:-40] + "\nand so on",
        "user and password": "the box is root/pa$$w0rd!7, not root/folder",
        "ssh with password": "ssh root/" + "hunter2hunter",
        "chinese": f"密码是 {token(12)}，口令：{token(10)}",
        "sentence": f"my password is {token(10)} since Monday",
        "list": f'passwords:\n  - {token(11)}\n  - "{token(12)}"\nkeys = ["{token(32)}"]',
        "default": f'getenv("DB_PASSWORD") ?: "{token(11)}"',
        "command": f"mysql -u root -p{token(12)} shop && curl -u ann:{token(12)} https://example.org",
        "jwt": "eyJ" + token(30) + ".eyJ" + token(40) + "." + token(43),
        "harmless": "commit 3f2a9c1d5b7e, uuid 123e4567-e89b-12d3-a456-426614174000, password reset, the key to success",
        "prefix": f"acme_live_9mQ2{token(24)}, kept: call_{token(24)}",
        "variable": f"EPPO=3kB7{token(20)}\nTRACE_ID={token(24)}",
        "announced": f"the new key just came in: 4kR7{token(24)}, and call_{token(24)} took 3 s",
        "loop": f"password: {token(10)}1\n" * 1_000,
        "key whose dashes were lost": block(64, 9).replace("-----", "--"),
        "key by its word": f"the API key we use for maps is {'4f1c0b7e9a42d0e8' * 2}; DB_PASSWORD is now {token(11)}3",
        "words of a passphrase": "die Passphrase ist velvet cactus orbit harvest; password: a long story of words",
        "alone on a line": "the box:\nroot k7TqXx2m" + "Pw9Z\nadmin pts/0",
        "words with a number": "the new laptop is set up, she logs in with waffle_ember743, not with login_form12",
        "what only refers": "arn:aws:secretsmanager:eu-west-3:120034005600:secret:shop/token-8xTqPz and ghp_"
        + "x" * 36,
        "words that are spelled out": "密码 jintianyehenkaixin\nпароль: сосна1987\nthe pw is still marmalade, all lower case",
        "a clause of its own": "the key hangs in a box by the shed, code 2791, pull hard",
        "digits of another script": "رمز الدخول: ٤٧١٩",
        "codes of one form": "recovery codes, printed today:\n4f1c0-b7e9a\n42d0e-8c55a",
    }
