import os
from pathlib import Path

import pytest

from memd_client.context.safe_open import NotRegular, opened_directory, opened_file, opened_workspace


def test_a_file_is_opened_below_its_workspace(tmp_path: Path) -> None:
    """Step by step, and every descriptor is closed again."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "a.md").write_text("text")
    before = len(list(Path("/dev/fd").iterdir()))
    with (
        opened_workspace(tmp_path) as base,
        opened_directory(base, "memory") as directory,
        opened_file(directory, "a.md", os.O_RDONLY) as file,
    ):
        assert os.read(file, 10) == b"text"
    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_home_directory_is_meant_by_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configurations name a workspace so."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "agent").mkdir()
    with opened_workspace("~/agent") as base:
        assert os.path.samestat(os.fstat(base), (tmp_path / "agent").stat())


def test_symlinks_are_not_followed(tmp_path: Path) -> None:
    """Neither of directories nor of files, also where they stay inside."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real.md").write_text("x")
    (tmp_path / "directory").symlink_to("real")
    (tmp_path / "file.md").symlink_to("real.md")
    with opened_workspace(tmp_path) as base:
        with pytest.raises(OSError, match="directory"), opened_directory(base, "directory"):
            pass
        with pytest.raises(OSError, match=r"file\.md"), opened_file(base, "file.md", os.O_RDONLY):
            pass


def test_what_is_no_file_is_closed_again(tmp_path: Path) -> None:
    """A FIFO is not waited for."""
    os.mkfifo(tmp_path / "fifo")
    with opened_workspace(tmp_path) as base:
        with pytest.raises(NotRegular), opened_file(base, "fifo", os.O_RDONLY):
            pass
        with pytest.raises(FileNotFoundError), opened_file(base, "none", os.O_RDONLY):
            pass
