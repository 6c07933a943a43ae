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


def migrate(connection: apsw.Connection, schema: str) -> tuple[int, int]:
    """Run what has not run yet; each step in one transaction with its number.

    Returns:
        (schema number found, newest number known). Where found is the larger, nothing was done.
    """
    found: int = connection.pragma("user_version")
    known = steps(schema)
    for number, sql in known:
        if number > found:
            connection.execute(f"BEGIN IMMEDIATE;\n{sql}\n;PRAGMA user_version = {number};\nCOMMIT;")
    return found, known[-1][0]
