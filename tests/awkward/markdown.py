"""Notes as people, editors and programs leave them: any Markdown, any bytes."""

import codecs

from hypothesis import strategies as st

from tests.awkward.streams import spoilt

_WORDS = st.sampled_from(
    [
        "database", "We picked it.", "记忆", "数据库选了。", "日本語", "한국어", "العربية", "\u202eright\u202c", "e\u0301" * 3, "\u0301" * 50, "👩\u200d👧\u200d👦",
        "🏳️\u200d🌈", "\u200b", "\ufeff", "\u00a0", "\u3000", "\t", "  ", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1b[31m", "\x7f", "ﷺ", "𝒳", "İ",
        "`x`", "**b**", "[a](b.md)", "<b>", "&amp;", "\\*", "|", "#", "-", ">", "http://a.b/?key=x", "password: hunter2", "x" * 900, "字" * 500, "w " * 600,
    ]
) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=8)  # fmt: skip
_PROSE = st.lists(_WORDS, max_size=6).map(" ".join)
_LINES = st.one_of(
    _PROSE,
    _PROSE,
    st.builds(lambda n, gap, text: "#" * n + gap + text, st.integers(1, 8), st.sampled_from([" ", "\t", ""]), _PROSE),
    st.builds(lambda depth, mark, text: " " * depth + mark + text, st.integers(0, 12), st.sampled_from(["- ", "* ", "1. ", "- [ ] ", "> "]), _PROSE),
    st.builds(lambda depth, mark, n, text: " " * depth + mark * n + text, st.integers(0, 4), st.sampled_from("`~"), st.integers(2, 9), st.sampled_from(["", "python", " `"])),
    st.sampled_from(
        [
            "", "", " ", "---", "...", "title: a title", 'title: "a title', "===", "***", "| a | b |", "|---|---|", "<!-- a", "-->", "<details>", "</details>",
            "    code", "\tcode", "[^1]: note", "[[link]]", "- 2026-02-09: a day", "## 2026-02-09", "%%%", "$$", "\\",
        ]
    ),
)  # fmt: skip
_END = st.sampled_from(["\n"] * 8 + ["\r\n", "\r", "\n\n", "\r\r\n", "\n\r", "\u2028\n", ""])
_FRONT = st.sampled_from(
    [
        "",
        "",
        "",
        "---\ntitle: x\n---\n",
        "---\ntitle: never closed\n",
        "--- \r\ntitle: [x\r\n...\r\n",
        "\ufeff---\n---\n",
    ]
)
TEXTS = st.builds(
    lambda front, lines: front + "".join(line + end for line, end in lines),
    _FRONT,
    st.lists(st.tuples(_LINES, _END), max_size=30),
) | st.sampled_from(
    [
        "",
        "\n",
        " ",
        "\r",
        "\r\n\r\n",
        "\u3000\n\u3000",
        "\x0b\x0c\n",
        "\n" * 5000,
        "x" * 100_000,
        "字。" * 20_000,
        "- a\n" * 2000,
        "#\n" * 2000,
        "```\n" * 999,
    ]
)
"""Texts of notes."""

_ENCODED = st.one_of(
    TEXTS.map(str.encode),
    TEXTS.map(str.encode),
    TEXTS.map(lambda text: codecs.BOM_UTF8 + text.encode()),
    TEXTS.map(lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le")),
    TEXTS.map(lambda text: codecs.BOM_UTF16_BE + text.encode("utf-16-be")),
    TEXTS.map(lambda text: text.encode("gb18030")),
    TEXTS.map(lambda text: text.encode("latin-1", "replace")),
    st.just(b""),
)
FILES = spoilt(_ENCODED, most=2)
"""Bytes of notes."""
