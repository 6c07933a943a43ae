from pathlib import Path

import pytest

from memd.config.settings import AgentSettings, SessionSettings
from memd.ctl.config.overlap import Overlap, overlaps


def agent(workspace: Path, *extra: Path, exclude: tuple[str, ...] = ()) -> AgentSettings:
    return AgentSettings(workspace=workspace, extra_paths=extra, exclude=exclude)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (("w",), ("w",), [("a", "b", "w", True)]),
        (("w",), ("v",), []),
        (("w",), ("w/memory",), [("a", "b", "w/memory", False)]),
        (("w",), ("w/memory/deep",), [("a", "b", "w/memory/deep", False)]),
        (("w",), ("w/projects",), []),
        (("w",), ("w/.hidden",), []),
        (("v", "w"), ("w",), [("a", "b", "w", False)]),
        (("v", "w"), ("w/x",), [("a", "b", "w/x", False)]),
        (("v", "w/memory"), ("w",), [("a", "b", "w/memory", True)]),
        (("v", "x"), ("w", "x/y"), [("a", "b", "x/y", False)]),
        (("v", "w/memory/one.md"), ("w",), []),
        (("v", "link"), ("w",), [("a", "b", "w", False)]),
    ],
)
def test_an_agent_that_searches_the_notes_of_another_is_found(
    tmp_path: Path, a: tuple[str, ...], b: tuple[str, ...], expected: list[tuple[str, str, str, bool]]
) -> None:
    """Where its workspace or one of its extra paths leads into another agent's, through a symlink too."""
    (tmp_path / "w").mkdir()
    (tmp_path / "link").symlink_to("w")
    agents = {"b": agent(*(tmp_path / path for path in b)), "a": agent(*(tmp_path / path for path in a))}
    assert list(overlaps(agents)) == [
        Overlap(reader, owner, tmp_path / path, is_mutual) for reader, owner, path, is_mutual in expected
    ]


def test_what_is_excluded_is_not_searched(tmp_path: Path) -> None:
    """A glob takes another agent's directory out."""
    agents = {"a": agent(tmp_path, exclude=("memory/b/**",)), "b": agent(tmp_path / "memory/b")}
    assert list(overlaps(agents)) == []


def test_agents_that_index_the_same_transcripts(tmp_path: Path) -> None:
    """It is told of transcripts apart from notes."""
    base = tmp_path.resolve()
    sessions = SessionSettings(paths=(base / "chats",))
    agents = {
        name: AgentSettings(workspace=base / name, sources=("memory", "sessions"), sessions=sessions)
        for name in ("a", "b")
    }
    assert list(overlaps(agents)) == [Overlap("a", "b", base / "chats", is_mutual=True, is_of_notes=False)]
