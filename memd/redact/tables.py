"""Tables with a column of passwords: in Markdown, and as lines with commas or tabs."""

import re
from collections.abc import Iterator

from memd.redact import secret_values
from memd.redact.rule import Span

KIND = "password"
_NAMES = re.compile(
    r"[*_`\"' ]{0,6}(?:(?:[a-z]{2,12}[ _-])?(?:password|passwd|pwd|passphrase|pass ?code|secret|token|api[ _-]?key|access[ _-]?key|secret[ _-]?key)|(?:[一-鿿]{1,6})?(?:密码|密碼|口令|密钥|令牌))[*_`\"' ]{0,6}",
    re.IGNORECASE,
)
_RULER = re.compile(r"[ \t]*\|?(?:[ :-]{1,40}\|){1,40}[ :-]{0,40}\Z")
_ENDS_CELL = re.compile(
    r"[A-Za-z]{0,12}[*_`\"' ]{0,4}[|,\t\n\r]|[密口令]?[碼码令钥牌]{1,2}[*`\" ]{0,4}[|,\t\n\r]"
)
_HEADING = re.compile(r"[ ]?(?P<quote>\"?)[A-Za-z一-鿿][\w .-]{0,38}(?P=quote)[ \r]?")
ANCHORS = ("pass", "pw", "secret", "token", "key", "密码", "密碼", "口令", "密钥", "令牌")
_MANY_CELLS, _MANY_SIGNS = 40, 2000


def spans(text: str, places: list[int]) -> Iterator[Span]:
    """The cells of such columns.

    A table is walked once, however many of its cells speak of passwords.

    Args:
        text: The text.
        places: Where words for secrets stand in it, in order.
    """
    after = 0
    for at in places:
        if at < after or _ENDS_CELL.match(text, at) is None:
            continue
        begin = text.rfind("\n", max(after - 1, at - _MANY_SIGNS, 0), at) + 1
        end = _line_end(text, at)
        if end - begin > _MANY_SIGNS or begin < after:
            continue
        mark, columns = _columns(text[begin:end])
        if not columns or end == len(text):
            after = end
            continue
        after = end
        count = text.count(mark, begin, end)
        if mark == "|":
            ruler = _line_end(text, end + 1)
            if _RULER.match(text[end + 1 : min(ruler, end + _MANY_SIGNS)]) is None:
                continue
            after = ruler
        while after < len(text):
            start, till = after + 1, _line_end(text, after + 1)
            if till - start > _MANY_SIGNS or text.count(mark, start, till) != count:
                break
            yield from _cells(text, start, till, mark, columns)
            after = till


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _columns(header: str) -> tuple[str, tuple[int, ...]]:
    """What parts the cells of a header, and which of them are named like secrets."""
    for mark in ("|", "\t", ","):
        cells = header.split(mark)
        if 2 <= len(cells) <= _MANY_CELLS and (mark == "|" or all(map(_HEADING.fullmatch, cells))):
            return mark, tuple(at for at, cell in enumerate(cells) if _NAMES.fullmatch(cell.strip()))
    return "", ()


def _cells(text: str, start: int, end: int, mark: str, columns: tuple[int, ...]) -> Iterator[Span]:
    at = start
    for column, cell in enumerate(text[start:end].split(mark)):
        if column in columns:
            said = cell.strip().strip("`*\"'")
            value = secret_values.SecretValue(0, 0, said, True, "")
            if (
                said
                and (secret_values.is_strong(said) or (secret_values.has_symbol(said) and " " not in said))
                and secret_values.is_secret(value, "password", shouts=False, spoken=False)
            ):
                begin = at + cell.index(said)
                yield begin, begin + len(said)
        at += len(cell) + 1
