from pathlib import Path

import pytest

from memd.backends.qmd.environment import QmdPlaces, environment, prepare
from memd.backends.qmd.errors import QmdUnavailable


def test_no_key_reaches_qmd() -> None:
    """Only what a program needs to run is passed on, and what makes the qmd of each agent its own."""
    given = environment(
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
