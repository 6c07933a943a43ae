"""Messages of every kind with every field set, made from their types."""

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from memd_client.messages import Failure, Hello, Reply, Request, WireMessage

# As the definition of a failure lists them.
CODES = (
    "bad_request",
    "unsupported",
    "too_large",
    "unknown_agent",
    "denied",
    "busy",
    "timed_out",
    "unavailable",
    "internal",
    "protocol",
)


def samples() -> Iterator[tuple[str, WireMessage]]:
    """(way, message): each kind with all its fields, and again with only those that it must have; each code of failure."""
    yield "hello", _made(Hello, whole=True)
    for way, kinds in (("request", get_args(Request)), ("reply", get_args(Reply))):
        for kind in kinds:
            yield way, _made(kind, whole=True)
            yield way, _made(kind, whole=False)
    for code in CODES:
        yield "reply", Failure(code=code, message=f"why it is {code}, 为什么", hint="what to do")


def _made(kind: type[Any], *, whole: bool) -> Any:
    hints = get_type_hints(kind)
    fields = [field for field in msgspec.structs.fields(kind) if whole or field.required]
    # What is true unless it is said otherwise would not be missed if it were lost.
    return kind(
        **{
            field.name: False if field.default is True else _value(hints[field.name], field.name)
            for field in fields
        }
    )


def _value(kind: Any, name: str) -> Any:
    """A value that is no default: a reader that lost it would be found out."""
    origin, arguments = get_origin(kind), get_args(kind)
    match origin:
        case None if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return _made(kind, whole=True)
        case None:
            return _PLAIN[kind](name)
        case _ if origin in {types.UnionType, Union}:
            return _value(next(one for one in arguments if one is not types.NoneType), name)
        case _ if origin is Literal:
            return arguments[-1]
        case _ if origin is dict:
            return {f"{name} 键": _value(arguments[1], name)}
        case _ if origin is tuple and arguments[-1] is not ...:
            return tuple(_value(one, name) for one in arguments)
        case _:
            return [_value(arguments[0], name)]


_PLAIN: dict[Any, Any] = {
    str: lambda name: f"{name} 值",
    int: lambda name: 1_000 + len(name),
    float: lambda name: 0.25 + len(name),
    bool: lambda _: True,
}
