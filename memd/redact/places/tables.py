"""Finds tables with a column of passwords: in Markdown, drawn, aligned, in HTML, as delimited lines, and as SQL INSERTs."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from memd.redact.rule import Span
from memd.redact.values import secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either

KIND = "password"
_NAMES = re.compile(
    r"[*_`\"'\[ ]{0,6}(?:(?:[a-z]{2,12}[ _-]){0,2}(?:pass(?:word|wort|wd|phrase)|pwd?|pass ?code|secret|token|api[ _-]?key"
    r"|access[ _-]?key|secret[ _-]?key)|(?:[一-鿿]{1,6})?(?:密码|密碼|口令|密钥|令牌))[*_`\"'\] ]{0,6}",
    re.IGNORECASE,
)
# The same in other languages, which may be followed by what it is for.
_ABROAD = re.compile(
    rf"[*_`\"' ]{{0,4}}(?:{either(SECRET_WORDS.passwords)})[^\W\d_]{{0,4}}[*_`\"' ]{{0,4}}", re.IGNORECASE
)
# Columns of codes, whose cells are digits.
_CODES = (
    "door code", "gate code", "entry code", "alarm code", "lock code", "safe code", "locker code", "access code", "pin", "keypad code", "pincode", "türcode", "digicode", "门禁码", "门禁密码", "开门密码", "暗証番号",
)  # fmt: skip
_NAMES_OF_CODES = re.compile(
    rf"[*_`\"' ]{{0,4}}(?:(?!gpio|board|chip|bcm|arduino)[a-z-]{{2,12}}[ _](?=pin))?(?:{either(_CODES)})(?:[ _-]?code)?s?[*_`\"' ]{{0,4}}",
    re.IGNORECASE,
)
_CODE = re.compile(r"[#*]?(?!(?:19|20)[0-9]{2}\Z)[0-9]{4,8}[#*]?|[0-9]{1,2}(?:-[0-9]{1,2}){2,3}")
_PASS = re.compile(r"[*_`\" ]{0,4}pass[*_`\" ]{0,4}", re.IGNORECASE)
_LOGS_IN = re.compile(
    r"(?<![a-z])(?:user|login|log-in|account|e-?mail|username)|[账帐]号|用户", re.IGNORECASE
)
_RULER = re.compile(r"[ \t]{0,40}[-+:|─┼═╪╬ ├┤╞╡╠╣]{3,2000}+\r?\Z")
# Separators of cells; in an aligned table, two blanks.
_ENDS_CELL = re.compile(
    r"(?:[^\W\d一-鿿]|-){0,16}+(?:[ ]code)?[*_`\"' \]]{0,4}(?:[|,;│\t\n\r)]|</|\Z)|[A-Za-z_]{0,16}[ ]{2}|(?:门禁|开门|[密口令])?[碼码令钥牌]{1,2}[*`\" ]{0,4}[|,;│\t\n\r)<]"
)
_HEADING = re.compile(r"[ ]?(?P<quote>\"?)[^\W\d_][\w .-]{0,38}(?P=quote)[ \r]?")
# No number: in a row below the header stand amounts and ages ("3", "212d").
_ALIGNED = re.compile(r"(?![0-9.]{1,12}[a-zA-Z%]{0,3}[ ]?\Z)(?:[^\s|,;<>(){}=:\"']{1,30}[ ]?){1,4}")
_PARTS_CELLS = re.compile(r"[|│\t,;]|[ ]{2}")  # no line without it is the header of a table
_GAP = re.compile(r"[ ]{2,}|\t+")
_PARTED = re.compile(r"[^\s](?:[^\s]|[ ](?=[^\s]))*")
ANCHORS = (
    "pass", "pw", "secret", "token", "key", "密码", "密碼", "口令", "密钥", "令牌", *_CODES,
    *(word for word in SECRET_WORDS.passwords if "pass" not in word and "pw" not in word),
)  # fmt: skip
_MANY_CELLS, _MANY_SIGNS = 40, 2000
_ROW = re.compile(r"<tr\b[^<>]{0,200}>", re.IGNORECASE)
_CELL = re.compile(
    r"<(?:t[hd]|dt|dd)\b[^<>]{0,200}>\s{0,40}(?:<[a-z]{1,10}>){0,2}(?P<said>[^<>]{0,200}?)\s{0,40}</",
    re.IGNORECASE,
)
_IN_CELL = re.compile(r"<(?:t[hd]|dt)\b[^<>]{0,200}>[^<>]{0,40}\Z", re.IGNORECASE)
_INSERT = re.compile(
    r"\binsert\s{1,4}(?:ignore\s{1,4})?into\s{1,4}[^\s()]{1,80}\s{0,8}\((?P<columns>[^()]{1,1000})\)\s{0,8}values\s{0,8}(?=\()",
    re.IGNORECASE,
)
_TUPLE = re.compile(r"\s{0,8},?\s{0,8}\((?=[^()])")
_FIELD = re.compile(
    r"\s{0,8}(?:[NEnb]?'(?P<said>(?:[^'\\]|''|\\.){0,400}+)'|\"(?P<double>[^\"\n]{0,400}+)\"|[^,()'\"]{0,400}+(?:\([^()]{0,200}\))?)\s{0,8}(?P<end>[,)])"
)


_OF_KUBERNETES = re.compile(r"\bkind[\"']?[ ]?:[ ]{0,2}[\"']?\Z")
_DATA = re.compile(
    r"(?<![\w-])(?:data|stringData)[\"']?[ ]?:[ \t]{0,4}(?P<data>\{[^{}]{1,4000}\}|\n(?:[ \t]{1,16}[^\n]{1,2000}+\n?){1,60})"
)
_BASE64_VALUE = re.compile(
    r"[\w.-]{1,100}[\"']?[ ]?:[ ]{0,4}[\"']?(?P<secret>[A-Za-z0-9+/]{4,4000}+={0,2})[\"']?[ \t]{0,4}(?=[,\n}]|\Z)"
)


def spans(text: str, places: list[int]) -> Iterator[Span]:
    """Yield the cells of columns that are named like secrets.

    A table is walked once, however many of its cells mention passwords.

    Args:
        text: The text.
        places: The ascending offsets of words for secrets.
    """
    after = 0
    for at in places:
        if (
            at >= after
            and text[at - 1 : at] in {" ", '"', "'"}
            and _OF_KUBERNETES.search(text, max(0, at - 24), at)
        ):
            yield from _of_secret(text, max(after, at - 2 * _MANY_SIGNS), at)
        if at < after or _ENDS_CELL.match(text, at) is None:
            continue
        begin = text.rfind("\n", max(after - 1, at - _MANY_SIGNS, 0), at) + 1
        end = text.find("\n", at, begin + _MANY_SIGNS + 1)
        if end < 0:
            end = min(len(text), begin + _MANY_SIGNS + 1)
        is_long = end - begin > _MANY_SIGNS
        if _IN_CELL.search(text, max(after, at - 240), at):
            found, after = _of_html(text, max(after, at - _MANY_SIGNS), at)
        elif (insert := _insert_around(text, max(after, at - _MANY_SIGNS), at)) is not None:
            found, after = _inserted(text, insert)
        elif is_long or begin < after:
            continue
        elif _PARTS_CELLS.search(text, begin, end) is None:
            found, after = [], end
        else:
            found, after = _of_lines(text, begin, end)
        yield from found


def _of_secret(text: str, begin: int, at: int) -> Iterator[Span]:
    """Yield the values of a Kubernetes Secret around an anchor."""
    begin = max(begin, text.rfind("\n---", begin, at))
    end = text.find("\n---", at, at + 2 * _MANY_SIGNS)
    end = min(len(text), at + 2 * _MANY_SIGNS) if end < 0 else end
    for data in _DATA.finditer(text, begin, end):
        for value in _BASE64_VALUE.finditer(text, *data.span("data")):
            yield value.span("secret")


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _of_lines(text: str, begin: int, end: int) -> tuple[list[Span], int]:
    """Return the cells of a table whose rows are lines, and the end of the table, or else of its first line."""
    header = text[begin:end]
    mark, columns = _columns(header)
    starts = () if mark else _starts(header)
    cells: list[_Cell] = []
    if not (columns or starts) or end == len(text):
        return [], end
    after = end
    ruler = _line_end(text, end + 1)
    if _RULER.match(text[end + 1 : min(ruler, end + _MANY_SIGNS)]) is not None:
        after = ruler
    elif mark == "│" or (mark and not _has_no_ruler(header, text[end + 1 : ruler])):
        return [], end
    is_drawn = after == ruler or mark not in {"|", "│"}
    count = header.count(mark) if mark else 0
    while after < len(text):
        start, till = after + 1, _line_end(text, after + 1)
        row = text[start : min(till, start + _MANY_SIGNS + 1)]
        if len(row) > _MANY_SIGNS:
            break
        if mark and row.count(mark) == count:
            # Without a ruler, it may be a sentence with bars.
            cells += [cell for cell in _cells(row, start, mark, columns) if is_drawn or " " not in cell.said]
        elif not mark and row.strip():
            cells += _ordered_cells(row, start, header) or _aligned_cells(row, start, starts)
        elif not (mark in {"|", "│"} and _RULER.match(row) and row.strip()):
            break
        after = till
    return _secrets_of(cells), after


def _has_no_ruler(header: str, row: str) -> bool:
    """Return whether the first two lines of a table are enough without a ruler: its cells are parted by bars and blanks, or not by bars."""
    count = header.count("|")
    return not count or (
        count == header.count(" | ") == row.count(" | ")
        and count > 1
        and row.count("|") == count
        and all(map(_HEADING.fullmatch, header.split("|")))
    )


class _Cell(msgspec.Struct, frozen=True):
    """A cell of a column that is named like a secret."""

    start: int
    said: str
    of_codes: bool


def _secrets_of(cells: Sequence[_Cell]) -> list[Span]:
    """Return the cells that hold secrets; where half of the column's cells do, a word is one, too."""
    secrets = [cell for cell in cells if _is_secret(cell.said, of_codes=cell.of_codes)]
    words = [cell for cell in cells if not cell.of_codes and _may_be_word(cell.said)]
    if len(secrets) >= len(words):
        secrets += words
    return sorted({(cell.start, cell.start + len(cell.said)) for cell in secrets})


def _columns(header: str) -> tuple[str, Mapping[int, bool]]:
    """Return the separator of a header's cells, and the indexes of those that are named like secrets, with whether they are codes."""
    for mark in ("|", "│", "\t", ",", ";"):
        cells = header.split(mark)
        is_drawn = mark in {"|", "│"}
        if 2 <= len(cells) <= _MANY_CELLS and (is_drawn or all(map(_HEADING.fullmatch, cells))):
            return mark, {
                at: _is_of_codes(cell) for at, cell in enumerate(cells) if _is_name(cell.strip(), header)
            }
    return "", {}


def _is_of_codes(name: str) -> bool:
    return _NAMES_OF_CODES.fullmatch(name.strip()) is not None


def _is_name(cell: str, header: str) -> bool:
    """Return whether a cell of a header is named like a secret; "pass" alone is so beside a column for who logs in."""
    return (
        _NAMES.fullmatch(cell) is not None
        or _ABROAD.fullmatch(cell) is not None
        or _NAMES_OF_CODES.fullmatch(cell) is not None
        or (_PASS.fullmatch(cell) is not None and _LOGS_IN.search(header) is not None)
    )


def _starts(header: str) -> tuple[tuple[int, int, bool], ...]:
    """Return the first and last character of each column of an aligned table that is named like a secret, with whether it has codes."""
    line = header.rstrip()
    gaps = [match.span() for match in _GAP.finditer(line) if match.start() > 0]
    if not 1 <= len(gaps) < _MANY_CELLS:
        return ()
    edges = [len(line) - len(line.lstrip()), *(end for _, end in gaps)]
    ends = [*(start for start, _ in gaps), len(line)]
    cells = [line[start:end] for start, end in zip(edges, ends, strict=True)]
    if not all(map(_ALIGNED.fullmatch, cells)):
        return ()
    following = [*edges[1:], _MANY_SIGNS]
    return tuple(
        (start, till, _is_of_codes(cell))
        for start, till, cell in zip(edges, following, cells, strict=True)
        if _is_name(cell, header)
    )


def _aligned_cells(row: str, start: int, columns: Sequence[tuple[int, int, bool]]) -> Iterator[_Cell]:
    for begin, till, of_codes in columns:
        if begin < len(row) and (begin == 0 or row[begin - 1].isspace()):
            said = row[begin:till].split("  ", maxsplit=1)[0].strip()
            if said and " " not in said:
                yield _Cell(start + begin, said, of_codes)


def _ordered_cells(row: str, start: int, header: str) -> list[_Cell]:
    """Return cells by index if the row has as many as the header: double-width characters shift those of an aligned table."""
    cells = list(_PARTED.finditer(row))
    names = [cell[0] for cell in _PARTED.finditer(header)]
    if len(cells) != len(names):
        return []
    return [
        _Cell(start + cell.start(), cell[0], _is_of_codes(name))
        for cell, name in zip(cells, names, strict=True)
        if _is_name(name, header) and " " not in cell[0]
    ]


def _cells(row: str, start: int, mark: str, columns: Mapping[int, bool]) -> Iterator[_Cell]:
    at = start
    for column, cell in enumerate(row.split(mark)):
        if column in columns:
            said = cell.strip().strip("`*\"'")
            if said:
                yield _Cell(at + cell.index(said), said, columns[column])
        at += len(cell) + 1


def _is_secret(said: str, *, of_codes: bool = False) -> bool:
    """Return whether a cell holds a secret, and not a word about one; in a column of codes, that is digits."""
    if of_codes:
        return _CODE.fullmatch(said) is not None
    value = secret_values.SecretValue(0, 0, said, True, "")
    return (
        bool(said)
        and (secret_values.is_strong(said) or (secret_values.has_symbol(said) and " " not in said))
        and secret_values.is_secret(value, "password", shouts=False, spoken=False)
    )


_WORD_OF_CELL = re.compile(r"[^\W\d_][\w.-]{3,39}")


def _may_be_word(said: str) -> bool:
    """Return whether a cell is a word that may be a password among others."""
    return (
        _WORD_OF_CELL.fullmatch(said) is not None
        and secret_values.may_be_plain(said)
        and not _is_secret(said)
        and not secret_values.is_statement(said)
    )


def _of_html(text: str, begin: int, at: int) -> tuple[list[Span], int]:
    """Return the cell after one that is named like a secret, or the cells below it in an HTML table."""
    row = _last_row(text, begin, at)
    start = begin if row is None else row
    end = text.find("</tr>", at, at + _MANY_SIGNS)
    end = at + _MANY_SIGNS if end < 0 else end
    cells = list(_CELL.finditer(text, start, end))
    named = [number for number, cell in enumerate(cells) if _NAMES.fullmatch(cell["said"])]
    found = [
        cells[number + 1].span("said")
        for number in named
        if number + 1 < len(cells) and number + 1 not in named and _is_secret(cells[number + 1]["said"])
    ]
    if found or row is None or not named:
        return found, min(end, len(text)) if found else at + 1
    after = end
    while (row_begins := _ROW.search(text, after, after + _MANY_SIGNS)) is not None:
        if text.find("</table", after, row_begins.start()) >= 0:
            break
        after = row_begins.end()
        row_end = text.find("</tr>", after, after + 2 * _MANY_SIGNS)
        if row_end < 0:
            break
        below = list(_CELL.finditer(text, after, row_end))
        found += [
            below[number].span("said")
            for number in named
            if number < len(below) and _is_secret(below[number]["said"])
        ]
        after = row_end
    return found, after


def _last_row(text: str, begin: int, at: int) -> int | None:
    rows = [match.end() for match in _ROW.finditer(text, begin, at)]
    return rows[-1] if rows else None


def _insert_around(text: str, begin: int, at: int) -> re.Match[str] | None:
    """Return the INSERT whose list of columns contains a place."""
    opened = text.rfind("(", begin, at)
    if opened < 0:
        return None
    verb = text[max(begin, opened - 120) : opened].lower().rfind("insert")
    match = None if verb < 0 else _INSERT.match(text, max(begin, opened - 120) + verb)
    return match if match is not None and match.start("columns") <= at < match.end("columns") else None


def _inserted(text: str, insert: re.Match[str]) -> tuple[list[Span], int]:
    """Return the values of columns that are named like secrets, in all rows."""
    columns = [column.strip() for column in insert["columns"].split(",")]
    named = {number for number, column in enumerate(columns) if _NAMES.fullmatch(column)}
    found: list[Span] = []
    at = insert.end()
    while named and (opened := _TUPLE.match(text, at)) is not None:
        at = opened.end()
        for number in range(len(columns)):
            field = _FIELD.match(text, at)
            if field is None:
                return found, at
            group = "said" if field["said"] is not None else "double"
            if number in named and field[group] and _is_secret(field[group]):
                found.append(field.span(group))
            at = field.end()
            if field["end"] == ")":
                break
    return found, at
