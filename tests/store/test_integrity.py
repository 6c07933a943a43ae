"""Whether SQLite can do what memd asks of it."""

import sys

import pytest

from memd.store.integrity import try_engine


def test_what_is_installed_here_works() -> None:
    """Keywords and vectors are tried, and versions told."""
    tried = try_engine()
    assert (tried.keywords, tried.vectors) == (None, None)
    assert tried.vec is not None
    assert int(tried.sqlite.split(".")[0]) == 3


def test_a_missing_extension_is_a_fault_of_vectors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where sqlite-vec has no build."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    tried = try_engine()
    assert tried.keywords is None
    assert tried.vec is None
    assert "sqlite-vec does not load" in str(tried.vectors)
