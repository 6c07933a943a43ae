"""Texts around a secret, as people and programs leave it: ``§`` stands for it, and no word says what it is."""

from typing import Final

SURROUNDINGS: Final[dict[str, str]] = {
    "alone": "§",
    "english": "ok I made a new one for staging, it's § and it works now",
    "english, at the end": "She pasted this into the channel yesterday: §.",
    "chinese": "我刚才新建了一个 § 你先用这个试试",
    "chinese, glued": "昨天他给我的是§，今天还能用",
    "brackets": "the one from the wiki (§) is newer",
    "code": 'client = Client("§", timeout=30)',
    "code fence": "```\n§\n```",
    "inline code": "try `§` instead",
    "json": '{"id": 7, "value": "§", "ok": true}',
    "json in json": '{"body": "{\\"value\\": \\"§\\"}"}',
    "escaped line ends": '"first line\\n§\\nlast line"',
    "shell": "export FOO=§\nmake deploy",
    "shell, a flag": "tool --with § --fast",
    "url": "https://example.com/cb?x=§&y=1",
    "table": "| name | it |\n| --- | --- |\n| ann | § |",
    "csv": "7,ann,§,2026-02-09",
    "log": "2026-02-09T10:11:12Z INFO worker[7] got § after 3 tries",
    "diff": "-old line\n+§",
    "xml": "<entry name='x'>§</entry>",
}
"""Twenty places by their names."""
