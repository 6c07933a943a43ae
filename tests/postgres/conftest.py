"""Members of shared memories."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from memd.postgres import administration
from memd.postgres.connection import connect
from tests.postgres_server import database_with_tables, shared_server

__all__ = ["database_with_tables", "shared_server"]


def member(admin_dsn: str, name: str, memory: str, *, may_write: bool = True) -> str:
    """The DSN of a member who may use a memory; tables and memory are made where they are missing."""
    connection: Any
    with connect(admin_dsn) as connection:
        administration.carry_out(connection)
        made = administration.grant(connection, name, memory, may_write=may_write, new_password=True)
    assert made.dsn is not None
    return made.dsn


@pytest.fixture
def member_dsn(admin_dsn: str) -> Callable[..., str]:
    """See member, in the database of the test."""
    return partial(member, admin_dsn)
