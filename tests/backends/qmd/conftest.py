from pathlib import Path

import pytest

from tests import realqmd
from tests.fakes.qmd_standin import Standin
from tests.realqmd import RealQmd


@pytest.fixture
def standin(tmp_path: Path) -> Standin:
    """A program that behaves like qmd, or as it is told."""
    return Standin(tmp_path / "bin")


@pytest.fixture(scope="session")
def real_qmd() -> RealQmd:
    """The program qmd itself."""
    return realqmd.installed()
