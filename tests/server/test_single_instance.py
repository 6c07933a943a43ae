import stat
from pathlib import Path

import pytest

from memd.errors import FatalError
from memd.server.lock import AlreadyRunning
from memd.server.single_instance import sole_daemon


def test_what_is_missing_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """And both locks are held until the end."""
    state, socket = tmp_path / "far" / "state", tmp_path / "run" / "memd" / "s"
    with sole_daemon(state, socket):
        for made in (state / "agents", socket.parent):
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
        for other_state, other_socket in ((state, tmp_path / "t"), (tmp_path / "other", socket)):
            with pytest.raises(AlreadyRunning), sole_daemon(other_state, other_socket):
                pass
    with sole_daemon(state, socket):
        pass


@pytest.mark.parametrize("name", ["state", "state/agents"])
@pytest.mark.parametrize(
    ("mode", "is_refused"), [(0o700, False), (0o755, False), (0o770, False), (0o777, True), (0o1777, True)]
)
def test_memory_is_not_kept_where_any_user_may_write(
    tmp_path: Path, name: str, mode: int, is_refused: bool
) -> None:
    """One of a group is left to the group. Nothing is made in one that is refused."""
    state = tmp_path / "state"
    (state / "agents").mkdir(parents=True, mode=0o700)
    (tmp_path / name).chmod(mode)
    if is_refused:
        with pytest.raises(FatalError, match=f"{tmp_path / name}: any user may write there") as refused:
            sole_daemon(state, tmp_path / "s").__enter__()
        assert refused.value.exit_code == 78
        assert not list(state.rglob("*.lock"))
    else:
        with sole_daemon(state, tmp_path / "s"):
            assert (state / "memd.lock").exists()


@pytest.mark.parametrize("which", ["state", "socket"])
def test_a_directory_that_cannot_be_made_is_told_with_the_remedy(tmp_path: Path, which: str) -> None:
    """By the variable that names another path."""
    (tmp_path / "file").touch()
    places = {"state": tmp_path / "state", "socket": tmp_path / "s"} | {which: tmp_path / "file" / "x"}
    if which == "socket":
        places["socket"] = tmp_path / "file" / "x" / "s"
    variable = {"state": "MEMD_STATE_DIR", "socket": "MEMD_SOCKET"}[which]
    with pytest.raises(
        FatalError, match=f"cannot make {tmp_path / 'file'}.*Set {variable} to another path"
    ) as told:
        sole_daemon(places["state"], places["socket"]).__enter__()
    assert told.value.exit_code == 78
