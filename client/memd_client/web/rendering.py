"""Parses Markdown into a tree of elements and texts, from which the page builds DOM nodes; HTML is never created or passed on."""

from typing import Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

Node = str | list[Any]
"""Text, or [tag, attributes, children...]."""

MAX_DEPTH = 20  # of nested lists and quotations; deeper ones are shown as text
_TAGS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "blockquote": "blockquote",
    "strong": "strong",
    "em": "em",
    "s": "del",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "hr": "hr",
    "hardbreak": "br",
}
_TEXTS = {"text", "html_inline", "text_special"}
_MARKDOWN = MarkdownIt("commonmark", {"html": False, "maxNesting": MAX_DEPTH}).enable(
    ["table", "strikethrough"]
)


def tree(text: str) -> list[Node]:
    """Return the blocks of a note; the attributes ``from`` and ``to`` of each are its first and last line, counted from 1.

    A link has its address as ``title`` and is not clickable; an image is replaced by its description.
    """
    return _nodes(SyntaxTreeNode(_MARKDOWN.parse(text)))


def _nodes(parent: SyntaxTreeNode) -> list[Node]:
    found: list[Node] = []
    for node in parent.children:
        made = _node(node)
        found += made
    return found


def _node(node: SyntaxTreeNode) -> list[Node]:
    if node.type in _TEXTS:
        return [node.content]
    if node.type == "softbreak":
        return ["\n"]
    if node.type == "inline":
        return _nodes(node)
    lines = {} if node.map is None else {"from": node.map[0] + 1, "to": max(node.map)}
    match node.type:
        case "heading":
            return [[node.tag, lines, *_nodes(node)]]
        case "fence" | "code_block" | "html_block":
            return [["pre", lines, ["code", {}, node.content]]]
        case "code_inline":
            return [["code", {}, node.content]]
        case "link":
            return [["a", {"title": str(node.attrs.get("href", ""))}, *_nodes(node)]]
        case "image":
            return [["a", {"title": str(node.attrs.get("src", ""))}, node.content or "image"]]
        case kind if kind in _TAGS:
            return [[_TAGS[kind], lines, *_nodes(node)]]
        case _:
            return [["p", lines, node.content]]
