"""Where configured paths lead after the roots were made."""

import os
from pathlib import Path

import pytest

from memd.config.settings import AgentSettings, SessionSettings
from memd.sources.root_links import RootLinks
from memd.sources.roots import configured_roots, roots_as_written


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory without symlinks above it, with two workspaces in it."""
    base = tmp_path.resolve()
    for name in ("one", "other"):
        (base / name / "memory").mkdir(parents=True)
    return base


def links_of(workspace: Path, *extra: Path) -> RootLinks:
    return RootLinks(configured_roots(AgentSettings(workspace=workspace, extra_paths=extra)).links)


def lead(link: Path, target: str) -> None:
    """Put another symlink in the place of one, as deployments do."""
    (link.parent / "next").symlink_to(target)
    (link.parent / "next").rename(link)


def seen(links: RootLinks) -> tuple[bool, str | None]:
    """Whether the roots are to be made again, and where the changed path leads."""
    links.look()
    if links.changed is None or links.changed.now is None:
        return links.is_moved, None
    return links.is_moved, links.changed.now.name


@pytest.mark.parametrize("is_workspace", [True, False])
@pytest.mark.parametrize("below", ["", "memory"])
def test_a_symlink_that_leads_elsewhere(base: Path, is_workspace: bool, below: str) -> None:
    """Be it the path itself or one above it; back at its first target, nothing has changed."""
    link = base / "current"
    link.symlink_to("one")
    links = links_of(link / below) if is_workspace else links_of(base / "ws", link / below)
    assert seen(links) == (False, None)
    lead(link, "other")
    assert seen(links) == (True, below or "other")
    assert str(links.changed).startswith(f"{link / below} leads to {base / 'other' / below} now")
    lead(link, "one")
    assert seen(links) == (False, None)


def test_a_symlink_that_leads_nowhere_is_no_reason_for_other_roots(base: Path) -> None:
    """Whether it is gone or its new target is; it is told, and followed once something is there."""
    link = base / "current"
    link.symlink_to("one")
    links = links_of(base, link)
    link.unlink()
    assert seen(links) == (False, None)
    assert str(links.changed).startswith(f"{link} leads nowhere now; what it led to before, {base / 'one'},")
    link.symlink_to("later")
    assert seen(links) == (False, None)
    for target in ("current", "a" * 300):  # a circle, and a name that no disk has
        lead(link, target)
        assert seen(links) == (False, None)
    lead(link, "later")
    (base / "later").mkdir()
    assert seen(links) == (True, "later")


def test_of_several_the_one_that_can_be_followed_is_named(base: Path) -> None:
    """One that leads nowhere keeps no other from being followed."""
    for name in ("a", "b"):
        (base / name).symlink_to("one")
    links = links_of(base / "ws", base / "a", base / "b")
    (base / "a").unlink()
    lead(base / "b", "other")
    assert seen(links) == (True, "other")


def test_a_target_that_is_missing_is_no_other_place(base: Path) -> None:
    """What the roots say of a directory that is missing holds for it; elsewhere it is found."""
    link = base / "current"
    link.symlink_to("one")
    links = links_of(link)
    (base / "one").rename(base / "moved")
    assert seen(links) == (False, None)
    lead(link, "moved")
    assert seen(links) == (True, "moved")


def test_a_directory_in_whose_place_a_symlink_is_put_is_not_followed(base: Path) -> None:
    """Whoever may write above it could have any file read."""
    links = links_of(base / "one")
    (base / "one").rename(base / "aside")
    (base / "one").symlink_to("other")
    assert seen(links) == (False, None)
    assert not links


def test_a_path_that_did_not_exist(base: Path) -> None:
    """A directory that is made there is the root; a symlink is followed, as at a start."""
    links = links_of(base / "none" / "current", base / "new")
    assert seen(links) == (False, None)
    (base / "new").mkdir()
    assert seen(links) == (False, None)
    (base / "none").symlink_to(".")
    (base / "current").symlink_to("other")
    assert seen(links) == (True, "other")


def test_a_directory_in_the_place_of_the_symlink(base: Path) -> None:
    """It is what is configured."""
    link = base / "current"
    link.symlink_to("one")
    links = links_of(link)
    link.unlink()
    link.mkdir()
    assert seen(links) == (True, "current")


def test_paths_of_transcripts_are_not_followed(base: Path) -> None:
    """A search waits for no disk with transcripts."""
    link = base / "current"
    link.symlink_to("one")
    settings = AgentSettings(workspace=link, sources=("sessions",), sessions=SessionSettings(paths=(link,)))
    assert not configured_roots(settings, {}).links


def test_paths_of_a_disk_that_did_not_answer_are_resolved_once_it_does(base: Path) -> None:
    """A link is followed then; what is none stays as it was."""
    link = base / "current"
    link.symlink_to("one")
    links = RootLinks(roots_as_written(AgentSettings(workspace=link, extra_paths=(base / "other",))).links)
    assert seen(links) == (True, "one")
    assert seen(RootLinks(roots_as_written(AgentSettings(workspace=base / "one")).links)) == (False, None)


def test_a_parent_is_that_of_what_the_symlink_leads_to(base: Path) -> None:
    """Such a path leads nowhere else just because it is spelled with dots."""
    (base / "link").symlink_to("one/memory")
    dotted = Path(os.path.join(base, "link", "..", "..", "other"))  # noqa: PTH118 - with the dots
    links = links_of(dotted)
    assert seen(links) == (False, None)
