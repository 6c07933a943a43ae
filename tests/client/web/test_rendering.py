"""Markdown as a tree."""

from typing import Any

import pytest

from memd_client.web.rendering import MAX_DEPTH, tree
from tests.bounds import shipped
from tests.client.web.conftest import HOSTILE

DEPTH = shipped("memd_client.web.rendering.MAX_DEPTH")


def tags(nodes: list[Any]) -> set[str]:
    """All tags of a tree."""
    return {tag for node in nodes if isinstance(node, list) for tag in (node[0], *tags(node[2:]))}


def texts(nodes: list[Any]) -> str:
    """All text of a tree."""
    return "".join(node if isinstance(node, str) else texts(node[2:]) for node in nodes)


def test_blocks_have_their_lines() -> None:
    """By them the page finds what a hit shows."""
    assert tree("# Title\n\nSome **bold** text\nof two lines.\n\n- one\n- two\n") == [
        ["h1", {"from": 1, "to": 1}, "Title"],
        ["p", {"from": 3, "to": 4}, "Some ", ["strong", {}, "bold"], " text", "\n", "of two lines."],
        [
            "ul",
            {"from": 6, "to": 7},
            ["li", {"from": 6, "to": 6}, ["p", {"from": 6, "to": 6}, "one"]],
            ["li", {"from": 7, "to": 7}, ["p", {"from": 7, "to": 7}, "two"]],
        ],
    ]


def test_a_hostile_note_is_text() -> None:
    """HTML is text, links lead nowhere, and pictures are not fetched."""
    made = tree(HOSTILE)
    assert tags(made) == {
        "h1",
        "p",
        "a",
        "strong",
        "ul",
        "li",
        "blockquote",
        "pre",
        "code",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
    }
    text = texts(made)
    assert '<script>document.title = "owned"</script>' in text
    assert "<img src=x onerror=alert(1)>" in text
    assert "[a link](javascript:alert(1))" in text
    [paragraph] = [node for node in made if isinstance(node, list) and "a picture" in texts([node])]
    links = [node for node in paragraph[2:] if isinstance(node, list)]
    assert links == [
        ["a", {"title": "https://elsewhere.example/x.png"}, "a picture"],
        ["a", {"title": "https://elsewhere.example/"}, "https://elsewhere.example/"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "> " * 5000 + "deep",
        "- " * 5000 + "deep",
        "[" * 5000,
        "*" * 20_000,
        "`" * 20_000,
        "![" * 5000 + "](" * 5000,
        "\0\x1b[31m\u202e",
        "<" * 20_000,
        "a" * 200_000,
        "|" * 10_000 + "\n" + "-|" * 10_000,
    ],
    ids=lambda text: ascii(text[:4]),
)
def test_awkward_text(text: str) -> None:
    """It ends, and holds no more than so many things in each other."""
    assert _depth(tree(text)) <= 2 * MAX_DEPTH == 2 * DEPTH


def test_so_many_quotations_are_shown_in_each_other() -> None:
    """What is deeper is a text, not another one."""
    for count, shown in ((DEPTH - 2, DEPTH - 1), (DEPTH - 1, DEPTH), (DEPTH + 5, DEPTH)):
        assert _depth(tree("> " * count + "deep")) == shown


def _depth(nodes: list[Any]) -> int:
    return max((1 + _depth(node[2:]) for node in nodes if isinstance(node, list)), default=0)
