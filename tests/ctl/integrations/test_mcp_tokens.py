"""The tokens of memd-ctl mcp serve."""

import base64
import stat
from pathlib import Path

from memd.ctl.integrations.mcp_tokens import McpTokens
from tests.bounds import shipped


def test_each_agent_and_session_key_has_a_token_of_its_own(tmp_path: Path) -> None:
    """For its owner alone, in a directory that is too; it says whose it is, and its repr does not say what it is."""
    tokens = McpTokens(tmp_path / "mcp-tokens")
    assert tokens.all() == []
    assert tokens.presented("") is None
    asked = [
        (None, None),
        ("main", None),
        ("main", "agent:main:main"),
        ("work", None),
        (None, "agent:main:main"),
    ]
    made = [tokens.make(*one) for one in asked]
    assert [tokens.find(*one) for one in asked] == made
    assert {one.token for one in tokens.all()} == {one.token for one in made}
    assert len({one.token for one in made}) == len(asked)
    for one, (agent, key) in zip(made, asked, strict=True):
        assert len(base64.urlsafe_b64decode(f"{one.token}=")) == shipped(
            "memd.ctl.integrations.mcp_tokens._RANDOM"
        )
        assert tokens.presented(one.token) == one
        assert (one.agent, one.session_key) == (agent, key)
        assert one.token not in repr(one)
        assert stat.S_IMODE(tokens.file(agent, key).stat().st_mode) == 0o600
    assert stat.S_IMODE(tokens.directory.stat().st_mode) == 0o700
    assert tokens.presented(f"{made[0].token}x") is None
    assert tokens.presented("\ud800") is None


def test_a_token_that_is_replaced_or_revoked_is_in_force_no_more(tmp_path: Path) -> None:
    """The others are."""
    tokens = McpTokens(tmp_path)
    old, other = tokens.make("main", None), tokens.make("work", None)
    new = tokens.make("main", None)
    assert [tokens.presented(one.token) for one in (old, new, other)] == [None, new, other]
    assert tokens.revoke("main", None) is True
    assert tokens.revoke("main", None) is False
    assert [tokens.presented(one.token) for one in (new, other)] == [None, other]


def test_what_others_may_read_is_no_token(tmp_path: Path) -> None:
    """Nor is a link, a directory, an empty token, or what is too long; a new one in its place is."""
    tokens = McpTokens(tmp_path)
    made = tokens.make("main", None)
    file = tokens.file("main", None)
    for mode in (0o640, 0o604, 0o620):
        file.chmod(mode)
        assert (tokens.presented(made.token), tokens.all()) == (None, [])
    made = tokens.make("main", None)
    assert tokens.presented(made.token) == made
    moved = file.rename(tmp_path / "elsewhere")
    file.symlink_to(moved)
    assert tokens.presented(made.token) is None
    longest = shipped("memd.ctl.integrations.mcp_tokens._MAX_BYTES") - len('{"token":""}')
    for text, count in (
        (b'{"token":""}', 0),
        (b"[]", 0),
        (b'{"token":"%s"}' % (b"x" * longest), 1),
        (b'{"token":"%s"}' % (b"x" * (longest + 1)), 0),
    ):
        moved.write_bytes(text)
        file.unlink()
        file.hardlink_to(moved)
        assert len(tokens.all()) == count
    file.unlink()
    file.mkdir()
    assert tokens.all() == []
