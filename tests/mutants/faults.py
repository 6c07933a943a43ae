"""The faults that one file could have: small changes of its source, each of which some test should notice."""

import ast
import difflib
import re
from collections.abc import Iterator

import msgspec

_OTHER: dict[type[ast.AST], ast.AST] = {
    ast.Lt: ast.LtE(),
    ast.LtE: ast.Lt(),
    ast.Gt: ast.GtE(),
    ast.GtE: ast.Gt(),
    ast.Eq: ast.NotEq(),
    ast.NotEq: ast.Eq(),
    ast.Is: ast.IsNot(),
    ast.IsNot: ast.Is(),
    ast.In: ast.NotIn(),
    ast.NotIn: ast.In(),
    ast.And: ast.Or(),
    ast.Or: ast.And(),
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.FloorDiv(),
    ast.FloorDiv: ast.Mult(),
    ast.Div: ast.Mult(),
}
_LOGS = frozenset(
    {"log", "_log", "logger"}
)  # what is logged is told by few tests, and is no fault of what is done


class Fault(msgspec.Struct, frozen=True):
    """A change of one place of a source file."""

    start: int  # byte offsets of what is replaced
    end: int
    text: str  # what stands there instead
    line: int  # the first one that is changed, from 1

    def applied(self, source: str) -> str:
        """The source with this fault."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()

    def shown(self, source: str) -> tuple[str, str]:
        """The lines that change, without comments and what stands around them: as they were, and as they are."""
        compared = difflib.ndiff(source.splitlines(), self.applied(source).splitlines())
        changed = [line for line in compared if line[:2] in {"- ", "+ "}]
        return tuple(" ".join(code_of(line[2:]) for line in changed if line[0] == sign) for sign in "-+")  # type: ignore[return-value]  # two of them


def code_of(line: str) -> str:
    """A line without its indentation, and without a comment at its end: that may be put in other words."""
    return re.sub(r"\s+# .*", "", line.strip())


def faults(source: str) -> list[Fault]:
    """All faults of a source, in the order of their places."""
    offsets = [0]
    for line in source.encode().splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))

    def at(line: int, column: int) -> int:
        return offsets[line - 1] + column

    found = {
        Fault(
            at(node.lineno, node.col_offset),
            at(node.end_lineno or 0, node.end_col_offset or 0),
            text,
            node.lineno,
        )
        for node, text in _changes(ast.parse(source))
    }
    return sorted(found, key=lambda fault: (fault.start, fault.end, fault.text))


def _changes(tree: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """What could stand instead of each part, but for annotations and texts for people."""
    for node in _children(tree):
        if isinstance(node, ast.Expr) and _root(node.value) in _LOGS:
            continue
        if isinstance(node, ast.If) and _root(node.test) == "TYPE_CHECKING":
            continue  # tests of the daemon see what is imported
        if isinstance(node, ast.Raise) and node.exc is not None and _root(node.exc) == "AssertionError":
            continue  # nothing reaches it
        if isinstance(node, ast.expr):
            yield from ((node, text) for text in _of_expression(node))
        elif isinstance(node, ast.stmt):
            yield from _of_statement(node)
        yield from _changes(node)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "type_params", "decorator_list"} or isinstance(
            node, ast.JoinedStr
        ):
            continue
        if isinstance(node, ast.ClassDef) and name == "keywords":
            continue
        if isinstance(node, ast.keyword) and node.arg == "strict":
            continue  # of zip: it only asserts
        members = value if isinstance(value, list) else [value]
        yield from (member for member in members if isinstance(member, ast.AST))


def _of_expression(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=comparators) if type(op) in _OTHER:
            yield _text(ast.Compare(left, [_OTHER[type(op)]], comparators))  # type: ignore[list-item]
        case ast.BoolOp(op=op, values=values):
            yield _text(ast.BoolOp(_OTHER[type(op)], values))  # type: ignore[arg-type]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OTHER:
            yield _text(ast.BinOp(left, _OTHER[type(op)], right))  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield _text(operand)
        case ast.Constant(value=bool(value)):
            yield repr(not value)
        case ast.Constant(value=int(value)):
            yield repr(value + 1)
        case ast.Constant(value=float(value)):
            yield repr(value * 2 + (value == 0))
        case ast.Call(func=ast.Name(id=("min" | "max") as name), args=arguments, keywords=keywords):
            yield _text(ast.Call(ast.Name("max" if name == "min" else "min"), arguments, keywords))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            yield _text(ast.IfExp(test, orelse, body))
        case _:
            pass


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    match node:
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
            yield test, f"(not {_text(test)})"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "pass"
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete():
            yield node, "pass"
        case _:
            pass


def _text(node: ast.expr) -> str:
    """The source of an expression, in parentheses: what stands around it may bind closer."""
    return f"({ast.unparse(ast.fix_missing_locations(node))})"


def _root(node: ast.expr) -> str:
    while True:
        match node:
            case ast.Await(value=inner) | ast.Call(func=inner):
                node = inner
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return name
            case ast.Attribute(value=inner):
                node = inner
            case ast.Name(id=name):
                return name
            case _:
                return ""
