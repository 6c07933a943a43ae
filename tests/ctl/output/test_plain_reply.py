"""Replies as plain values."""

from memd.ctl.output.plain_reply import plain
from memd_client.messages import Degraded, ExplainedHit, Found, Hit


def test_every_field_is_named() -> None:
    """Also those that the socket leaves out because they have their default."""
    hit = Hit(path="a.md", start_line=1, end_line=2, score=0.5, snippet="x")
    assert plain(Found(results=[hit], degraded=[Degraded(part="vector", reason="gone")])) == {
        "results": [
            {
                "path": "a.md",
                "start_line": 1,
                "end_line": 2,
                "score": 0.5,
                "snippet": "x",
                "source": "memory",
                "citation": None,
                "own_scale": False,
            }
        ],
        "backend": "builtin",
        "provider": "none",
        "model": "",
        "mode": "hybrid",
        "fallback": False,
        "fallback_from": None,
        "fallback_reason": None,
        "citations": False,
        "scope_denied": False,
        "stale": False,
        "degraded": [{"part": "vector", "reason": "gone"}],
        "max_chars": 0,
        "omitted": 0,
    }


def test_tables_and_tuples_are_plain_too() -> None:
    """JSON knows lists and tables alone."""
    window = ExplainedHit(path="a", start_line=1, end_line=1, score=0, window=(1, 2))
    assert plain({"a": (1, None), "b": window})["b"]["window"] == [1, 2]
    assert plain({"a": (1, None)}) == {"a": [1, None]}
