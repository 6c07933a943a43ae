"""Whether a directory is a mount point."""

import os
import sys
from pathlib import Path

import pytest

from memd.sources import safe_open
from memd.sources.safe_open import is_mount_point


def asked(directory: Path) -> bool:
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return is_mount_point(opened)
    finally:
        os.close(opened)


@pytest.mark.skipif(sys.platform != "linux", reason="has /proc")
def test_what_is_mounted_is_told_from_what_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the kernel, and by devices where it does not tell."""
    assert (asked(Path("/proc")), asked(tmp_path)) == (True, False)
    monkeypatch.setattr(safe_open, "statx", None)
    assert (asked(Path("/proc")), asked(tmp_path)) == (True, False)


@pytest.mark.skipif(safe_open.statx is None, reason="this system tells by devices alone")
def test_a_directory_on_a_device_of_its_own_is_no_mount_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subvolume of btrfs is one."""
    real = os.fstat

    def elsewhere(opened: int) -> os.stat_result:
        told = list(real(opened))
        told[2] += 1  # st_dev
        return os.stat_result(told)

    monkeypatch.setattr(os, "fstat", elsewhere)
    assert not asked(tmp_path)
