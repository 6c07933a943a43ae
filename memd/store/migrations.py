"""Numbered SQL files to a schema."""

from importlib import resources

import apsw


def steps(schema: str) -> list[tuple[int, str]]:
    """(number, SQL) of every migration of a schema, in order."""
    folder = resources.files("memd.store") / "sql" / schema
    found = [
        (int(item.name[:3]), item.read_text("utf-8"))
        for item in folder.iterdir()
        if item.name.endswith(".sql")
    ]
    return sorted(found)


def newest(schema: str) -> int:
    """The newest number of a schema that this program knows."""
    return steps(schema)[-1][0]


def migrate(connection: apsw.Connection, schema: str) -> None:
    """Run what has not run yet; each step in one transaction with its number."""
    found: int = connection.pragma("user_version")
    for number, sql in steps(schema):
        if number > found:
            connection.execute(f"BEGIN IMMEDIATE;\n{sql}\n;PRAGMA user_version = {number};\nCOMMIT;")
