from hypothesis import given
from hypothesis import strategies as st

from memd.chunk.parts import LEAST, MOST, parts_of
from memd.text.tokens import width

TEXTS = st.lists(
    st.sampled_from(
        [
            "- a short line",
            "",
            "  ",
            "一行中文，说一件事",
            "A sentence of some length, which goes on and on. Another one! And a third? " * 3,
            "很长的一行，里面有好几句话。第二句在这里！第三句也在这里；第四句结束了。" * 4,
            "x" * 300,
            "## heading",
        ]
    ),
    max_size=12,
).map("\n".join)


@given(TEXTS)
def test_parts_hold_all_that_is_said_once(text: str) -> None:
    """In order, without overlap, and nothing but space between them; a text that would be one part has none."""
    spans = parts_of(text)
    assert len(spans) != 1
    at = 0
    for begin, end in spans:
        assert at <= begin < end <= len(text)
        assert not text[at:begin].strip()
        assert text[begin:end] == text[begin:end].strip("\n")
        at = end
    if spans:
        assert not text[at:].strip()


@given(TEXTS)
def test_parts_are_of_a_width(text: str) -> None:
    """None is wider than it may be, but for a sentence that has no end; two that follow each other do not fit in one."""
    spans = parts_of(text)
    widths = [width(text[begin:end]) for begin, end in spans]
    for (begin, end), size in zip(spans, widths, strict=True):
        whole = "\n" not in text[begin:end]
        assert size <= MOST + text[begin:end].count("\n") * 3 or whole
    for size, (_, end), (begin, after) in zip(widths, spans, spans[1:], strict=False):
        first = text[begin:after].split("\n", maxsplit=1)[0]
        assert size >= LEAST - 3 or size + width(first) > MOST - 3, (text[:end], first)


def test_lines_go_together_while_they_are_short() -> None:
    """A list of short lines has a part for a few of them each; Chinese ones for fewer."""
    english = "\n".join(f"- line {n} is some thirty wide" for n in range(8))
    chinese = "\n".join(f"- 第{n}行大约有三十个字符的宽度吧" for n in range(8))
    assert [english[b:e].count("\n") + 1 for b, e in parts_of(english)] == [4, 4]
    assert [chinese[b:e].count("\n") + 1 for b, e in parts_of(chinese)] == [3, 3, 2]


def test_a_long_line_is_divided_between_sentences() -> None:
    """In either language."""
    text = "The first sentence tells one thing at some length, as people do when they write. " * 4
    for begin, end in parts_of(text.strip()):
        assert text[begin:end].startswith("The first")
        assert text[begin:end].endswith("write.")
    chinese = "这一句话说的是一件事情，写得比较长，因为人们就是这样写的。" * 6
    assert all(chinese[begin:end].endswith("。") for begin, end in parts_of(chinese))


def test_one_thing_has_no_parts() -> None:
    """The whole says it already."""
    assert parts_of("- a line\n- and another") == ()
    assert parts_of("") == ()
