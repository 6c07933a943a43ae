import time
from datetime import datetime

import pytest

from memd.chunk.markdown import chunk
from memd.chunk.note_properties import front_matter, labels_of, named_time
from memd.domain_types import Document, Kind, Label, LabelKind
from memd.text.time_spans import TimeSpan
from tests.bounds import shipped
from tests.table import table


def note(text: str, path: str = "memory/topic.md") -> Document:
    return Document(path, Kind.NOTE, tuple(text.split("\n")))


def found(text: str, kind: LabelKind) -> list[str]:
    """The names that are written in a note."""
    return [label.value for label in labels_of(note(text)) if label.kind is kind]


def days(span: TimeSpan | None) -> str | None:
    return None if span is None else "..".join(sorted({f"{span.first:%Y-%m-%d}", f"{span.last:%Y-%m-%d}"}))


def when(text: str, path: str = "memory/topic.md", longest: int = 700) -> list[str | None]:
    """Of when each chunk of a note is."""
    return [days(one.when) for one in chunk(note(text, path), 400, 0, longest)]


@table(
    ("text", "tags"),
    [
        ("---\ntags: [Work, home]\n---\ntext", ["Work", "home"]),
        ("---\ntags:\n  - work\n  - '#home'\n---", ["work", "home"]),
        ("---\ntags: work, home\n---", ["work", "home"]),
        ("---\nTags: work home\n---", ["work", "home"]),
        ("---\ntag: 工作\n---\n#工作 #家/花园", ["工作", "家/花园"]),
        ("A #tag here, #two-words and #nested/deep/ too.", ["tag", "two-words", "nested/deep"]),
        ("#first\n- #second", ["first", "second"]),
        ("#Tag and #tag and #TAG", ["Tag"]),
        ("no#tag http://a.example/#part (#not) #1984 # title #", []),
        ("#1984a and `#code` and\n```\n#fenced\n```\n#after", ["1984a", "after"]),
        ("~~~\n```\n#in\n~~~\n#out", ["out"]),
        ("---\n# a comment\n#close\nkey: v\n---\n", []),
        ("---\ntags: []\n---\n---\ntags: [late]\n---", []),
        ("---\ntags: {a: b}\n---", []),
        ("", []),
    ],
)
def test_tags_are_those_that_obsidian_shows(text: str, tags: list[str]) -> None:
    """Of the front matter and of the text; each once, as it is written first."""
    assert found(text, LabelKind.TAG) == tags


def test_links_are_the_names_of_notes() -> None:
    """Without the words that are shown and the heading that is meant."""
    text = "[[Kiln]] and ![[plan.png]] [[Kiln|the kiln]] [[家/花园#秋天]] `[[code]]` [[]] [[a\nb]]"
    assert found(text, LabelKind.LINK) == ["Kiln", "plan.png", "家/花园"]
    assert found("see [[Kiln]]", LabelKind.LINK) == ["Kiln"], "a line that has nothing else of Markdown"
    assert found("---\nup: '[[Index]]'\n---\n", LabelKind.LINK) == ["Index"]


def test_properties_are_what_stands_in_the_front_matter() -> None:
    """As texts: no date, no number and no truth value is made of them."""
    text = "---\nStatus: Done\nyes: no\nversion: 1.10\nday: 2026-02-09\nlist: [A, b]\nempty:\nnested: {a: b}\n---\nstatus: text"
    assert [(one.name, one.value) for one in labels_of(note(text)) if one.kind is LabelKind.PROPERTY] == [
        ("status", "done"),
        ("yes", "no"),
        ("version", "1.10"),
        ("day", "2026-02-09"),
        ("list", "a"),
        ("list", "b"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "---\na: [1\n---\n",
        "---\n\ttab: x\n---\n",
        "---\na: b: c\n---\n",
        "---\n- only\n- a list\n---\n",
        "---\njust words\n---\n",
        "---\na: !!python/object/apply:os.system [ls]\n---\n",
        "---\na: *nowhere\n---\n",
        "---\n? {a: b}\n: c\n---\n",
        "---\n" + "a: &a [" + "[" * 2000 + "\n---\n",
        "---\nnever: closed\n",
        " ---\na: b\n---\n",
        "text\n---\na: b\n---\n",
    ],
)
def test_broken_front_matter_is_text(text: str) -> None:
    """It is searched like any other text, and what cannot be read in it says nothing of the note."""
    document = note(text + "words")
    assert [one for one in labels_of(document) if one.kind is LabelKind.PROPERTY and one.name != "a"] == []
    assert "words" in "".join(one.text for one in chunk(document, 400, 0))


@table(
    ("text", "properties", "labels"),
    [
        ("title: Decision: heron\ntags: [a, b]\nstatus: Done", {"title": "decision: heron", "status": "done"}, ["a", "b"]),
        ("status: done\ntags: [a, b\nday: 2026-02-09", {"status": "done", "day": "2026-02-09"}, ["a", "b"]),
        ("tags:  \n  - a\n  - b\nby: @ann: new", {"by": "@ann: new"}, ["a", "b"]),
        ("- none\ntitle: 'a: b'", {"title": "a: b"}, []),
        ("up: [[Index]], [[Kiln]]\ntags: a", {"up": "[[index]], [[kiln]]"}, ["Index", "Kiln", "a"]),
        ("title: a: b\nlist:\n  - x: y: z\nurl: http://x", {"title": "a: b", "url": "http://x"}, []),
    ],
)  # fmt: skip
def test_a_line_that_is_no_yaml_takes_no_other_with_it(
    text: str, properties: dict[str, str], labels: list[str]
) -> None:
    """People and models write such lines; the others still tell the tags and the date."""
    found = labels_of(note(f"---\n{text}\n---\n"))
    said = {one.name: one.value for one in found if one.kind is LabelKind.PROPERTY and one.name != "tags"}
    assert said == properties
    assert [one.value for one in found if one.kind is not LabelKind.PROPERTY] == labels


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("[[Kiln]]", ["Kiln"]),
        ("[[Kiln, new]]", ["Kiln, new"]),
        ("\n- [[Kiln]]\n- [[Bay|b]]", ["Kiln", "Bay"]),
        ("[[]]", []),
    ],
)
def test_a_link_needs_no_quotes(text: str, links: list[str]) -> None:
    """To YAML, [[name]] is a list in a list."""
    assert found(f"---\nsuperseded-by: {text}\n---\n", LabelKind.LINK) == links
    values = [
        one.value
        for one in labels_of(note(f"---\nsuperseded-by: {text}\n---\n"))
        if one.name == "superseded-by"
    ]
    assert len(values) == len(links)
    assert all(value.startswith("[[") for value in values)


def test_aliases_do_not_multiply() -> None:
    """Front matter of a thousand million values in 300 characters."""
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert len(labels_of(note(f"---\n{bomb}---\n"))) <= 10


def test_a_note_has_so_many_labels() -> None:
    """The first of very many."""
    most = shipped("memd.chunk.note_properties._MOST_LABELS")
    text = " ".join(f"#t{n}" for n in range(most + 1))
    assert found(text, LabelKind.TAG) == [f"t{n}" for n in range(most)]
    long = shipped("memd.chunk.note_properties._MOST_VALUE_CHARS")
    assert found(f"#{'a' * long} #{'b' * (long + 1)}", LabelKind.TAG) == ["a" * long]


def test_front_matter_has_so_many_lines_and_characters() -> None:
    """What has more lines is text; of what has more characters, the first properties count. Both are told."""
    lines = shipped("memd.chunk.note_properties._MOST_LINES")
    whole = front_matter(note("---\n" + "a: b\n" * (lines - 2) + "---\nwords"))
    assert (whole.lines, whole.values, whole.is_cut) == (lines, {"a": "b"}, False)
    longer = front_matter(note("---\n" + "a: b\n" * (lines - 1) + "---\nwords"))
    assert (longer.lines, longer.values, longer.is_cut) == (0, {}, True)

    chars = shipped("memd.chunk.note_properties._MOST_CHARS")
    first = "\n".join(f"k{n}: {'v' * 9_994}" for n in range(chars // 10_000 - 1))
    for length, is_cut in ((chars - len(first) - 5, False), (chars - len(first) - 4, True)):
        read = front_matter(note(f"---\n{first}\nz: {'v' * (length + 1)}\n---"))
        assert (read.is_cut, "z" in read.values, "k0" in read.values) == (is_cut, not is_cut, True)


def test_a_long_property_takes_no_other_with_it() -> None:
    """A picture or a summary in front matter; what is short beside it still says of when the note is, and what holds."""
    most = shipped("memd.chunk.note_properties._MOST_PROPERTY_CHARS")
    text = f"---\ncover: {'A' * most}\nstatus: superseded\ntags: [a]\ndate: 2025-05-05\n---\nwords"
    assert front_matter(note(text)).values == {"status": "superseded", "tags": ["a"], "date": "2025-05-05"}
    assert not front_matter(note(text)).is_cut
    assert found(text, LabelKind.TAG) == ["a"]
    assert set(when(text)) == {"2025-05-05"}
    exact = f"---\ncover: {'A' * (most - 7)}\nstatus: superseded\n---"
    assert front_matter(note(exact)).values.keys() == {"cover", "status"}


def test_many_lines_of_front_matter_count() -> None:
    """Its tags, its date and its title, also where it is no YAML; and it is no place for headings."""
    more = "\n".join(f"key{n}: value {n}" for n in range(1_500))
    for broken in ("", "by: @ann: new\n"):
        text = f"---\n{more}\n{broken}title: Heron\n# no heading\ntags: [a, b]\ndate: 2025-05-05\n---\nwords"
        assert found(text, LabelKind.TAG) == ["a", "b"]
        chunks = chunk(note(text), 400, 0)
        assert {one.context.split(" (")[0] for one in chunks} == {"Heron"}
        assert {days(one.when) for one in chunks} == {"2025-05-05"}


def test_a_long_list_takes_no_room_from_what_holds() -> None:
    """What a note says in one word is kept, though a list above has as many values as a note may have labels."""
    most = int(shipped("memd.chunk.note_properties._MOST_LABELS"))
    text = f"---\nlist: [{', '.join(f'v{n}' for n in range(most))}]\nstatus: superseded\n---"
    assert Label(LabelKind.PROPERTY, "status", "superseded") in labels_of(note(text))


@pytest.mark.parametrize("line", ["words that are no property", "> quoted", "key without a value"])
def test_a_line_of_dashes_begins_no_front_matter_that_is_too_long(line: str) -> None:
    """A line above a text, which has another one far below."""
    lines = int(shipped("memd.chunk.note_properties._MOST_LINES"))
    text = "---\n" + f"a: b\n{line}\n" * lines + "---"
    assert not front_matter(note(text)).is_cut
    assert not front_matter(note("---\n" + "a: b\n" * lines)).is_cut


@pytest.mark.parametrize(
    "text",
    [
        "a: &a " + "x" * 19_000 + "\n" + "\n".join(f"b{n}: [{'*a,' * 6_000}]" for n in range(9)),
        "a: &a " + "x" * 19_000 + "\n" + "\n".join(f"b{n}: [[{'*a,' * 6_000}]]" for n in range(9)),
        "tags: &a [" + "x " * 9_000 + "]\n" + "\n".join(f"b{n}: [{'*a,' * 6_000}]" for n in range(9)),
        "\n".join(f"a{n}: {'[' * 19_000}" for n in range(10)),
        "\n".join(f"a{n}: {'? ' * 9_000}" for n in range(10)),
        "\n".join(f"a{n}: b: {'[[x' * 30}" for n in range(1_900)),
        "a: " + " " * 190_000,
        "a" * 199_000,
        "\n" * 1_900,
    ],
    ids=lambda text: text[:12] + text[-12:],
)
def test_long_front_matter_takes_a_moment(text: str) -> None:
    """Aliases that repeat a long text, brackets without end, lines that are no YAML."""
    began = time.process_time()
    assert len(labels_of(note(f"---\n{text}\n---\n"))) <= int(
        shipped("memd.chunk.note_properties._MOST_LABELS")
    )
    assert time.process_time() - began < 3


def test_a_link_without_quotes_is_short() -> None:
    """What YAML reads as a list in a list may repeat a long text."""
    most = int(shipped("memd.chunk.note_properties._MOST_LINK_CHARS"))
    for length, count in ((most, 1), (most + 1, 0)):
        assert len(labels_of(note(f"---\nup: [[{'x' * length}]]\n---\n"))) == count


@table(
    ("path", "expected"),
    [
        ("memory/2026-02-09.md", "2026-02-09"),
        ("memory/2026-02-09-standup.md", "2026-02-09"),
        ("memory/2026-02-09 standup.md", "2026-02-09"),
        ("memory/20260209.md", "2026-02-09"),
        ("memory/2026_02_09.md", "2026-02-09"),
        ("memory/2026.02.09.md", "2026-02-09"),
        ("memory/standup-2026-02-09.md", "2026-02-09"),
        ("memory/2026/02/09.md", "2026-02-09"),
        ("memory/2026-02/09.md", "2026-02-09"),
        ("2026/02/09/10.md", None),
        ("memory/2026年2月9日.md", "2026-02-09"),
        ("memory/2026年2月9日 会议.md", "2026-02-09"),
        ("memory/会议2026年02月09号.md", "2026-02-09"),
        ("memory/二〇二六年二月九日.md", "2026-02-09"),
        ("memory/2026年/2月/9日.md", "2026-02-09"),
        ("memory/2026/2月9日.md", "2026-02-09"),
        ("memory/2026年2月.md", "2026-02-01..2026-02-28"),
        ("memory/2026年2月总结.md", "2026-02-01..2026-02-28"),
        ("memory/2026年/2月.md", "2026-02-01..2026-02-28"),
        ("memory/2026年第7周.md", "2026-02-09..2026-02-15"),
        ("memory/2026年.md", None),
        ("memory/2026年13月.md", None),
        ("memory/2026年2月30日.md", "2026-02-01..2026-02-28"),
        ("memory/会议2026年2月9日的记录.md", None),
        ("memory/9.2.2026.md", "2026-02-09"),
        ("memory/24.11.2026.md", "2026-11-24"),
        ("memory/24-11-2026 call.md", "2026-11-24"),
        ("memory/call-11-24-2026.md", "2026-11-24"),
        ("memory/03-04-2026.md", None),
        ("memory/v1.24.11.2026.md", None),
        ("memory/31.02.2026.md", None),
        ("memory/2026-W07.md", "2026-02-09..2026-02-15"),
        ("memory/2026-02.md", "2026-02-01..2026-02-28"),
        ("memory/review-2026-02.md", "2026-02-01..2026-02-28"),
        ("memory/2026-02/plan.md", None),
        ("memory/orders-2026.md", None),
        ("memory/2026-02-30.md", None),
        ("memory/call-0620260209.md", None),
        ("memory/plan-2026-02-09-of-the-house.md", None),
        ("MEMORY.md", None),
    ],
)
def test_a_name_says_of_when_a_note_is(path: str, expected: str | None) -> None:
    """At its beginning or its end; the directories count for a note that is named by its day alone."""
    assert days(named_time(path)) == expected


def test_the_name_goes_before_the_front_matter_and_that_before_headings() -> None:
    """A day says all; and a date on which a note was made says something where nothing else does."""
    text = "---\ndate: 2025-05-05\n---\n# 2024-04-04\nwords"
    assert when(text, "memory/2026-02-09.md") == ["2026-02-09"] * 2
    assert when(text) == ["2025-05-05"] * 2
    assert when(text.replace("date", "created")) == ["2025-05-05", "2024-04-04"]
    assert when("---\ncreated: 2025-05-05T10:00:00\n---\nwords") == ["2025-05-05"]
    assert when("---\nupdated: yesterday\n---\nwords") == [None]
    assert when("words of 2026-02-09") == [None]


def test_a_heading_dates_what_stands_under_it() -> None:
    """Until one of its rank, or a higher one; a chunk of several is of all of them."""
    text = "# Log\nzero\n## 2026-02-09\none\n### Details\ntwo\n## 2026-02-10\nthree\n# Else\nfour"
    assert when(text) == [None, "2026-02-09", "2026-02-10", None]
    packed = "# Log\n### 2026-02-09\none\n### 2026-02-11\ntwo"
    assert when(packed) == ["2026-02-09..2026-02-11"]
    assert when("words\n\n# 2026-02-09\none") == [None, "2026-02-09"]


def test_each_chunk_of_a_long_section_is_of_its_day() -> None:
    """The heading stands above all of them."""
    text = (
        "## 2026-02-09\n" + "\n".join(f"line {n} of many words" for n in range(40)) + "\n## 2026-02-10\nend"
    )
    said = when(text, longest=200)
    assert len(said) > 4
    assert said[:-1] == ["2026-02-09"] * (len(said) - 1)
    assert said[-1] == "2026-02-10"


def test_within_a_month_headings_name_its_days() -> None:
    """Without a year; a date outside of the month is another one's."""
    text = "# May\n## 12 May\none\n## 5月13日\ntwo\n## 2 June\nthree\n## 2024-05-12\nfour"
    month = "2025-05-01..2025-05-31"
    said = ["2025-05-12", "2025-05-13", month, month]
    assert when(text, "memory/2025-05.md") == said


def test_what_an_index_keeps_of_a_label_is_folded() -> None:
    """Case and width do not count."""
    assert labels_of(note("#ＷＯＲＫ")) == (Label(LabelKind.TAG, "work", "ＷＯＲＫ"),)


def test_a_time_is_in_seconds_of_the_wall() -> None:
    """Whatever the zone of the machine."""
    (one,) = chunk(note("words", "memory/1970-01-02.md"), 400, 0)
    assert one.when is not None
    assert one.when.as_seconds == (86_400, 2 * 86_400 - 1)
    assert one.when.first == datetime(1970, 1, 2)  # noqa: DTZ001
