import os
from pathlib import Path

import pytest

from memd.backends.qmd.installation import QmdPlaces, find_program, prepare, qmd_environ
from memd.backends.qmd.process import QmdUnavailable


def test_no_key_reaches_qmd() -> None:
    """Only what a program needs to run is passed on, and what makes the qmd of each agent its own."""
    given = qmd_environ(
        {
            "PATH": "/usr/bin",
            "LANG": "C.UTF-8",
            "OPENAI_API_KEY": "k",
            "HF_TOKEN": "k",
            "INDEX_PATH": "/elsewhere",
            "QMD_CONFIG_DIR": "/elsewhere",
            "NODE_OPTIONS": "--require evil",
            "QMD_EMBED_MODEL": "m",
        },
        QmdPlaces(Path("/state/a.qmd")),
        Path("/opt/qmd/bin/qmd"),
    )
    assert given == {
        "PATH": "/opt/qmd/bin:/usr/bin",
        "LANG": "C.UTF-8",
        "QMD_EMBED_MODEL": "m",
        "PWD": "/",
        "XDG_CONFIG_HOME": "/state/a.qmd/config",
        "QMD_CONFIG_DIR": "/state/a.qmd/config",
        "XDG_CACHE_HOME": "/state/a.qmd/cache",
        "NO_COLOR": "1",
    }


def test_the_users_models_are_shared(tmp_path: Path) -> None:
    """By a link: nobody downloads gigabytes for each agent. What is there is never overwritten."""
    models = tmp_path / ".cache" / "qmd" / "models"
    models.mkdir(parents=True)
    places = QmdPlaces(tmp_path / "a.qmd")
    prepare(places, {}, tmp_path)
    prepare(places, {}, tmp_path)
    assert places.models.resolve() == models
    other = QmdPlaces(tmp_path / "b.qmd")
    other.models.mkdir(parents=True)
    prepare(other, {}, tmp_path)
    assert not other.models.is_symlink()


def test_without_models_there_is_no_link(tmp_path: Path) -> None:
    """One to nowhere would be in the way of those that qmd downloads; the directories are for their user alone."""
    places = QmdPlaces(tmp_path / "a.qmd")
    prepare(places, {"XDG_CACHE_HOME": str(tmp_path / "nothing")}, tmp_path)
    assert not places.models.is_symlink()
    assert {directory.stat().st_mode & 0o777 for directory in (places.base, places.config, places.cache)} == {
        0o700
    }


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    """The reason names it."""
    (tmp_path / "a.qmd").write_text("")
    with pytest.raises(QmdUnavailable, match=r"a\.qmd"):
        prepare(QmdPlaces(tmp_path / "a.qmd"), {}, tmp_path)


# --- the program


def program(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def sought(command: str, tmp_path: Path, path: str = "") -> Path:
    return find_program(
        command, workspace=tmp_path / "workspace", environ={"PATH": path}, home=tmp_path / "home"
    )


@pytest.mark.parametrize(
    ("command", "place"),
    [
        ("qmd", "bin/qmd"),
        ("  qmd  ", "bin/qmd"),
        ("qmd --index other", "bin/qmd"),  # what follows is no part of the program
        ("'qmd' \"it's", "bin/'qmd'"),  # a quotation mark that is never closed is no error
        ("./bin/qmd", "workspace/bin/qmd"),
        ("../qmd", "qmd"),
        ("~/my tools/qmd", "home/my tools/qmd"),
        ("'~/my tools/qmd' --verbose", "home/my tools/qmd"),
        ("~/my\\ tools/qmd", "home/my tools/qmd"),
    ],
)
def test_the_program_is_found_where_the_command_says(command: str, place: str, tmp_path: Path) -> None:
    """A name is looked for on PATH; a path may begin with ~, and is relative to the workspace otherwise."""
    (tmp_path / "workspace").mkdir()
    wanted = program(tmp_path / place)
    assert wanted.samefile(sought(command, tmp_path, str(tmp_path / "bin")))


def test_an_absolute_path_may_have_spaces(tmp_path: Path) -> None:
    """A path that is a file is taken whole, quoted or not."""
    wanted = program(tmp_path / "a tool" / "q m d")
    assert sought(str(wanted), tmp_path) == wanted


def test_relative_directories_on_the_path_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they mean depends on where the daemon happens to stand."""
    program(tmp_path / "here" / "qmd")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QmdUnavailable, match="not on the PATH"):
        sought("qmd", tmp_path, "here::.")


def test_a_file_that_cannot_run_gives_way_to_one_that_can(tmp_path: Path) -> None:
    """The first program of the name on PATH is taken, as a shell does."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "qmd").write_text("text")
    wanted = program(tmp_path / "b" / "qmd")
    assert sought("qmd", tmp_path, f"{tmp_path}/a:{tmp_path}/b") == wanted


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("", "is empty"),
        ("   ", "is empty"),
        ("''", "names no program"),
        ("qm\0d", "NUL"),
        ("qmd", "not on the PATH"),
        ("./nothing", "No such file"),
        ("./directory", "is a directory"),
        ("./text", "is not executable"),
        ("./pipe", "is no program"),
        ("$(touch pwned)", "not on the PATH"),
    ],
)
def test_what_cannot_be_run_is_refused_with_what_mends_it(
    command: str, complaint: str, tmp_path: Path
) -> None:
    """The reason names the file, and how qmd is installed; no shell ever sees the command."""
    workspace = tmp_path / "workspace"
    (workspace / "directory").mkdir(parents=True)
    (workspace / "text").write_text("text")
    os.mkfifo(workspace / "pipe")
    with pytest.raises(QmdUnavailable, match=complaint) as refused:
        sought(command, tmp_path, str(tmp_path))
    assert "npm install" in str(refused.value)
