from pathlib import Path

from memd.store import quarantine


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_newest_two_are_kept_with_their_logs(tmp_path: Path) -> None:
    """Each gets the next number; the oldest goes, log and all, and nothing else beside them."""
    file = tmp_path / "main.sqlite"
    (tmp_path / "main.sqlite.damaged-x").touch()
    for number in range(4):
        file.write_text(str(number))
        Path(f"{file}-wal").write_text(f"log {number}")
        Path(f"{file}-shm").touch()
        quarantine.set_aside(file, "a test wants it")
    assert [path.name for path in quarantine.kept(file)] == ["main.sqlite.damaged-4", "main.sqlite.damaged-3"]
    assert [path.read_text() for path in quarantine.kept(file)] == ["3", "2"]
    assert len(quarantine.kept(file)) == quarantine.KEPT
    assert Path(f"{quarantine.kept(file)[0]}-wal").read_text() == "log 3"
    assert names(tmp_path) == [
        *(f"main.sqlite.damaged-{number}{log}" for number in (3, 4) for log in ("", "-shm", "-wal")),
        "main.sqlite.damaged-x",
    ]


def test_the_log_of_a_file_that_is_gone_goes_too(tmp_path: Path) -> None:
    """It would be applied to whatever comes in its place."""
    file = tmp_path / "main.sqlite"
    Path(f"{file}-wal").write_text("frames")
    quarantine.set_aside(file, "it was deleted")
    assert names(tmp_path) == []
    assert quarantine.kept(file) == []


def test_a_directory_in_the_place_of_a_file_is_never_emptied(tmp_path: Path) -> None:
    """However many damaged files follow, what somebody put into it stays."""
    file = tmp_path / "main.sqlite"
    file.mkdir()
    (file / "precious").write_text("yes")
    quarantine.set_aside(file, "it is no file")
    for _ in range(3):
        file.touch()
        quarantine.set_aside(file, "a test wants it")
    assert (tmp_path / "main.sqlite.damaged-1" / "precious").read_text() == "yes"
