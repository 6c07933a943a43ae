"""One question a process, answered a fact a line."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from memd.inspection.__main__ import ASPECTS
from memd.inspection.facts import (
    AnyFact,
    Cache,
    Disk,
    Engine,
    InspectionBegun,
    InspectionEnd,
    InspectionRequest,
    Model,
    RootsScan,
    Store,
)


@pytest.mark.parametrize(
    ("aspect", "kinds"),
    [
        ("engine", {Engine}),
        ("model", {Model}),
        ("roots", {RootsScan, Disk}),
        ("stores", {Store, Cache}),
    ],
)
def test_an_aspect_is_told_to_its_end(tmp_path: Path, aspect: str, kinds: set[type]) -> None:
    """Of an agent on a fresh home."""
    question = InspectionRequest(
        config=None, home=str(tmp_path), state=str(tmp_path / "s"), patience_s=30.0, now=1.0
    )
    command = [sys.executable, "-P", "-m", "memd.inspection", aspect]
    told = subprocess.run(
        command, input=msgspec.json.encode(question), capture_output=True, check=True, timeout=60
    )
    facts = [msgspec.json.decode(line, type=AnyFact) for line in told.stdout.splitlines()]
    assert {type(fact) for fact in facts} == {InspectionBegun, *kinds, InspectionEnd}
    assert isinstance(facts[-1], InspectionEnd)
    assert aspect in ASPECTS
    assert list(tmp_path.iterdir()) == []
