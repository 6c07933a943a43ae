"""Which roots of an index the configuration has replaced by others."""

import pytest

from memd.sources.origins import RootOrigin, compare

WORKSPACE = RootOrigin("", "/home/ann/notes", "/home/ann/notes")
LINKED = RootOrigin("", "/home/ann/link", "/srv/one")
CHATS = RootOrigin("sessions/chats", "/home/ann/chats", "/home/ann/chats")
CLAUDE = RootOrigin("sessions/claude-code", "/home/ann/.claude/projects", "/home/ann/.claude/projects")
VAULT = RootOrigin("/home/ann/vault", "/home/ann/vault", "/home/ann/vault")


def other(one: RootOrigin, path: str, place: str | None = None) -> RootOrigin:
    return RootOrigin(one.prefix, path, place or path)


def replaced(before: list[RootOrigin], now: list[RootOrigin], *, is_resolved: bool = True) -> list[str]:
    return sorted(compare(before, now, is_resolved=is_resolved).replaced)


def test_the_same_roots_are_recorded_as_they_are() -> None:
    """In any order."""
    roots = [WORKSPACE, VAULT, CHATS, CLAUDE]
    change = compare(roots, roots[::-1], is_resolved=True)
    assert not change.replaced
    assert set(change.record) == set(roots)
    assert compare(change.record, roots, is_resolved=True) == change
    assert change.covered == {"", "/home/ann/vault", "sessions/chats", "sessions/claude-code"}


@pytest.mark.parametrize("root", [WORKSPACE, CHATS, CLAUDE])
def test_another_path_replaces_a_root(root: RootOrigin) -> None:
    now = other(root, "/mnt/other")
    change = compare([root], [now], is_resolved=True)
    assert change.replaced == {root.prefix}
    assert change.record == (now,)


def test_names_of_extra_paths_tell_where_they_are_from() -> None:
    change = compare([WORKSPACE, VAULT], [WORKSPACE, RootOrigin("/x", "/x", "/x")], is_resolved=True)
    assert not change.replaced
    assert change.covered == {"", "/x"}


def test_another_path_to_the_same_place_replaces_nothing() -> None:
    assert not replaced([WORKSPACE], [other(WORKSPACE, "/home/ann/link", "/home/ann/notes")])
    assert not replaced([LINKED], [other(WORKSPACE, "/srv/one")])


def test_a_symlink_that_leads_elsewhere_is_the_same_root_but_has_no_one_place() -> None:
    """A scan decides what is gone; afterwards no other path is that of the same place."""
    moved = other(LINKED, LINKED.path, "/srv/two")
    change = compare([LINKED], [moved], is_resolved=True)
    assert not change.replaced
    assert change.record == (RootOrigin("", LINKED.path, None),)
    assert not replaced(list(change.record), [LINKED])
    assert replaced(list(change.record), [other(WORKSPACE, "/srv/one")]) == [""]
    assert replaced(list(change.record), [other(WORKSPACE, "/srv/two")]) == [""]


def test_a_file_that_is_left_out_replaces_those_that_share_its_names() -> None:
    """Names of transcripts tell the directory, and not which configured path led there."""
    one, two = (other(CHATS, f"/home/ann/chats/{name}.jsonl") for name in ("one", "two"))
    assert replaced([one, two], [one]) == ["sessions/chats"]
    assert not replaced([one], [one, two])


def test_directories_that_exchange_their_names_replace_each_other() -> None:
    second = RootOrigin("sessions/chats-2", "/home/ben/chats", "/home/ben/chats")
    assert replaced([CHATS, second], [other(CHATS, second.path), other(second, CHATS.path)]) == [
        "sessions/chats",
        "sessions/chats-2",
    ]


def test_what_is_recorded_of_no_root_is_nobodys() -> None:
    assert replaced([WORKSPACE], [WORKSPACE, CHATS]) == ["sessions/chats"]


def test_a_workspace_and_an_extra_path_of_one_place_are_two_roots() -> None:
    assert replaced([other(VAULT, "/home/ann/notes")], [WORKSPACE]) == [""]


def test_a_disk_that_does_not_answer_replaces_only_by_another_path() -> None:
    """Symlinks are not resolved then, so prefixes may be other ones, which are not recorded."""
    vault = RootOrigin("/srv/vault", "/home/ann/vault", "/srv/vault")
    unresolved = [other(LINKED, LINKED.path), other(vault, vault.path), other(CHATS, "/mnt/chats")]
    change = compare([LINKED, vault, CHATS], unresolved, is_resolved=False)
    assert change.replaced == {"sessions/chats"}
    assert set(change.record) == {LINKED, vault, other(CHATS, "/mnt/chats")}
