"""Whether the bundled model gives vectors that mean something."""

import importlib.machinery
import sys
from pathlib import Path

import pytest

from memd.providers.local.bundled_model import DIMENSIONS, PACKAGE, ModelMissing
from memd.providers.local.selftest import try_model


def test_what_is_installed_here_works() -> None:
    """Both languages tell an answer from other text, in vectors of length 1."""
    tried = try_model()
    assert (tried.dimensions, tried.finite) == (DIMENSIONS, True)
    assert tried.length == pytest.approx(1, abs=1e-3)
    assert tried.related > tried.unrelated + 0.05


def test_a_model_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how to mend it."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder])
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModelMissing, match="pip install"):
        try_model()
