"""The values that flow through memd."""

import os
from pathlib import Path

import apsw
import pytest

from memd.domain_types import Stamp

MOST = (1 << 63) - 1
YEAR_2300_NS = 10_413_792_000 * 1_000_000_000


def status(file: Path, *, inode: int, mtime_ns: int) -> os.stat_result:
    """What a file system says of a file, with an inode and a time of its own."""
    real = file.stat()
    extra = {name: getattr(real, name) for name in ("st_ctime_ns", "st_dev", "st_nlink")}
    return os.stat_result((real.st_mode, inode, *real[2:]), extra | {"st_mtime_ns": mtime_ns})


@pytest.mark.parametrize("inode", [0, 1, MOST, MOST + 1, 16622874082006079039, (1 << 64) - 1])
@pytest.mark.parametrize("mtime_ns", [0, -1, 1_700_000_000_000_000_000, YEAR_2300_NS, -YEAR_2300_NS])
def test_every_stamp_fits_into_sqlite(tmp_path: Path, inode: int, mtime_ns: int) -> None:
    """Whatever a file system gives, SQLite keeps it and gives the same back."""
    stamp = Stamp.of(status(tmp_path, inode=inode, mtime_ns=mtime_ns))
    values = stamp.size, stamp.mtime_ns, stamp.inode, stamp.ctime_ns
    assert apsw.Connection(":memory:").execute("SELECT ?, ?, ?, ?", values).fetchone() == values


def test_no_two_inodes_become_one(tmp_path: Path) -> None:
    """A file that takes the place of another is told from it, also where numbers are hashes."""
    inodes = [0, 1, MOST - 1, MOST, MOST + 1, MOST + 2, (1 << 64) - 1]
    assert len({Stamp.of(status(tmp_path, inode=inode, mtime_ns=1)) for inode in inodes}) == len(inodes)
