import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from memd.config.settings import AgentSettings, QmdSettings
from memd.inspection import programs
from memd.inspection.programs import look_at_model, look_at_qmd
from memd.providers.local import bundled_model
from memd.providers.local.bundled_model import DIMENSIONS, PACKAGE
from memd.providers.provider import Vector


@pytest.fixture
def own_environ(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a probe sets for its process does not outlast the test."""
    monkeypatch.setattr(os, "environ", dict(os.environ))


@pytest.mark.usefixtures("own_environ")
def test_the_bundled_model_tells_an_answer_from_other_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """In both languages, by vectors of length 1."""
    for name in ("OMP_NUM_THREADS", "ORT_DISABLE_TELEMETRY"):
        monkeypatch.delenv(name, raising=False)
    clock = iter((10.0, 10.25004, 11.50004))
    monkeypatch.setattr(programs, "time", SimpleNamespace(perf_counter=clock.__next__))
    tried = look_at_model()
    assert (tried.fault, tried.dimensions, tried.finite) == (None, DIMENSIONS, True)
    assert tried.version
    assert tried.length == pytest.approx(1, abs=1e-3)
    assert tried.related > tried.unrelated + 0.05
    assert (tried.load_ms, tried.embed_ms) == (250.0, 208.3)  # for the model, and for each of six texts
    assert (os.environ["OMP_NUM_THREADS"], os.environ["ORT_DISABLE_TELEMETRY"]) == ("1", "1")


@pytest.mark.usefixtures("own_environ")
@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_vectors_that_are_no_numbers_are_told(monkeypatch: pytest.MonkeyPatch, number: float) -> None:
    """Without lengths and cosines, which would be none either."""

    def embedded(_: str) -> Vector:
        return np.full(DIMENSIONS, number, np.float32)

    monkeypatch.setattr(bundled_model, "load", lambda: SimpleNamespace(query=embedded, passage=embedded))
    tried = look_at_model()
    assert (tried.fault, tried.dimensions, tried.finite) == (None, DIMENSIONS, False)
    assert (tried.length, tried.related, tried.unrelated) == (0.0, 0.0, 0.0)


@pytest.mark.usefixtures("own_environ")
def test_the_worse_language_and_the_worst_length_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is damaged may still know the other one."""
    directions = iter(((1, 0), (1, 0), (0, 1), (1, 0), (0.3, 0.4), (0.28, 0.96)))

    def embedded(_: str) -> Vector:
        return np.array(next(directions), np.float32)

    monkeypatch.setattr(bundled_model, "load", lambda: SimpleNamespace(query=embedded, passage=embedded))
    tried = look_at_model()
    assert tried.dimensions == 2
    assert [tried.related, tried.unrelated, tried.length] == pytest.approx([0.6, 0.28, 0.5])


@pytest.mark.usefixtures("own_environ")
def test_a_missing_model_is_a_fault_that_says_how_to_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the package there is nothing to measure."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        monkeypatch.delitem(sys.modules, name)
    tried = look_at_model()
    assert tried.fault is not None
    assert "pip install" in tried.fault
    assert (tried.dimensions, tried.finite, tried.length) == (0, True, 0.0)
    assert (tried.related, tried.unrelated) == (0.0, 0.0)


def program(home: Path, text: str) -> AgentSettings:
    """Settings that name a program with this text."""
    file = home / "qmd"
    file.write_text(text)
    file.chmod(0o700)
    return AgentSettings(workspace=home, backend="qmd", qmd=QmdSettings(command=str(file)))


@pytest.mark.parametrize(
    ("text", "version", "fault"),
    [
        ("#!/bin/sh\n[ \"$*\" = --version ] && echo 'qmd 2.8.3 (abc)'\n", "qmd 2.8.3 (abc)", None),
        ("#!/bin/sh\nprintf '\\033[1mqmd\\033[0m 9\\n'\n", "qmd 9", None),
        (f"#!/bin/sh\necho {'9' * 81}\n", "9" * 80, None),
        ("#!/bin/sh\necho no >&2; exit 3\n", "", "ended with status 3"),
        ("#!/bin/sh\nsleep 60\n", "", "did not end within"),
        ("#!/no/such/interpreter\n", "", "could not be started"),
    ],
    ids=["tells", "tells in colours", "tells much", "fails", "hangs", "cannot be run"],
)
def test_a_program_tells_its_version(tmp_path: Path, text: str, version: str, fault: str | None) -> None:
    """Or why it does not, with the file that was tried."""
    timeout_s = 0.2 if "sleep" in text else 10.0
    found = look_at_qmd(
        "main",
        program(tmp_path, text),
        state=tmp_path / "state",
        environ=dict(os.environ),
        home=tmp_path,
        timeout_s=timeout_s,
    )
    assert (found.file, found.version) == (str(tmp_path / "qmd"), version)
    assert (found.fault is None) if fault is None else fault in (found.fault or "")
    assert not (tmp_path / "state").exists()


def test_a_program_that_is_not_there_is_told(tmp_path: Path) -> None:
    """With what to do about it."""
    found = look_at_qmd(
        "main",
        AgentSettings(workspace=tmp_path, backend="qmd"),
        state=tmp_path,
        environ={"PATH": str(tmp_path)},
        home=tmp_path,
        timeout_s=5,
    )
    assert found.fault is not None
    assert "not on the PATH" in found.fault
