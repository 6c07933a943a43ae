"""Replies of the daemon as plain values, every field named. Pure."""

from typing import Any

import msgspec


def plain(value: object) -> Any:
    """Tables, lists and scalars that say what a value says.

    The structs of the protocol leave out what has its default, for the sake of the socket. Who reads JSON with a
    filter should find every field, so nothing is left out here.
    """
    match value:
        case msgspec.Struct():
            return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        case dict():
            return {str(name): plain(member) for name, member in value.items()}
        case list() | tuple():
            return [plain(member) for member in value]
        case _:
            return value
